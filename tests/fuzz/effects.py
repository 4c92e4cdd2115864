"""Steps that the caller's side takes part in: calls of host objects, and states carried from step to step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import StringAttr

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import FALSE, Cond, Expr, Sym, compare, conj, disj, substitute
from tempo_ir.reference.dtypes import Array
from tests.fuzz.builder import Builder, NotHere
from tests.fuzz.values import Numbers, Value, coarsest

QUARTERS = 4
"""What a host object adds is a quarter of a number up to this."""


@dataclass
class Recorder:
    """A host object whose answers depend on the number of the call; `calls` holds what it was given. `first_rows2` is
    the vectorised form of `first` for arguments of two axes, and so on."""

    calls: list[tuple[str, Array]] = field(default_factory=list[tuple[str, Array]])

    def first(self, given: Array) -> Array:
        """The same, with what the count of calls makes of it."""
        return self._answer("first", given)

    def second(self, given: Array) -> Array:
        """As `first`, under another name."""
        return self._answer("second", given)

    def __getattr__(self, name: str) -> Callable[[Array], Array]:
        method, form, rank = name.partition("_rows")
        if not form or method not in ("first", "second"):
            raise AttributeError(name)

        def call(given: Array) -> Array:
            made = np.empty_like(given)
            for point in np.ndindex(given.shape[: given.ndim - int(rank)]):
                made[point] = self._answer(method, given[point])
            return made

        return call

    def _answer(self, method: str, given: Array) -> Array:
        self.calls.append((method, np.array(given)))
        added = (len(self.calls) * 3 % (QUARTERS + 1)) / 4
        return np.clip(given, -3, 3).astype(given.dtype) + np.asarray(added, given.dtype)


def hosted(b: Builder) -> Value:
    """Calls of an object at every point of some dims, then perhaps at those of others, in lexicographic order.

    What is given to them is hidden from gradients, which go through no call.
    """
    if any(isinstance(op, sdg.HostStateOp) for op in b.block.ops):
        raise NotHere
    values = [b.pick(lambda v: v.dtype in ("f32", "f64") and v.is_static and bool(v.dims))]
    if b.chance(0.4):
        values.append(b.pick(lambda v: v.dtype in ("f32", "f64") and v.is_static))
    object_name = "recorder"
    start = sdg.HostStateOp(object_name)
    b.block.add_op(start)
    token, made = Access(start.result), values[0]
    for value, method in zip(values, ("first", "second"), strict=False):
        made, token = _called(b, object_name, method, value, token)
    return made


def _called(b: Builder, name: str, method: str, value: Value, token: Access) -> tuple[Value, Access]:
    """One call per point of the value; gives the token after the last of them."""
    domain = Domain(value.dims)
    before = sdg.MergeOp(domain=domain, result_type=sdg.TokenType())
    b.block.add_op(before)
    stopped = b.place(sdg.StopGradientOp(b.at(value), domain=domain), value.numbers)
    here = tuple(map(Sym, value.dims))
    form = (
        sdg.Vectorized(f"{method}_rows{len(shape_of(value.type))}", value.dims)
        if value.dims and b.chance(0.5)
        else None
    )
    call = sdg.HostOp(
        name,
        method,
        b.at(stopped),
        after=Access(before.result, here),
        returns=[value.type],
        domain=domain,
        vectorized=form,
    )
    n = value.numbers
    grid = None if n.grid is None else max(n.grid, 2)
    made = b.add(call, Numbers(max(-3.0, min(n.low, 3.0)), min(3.0, max(n.high, -3.0)) + 1, grid, n.rounding))
    after = Access(call.next_token, here)
    before.set_cases(carried(b, value.dims, token, after))
    if not value.dims:
        return made, after
    bounds = {dim: b.space.bound(dim) for dim in value.dims}
    last = sdg.MergeOp(*_at_the_end(bounds, token, after), domain=Domain(), result_type=sdg.TokenType())
    b.block.add_op(last)
    return made, Access(last.result)


def carried(b: Builder, dims: tuple[str, ...], first: Access, after: Access) -> list[tuple[Cond, Access]]:
    """The cases of what stands before each point of the dims, points taken in lexicographic order: `first` before the
    first one, else what is `after` the point before."""
    cases: list[tuple[Cond, Access]] = [(conj(*(compare("=", Sym(dim), 0) for dim in dims)), first)]
    for position in reversed(range(len(dims))):
        inner = dims[position + 1 :]
        cond = conj(compare(">", Sym(dims[position]), 0), *(compare("=", Sym(dim), 0) for dim in inner))
        point: dict[str, Expr] = {dims[position]: Sym(dims[position]) - 1}
        point.update({dim: b.space.bound(dim) - 1 for dim in inner})
        cases.append((cond, Access(after.value, substitute(after.index, point))))
    return cases


def _at_the_end(bounds: Mapping[str, Expr], first: Access, after: Access) -> list[tuple[Cond, Access]]:
    """What there is after the last point; what was before, where there is no point."""
    there = Access(after.value, substitute(after.index, {dim: bound - 1 for dim, bound in bounds.items()}))
    cases = [
        (disj(*(compare("<=", bound, 0) for bound in bounds.values())), first),
        (conj(*(compare(">", bound, 0) for bound in bounds.values())), there),
    ]
    return [case for case in cases if case[0] != FALSE]


def state(b: Builder) -> Value:
    """A parameter, a merge and an output of one key: what is carried through the steps of some dims.

    `w = merge {i = 0 : first, i > 0 : next[i - 1]}; next = tanh(w * 0.5 + x)`
    """
    value = b.pick(lambda v: v.dtype in ("f32", "f64") and v.is_static and bool(v.dims))
    dims = value.dims
    bounds = {dim: b.space.bound(dim) for dim in dims}
    first = sdg.ParameterOp(f"state{len(b.values)}", value.type)
    start = b.add(first, Numbers(-3, 3, 2))
    before = sdg.MergeOp(domain=Domain(dims), result_type=value.type)
    held = b.add(before, Numbers(-3, 3, None, value.numbers.rounding))
    half = b.constant(0.5, value.type)
    scaled = sdg.MulOp(b.at(held), b.at(half), domain=Domain(dims))
    summed = sdg.AddOp(b.at(b.place(scaled, held.numbers)), b.at(value), domain=Domain(dims))
    rough = Numbers(-1, 1, None, value.numbers.rounding)
    following = b.add(sdg.TanhOp(b.at(b.place(summed, rough)), domain=Domain(dims)), rough)
    after = b.at(following)
    before.set_cases(carried(b, dims, b.at(start), after))
    _given_back(b, start, bounds, after, held.numbers)
    return held


def _given_back(b: Builder, start: Value, bounds: Mapping[str, Expr], after: Access, numbers: Numbers) -> None:
    """The output of a state: what is `after` the last point."""
    first = start.ssa.owner
    assert isinstance(first, sdg.ParameterOp)
    cases = _at_the_end(bounds, b.at(start), after)
    last = b.place(sdg.MergeOp(*cases, domain=Domain(), result_type=start.type), numbers)
    # an output is named by how it may differ
    first.key = StringAttr(f"{last.numbers.rounding.name.lower()}_{first.key.data}")
    b.block.add_op(sdg.OutputOp(first.key.data, b.at(last)))


def exchanged(b: Builder) -> Value:
    """Two or three states that change places: at each step, or at the end.

    `v = merge {t = 0 : v0, t > 0 : w'[t - 1]}; w = merge {t = 0 : w0, t > 0 : v'[t - 1]}`, where `v'` is v, turned, or
    a mix of it and another value
    """
    value = b.pick(lambda v: v.dtype in ("f32", "f64") and v.is_static and bool(v.dims))
    dims, domain = value.dims, Domain(value.dims)
    bounds = {dim: b.space.bound(dim) for dim in dims}
    alike = [v for v in b.values if v.type == value.type and set(v.dims) <= set(dims)]
    numbers = Numbers(-3, 3, None, coarsest([v.numbers for v in alike]))
    names = [f"state{len(b.values)}{letter}" for letter in "abc"[: b.random.choice([2, 2, 3])]]
    starts = [b.add(sdg.ParameterOp(name, value.type), Numbers(-3, 3, 2)) for name in names]
    held = [b.add(sdg.MergeOp(domain=domain, result_type=value.type), numbers) for _ in names]
    following = [_following(b, one, b.random.choice([*alike, *starts, *held]), domain) for one in held]
    for start, one, after in zip(starts, held, b.random.sample(following, len(following)), strict=True):
        assert isinstance(one.ssa.owner, sdg.MergeOp)
        one.ssa.owner.set_cases(carried(b, dims, b.at(start), b.at(after)))
    for start, after in zip(starts, b.random.sample(following, len(following)), strict=True):
        _given_back(b, start, bounds, b.at(after), numbers)
    return held[-1]


def _following(b: Builder, held: Value, other: Value, domain: Domain) -> Value:
    """What comes after a state: itself, itself with its axes or elements in another order, or a mix."""
    draw, here = b.random.random(), b.at(held)
    if draw < 0.3:
        return held
    if draw < 0.6 and held.shape:
        axes = list(range(len(held.shape)))
        if held.shape == held.shape[::-1] and len(axes) > 1 and b.chance(0.7):
            return b.add(sdg.TransposeOp(here, axes[::-1], domain=domain), held.numbers)
        return b.add(sdg.ReverseOp(here, b.random.choice(axes), domain=domain), held.numbers)
    mixed = b.place(b.random.choice([sdg.AddOp, sdg.SubOp])(here, b.at(other), domain=domain), held.numbers)
    return b.add(sdg.TanhOp(b.at(mixed), domain=domain), held.numbers.rounded(-1, 1))


@dataclass
class Hosts:
    """The host objects of one run of a program, by name; each is made when the run asks for it."""

    program: sdg.ProgramOp
    objects: dict[str, list[Recorder]] = field(default_factory=dict[str, list[Recorder]])

    def factories(self) -> dict[str, Callable[[], Recorder]]:
        """What makes each object."""
        names = [op.object for op in self.program.body.block.ops if isinstance(op, sdg.HostStateOp)]
        return {name: lambda name=name: self._made(name) for name in names}

    def calls(self) -> list[tuple[str, str, Array]]:
        """All calls of each object, in order: object, method, argument."""
        made = [(name, recorder) for name, recorders in sorted(self.objects.items()) for recorder in recorders]
        return [(name, method, given) for name, recorder in made for method, given in recorder.calls]

    def _made(self, name: str) -> Recorder:
        recorder = Recorder()
        self.objects.setdefault(name, []).append(recorder)
        return recorder
