"""The proofs of a compile: what is raised where one fails, and how long they take: each lowering pass that proves its
result does so inside `proving`."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

_current: ContextVar[dict[str, float] | None] = ContextVar("tempo_ir.lowering.proofs", default=None)


class IllegalError(PassFailedException):
    """A result of a pass that is proved wrong: a fault of the compiler. `op` is the operation concerned."""

    def __init__(self, message: str, op: Operation):
        super().__init__(message)
        self.op = op


@contextmanager
def timed_proofs(seconds: dict[str, float], stage: str) -> Generator[None]:
    """
    Add the seconds of what runs inside to those of a stage, and those of its proof to `stage: proof`.

    `{"sdg-schedule": 0.05, "sdg-schedule: proof": 0.01}` is 0.06 seconds in all.
    """
    proofs: dict[str, float] = {}
    token, start = _current.set(proofs), time.perf_counter()
    try:
        yield
    finally:
        _current.reset(token)
        proof = sum(proofs.values())
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - start - proof
        if proofs:
            named = f"{stage}: proof"
            seconds[named] = seconds.get(named, 0.0) + proof


@contextmanager
def proving() -> Generator[None]:
    """What runs inside is a proof, for whoever measures."""
    proofs, start = _current.get(), time.perf_counter()
    try:
        yield
    finally:
        if proofs is not None:
            proofs[""] = proofs.get("", 0.0) + time.perf_counter() - start
