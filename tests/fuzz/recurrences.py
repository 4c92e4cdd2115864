"""Steps that define values by cases: merges, and recurrences forwards, backwards, over two dims and over windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access
from tempo_ir.dialects.types import Tensor, dtype, tensor
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import (
    TRUE,
    Cond,
    Entry,
    Expr,
    Slice,
    Sym,
    compare,
    conj,
    disj,
    maximum,
    minimum,
    negate,
)
from tests.fuzz import indices
from tests.fuzz.builder import Builder, NotHere
from tests.fuzz.values import BOOLEANS, WILD, Numbers, Value, union


def random_condition(b: Builder, dims: tuple[str, ...]) -> Cond:
    """A condition over some of the dims."""
    conds: list[Cond] = []
    for _ in range(b.random.choice([1, 1, 1, 2])):
        dim = b.random.choice(dims)
        bound = b.space.bound(dim)
        others = tuple(name for name in dims if name != dim)
        conds.append(indices.condition(dim, bound, others, b.params_below(bound), b.random))
    cond = conj(*conds) if b.chance(0.6) else disj(*conds)
    return negate(cond) if b.chance(0.15) else cond


def merged(b: Builder) -> Value:
    """Two or three values by cases; the last case is what is left."""
    first = b.pick(lambda v: not v.is_ragged)
    alike = [v for v in b.values if v.type == first.type]
    chosen = [first, *(b.random.choice(alike) for _ in range(b.random.choice([1, 1, 2])))]
    dims = b.space.order({dim for value in chosen for dim in value.dims} | set(b.some_dims()))
    if not dims:
        raise NotHere
    cases: list[tuple[Cond, Access]] = []
    for number, value in enumerate(chosen):
        last = number == len(chosen) - 1
        cases.append((TRUE if last else random_condition(b, dims), b.at(value)))
    return b.add(sdg.MergeOp(*cases, domain=Domain(dims)), union([v.numbers for v in chosen]))


@dataclass(frozen=True)
class Step:
    """How a recurrence reads itself: the condition under which it does, and the index; else it reads a first value."""

    inside: Cond
    index: tuple[Entry, ...]


def forwards(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    distance = b.random.choice([1, 1, 1, 2])
    return _step(dims, dim, compare(">=", Sym(dim), distance), Sym(dim) - distance)


def backwards(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    distance = b.random.choice([1, 1, 2])
    bound = b.space.bound(dim)
    return _step(dims, dim, compare("<", Sym(dim) + distance, bound), Sym(dim) + distance)


def halving(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    return _step(dims, dim, compare(">=", Sym(dim), 1), Sym(dim) // 2)


def carried(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    """Along the dim; at its start from the end of the step of an outer dim before."""
    outer = [name for name in dims if b.space.names.index(name) < b.space.names.index(dim)]
    if not outer:
        raise NotHere
    last = b.space.bound(dim) - 1
    name = b.random.choice(outer)
    entries: list[Entry] = [Sym(d) - 1 if d == name else last if d == dim else Sym(d) for d in dims]
    return Step(conj(compare("=", Sym(dim), 0), compare(">=", Sym(name), 1)), tuple(entries))


def windowed(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    here = Sym(dim)
    if b.chance(0.3):
        bound = b.space.bound(dim)
        return _step(dims, dim, TRUE, Slice(here + 1, b.random.choice([bound, minimum(here + 3, bound)])))
    start: Expr = b.random.choice([maximum(0, here - 3), maximum(0, here - 1), here * 0])
    return _step(dims, dim, TRUE, Slice(start, here))


def _step(dims: tuple[str, ...], dim: str, inside: Cond, entry: Entry) -> Step:
    return Step(inside, tuple(entry if name == dim else Sym(name) for name in dims))


KINDS: tuple[Callable[[Builder, tuple[str, ...], str], Step], ...] = (
    forwards,
    forwards,
    backwards,
    halving,
    windowed,
    carried,
)


def recurrence(b: Builder) -> Value:
    """A value that reads itself at other points, through one or two reads, and mixes in another value.

    `h = tanh(mix(merge {t > 0 : h[t - 1], true : first}, v))`
    """
    value = b.pick(lambda v: not v.is_ragged and len(v.shape) <= 2)
    dims = b.space.order(set(value.dims) | set(b.some_dims()))
    if not dims:
        raise NotHere
    dim = b.random.choice(dims)
    steps = [b.random.choice(KINDS)(b, dims, dim)]
    if steps[0].inside != TRUE and b.chance(0.4):
        second = forwards(b, dims, b.random.choice(dims)) if b.chance(0.5) else carried(b, dims, dim)
        if second.inside != TRUE:
            steps.append(second)
    return _closed(b, value, dims, steps)


def _closed(b: Builder, value: Value, dims: tuple[str, ...], steps: list[Step]) -> Value:
    domain = Domain(dims)
    type_ = value.type
    first = _first_value(b, value)
    placeholder = b.place(sdg.MergeOp((TRUE, b.at(first)), domain=domain), first.numbers)
    holder = placeholder.ssa.owner
    assert isinstance(holder, sdg.MergeOp)
    is_range = any(isinstance(entry, Slice) for step in steps for entry in step.index)
    past, reader = (_folded(b, holder, type_, domain, steps[0].index)) if is_range else (placeholder, None)
    made = _mixed(b, past, value, domain)
    itself = Access(made.ssa, steps[0].index)
    if reader is not None:
        reader.with_access(0, made.ssa, steps[0].index)
        if isinstance(holder, sdg.MergeOp) and not holder.results[0].uses:
            holder.detach()
            holder.erase()
        return made
    cases: list[tuple[Cond, Access]] = [(step.inside, Access(itself.value, step.index)) for step in steps]
    holder.set_cases([*cases, (TRUE, b.at(first))])
    return made


def _first_value(b: Builder, value: Value) -> Value:
    if b.chance(0.4) and value.is_static:
        return b.constant(*b.number_of(value.type))
    return value


def _folded(
    b: Builder, holder: sdg.MergeOp, type_: Tensor, domain: Domain, index: tuple[Entry, ...]
) -> tuple[Value, sdg.ReduceOp]:
    """The reduction of a range of the value itself, over its holder until the value exists."""
    is_float = type_.element_type in (dtype("f32"), dtype("f64"))
    access = Access(holder.result, index)
    if type_.element_type == dtype("bool"):
        op = sdg.MaxOp(access, [0], domain=domain)
    else:
        op = sdg.SumOp(access, [0], domain=domain)
    single = type_.element_type == dtype("f32")
    return b.place(op, Numbers(-8, 8, None, single) if is_float else WILD), op


def _mixed(b: Builder, past: Value, value: Value, domain: Domain) -> Value:
    """One to three ops from the past and the value to the next; floats stay between -1 and 1."""
    left, right = b.at(past), b.at(value)
    element = value.type.element_type
    if element == dtype("bool"):
        op = b.random.choice([sdg.XorOp, sdg.AndOp, sdg.OrOp])(left, right, domain=domain)
        return b.add(op, BOOLEANS)
    if not value.is_float:
        op = b.random.choice([sdg.AddOp, sdg.MulOp, sdg.MaximumOp, sdg.XorOp, sdg.SubOp])(left, right, domain=domain)
        return b.add(op, WILD)
    rough = Numbers(-1, 1, None, value.dtype == "f32" or value.numbers.single)
    if b.chance(0.25):
        # exact: a running extreme
        op = b.random.choice([sdg.MaximumOp, sdg.MinimumOp])(left, right, domain=domain)
        return b.add(op, Numbers(-40, 40, None if past.numbers.grid is None else value.numbers.grid, rough.single))
    half = b.constant(b.random.choice([0.5, -0.5, 0.25]), tensor(element))
    scaled = b.place(sdg.MulOp(left, b.at(half), domain=domain), rough)
    weights = [v for v in b.values if not v.dims and v.shape == (*value.shape, *value.shape) and v.dtype == value.dtype]
    if weights and len(value.shape) == 1 and b.chance(0.7):
        spec = b.random.choice(["a,ab->b", "a,ba->b"])
        scaled = b.place(sdg.ContractOp(spec, b.at(scaled), b.at(b.random.choice(weights)), domain=domain), rough)
    joined = b.random.choice([sdg.AddOp, sdg.SubOp])(b.at(scaled), right, domain=domain)
    summed = b.place(joined, rough)
    return b.add(b.random.choice([sdg.TanhOp, sdg.SinOp, sdg.TanhOp])(b.at(summed), domain=domain), rough)
