"""Definition by cases: `x[i, 0] = a`, `x[i, t + 1] = f(x)`, `x[t < P] = prompt[t]`; the first case that holds wins.

A case is solved for the dims of `x`: `x[t + 1] = y` says that at the points `t >= 1`, `x[t]` is `y[t - 1]`. Before
-> after:

    x[i, 0] = a                 case  t = 0   %a[i, t]
    x[i, t + 1] = b             case  t > 0   %b[i, t - 1]
    x[T - 1 - t] = c            case  true    %c[T - 1 - t]
    x[t < P] = prompt[t]        case  t < P   %prompt[t]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempo_ir import index as ix
from tempo_ir.dialects import sdg
from tempo_ir.frontend import elementwise, shapes
from tempo_ir.frontend.dims import Condition, Dim, dim_names, is_integer
from tempo_ir.frontend.dtypes import Spec, spec_of
from tempo_ir.frontend.errors import Place, ProgramError, here
from tempo_ir.frontend.indexing import from_end
from tempo_ir.frontend.recording import Recording, current
from tempo_ir.frontend.tensor import Tensor, Value
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import Cond, Expr

if TYPE_CHECKING:
    from tempo_ir.frontend.tensor import Key


@dataclass(frozen=True, slots=True)
class Case:
    """`cond : access`, and the line that says so."""

    cond: Cond
    access: sdg.Access
    place: Place | None


class DefinedTensor(Tensor):
    """A tensor that assignments define; it may be read before, and by, its own definition."""

    __slots__ = ("cases", "label", "over", "place", "wanted")

    def __init__(self, recording: Recording, label: str, wanted: Spec, over: tuple[str, ...]):
        merge = sdg.MergeOp(domain=Domain(over), result_type=wanted.type)
        recording.add(merge, here(), label)
        super().__init__(recording, merge.result)
        self.label = label
        self.wanted = wanted
        self.over = over
        self.place = here()
        self.cases: list[Case] = []
        recording.definitions[merge] = self.cases

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"'{self.label}'"

    def __setitem__(self, key: Key, value: Value) -> None:
        self.define(key, value)

    def define(self, key: Key, value: Value) -> None:
        """Add a case; the value is cast (numbers only) and broadcast to the tensor's type."""
        place = here()
        entries = key if isinstance(key, tuple) else (key,)
        pattern, conditions = self.pattern(entries)
        solved, equalities = solve(pattern, self, place)
        given = self.fitted(value, place)
        if foreign := [name for name in given.dims if name not in self.over]:
            raise ProgramError(
                f"{self.name} varies over ({', '.join(self.over)}), the value of this case also over {foreign[0]}: "
                f"reduce it over {foreign[0]}, or read it at one point"
            )
        ranges = [self.in_range(name, solution) for name, solution in solved.items()]
        written = [ix.substitute(condition, solved) for condition in conditions]
        access = sdg.Access(given.value, ix.substitute(given.index, solved))
        self.cases.append(Case(ix.conj(*equalities, *ranges, *written), access, place))

    def pattern(self, entries: Sequence[Any]) -> tuple[list[Expr], list[Cond]]:
        """One expression per dim, and the conditions among the entries."""
        named = dict(zip(self.over, (ix.Sym(name) for name in self.over), strict=True))
        conditions = [entry.cond for entry in entries if isinstance(entry, Condition)]
        if len(entries) == 1 and conditions:
            return list(named.values()), conditions
        dots = [position for position, entry in enumerate(entries) if entry is Ellipsis]
        given = len(entries) - len(dots)
        if len(dots) > 1 or given > len(self.over):
            raise ProgramError(
                f"{self.name} is defined point by point: its index has one entry per dim "
                f"({', '.join(self.over) or 'none'}), "
                f"got {given}; write parts of a tensor with tp.stack, tp.concat or tp.where"
            )
        position = dots[0] if dots else len(entries)
        missing = len(self.over) - given
        filled = [*entries[:position], *[Ellipsis] * missing, *entries[position + len(dots) :]]
        return [self.entry(name, entry) for name, entry in zip(self.over, filled, strict=True)], conditions

    def entry(self, name: str, entry: Any) -> Expr:
        """One entry of the pattern as an expression."""
        if entry is Ellipsis or isinstance(entry, Condition):
            return ix.Sym(name)
        if is_integer(entry):
            return from_end(entry, self.recording.dims[name])
        raise ProgramError(
            f"{self.name} over dim {name} is defined at a point (0, {name} + 1, T - 1) or under a condition "
            f"({name} < 3), "
            f"not at a {type(entry).__name__}"
        )

    def fitted(self, value: Value, place: Place | None) -> Tensor:
        """The value of a case with the element type and shape of the tensor."""
        if isinstance(value, Dim):
            value = elementwise.cast(value, self.wanted.dtype)
        given = elementwise.as_tensor(value, self.wanted.dtype)
        if given.dtype != self.wanted.dtype:
            raise ProgramError(
                f"{self.name} is {self.wanted.dtype} ({self.place}), this case is {given.dtype}: "
                f"write .cast(tp.{self.wanted.dtype}), or declare it tp.{given.dtype}",
                place,
            )
        extents = Tensor(self.recording, self.value).extents
        if given.ndim > len(extents) or not _stretches(given.extents, extents):
            raise ProgramError(
                f"{self.name} has the shape {shapes.shape_text(extents)} at each point ({self.place}), this case "
                f"{shapes.shape_text(given.extents)}",
                place,
            )
        return shapes.broadcast_to(given, extents)

    def in_range(self, name: str, solution: Expr) -> Cond:
        """The condition that a solved dim lies inside its bounds, without what holds anyway."""
        bound = self.recording.dims[name]
        if solution == ix.Sym(name):
            return ix.TRUE
        shift = solution - ix.Sym(name)
        if isinstance(shift, ix.Const):
            return _shifted_range(name, shift.value, bound)
        space, domain = self.recording.space, Domain(self.over)
        sides = [ix.compare("<=", 0, solution), ix.compare("<", solution, bound)]
        from tempo_ir.index.isl import prove

        return ix.conj(*(side for side in sides if not prove(side, space, domain)))

    def complete(self) -> None:
        """Give the merge its cases; raises ProgramError if there is none."""
        if not self.cases:
            raise ProgramError(
                f"{self.name} is declared and never defined: write {self.label}[...] = ... for every point", self.place
            )
        merge = self.value.owner
        assert isinstance(merge, sdg.MergeOp)
        merge.set_cases([(case.cond, case.access) for case in self.cases])


def _shifted_range(name: str, shift: int, bound: Expr) -> Cond:
    """`t - 1` lies in its bounds where `t > 0`; `t + 1` where `t < T - 1`."""
    if shift == -1:
        return ix.compare(">", ix.Sym(name), 0)
    if shift < 0:
        return ix.compare(">=", ix.Sym(name), -shift)
    return ix.compare("<", ix.Sym(name), bound - shift)


def _stretches(given: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """True unless an extent is known to be neither 1 nor the wanted one."""
    pairs = zip(reversed(given), reversed(wanted), strict=False)
    return all(a == b or a == 1 or not (isinstance(a, int) and isinstance(b, int)) for a, b in pairs)


def solve(pattern: Sequence[Expr], tensor: DefinedTensor, place: Place | None) -> tuple[dict[str, Expr], list[Cond]]:
    """Solve `dim = entry` for the dims that the entries use.

    Gives, in terms of the point of the tensor, the value of each dim that the right side may use, and the equations
    that are left as conditions. A dim that no entry uses keeps its meaning: `x[i, T - 1] = y` reads `y` at the same
    `t`.
    """
    recording = tensor.recording
    solved: dict[str, Expr] = {}
    waiting = list(zip(tensor.over, pattern, strict=True))
    waiting.sort(key=lambda item: recording.in_order(ix.free_symbols(item[1])) != (item[0],))  # own dims first
    conditions: list[Cond] = []
    while waiting:
        progress = False
        for item in list(waiting):
            name, entry = item
            unknown = [symbol for symbol in ix.free_symbols(entry) if symbol in recording.dims and symbol not in solved]
            if len(unknown) > 1:
                continue
            waiting.remove(item)
            progress = True
            known = ix.substitute(entry, solved)
            if unknown:
                solved[unknown[0]] = _solution(unknown[0], known, name, tensor, place)
            else:
                conditions.append(ix.compare("=", _primed(name), known))
        if not progress:
            raise _unsolvable(tensor, waiting[0][1], place)
    bare = {f"{name}'": ix.Sym(name) for name in tensor.over}
    return (
        {name: ix.substitute(value, bare) for name, value in solved.items()},
        [ix.substitute(condition, bare) for condition in conditions],
    )


def _primed(name: str) -> Expr:
    """The point of the tensor, apart from the dims on the right side."""
    return ix.Sym(f"{name}'")


def _solution(unknown: str, entry: Expr, name: str, tensor: DefinedTensor, place: Place | None) -> Expr:
    """Solve `name' = entry` for `unknown`, which must occur with factor 1 or -1."""
    symbol = ix.Sym(unknown)
    for sign in (1, -1):
        rest = entry - sign * symbol
        if unknown not in ix.free_symbols(rest):
            return (_primed(name) - rest) * sign
    raise _unsolvable(tensor, entry, place)


def _unsolvable(tensor: DefinedTensor, entry: Expr, place: Place | None) -> ProgramError:
    return ProgramError(
        f"cannot tell which point '{entry}' of {tensor.name} belongs to: an index of a definition is a number, a "
        "bound, or a "
        "dim plus or minus something; use a condition (x[t % 2 == 0] = ...) for other sets of points",
        place,
    )


def tensor(name: str, spec: Spec, over: Dim | Sequence[Dim]) -> DefinedTensor:
    """A tensor over dims, defined by assignments: `x[i, 0] = ...`, `x[i, t + 1] = ...`, `x[t < P] = ...`; first
    match wins."""
    recording = current()
    what = f"tensor '{name}'"
    defined = DefinedTensor(recording, name, spec_of(spec, what), dim_names(over, what))
    recording.finishers.append(defined.complete)
    return defined
