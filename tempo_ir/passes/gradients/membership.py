"""Which readers read a point, as a tensor of booleans: for reads whose readers are no ranges."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from types import MappingProxyType

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    AddOp,
    ArangeOp,
    EqOp,
    FloordivOp,
    GeOp,
    IndexOp,
    LtOp,
    MaximumOp,
    MinimumOp,
    ModOp,
    MulOp,
    SubOp,
    domain_of,
)
from tempo_ir.dialects.sdg.symbols import position
from tempo_ir.index import Binary, Const, Entry, Expr, MinMax, Slice, Space, Sym, free_symbols
from tempo_ir.passes.building import GraphBuilder, full

OPERATORS: Mapping[str, type[AccessOp]] = MappingProxyType(
    {"+": AddOp, "-": SubOp, "*": MulOp, "//": FloordivOp, "%": ModOp, "min": MinimumOp, "max": MaximumOp}
)


def reads_point(build: GraphBuilder, space: Space, dims: tuple[str, ...], read: Access) -> Access:
    """Whether a read, at each point of `dims`, reads the current point of the value: one axis per dim, in order.

    Of `x[t * t]` over (t), at each point `s` of x: `arange(0:T) * arange(0:T) = s`.
    """
    points = {dim: _axis(build, space.bound(dim), len(dims) - number) for number, dim in enumerate(dims)}
    own = domain_of(read.value).dims
    tests: list[Access] = []
    for dim, entry in zip(own, read.index, strict=True):
        tests += _tests(build, space, dim, entry, points)
    shape = tuple(space.bound(dim) for dim in dims)
    return build.broadcast(reduce(build.logical_and, tests), shape)


def _axis(build: GraphBuilder, bound: Expr, rank: int) -> Access:
    """The points of a dim along an axis, with axes of extent 1 behind it up to a rank."""
    numbers = build.build(ArangeOp, values=full(bound), symbols=free_symbols(bound))
    return build.reshape(numbers, (bound, *[1] * (rank - 1)))


def _tests(build: GraphBuilder, space: Space, dim: str, entry: Entry, points: Mapping[str, Access]) -> list[Access]:
    """That one entry reads the current point of `dim`; nothing to test of a range of all points."""
    if entry == full(space.bound(dim)):
        return []
    here = _value(build, Sym(dim), {})
    if not isinstance(entry, Slice):
        return [build.build(EqOp, _value(build, entry, points), here)]
    start, stop = _value(build, entry.start, points), _value(build, entry.stop, points)
    tests = [build.build(GeOp, here, start), build.build(LtOp, here, stop)]
    if entry.step != 1:
        step, zero = (_value(build, Const(number), {}) for number in (entry.step, 0))
        tests.append(build.build(EqOp, build.build(ModOp, build.sub(here, start), step), zero))
    return tests


def _value(build: GraphBuilder, expression: Expr, points: Mapping[str, Access]) -> Access:
    """An index expression, with the dims in `points` along their axes, as i64."""
    if isinstance(expression, Sym) and expression.name in points:
        return points[expression.name]
    if not free_symbols(expression) & points.keys():
        here = position(expression, build.domain.dims)
        return build.build(IndexOp, expression=here, symbols=free_symbols(here))
    match expression:
        case Binary(op, lhs, rhs):
            return build.build(OPERATORS[op], _value(build, lhs, points), _value(build, rhs, points))
        case MinMax(op, args):
            return reduce(partial(build.build, OPERATORS[op]), [_value(build, arg, points) for arg in args])
        case _:
            raise AssertionError(f"{expression} names a dim that is no axis")
