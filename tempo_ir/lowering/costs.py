# pyright: basic
"""What a loop program costs, as closed forms in the bounds: operations, bytes moved, launches, the memory it takes.

A cost is a sum, over the operations of the program, of what one run does times the number of its runs. Both are counts
of integer points: a softmax over `t + 1` scores in a loop over `t` runs over the points `0 <= n < t + 1` of each `t`,
which gives `T * (T + 1) / 2`. `index.closed_form` counts them for all bounds at once.

Operations are counted as one for each element of an elementwise op, of the operand of a reduction or scan, four for an
element of a softmax (maximum, exponential, sum, division), and for a contraction one per operand for each point of its
letters. What only moves elements has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import sympy
from xdsl.ir import Attribute, Block, Operation

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.tile.attributes import bit_width
from tempo_ir.dialects.types import Extent, element, shape_of
from tempo_ir.index import Cond, Const, Expr, Slice, Space, Sym, as_expr, compare, conj, free_symbols, negate
from tempo_ir.index.closed_form import count_where, symbol, to_sympy, value
from tempo_ir.index.expr import TRUE
from tempo_ir.index.isl import Inexact, NotAffine
from tempo_ir.lowering.kernels.layout import Layout
from tempo_ir.lowering.storage.intervals import buffer_intervals

SOFTMAX_OPERATIONS = 4
"""Maximum, exponential, sum and division of each element."""


@dataclass(frozen=True)
class Costs:
    """Closed forms over the bounds of a program, of one call.

    `operations` are arithmetic ones; `bytes_moved` what kernels and leaves read and write; `copies` how many rows are
    copied and nothing else, `transfers` how many go to the host or come back; `launches` and `host_calls` how often a
    kernel or a host method runs; `peak_bytes` the greatest sum of buffers that are live together, beside the caller's
    arrays, `host_bytes` that of those with the host. `left_out` says what has no closed form.
    """

    operations: sympy.Expr
    bytes_moved: sympy.Expr
    copies: sympy.Expr
    transfers: sympy.Expr
    launches: sympy.Expr
    host_calls: sympy.Expr
    peak_bytes: sympy.Expr
    host_bytes: sympy.Expr
    left_out: tuple[str, ...] = ()

    @property
    def formulas(self) -> Mapping[str, sympy.Expr]:
        """The formulas by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "left_out"}

    def near(self, bounds: Mapping[str, int]) -> Costs:
        """The formulas without their cases: those that hold for these bounds, which hold around them too."""
        point = {symbol(name): number for name, number in bounds.items()}
        taken = {name: sympy.expand(_taken(formula, point)) for name, formula in self.formulas.items()}
        return replace(self, **taken)


def _taken(formula: Any, point: dict[Any, int]) -> Any:
    """A formula with each case decided at a point, and each maximum by what is greatest there."""

    def case(*branches: Any) -> Any:
        return next(value for value, held in branches if held.subs(point) == sympy.true)

    def greatest(*values: Any) -> Any:
        return max(values, key=lambda value: value.subs(point))

    def least(*values: Any) -> Any:
        return min(values, key=lambda value: value.subs(point))

    return formula.replace(sympy.Piecewise, case).replace(sympy.Max, greatest).replace(sympy.Min, least)


@dataclass(frozen=True)
class Work:
    """What leaves do in one call, as closed forms over the bounds; None where there is none."""

    operations: sympy.Expr | None
    bytes_moved: sympy.Expr | None

    def at(self, bounds: Mapping[str, int]) -> tuple[int | None, int | None]:
        """Operations and bytes of a call with these bounds."""
        operations, moved = (
            None if formula is None else value(formula, bounds) for formula in (self.operations, self.bytes_moved)
        )
        return operations, moved


def work_of(program: loop.ProgramOp, group: Callable[[loop.BodyOperation], str]) -> dict[str, Work]:
    """The work of the leaves of a formed program, those of a group together."""
    counters: dict[str, _Counter] = {}
    for run in _runs(program.body.block, (), TRUE):
        if isinstance(run.op, loop.BodyOperation):
            counters.setdefault(group(run.op), _Counter(program.space)).add(run)
    found: dict[str, Work] = {}
    for name, counter in counters.items():
        totals = {each: counter.total(each) for each in ("operations", "bytes_moved")}
        unknown = {reason.split(":")[0] for reason in counter.left_out}
        found[name] = Work(**{each: None if each in unknown else total for each, total in totals.items()})
    return found


def program_costs(program: loop.ProgramOp) -> Costs:
    """The costs of a formed program, its storage planned; before kernels are compiled, whose work cannot be read."""
    counter = _Counter(program.space)
    for run in _runs(program.body.block, (), TRUE):
        counter.add(run)
    names = ("operations", "bytes_moved", "copies", "transfers", "launches", "host_calls")
    totals = {name: counter.total(name) for name in names}
    peaks = {"peak_bytes": peak_bytes(program), "host_bytes": peak_bytes(program, host=True)}
    return Costs(**totals, **peaks, left_out=tuple(counter.left_out))


@dataclass(frozen=True)
class _Run:
    """An operation with the iterators round it and what holds of them when it runs."""

    op: loop.AccessOperation
    iterators: tuple[str, ...]
    held: Cond


def _runs(block: Block, iterators: tuple[str, ...], held: Cond) -> Iterator[_Run]:
    for op in block.ops:
        match op:
            case loop.ForOp():
                iterator = Sym(op.iterator)
                inside = [compare("<=", op.lower, iterator), compare("<", iterator, op.upper)]
                if op.step != 1:
                    inside.append(compare("=", (iterator - op.lower) % op.step, 0))
                yield from _runs(op.body.block, (*iterators, op.iterator), conj(held, *inside))
            case loop.IfOp():
                yield from _runs(op.then.block, iterators, conj(held, op.condition))
                if op.otherwise is not None:
                    yield from _runs(op.otherwise.block, iterators, conj(held, negate(op.condition)))
            case loop.AccessOperation():
                yield _Run(op, iterators, held)
            case _:
                continue


@dataclass(frozen=True)
class _Amount:
    """`weight` for each point of a box with these extents."""

    weight: int
    extents: tuple[Extent, ...] = ()


class _Counter:
    """Sums of amounts; those with equal loops and equal symbolic extents are counted once."""

    def __init__(self, space: Space):
        self.space = space
        self.sums: dict[str, dict[tuple[tuple[str, ...], Cond, tuple[Expr, ...]], int]] = {}
        self.left_out: dict[str, None] = {}

    def add(self, run: _Run) -> None:
        """What one operation adds to each cost."""
        op = run.op
        for kind in (*_read(op), *(access.type for access in op.writes)):
            width = bit_width(element(kind)) // 8 or 1
            self._add("bytes_moved", run, _Amount(width, shape_of(kind)))
        if isinstance(op, loop.HostOp):
            self._add("host_calls", run, _Amount(1))
        if isinstance(op, loop.TransferOp):
            self._add("transfers", run, _Amount(1))
        if not isinstance(op, loop.BodyOperation):
            return
        self._add("launches", run, _Amount(1))
        inner = [inner for inner in op.body.block.ops if not isinstance(inner, loop.YieldOp)]
        if not inner:
            self._add("copies", run, _Amount(1, tuple(_rows(op.writes[0].index))))
        for operation in inner:
            self._add("operations", run, _work(operation))

    def _add(self, name: str, run: _Run, amount: _Amount) -> None:
        weight = amount.weight
        symbolic: list[Expr] = []
        for extent in amount.extents:
            value = as_expr(extent)
            if isinstance(value, Const):
                weight *= value.value
            else:
                symbolic.append(value)
        key = (run.iterators, run.held, tuple(sorted(symbolic, key=str)))
        sums = self.sums.setdefault(name, {})
        sums[key] = sums.get(key, 0) + weight

    def total(self, name: str) -> sympy.Expr:
        """The closed form of a cost."""
        result: sympy.Expr = sympy.Integer(0)
        for (iterators, held, extents), weight in self.sums.get(name, {}).items():
            if weight == 0:
                continue
            try:
                result += weight * self._points(iterators, held, extents)
            except (Inexact, NotAffine) as error:
                self.left_out[f"{name}: {error}"] = None
        return sympy.expand(result)

    def _points(self, iterators: Sequence[str], held: Cond, extents: Sequence[Expr]) -> sympy.Expr:
        """How many points the loops have, each with the elements of a box."""
        varying = [extent for extent in extents if free_symbols(extent) & set(iterators)]
        factor: sympy.Expr = sympy.Integer(1)
        for extent in extents:
            if extent not in varying:
                factor *= to_sympy(extent)
        names = [f"element_{number}" for number in range(len(varying))]
        inside = [
            conj(compare("<=", Const(0), Sym(name)), compare("<", Sym(name), extent))
            for name, extent in zip(names, varying, strict=True)
        ]
        return factor * count_where(self.space, (*iterators, *names), conj(held, *inside))


def _read(op: loop.AccessOperation) -> Iterator[Attribute]:
    """The types of what is read: of an access all of it, or the rows that are gathered, where that is all its use."""
    if not isinstance(op, loop.BodyOperation):
        yield from (access.type for access in op.reads)
        return
    for argument, access in zip(op.body.block.args, op.reads, strict=True):
        uses = list(argument.uses)
        gathers = [use.operation for use in uses if isinstance(use.operation, sdg.GatherOp) and use.index == 0]
        if uses and len(gathers) == len(uses):
            yield from (gather.results[0].type for gather in gathers)
        else:
            yield access.type


def _rows(index: Sequence[Expr | Slice]) -> Iterator[Expr]:
    return (entry.extent for entry in index if isinstance(entry, Slice))


def _work(op: Operation) -> _Amount:
    """The arithmetic of one op on accessed tensors."""
    match op:
        case sdg.ContractOp():
            inputs, _ = op.letters
            extents = {
                letter: extent
                for letters, operand in zip(inputs, op.inputs, strict=True)
                for letter, extent in zip(letters, shape_of(operand.type), strict=True)
            }
            return _Amount(max(2, len(inputs)), tuple(extents.values()))
        case sdg.SoftmaxOp():
            return _Amount(SOFTMAX_OPERATIONS, shape_of(op.operands[0].type))
        case sdg.ReduceOp() | sdg.ArgReduceOp() | sdg.ScanOp():
            return _Amount(1, shape_of(op.operands[0].type))
        case sdg.ScatterAddOp():
            return _Amount(1, shape_of(op.operands[-1].type))
        case sdg.UnaryOp() | sdg.BinaryOp() | sdg.SelectOp() | sdg.CastOp() | sdg.RandomOp():
            return _Amount(1, shape_of(op.results[0].type))
        case _:
            return _Amount(0)


def peak_bytes(program: loop.ProgramOp, *, host: bool = False) -> sympy.Expr:
    """The greatest sum of the sizes of buffers that are live together, of the memory of the device or of the host."""
    intervals = buffer_intervals(program)
    sizes = {
        op.buffer: to_sympy(layout.size) * max(1, bit_width(layout.element) // 8)
        for op in program.body.walk()
        if isinstance(op, loop.AllocOp) and loop.is_host(op.buffer) == host
        for layout in (Layout.of(op.buffer_type, program.space),)
    }
    moments = sorted({intervals[buffer].first for buffer in sizes})
    live = [
        frozenset(buffer for buffer in sizes if intervals[buffer].first <= moment <= intervals[buffer].last)
        for moment in moments
    ]
    greatest = [some for some in dict.fromkeys(live) if not any(some < other for other in live)]
    sums = dict.fromkeys(sympy.expand(sum((sizes[buffer] for buffer in some), sympy.Integer(0))) for some in greatest)
    return sympy.Max(*_undominated(list(sums))) if sums else sympy.Integer(0)


def _undominated(sums: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    """The sums that no other one exceeds for all bounds, as far as the signs of the terms of a difference tell."""
    kept: list[sympy.Expr] = []
    for number, some in enumerate(sums):
        others = [*kept, *sums[number + 1 :]]
        if not any(_never_negative(sympy.expand(other - some)) for other in others):
            kept.append(some)
    return kept


def _never_negative(difference: sympy.Expr) -> bool:
    return all(term.is_nonnegative for term in sympy.Add.make_args(difference))
