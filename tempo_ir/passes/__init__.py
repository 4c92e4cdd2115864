"""Passes over the IR: one file per pass, named after it; this registry loads each on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

# a row is `"sdg-cse": lazy("tempo_ir.passes.sdg_cse:SdgCsePass")` (tempo_ir.lazy)
PassFactory = Callable[[], "type[ModulePass]"]


def get_all_passes() -> dict[str, PassFactory]:
    """Every pass of this package by name, in alphabetical order. The lowerings are passes too: `tempo_ir.lowering`."""
    return {}
