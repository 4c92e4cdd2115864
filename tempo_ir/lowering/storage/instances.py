"""
What the checker sees of a loop program: each operation with its loops, guard, place in the order, and accesses.

Read from the program alone; nothing here is shared with the planner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.loop import AccessOperation, BodyOperation, ForOp, FreeOp, HostOp, IfOp, ProgramOp, YieldOp
from tempo_ir.dialects.sdg import ReduceOp, SdgOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.expr import TRUE, Cond, Index, Slice, Sym, compare, conj, negate

POINTWISE = frozenset(
    f"sdg.{name}"
    for name in (
        "neg abs sign exp log sqrt rsqrt tanh sigmoid erf sin cos floor ceil round not cast stop_gradient select "
        "add sub mul div pow floordiv mod minimum maximum and or xor lt le gt ge eq ne"
    ).split()
)
"""Ops whose result at an element depends on that element of the operands only, where shapes are equal."""


@dataclass(frozen=True)
class Instance:
    """An operation as it stands in a program, with its accesses. `time` numbers the loops round it and itself."""

    op: Operation
    loops: tuple[ForOp, ...]
    guard: Cond
    time: tuple[int, ...]
    reads: tuple[tuple[SSAValue, Index], ...] = ()
    writes: tuple[tuple[SSAValue, Index], ...] = ()
    arguments: tuple[SSAValue, ...] = ()
    results: tuple[SSAValue, ...] = ()
    body: tuple[object, ...] = field(default=(), hash=False)

    @property
    def iterators(self) -> tuple[str, ...]:
        """The names of the iterators round it."""
        return tuple(loop.iterator for loop in self.loops)

    def holds(self) -> Cond:
        """What holds when it runs."""
        inside: list[Cond] = [self.guard]
        for loop in self.loops:
            iterator = Sym(loop.iterator)
            inside += [compare("<=", loop.lower, iterator), compare("<", iterator, loop.upper)]
            if loop.step != 1:
                inside.append(compare("=", (iterator - loop.lower) % loop.step, 0))
        return conj(*inside)

    @property
    def pattern(self) -> tuple[object, ...]:
        """The loops and the guard, without the operations."""
        return tuple((loop.iterator, loop.range, loop.down) for loop in self.loops), self.guard


def instances(program: ProgramOp) -> tuple[Instance, ...]:
    """Everything that reads, writes or frees rows, in program order."""
    return tuple(_Walk().block(program.body.block, (), TRUE, ()))


@dataclass
class _Walk:
    count: int = 0

    def block(self, block: Block, loops: tuple[ForOp, ...], guard: Cond, time: tuple[int, ...]) -> Iterator[Instance]:
        for op in block.ops:
            self.count += 1
            now = (*time, self.count)
            match op:
                case ForOp():
                    yield from self.block(op.body.block, (*loops, op), guard, now)
                    self.count += 1
                    if op.until is not None:
                        yield Instance(op, (*loops, op), guard, (*now, self.count), (op.until,))
                case IfOp():
                    yield from self.block(op.then.block, loops, conj(guard, op.condition), time)
                    if op.otherwise is not None:
                        yield from self.block(op.otherwise.block, loops, conj(guard, negate(op.condition)), time)
                case AccessOperation():
                    reads = tuple((read.buffer, read.index) for read in op.reads)
                    writes = tuple((write.buffer, write.index) for write in op.writes)
                    if not isinstance(op, BodyOperation):
                        yield Instance(op, loops, guard, now, reads, writes)
                        continue
                    arguments = tuple(op.body.block.args)
                    yield Instance(op, loops, guard, now, reads, writes, arguments, op.yielded, _formula(op))
                case FreeOp():
                    yield Instance(op, loops, guard, now, ((op.buffer, op.index),))
                case _:
                    continue


def _formula(op: BodyOperation) -> tuple[object, ...]:
    """A body of at most one op, up to names; two longer ones are never equal."""
    inner = [inner for inner in op.body.block.ops if not isinstance(inner, YieldOp)]
    if len(inner) > 1:
        return (op,)
    return tuple((one.name, dict(one.properties), one.result_types) for one in inner)


REDUCTIONS = frozenset(f"sdg.{name}" for name in "sum prod max min mean".split())
"""Ops whose result at an element depends on the elements along some axes only."""


def reads_in_place(instance: Instance, number: int) -> bool:
    """
    Whether a kernel reads an argument only element by element, for results of its shape; of a window of rows, one
    element of each row for the element at that place of its one result. A host call is given copies.
    """
    op = instance.op
    if isinstance(op, HostOp):
        return True
    if not isinstance(op, BodyOperation):
        return False
    (_, index) = instance.reads[number]
    depth = sum(isinstance(entry, Slice) for entry in index)
    argument = op.body.block.args[number]
    shape = shape_of(argument.type)[depth:]
    if any(shape_of(value.type) != shape for value in op.yielded) or (depth > 0 and len(op.yielded) != 1):
        return False
    whole: dict[SSAValue, bool] = {argument: depth > 0}  # whether a value still has the axes of the window
    for inner in op.body.block.ops:
        reached = [whole[operand] for operand in inner.operands if operand in whole]
        if isinstance(inner, YieldOp):
            return not any(reached)
        if not reached:
            continue
        windowed = any(reached)
        if inner.name in REDUCTIONS and isinstance(inner, ReduceOp):
            if not windowed or sorted(inner.axes) != list(range(depth)):
                return False
            windowed = False
        elif not isinstance(inner, SdgOp) or inner.name not in POINTWISE:
            return False
        for result in inner.results:
            extents = shape_of(result.type)
            windowed = windowed or len(extents) == len(shape) + depth > len(shape)
            if extents != (shape_of(argument.type) if windowed else shape):
                return False
            whole[result] = windowed
    return True
