"""
Statements in pieces, where as wholes they have no order: index-set splitting.

`h[t]` that reads `h[t - 1]` in the first half of the steps and `h[t + 1]` in the second is one loop in no direction,
and two loops as two pieces. Merges are split by case, then all statements of the component that has no order by one
condition on their dims, then by several: where a guard or an index says that what is read changes. What no cut orders
is skewed by isl, whole or cut.

After Griebl, Feautrier and Lengauer, "Index set splitting" (2000), with the conditions of the program as candidates.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tempo_ir.dialects.sdg import SdgOp
from tempo_ir.index.expr import And, Compare, Cond, Or, Slice, Sym, compare, free_symbols
from tempo_ir.lowering.schedule.graph import Graph, Relation
from tempo_ir.lowering.schedule.isl_fallback import order_by_isl
from tempo_ir.lowering.schedule.named_dims import LastResort, UnorderedError
from tempo_ir.lowering.schedule.order import Node
from tempo_ir.lowering.schedule.statements import Statements

MOST_CUTS = 100
"""How many cuts are tried for a program; each is an attempt to order it."""
MOST_SKEWED = 4
"""How many ways to cut a component isl is asked to skew."""

Attempt: TypeAlias = Callable[[Graph, "LastResort | None"], list[Node]]
"""Orders a graph, or raises UnorderedError."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of statements, cut as they had to be."""

    statements: Statements
    order: list[Node]


@dataclass(frozen=True, slots=True)
class Stuck:
    """Statements of which a component has no order."""

    statements: Statements
    error: UnorderedError

    @property
    def ops(self) -> set[SdgOp]:
        """The ops of the component."""
        return {self.statements.works[number].op for number in self.error.statements}


def in_pieces(statements: Statements, attempt: Attempt) -> Ordered:
    """
    The order of the statements, cut where nothing orders them as they are.

    Raises UnorderedError where no cut helps.
    """
    search = _Search(attempt)
    found = search.by_cases(statements)
    while isinstance(found, Stuck):
        better = search.better(found)
        if better is None:
            raise found.error
        found = better
    return found


@dataclass(slots=True)
class _Search:
    """The attempts for one program: how many are left, and whether isl helps with each."""

    attempt: Attempt
    left: int = MOST_CUTS
    resort: LastResort | None = None

    def by_cases(self, statements: Statements) -> Ordered | Stuck:
        """An attempt, with merges split by case where that helps."""
        while True:
            try:
                return Ordered(statements, self.attempt(statements.graph, self.resort))
            except UnorderedError as error:
                split = statements.split(error.statements)
                if split is None:
                    return Stuck(statements, error)
            statements = split

    def better(self, stuck: Stuck) -> Ordered | Stuck | None:
        """
        Cuts, or isl's help, that order the component; another may be stuck then. None if nothing orders it.

        One cut first, then isl, since it may need none; then more cuts, and isl with those that leave least.
        """
        tried: list[Stuck] = []
        found = self._cut(stuck, stuck, tried) or self._skewed(stuck, [stuck])
        waiting = [(len(each.ops), number, each) for number, each in enumerate(tried)]
        heapq.heapify(waiting)
        while found is None and waiting and self.left > 0:
            known = len(tried)
            found = self._cut(heapq.heappop(waiting)[2], stuck, tried)
            for number in range(known, len(tried)):
                heapq.heappush(waiting, (len(tried[number].ops), number, tried[number]))
        return found or self._skewed(stuck, sorted(tried, key=lambda each: len(each.ops))[:MOST_SKEWED])

    def _cut(self, current: Stuck, first: Stuck, tried: list[Stuck]) -> Ordered | Stuck | None:
        """The first cut by one condition that orders the component that was stuck at first; notes the others."""
        for condition in conditions(current):
            cut = current.statements.cut(current.error.statements, condition) if self.left > 0 else None
            if cut is None:
                continue
            self.left -= 1
            found = self.by_cases(cut)
            if is_better(found, first):
                return found
            if isinstance(found, Stuck):
                tried.append(found)
        return None

    def _skewed(self, first: Stuck, tried: Sequence[Stuck]) -> Ordered | Stuck | None:
        """The first of the tried cuts in which isl orders the component."""
        if self.resort is not None:
            return None
        self.resort = order_by_isl
        for candidate in tried:
            found = self.by_cases(candidate.statements)
            if is_better(found, first):
                return found
        self.resort = None
        return None


def is_better(found: Ordered | Stuck, first: Stuck) -> bool:
    """Whether what was stuck at first is no more."""
    return isinstance(found, Ordered) or found.ops.isdisjoint(first.ops)


def conditions(stuck: Stuck) -> list[Cond]:
    """What may tell pieces of the component apart, those that most reads have first."""
    dims = set(stuck.statements.program.space.names)
    count: dict[Cond, int] = {}
    for dependence in stuck.error.dependences:
        for condition in dict.fromkeys((*_guards(dependence.relation), *_directions(dependence.relation))):
            if free_symbols(condition) & dims:
                count[condition] = count.get(condition, 0) + 1
    return sorted(count, key=lambda condition: -count[condition])


def _guards(relation: Relation) -> Iterator[Cond]:
    """The comparisons on which it depends whether the read happens."""
    waiting = [relation.guard, relation.consumer.where]
    while waiting:
        condition = waiting.pop(0)
        if isinstance(condition, And | Or):
            waiting.extend(condition.args)
        elif isinstance(condition, Compare):
            yield condition


def _directions(relation: Relation) -> Iterator[Cond]:
    """Where the read is of earlier points along a dim, and where of later ones."""
    for dim, entry in zip(relation.producer.dims, relation.index, strict=True):
        if dim in relation.constants or dim not in relation.consumer.dims:
            continue
        first, last = (entry.start, entry.stop - 1) if isinstance(entry, Slice) else (entry, entry)
        for condition in (compare("<", last, Sym(dim)), compare(">", first, Sym(dim))):
            if isinstance(condition, Compare):
                yield condition
