"""What the programs of a grid share: ops of a kernel that give the same for all programs along some axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from math import prod

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile.attributes import DYNAMIC, shape_of
from tempo_ir.dialects.tile.memory import GatherOp, IndexedWriteOp, LoadOp, WriteOp
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.dialects.tile.structure import IfOp, KernelOp, ProgramIdOp, YieldOp
from tempo_ir.lowering.llvm.written import writes_of

WORTH = 128
"""One element computed anew for so many multiplications is worth another order of loops: to turn an element round takes
about as long as four, and the order that axes have is that of memory."""


def program_axes(kernel: KernelOp) -> dict[Operation, frozenset[int]]:
    """
    Per op of a kernel's body, in order, the axes of the grid whose programs it depends on. What writes memory, or reads
    what the kernel writes, depends on all.
    """
    everything = frozenset(range(len(kernel.grid.data)))
    written = writes_of(kernel)
    known: dict[SSAValue, frozenset[int]] = {}
    found: dict[Operation, frozenset[int]] = {}
    for op in ops_of(kernel.body.block):
        axes = everything if isinstance(op, YieldOp) else frozenset[int]()
        for inner in op.walk():
            if isinstance(inner, ProgramIdOp):
                axes |= {inner.axis.value.data}
            elif isinstance(inner, WriteOp | IndexedWriteOp | IfOp) or (
                isinstance(inner, LoadOp | GatherOp) and inner.view_op.pointer in written
            ):
                axes = everything
            axes = axes.union(*(known[operand] for operand in inner.operands if operand in known))
        found[op] = axes
        known |= dict.fromkeys(op.results, axes)
    return found


def program_levels(axes: Mapping[Operation, frozenset[int]], order: Sequence[int]) -> dict[Operation, int]:
    """Per op the least place, in the order of the loops over programs from the innermost to the outermost, of an axis
    that it depends on; as many as there are axes for what depends on none."""
    return {op: min(map(order.index, on), default=len(order)) for op, on in axes.items()}


def loop_order(
    kernel: KernelOp, axes: Mapping[Operation, frozenset[int]], is_kept: Callable[[SSAValue], bool]
) -> tuple[int, ...]:
    """
    The axes of the grid in the order of the loops over programs, from the innermost to the outermost: that in which the
    fewest elements of what programs share and keep in scratch (`is_kept`) are computed anew, as the rows of a product
    that are turned round, where this is much beside the multiplications; else as they are numbered.
    """
    grid, numbered = kernel.grid.data, tuple(range(len(kernel.grid.data)))
    dots = [op for op in axes if isinstance(op, DotOp)]
    if len(grid) < 2 or DYNAMIC in grid or not dots:
        return numbered
    shared = [(prod(shape_of(value)), axes[op]) for op in axes for value in op.results if is_kept(value)]

    def computed(order: tuple[int, ...]) -> int:
        """Elements that are computed, each as often as the innermost loop that it depends on runs."""
        runs = [prod(grid[axis] for axis in order[place:]) for place in range(len(order) + 1)]
        return sum(size * runs[min(map(order.index, on), default=len(order))] for size, on in shared)

    multiplications = sum(prod(shape_of(dot.lhs)) * shape_of(dot.rhs)[1] for dot in dots) * prod(grid)
    best = min(permutations(numbered), key=computed)
    return best if (computed(numbered) - computed(best)) * WORTH > multiplications else numbered
