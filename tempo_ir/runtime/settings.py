"""What a compile is asked for, and that as lists and numbers: the key of the cache has it, and so have saved files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tempo_ir.runtime.budget import Budget
from tempo_ir.runtime.compiler import Options


@dataclass(frozen=True)
class Settings:
    """What a compile is asked for besides a program and a target."""

    without: frozenset[str] = frozenset()
    remat: Mapping[str, int] | None = None
    check: bool = True
    budget: Budget | None = None
    options: Mapping[str, Options] | None = None

    @property
    def parts(self) -> list[Any]:
        """All of it in an order that depends on nothing else, as lists, texts and numbers."""
        remat = None if self.remat is None else sorted(map(list, self.remat.items()))
        budget = None if self.budget is None else [self.budget.bytes, sorted(map(list, self.budget.sizes.items()))]
        options = sorted([name, _listed(given)] for name, given in (self.options or {}).items())
        return [sorted(self.without), remat, self.check, budget, options]

    @staticmethod
    def of(parts: list[Any]) -> Settings:
        """The settings of such parts."""
        without, remat, check, within, options = parts
        budget = None if within is None else Budget(within[0], dict(within[1]))
        chosen = {name: _as_options(given) for name, given in options}
        return Settings(frozenset(without), None if remat is None else dict(remat), check, budget, chosen)


def _listed(options: Options) -> list[list[Any]]:
    return sorted([name, list(value) if isinstance(value, tuple) else value] for name, value in options.items())


def _as_options(parts: list[tuple[str, str | bool | int | list[str]]]) -> Options:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parts}
