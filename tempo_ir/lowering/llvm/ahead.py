"""
What the next iteration of a loop reads is asked for while the products of this one are computed, and long rows that a
launch reads before anything is computed of them.

Rows that a loop takes block by block are a few pages each, far apart where programs take turns: the processor foresees
little of them. Products leave memory idle, so that each block of registers of one asks for some of the lines.
Measured, 64 rows of two arrays of 64 columns in each block, three products: 1.24 times as fast from memory, no slower
from the caches.

A kernel that a program's loop launches for the row of each step, and that takes many instructions for a vector, is done
with a page before the processor foresees anything, and looks no more than two vectors ahead. Measured, the gates of an
LSTM of one sequence 256 wide, whose inputs of all steps lie in the third cache: 0.8 us for 1.5.
What a launch reads and writes of the next rows is asked for when it is done, into the second cache, as the weights of
the product that follows fill the first. Measured, GRU and LSTM of one sequence 256 wide: 0.28 us a step for 0.48, and
0.6 for 0.8; no slower from the caches. Asked for before the launch's own rows are read, it delays these.

Blocks of rows that products of the next launch read at another place are asked for beside those of this launch, into
the second cache. Measured, LSTM and GRU of 64 sequences 64 wide: 0.9 to 0.97 of the time, with gradients 0.94 to 0.96.

Weights that lie along what is contracted, of which a block of registers reads a number for each multiplication of rows
that are lanes, are as many streams as the block has columns, each done before the processor foresees much of it: beside
a block the rows of the next one are asked for, a line or two at a time. Measured, 64 rows, 1 MB of weights that come
from the third cache: LSTM and GRU 256 wide 0.94 and 0.96 of the time, with gradients 0.97. A Llama of 12 layers 768
wide that decodes 16 sequences, whose weights come from memory: 0.8 of the time.

A product of many rows is written to lines that are not in the first cache, which a store would wait for: they are asked
for before it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile.attributes import DYNAMIC, IntegersAttr, shape_of
from tempo_ir.dialects.tile.memory import LoadOp, StoreOp
from tempo_ir.dialects.tile.shape import ConstOp, DotOp, TransOp
from tempo_ir.dialects.tile.structure import ADVANCES, ForOp, KernelOp
from tempo_ir.lowering.llvm import access, memory
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear, materialize, product
from tempo_ir.lowering.llvm.evaluate import Evaluator, Point
from tempo_ir.lowering.llvm.invariant import program_axes
from tempo_ir.lowering.llvm.plan import HEAVY
from tempo_ir.lowering.llvm.text import Register

PRODUCTS = 1 << 16
"""Multiplications of a dot from which on memory has time beside it."""

LONG_DEPTH, LONG_ROWS = 32, 4
"""From how many multiplications of a vector on, of how many rows at once, a product takes longer than the memory that
it is written to: its lines are asked for before (measured: 0.97 of the time where these come from the third cache). Of
fewer rows to read the right operand takes the time."""

LINES = 4
"""Lines of a block from which on they are asked for."""

MOST_LINES = 64
"""How many are asked for beside a block of registers at most: of a product whose result fits the registers each block
would ask for all there is, thousands of lines, which fit no near cache."""

ROW_LINES = range(8, 33)
"""Lines of a row that a launch asks for."""

NEAR_WEIGHTS = 1 << 18
"""Bytes of weights that stay near from launch to launch, and are not asked for."""

BLOCK_LINES = range(33, 257)
"""Lines of a block of rows that a product asks for; more would push out what is needed before."""


@dataclass(frozen=True)
class BlockOfRegisters:
    """What a sink computes at once: where it begins, its steps, and the shape of the whole."""

    starts: Sequence[Linear]
    steps: Sequence[int]
    shape: Sequence[int]

    def share(self, evaluator: Evaluator, lines: int) -> tuple[Linear, int]:
        """Of so many lines the first one for this block, and how many are."""
        counts = [-(-extent // step) for extent, step in zip(self.shape, self.steps, strict=True)]
        each = -(-lines // prod(counts))
        first, size = ZERO, each
        for start, step, count in zip(self.starts, self.steps, counts, strict=True):
            number = start.times(size // step) if size % step == 0 else _quotient(evaluator, start, step).times(size)
            first, size = first + number, size * count
        return first, each


@dataclass(frozen=True)
class Ahead:
    """The loads of a loop's body that are asked for, by the dot beside which they are; `counter` grows by `step`."""

    counter: Register
    step: int
    loads: Mapping[Operation, Sequence[LoadOp]]

    @staticmethod
    def of(op: ForOp, counter: Register) -> Ahead:
        """What the products of a loop ask for in turn, each of what it knows the place of; nothing where none of them
        is large."""
        body = list(op.body.block.ops)
        order: dict[Operation | Block, int] = {inner: number for number, inner in enumerate(body)}
        dots = [inner for inner in body if isinstance(inner, DotOp) and _multiplications(inner) >= PRODUCTS]
        loads: dict[Operation, list[LoadOp]] = {dot: [] for dot in dots}
        for number, load in enumerate(inner for inner in body if isinstance(inner, LoadOp) and _lines(inner) >= LINES):
            scalars = (*load.indices, *load.view_op.operands)
            placed = max((order.get(scalar.owner, -1) for scalar in scalars), default=-1)
            if after := [dot for dot in dots if order[dot] > placed]:
                loads[after[number % len(after)]].append(load)
        return Ahead(counter, op.step_size, loads)

    def ask(self, evaluator: Evaluator, dots: Sequence[DotOp], block: BlockOfRegisters) -> None:
        """Ask for what falls to a block of registers with these dots."""
        for load in [load for dot in dots for load in self.loads.get(dot, ())]:
            now = _start(evaluator, access.describe(evaluator, load))
            following = now.substitute(self.counter, linear(self.counter) + self.step)
            if following != now:
                _ask_for_share(evaluator, load, following, block, near=True)


@dataclass(frozen=True)
class NextLaunch:
    """The blocks of rows that products of the next launch read at other places than those of this one, which are asked
    for beside these products: a launch is done with what it reads first before the processor foresees the rest."""

    moved: Mapping[LoadOp, int]
    """How much further each block lies then."""
    programs: Mapping[LoadOp, Sequence[tuple[Register, int]]]
    """The programs that share a block, and how many they are."""

    @staticmethod
    def of(kernel: KernelOp, programs: Mapping[int, Register]) -> NextLaunch:
        """What is known of a kernel; nothing where a loop launches it with the same scalars, or not at all."""
        advances, grid = advances_of(kernel), kernel.grid.data
        moved: dict[LoadOp, int] = {}
        sharing: dict[LoadOp, Sequence[tuple[Register, int]]] = {}
        for op in kernel.body.block.ops if advances else ():
            if not isinstance(op, LoadOp) or (offset := op.view_op.offset) is None or _lines(op) not in BLOCK_LINES:
                continue
            shared = [axis for axis in programs if axis not in program_axes(kernel).get(op, ())]
            if (by := advances.get(offset, 0)) and all(grid[axis] != DYNAMIC for axis in shared):
                moved[op], sharing[op] = by, [(programs[axis], grid[axis]) for axis in shared]
        return NextLaunch(moved, sharing)

    def ask(self, evaluator: Evaluator, dots: Sequence[DotOp], block: BlockOfRegisters) -> None:
        """Ask for what falls to a block of registers with these dots."""
        for dot in [dot for dot in dots if _multiplications(dot) >= PRODUCTS] if self.moved else ():
            operands = map(access.loaded_from, (dot.lhs, dot.rhs))
            for load in [op for op in operands if isinstance(op, LoadOp) and op in self.moved]:
                programs = self.programs[load]
                whole = BlockOfRegisters(
                    [*block.starts, *(linear(program) for program, _ in programs)],
                    [*block.steps, *(1 for _ in programs)],
                    [*block.shape, *(count for _, count in programs)],
                )
                following = _start(evaluator, access.describe(evaluator, load)) + self.moved[load]
                _ask_for_share(evaluator, load, following, whole, near=False)


@dataclass(frozen=True)
class NextRows:
    """The rows of weights that the next block of registers of a product reads, one piece of memory: `columns` of them
    from `start` on."""

    buffer: memory.Buffer
    start: Linear
    columns: int

    @staticmethod
    def of(evaluator: Evaluator, op: DotOp, points: Sequence[Point]) -> NextRows | None:
        """Those of a block with the lanes on the rows of the left operand; None where what it reads of the right one
        lies near, or is in pieces."""
        turned = op.rhs.owner
        if not points[0][0].lane or op.rhs in evaluator.environment or not isinstance(turned, TransOp):
            return None
        load = turned.value.owner
        if not isinstance(load, LoadOp) or turned.value in evaluator.environment:
            return None
        if evaluator.backwards is not None or not _lines(load) or access.whole_bytes(op.rhs) <= NEAR_WEIGHTS:
            return None
        columns = list(dict.fromkeys(column.position for _, column in points))
        described, depth = access.describe(evaluator, load), shape_of(op.rhs)[0]
        start = _start(evaluator, described) + (columns[0] + len(columns)).times(depth)
        return NextRows(described.buffer, start, len(columns))

    def ask(self, first: Linear, count: int) -> None:
        """Ask for what falls to `count` positions of what is contracted, from the first one on."""
        for n in range(0, count * self.columns, memory.LINE // self.buffer.element.size):
            memory.prefetch(self.buffer, self.start + first.times(self.columns) + n)


def _ask_for_share(evaluator: Evaluator, load: LoadOp, start: Linear, block: BlockOfRegisters, near: bool) -> None:
    """Ask for what falls to a block of registers of the lines from a place on."""
    buffer = access.describe(evaluator, load).buffer
    first, count = block.share(evaluator, _lines(load))
    for n in range(count if count <= MOST_LINES else 0):
        memory.prefetch(buffer, start + (first + n).times(memory.LINE // buffer.element.size), near=near)


def ask_first(evaluator: Evaluator, kernel: KernelOp) -> None:
    """Ask for the rows whose place a launch gives, where a vector of them takes many instructions."""
    if any(isinstance(op, HEAVY) for op in kernel.walk()):
        for op in [op for op in _rows_of_launch(kernel) if isinstance(op, LoadOp)]:
            _ask_for_row(evaluator, op, 0)


def ask_next(evaluator: Evaluator, kernel: KernelOp) -> None:
    """Ask for the rows that the next launch reads and writes, as far as they are known."""
    advances = advances_of(kernel)
    for op in _rows_of_launch(kernel):
        if (offset := op.view_op.offset) is not None and (advance := advances.get(offset, 0)):
            _ask_for_row(evaluator, op, advance)


def _rows_of_launch(kernel: KernelOp) -> list[LoadOp | StoreOp]:
    """The accesses of rows, neither short nor long, whose place the scalars of a launch give."""
    found: list[LoadOp | StoreOp] = []
    for op in ops_of(kernel.body.block):
        if isinstance(op, LoadOp | StoreOp) and _lines(op) in ROW_LINES:
            scalars = (*op.indices, *op.view_op.operands)
            known = all(isinstance(scalar, BlockArgument) or isinstance(scalar.owner, ConstOp) for scalar in scalars)
            found += [op] if known and isinstance(op.view_op.offset, BlockArgument) else []
    return found


def _ask_for_row(evaluator: Evaluator, op: LoadOp | StoreOp, advance: int) -> None:
    """Ask for the lines of a row: into the nearest cache, or, of the row that lies so much further, the second one."""
    described = access.describe(evaluator, op)
    start, line = _start(evaluator, described) + advance, memory.LINE // described.buffer.element.size
    for n in range(_lines(op)):
        memory.prefetch(described.buffer, start + n * line, near=not advance, written=isinstance(op, StoreOp))


def advances_of(kernel: KernelOp) -> Mapping[SSAValue, int]:
    """By how much scalars grow from launch to launch, as far as that is known."""
    numbers = kernel.attributes.get(ADVANCES)
    scalars = [argument for argument in kernel.body.block.args if isinstance(argument.type, IndexType)]
    return dict(zip(scalars, numbers.data, strict=False)) if isinstance(numbers, IntegersAttr) else {}


def is_long(dots: Sequence[DotOp], rows: int) -> bool:
    """Do the products of a block of registers take so long that what it is written to is there when they are done?"""
    return rows >= LONG_ROWS and any(shape_of(dot.lhs)[1] >= LONG_DEPTH for dot in dots)


def _start(evaluator: Evaluator, described: access.Access) -> Linear:
    """Where a block of memory begins."""
    start = described.offset
    for axis in described.axes:
        start = start + product(evaluator.text, axis.start, axis.stride)
    return start


def _quotient(evaluator: Evaluator, start: Linear, step: int) -> Linear:
    """start / step, of a multiple of it."""
    if start.is_constant:
        return Linear(start.constant // step)
    return linear(evaluator.text.binary("udiv", materialize(evaluator.text, start), step))


def _multiplications(dot: DotOp) -> int:
    return prod(shape_of(dot.lhs)) * shape_of(dot.rhs)[1]


def _lines(op: LoadOp | StoreOp) -> int:
    """The lines of a block that lies in one piece; 0 of another."""
    strides, pitch = op.view_type.strides.data, 1
    for axis in reversed(op.tile_axes):
        if strides[axis] != pitch:
            return 0
        pitch *= op.block.data[axis]
    return pitch * memory.element_layout(op.view_type.element).size // memory.LINE
