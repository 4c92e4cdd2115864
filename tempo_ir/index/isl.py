# pyright: basic
"""The bridge to isl, the integer set library: sets, maps, proofs. The only module that touches islpy.

Rules that keep isl sound here:

- every object of a thread belongs to that thread's one context (`context()`): mixed contexts answer silently wrong;
- questions are asked on text, and memoised on it and on what it says, in a bounded table per thread;
- what is no affine expression of isl's has a form of its own in the text, or none (`isl_text`).

Pieces of what isl finds come back as `Expr`, `Cond` and `Index`, checked to be equal to it; where they cannot be, the
functions raise `Inexact`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar, cast

import islpy
from islpy import (
    AstBuild,
    AstExpr,
    AstNode,
    Error,
    Id,
    Map,
    MultiUnionPwAff,
    PwAff,
    Schedule,
    ScheduleConstraints,
    ScheduleNode,
    Set,
    UnionMap,
    UnionPwAff,
    UnionSet,
    UnionSetList,
    ast_expr_op_type,
    ast_expr_type,
    ast_loop_type,
    ast_node_type,
    schedule_node_type,
)

from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import (
    FALSE,
    TRUE,
    Binary,
    Cond,
    Const,
    Expr,
    Index,
    IndexExpressionError,
    Sym,
    compare,
    conj,
    disj,
    evaluate,
    free_symbols,
    maximum,
    minimum,
    negate,
)
from tempo_ir.index.isl_rows import Row, Tuple, rows_of
from tempo_ir.index.isl_text import NotAffine, Writer, decode, encode, entry_text, tuple_text
from tempo_ir.index.rules import NO_FACTS, Terms, at_least_zero, from_terms, terms

__all__ = [
    "AstBuild",
    "AstExpr",
    "AstNode",
    "Id",
    "Inexact",
    "Map",
    "MultiUnionPwAff",
    "NotAffine",
    "PwAff",
    "Schedule",
    "ScheduleConstraints",
    "ScheduleNode",
    "Set",
    "UnionMap",
    "UnionPwAff",
    "UnionSet",
    "UnionSetList",
    "Writer",
    "ast_expr_op_type",
    "ast_expr_type",
    "ast_loop_type",
    "ast_node_type",
    "decode",
    "encode",
    "entry_text",
    "schedule_node_type",
    "tuple_text",
]

IslError = Error
MEMO_ENTRIES = 4096
LARGE_BOUND = 2**20
"""A size at which upper bounds are compared: of those that hold, one that does not grow is wanted."""
DIM = islpy.dim_type
Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")
Pieces = TypeVar("Pieces", Map, Set, PwAff, UnionMap)
Relation = TypeVar("Relation", Map, Set)


class Inexact(IndexExpressionError):
    """What isl found has no exact form as one domain, index or expression."""


class _PerThread(threading.local):
    """The context of a thread and what it has been asked before; most recently used entries last."""

    def __init__(self) -> None:
        self.context = islpy.Context()
        self.context.set_ast_build_detect_min_max(1)
        self.memo: OrderedDict[object, object] = OrderedDict()
        self.numbers = {value: islpy.Val(value, self.context) for value in range(-8, 9)}


_PER_THREAD = _PerThread()


def context() -> islpy.Context:
    """The one isl context of the calling thread; every isl object must be made in it."""
    return _PER_THREAD.context


def forget() -> None:
    """Forget the answers of the calling thread. Under a limit (`index.limits`) it counts what was asked before: what
    begins with nothing known finds the same each time."""
    _PER_THREAD.memo.clear()


def _memoised(key: tuple[object, ...], compute: Callable[[], Value]) -> Value:
    memo = _PER_THREAD.memo
    if key in memo:
        memo.move_to_end(key)
        return cast("Value", memo[key])
    value = compute()
    memo[key] = value
    if len(memo) > MEMO_ENTRIES:
        memo.popitem(last=False)
    return value


def _asked_once(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """A question whose answers are kept by what it is asked of, so that its text is not even written again."""

    @wraps(function)
    def asked(*given: Arguments.args, **named: Arguments.kwargs) -> Value:
        return _memoised((function, given, *named.items()), lambda: function(*given, **named))

    return asked


def read_set(text: str) -> Set:
    """The set that a text in isl's notation describes."""
    return _memoised(("set", text), lambda: _read(Set, text))


def read_map(text: str) -> Map:
    """The map that a text in isl's notation describes."""
    return _memoised(("map", text), lambda: _read(Map, text))


def _read(kind: type[Relation], text: str) -> Relation:
    if text.count("!=") == 1:
        below, above = (_of_rows(text.replace("!=", sign)) for sign in "<>")
        if isinstance(below, kind) and isinstance(above, kind):
            return below.union(above)
    found = _of_rows(text)
    return found if isinstance(found, kind) else kind.read_from_str(context(), text)


def _of_rows(text: str) -> Set | Map | None:
    """The set or map of a text that is linear comparisons (`isl_rows`); None of another one."""
    rows = rows_of(text)
    if rows is None:
        return None
    space = _space(rows.params, rows.source, rows.target, rows.exists)
    ends, width = (DIM.cst, DIM.param), len(rows.target.dims)
    matrices = _matrix(rows.equalities, rows.columns), _matrix(rows.inequalities, rows.columns)
    if rows.source is None:
        points = islpy.BasicSet.from_constraint_matrices(space, *matrices, *ends, DIM.set, DIM.div).to_set()
        points = points.project_out(DIM.set, width, rows.exists) if rows.exists else points
        return points.set_tuple_name(rows.target.name) if rows.target.name else points
    pairs = islpy.BasicMap.from_constraint_matrices(space, *matrices, *ends, DIM.in_, DIM.out, DIM.div).to_map()
    pairs = pairs.project_out(DIM.out, width, rows.exists) if rows.exists else pairs
    for side, end in ((DIM.in_, rows.source), (DIM.out, rows.target)):
        pairs = pairs.set_tuple_name(side, end.name) if end.name else pairs
    return pairs


@_asked_once
def _space(params: Sequence[str], source: Tuple | None, target: Tuple, more: int) -> islpy.Space:
    """Parameters and dims by name, and `more` dims behind those of the target."""
    space = islpy.Space.params_alloc(context(), len(params))
    for position, name in enumerate(params):
        space = space.set_dim_name(DIM.param, position, name)
    space = space.set_from_params() if source is None else space.set_from_params().map_from_set()
    for side, end in ((DIM.in_, source), (DIM.out, target)):
        for position, name in enumerate(end.dims if end else ()):
            space = space.add_dims(side, 1)
            space = space.set_dim_name(side, position, name) if name else space
    return space.add_dims(DIM.out, more) if more else space


def _matrix(rows: Sequence[Row], columns: int) -> islpy.Mat:
    matrix, numbers = islpy.Mat.alloc(context(), 0, columns).add_zero_rows(len(rows)), _PER_THREAD.numbers
    for position, row in enumerate(rows):
        for column, value in row:
            number = numbers.get(value) or islpy.Val(value, context())
            matrix = matrix.set_element_val(position, column, number)
    return matrix


# Sets and maps


def coalesced(pieces: Pieces) -> Pieces:
    """In fewer pieces; as it is where isl finds a fault in its own search for them ("original tableau ...")."""
    try:
        return pieces.coalesce()
    except IslError as error:
        # anything else, as the end of the operations that a question may take, is for the caller
        if not is_own_fault(error):
            raise
        return pieces


def is_own_fault(error: IslError) -> bool:
    """Whether isl reports a fault of its own search, for fewer pieces or for the least point of a set."""
    return any(fault in str(error) for fault in ("original tableau", "affine expression involves"))


@_asked_once
def params_set(space: Space) -> Set:
    """The admissible bounds: none negative, and the program's `where`."""
    writer = Writer((), space.params)
    held = writer.cond(space.where)
    return read_set(writer.declared(f": {held} and {writer.natural()}"))


@_asked_once
def domain_set(space: Space, domain: Domain, tuple_name: str = "") -> Set:
    """The points of a domain: `[T] -> { h[t] : 0 <= t < T and T >= 0 }`.

    Raises:
        NotAffine: a bound or condition multiplies dims.
    """
    writer = Writer(domain.dims, space.params)
    held = writer.cond(domain.condition(space))
    dims = [encode(dim) for dim in domain.dims]
    return read_set(writer.declared(f"{tuple_text(tuple_name, dims)} : {held} and {writer.natural()}"))


def condition_set(space: Space, dims: Sequence[str], cond: Cond, tuple_name: str = "") -> Set:
    """The points over `dims`, whether or not in any domain, at which a condition holds."""
    writer = Writer(dims, space.params)
    held = writer.cond(cond)
    return read_set(writer.declared(f"{tuple_text(tuple_name, [encode(dim) for dim in dims])} : {held}"))


@_asked_once
def access_map(
    space: Space,
    consumer: Domain,
    index: Index,
    producer: Domain,
    consumer_name: str = "",
    producer_name: str = "",
) -> Map:
    """The points of the producer that each point of the consumer reads: `{ y[t] -> x[t' = t - 1] : 1 <= t < T }`.

    Within the consumer's domain; what is read may lie outside the producer's.

    Raises:
        IndexExpressionError: the index has not one entry per dim of the producer.
        NotAffine: an entry multiplies dims.
    """
    if len(index) != len(producer.dims):
        raise IndexExpressionError(
            f"the index [{', '.join(map(str, index))}] has {len(index)} entries, "
            f"the value read varies over ({', '.join(producer.dims)})"
        )
    writer = Writer(consumer.dims, space.params)
    held = [writer.cond(consumer.condition(space))]
    outputs = [f"{encode(dim)}'" for dim in producer.dims]
    held += [entry_text(writer, entry, output) for entry, output in zip(index, outputs, strict=True)]
    source = tuple_text(consumer_name, [encode(dim) for dim in consumer.dims])
    body = f"{source} -> {tuple_text(producer_name, outputs)} : {' and '.join(held)} and {writer.natural()}"
    relation = read_map(writer.declared(body))
    for position, dim in enumerate(producer.dims):
        relation = relation.set_dim_name(DIM.out, position, encode(dim))
    return relation


def pw_aff(space: Space, dims: Sequence[str], value: Expr) -> PwAff:
    """An expression as isl's piecewise affine function of `dims`. Raises NotAffine."""
    writer = Writer(dims, space.params)
    body = f"{tuple_text('', [encode(dim) for dim in dims])} -> [({writer.expr(value)})]"
    text = writer.declared(body)
    return _memoised(("function", text), lambda: PwAff.read_from_str(context(), text))


# Questions


@_asked_once
def prove(cond: Cond, space: Space, domain: Domain | None = None) -> bool:
    """Whether a condition holds at every point of the domain, for all admissible bounds; False where unknown."""
    if cond == TRUE:
        return True
    dims = domain.dims if domain else ()
    writer = Writer(dims, space.params)
    try:
        held = writer.cond((domain or Domain()).condition(space))
        fails = writer.cond(negate(cond))
    except NotAffine:
        return False
    body = f"{tuple_text('', map(encode, dims))} : ({held}) and ({fails}) and {writer.natural()}"
    return read_set(writer.declared(body)).is_empty()


def equal(left: Expr, right: Expr, space: Space, domain: Domain | None = None) -> bool:
    """Whether two expressions are proved equal at every point of the domain, for all admissible bounds."""
    difference = left - right
    if isinstance(difference, Const):
        return difference.value == 0
    return prove(compare("=", left, right), space, domain)


def smallest_point(points: Set) -> dict[str, int] | None:
    """A point of a set, with its bounds: the one with the least bounds, then the least dims; None of an empty set.

    For dims and bounds without a lower end any point is taken, and where isl itself fails to find the least.
    """
    if points.is_empty():
        return None
    params = points.dim(DIM.param)
    flat = points.reset_tuple_id().move_dims(DIM.set, 0, DIM.param, 0, params) if params else points
    names = dim_names(flat)
    bounded = all(flat.dim_has_lower_bound(DIM.set, position) for position in range(len(names)))
    try:
        point = (flat.lexmin() if bounded else flat).sample_point()
    except IslError as error:
        if not is_own_fault(error):
            raise
        point = flat.sample_point()
    values = [point.get_coordinate_val(DIM.set, position).to_python() for position in range(len(names))]
    return dict(zip(names, values, strict=True))


def counterexample(points: Set) -> str | None:
    """The text of one point of a set: `t = 0 (T = 1)`; None of an empty set."""
    point = smallest_point(points)
    if point is None:
        return None
    dims = dim_names(points)
    inside = ", ".join(f"{name} = {point[name]}" for name in dims)
    bounds = ", ".join(f"{name} = {value}" for name, value in point.items() if name not in dims)
    return f"{inside} ({bounds})" if inside and bounds else inside or bounds or "any point"


# From isl back to expressions


def affine(value: islpy.Aff) -> Expr:
    """The expression of an affine function with integer values; `floor((2*s)/4)` may appear as a quotient."""
    denominator = value.get_denominator_val().to_python()
    return _numerator(value, denominator) // denominator


def _numerator(value: islpy.Aff, denominator: int) -> Expr:
    def scaled(coefficient: islpy.Val) -> int:
        return coefficient.mul(islpy.Val(denominator, context())).to_python()

    result: Terms = {(): scaled(value.get_constant_val())}
    total = from_terms({monomial: k for monomial, k in result.items() if k})
    for kind in (DIM.param, DIM.in_):
        for position in range(value.dim(kind)):
            coefficient = scaled(value.get_coefficient_val(kind, position))
            if coefficient:
                total = total + _name(value, kind, position) * coefficient
    for position in range(value.dim(DIM.div)):
        coefficient = scaled(value.get_coefficient_val(DIM.div, position))
        if coefficient:
            total = total + affine(value.get_div(position)) * coefficient
    return total


def pieces(function: PwAff) -> list[tuple[Set, Expr]]:
    """The domain and the expression of each piece; several pieces with one expression are one."""
    found: dict[Expr, Set] = {}
    for points, value in coalesced(function).get_pieces():
        expression = affine(value)
        found[expression] = found[expression].union(points) if expression in found else points
    return [(coalesced(points), value) for value, points in found.items()]


def expression(function: PwAff, within: Set | None = None) -> Expr:
    """One expression, with `min` and `max` where the function has pieces, equal to it on its domain (and `within`).

    Raises:
        Inexact: no such combination of the pieces equals the function.
    """
    domain = function.domain() if within is None else function.domain().intersect(within)
    narrowed = [function.gist(domain)] if within is not None else []
    for version in [*narrowed, function]:
        for candidate in _combinations([value for _, value in pieces(version)]):
            if same_function(candidate, function, domain):
                return candidate
    raise Inexact(f"no single expression equals {function}")


def _combinations(values: Sequence[Expr]) -> Iterable[Expr]:
    """Ways to join pieces: one alone, the extremes of all, then `max(rest, min(some))` and `min(rest, max(some))`."""
    if not values:  # of a function that is defined nowhere
        return
    if len(values) == 1:
        yield values[0]
        return
    yield minimum(*values)
    yield maximum(*values)
    if len(values) > 4:
        return
    for mask in range(1, 2 ** len(values) - 1):
        some = [value for position, value in enumerate(values) if mask >> position & 1]
        rest = [value for position, value in enumerate(values) if not mask >> position & 1]
        if len(some) > 1:
            yield maximum(*rest, minimum(*some))
            yield minimum(*rest, maximum(*some))


def same_function(candidate: Expr, function: PwAff, domain: Set) -> bool:
    """Whether an expression is equal to a function in the whole domain."""
    return _compares(candidate, function, domain, "eq_set")


def _compares(candidate: Expr, function: PwAff, domain: Set, relation: str) -> bool:
    """Whether `function` is equal to (`eq_set`), or at most (`le_set`), `candidate` in the whole domain."""
    dims = dim_names(domain)
    writer = Writer(dims, ())
    text = f"{tuple_text('', [encode(dim) for dim in dims])} -> [({writer.expr(candidate)})]"
    rebuilt = PwAff.read_from_str(context(), writer.declared(text))
    holds: Set = getattr(function.reset_tuple_id(DIM.in_), relation)(rebuilt)
    return domain.reset_tuple_id().is_subset(holds)


def dim_names(points: Set) -> list[str]:
    """The names of the dims of a set."""
    return [str(_name(points, DIM.set, position)) for position in range(points.dim(DIM.set))]


def _name(owner: Set | islpy.Aff, kind: islpy.dim_type, position: int) -> Expr:
    """The symbol of a dim or bound of an isl object; every object made here has names."""
    name = owner.get_dim_name(kind, position)
    if name is None:
        raise Inexact(f"a dim of {owner} has no name")
    return decode(name)


def condition(points: Set, context_set: Set | None = None) -> Cond:
    """The condition that describes a set, given that `context_set` holds: `t >= 1 and t < T - 1`."""
    if context_set is not None:
        points = points.gist(context_set)
    points = coalesced(points)
    if points.is_empty():
        return FALSE
    cases = [_basic_condition(basic) for basic in points.compute_divs().get_basic_sets()]
    return disj(*cases)


def _basic_condition(basic: islpy.BasicSet) -> Cond:
    dims = dim_names(Set.from_basic_set(basic))
    held = [_constraint(constraint, dims) for constraint in basic.get_constraints()]
    return conj(*sorted(held, key=lambda cond: str(cond)))


def _constraint(constraint: islpy.Constraint, dims: Sequence[str]) -> Cond:
    """`t < T` for `-1 + T - t >= 0`: the first dim that stands alone goes to the left."""
    value = affine(constraint.get_aff())
    match value:
        case Binary("%", inner, Const(divisor)) | Binary("*", _, Binary("%", inner, Const(divisor))):
            if constraint.is_equality():
                offset = terms(inner).get((), 0)
                return compare("=", (inner - offset) % divisor, -offset % divisor)
        case _:
            pass
    if not constraint.is_equality() and at_least_zero(value, NO_FACTS):
        return TRUE
    polynomial = terms(value)
    order = [*dims, *sorted(free_symbols(value) - set(dims))]
    for name in order:
        coefficient = polynomial.get((Sym(name),), 0)
        if abs(coefficient) == 1:
            rest = from_terms({monomial: k for monomial, k in polynomial.items() if monomial != (Sym(name),)})
            if constraint.is_equality():
                return compare("=", Sym(name), rest * -coefficient)
            return compare(">=", Sym(name), -rest) if coefficient > 0 else _at_most(Sym(name), rest)
    return compare("=" if constraint.is_equality() else ">=", value, 0)


def _at_most(symbol: Expr, limit: Expr) -> Cond:
    """`t < T` rather than `t <= T - 1`."""
    if not isinstance(limit, Const) and terms(limit).get((), 0) < 0:
        return compare("<", symbol, limit + 1)
    return compare("<=", symbol, limit)


def set_to_domain(points: Set, dims: Sequence[str], space: Space) -> Domain:
    """The domain that has exactly these points: `(t: P - 1 to T - 1)` for `{ [t] : P - 1 <= t < T - 1 }`.

    Ranges where each dim's is a function of the bounds and the outer dims, the rest in `where`.

    Raises:
        Inexact: the set has no such form.
    """
    points = points.reset_tuple_id()
    for position, dim in enumerate(dims):
        points = points.set_dim_name(DIM.set, position, encode(dim))
    domain = Domain(tuple(dims))
    whole = domain_set(space, domain)
    points = coalesced(points.intersect(whole))
    if points.is_equal(whole):
        return domain
    narrowed = Domain(tuple(dims), _ranges(points, dims, space))
    if domain_set(space, narrowed).is_equal(points):
        return narrowed
    both = Domain(tuple(dims), narrowed.ranges, condition(points, domain_set(space, narrowed)))
    for candidate in sorted((both, Domain(tuple(dims), (), condition(points, whole))), key=lambda it: len(str(it))):
        if domain_set(space, candidate).is_equal(points):
            return candidate
    raise Inexact(f"no domain over ({', '.join(dims)}) has exactly the points {points}")


def _ranges(points: Set, dims: Sequence[str], space: Space) -> tuple[tuple[str, Expr, Expr], ...]:
    """For each dim the least and greatest value at a point of the outer dims, where narrower than declared."""
    ranges: list[tuple[str, Expr, Expr]] = []
    for position, dim in enumerate(dims):
        shadow = points.project_out(DIM.set, position + 1, len(dims) - position - 1)
        bounds = _bounds_of_last(shadow)
        if bounds is not None and bounds != (Const(0), space.bound(dim)):
            ranges.append((dim, *bounds))
    return tuple(ranges)


def _bounds_of_last(shadow: Set) -> tuple[Expr, Expr] | None:
    """First value and end of the last dim as expressions over the others; None where they are none."""
    position = shadow.dim(DIM.set) - 1
    relation = Map.from_range(shadow).move_dims(DIM.in_, 0, DIM.out, 0, position)
    try:
        return expression(relation.dim_min(0)), expression(relation.dim_max(0)) + 1
    except Inexact:
        return None


def lower_bound(value: Expr, space: Space, domain: Domain) -> Expr:
    """The least value of an expression over the domain, an expression over the bounds. Raises Inexact, NotAffine."""
    return expression(_extreme(value, space, domain, "min"))


def upper_bound(value: Expr, space: Space, domain: Domain) -> Expr:
    """The greatest value of an expression over the domain, an expression over the bounds. Raises Inexact, NotAffine."""
    return expression(_extreme(value, space, domain, "max"))


def ceiling(value: Expr, space: Space, domain: Domain) -> Expr:
    """An expression over the bounds that is never below `value` in the domain: its greatest value, where one expression
    says it, else one that is least where all bounds are large. Raises Inexact, NotAffine."""
    try:
        return upper_bound(value, space, domain)
    except Inexact:
        greatest = _extreme(value, space, domain, "max")
    values = [expression for _, expression in pieces(greatest)]
    # each piece is one of the values, so that the greatest of them all will do
    fitting = [each for each in _combinations(values) if _compares(each, greatest, greatest.domain(), "le_set")]
    alone = [each for each in values if _compares(each, greatest, greatest.domain(), "le_set")]
    fitting += [minimum(*alone)] if alone else []
    candidates = (*fitting, maximum(*values))
    large = dict.fromkeys({name for each in candidates for name in free_symbols(each)}, LARGE_BOUND)
    return min(candidates, key=lambda each: evaluate(each, large))


def _extreme(value: Expr, space: Space, domain: Domain, which: str) -> PwAff:
    values = Map.from_pw_aff(pw_aff(space, domain.dims, value)).intersect_domain(domain_set(space, domain)).range()
    values = coalesced(values)  # an empty part would count as one without bounds
    bounded = values.dim_has_lower_bound(DIM.set, 0) if which == "min" else values.dim_has_upper_bound(DIM.set, 0)
    if not bounded and not values.is_empty():
        raise Inexact(f"`{value}` has no {which}imum over {domain}")
    if values.is_empty():
        raise Inexact(f"`{value}` has no {which}imum: the domain {domain} is empty for all bounds")
    relation = Map.from_range(values)
    return relation.dim_min(0) if which == "min" else relation.dim_max(0)
