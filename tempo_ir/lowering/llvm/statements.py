"""The ops of a block, in order: stores and loops are emitted, values in scratch filled, the rest waits to be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.dialects.tile.memory import AtomicAddOp, IndexedWriteOp, ScatterAddOp, StoreOp, ViewOp, WriteOp
from tempo_ir.dialects.tile.shape import DotOp, ScanOp
from tempo_ir.dialects.tile.structure import ForOp, IfOp, ProgramIdOp, YieldOp
from tempo_ir.lowering.llvm import access, memory
from tempo_ir.lowering.llvm.access import Access
from tempo_ir.lowering.llvm.address import Linear, linear
from tempo_ir.lowering.llvm.errors import UnsupportedKernel
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point, for_each_block, is_index
from tempo_ir.lowering.llvm.indices import index_value
from tempo_ir.lowering.llvm.lanes import NEVER, Costs
from tempo_ir.lowering.llvm.loops import lower_loop
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.plan import Plan, Storage
from tempo_ir.lowering.llvm.scan import scan
from tempo_ir.lowering.llvm.scratch import Arena, Scratch
from tempo_ir.lowering.llvm.shuffle import store_transposed, transpose
from tempo_ir.lowering.llvm.sink import Write, dots_of, fill, registers_of, sink, vectors_at_once
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.lowering.llvm.text import Register


@dataclass(frozen=True)
class Square:
    """How a square of registers lies in memory: `start` is the address of its first point, `pitch` the elements from
    one of its rows to the next."""

    start: Callable[[Point], Register]
    pitch: int


@dataclass
class Lowering:
    """
    The lowering of one version of a kernel. `programs` are the ids of the program that is emitted, by axis of the grid;
    `concurrent` says that several programs may run at the same time.
    """

    evaluator: Evaluator
    plan: Plan
    target: Target
    arena: Arena
    programs: Mapping[int, Register]
    concurrent: bool

    def costs(self) -> Costs:
        """Cost estimates in the present environment."""
        return Costs(self.plan, self.evaluator.environment, self.target.lanes)

    def run(self, ops: Iterable[Operation]) -> None:
        """Emit ops of a block, in order."""
        for op in ops:
            self.evaluator.frames = [{}]
            self.statement(op)

    def statement(self, op: Operation) -> None:
        """Emit one op."""
        match op:
            case WriteOp() | IndexedWriteOp():
                self.write(op)
            case ForOp():
                lower_loop(self, op)
            case IfOp():
                self.branch(op)
            case ProgramIdOp():
                self.evaluator.environment[op.result] = linear(self.programs[op.axis.value.data])
            case YieldOp() | ViewOp():
                pass
            case _:
                for value in op.results:
                    if value.first_use is not None:
                        self.define(op, value)

    def define(self, op: Operation, value: SSAValue) -> None:
        """Compute a scalar now, a tile in scratch too; leave an inline tile."""
        environment = self.evaluator.environment
        # the body of a loop may be emitted twice: what the first time left is not the value now
        environment.pop(value, None)
        if is_index(value):
            environment[value] = index_value(self.evaluator, value)
        elif not shape_of(value):
            environment[value] = self.evaluator.compute(value, [()])[0]
        elif not self.plan.is_inline(value):
            environment[value] = self.keep(op, value)

    def branch(self, op: IfOp) -> None:
        """`tile.if`"""
        text = self.evaluator.text
        condition = self.evaluator.scalar(op.condition)
        lines: list[list[str]] = []
        for region in (op.then, op.otherwise):
            text.open()
            if region is not None:
                self.run(region.block.ops)
            lines.append(text.close())
        text.branch(condition, *lines)

    # -- values in scratch

    def keep(self, op: Operation, value: SSAValue) -> Scratch:
        """Fill scratch with a tile."""
        shape, kind = shape_of(value), element_layout(element_of(value)).kind
        if isinstance(op, ScanOp):
            return self.keep_scan(op, kind)
        lanes, storage = self.target.lanes, self.plan.of(value)
        lane = {Storage.ROWS: 0, Storage.COLUMNS: 1}.get(storage)
        if lane is not None and shape[lane] >= lanes:
            along = [self.plan.runs_along(value, axis, computed=True) for axis in (lane, 1 - lane)]
            turned = along == [False, True] and shape[1 - lane] >= lanes and kind != "i1"
            stored = lane == 1 and all(isinstance(use.operation, StoreOp) for use in value.uses)
            least = lanes if stored and self.evaluator.near else 2 * lanes
            if turned and shape[1 - lane] >= least and dots_of(self.evaluator, value):
                self.evaluator.environment[value] = known = self.keep_along(value, kind, 1 - lane)
                if stored:
                    return known  # it is turned round on its way to memory
            panel = self.panel(value) if lane == 1 else None
            scratch = self.arena.allocate(kind, shape, lane, padded=True, panel=panel)
            if turned:
                pitch = scratch.panel or scratch.strides[1 - lane]
                square = Square(lambda point: scratch.buffer.at(scratch.offset(point)), pitch)
                self.transposed(value, lane, scratch.panel or lanes, scratch.write, square)
            else:
                fill(self.evaluator, value, scratch, lane, self.target)
            return scratch
        lane = self.costs().best_lane(value)
        scratch = self.arena.allocate(kind, shape, len(shape) - 1 if lane is None else lane, padded=lane is not None)
        fill(self.evaluator, value, scratch, lane, self.target)
        return scratch

    def panel(self, value: SSAValue) -> int | None:
        """The columns of a panel of a right operand: those of a block of registers; None where they are no parts of all
        columns."""
        lanes, columns = self.target.lanes, shape_of(value)[1]
        rows = max(
            (shape_of(use.operation.lhs)[0] for use in value.uses if isinstance(use.operation, DotOp)), default=1
        )
        vectors = min(4, vectors_at_once(rows, columns, lanes, registers_of(self.target, [value])))
        return vectors * lanes if vectors in (2, 4) and columns % (vectors * lanes) == 0 else None

    def keep_along(self, value: SSAValue, kind: str, lane: int) -> Scratch:
        """Fill scratch with the lanes on an axis: products that are turned round afterwards are computed in blocks that
        multiply what they load more often than squares do (measured: 1.1 to 1.2 times as fast). Of rows of one vector
        they do not, but stand in one loop (measured, 16 rows of weights that are near, stored turned round: no slower,
        half of the text; of weights from memory squares ask for the next ones)."""
        scratch = self.arena.allocate(kind, shape_of(value), lane, padded=True)
        fill(self.evaluator, value, scratch, lane, self.target)
        return scratch

    def keep_scan(self, op: ScanOp, kind: str) -> Scratch:
        """Fill scratch with a scan, the lanes on the other axis if it is long enough, on its own if it is the only
        one."""
        shape = shape_of(op.value)
        lane = 0 if len(shape) == 1 and shape[0] >= self.target.lanes and kind != "i1" else None
        if len(shape) == 2 and shape[1 - op.axis_number] >= self.target.lanes // 2:
            lane = 1 - op.axis_number
        contiguous = len(shape) - 1 if lane is None else lane
        scratch = self.arena.allocate(kind, shape, contiguous, padded=lane is not None)
        scan(self.evaluator, op, scratch, lane)
        return scratch

    def transposed(self, value: SSAValue, lane: int, step: int, write: Write, whole: Square | None) -> None:
        """
        Read squares across `lane`, transpose them in registers and write them along it, `whole` ones at once where that
        is given, `step` positions of it at a time. The order is none that the processor foresees: the lines of the next
        squares are asked for (measured: 1.2 times as fast from memory).
        """
        evaluator, lanes, shape = self.evaluator, self.target.lanes, shape_of(value)

        def point(along: At, across: At) -> Point:
            return (across, along) if lane == 1 else (along, across)

        def square(start: Linear, count: int, across: Linear, across_count: int) -> None:
            outside, evaluator.frames = evaluator.frames, [{}]
            vector = At(across, lane=True)
            points = [point(At(start + min(i, count - 1)), vector) for i in range(lanes)]
            ahead = [point(At(start + i + step), vector) for i in range(count)]
            access.prefetch(evaluator, value, ahead)
            rows = [evaluator.text.broadcast(x) for x in evaluator.compute(value, points)]
            if whole is not None and across_count == lanes:
                store_transposed(rows, whole.start(point(At(start, lane=True), At(across))), whole.pitch)
            else:
                for i, register in enumerate(transpose(rows)[:across_count]):
                    write(point(At(start, lane=True), At(across + i)), register)
            evaluator.frames = outside

        def block(start: Linear, count: int) -> None:
            def across_block(across: Linear, across_count: int) -> None:
                for i in range(0, count, lanes):
                    square(start + i, min(lanes, count - i), across, across_count)

            for_each_block(evaluator, shape[1 - lane], lanes, across_block)

        for_each_block(evaluator, shape[lane], step, block)

    # -- writes

    def write(self, op: WriteOp | IndexedWriteOp) -> None:
        """Compute the value of a store block by block and write it; of stores that are written together, all with the
        last one."""
        evaluator, together = self.evaluator, self.plan.written_with(op)
        if op is not together[-1]:
            return
        targets = [access.describe(evaluator, store) for store in together]
        values, shape = [store.value for store in together], shape_of(op.value)
        adds = isinstance(op, (AtomicAddOp, ScatterAddOp))
        concurrent = self.concurrent and adds
        if concurrent and not memory.can_add_atomically(targets[-1].buffer.element):
            raise UnsupportedKernel(
                op, f"adding to {element_of(op.value)} in memory from several programs; use f32 memory"
            )

        def writer(target: Access) -> Write:
            if adds:
                return lambda point, register: access.add(evaluator, target, point, register, concurrent)
            return lambda point, register: access.store(evaluator, target, point, register)

        writes = [writer(target) for target in targets]
        if not shape:
            writes[-1]((), evaluator.scalar(op.value))
            return

        def ask(points: Sequence[Point]) -> None:
            access.prefetch_written(evaluator, targets[-1], points)

        if len(together) == 1 and not adds and self.is_turned(op.value, targets[-1]):
            whole = self.square_of(targets[-1], shape)
            self.transposed(op.value, 1, 2 * self.target.lanes, writes[-1], whole)
            return
        costs = self.costs()
        written = [self.write_cost(target, shape, adds, concurrent) for target in targets]

        def others(lane: int | None) -> float:
            return sum(costs.cost(value, lane, ignore_plan=True) for value in values[:-1])

        lane = costs.best_lane(op.value, lambda lane: others(lane) + sum(cost(lane) for cost in written))
        sink(evaluator, values, lane, self.target, writes, None if adds else ask)

    def is_turned(self, value: SSAValue, target: Access) -> bool:
        """Does a tile in scratch run along axis 0, and the memory that it is stored to along axis 1?"""
        known, shape = self.evaluator.environment.get(value), shape_of(value)
        if not isinstance(known, Scratch) or len(shape) != 2 or min(shape) < self.target.lanes:
            return False
        return known.lane == 0 and target.lane_strides[1] == 1 and known.buffer.element.kind != "i1"

    def square_of(self, target: Access, shape: tuple[int, ...]) -> Square | None:
        """How squares of registers lie in the memory of a tile that runs along axis 1; None where not all are inside of
        it, or are written as they are."""
        pitch = access.whole_pitch(target, 0)
        if pitch is None or shape[1] % self.target.lanes:
            return None
        return Square(lambda point: access.address(self.evaluator, target, point), pitch)

    def write_cost(
        self, target: Access, shape: tuple[int, ...], adds: bool, concurrent: bool
    ) -> Callable[[int | None], float]:
        """Instructions of the writes, by the lanes' axis."""
        lanes, strides = self.target.lanes, target.lane_strides

        def cost(lane: int | None) -> float:
            if lane is None:
                return float(prod(shape))
            stride = strides[lane]
            if stride == 1:
                return NEVER if concurrent else prod(shape) / min(shape[lane], lanes)
            return NEVER if adds else prod(shape) * 1.5

        return cost
