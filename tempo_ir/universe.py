"""The `xdsl.universe` entry point: stock `xdsl-opt` and other xDSL tools see our dialects, passes and targets."""

from __future__ import annotations

from xdsl.universe import Universe

from tempo_ir import dialects, lowering, passes

TEMPO_UNIVERSE = Universe(
    all_dialects={**dialects.get_all_dialects()},
    all_passes={**passes.get_all_passes(), **lowering.get_all_passes()},
)
