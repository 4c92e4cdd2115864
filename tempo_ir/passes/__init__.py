"""Passes over the IR: one file per pass, named after it; this registry loads each on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tempo_ir.lazy import lazy

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PassFactory = Callable[[], "type[ModulePass]"]


def get_all_passes() -> dict[str, PassFactory]:
    """Every pass of this package by name, in alphabetical order. The lowerings are passes too: `tempo_ir.lowering`."""
    return {
        "sdg-absorb-casts": lazy("tempo_ir.passes.sdg_absorb_casts:SdgAbsorbCastsPass"),
        "sdg-accumulate": lazy("tempo_ir.passes.sdg_accumulate:SdgAccumulatePass"),
        "sdg-autodiff": lazy("tempo_ir.passes.sdg_autodiff:SdgAutodiffPass"),
        "sdg-cse": lazy("tempo_ir.passes.sdg_cse:SdgCsePass"),
        "sdg-dce": lazy("tempo_ir.passes.sdg_dce:SdgDcePass"),
        "sdg-devectorize": lazy("tempo_ir.passes.sdg_devectorize:SdgDevectorizePass"),
        "sdg-fold-constants": lazy("tempo_ir.passes.sdg_fold_constants:SdgFoldConstantsPass"),
        "sdg-insert-dealloc": lazy("tempo_ir.passes.sdg_insert_dealloc:SdgInsertDeallocPass"),
        "sdg-insert-donate": lazy("tempo_ir.passes.sdg_insert_donate:SdgInsertDonatePass"),
        "sdg-insert-swap": lazy("tempo_ir.passes.sdg_insert_swap:SdgInsertSwapPass"),
        "sdg-lift": lazy("tempo_ir.passes.sdg_lift:SdgLiftPass"),
        "sdg-reduce-domain": lazy("tempo_ir.passes.sdg_reduce_domain:SdgReduceDomainPass"),
        "sdg-remat": lazy("tempo_ir.passes.sdg_remat:SdgRematPass"),
        "sdg-simplify": lazy("tempo_ir.passes.sdg_simplify:SdgSimplifyPass"),
        "sdg-sink": lazy("tempo_ir.passes.sdg_sink:SdgSinkPass"),
        "sdg-split": lazy("tempo_ir.passes.sdg_split:SdgSplitPass"),
        "sdg-tile": lazy("tempo_ir.passes.sdg_tile:SdgTilePass"),
        "sdg-transpose": lazy("tempo_ir.passes.sdg_transpose:SdgTransposePass"),
        "sdg-unflatten": lazy("tempo_ir.passes.sdg_unflatten:SdgUnflattenPass"),
        "sdg-unlift": lazy("tempo_ir.passes.sdg_unlift:SdgUnliftPass"),
        "sdg-vectorize": lazy("tempo_ir.passes.sdg_vectorize:SdgVectorizePass"),
    }
