"""Messages to the user: `file:line:col: error: ...`, the line itself and a caret; and how exceptions become messages.

An exception tells where it happened by the span of a parse error, by `error.place` (file, line, column) as the front
end's do, by `error.op` (an operation) or by `error.location` (an xDSL location).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError

Severity: TypeAlias = Literal["error", "warning", "remark", "note"]


def shown_path(file: str) -> str:
    """The path as a reader wants it: relative to the working directory where it lies below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a source file. Lines and columns count from 1; column 0 means that only the line is known."""

    file: str
    line: int
    column: int = 0
    width: int = 1

    def __str__(self) -> str:
        file = shown_path(self.file)
        return f"{file}:{self.line}:{self.column}" if self.column else f"{file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message, where it belongs if that is known, and notes that help to mend it."""

    severity: Severity
    message: str
    place: Place | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}: {self.message}" if self.place else f"{self.severity}: {self.message}"


class UserError(Exception):
    """A mistake in how a tool was called: shown as it is, without a traceback."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


@dataclass(slots=True)
class Sources:
    """The lines that messages quote: texts given by name (standard input, a pipeline), other files read from disk."""

    texts: dict[str, str] = field(default_factory=lambda: dict[str, str]())

    def line(self, place: Place) -> str | None:
        text = self.texts.get(place.file)
        if text is None:
            path = Path(place.file)
            if not path.is_file():
                return None
            text = self.texts[place.file] = path.read_text(errors="replace")
        lines = text.splitlines()
        return lines[place.line - 1] if 0 < place.line <= len(lines) else None

    def render(self, diagnostic: Diagnostic) -> str:
        """The message, the line it is about with a caret below, and the notes."""
        return "\n".join([str(diagnostic), *self._quote(diagnostic.place), *(f"note: {n}" for n in diagnostic.notes)])

    def _quote(self, place: Place | None) -> Iterator[str]:
        line = None if place is None else self.line(place)
        if place is None or line is None or not line.strip():
            return
        yield line
        if place.column:
            # tabs stay tabs, so that the caret stands below its character
            margin = "".join("\t" if character == "\t" else " " for character in line[: place.column - 1])
            yield margin + "^" + "~" * min(place.width - 1, max(0, len(line) - place.column))


def place_of_location(location: object) -> Place | None:
    """The source position that an xDSL location stands for, if it has one; the innermost of nested ones."""
    match location:
        case FileLineColLoc():
            return Place(location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            return place_of_location(location.location)
        case CallSiteLoc():
            return _first_place([location.callee, location.caller])
        case FusedLoc():
            return _first_place(cast("ArrayAttr[Attribute]", location.locations))
        case _:
            return None


def _first_place(locations: Iterable[Attribute]) -> Place | None:
    return next((place for location in locations if (place := place_of_location(location)) is not None), None)


def place_of_error(error: BaseException) -> Place | None:
    """Where an exception says that the mistake is."""
    place = getattr(error, "place", None)
    if place is not None:
        return Place(place.file, place.line, place.column)
    if isinstance(error, ParseError):
        where = error.span.get_location()
        return Place(where.file, where.line, where.col, max(1, len(error.span)))
    operation = getattr(error, "op", None)
    if isinstance(operation, Operation):
        return place_of_location(operation.location)
    return place_of_location(getattr(error, "location", None))


def place_in_file(error: BaseException, file: Path) -> Place | None:
    """The innermost line of a Python `file` that an exception passed through, or where it fails to parse."""
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return Place(error.filename, error.lineno, error.offset or 0)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).absolute() == file.absolute()]
    return _place_of_frame(inside[-1]) if inside else None


def place_outside_package(error: BaseException) -> Place | None:
    """The innermost line outside of this package that an exception passed through: the user's."""
    package = Path(__file__).resolve().parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not Path(frame.filename).absolute().is_relative_to(package)]
    return _place_of_frame(outside[-1]) if outside else None


def _place_of_frame(frame: traceback.FrameSummary) -> Place:
    return Place(frame.filename, frame.lineno or 0, (frame.colno or 0) + 1)


def diagnostic_of_error(error: BaseException, place: Place | None = None) -> Diagnostic:
    """The message for a user's mistake; `place` is used where the exception itself does not know."""
    if isinstance(error, ParseError):
        message = error.msg
    elif isinstance(getattr(error, "message", None), str):  # without the place, which some print themselves
        message = str(getattr(error, "message"))  # noqa: B009
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = str(error) or type(error).__name__
    return Diagnostic("error", message.strip(), place_of_error(error) or place, tuple(_notes(error)))


def _notes(error: BaseException) -> Iterator[str]:
    for note in getattr(error, "__notes__", ()):
        # xDSL notes a verify error with the whole module in generic form, which starts with a quoted op name
        if not note.lstrip().startswith(('"', "%")):
            yield note.strip()


def exit_status(run: Callable[[Sources], int], *, show_traceback: bool = False) -> int:
    """The exit status of a command: what `run` returns, 130 after Ctrl-C, 1 after a user's error, which is printed."""
    sources = Sources()
    try:
        return run(sources)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not is_user_error(error):
            raise
        if show_traceback:
            traceback.print_exc()
        print(sources.render(diagnostic_of_error(error)), file=sys.stderr)
        return 1


def is_user_error(error: BaseException) -> bool:
    """Whether an exception is a mistake of the user's, which gets a message, or one of ours, which gets a traceback.

    The exception classes of this package are all made for users.
    """
    known = (ArgSpecParseError, DiagnosticException, MemoryError, OSError, ParseError, UnicodeDecodeError)
    return isinstance(error, known) or type(error).__module__.partition(".")[0] == "tempo_ir"
