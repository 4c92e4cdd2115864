"""Errors of a program that runs: what went wrong, in which op, at which point, on which line of the user's program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from xdsl.ir import Operation

from tempo_ir.dialects.sdg.locations import op_text

Point: TypeAlias = Mapping[str, int | range]
"""Where an op ran: a number by dim, a range where one call makes those at several points."""


class ExecutionError(RuntimeError):
    """A program asked for something that has no value: `integer division by zero, in sdg.floordiv %x (a.py:3)`."""

    def __init__(self, message: str, op: Operation | None = None, point: Point | None = None):
        where = f", in {op_text(op)}" if op is not None else ""
        at = f" at {point_text(point)}" if point else ""
        super().__init__(f"{message}{where}{at}")
        self.op = op
        self.point = dict(point or {})


def point_text(point: Point) -> str:
    """`i = 0, t = 3`, `t = 3, b = 0 to 8` for a call that makes those at several points."""
    return ", ".join(f"{name} = {_coordinate_text(value)}" for name, value in point.items())


def _coordinate_text(value: int | range) -> str:
    return f"{value.start} to {value.stop}" if isinstance(value, range) else str(value)
