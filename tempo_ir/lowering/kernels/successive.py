"""What a kernel that a loop launches is told of the launches before and after, on a CPU.

Weights that stay in a cache near by are read in turn from the first to the last and from the last to the first: what a
launch reads last is in the nearest cache when the next one begins (measured: the weights of an RNN, 768 KB and 1 MB, in
0.98 and 0.94 of the time). So the kernel is given the loop's iterator, and is marked.

```mlir
loop.launch @contract_kernel(%h, %w, %r)          loop.launch @contract_kernel(%h, %w, %r)[t]
tile.kernel @contract_kernel(...) {near}     ->   tile.kernel @contract_kernel(..., %turn: index) {near, turns}
```

Long rows that a launch names by an offset are those of the launch before, moved by a number: what the next launch reads
and writes can be asked for. The number of each scalar, 0 where there is none:

```mlir
loop.launch @add(%x, %h)[256 * t]
tile.kernel @add(%x, %h, %n0: index)         ->   tile.kernel @add(...) {advances = #tile.integers[256]}
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, BlockArgument

from tempo_ir.dialects.loop import BodyOperation, ForOp
from tempo_ir.dialects.tile.attributes import DYNAMIC, INDEX, IntegersAttr, ViewType, bit_width
from tempo_ir.dialects.tile.memory import LoadOp, StoreOp
from tempo_ir.dialects.tile.structure import ADVANCES, TURNS
from tempo_ir.index import Const, Sym, substitute
from tempo_ir.index.expr import Expr
from tempo_ir.lowering.kernels.translation import Translation

NEAREST = 1 << 15
"""Bytes of weights from which on the nearest cache cannot hold them all beside the rest."""

ROW_BYTES = 1 << 9
"""What a launch touches of a row at least, for the next one to be asked for: fewer lines the processor foresees."""


@dataclass(frozen=True)
class Succession:
    """The innermost loop of nothing but leaves and branches round a leaf: its iterator, and by how much that grows."""

    iterator: str
    step: int

    @staticmethod
    def of(loop: ForOp) -> Succession | None:
        """That of a loop, if it is such."""
        if _has_loops(loop.body.block):
            return None
        return Succession(loop.iterator, -loop.range.step if loop.down else loop.range.step)

    def advance(self, scalar: Expr) -> int:
        """By how much a scalar grows from launch to launch, 0 where that is no number."""
        grown = substitute(scalar, {self.iterator: Sym(self.iterator) + self.step}) - scalar
        return grown.value if isinstance(grown, Const) else 0


def _has_loops(block: Block) -> bool:
    """Whether loops stand in a block: what leaves are made of has none, and is not looked at."""
    inner = (region.block for op in block.ops if not isinstance(op, BodyOperation) for region in op.regions)
    return any(isinstance(op, ForOp) for op in block.ops) or any(map(_has_loops, inner))


def with_turns(translation: Translation, succession: Succession) -> Translation:
    """Let the kernel take the loop's iterator, and go through its programs backwards where that is odd; what stays in
    the nearest cache anyway is read as it was."""
    loads = [op.view_type for op in translation.kernel.walk() if isinstance(op, LoadOp)]
    if abs(succession.step) != 1 or all(_viewed_bytes(view) < NEAREST for view in loads):
        return translation
    kernel, block = translation.kernel, translation.kernel.body.block
    kernel.attributes[TURNS] = UnitAttr()
    block.insert_arg(INDEX, len(block.args)).name_hint = "turn"
    own = sum(isinstance(argument.type, IndexType) for argument in block.args) - 1
    scalars = *translation.scalars[:own], Sym(succession.iterator), *translation.scalars[own:]
    return replace(translation, scalars=scalars)


def mark_advances(translation: Translation, succession: Succession) -> None:
    """Say by how much the scalars grow, where some are offsets of long rows that a launch reads or writes."""
    kernel = translation.kernel
    arguments = [argument for argument in kernel.body.block.args if isinstance(argument.type, IndexType)]
    accesses = [op for op in kernel.body.block.ops if isinstance(op, LoadOp | StoreOp) and _bytes(op) >= ROW_BYTES]
    offsets = {op.view_op.offset for op in accesses if isinstance(op.view_op.offset, BlockArgument)}
    scalars = zip(arguments, translation.scalars, strict=False)
    advances = [succession.advance(scalar) if argument in offsets else 0 for argument, scalar in scalars]
    if any(advances):
        kernel.attributes[ADVANCES] = IntegersAttr(tuple(advances))


def _viewed_bytes(view: ViewType) -> int:
    """How much memory a view is of, those of extents that the text does not say not counted."""
    return prod(extent for extent in view.shape.data if extent != DYNAMIC) * bit_width(view.element) // 8


def _bytes(op: LoadOp | StoreOp) -> int:
    """How much of memory an access touches."""
    return prod(op.block.data[axis] for axis in op.tile_axes) * bit_width(op.view_type.element) // 8
