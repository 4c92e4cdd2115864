"""What sdg-remat computes anew, and in blocks of how many steps: bytes that are kept against work that is done twice.

With blocks of k steps, T / k rows are kept of what a block begins with, and the rows of one block of what the backward
steps read: the sum is least at k = sqrt(T * begun / read) (Chen et al., "Training deep nets with sublinear memory
cost", 2016). What is left of a budget is given to the values that are most work per byte: their rows of all steps are
kept, and they are not computed anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tempo_ir.dialects.sdg import ContractOp, HostOp, OutputOp, RandomOp, SdgOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.graphs import minimum_cut, reachable
from tempo_ir.passes.recompute.sides import Sides
from tempo_ir.passes.sdg_accumulate import OPEN_EXTENT, result_bytes

CutNode: TypeAlias = tuple[Literal["made", "there"], SdgOp] | Literal["source", "sink"]
SOURCE: CutNode = "source"
SINK: CutNode = "sink"


@dataclass(frozen=True)
class Plan:
    """Blocks of `size` steps; `again` is computed anew in each; `least` bytes are kept, `full` without blocks."""

    size: int
    again: dict[SdgOp, None]
    least: int
    full: int


@dataclass(frozen=True)
class Planner:
    """Plans for one dim that is taken to have `steps` points."""

    sides: Sides
    steps: int

    def plan(self, budget: int | None, size: int | None) -> Plan:
        """Blocks of a size, the best one where none is given; more is kept as long as the budget allows."""
        kept: dict[SdgOp, None] = {}
        plan = self._plan(kept, size)
        for op in sorted(self._dear(plan.again), key=work_per_byte, reverse=True):
            more = self._plan({**kept, op: None}, size)
            if budget is not None and more.least <= budget:
                kept[op] = None
                plan = more
        return plan

    def _plan(self, kept: Mapping[SdgOp, None], size: int | None) -> Plan:
        again = self.computed_again(kept)
        begun, read = self._begun(again), self._read(again)
        whole = sum(result_bytes(op) for op in kept)
        best = size or max(1, min(self.steps, round(math.sqrt(self.steps * begun / max(1, read)))))
        blocks = -(-self.steps // best)
        least = begun * blocks + read * min(best, self.steps) + whole * self.steps
        return Plan(best, again, least, self.steps * self._read(self.computed_again({}), rows_of_totals=False))

    def computed_again(self, kept: Mapping[SdgOp, None]) -> dict[SdgOp, None]:
        """What the backward side reads, and what that is made of, but for what is kept, for the caller too, and calls
        of the host."""

        def able(op: SdgOp) -> bool:
            return op not in kept and not isinstance(op, HostOp) and not self._is_given(op)

        def made_of(op: SdgOp) -> list[SdgOp]:
            return [producer for producer, _ in self.sides.rows_read(op) if able(producer)]

        read = [producer for op in self._readers() for producer, _ in self.sides.rows_read(op) if able(producer)]
        found = reachable(read, made_of)
        return {op: None for op in self.sides.forward if op in found}

    def _is_given(self, op: SdgOp) -> bool:
        """Whether the caller gets the rows of all steps."""
        users = [use.operation for result in op.results for use in result.uses]
        return any(isinstance(user, OutputOp) and self.sides.dim in user.domain.dims for user in users)

    def _readers(self) -> list[SdgOp]:
        """What reads the forward side: the backward side, and the sums of its rows."""
        return [*self.sides.backward, *filter(self.sides.is_backward, self.sides.totals)]

    def _begun(self, again: Mapping[SdgOp, None]) -> int:
        """The bytes that the steps of a block read of the block before."""
        earlier: dict[SdgOp, int] = {}
        for op in (*again, *self._readers()):
            for producer, shift in self.sides.rows_read(op):
                if shift < 0 and producer in again:
                    earlier[producer] = max(earlier.get(producer, 0), -shift)
        return sum(rows * result_bytes(op) for op, rows in earlier.items())

    def _read(self, again: Mapping[SdgOp, None], *, rows_of_totals: bool = True) -> int:
        """The bytes of a step that are kept, of what is computed anew, until the backward side has read it, and of the
        rows that sums take."""
        kept = self._kept_of_a_step(again)
        if not rows_of_totals:
            return kept
        taken = dict.fromkeys(a.value.owner for whole in self.sides.totals.values() for a in whole.op.accesses)
        return kept + sum(result_bytes(op) for op in taken if isinstance(op, SdgOp) and op in self.sides.backward)

    def _kept_of_a_step(self, again: Mapping[SdgOp, None]) -> int:
        """The least bytes of values from which a backward step can make what it reads: but for products, draws and what
        reads other steps, it may compute anything itself (a minimum cut, as `schedule/sinking.py` makes one)."""
        capacities: dict[tuple[CutNode, CutNode], float] = {}
        for op in again:
            made: CutNode = ("made", op)
            there: CutNode = ("there", op)
            capacities[made, there] = float(result_bytes(op))
            reads = [(producer, shift) for producer, shift in self.sides.rows_read(op) if producer in again]
            if isinstance(op, ContractOp | RandomOp) or any(shift for _, shift in reads):
                capacities[SOURCE, made] = math.inf
            for producer in (producer for producer, shift in reads if not shift):
                capacities[("there", producer), made] = math.inf
        for op in self._readers():
            for producer in (producer for producer, _ in self.sides.rows_read(op) if producer in again):
                capacities[("there", producer), SINK] = math.inf
        inside = minimum_cut(capacities, SOURCE, SINK)
        return sum(result_bytes(op) for op in again if ("made", op) in inside and ("there", op) not in inside)

    def _dear(self, again: Iterable[SdgOp]) -> list[SdgOp]:
        return [op for op in again if isinstance(op, ContractOp | RandomOp)]


def work_per_byte(op: SdgOp) -> float:
    """Products, or draws, per byte of a value."""
    return work(op) / max(1, result_bytes(op))


def work(op: SdgOp) -> int:
    """Products of a contraction; ten for each number that is drawn."""
    if not isinstance(op, ContractOp):
        return 10 * math.prod(
            extent if isinstance(extent, int) else OPEN_EXTENT for extent in shape_of(op.results[0].type)
        )
    inputs, _ = op.letters
    extents: dict[str, int] = {}
    for letters, access in zip(inputs, op.accesses, strict=True):
        for letter, extent in zip(letters, shape_of(access.tensor), strict=True):
            extents[letter] = extent if isinstance(extent, int) else OPEN_EXTENT
    return math.prod(extents.values())
