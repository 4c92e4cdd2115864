"""Source locations: every op carries the line of the user's program that made it, and errors show that line."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, IntAttr, NameLoc, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue


def file_location(path: str, line: int, column: int = 1) -> FileLineColLoc:
    """`loc("model.py":12:1)`, to be given to an op as `location`."""
    return FileLineColLoc(StringAttr(path), IntAttr(line), IntAttr(column))


def file_of(location: Attribute) -> FileLineColLoc | None:
    """The position in a file that a location names, the first and innermost of several; None where it names none."""
    match location:
        case FileLineColLoc():
            return location
        case NameLoc():
            return file_of(location.location)
        case CallSiteLoc():
            return file_of(location.callee) or file_of(location.caller)
        case FusedLoc():
            parts = cast(ArrayAttr[Attribute], location.locations).data
            return next((found for part in parts if (found := file_of(part)) is not None), None)
        case _:
            return None


def location_text(location: Attribute) -> str:
    """`model.py:12`, or "" where the location names no file; a fused location shows its first file."""
    found = file_of(location)
    return "" if found is None else f"{found.filename.data}:{found.line.data}"


def value_text(value: SSAValue) -> str:
    """`%h` where the value has a name, else what made it: `the result of sdg.add`, `block argument #1`."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if isinstance(value, OpResult):
        number = f"result #{value.index}" if len(value.op.results) > 1 else "the result"
        return f"{number} of {value.op.name}"
    return f"block argument #{value.index}" if isinstance(value, BlockArgument) else "a value"


def op_text(op: Operation) -> str:
    """`sdg.add %h (model.py:12)`: how messages name an op."""
    named = [value_text(result) for result in op.results if result.name_hint is not None]
    where = location_text(op.location)
    return " ".join([op.name, ", ".join(named)] if named else [op.name]) + (f" ({where})" if where else "")


def host_text(op: Operation) -> str:
    """`sdg.host (model.py:12)`: how messages of a run name a call of a host object, whether it is still an sdg op or a
    loop.host by now."""
    where = location_text(op.location)
    return "sdg.host" + (f" ({where})" if where else "")


def error_text(error: Exception) -> str:
    """`model.py:12: sdg.neg %y: operand #0 ...`: an error of a dialect with the op that it is about, if it has one."""
    op = getattr(error, "op", None)
    if not isinstance(op, Operation):
        return str(error)
    where = location_text(op.location)
    named = [value_text(result) for result in op.results if result.name_hint is not None]
    return ": ".join(filter(None, (where, " ".join((op.name, ", ".join(named))).strip(), str(error))))
