"""Compiling for an amount of memory: what a program keeps between its loops goes to the host until it fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.index.domain import Space
from tempo_ir.lowering.kernels.layout import most_of
from tempo_ir.reference.calls import whole_number
from tempo_ir.runtime.compiler import Levels, Options, lower, program_of
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.memory import place, program_buffers, with_most


@dataclass(frozen=True)
class Budget:
    """Bytes that a call may take on the device beside the caller's arrays, at some sizes, given by bound."""

    bytes: int
    sizes: Mapping[str, int]

    @staticmethod
    def of(memory: object, sizes: object) -> Budget:
        """The budget of a number of bytes and sizes by bound. Raises CompileError for what are none."""
        most = whole_number(memory)
        if most is None or most < 1:
            raise CompileError(f"a memory budget is some bytes, got {memory!r}")
        if not isinstance(sizes, Mapping):
            raise CompileError(f"sizes are numbers by bound, got {sizes!r}")
        numbers: dict[str, int] = {}
        for name, size in cast("Mapping[str, object]", sizes).items():
            number = whole_number(size)
            if number is None or number < 0:
                raise CompileError(f"sizes: {name} = {size!r}, a bound is an integer of 0 or more")
            numbers[name] = number
        return Budget(most, numbers)

    def checked(self, space: Space) -> Budget:
        """The budget, if it can be one of a program. Raises CompileError."""
        if unknown := [name for name in self.sizes if name not in space.params]:
            listed = ", ".join(space.params) or "none"
            raise CompileError(f"sizes: the program has no bound '{unknown[0]}', only {listed}")
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
    program = program_of(levels.lowered, loop.ProgramOp)
    return place(program_buffers(program), with_most(most_of(program), budget.sizes)).size
