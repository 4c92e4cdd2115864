"""The text of a function under construction: indented lines, and a Python name for each value."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

from xdsl.ir import SSAValue

from tempo_ir.names import fresh_name

INDENT = "    "
WIDTH = 120
RESERVED = frozenset({"tl", "triton", *keyword.kwlist, *dir(builtins)})


def identifier(hint: str) -> str:
    """A Python identifier like `hint`."""
    base = re.sub(r"\W", "_", hint)
    return f"v{base}" if not base or base[0].isdigit() else base


class Names:
    """Python names for values: each value's own hint, made unique."""

    def __init__(self, reserved: Iterable[str] = ()):
        self._taken = {*RESERVED, *reserved}
        self._of: dict[SSAValue, str] = {}

    def unique(self, hint: str) -> str:
        """A name that nothing else has."""
        name = fresh_name(identifier(hint), self._taken)
        self._taken.add(name)
        return name

    def give(self, value: SSAValue, name: str) -> str:
        """Let a value go by a name that exists."""
        self._of[value] = name
        return name

    def new(self, value: SSAValue, hint: str) -> str:
        """A new name for a value."""
        return self.give(value, self.unique(hint))

    def __getitem__(self, value: SSAValue) -> str:
        return self._of[value]

    def __contains__(self, value: SSAValue) -> bool:
        return value in self._of


def is_composite(text: str) -> bool:
    """Whether an expression needs parentheses as an operand."""
    return text.startswith("-") or any(character == " " for character, depth in _depths(text) if not depth)


def _depths(text: str) -> Iterator[tuple[str, int]]:
    """The characters of an expression with the brackets that they stand in."""
    depth = 0
    for character in text:
        depth -= character in ")]}"
        yield character, depth
        depth += character in "([{"


def wrapped(line: str) -> list[str]:
    """A line, or where it is longer than lines are its outermost call with the arguments on lines of their own."""
    if len(line) <= WIDTH or line.count("(") != line.count(")"):
        return [line]
    depths = list(_depths(line))
    opens = [at for at in range(len(line)) if line[at] == "(" and not depths[at][1]]
    closes = [at for at in range(len(line)) if line[at] == ")" and not depths[at][1]]
    start, end = max(zip(opens, closes, strict=True), key=lambda call: call[1] - call[0], default=(0, 0))
    if not end:
        return [line]
    inner = INDENT * (1 + (len(line) - len(line.lstrip())) // len(INDENT))
    together = f"{inner}{line[start + 1 : end]}"
    if len(together) <= WIDTH:
        return [line[: start + 1], together, line[end:].rjust(len(line[end:]) + len(inner) - len(INDENT))]
    cuts = [at for at in range(start, end) if line[at] == "," and depths[at][1] == 1]
    pieces = [line[low + 1 : high].strip() for low, high in pairwise([start, *cuts, end])]
    body = [f"{inner}{piece}," for piece in pieces if piece]
    return [line[: start + 1], *body, line[end:].rjust(len(line[end:]) + len(inner) - len(INDENT))]


def spans(numbers: set[int]) -> str:
    """`{8, 9, 10, 14}` as `8-10, 14`."""
    spans: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


class Lines:
    """Lines of Python at a depth of indentation."""

    def __init__(self, depth: int = 1):
        self.lines: list[str] = []
        self._depth = depth

    def add(self, text: str) -> None:
        """A line, or a call on several where it is long."""
        self.lines += wrapped(INDENT * self._depth + text)

    @contextmanager
    def continued(self, opening: str) -> Generator[None]:
        """The lines of a call that stand on lines of their own, after its opening."""
        self.add(opening)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def block(self, header: str) -> Generator[None]:
        """The lines below `for ...:` or `if ...:`; `pass` where there are none."""
        self.add(header)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self._depth -= 1
