"""Texts in isl's notation as rows of numbers, where they hold nothing but linear comparisons joined by `and`.

isl builds a piecewise function of each side of each comparison that it reads, and intersects a set for each: that takes
five times as long as the set of such rows. `[T] -> { [t] -> [t'] : 0 <= t < T and t' = t - 1 }` is three of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

ONE = ""
"""The name of the constant in a sum."""

_OTHER = re.compile(r"\((?<=\w\()|[-+*<>=,]\s*\(|\)\s*[-+*<>=,]")
"""A product, function or sum of what stands in parentheses, which are left out; other words and signs are no sums."""
_TEXT = re.compile(r"(?:\[([^\]]*)\] -> )?\{ (\w*)\[([^\]]*)\](?: -> (\w*)\[([^\]]*)\])?(?: : (.*))? \}")
_EXISTS = re.compile(r"(.*?)\bexists \(([^:()]*) : (.*)\)")
_NAME = re.compile(r"[A-Za-z_]\w*'*")
_TERM = re.compile(r"\s*([+-]?)\s*(?:(\d+)(?:\*([A-Za-z_]\w*'*))?|([A-Za-z_]\w*'*))\s*")
_COMPARISON = re.compile(r"(<=|>=|<|>|=)")

Sum = tuple[tuple[str, int], ...]
"""The coefficients of names."""
Row = tuple[tuple[int, int], ...]
"""Those of columns: of a sum that is 0, or, of an inequality, at least 0."""


@dataclass(frozen=True)
class Tuple:
    """The name of a tuple and those of its dims, as isl keeps them, without primes; "" of one that is an expression."""

    name: str
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """A set, with no `source`, or a map. Columns are the constant, the parameters, the dims of source and target, and
    `exists` more (0 or 1), which is equal to a sum of others."""

    params: tuple[str, ...]
    source: Tuple | None
    target: Tuple
    exists: int
    equalities: list[Row]
    inequalities: list[Row]

    @property
    def columns(self) -> int:
        """How many there are."""
        return 1 + len(self.params) + len(self.source.dims if self.source else ()) + len(self.target.dims) + self.exists


class _Other(Exception):
    """The text says something else, or nothing."""


LARGEST = 2**62
"""What numbers of a row are at most: islpy takes no greater ones."""


def rows_of(text: str) -> Rows | None:
    """What a text says; None where it holds anything else, or is no text of isl's."""
    if (found := _TEXT.fullmatch(text)) is None or (found.group(6) and _OTHER.search(found.group(6))):
        return None
    params, name, dims, target_name, target_dims, condition = found.groups()
    try:
        reader = _Reader(_items(params))
        first = reader.read_tuple(name, dims)
        source, target = (None, first) if target_dims is None else (first, reader.read_tuple(target_name, target_dims))
        reader.read_condition(condition or "true")
    except _Other:
        return None
    if any(abs(value) > LARGEST for row in (*reader.equalities, *reader.inequalities) for _, value in row):
        return None
    return Rows(reader.params, source, target, int(reader.has_more), reader.equalities, reader.inequalities)


def _items(text: str | None) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text and text.strip() else ()


class _Reader:
    """The rows that have been read, and the column of each name."""

    def __init__(self, params: tuple[str, ...]) -> None:
        self.params = params
        self.columns = {name: column for column, name in enumerate((ONE, *params))}
        if len(self.columns) != 1 + len(params) or not all(map(_NAME.fullmatch, params)):
            raise _Other
        self.count = len(self.columns)
        self.has_more = False
        self.equalities: list[Row] = []
        self.inequalities: list[Row] = []

    def read_tuple(self, name: str, text: str) -> Tuple:
        """A new name stands for a dim; anything else is what the dim is equal to."""
        dims: list[str] = []
        for item in _items(text):
            if _NAME.fullmatch(item) and item not in self.columns:
                self.columns[item] = self.count
                dims.append(item.rstrip("'"))
            else:
                self.equalities.append(((self.count, -1), *self.placed(_linear(item))))
                dims.append("")
            self.count += 1
        return Tuple(name, tuple(dims))

    def placed(self, total: Sum) -> Row:
        """A sum by columns."""
        columns = self.columns
        try:
            return tuple([(columns[name], number) for name, number in total])
        except KeyError:
            raise _Other from None

    def read_condition(self, text: str) -> None:
        """Comparisons joined by `and`, in whatever parentheses, the last of them perhaps of a number that exists."""
        if "exists" in text:
            found = _EXISTS.fullmatch(text.strip())
            if found is None or not all(map(_is_balanced, (found.group(1), found.group(3)))):
                raise _Other
            before, name, inside = found.groups()
            if name in self.columns or not _NAME.fullmatch(name):
                raise _Other
            self.columns[name] = self.count
            self.has_more = True
            text = before + inside
        if text.count("(") != text.count(")"):
            raise _Other
        for part in text.replace("(", "").replace(")", "").split(" and "):
            for total, is_equality in _comparisons(part):
                (self.equalities if is_equality else self.inequalities).append(self.placed(total))
        if self.has_more and not any(abs(dict(row).get(self.count, 0)) == 1 for row in self.equalities):
            raise _Other  # isl may leave it out by more than putting its value in its place


def _is_balanced(text: str) -> bool:
    depth = 0
    for sign in re.findall(r"[()]", text):
        depth += 1 if sign == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=4096)
def _comparisons(text: str) -> Sequence[tuple[Sum, bool]]:
    """The sums of `0 <= t < T`, and whether each is to be 0."""
    if text.strip() == "true":
        return ()
    sides = _COMPARISON.split(text)
    if len(sides) < 3:
        raise _Other
    values = [_linear(side) for side in sides[::2]]
    found: list[tuple[Sum, bool]] = []
    for left, sign, right in zip(values, sides[1::2], values[1:], strict=False):
        less, more = (left, right) if sign in ("<", "<=") else (right, left)
        total = dict(more)
        for name, number in less:
            total[name] = total.get(name, 0) - number
        if sign in ("<", ">"):
            total[ONE] = total.get(ONE, 0) - 1
        found.append((tuple(total.items()), sign == "="))
    return found


def _linear(text: str) -> Sum:
    """The coefficients of `2*t + T - 1`."""
    text = text.strip()
    if text.isidentifier():
        return ((text, 1),)
    if text.isdecimal():
        return ((ONE, int(text)),)
    total: dict[str, int] = {}
    at = 0
    while at < len(text) or not at:
        found = _TERM.match(text, at)
        if found is None or (at and not found.group(1)):
            raise _Other
        sign, number, multiplied, alone = found.groups()
        name = multiplied or alone or ONE
        total[name] = total.get(name, 0) + int(number or 1) * (-1 if sign == "-" else 1)
        at = found.end()
    return tuple(total.items())
