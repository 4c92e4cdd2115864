"""Limits to the work of a question to isl: what takes more is given up, and the caller does without an exact answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tempo_ir.index.isl import Inexact, IslError, context, read_set

MOST_OPERATIONS = 100_000
"""Elementary operations of isl in one question, some tenths of a second; the examples need less than half of them."""


class TooLarge(Inexact):
    """A question that would take isl more work than it is worth."""


@contextmanager
def limited(operations: int = MOST_OPERATIONS) -> Generator[None]:
    """
    Let isl give up where what runs inside takes it more elementary operations: a number that no clock, machine or load
    changes. Raises TooLarge then. Of two limits, one inside of the other, the outer one counts.
    """
    here = context()
    if here.get_max_operations():
        yield
        return
    here.reset_operations()
    here.set_max_operations(operations)
    try:
        yield
    except (IslError, TypeError) as error:  # a number whose text isl could not finish is None, which Python reads
        if not _is_spent():
            raise
        raise TooLarge(f"isl needs more than {operations} operations for this question") from error
    finally:
        here.set_max_operations(0)
        here.reset_operations()


def _is_spent() -> bool:
    """Whether isl has no operation left. Not each of its errors says so: its parser only finds that it cannot go on."""
    try:
        read_set("{ [a] : 0 <= a < 9 }").lexmin()
    except IslError:
        return True
    return False
