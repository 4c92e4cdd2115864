"""How many warps run a program of a kernel: as many as keep what it holds at once in registers; and how many stages
its loops have, so that loads run ahead of dots.

These rules know no occupancy (`estimates.py` does), only what compiling ahead of time shows: a product that is written
out is held whole, and the operands of a `tl.dot` that has no tensor cores lie in registers along all of the contracted
axis.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from xdsl.ir import Operation

from tempo_ir.dialects.tile.attributes import bit_width, element_of, is_float, shape_of
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.dialects.tile.structure import ForOp, KernelOp

SMALLEST_DOT = 16
"""Sides of a `tl.dot` that fill a tensor core, and the least that it takes along the contracted one."""
LARGEST_PRODUCT = 16_384
"""Words of 32 bits of a product that is written out, all at once in registers."""
WARPS, MOST_WARPS = 4, 8
"""Of a program that holds little, and of any."""
THREADS = 32
"""Of a warp."""
HELD = 64
"""Words of a written-out product from which on a thread holds too many, beside everything else."""
CARRIED = 32
"""Words that a thread carries through a loop of products, from which on it has few registers for anything else."""
OPERANDS = 256
"""Words that a thread may hold of the operands of a dot."""
STAGED, MOST_STAGES = 56 * 1024, 4
"""Bytes of shared memory for the operands of dots in loops, which leaves some on every target; the most trips that are
under way at once."""


def is_written_out(op: DotOp) -> bool:
    """Whether a dot is printed as a product and a sum: where a side is too short for `tl.dot` to pay, and the products
    fit; for integers, which have none."""
    (m, k), n = shape_of(op.lhs), shape_of(op.rhs)[1]
    large = min(m, k, n) >= SMALLEST_DOT or m * k * n * _words(op) > LARGEST_PRODUCT
    return not (large and k >= SMALLEST_DOT and is_float(element_of(op.lhs)))


def has_tensor_cores(op: DotOp, precision: str) -> bool:
    """Whether NVIDIA's tensor cores compute a dot."""
    width = bit_width(element_of(op.lhs))
    return not is_written_out(op) and (width == 16 or (width == 32 and precision != "ieee"))


def warps_of(kernel: KernelOp, precision: str) -> int:
    """The warps of a program."""
    dots = [op for op in kernel.walk() if isinstance(op, DotOp)]
    loops = [op for op in kernel.walk() if isinstance(op, ForOp)] if dots else []
    warps = WARPS
    while warps < MOST_WARPS and (
        any(is_crowded(op, precision, warps) for op in dots)
        or any(_carried_words(op) > CARRIED * warps * THREADS for op in loops)
    ):
        warps *= 2
    return warps


def _carried_words(op: ForOp) -> int:
    """Words of 32 bits that a loop carries."""
    return sum(math.prod(shape_of(value)) * max(1, bit_width(element_of(value)) // 32) for value in op.carried)


def stages_of(kernel: KernelOp) -> int:
    """How many trips of the loops that hold a `tl.dot` have their operands in shared memory at once, most of them on
    the way there: as many as fit; one where there is no such loop."""
    sizes = [operand_bytes(op) for op in kernel.walk() if uses_shared_memory(op)]
    return max(2, min(MOST_STAGES, STAGED // max(sizes))) if sizes else 1


def uses_shared_memory(op: Operation) -> TypeGuard[DotOp]:
    """Whether an op is a dot that reads shared memory, trip after trip of a loop."""
    return isinstance(op, DotOp) and isinstance(op.parent_op(), ForOp) and not is_written_out(op)


def operand_bytes(op: DotOp) -> int:
    """Bytes of what a dot multiplies."""
    return sum(math.prod(shape_of(value)) * bit_width(element_of(value)) // 8 for value in (op.lhs, op.rhs))


def is_crowded(op: DotOp, precision: str, warps: int) -> bool:
    """Whether the threads of so many warps hold too much of a dot."""
    (m, k), n = shape_of(op.lhs), shape_of(op.rhs)[1]
    threads = warps * THREADS
    if is_written_out(op):
        return m * k * n * _words(op) >= HELD * threads
    if has_tensor_cores(op, precision):
        return False
    side = math.sqrt(max(1, m * n / threads))
    return 2 * side * k * _words(op) > OPERANDS


def _words(op: DotOp) -> int:
    """Words of 32 bits of an element of the result."""
    return max(1, bit_width(element_of(op.result)) // 32)
