"""Whether the machine has the memory that a call asks for: it is known before the call, and asked before it is taken.

Without the question a call that is too large is ended by the operating system, with all that runs beside it and without
a word. The answer is what Linux says it can give without swapping, no more than what the control group of the process
is allowed; elsewhere nothing is asked. `TEMPO_MEMORY_CHECK=off` leaves the question out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tempo_ir.runtime.errors import NotEnoughMemoryError

VARIABLE = "TEMPO_MEMORY_CHECK"
SMALL = 1 << 26
"""Bytes that nobody is asked for: the question takes as long as to touch so many."""
MEMORY = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")


def check_room(
    parts: Mapping[str, int],
    what: str,
    bounds: Mapping[str, int],
    instead: str = "compile with memory_budget= or remat=, give smaller bounds",
) -> None:
    """
    Raise NotEnoughMemoryError where the machine has not the bytes that some parts take together, less those that have a
    minus, for `what` at some bounds; `instead` is the way out.
    """
    needed = sum(parts.values())
    if needed < SMALL or os.environ.get(VARIABLE) == "off":
        return
    available = available_bytes()
    if available is not None and needed > available:
        listed = ", ".join(f"{bytes_text(size)} for {part}" for part, size in parts.items() if size > 0)
        at = ", ".join(f"{name} = {value}" for name, value in bounds.items())
        raise NotEnoughMemoryError(
            f"{what}{' with ' if at else ''}{at} needs {bytes_text(needed)} ({listed}), and the machine has "
            f"{bytes_text(available)} to give: {instead}, or set {VARIABLE}=off to try even so"
        )


def available_bytes() -> int | None:
    """The bytes that this process may take without making the machine swap; None where the system does not say."""
    try:
        lines = MEMORY.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return min([*found, *_left_to_the_group()], default=None)


def _left_to_the_group() -> list[int]:
    """The bytes that the control group of the process has left, if it has a limit."""
    try:
        limit = (GROUP / "memory.max").read_text().strip()
        used = int((GROUP / "memory.current").read_text())
        facts = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return []
    return [] if limit == "max" else [max(0, int(limit) - used + int(facts.get("inactive_file", 0)))]


def bytes_text(count: float) -> str:
    """`1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
