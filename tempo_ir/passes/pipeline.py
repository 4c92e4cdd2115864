"""The default order of the passes on the graph, which `tempo_ir.compile` runs before it schedules."""

from __future__ import annotations

from collections.abc import Collection

DEFAULT_PIPELINE: tuple[str, ...] = (
    "sdg-autodiff",
    "sdg-simplify",
    "sdg-devectorize",
    "sdg-unlift",
    "sdg-lift",
    "sdg-accumulate",
    "sdg-vectorize",
    "sdg-simplify",
    "sdg-fold-constants",
    "sdg-cse",
    "sdg-dce",
    "sdg-reduce-domain",
)
"""Names in `tempo_ir.passes.get_all_passes`. Each but sdg-autodiff may be left out, and the numbers stay.

Gradients are expanded first: simplification may compose two reads into one whose readers are no ranges any more.
"""

REQUIRED = frozenset({"sdg-autodiff"})
"""What scheduling needs: it knows no gradient op."""


def default_pipeline(without: Collection[str] = ()) -> tuple[str, ...]:
    """The default passes in order, except those named; a pass that scheduling needs stays."""
    return tuple(name for name in DEFAULT_PIPELINE if name not in without or name in REQUIRED)
