"""Remarks and statistics of a compile: why a pass did or did not do something, and how often it did.

A pass calls `remark(op, "...")` and `count(self, "merged", n)`; whoever runs the pass (tempo-opt, `tempo_ir.compile`, a
test) opens `collecting()` around it and reads the collector. Nobody listening means nothing is kept.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Operation
    from xdsl.passes import ModulePass


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark: its text, and the name and location of the op that it is about, as they were when it was made."""

    message: str
    operation: str
    location: LocationAttr


def _no_remarks() -> list[Remark]:
    return []


def _no_statistics() -> dict[str, dict[str, int]]:
    return {}


@dataclass(slots=True)
class Collector:
    """What one run reported: remarks in order, statistics by pass name and counter name."""

    remarks: list[Remark] = field(default_factory=_no_remarks)
    statistics: dict[str, dict[str, int]] = field(default_factory=_no_statistics)


_current: ContextVar[Collector | None] = ContextVar("tempo_ir.passes.remarks", default=None)


@contextmanager
def collecting() -> Generator[Collector]:
    """Collect the remarks and statistics of everything that runs inside; the innermost collector takes them."""
    collector = Collector()
    token = _current.set(collector)
    try:
        yield collector
    finally:
        _current.reset(token)


@contextmanager
def noting() -> Generator[Collector]:
    """Collect what runs inside, as `collecting` does; whoever listens outside hears of it too."""
    outside = _current.get()
    with collecting() as collector:
        yield collector
    if outside is not None:
        outside.remarks += collector.remarks
        for name, counters in collector.statistics.items():
            for counter, n in counters.items():
                _add(outside, name, counter, n)


def remark(op: Operation, message: str) -> None:
    """Say what the user may want to know of `op`: a fusion, a donation or a rewrite that did not apply, and why."""
    collector = _current.get()
    if collector is not None:
        collector.remarks.append(Remark(message, op.name, op.location))


def count(compiler_pass: ModulePass, name: str, n: int = 1) -> None:
    """Add `n` to the counter `name` of a pass: `count(self, "merged", 3)`."""
    collector = _current.get()
    if collector is not None:
        _add(collector, compiler_pass.name, name, n)


def _add(collector: Collector, compiler_pass: str, name: str, n: int) -> None:
    counters = collector.statistics.setdefault(compiler_pass, {})
    counters[name] = counters.get(name, 0) + n
