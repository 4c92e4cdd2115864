"""Where a loop finds what it reads once more: in a cache near by, in some cache, or in memory.

A leaf runs in each iteration of the innermost loop around it, or of the program, which is called again. What it reads
once more then is in a cache if all that the loop reads fits there; the weights of a large model do not. An iteration of
an RNN of one sequence reads all of its weights, 1 MB for an LSTM 256 wide, and little else: they stay near by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.ir import Block, SSAValue

from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferAccess,
    BufferType,
    CheckOp,
    ForOp,
    FreeOp,
    IfOp,
    ProgramOp,
    enclosing_loops,
)
from tempo_ir.dialects.sdg import SliceOp
from tempo_ir.dialects.tile.attributes import bit_width
from tempo_ir.dialects.tile.structure import NEAR, STREAMS
from tempo_ir.dialects.types import Tensor, as_tensor, element, shape_of
from tempo_ir.index import Const, Space
from tempo_ir.index.expr import Index, free_symbols
from tempo_ir.lowering.kernels.layout import Layout

CACHE_BYTES = 1 << 24
"""What caches hold of weights from one iteration to the next: half of the 32 MB that a processor of today shares."""

NEAR_BYTES = 5 << 18
"""What an iteration may touch in all: a second cache of 1 MB, and a little of the third (measured: rows of weights that
are read several at a time are 1.2 times as fast up to here, and slower than one by one from 2 MB on)."""

PASSING_BYTES = 1 << 16
"""What it may touch of rows that are not those of the iteration before: less than weights are."""


def where_read(program: ProgramOp) -> dict[BodyOperation, str]:
    """The attribute of a kernel for leaves whose operands come from memory (`STREAMS`) or from a cache near by
    (`NEAR`)."""
    return {**dict.fromkeys(_streaming_leaves(program), STREAMS), **dict.fromkeys(_near_leaves(program), NEAR)}


def _streaming_leaves(program: ProgramOp) -> set[BodyOperation]:
    """The leaves in loops whose leaves, those of inner loops too, read buffers of more than `CACHE_BYTES` in all. A
    buffer whose size varies counts as nothing."""
    read: dict[ForOp | None, dict[SSAValue, int]] = {}
    leaves: dict[ForOp | None, list[BodyOperation]] = {}
    for leaf in [op for op in program.operations() if isinstance(op, BodyOperation)]:
        sizes = {access.buffer: _room(access.buffer, program.space) for access in leaf.reads}
        around = enclosing_loops(leaf)
        leaves.setdefault(around[-1] if around else None, []).append(leaf)
        for loop in (None, *around):
            read.setdefault(loop, {}).update(sizes)
    large = [loop for loop, sizes in read.items() if sum(sizes.values()) > CACHE_BYTES]
    return {leaf for loop in large for leaf in leaves.get(loop, ())}


def _room(buffer: SSAValue, space: Space) -> int:
    assert isinstance(buffer.type, BufferType)
    layout = Layout.of(buffer.type, space)
    return layout.size.value * bit_width(layout.element) // 8 if isinstance(layout.size, Const) else 0


def _near_leaves(program: ProgramOp) -> set[BodyOperation]:
    """The leaves of innermost loops of which all that an iteration touches is known, and no more than stays near."""
    loops = list(program.loops())
    return {leaf for loop in loops if _stays_near(loop) for leaf in loop.body.walk() if isinstance(leaf, BodyOperation)}


def _stays_near(loop: ForOp) -> bool:
    kept, passing = dict[_Part, int](), dict[_Part, int]()
    for part in _parts(loop.body.block):
        if part is None or (size := part.bytes) is None:
            return False
        rows = passing if loop.iterator in free_symbols((*part.index, *part.take)) else kept
        rows[part] = size
    moved = sum(passing.values())
    return moved <= PASSING_BYTES and moved + sum(kept.values()) <= NEAR_BYTES


@dataclass(frozen=True)
class _Part:
    """A part of the rows of a buffer, `take` of those at an index; all of them where that is empty."""

    buffer: SSAValue
    index: Index
    take: Index
    type: Tensor

    @property
    def bytes(self) -> int | None:
        """How many there are, where all extents are numbers."""
        shape = shape_of(self.type)
        extents = [extent for extent in shape if isinstance(extent, int)]
        return prod(extents) * max(8, bit_width(element(self.type))) // 8 if len(extents) == len(shape) else None


def _parts(block: Block) -> Iterator[_Part | None]:
    """What the ops of a block read and write; None for one that has a loop of its own, or calls who knows what."""
    for op in block.ops:
        if isinstance(op, IfOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _parts(inner)
        elif isinstance(op, BodyOperation):
            for argument, access in zip(op.body.block.args, op.reads, strict=True):
                yield from _parts_read(argument, access)
            yield from (_Part(access.buffer, access.index, (), access.type) for access in op.writes)
        elif not isinstance(op, AllocOp | FreeOp | CheckOp):
            yield None


def _parts_read(argument: SSAValue, access: BufferAccess) -> Iterator[_Part]:
    """What a body reads of an access: what is taken out of it, where nothing else is done with it."""
    slices = [use.operation for use in argument.uses if isinstance(use.operation, SliceOp)]
    if not slices or len(slices) != argument.uses.get_length():
        yield _Part(access.buffer, access.index, (), access.type)
        return
    for op in slices:
        yield _Part(access.buffer, access.index, op.take, as_tensor(op.result.type))
