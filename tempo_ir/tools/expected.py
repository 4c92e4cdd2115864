"""`--verify-diagnostics`: messages against the `expected-error {{...}}` comments of the input, with MLIR's meaning.

A comment expects a message of its severity whose text contains what the braces enclose, on its own line, on the line
that `@+1`, `@-2`, `@above` or `@below` names, or at no known line with `@unknown`; `expected-error-re` takes `{{...}}`
inside the braces as a regular expression; a number before the braces expects that many. Every message must be expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tempo_ir.tools.diagnostics import Diagnostic, Place

_EXPECTED = re.compile(
    r"//.*?\bexpected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))?[ \t]*(?P<times>\d+)?[ \t]*\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(slots=True)
class _Expectation:
    severity: str
    pattern: re.Pattern[str]
    text: str
    line: int | None
    """The line it expects a message on; None for a message without one."""
    place: Place
    """Where the comment stands."""

    def matches(self, message: Diagnostic, line: int | None) -> bool:
        return (
            self.severity == message.severity and self.line == line and self.pattern.search(message.message) is not None
        )


def mismatches(text: str, name: str, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What differs between the comments of `text`, called `name`, and the messages that processing it gave."""
    waiting = list(_expectations(text, name))
    unexpected: list[Diagnostic] = []
    for message in _with_notes(diagnostics):
        line = message.place.line if message.place is not None and message.place.file == name else None
        found = next((expected for expected in waiting if expected.matches(message, line)), None)
        if found is None:
            unexpected.append(Diagnostic("error", f"unexpected {message.severity}: {message.message}", message.place))
        else:
            waiting.remove(found)
    missing = [Diagnostic("error", f'expected {e.severity} "{e.text}" was not produced', e.place) for e in waiting]
    return unexpected + missing


def _with_notes(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        for note in diagnostic.notes:
            yield Diagnostic("note", note, diagnostic.place)


def _expectations(text: str, name: str) -> Iterator[_Expectation]:
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        match = _EXPECTED.search(line)
        if match is None:
            continue
        where = _line(match["where"], number, lines)
        place = Place(name, number, match.start() + 1, match.end() - match.start())
        for _ in range(int(match["times"] or 1)):
            yield _Expectation(match["severity"], _pattern(match), match["text"], where, place)


def _line(where: str | None, number: int, lines: Sequence[str]) -> int | None:
    if where is None:
        return number
    if where == "unknown":
        return None
    if where not in ("above", "below"):
        return number + int(where)
    step = -1 if where == "above" else 1
    number += step
    while 0 < number <= len(lines) and _EXPECTED.search(lines[number - 1]):
        number += step  # several comments may stand above or below one line
    return number


def _pattern(match: re.Match[str]) -> re.Pattern[str]:
    if match["regex"] is None:
        return re.compile(re.escape(match["text"]))
    parts = re.split(r"\{\{(.*?)\}\}", match["text"])
    return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))
