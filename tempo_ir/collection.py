"""Python's collector of cycles, while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

MANY = 1 << 19
"""So many objects, or a quarter of all if that is more, are made before all are looked at again: as Python has it."""


class Unseen:
    """How many objects were made that nobody has looked at, and how many there were when all were looked at last."""

    def __init__(self) -> None:
        self.made = self.all = 0

    def add(self, made: int) -> None:
        """Some more that count as old. Once they are many, all are looked at: of programs that are gone, much is
        cycles, which nothing else would end in a process that makes nothing but programs."""
        self.made += made
        if self.made < max(MANY, self.all // 4):
            return
        gc.collect()
        gc.freeze()
        self.made, self.all = 0, gc.get_freeze_count()
        gc.unfreeze()


UNSEEN = Unseen()


@contextmanager
def collection_paused() -> Generator[None]:
    """Python's collector of cycles waits: a program that is recorded or compiled makes many objects, few of them
    garbage, and would be stopped for a tenth of its time, or much longer in a process of many objects, to have all of
    them looked at again. What was made counts as old, so that it is not looked at as soon as this ends either, but
    after many programs (`Unseen`); unless somebody keeps objects from being collected, which would end with it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            made, _, _ = gc.get_count()
            gc.freeze()
            gc.unfreeze()
            UNSEEN.add(made)
        gc.enable()
