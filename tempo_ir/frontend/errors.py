"""Where a line of the user's program is, and the exception that the front end raises about it."""

from __future__ import annotations

import dis
import inspect
import os
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Operation

from tempo_ir.dialects.sdg.locations import file_of, op_text

_CACHE = dis.opmap["CACHE"]
_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a source file; lines and columns count from 1. `target` is the variable that the expression is
    assigned to."""

    file: str
    line: int
    column: int
    target: str | None = None

    def __str__(self) -> str:
        return f"{shown_path(self.file)}:{self.line}"

    @property
    def location(self) -> FileLineColLoc:
        """The place as an xDSL location."""
        return _location(self.file, self.line, self.column)


@lru_cache(maxsize=4096)
def _location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


class ProgramError(Exception):
    """A program that does not mean anything. The text is `file:line: error: what is wrong and how to mend it`."""

    def __init__(self, message: str, place: Place | None = None):
        self.message = message
        self.place = place if place is not None else here()
        super().__init__(f"{self.place}: error: {message}" if self.place is not None else f"error: {message}")

    @classmethod
    def about(cls, error: Exception, whole: Operation) -> ProgramError:
        """What a pass or verifier says of an op of the program, at the op's line; of `whole` where it says of none."""
        op: Operation = getattr(error, "op", whole)
        place, message = place_of(op.location), str(error.args[0]) if error.args else str(error)
        return cls(message if place is not None else f"{op_text(op)}: {message}", place or place_of(whole.location))


class ValueUnknownError(ProgramError, TypeError):
    """Python or numpy asks for a value while the program is recorded, when there is none. A TypeError, as Python's
    protocols have it of an object that does not do what is asked."""


def shown_path(file: str) -> str:
    """The path as a reader wants it: relative to the working directory where it lies below it."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative


def place_of(location: LocationAttr) -> Place | None:
    """The place that an op's location names, or None for an op without one."""
    found = file_of(location)
    return None if found is None else Place(found.filename.data, found.line.data, found.column.data)


def here() -> Place | None:
    """The innermost line outside this package that is running now: the line of the user's program."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and _is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code  # which is equal to that of the same lines in another file
    return _place(code.co_filename, code, frame.f_lasti, frame.f_lineno)


@lru_cache(maxsize=4096)
def _place(file: str, code: CodeType, offset: int, line: int) -> Place:
    """The instruction at byte `offset`."""
    return Place(file, line, _column(code, offset), _assigned_name(code, offset))


@lru_cache(maxsize=256)
def _is_internal(file: str) -> bool:
    return os.path.abspath(file).startswith(_PACKAGE)


def _column(code: CodeType, offset: int) -> int:
    """The column, from 1, of the instruction at byte `offset`."""
    position = next(islice(code.co_positions(), offset // 2, None), None)
    column = position[2] if position is not None else None
    return 1 if column is None else column + 1


def _assigned_name(code: CodeType, offset: int) -> str | None:
    """The variable that the instruction behind the one at byte `offset`, and behind its cache, stores the result in."""
    instructions = code.co_code
    following = offset + 2
    while following < len(instructions) and instructions[following] == _CACHE:
        following += 2
    if following >= len(instructions):
        return None
    match dis.opname[instructions[following]]:
        case "STORE_NAME" | "STORE_GLOBAL":
            return code.co_names[instructions[following + 1]]
        case "STORE_FAST" | "STORE_DEREF":
            cells = [name for name in code.co_cellvars if name not in code.co_varnames]
            return [*code.co_varnames, *cells, *code.co_freevars][instructions[following + 1]]
        case _:
            return None
