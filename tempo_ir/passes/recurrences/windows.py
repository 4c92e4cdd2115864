"""Sums of integers over a window that slides: the sum before, and the row that joins, less the one that leaves.

Exact, for integers wrap. Floats would drift, and a window that an infinity has left would hold inf - inf.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tempo_ir.dialects.sdg import Access, MergeOp, SdgOp, SumOp
from tempo_ir.dialects.types import as_tensor, element, is_integer, shape_of
from tempo_ir.index import TRUE, Cond, Const, Domain, Expr, Slice, compare, conj, negate
from tempo_ir.passes.building import GraphBuilder, normal_form, symbols_of
from tempo_ir.passes.recurrences.growth import Walk
from tempo_ir.passes.recurrences.rows import SAME, Rows
from tempo_ir.passes.simplify.rule import current_point

FEW_ROWS = 4
"""A window of so many rows costs no more than a step of the recurrence."""


@dataclass(frozen=True)
class Edge:
    """The row that joins a window at a point of a walk, or the one that leaves it. `window` is a range that slides;
    others slide with it."""

    walk: Walk
    window: Slice
    leaves: bool

    at_end: bool | None = None

    def keeps(self, rows: Slice) -> bool:
        """Whether a range slides as the window does, so that its rows are those of the window, moved by a number."""
        moved = rows.start - self.window.start, rows.stop - self.window.stop
        return rows.step == 1 and isinstance(moved[0], Const) and moved[0] == moved[1]

    def joining(self, rows: Slice) -> Expr:
        """The row of a range that joins, or leaves."""
        upwards = self.walk.offset < 0
        if self.leaves:
            return self.walk.before(rows.start) if upwards else self.walk.before(rows.stop) - 1
        return rows.stop - 1 if upwards else rows.start

    @property
    def happens(self) -> Cond:
        """Where the window moves at that edge."""
        at_start = self.leaves == (self.walk.offset < 0)
        here = self.window.start if at_start else self.window.stop
        return compare(">" if self.walk.offset < 0 else "<", here, self.walk.before(here))


def sliding_windows(op: SumOp, walk: Walk) -> Iterator[tuple[int, Slice]]:
    """The axes of a sum that are windows along a walk: each end moves by at most a row, and they are never empty."""
    from tempo_ir.index import isl

    (operand,) = op.accesses
    for axis in op.axes:
        extent = shape_of(operand.tensor)[axis]
        window = None if isinstance(extent, int) else _range_of_extent(operand, extent)
        if window is None or isl.prove(compare("<=", window.stop - window.start, FEW_ROWS), walk.space, walk.domain):
            continue
        if walk.fixed(window.start) or walk.fixed(window.stop):  # it grows
            continue
        steps = [(end - walk.before(end)) * -walk.offset for end in (window.start, window.stop)]
        slides = conj(*(conj(compare(">=", step, 0), compare("<=", step, 1)) for step in steps))
        full = compare("<", window.start, window.stop)
        if isl.prove(slides, walk.space, walk.continuing) and isl.prove(full, walk.space, walk.domain):
            yield axis, window


def _range_of_extent(access: Access, extent: Expr) -> Slice | None:
    """The first range of an extent that a value is made of at the current point."""
    waiting, seen = [access], {access}
    while waiting:
        read = waiting.pop()
        for entry in read.index:
            if isinstance(entry, Slice) and entry.extent == extent and entry.step == 1:
                return entry
        producer = read.value.owner
        if isinstance(producer, SdgOp) and read.index == current_point(producer):
            new = [operand for operand in producer.accesses if operand not in seen]
            waiting += new
            seen.update(new)
    return None


def sliding_sum(op: SumOp, walk: Walk) -> Access | None:
    """A sum of integers over a window as a recurrence, inserted before it; None, and nothing done, for other sums."""
    result = as_tensor(op.result.type)
    if not is_integer(element(result)) or walk.dim in symbols_of(shape_of(result)):
        return None
    for axis, window in sliding_windows(op, walk):
        edges = [Edge(walk, window, leaves) for leaves in (False, True)]
        rows = [Rows(edge) for edge in edges]
        if all(some.change(op.accesses[0], axis) == SAME for some in rows):
            return _recurrence(op, walk, axis, edges, rows)
    return None


def _recurrence(op: SumOp, walk: Walk, axis: int, edges: list[Edge], rows: list[Rows]) -> Access:
    (operand,) = op.accesses
    everywhere = GraphBuilder(op, op.domain, op.location)
    start = everywhere.at(walk.starting).reduce(SumOp, operand, op.axes)
    merge = MergeOp((walk.starts, start), domain=op.domain, result_type=as_tensor(op.result.type))
    result = everywhere.insert(merge)
    merge.result.name_hint = op.result.name_hint
    others = [other - (other > axis) for other in op.axes if other != axis]
    cases: list[tuple[Cond, Access]] = [(walk.starts, start)]
    for moves in ((True, True), (True, False), (False, True), (False, False)):
        cond = conj(*(edge.happens if move else negate(edge.happens) for edge, move in zip(edges, moves, strict=True)))
        found = _points(walk, cond)
        if found is None:
            continue
        build = everywhere.at(found[0])
        total = Access(merge.result, walk.before_index(current_point(merge)))
        if moves[0]:
            total = build.add(total, build.reduce(SumOp, rows[0].row(build, operand, axis), others))
        if moves[1]:
            total = build.sub(total, build.reduce(SumOp, rows[1].row(build, operand, axis), others))
        cases.append((found[1], total))
    merge.set_cases([*cases[:-1], (TRUE, cases[-1][1])])
    merge.detach()
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(merge, op)
    return result


def _points(walk: Walk, cond: Cond) -> tuple[Domain, Cond] | None:
    """The points of a walk after the first at which a condition holds, and a short form of it; None where there are
    none."""
    from tempo_ir.index import isl

    domain = walk.continuing
    points = Domain(domain.dims, domain.ranges, conj(domain.where, cond))
    found = isl.domain_set(walk.space, points)
    if found.is_empty():
        return None
    return normal_form(points, walk.space), isl.condition(found, isl.domain_set(walk.space, domain))
