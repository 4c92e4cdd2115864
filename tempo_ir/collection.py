"""Python's collector of cycles, while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Generator[None]:
    """Python's collector of cycles waits: a program that is recorded or compiled makes many objects, few of them
    garbage, and would be stopped for a tenth of its time, or much longer in a process of many objects, to have all of
    them looked at again. What was made counts as old, so that it is not looked at as soon as this ends either; unless
    somebody keeps objects from being collected, which would end with it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
