"""A failing program made small, by tempo-reduce's search: it still fails in the same way."""

from __future__ import annotations

import time

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.tools.shrinking import Shrinker
from tests.fuzz.check import Failure, parse
from tests.fuzz.isolation import isolated_failure


def reduced(text: str, failure: Failure, seconds: float = 90) -> str:
    """The smallest program found in some seconds whose failure is of the same kind."""
    end = time.monotonic() + seconds
    thorough = "without" in failure.kind

    def interesting(module: ModuleOp) -> bool:
        if time.monotonic() > end:
            return False
        found = isolated_failure(str(module), thorough=thorough, seconds=20)
        return found is not None and found.kind == failure.kind

    shrinker = Shrinker(interesting, verified=not failure.kind.startswith("verify"))
    return str(shrinker.shrink(parse(text)))
