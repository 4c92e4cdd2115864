"""Facts about index scalars that let the printer leave out masks and 64-bit offsets."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import structure
from tempo_ir.dialects.tile.shape import ConstOp

INT32 = 2**31
"""Offsets from here on, or below its negative, need 64 bits."""

Bounds = tuple[int, int]
"""The least and the greatest value."""


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


def static_bounds(value: SSAValue) -> Bounds | None:
    """The bounds of an index made of constants, counters of constant loops and places in a known grid alone, else None.

    These are 32-bit integers in Triton, everything else here is of 64 bits: this tells which an index is.
    """
    if (number := constant_of(value)) is not None:
        return number, number
    if (loop := loop_of(value)) is not None:
        low, high = constant_of(loop.low), constant_of(loop.high)
        return None if low is None or high is None else (low, _last_trip(low, high, loop.step_size))
    if isinstance(value.owner, structure.ProgramIdOp):
        last = _last_program(value.owner, value.owner.axis.value.data)
        return None if last is None else (0, last)
    if not isinstance(value.owner, ew.BinaryOp):
        return None
    lhs, rhs = static_bounds(value.owner.lhs), static_bounds(value.owner.rhs)
    if lhs is None or rhs is None:
        return None
    return _combined(value.owner, lhs, rhs)


def _last_trip(low: int, high: int, step: int) -> int:
    """The last value of a counter, `low` where there is none."""
    return low + max(0, (high - 1 - low) // step) * step


def _combined(op: ew.BinaryOp, lhs: Bounds, rhs: Bounds) -> Bounds:
    match op:
        case ew.AddOp():
            return lhs[0] + rhs[0], lhs[1] + rhs[1]
        case ew.SubOp():
            return lhs[0] - rhs[1], lhs[1] - rhs[0]
        case ew.MulOp():
            products = [a * b for a in lhs for b in rhs]
            return min(products), max(products)
        case ew.MinOp():
            return min(lhs[0], rhs[0]), min(lhs[1], rhs[1])
        case ew.MaxOp():
            return max(lhs[0], rhs[0]), max(lhs[1], rhs[1])
        case _:  # division and modulo: no greater than either operand
            most = max(map(abs, (*lhs, *rhs)))
            return -most, most


def fits_32_bits(bounds: Bounds) -> bool:
    """Whether all values between the bounds are 32-bit integers."""
    return -INT32 <= bounds[0] and bounds[1] < INT32


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


def largest(value: SSAValue) -> int | None:
    """A number that `value` does not exceed, where one can be read off its definition."""
    if (bounds := static_bounds(value)) is not None:
        return bounds[1]
    if (loop := loop_of(value)) is not None:
        high = constant_of(loop.high)
        return None if high is None else high - 1
    match value.owner:
        case structure.ProgramIdOp(axis=axis):
            return _last_program(value.owner, axis.value.data)
        case ew.AddOp(lhs=lhs, rhs=rhs):
            parts = largest(lhs), largest(rhs)
            return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
        case ew.MulOp(lhs=lhs, rhs=rhs):
            parts = largest(lhs), largest(rhs)
            known = parts[0] is not None and parts[1] is not None and is_natural(lhs) and is_natural(rhs)
            return (parts[0] or 0) * (parts[1] or 0) if known else None
        case ew.SubOp(lhs=lhs, rhs=rhs):
            less, most = constant_of(rhs), largest(lhs)
            return None if less is None or most is None else most - less
        case ew.MaxOp(lhs=lhs, rhs=rhs):
            parts = largest(lhs), largest(rhs)
            return None if parts[0] is None or parts[1] is None else max(parts[0], parts[1])
        case ew.ModOp(rhs=rhs):
            divisor = constant_of(rhs)
            return divisor - 1 if divisor is not None and divisor > 0 else None
        case ew.FloorDivOp(lhs=lhs, rhs=rhs):
            divisor, most = constant_of(rhs), largest(lhs)
            return most // divisor if divisor is not None and divisor > 0 and most is not None else None
        case ew.MinOp(lhs=lhs, rhs=rhs):
            return min((part for part in (largest(lhs), largest(rhs)) if part is not None), default=None)
        case _:
            return None


def _last_program(op: structure.ProgramIdOp, axis: int) -> int | None:
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, structure.KernelOp):
        kernel = kernel.parent_op()
    extent = -1 if kernel is None else kernel.grid.data[axis]
    return extent - 1 if extent > 0 else None


def fits(index: SSAValue, extent: int, size: int | SSAValue) -> bool:
    """Does `index .. index + extent` surely lie inside `0 .. size`?"""
    if not isinstance(size, int) or not is_natural(index):
        return False
    last = largest(index)
    return last is not None and last + extent <= size
