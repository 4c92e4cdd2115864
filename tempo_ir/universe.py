"""The `xdsl.universe` entry point: stock `xdsl-opt` and other xDSL tools see our dialects, passes and targets."""

from __future__ import annotations

from xdsl.universe import Universe

from tempo_ir import dialects, lowering, passes

TEMPO_UNIVERSE = Universe(
    all_dialects={**dialects.get_all_dialects()},
    # xDSL has a target called llvm of its own, for its llvm dialect
    all_targets={"triton": lowering.get_all_targets()["triton"]},
    all_passes={**passes.get_all_passes(), **lowering.get_all_passes()},
)
