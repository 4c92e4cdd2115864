"""What the proof of folds asks isl: of the points at which an operation runs, and of the rows written before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from tempo_ir.index.domain import Space
from tempo_ir.index.expr import TRUE, And, Cond, Expr, Index, Sym, compare, conj, disj, negate, substitute
from tempo_ir.index.isl import (
    NotAffine,
    Writer,
    counterexample,
    encode,
    entry_text,
    params_set,
    read_set,
    tuple_text,
)
from tempo_ir.lowering.instances import Instance, common_loops


@dataclass(frozen=True)
class Points:
    """The points of some names at which a condition holds."""

    space: Space
    names: tuple[str, ...]
    held: Cond
    answers: dict[tuple[object, ...], str | None] = field(
        default_factory=dict[tuple[object, ...], str | None], compare=False
    )
    """What was asked already, of other points too."""

    def within(self, name: str, first: Expr | int, end: Expr) -> Points:
        """With one more name, in a range."""
        held = conj(self.held, compare("<=", first, Sym(name)), compare("<", Sym(name), end))
        return replace(self, names=(*self.names, name), held=held)

    def of(self, instance: Instance) -> Points:
        """The iterations in which an operation runs."""
        return replace(self, names=instance.frame.iterators, held=instance.frame.holds)

    def fault(self, cond: Cond) -> str | None:
        """One of the points at which another condition does not hold; None if it holds at all of them."""
        if cond == TRUE:
            return None
        question = (self.names, self.held, cond)
        if question not in self.answers:
            self.answers[question] = self._fault(cond)
        return self.answers[question]

    def _fault(self, cond: Cond) -> str | None:
        writer = Writer(self.names, self.space.params)
        try:
            wrong = f"({writer.cond(self.held)}) and ({writer.cond(negate(cond))})"
        except NotAffine as error:
            return str(error)
        names = tuple_text("", map(encode, self.names))
        points = read_set(writer.declared(f"{names} : {wrong} and {writer.natural()}"))
        return counterexample(points.intersect_params(params_set(self.space)))


def read_before_written(
    reader: Instance, buffer: SSAValue, index: Index, program: Sequence[Instance], space: Space
) -> str | None:
    """A point at which an operation reads a row that no operation of the program has written by then, with the row;
    None if there is none."""
    writes = [(writer, write.index) for writer in program for write in writer.writes if write.buffer is buffer]
    if any(_is_just_written(reader, index, writer, rows) for writer, rows in writes):
        return None
    names = [*map(encode, reader.frame.iterators)]
    taken = [f"r{number}'" for number in range(len(index))]
    text = Writer(reader.frame.iterators, space.params)
    try:
        held = [
            text.cond(reader.frame.holds),
            *(entry_text(text, entry, row) for entry, row in zip(index, taken, strict=True)),
        ]
        points = read_set(_declared(text, [*names, *taken], held)).intersect_params(params_set(space))
        for writer, there in writes:
            points = points.subtract(read_set(_written(reader, writer, there, space)))
    except NotAffine as error:
        return str(error)
    return counterexample(points)


def _declared(text: Writer, names: Sequence[str], held: Sequence[str], inner: Sequence[str] = ()) -> str:
    condition = " and ".join(f"({part})" for part in (*held, text.natural()))
    if inner:
        condition = f"exists ({', '.join(inner)} : {condition})"
    return text.declared(f"{tuple_text('', names)} : {condition}")


def _is_just_written(reader: Instance, index: Index, writer: Instance, rows: Index) -> bool:
    """Whether the text says that the rows are written before in the same iteration of all loops round the writer."""
    depth = len(writer.loops)
    inside = depth <= len(reader.loops) and all(a is b for a, b in zip(writer.loops, reader.loops, strict=False))
    return inside and rows == index and writer.time[depth] < reader.time[depth] and _parts(writer) <= _parts(reader)


def _parts(instance: Instance) -> set[Cond]:
    guard = instance.frame.guard
    return set(guard.args if isinstance(guard, And) else (guard,)) - {TRUE}


def _written(reader: Instance, writer: Instance, rows: Index, space: Space) -> str:
    """The iterations of the reader, each with the rows that the writer has written by then."""
    own = {name: f"{name}.before" for name in writer.frame.iterators}
    there = {name: Sym(other) for name, other in own.items()}
    text = Writer((*reader.frame.iterators, *own.values()), space.params)
    taken = [f"r{number}'" for number in range(len(rows))]
    written = zip(substitute(rows, there), taken, strict=True)
    held = [
        text.cond(substitute(writer.frame.holds, there)),
        text.cond(disj(*_earlier(reader, writer, there))),
        *(entry_text(text, entry, row) for entry, row in written),
    ]
    return _declared(text, [*map(encode, reader.frame.iterators), *taken], held, [*map(encode, own.values())])


def _earlier(reader: Instance, writer: Instance, there: dict[str, Sym]) -> Iterator[Cond]:
    """When an iteration of the writer is over before one of the reader: it is one of an earlier iteration of a loop
    round both, or stands before it in the same ones. Of a loop that data may end, only iterations before one that runs
    are known to run, unless it gives the bound that it counts to."""
    common = reader.loops[: common_loops(reader, writer)]
    if any(loop.until is not None and loop.upper != Sym(loop.gives or "") for loop in writer.loops[len(common) :]):
        return
    same: list[Cond] = []
    for loop in common:
        now, then = Sym(loop.iterator), there[loop.iterator]
        yield conj(*same, compare(">" if loop.down else "<", then, now))
        same.append(compare("=", then, now))
    if writer.time[len(common)] < reader.time[len(common)]:
        yield conj(*same)
