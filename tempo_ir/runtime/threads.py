"""The team of threads that launches are cut over: as many as `TEMPO_NUM_THREADS` says, by default one per processor
that this process may run on.

One team serves a process, made when the first call wants it. Its workers sleep between calls; a call that finds it busy
with another call runs in one thread. Results do not depend on any of this.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

import numpy as np

from tempo_ir.lowering.llvm.engine import compile_object, host_target, load_object, relax_instruction
from tempo_ir.lowering.llvm.team import INITIALISE, STOP, TEAM_BYTES, TICKET, WORKER, team_text
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.memory import aligned_zeros

VARIABLE = "TEMPO_NUM_THREADS"
MOST_THREADS = 1024


def thread_count() -> int:
    """How many threads a call uses. Raises CallError where the variable holds no number."""
    text = os.environ.get(VARIABLE)
    if not text:
        return processors()
    try:
        count = int(text)
    except ValueError:
        count = 0
    if not 1 <= count <= MOST_THREADS:
        raise CallError(f"{VARIABLE} is '{text}': give a number of threads, 1 to {MOST_THREADS}")
    return count


@cache
def processors() -> int:
    """The processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Team:
    """`count` threads, the caller's among them."""

    def __init__(self, count: int):
        target = host_target()
        self._library = load_object(compile_object(team_text(relax_instruction()), target), target)
        self._memory = aligned_zeros((TEAM_BYTES,), np.dtype(np.uint8))
        self.address = self._memory.ctypes.data
        self.lock = threading.Lock()
        self._process = os.getpid()
        self._library.function(INITIALISE, ctypes.c_void_p, ctypes.c_int64)(self.address, count)
        work = self._library.function(WORKER, ctypes.c_void_p, ctypes.c_int64)
        self._workers = [
            threading.Thread(target=work, args=(self.address, number), name=f"tempo_ir-{number}", daemon=True)
            for number in range(1, count)
        ]
        for worker in self._workers:
            worker.start()
        atexit.register(self.stop)

    @property
    def tasks(self) -> int:
        """How many tasks were shared so far."""
        return int(self._memory.view(np.int64)[TICKET // 8]) // 2

    def stop(self) -> None:
        """End the threads, before the code that they run goes with the process. A child of this process has none."""
        if os.getpid() != self._process:
            return
        with self.lock:
            self._library.function(STOP, ctypes.c_void_p)(self.address)
            for worker in self._workers:
                worker.join()
            self._workers = []


@cache
def team(count: int) -> Team:
    """The team of so many threads."""
    return Team(count)


@contextmanager
def borrowed_team(count: int) -> Generator[int]:
    """The address of the team of so many threads for the time of a call, or 0 where it is busy or one thread is
    enough."""
    if count == 1:
        yield 0
        return
    own = team(count)
    if not own.lock.acquire(blocking=False):
        yield 0
        return
    try:
        yield own.address
    finally:
        own.lock.release()


if hasattr(os, "register_at_fork"):
    # a child has no thread but the one that forked
    os.register_at_fork(after_in_child=team.cache_clear)
