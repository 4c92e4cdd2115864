"""Who reads and writes which rows of a loop program, under which loops and guards, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.loop import AccessOperation, BodyOperation, ForOp, IfOp, LaunchOp, ProgramOp
from tempo_ir.index.expr import (
    TRUE,
    And,
    Compare,
    Cond,
    Const,
    Expr,
    Index,
    Slice,
    Sym,
    compare,
    conj,
    free_symbols,
    negate,
)


@dataclass(frozen=True)
class Frame:
    """The loops round an operation, outermost first, and the conjunction of the guards."""

    loops: tuple[ForOp, ...] = ()
    guard: Cond = TRUE

    def inside(self, loop: ForOp) -> Frame:
        """The frame of the body of a loop."""
        return Frame((*self.loops, loop), self.guard)

    def where(self, condition: Cond) -> Frame:
        """The frame of what a guard lets run."""
        return Frame(self.loops, conj(self.guard, condition))

    @cached_property
    def iterators(self) -> tuple[str, ...]:
        """The names of the iterators, outermost first."""
        return tuple(loop.iterator for loop in self.loops)

    def condition(self) -> Cond:
        """What holds of the iterators when the operation runs."""
        return conj(*(inside for loop in self.loops for inside in iterations(loop)), self.guard)

    def only_values(self) -> dict[str, Expr]:
        """What a guard lets have one value only, over the bounds: `t = 0`, `t >= T - 1` below `T`, a bound `T = 0`."""
        found: dict[str, Expr] = {}
        loops = {loop.iterator: loop for loop in self.loops}
        for condition in self.guard.args if isinstance(self.guard, And) else (self.guard,):
            match condition:
                case Compare("=", Sym(name), value) if name in loops or isinstance(value, Const):
                    found[name] = value
                case Compare(">=", Sym(name), value) if name in loops and loops[name].upper == value + 1:
                    found[name] = value
                case Compare("<=", Sym(name), value) if name in loops and loops[name].lower == value:
                    found[name] = value
                case Compare("<", Sym(name), value) if name in loops and loops[name].lower == value - 1:
                    found[name] = value - 1
                case _:
                    continue
        return {name: value for name, value in found.items() if not free_symbols(value) & loops.keys()}

    @cached_property
    def pattern(self) -> tuple[object, ...]:
        """What the frame says, without which operations it consists of: equal layers have equal patterns."""
        return tuple((loop.iterator, loop.range, loop.down) for loop in self.loops), self.guard


def iterations(loop: ForOp) -> tuple[Cond, ...]:
    """What holds of the iterator in each iteration."""
    iterator = Sym(loop.iterator)
    inside = compare("<=", loop.lower, iterator), compare("<", iterator, loop.upper)
    if loop.step == 1:
        return inside
    return *inside, compare("=", (iterator - loop.lower) % loop.step, 0)


@dataclass(frozen=True, slots=True)
class Use:
    """
    An operation that reads or writes rows of a buffer; `number` is the place among its reads or its writes.

    `order` holds the number in program order of each loop round it, and last its own.
    """

    op: AccessOperation | ForOp
    writes: bool
    number: int
    buffer: SSAValue
    index: Index
    frame: Frame
    order: tuple[int, ...]

    @property
    def slices(self) -> bool:
        """Whether more than one row may be accessed."""
        return any(isinstance(entry, Slice) for entry in self.index)


Numbers: TypeAlias = Mapping[Operation, int]
"""The place of each operation in program order. They are even, so that a place before each is free."""


def program_uses(program: ProgramOp) -> tuple[dict[SSAValue, list[Use]], Numbers]:
    """The uses of every buffer, in program order, and that order; of one operation what it reads comes first."""
    reader = _Reader()
    found: dict[SSAValue, list[Use]] = {}
    for use in reader.block(program.body.block, Frame(), ()):
        found.setdefault(use.buffer, []).append(use)
    return found, reader.numbers


@dataclass(slots=True)
class _Reader:
    """Walks a program, numbering its operations."""

    count: int = 0
    numbers: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def block(self, block: Block, frame: Frame, outer: tuple[int, ...]) -> Iterator[Use]:
        for op in block.ops:
            self.count += 2
            self.numbers[op] = self.count
            here = (*outer, self.count)
            match op:
                case ForOp():
                    inside = frame.inside(op)
                    yield from self.block(op.body.block, inside, here)
                    self.count += 2
                    if op.until is not None:
                        yield Use(op, False, 0, *op.until, inside, (*here, self.count))
                case IfOp():
                    yield from self.block(op.then.block, frame.where(op.condition), outer)
                    if op.otherwise is not None:
                        yield from self.block(op.otherwise.block, frame.where(negate(op.condition)), outer)
                case AccessOperation():
                    for number, read in enumerate(op.reads):
                        yield Use(op, False, number, read.buffer, read.index, frame, here)
                    for number, write in enumerate(op.writes):
                        yield Use(op, True, number, write.buffer, write.index, frame, here)
                case _:
                    continue


def is_lowered(program: ProgramOp) -> bool:
    """Whether kernels are launched already, so that what they read and write is not to be seen."""
    return any(isinstance(op, LaunchOp) for op in program.operations())


def copied_argument(use: Use) -> int | None:
    """Of a write that writes just what its operation reads: the number of that read."""
    op = use.op
    if not isinstance(op, BodyOperation) or use.slices:
        return None
    value = op.yielded[use.number]
    if value.owner is not op.body.block or op.in_types.data[value.index] != op.out_types.data[use.number]:  # pyright: ignore
        return None
    return op.body.block.args.index(value)
