"""The cost model of kernels on a GPU: what one program does, how many run side by side, hence seconds; and which
numbers of warps and stages are worth a try.

How much of an axis a program holds is the choice of `kernels/blocks.py`, by target; how that is run, by so many warps
with so many trips of a loop under way, is a `Choice`. `tuning.py` has the choice that is printed, which follows from
what compiling shows. Where a device is at hand, `autotune=True` measures the candidates here, best estimates first.

    registers  words of 32 bits that a thread holds: what loops carry, and the most that one op reads and writes
    shared     bytes of the operands of dots that are under way
    resident   programs of a multiprocessor at once, by its registers, shared memory and threads
    seconds    the greater of bytes by bandwidth and operations by speed, longer where too few warps wait for memory

Bounds that only a call knows count as `NOMINAL`. The order of candidates is what matters: nothing was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tempo_ir.dialects.tile.attributes import TileType, bit_width, element_of, shape_of
from tempo_ir.dialects.tile.memory import GatherOp, LoadOp, WriteOp
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.dialects.tile.structure import ForOp, KernelOp
from tempo_ir.lowering.kernels.blocks import TARGETS
from tempo_ir.lowering.schedule.cost import MACHINES as MEMORIES
from tempo_ir.lowering.triton.addresses import constant_of
from tempo_ir.lowering.triton.machines import Machine
from tempo_ir.lowering.triton.tuning import (
    has_tensor_cores,
    is_crowded,
    operand_bytes,
    stages_of,
    uses_shared_memory,
    warps_of,
)

NOMINAL = 16
"""Trips of a loop, and programs by a multiprocessor, where only a call knows."""
BESIDE = 24
"""Registers of a thread for addresses and counters."""
MOST_REGISTERS = 255
SPILL = 4.0
"""How much longer a program takes that has not enough of them."""
HIDING = 8
"""Warps of a multiprocessor that keep its memory busy."""
MOST_RESIDENT = 16
MOST_CANDIDATES = 6
WARPS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, order=True)
class Choice:
    """How programs of a kernel are run."""

    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the model says of a choice: of a program bytes moved and operations, of a thread registers, of a program
    bytes of shared memory, of a multiprocessor programs at once; of a launch seconds."""

    bytes: float
    operations: float
    registers: float
    shared: int
    resident: int
    seconds: float


@dataclass
class _Work:
    """What one program does."""

    bytes: float = 0.0
    operations: float = 0.0
    tensor_operations: float = 0.0
    words: float = 0.0


def estimate(kernel: KernelOp, machine: Machine, choice: Choice, precision: str) -> Estimate:
    """What a choice costs."""
    work = _Work()
    _add(work, kernel.body.block, 1.0, 0.0, precision)
    threads = choice.warps * machine.warp
    registers = BESIDE + work.words / threads
    shared = _shared(kernel, choice)
    processors = TARGETS[machine.blocks].multiprocessors
    by_registers = machine.registers / (min(registers, MOST_REGISTERS) * threads)
    by_memory = machine.shared / shared if shared else MOST_RESIDENT
    resident = max(1, int(min(by_registers, by_memory, machine.threads / threads, MOST_RESIDENT)))
    programs = math.prod(extent if extent >= 0 else NOMINAL * processors for extent in kernel.grid.data)
    at_once = min(resident, math.ceil(programs / processors))
    waves = math.ceil(programs / (processors * at_once))
    waiting = max(1.0, HIDING / (at_once * choice.warps)) / min(choice.stages, 2) ** 0.5
    moving = at_once * work.bytes * processors / MEMORIES[machine.blocks].bandwidth * waiting
    scalar = work.operations / machine.operations * max(1.0, 4 / (at_once * choice.warps))
    computing = at_once * processors * (scalar + work.tensor_operations / machine.tensor_operations)
    seconds = waves * max(moving, computing) * (SPILL if registers > MOST_REGISTERS else 1.0)
    return Estimate(work.bytes, work.operations + work.tensor_operations, registers, shared, resident, seconds)


def candidates(kernel: KernelOp, machine: Machine, precision: str) -> tuple[Choice, ...]:
    """The choices worth a try: first that which is printed, then those of the best estimates that fit the machine and,
    by the rule of `tuning.py`, the registers of their threads; there may be none beside the first.

    Kernels with a `tl.dot` in a loop have stages to choose from; in all the sums of a program are split among more or
    fewer threads, so that results differ by rounding, and by nothing else.
    """
    dots = [op for op in kernel.walk() if isinstance(op, DotOp)]
    printed = Choice(warps_of(kernel, precision), stages_of(kernel))
    stages = range(1, printed.stages + 2) if printed.stages > 1 else (1,)
    rated: list[tuple[float, Choice]] = []
    for choice in (Choice(warps, count) for warps in WARPS for count in stages):
        if choice == printed or any(is_crowded(op, precision, choice.warps) for op in dots):
            continue
        found = estimate(kernel, machine, choice, precision)
        if found.shared <= machine.shared and found.registers <= MOST_REGISTERS:
            rated.append((found.seconds, choice))
    return (printed, *(choice for _, choice in sorted(rated)[: MOST_CANDIDATES - 1]))


def _add(work: _Work, block: Block, times: float, carried: float, precision: str) -> None:
    """Add what the ops of a block do, which runs so many times while `carried` words are held."""
    for op in block.ops:
        own = sum(map(_words, (*op.operands, *op.results)))
        work.words = max(work.words, carried + own)
        match op:
            case ForOp():
                held = carried + sum(map(_words, op.carried))
                _add(work, op.body.block, times * _trips(op), held, precision)
            case LoadOp() | GatherOp():
                work.bytes += times * _bytes(op.results[0].type)
            case WriteOp():
                work.bytes += times * max((_bytes(value.type) for value in op.operands), default=0)
            case DotOp():
                (m, k), n = shape_of(op.lhs), shape_of(op.rhs)[1]
                if has_tensor_cores(op, precision):
                    work.tensor_operations += times * 2 * m * k * n
                else:
                    work.operations += times * 2 * m * k * n
            case _:
                work.operations += times * max((math.prod(shape_of(v)) for v in op.results if _is_tile(v)), default=1)
                _add_inner(work, op, times, carried, precision)


def _add_inner(work: _Work, op: Operation, times: float, carried: float, precision: str) -> None:
    for region in op.regions:
        for block in region.blocks:
            _add(work, block, times, carried, precision)


def _trips(op: ForOp) -> float:
    low, high = constant_of(op.low), constant_of(op.high)
    return NOMINAL if low is None or high is None else max(0, math.ceil((high - low) / op.step_size))


def _shared(kernel: KernelOp, choice: Choice) -> int:
    """Bytes of shared memory, by the dot that has most: its operands, once for each trip that is on the way."""
    sizes = [operand_bytes(op) * max(1, choice.stages - 1) for op in kernel.walk() if uses_shared_memory(op)]
    return max(sizes, default=0)


def _is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TileType)


def _bytes(kind: Attribute) -> float:
    return math.prod(shape_of(kind)) * bit_width(element_of(kind)) / 8 if isinstance(kind, TileType) else 8.0


def _words(value: SSAValue) -> float:
    """Words of 32 bits of a tile."""
    return math.prod(shape_of(value)) * max(1.0, bit_width(element_of(value)) / 32) if _is_tile(value) else 0.0
