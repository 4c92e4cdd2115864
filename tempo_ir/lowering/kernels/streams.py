"""Which leaves find nothing of what they read in a cache, as all that is read meanwhile takes its place.

A leaf runs in each iteration of the innermost loop around it, or of the program, which is called again. What it reads
once more then is in a cache if all that the loop reads fits there; the weights of a large model do not.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import BodyOperation, BufferType, ForOp, ProgramOp, enclosing_loops
from tempo_ir.dialects.tile.attributes import bit_width
from tempo_ir.index import Const, Space
from tempo_ir.lowering.kernels.layout import Layout

CACHE_BYTES = 1 << 24
"""What caches hold of weights from one iteration to the next: half of the 32 MB that a processor of today shares."""


def streaming_leaves(program: ProgramOp) -> set[BodyOperation]:
    """The leaves in loops whose leaves, those of inner loops too, read buffers of more than `CACHE_BYTES` in all. A
    buffer whose size varies counts as nothing."""
    read: dict[ForOp | None, dict[SSAValue, int]] = {}
    leaves: dict[ForOp | None, list[BodyOperation]] = {}
    for leaf in [op for op in program.walk() if isinstance(op, BodyOperation)]:
        sizes = {access.buffer: _bytes(access.buffer, program.space) for access in leaf.reads}
        around = enclosing_loops(leaf)
        leaves.setdefault(around[-1] if around else None, []).append(leaf)
        for loop in (None, *around):
            read.setdefault(loop, {}).update(sizes)
    large = [loop for loop, sizes in read.items() if sum(sizes.values()) > CACHE_BYTES]
    return {leaf for loop in large for leaf in leaves.get(loop, ())}


def _bytes(buffer: SSAValue, space: Space) -> int:
    assert isinstance(buffer.type, BufferType)
    layout = Layout.of(buffer.type, space)
    return layout.size.value * bit_width(layout.element) // 8 if isinstance(layout.size, Const) else 0
