"""The parser of index expressions, over xDSL's parser or over plain text.

    entry  ::= sum (`:` sum (`:` integer)?)?
    sum    ::= term ((`+` | `-`) term)*
    term   ::= factor ((`*` | `floordiv` | `mod`) factor)*
    factor ::= integer | name | `-` factor | (`min` | `max`) `(` sum, ... `)` | `(` sum `)`
    cond   ::= both (`or` both)*         both ::= single (`and` single)*
    single ::= `not` single | `true` | `false` | `(` cond `)` | sum relation sum ((`<` | `<=`) sum)*

Only ascending comparisons chain (`1 <= P <= T`), so that the `>` that closes an attribute may follow a condition.
Plain text may also use `//`, `%`, `!=` and `==`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Literal, NoReturn, Protocol, TypeAlias, TypeVar

from tempo_ir.index.expr import (
    FALSE,
    RESERVED_WORDS,
    TRUE,
    And,
    Binary,
    Compare,
    Cond,
    Const,
    Entry,
    Expr,
    Index,
    IndexExpressionError,
    MinMax,
    Or,
    Relation,
    Slice,
    Sym,
    Truth,
    compare,
    conj,
    disj,
    maximum,
    minimum,
    negate,
)

Punctuation: TypeAlias = Literal["+", "-", "*", "/", "(", ")", "[", "]", "<", ">", "=", ":", ","]
Parsed = TypeVar("Parsed")


class Cursor(Protocol):
    """A place in a sequence of tokens; xDSL's parsers are cursors."""

    def parse_optional_punctuation(self, punctuation: Punctuation, /) -> str | None: ...
    def parse_punctuation(self, punctuation: Punctuation, /) -> str: ...
    def parse_optional_keyword(self, keyword: str, /) -> str | None: ...
    def parse_optional_identifier(self) -> str | None: ...
    def parse_identifier(self) -> str: ...
    def parse_optional_integer(self, allow_boolean: bool = True, allow_negative: bool = True) -> int | None: ...
    def raise_error(self, msg: str, /) -> NoReturn: ...


class TextCursor:
    """A cursor over plain text, `TextCursor("t // 2")`, with Python's spellings beside those of the IR."""

    _TOKEN = re.compile(r"\s*(?://|!=|==|[A-Za-z_][A-Za-z0-9_$.]*|[0-9]+|\S)")
    _SAME_AS: ClassVar = {"//": "floordiv", "%": "mod", "!=": "ne", "==": "="}

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match.group().strip() for match in self._TOKEN.finditer(text)]
        self._position = 0

    @property
    def _current(self) -> str:
        token = self._tokens[self._position] if self._position < len(self._tokens) else ""
        return self._SAME_AS.get(token, token)

    def _take(self) -> str:
        token = self._current
        self._position += 1
        return token

    def parse_optional_punctuation(self, punctuation: str, /) -> str | None:
        return self._take() if self._current == punctuation else None

    def parse_punctuation(self, punctuation: str, /) -> str:
        if self.parse_optional_punctuation(punctuation) is None:
            self.raise_error(f"expected '{punctuation}'")
        return punctuation

    def parse_optional_keyword(self, keyword: str, /) -> str | None:
        return self._take() if self._current == keyword else None

    def parse_optional_identifier(self) -> str | None:
        return self._take() if re.match(r"[A-Za-z_]", self._current) else None

    def parse_identifier(self) -> str:
        name = self.parse_optional_identifier()
        return name if name is not None else self.raise_error("expected a name")

    def parse_optional_integer(self, allow_boolean: bool = True, allow_negative: bool = True) -> int | None:
        return int(self._take()) if self._current.isdecimal() else None

    def raise_error(self, msg: str, /) -> NoReturn:
        found = f"at '{self._current}'" if self._current else "at the end"
        raise IndexExpressionError(f"{msg}, {found} of `{self._text}`")

    def expect_end(self) -> None:
        """Raise if text is left."""
        if self._current:
            self.raise_error("expected nothing more")


def _integer(cursor: Cursor) -> int | None:
    return cursor.parse_optional_integer(allow_boolean=False, allow_negative=False)


def parse_name(cursor: Cursor) -> str:
    """A name of a dim or bound; the words of the grammar are refused."""
    name = cursor.parse_identifier()
    if name in RESERVED_WORDS:
        cursor.raise_error(f"'{name}' is a word of index expressions and cannot name a dim or a bound")
    return name


def parse_list(cursor: Cursor, close: Punctuation, parse: Callable[[Cursor], Parsed]) -> list[Parsed]:
    """Elements separated by commas up to `close`; the opening bracket has been read."""
    if cursor.parse_optional_punctuation(close) is not None:
        return []
    elements = [parse(cursor)]
    while cursor.parse_optional_punctuation(",") is not None:
        elements.append(parse(cursor))
    cursor.parse_punctuation(close)
    return elements


def parse_expr(cursor: Cursor) -> Expr:
    """An integer expression, simplified: `t - 1`."""
    return _as_expr(cursor, _parse_sum(cursor))


def parse_entry(cursor: Cursor) -> Entry:
    """A point or a slice: `t - 1`, `0:t + 1`, `0:T:2`."""
    start = parse_expr(cursor)
    if cursor.parse_optional_punctuation(":") is None:
        return start
    stop = parse_expr(cursor)
    if cursor.parse_optional_punctuation(":") is None:
        return Slice(start, stop)
    step = _integer(cursor)
    if not step:
        cursor.raise_error("expected the step of a slice, an integer of at least 1")
    return Slice(start, stop, step)


def parse_index(cursor: Cursor) -> Index:
    """An index in brackets: `[i, 0:t + 1]`; also `[]`."""
    cursor.parse_punctuation("[")
    return tuple(parse_list(cursor, "]", parse_entry))


def parse_optional_index(cursor: Cursor) -> Index:
    """An index in brackets, or the empty one where there is no bracket."""
    if cursor.parse_optional_punctuation("[") is None:
        return ()
    return tuple(parse_list(cursor, "]", parse_entry))


def parse_cond(cursor: Cursor) -> Cond:
    """A condition: `t = 0`, `1 <= P <= T and not (i < 3 or t ne 2)`."""
    return _as_cond(cursor, _parse_either(cursor))


# A parenthesis may open a condition or an expression, so the same functions read both and tell them apart after.
_Value: TypeAlias = Expr | Cond


def _as_expr(cursor: Cursor, value: _Value) -> Expr:
    if isinstance(value, (Const, Sym, Binary, MinMax)):
        return value
    cursor.raise_error(f"expected an integer expression, got the condition `{value}`")


def _as_cond(cursor: Cursor, value: _Value) -> Cond:
    if isinstance(value, (Truth, Compare, And, Or)):
        return value
    cursor.raise_error(f"expected a comparison after `{value}`")


def _parse_either(cursor: Cursor) -> _Value:
    first = _parse_both(cursor)
    alternatives: list[Cond] = []
    while cursor.parse_optional_keyword("or") is not None:
        alternatives.append(_as_cond(cursor, _parse_both(cursor)))
    return disj(_as_cond(cursor, first), *alternatives) if alternatives else first


def _parse_both(cursor: Cursor) -> _Value:
    first = _parse_single(cursor)
    requirements: list[Cond] = []
    while cursor.parse_optional_keyword("and") is not None:
        requirements.append(_as_cond(cursor, _parse_single(cursor)))
    return conj(_as_cond(cursor, first), *requirements) if requirements else first


def _parse_single(cursor: Cursor) -> _Value:
    if cursor.parse_optional_keyword("not") is not None:
        return negate(_as_cond(cursor, _parse_single(cursor)))
    left = _parse_sum(cursor)
    relation = None if isinstance(left, (Truth, Compare, And, Or)) else _parse_optional_relation(cursor)
    if relation is None:
        return left
    right = parse_expr(cursor)
    result = compare(relation, _as_expr(cursor, left), right)
    while relation in ("<", "<=") and cursor.parse_optional_punctuation("<") is not None:
        left, relation = right, "<=" if cursor.parse_optional_punctuation("=") is not None else "<"
        right = parse_expr(cursor)
        result = conj(result, compare(relation, left, right))
    return result


def _parse_optional_relation(cursor: Cursor) -> Relation | None:
    if cursor.parse_optional_keyword("ne") is not None:
        return "!="
    if cursor.parse_optional_punctuation("=") is not None:
        cursor.parse_optional_punctuation("=")
        return "="
    if cursor.parse_optional_punctuation("<") is not None:
        return "<=" if cursor.parse_optional_punctuation("=") is not None else "<"
    if cursor.parse_optional_punctuation(">") is not None:
        return ">=" if cursor.parse_optional_punctuation("=") is not None else ">"
    return None


def _parse_sum(cursor: Cursor) -> _Value:
    result = _parse_term(cursor)
    while isinstance(result, (Const, Sym, Binary, MinMax)):
        if cursor.parse_optional_punctuation("+") is not None:
            result = result + _as_expr(cursor, _parse_term(cursor))
        elif cursor.parse_optional_punctuation("-") is not None:
            result = result - _as_expr(cursor, _parse_term(cursor))
        else:
            return result
    return result


def _parse_term(cursor: Cursor) -> _Value:
    result = _parse_factor(cursor)
    while isinstance(result, (Const, Sym, Binary, MinMax)):
        if cursor.parse_optional_punctuation("*") is not None:
            result = result * _as_expr(cursor, _parse_factor(cursor))
        elif cursor.parse_optional_keyword("floordiv") is not None:
            result = result // _parse_divisor(cursor)
        elif cursor.parse_optional_keyword("mod") is not None:
            result = result % _parse_divisor(cursor)
        elif cursor.parse_optional_punctuation("/") is not None:
            cursor.raise_error("index expressions have no '/': the quotient rounded down is 'floordiv'")
        else:
            return result
    return result


def _parse_divisor(cursor: Cursor) -> Expr:
    divisor = _as_expr(cursor, _parse_factor(cursor))
    if divisor == Const(0):
        cursor.raise_error("the divisor is zero")
    return divisor


def _parse_factor(cursor: Cursor) -> _Value:
    if (number := _integer(cursor)) is not None:
        return Const(number)
    if cursor.parse_optional_punctuation("-") is not None:
        return -_as_expr(cursor, _parse_factor(cursor))
    if cursor.parse_optional_punctuation("(") is not None:
        inner = _parse_either(cursor)
        cursor.parse_punctuation(")")
        return inner
    for word, build in (("min", minimum), ("max", maximum)):
        if cursor.parse_optional_keyword(word) is not None:
            cursor.parse_punctuation("(")
            args = parse_list(cursor, ")", parse_expr)
            return build(*args) if args else cursor.raise_error(f"{word} needs an argument")
    for word, truth in (("true", TRUE), ("false", FALSE)):
        if cursor.parse_optional_keyword(word) is not None:
            return truth
    return Sym(parse_name(cursor))


def _whole(text: str, parse: Callable[[Cursor], Parsed]) -> Parsed:
    cursor = TextCursor(text)
    value = parse(cursor)
    cursor.expect_end()
    return value


def expr(text: str) -> Expr:
    """`expr("t - 1")`. Raises IndexExpressionError where the text is no expression."""
    return _whole(text, parse_expr)


def entry(text: str) -> Entry:
    """`entry("0:t + 1")`. Raises IndexExpressionError where the text is no entry."""
    return _whole(text, parse_entry)


def index(text: str) -> Index:
    """`index("[i, t - 1]")`. Raises IndexExpressionError where the text is no index."""
    return _whole(text, parse_index)


def cond(text: str) -> Cond:
    """`cond("t < P")`. Raises IndexExpressionError where the text is no condition."""
    return _whole(text, parse_cond)
