"""A reduction over a range that grows, as a recurrence: the result at the previous point and the row that joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import Access, AccessOp, MergeOp
from tempo_ir.dialects.types import Tensor, element, shape_of, tensor
from tempo_ir.index import TRUE, Cond, Domain, Sym, conj, negate
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.recurrences.growth import Growth
from tempo_ir.passes.recurrences.reductions import accumulator, combining, identity

Build: TypeAlias = Callable[[GraphBuilder], Access]


@dataclass(frozen=True)
class Recurrence:
    """What a reduction becomes.

    `part` is the reduction of the row that joins, `whole` the reduction as it was, used where the walk begins,
    `earlier` what the result of the previous point turns into (itself, unless its rows are scaled).
    """

    op: AccessOp
    growth: Growth
    part: Build
    whole: Build
    earlier: Callable[[GraphBuilder, Access], Access]
    result_type: Tensor

    @property
    def element_type(self) -> Attribute:
        """What the running result is kept in."""
        return accumulator(type(self.op), element(self.result_type))

    def build(self) -> Access:
        """Insert it before the op; the running result at the current point of the op's domain."""
        walk = self.growth.walk
        everywhere = GraphBuilder(self.op, self.op.domain, self.op.location)
        joins = self.growth.joins
        first = self.growth.rows_at_start()
        wide = tensor(self.element_type, shape_of(self.result_type))
        parts = walk.continuing
        if joins != TRUE:
            parts = self._where(parts, joins)
        elif first == 1:  # then a row joins at each point of the domain
            parts = self.op.domain
        part = self._wide(everywhere.at(parts), self.part)
        start = part if parts == self.op.domain else self._start(everywhere.at(walk.starting), first)
        merge = MergeOp((walk.starts, start), domain=self.op.domain, result_type=wide)
        result = everywhere.insert(merge)
        merge.result.name_hint = self.op.results[0].name_hint
        previous = Access(merge.result, walk.before_index(tuple(map(Sym, self.op.domain.dims))))
        step = everywhere.at(walk.continuing if joins == TRUE else parts)
        kind = combining(type(self.op), self.element_type)
        added = step.build(kind, self.earlier(step, previous), part)
        cases: list[tuple[Cond, Access]] = [(walk.starts, start), (walk.continues, added)]
        if joins != TRUE:
            stays = self._where(walk.continuing, negate(joins))
            kept = self.earlier(everywhere.at(stays), previous)
            cases = [(walk.starts, start), (joins, added), (negate(joins), kept)]
        merge.set_cases(cases)
        merge.detach()
        self.op.parent_block().insert_op_before(merge, self.op)  # pyright: ignore[reportOptionalMemberAccess]
        return result

    def _where(self, domain: Domain, cond: Cond) -> Domain:
        return normal_form(Domain(domain.dims, domain.ranges, conj(domain.where, cond)), self.growth.walk.space)

    def _wide(self, build: GraphBuilder, value: Build) -> Access:
        return build.cast(value(build), self.element_type)

    def _start(self, build: GraphBuilder, rows: int | None) -> Access:
        if rows == 0:
            number = identity(type(self.op), self.element_type)
            return build.constant(number, self.element_type, shape_of(self.result_type))
        return self._wide(build, self.part if rows == 1 else self.whole)
