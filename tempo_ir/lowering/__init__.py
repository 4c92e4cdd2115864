"""Lowerings: one step down each. Those that turn IR into IR are passes, those that print code are targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tempo_ir.lazy import lazy

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.target import Target

PassFactory = Callable[[], "type[ModulePass]"]
TargetFactory = Callable[[], "type[Target]"]


def get_all_passes() -> dict[str, PassFactory]:
    """Every lowering pass by name, in alphabetical order."""
    return {
        "loop-block-queries": lazy("tempo_ir.lowering.kernels.loop_block_queries:LoopBlockQueriesPass"),
        "loop-form-kernels": lazy("tempo_ir.lowering.formation.loop_form_kernels:LoopFormKernelsPass"),
        "loop-fuse-rows": lazy("tempo_ir.lowering.formation.loop_fuse_rows:LoopFuseRowsPass"),
        "loop-join-siblings": lazy("tempo_ir.lowering.kernels.loop_join_siblings:LoopJoinSiblingsPass"),
        "loop-lower-kernels": lazy("tempo_ir.lowering.kernels.loop_lower_kernels:LoopLowerKernelsPass"),
        "loop-peel-starts": lazy("tempo_ir.lowering.kernels.loop_peel_starts:LoopPeelStartsPass"),
        "loop-persist": lazy("tempo_ir.lowering.persistence.loop_persist:LoopPersistPass"),
        "loop-plan-storage": lazy("tempo_ir.lowering.storage.loop_plan_storage:LoopPlanStoragePass"),
        "loop-split-rows": lazy("tempo_ir.lowering.kernels.loop_split_rows:LoopSplitRowsPass"),
        "loop-split-softmax": lazy("tempo_ir.lowering.kernels.loop_split_softmax:LoopSplitSoftmaxPass"),
        "sdg-schedule": lazy("tempo_ir.lowering.schedule.sdg_schedule:SdgSchedulePass"),
        "tile-forward-stores": lazy("tempo_ir.lowering.tiles.tile_forward_stores:TileForwardStoresPass"),
    }


def get_all_targets() -> dict[str, TargetFactory]:
    """What `tempo-opt -t` prints beside the IR itself, by name."""
    return {
        "llvm": lazy("tempo_ir.lowering.targets:LlvmTarget"),
        "triton": lazy("tempo_ir.lowering.targets:TritonTarget"),
    }
