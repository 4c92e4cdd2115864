"""Dialects, one per level: sdg (dependence graph), loop (order and buffers), tile (kernels).

They import xdsl and `tempo_ir.index` only, so that a driver that shows a text starts fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tempo_ir.lazy import lazy

if TYPE_CHECKING:
    from xdsl.ir import Dialect

DialectFactory = Callable[[], "Dialect"]


def get_all_dialects() -> dict[str, DialectFactory]:
    """Every dialect of this package by name; a factory imports the dialect's module when called."""
    return {
        "loop": lazy("tempo_ir.dialects.loop:Loop"),
        "sdg": lazy("tempo_ir.dialects.sdg:Sdg"),
        "tile": lazy("tempo_ir.dialects.tile:Tile"),
    }
