"""Facts about index scalars that let the printer leave out masks and 64-bit offsets."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import structure
from tempo_ir.dialects.tile.shape import ConstOp


def constant_of(value: SSAValue) -> int | None:
    """The number of a constant index, else None."""
    owner = value.owner
    if isinstance(owner, ConstOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def loop_of(value: SSAValue) -> structure.ForOp | None:
    """The loop whose counter `value` is, if it is one."""
    owner = value.owner
    if not isinstance(owner, Block) or not isinstance(loop := owner.parent_op(), structure.ForOp):
        return None
    return loop if value is owner.args[0] else None


def is_multiple(value: SSAValue, n: int) -> bool:
    """Is `value` a multiple of `n` for a reason that can be read off its definition?"""
    if n == 1:
        return True
    if (number := constant_of(value)) is not None:
        return number % n == 0
    if (loop := loop_of(value)) is not None:
        return loop.step_size % n == 0 and is_multiple(loop.low, n)
    match value.owner:
        case ew.MulOp(lhs=lhs, rhs=rhs):
            return is_multiple(lhs, n) or is_multiple(rhs, n)
        case ew.AddOp(lhs=lhs, rhs=rhs) | ew.SubOp(lhs=lhs, rhs=rhs):
            return is_multiple(lhs, n) and is_multiple(rhs, n)
        case _:
            return False


def is_natural(value: SSAValue) -> bool:
    """Is `value` at least 0 for a reason that can be read off its definition?"""
    if (number := constant_of(value)) is not None:
        return number >= 0
    if (loop := loop_of(value)) is not None:
        return is_natural(loop.low)
    match value.owner:
        case structure.ProgramIdOp():
            return True
        case ew.MulOp(lhs=lhs, rhs=rhs) | ew.AddOp(lhs=lhs, rhs=rhs) | ew.MinOp(lhs=lhs, rhs=rhs):
            return is_natural(lhs) and is_natural(rhs)
        case ew.MaxOp(lhs=lhs, rhs=rhs):
            return is_natural(lhs) or is_natural(rhs)
        case ew.ModOp(rhs=rhs):
            return is_natural(rhs)
        case ew.FloorDivOp(lhs=lhs, rhs=rhs):
            return is_natural(lhs) and is_natural(rhs)
        case _:
            return False


def fits(index: SSAValue, extent: int, size: int | SSAValue) -> bool:
    """Does `index .. index + extent` surely lie inside `0 .. size`?

    Blocks of a grid or loop start at multiples of their extent and below the size, so a size that the extent divides is enough.
    """
    if not isinstance(size, int):
        return False
    if (start := constant_of(index)) is not None:
        return 0 <= start and start + extent <= size
    return size % extent == 0 and is_multiple(index, extent) and is_natural(index)
