"""Errors of a program that runs: what went wrong, in which op, at which point, on which line of the user's program."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from tempo_ir.dialects.sdg.locations import op_text


class ExecutionError(RuntimeError):
    """A program asked for something that has no value: `integer division by zero, in sdg.floordiv %x (a.py:3)`."""

    def __init__(self, message: str, op: Operation | None = None, point: Mapping[str, int] | None = None):
        where = f", in {op_text(op)}" if op is not None else ""
        at = f" at {point_text(point)}" if point else ""
        super().__init__(f"{message}{where}{at}")
        self.op = op
        self.point = dict(point or {})


def point_text(point: Mapping[str, int]) -> str:
    """`i = 0, t = 3`."""
    return ", ".join(f"{name} = {value}" for name, value in point.items())
