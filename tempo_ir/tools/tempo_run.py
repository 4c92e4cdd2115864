"""tempo-run: compile a program and run it on arrays from files, or on arrays drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of `tempo-run ARGS`."""
    return 0
