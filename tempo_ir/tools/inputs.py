"""What the tools read: IR text, standard input, and Python files with RT programs; and settings from `--set`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tempo_ir.tools.diagnostics import Place, UserError

STANDARD_INPUT = "<stdin>"
BYTE_ORDER_MARK = "\ufeff"
"""What some editors put at the start of a file."""
_PYTHON = re.compile(r"(?P<path>.+\.py)(?::(?P<name>\w+))?")
_MARKER = re.compile(rb"^// -----[^\n]*$", re.MULTILINE)


def python_input(argument: str | None) -> tuple[Path, str | None] | None:
    """The file and the name of the program in `FILE.py:name`, where the input is a Python file."""
    match = _PYTHON.fullmatch(argument or "")
    return (Path(match["path"]), match["name"]) if match else None


def read_text(argument: str | None) -> tuple[str, str]:
    """The text of an input file (standard input for None and `-`) and its name in messages.

    A byte-order mark is no part of the text. Raises OSError, and UserError for what is not UTF-8.
    """
    if argument is None or argument == "-":
        data, name = sys.stdin.buffer.read(), STANDARD_INPUT
    else:
        data, name = Path(argument).read_bytes(), argument
    try:
        return data.decode().removeprefix(BYTE_ORDER_MARK), name
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        start = data.rfind(b"\n", 0, error.start) + 1
        place = Place(name, line, len(data[start : error.start].decode()) + 1)
        raise UserError(f"not a text file: byte {error.start} is not UTF-8", place) from None


def split_chunks(text: str) -> list[str]:
    """The parts between `// -----` lines, each with empty lines in front, so that lines keep their numbers."""
    parts = [part.decode() for part in _MARKER.split(text.encode())]
    chunks: list[str] = []
    lines = 0
    for part in parts:
        chunks.append("\n" * lines + part)
        lines += part.count("\n")
    return chunks


def parse_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """`name=value` arguments as a dict: a value is a Python literal where it reads as one, else the text itself."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.isidentifier():
            raise UserError(f"--set {assignment}: write name=value")
        if name in settings:
            raise UserError(f"--set {assignment}: '{name}' is set twice")
        settings[name] = _literal(value)
    return settings


def _literal(text: str) -> Any:
    lowered = {"true": True, "false": False, "none": None}
    if text.lower() in lowered:
        return lowered[text.lower()]
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
