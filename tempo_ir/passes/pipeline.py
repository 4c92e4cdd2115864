"""The default order of the passes on the graph, which `tempo_ir.compile` runs before it schedules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

DEFAULT_PIPELINE: tuple[str, ...] = (
    "sdg-autodiff",
    "sdg-simplify",
    "sdg-cse",
    "sdg-unflatten",
    "sdg-devectorize",
    "sdg-unlift",
    "sdg-lift",
    "sdg-accumulate",
    "sdg-vectorize",
    "sdg-absorb-casts",
    "sdg-simplify",
    "sdg-fold-constants",
    "sdg-cse",
    "sdg-dce",
    "sdg-reduce-domain",
    "sdg-sink",
    "sdg-transpose",
)
"""Names in `tempo_ir.passes.get_all_passes`. Each but sdg-autodiff may be left out, and the numbers stay.

Gradients are expanded first: simplification may compose two reads into one whose readers are no ranges any more.
"""

REQUIRED = frozenset({"sdg-autodiff"})
"""What scheduling needs: it knows no gradient op."""


def default_pipeline(without: Collection[str] = ()) -> tuple[str, ...]:
    """The default passes in order, except those named; a pass that scheduling needs stays."""
    return tuple(name for name in DEFAULT_PIPELINE if name not in without or name in REQUIRED)


Options: TypeAlias = Mapping[str, object]
NO_OPTIONS: Options = MappingProxyType({})

AFTER_TILES = frozenset(DEFAULT_PIPELINE[DEFAULT_PIPELINE.index("sdg-accumulate") :]) - {"sdg-simplify", "sdg-cse"}


def recomputing_pipeline(
    dims: Sequence[str], options: Options, without: Collection[str] = ()
) -> Iterator[tuple[str, Options]]:
    """The default passes with sdg-remat among them, and the options of each; `dims` are those of the program.

    It stands behind sdg-cse, which would make one of what is to be computed twice, and before sdg-vectorize, which
    leaves the loop over its blocks alone.
    """
    before = [name for name in DEFAULT_PIPELINE if name != "sdg-vectorize"]
    after = ("sdg-simplify", "sdg-fold-constants", "sdg-dce")
    yield from ((name, NO_OPTIONS) for name in before if name not in without or name in REQUIRED)
    yield "sdg-remat", options
    if "sdg-vectorize" not in without and dims:
        yield "sdg-vectorize", {"dims": tuple(dims)}
    yield from ((name, NO_OPTIONS) for name in after if name not in without)


def with_options(
    pipeline: Sequence[tuple[str, Options]], options: Mapping[str, Options], without: Collection[str] = ()
) -> list[tuple[str, Options]]:
    """Passes with options by name. One that is not among them and has some runs too: sdg-tile before sums over its
    tiles are accumulated, sdg-split before what it splits is vectorised, others, which ask for memory, behind all."""
    known = {*without, *(name for name, _ in pipeline)}
    more = {name: given for name, given in options.items() if name not in known}
    listed = [(name, {**given, **options.get(name, NO_OPTIONS)}) for name, given in pipeline]
    for early in ("sdg-tile", "sdg-split"):
        if early in more:
            behind = [name in AFTER_TILES or name == "sdg-tile" for name, _ in listed]
            place = behind.index(True) if True in behind else len(listed)
            listed.insert(place, (early, dict(more.pop(early))))
    return [*listed, *((name, dict(given)) for name, given in more.items())]
