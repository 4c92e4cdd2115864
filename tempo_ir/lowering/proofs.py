"""How long the proofs of a compile take: each lowering pass that proves its result does so inside `proving`."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[dict[str, float] | None] = ContextVar("tempo_ir.lowering.proofs", default=None)


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
