"""Declarations of dims and bounds (`Space`) and the sets of points that ops vary over (`Domain`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, overload

from tempo_ir.index.expr import (
    TRUE,
    Compare,
    Cond,
    Const,
    Entry,
    Expr,
    IndexExpressionError,
    Slice,
    Sym,
    compare,
    conj,
    evaluate,
    free_symbols,
    substitute,
)
from tempo_ir.index.hashing import HashedOnce
from tempo_ir.index.parser import Cursor, TextCursor, parse_cond, parse_expr, parse_list, parse_name
from tempo_ir.index.rules import Facts, simplify

Built = TypeVar("Built", "Space", "Domain")


@dataclass(frozen=True, slots=True)
class Space(HashedOnce):
    """The dims of a program, outer ones first, each `0 <= dim < bound`, and what is known of the bounds.

    Written `dims(i: I, t: T, e: 4) where 1 <= P <= T`.

    Raises:
        IndexExpressionError: a dim is declared twice, or its bound mentions a dim.
    """

    dims: tuple[tuple[str, Expr], ...] = ()
    where: Cond = TRUE

    __hash__ = HashedOnce.__hash__

    def __post_init__(self) -> None:
        names = self.names
        for name, bound in self.dims:
            if names.count(name) > 1:
                raise IndexExpressionError(f"the dim `{name}` is declared twice")
            if isinstance(bound, Const) and bound.value < 0:
                raise IndexExpressionError(f"the dim `{name}` has the bound {bound}: a bound is 0 or more")
            if dims := free_symbols(bound) & set(names):
                raise IndexExpressionError(
                    f"the bound `{bound}` of the dim `{name}` mentions the dim `{min(dims)}`: bounds depend on no dim"
                )
        if dims := free_symbols(self.where) & set(names):
            raise IndexExpressionError(f"`where {self.where}` mentions the dim `{min(dims)}`: it is about bounds only")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dims, in order."""
        return tuple(name for name, _ in self.dims)

    @property
    def params(self) -> tuple[str, ...]:
        """The bounds that a caller gives: the symbols of the declared bounds and of `where`, by first appearance."""
        return _params(self)

    def bound(self, name: str) -> Expr:
        """The declared bound of a dim: `T` of `t`.

        Raises:
            IndexExpressionError: there is no such dim.
        """
        for dim, bound in self.dims:
            if dim == name:
                return bound
        raise IndexExpressionError(f"`{name}` is no dim of this program; it declares {', '.join(self.names) or 'none'}")

    def order(self, dims: frozenset[str] | set[str]) -> tuple[str, ...]:
        """The given dims in declared order; other names are left out."""
        return tuple(name for name in self.names if name in dims)

    def __str__(self) -> str:
        text = f"dims({', '.join(f'{name}: {bound}' for name, bound in self.dims)})"
        return text if self.where == TRUE else f"{text} where {self.where}"


@dataclass(frozen=True, slots=True)
class Domain(HashedOnce):
    """The points an op varies over: ordered dims, ranges where they are narrower than declared, a condition.

    `ranges` holds `(dim, first, end)` with `first <= dim < end`; bounds may mention outer dims. Written `(i, t)`,
    `(t: 1 to T)`, `(i, t where t < i)`, `()`.

    Raises:
        IndexExpressionError: a dim is named twice, or a range is of no dim of the domain.
    """

    dims: tuple[str, ...] = ()
    ranges: tuple[tuple[str, Expr, Expr], ...] = ()
    where: Cond = TRUE

    __hash__ = HashedOnce.__hash__

    def __post_init__(self) -> None:
        if len(set(self.dims)) != len(self.dims):
            raise IndexExpressionError(f"a dim is named twice in the domain ({', '.join(self.dims)})")
        for name, _, _ in self.ranges:
            if name not in self.dims:
                raise IndexExpressionError(f"the range of `{name}` is not of a dim of ({', '.join(self.dims)})")

    def lower(self, name: str, space: Space) -> Expr:
        """The first value of a dim: `1` for `(t: 1 to T)`, `0` where nothing is said."""
        return self._range(name, space)[0]

    def upper(self, name: str, space: Space) -> Expr:
        """One past the last value of a dim: the declared bound where nothing narrower is said."""
        return self._range(name, space)[1]

    def _range(self, name: str, space: Space) -> tuple[Expr, Expr]:
        for dim, first, end in self.ranges:
            if dim == name:
                return first, end
        return Const(0), space.bound(name)

    def condition(self, space: Space) -> Cond:
        """What holds at every point: the range of each dim, `where`, and the program's own `where`."""
        return _condition(self, space)

    def facts(self, space: Space) -> Facts:
        """Least and greatest value of each dim, for `simplify`."""
        ranges = tuple((name, *self._range(name, space)) for name in self.dims)
        return Facts(tuple((name, first, end - 1) for name, first, end in ranges), nonnegative=True)

    @overload
    def simplify(self, value: Expr, space: Space) -> Expr: ...
    @overload
    def simplify(self, value: Slice, space: Space) -> Slice: ...
    @overload
    def simplify(self, value: Entry, space: Space) -> Entry: ...
    @overload
    def simplify(self, value: Cond, space: Space) -> Cond: ...

    def simplify(self, value: Entry | Cond, space: Space) -> Entry | Cond:
        """`value` simplified for the points of the domain: in `(t)`, `max(0, T - t)` is `T - t`."""
        return simplify(value, self.facts(space))

    def points(self, space: Space, params: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The points for the given bounds, in lexicographic order; each maps the dims to integers.

        Raises:
            IndexExpressionError: a bound has no value.
        """
        yield from self._points_from(0, {}, space, params)

    def _points_from(
        self, position: int, outer: dict[str, int], space: Space, params: Mapping[str, int]
    ) -> Iterator[dict[str, int]]:
        known = {**params, **outer}
        if position == len(self.dims):
            if evaluate(self.where, known):
                yield outer
            return
        name = self.dims[position]
        first, end = self._range(name, space)
        start = max(0, evaluate(first, known))
        stop = min(evaluate(end, known), evaluate(space.bound(name), params))
        for value in range(start, stop):
            yield from self._points_from(position + 1, {**outer, name: value}, space, params)

    def rename(self, names: Mapping[str, str]) -> Domain:
        """The same points under other names of dims."""
        symbols = {old: Sym(new) for old, new in names.items()}
        return Domain(
            tuple(names.get(dim, dim) for dim in self.dims),
            tuple((names.get(d, d), substitute(a, symbols), substitute(b, symbols)) for d, a, b in self.ranges),
            substitute(self.where, symbols),
        )

    def __str__(self) -> str:
        narrower = {name: f"{name}: {first} to {end}" for name, first, end in self.ranges}
        text = ", ".join(narrower.get(name, name) for name in self.dims)
        if self.where == TRUE:
            return f"({text})"
        return f"({text} where {self.where})" if text else f"(where {self.where})"


@lru_cache(maxsize=4096)
def _params(space: Space) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for _, bound in space.dims:
        found.update(dict.fromkeys(sorted(free_symbols(bound))))
    found.update(dict.fromkeys(sorted(free_symbols(space.where))))
    return tuple(found)


@lru_cache(maxsize=4096)
def _condition(domain: Domain, space: Space) -> Cond:
    held: list[Cond] = [space.where]
    for name in domain.dims:
        first, end = domain.lower(name, space), domain.upper(name, space)
        held.append(conj(Compare("<=", first, Sym(name)), Compare("<", Sym(name), end)))
        if any(dim == name for dim, _, _ in domain.ranges):
            held.append(conj(compare("<=", 0, Sym(name)), Compare("<", Sym(name), space.bound(name))))
    return conj(*held, domain.where)


def parse_space(cursor: Cursor) -> Space:
    """`dims(i: I, t: T) where T >= 1`; both parts may be missing."""
    dims: list[tuple[str, Expr]] = []
    if cursor.parse_optional_keyword("dims") is not None:
        cursor.parse_punctuation("(")
        dims = parse_list(cursor, ")", _parse_declaration)
    where = parse_cond(cursor) if cursor.parse_optional_keyword("where") is not None else TRUE
    return _valid(cursor, Space, tuple(dims), where)


def _parse_declaration(cursor: Cursor) -> tuple[str, Expr]:
    name = parse_name(cursor)
    cursor.parse_punctuation(":")
    return name, parse_expr(cursor)


def parse_domain(cursor: Cursor) -> Domain:
    """`(i, t: 1 to T where t < i)`, in parentheses."""
    cursor.parse_punctuation("(")
    dims: list[str] = []
    ranges: list[tuple[str, Expr, Expr]] = []
    where: Cond = TRUE
    while True:
        if cursor.parse_optional_keyword("where") is not None:
            where = parse_cond(cursor)
        elif not dims and cursor.parse_optional_punctuation(")") is not None:
            return Domain()
        else:
            dims.append(_parse_dim(cursor, ranges))
            if cursor.parse_optional_punctuation(",") is not None:
                continue
            if cursor.parse_optional_keyword("where") is not None:
                where = parse_cond(cursor)
        cursor.parse_punctuation(")")
        return _valid(cursor, Domain, tuple(dims), tuple(ranges), where)


def _parse_dim(cursor: Cursor, ranges: list[tuple[str, Expr, Expr]]) -> str:
    name = parse_name(cursor)
    if cursor.parse_optional_punctuation(":") is not None:
        first = parse_expr(cursor)
        if cursor.parse_optional_keyword("to") is None:
            cursor.raise_error(f"expected 'to' and the end of the range of `{name}`, as in `{name}: 1 to T`")
        ranges.append((name, first, parse_expr(cursor)))
    return name


def _valid(cursor: Cursor, build: type[Built], *parts: object) -> Built:
    """Build, and report what is wrong with it at the cursor."""
    try:
        return build(*parts)  # pyright: ignore[reportArgumentType]
    except IndexExpressionError as error:
        cursor.raise_error(str(error))


def domain(text: str) -> Domain:
    """`domain("(t: 1 to T)")`. Raises IndexExpressionError where the text is no domain."""
    cursor = TextCursor(text)
    value = parse_domain(cursor)
    cursor.expect_end()
    return value


def space(text: str) -> Space:
    """`space("dims(t: T) where T >= 1")`. Raises IndexExpressionError where the text declares no dims."""
    cursor = TextCursor(text)
    value = parse_space(cursor)
    cursor.expect_end()
    return value
