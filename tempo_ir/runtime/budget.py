"""Compiling for an amount of memory: what a program keeps between its loops goes to the host until it fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.index.domain import Space
from tempo_ir.lowering.kernels.layout import most_of
from tempo_ir.runtime.compiler import Levels, Options, lower
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.memory import place, program_buffers, with_most


@dataclass(frozen=True)
class Budget:
    """Bytes that a call may take on the device beside the caller's arrays, at some sizes, given by bound."""

    bytes: int
    sizes: Mapping[str, int]

    def checked(self, space: Space) -> Budget:
        """The budget, if it can be one of a program. Raises CompileError."""
        if self.bytes < 1:
            raise CompileError(f"a memory budget is some bytes, got {self.bytes}")
        for name, size in self.sizes.items():
            if name not in space.params:
                listed = ", ".join(space.params) or "none"
                raise CompileError(f"sizes: the program has no bound '{name}', only {listed}")
            if size < 0:
                raise CompileError(f"sizes: {name} = {size}, a bound is at least 0")
        return self


def lower_within(
    module: ModuleOp,
    target: str,
    without: Collection[str],
    budget: Budget,
    space: Space,
    *,
    remat: Mapping[str, int] | None = None,
    check: bool = True,
    options: Mapping[str, Options] | None = None,
) -> Levels:
    """
    Lower a program so that its calls at the sizes of a budget take no more.

    First as it is, with what `remat` lets be computed anew. Where that is too much, sums over all steps and batches are
    kept as they run (sdg-accumulate). Then values that a later loop reads again lie with the host (sdg-insert-swap), as
    few as the estimate of that pass asks for; then more, by what was missed. Where not all bounds have a size nothing
    can be measured: all is swapped that can be. Raises CompileError where the program does not fit even so.
    """
    given = options or {}
    known = set(space.params) <= budget.checked(space).sizes.keys()
    if remat is not None:
        remat = _with_budget(remat, budget)
    sums: Options = {"memory": 0, "dims": space.names, **given.get("sdg-accumulate", {})}
    tried = (given, {**given, "sdg-accumulate": sums}) if known else ()
    for options in tried:
        levels = lower(module, target, without, remat=remat, check=check, options=options)
        if peak(levels, budget) <= budget.bytes:
            return levels
    sizes = tuple(f"{name}={size}" for name, size in budget.sizes.items())
    allowed = budget.bytes if known else 0
    while True:
        swap: Options = {"budget": allowed, "sizes": sizes}
        options = {**given, "sdg-accumulate": sums, "sdg-insert-swap": swap}
        levels = lower(module, target, without, remat=remat, check=check, options=options)
        missing = peak(levels, budget) - budget.bytes if known else 0
        if missing <= 0:
            return levels
        if allowed == 0:
            at = ", ".join(f"{name} = {size}" for name, size in budget.sizes.items()) or "any size"
            kept = "".join(f"\n  {reason}" for reason in levels.kept_rows)
            raise CompileError(
                f"the program takes {budget.bytes + missing} bytes at {at}, with all rows on the host that can be "
                f"there: the memory_budget is {budget.bytes}, give it {budget.bytes + missing} or more{kept}"
            )
        allowed = max(0, allowed - missing)


def _with_budget(remat: Mapping[str, int], budget: Budget) -> dict[str, int]:
    """The options of sdg-remat, which may keep what the whole program may and expects the greatest size, where they say
    nothing else."""
    known = {"steps": max(budget.sizes.values())} if budget.sizes else {}
    limited = {} if {"budget", "block"} & remat.keys() else {"budget": budget.bytes}
    return {**known, **limited, **remat}


def peak(levels: Levels, budget: Budget) -> int:
    """The bytes that a call takes on the device at the sizes of a budget."""
    assert levels.lowered is not None
    (program,) = (op for op in levels.lowered.ops if isinstance(op, loop.ProgramOp))
    return place(program_buffers(program), with_most(most_of(program), budget.sizes)).size
