"""Steps that define values by cases: merges, and recurrences forwards, backwards, over two dims and over windows."""

from __future__ import annotations

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access
from tempo_ir.dialects.types import Tensor, dtype, dtype_name, tensor
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import (
    TRUE,
    Cond,
    Const,
    Entry,
    Slice,
    Sym,
    compare,
    conj,
    disj,
    negate,
)
from tests.fuzz import indices
from tests.fuzz.builder import Builder, NotHere
from tests.fuzz.steps import Step, backwards, forwards, steps
from tests.fuzz.values import BOOLEANS, ROUNDINGS, WILD, Numbers, Value, union


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


def recurrence(b: Builder) -> Value:
    """A value that reads itself at other points, through one or two reads, and mixes in another value.

    `h = tanh(mix(merge {t > 0 : h[t - 1], true : first}, v))`
    """
    value = b.pick(lambda v: not v.is_ragged and len(v.shape) <= 2)
    dims = b.space.order(set(value.dims) | set(b.some_dims()))
    if not dims:
        raise NotHere
    return _closed(b, value, dims, steps(b, dims))


def mutual(b: Builder) -> Value:
    """Two or three values over one domain, each of which reads the next one, the last the first.

    `f = tanh(mix(merge {t > 0 : g[t - 1], true : a}, x)); g = tanh(mix(f, y))`
    """
    first = b.pick(lambda v: not v.is_ragged and len(v.shape) <= 2)
    alike = [v for v in b.values if v.type == first.type]
    values = [first, *(b.random.choice(alike) for _ in range(b.random.choice([1, 1, 2])))]
    dims = b.space.order({dim for value in values for dim in value.dims} | set(b.some_dims()))
    if not dims:
        raise NotHere
    reads = [[step for step in steps(b, dims) if step.is_of_points] if b.chance(0.7) else [] for _ in values]
    if not any(reads):
        raise NotHere
    domain, now = Domain(dims), tuple(map(Sym, dims))
    firsts = [_first_value(b, value) for value in values]
    # what comes from the other values is rounded, if it is of floats
    numbers = [value.numbers.rounded(-40, 40) if value.is_float else value.numbers for value in firsts]
    pasts = [
        b.place(sdg.MergeOp((TRUE, b.at(value)), domain=domain), past)
        for value, past in zip(firsts, numbers, strict=True)
    ]
    made = [_mixed(b, past, value, domain) for past, value in zip(pasts, values, strict=True)]
    for number, (past, other) in enumerate(zip(pasts, [*made[1:], made[0]], strict=True)):
        found = [(step.inside, Access(other.ssa, step.index)) for step in reads[number]]
        last = b.at(firsts[number]) if found and found[-1][0] != TRUE else Access(other.ssa, now)
        _merge_of(past).set_cases([*found, (TRUE, last)] if not found or found[-1][0] != TRUE else found)
    return made[-1]


def partly_shown(b: Builder) -> Value:
    """A value that is known at its first or last points, of which outputs leave rows out, perhaps those.

    `h = merge {t > 0 : next[t - 1], true : first}; next = tanh(mix(h, v)); output h (where t != 0)`
    """
    value = b.pick(lambda v: not v.is_ragged and len(v.shape) <= 2)
    dims = b.space.order(set(value.dims) | set(b.some_dims()))
    if not dims:
        raise NotHere
    dim, domain, first = b.random.choice(dims), Domain(dims), _first_value(b, value)
    past = b.place(sdg.MergeOp((TRUE, b.at(first)), domain=domain), first.numbers)
    made = _mixed(b, past, value, domain)
    step = b.random.choice([forwards, forwards, backwards])(b, dims, dim)
    _merge_of(past).set_cases([(step.inside, Access(made.ssa, step.index)), (TRUE, b.at(first))])
    past = Value(past.ssa, union([first.numbers, made.numbers]))
    b.values.append(past)
    for shown in b.random.choice([[past], [past], [made], [past, made]]):
        kind = "exact" if shown.is_exact else shown.numbers.rounding.name.lower()
        b.block.add_op(
            sdg.OutputOp(
                f"{kind}_part{len(b.values)}{'_next' * (shown is made)}", b.at(shown), domain=_part(b, dims, dim)
            )
        )
    return made


def _part(b: Builder, dims: tuple[str, ...], dim: str) -> Domain:
    """Some points of the dims: without some first ones, some last ones, one, or those where a condition holds."""
    bound, k = b.space.bound(dim), b.random.randint(0, 3)
    ranges = b.random.choice([(), (), ((dim, Const(k), bound),), ((dim, Const(0), bound - k),)])
    if ranges:
        return Domain(dims, ranges)
    return Domain(dims, (), random_condition(b, dims) if b.chance(0.4) else compare("!=", Sym(dim), k))


def _merge_of(value: Value) -> sdg.MergeOp:
    assert isinstance(value.ssa.owner, sdg.MergeOp)
    return value.ssa.owner


def _closed(b: Builder, value: Value, dims: tuple[str, ...], reads: list[Step]) -> Value:
    domain = Domain(dims)
    type_ = value.type
    first = _first_value(b, value)
    placeholder = b.place(sdg.MergeOp((TRUE, b.at(first)), domain=domain), first.numbers)
    holder = _merge_of(placeholder)
    is_range = any(isinstance(entry, Slice) for step in reads for entry in step.index)
    past, reader = (_folded(b, holder, type_, domain, reads[0].index)) if is_range else (placeholder, None)
    made = _mixed(b, past, value, domain)
    itself = Access(made.ssa, reads[0].index)
    if reader is not None:
        reader.with_access(0, made.ssa, reads[0].index)
        if not holder.results[0].uses:
            holder.detach()
            holder.erase()
        return made
    cases: list[tuple[Cond, Access]] = [(step.inside, Access(itself.value, step.index)) for step in reads]
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
    rounding = ROUNDINGS.get(dtype_name(type_.element_type))
    access = Access(holder.result, index)
    if type_.element_type == dtype("bool"):
        op = sdg.MaxOp(access, [0], domain=domain)
    else:
        op = sdg.SumOp(access, [0], domain=domain)
    return b.place(op, WILD if rounding is None else Numbers(-8, 8, None, rounding)), op


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
    rough = Numbers(-1, 1, None, value.numbers.rounding)
    if b.chance(0.25):
        # exact: a running extreme
        op = b.random.choice([sdg.MaximumOp, sdg.MinimumOp])(left, right, domain=domain)
        return b.add(op, Numbers(-40, 40, None if past.numbers.grid is None else value.numbers.grid, rough.rounding))
    half = b.constant(b.random.choice([0.5, -0.5, 0.25]), tensor(element))
    scaled = b.place(sdg.MulOp(left, b.at(half), domain=domain), rough)
    weights = [v for v in b.values if not v.dims and v.shape == (*value.shape, *value.shape) and v.dtype == value.dtype]
    if weights and len(value.shape) == 1 and b.chance(0.7):
        spec = b.random.choice(["a,ab->b", "a,ba->b"])
        scaled = b.place(sdg.ContractOp(spec, b.at(scaled), b.at(b.random.choice(weights)), domain=domain), rough)
    joined = b.random.choice([sdg.AddOp, sdg.SubOp])(b.at(scaled), right, domain=domain)
    summed = b.place(joined, rough)
    return b.add(b.random.choice([sdg.TanhOp, sdg.SinOp, sdg.TanhOp])(b.at(summed), domain=domain), rough)
