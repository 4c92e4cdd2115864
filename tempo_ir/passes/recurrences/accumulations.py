"""Recurrences that accumulate: `s[t] = s[t - 1] + a[t]`, and what they are without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    AddOp,
    AndOp,
    BinaryOp,
    ConstantOp,
    MaximumOp,
    MaxOp,
    MergeOp,
    MinimumOp,
    MinOp,
    MulOp,
    OrOp,
    ProdOp,
    ReduceOp,
    SdgOp,
    SumOp,
    domain_of,
)
from tempo_ir.dialects.types import dtype_name, element, is_bool, shape_of
from tempo_ir.index import Entry, Expr, Index, Slice, Sym, free_symbols, substitute
from tempo_ir.passes.building import symbols_of
from tempo_ir.passes.recurrences.growth import Walk, walks
from tempo_ir.passes.recurrences.reductions import identity
from tempo_ir.passes.simplify.rule import current_point
from tempo_ir.passes.vectorize.batching import shifts_only

_REDUCTION: Mapping[type[BinaryOp], type[ReduceOp]] = MappingProxyType(
    {AddOp: SumOp, MulOp: ProdOp, MaximumOp: MaxOp, MinimumOp: MinOp}
)


@dataclass(frozen=True)
class Accumulation:
    """A merge and a step that read each other, and nothing else of theirs.

    Running (`inclusive`): `s[t] = s[t - 1] + a[t]`, `s[0] = start`: the merge holds the sum with the row at t.
    Else `s[0] = start`, `s[t] = h[t - 1]`, `h[t] = s[t] + a[t]`: the step `h` does, the merge holds the sum before it.
    """

    walk: Walk
    merge: MergeOp
    step: BinaryOp
    start: Access
    row: Access
    inclusive: bool

    @property
    def kind(self) -> type[ReduceOp]:
        """The reduction that the step combines by."""
        if is_bool(element(self.merge.result.type)):
            return MaxOp if isinstance(self.step, OrOp) else MinOp
        return _REDUCTION[type(self.step)]

    @property
    def starts_with_row(self) -> bool:
        """Whether the first value is the row of the first point."""
        if not self.inclusive or self.start.value is not self.row.value:
            return False
        first = {self.walk.dim: self.walk.start}
        return substitute(self.start.index, first) == substitute(self.row.index, first)

    @property
    def starts_with_nothing(self) -> bool:
        """Whether the first value is what the reduction over nothing gives."""
        owner = self.start.value.owner
        number = owner.number if isinstance(owner, ConstantOp) else None
        return number is not None and number == identity(self.kind, element(self.merge.result.type))

    def rows(self, last: Expr) -> Slice:
        """The points whose rows the merge has at `last`, other than those of the start."""
        walk = self.walk
        if walk.offset < 0:
            first = walk.first if self.starts_with_row or not self.inclusive else walk.first + 1
            return Slice(first, last + 1 if self.inclusive else last)
        end = walk.end if self.starts_with_row or not self.inclusive else walk.end - 1
        return Slice(last if self.inclusive else last + 1, end)

    def read_rows(self, points: Slice) -> Access:
        """The rows at a range of points."""
        return Access(self.row.value, tuple(self._at(entry, points) for entry in self.row.index))

    def _at(self, entry: Entry, points: Slice) -> Entry:
        if isinstance(entry, Slice) or self.walk.dim not in free_symbols(entry):
            return entry
        shift = entry - Sym(self.walk.dim)
        return Slice(points.start + shift, points.stop + shift)


Readers: TypeAlias = list[tuple[AccessOp, int]]


def accumulation_of(merge: MergeOp) -> Accumulation | None:
    """The accumulation that a merge belongs to; None where it is of another form."""
    if len(merge.operands) != 2 or not isinstance(merge.operands[1].owner, BinaryOp):
        return None
    step, start = merge.operands[1].owner, merge.accesses[0]
    sides = [number for number, operand in enumerate(step.operands) if operand is merge.result]
    if len(sides) != 1 or (type(step) not in _REDUCTION and not isinstance(step, OrOp | AndOp)):
        return None
    back, row = step.accesses[sides[0]], step.accesses[1 - sides[0]]
    if not _fits(merge, step, start, row):
        return None
    here = current_point(merge)
    for walk in walks(merge, merge.domain.dims):
        before = walk.before_index(here)
        reads = merge.accesses[1].index, back.index
        if reads not in ((here, before), (before, here)) or not _is_walk(merge, walk):
            continue
        found = Accumulation(walk, merge, step, start, row, inclusive=reads == (here, before))
        return found if _is_one_row(row, walk) else None
    return None


def _fits(merge: MergeOp, step: BinaryOp, start: Access, row: Access) -> bool:
    """Types that stay through the reduction: 16-bit floats would round once, not at each step."""
    kind = element(merge.result.type)
    same = step.result.type == merge.result.type == row.type == start.type
    logic = isinstance(step, OrOp | AndOp)
    return (
        same
        and logic == is_bool(kind)
        and dtype_name(kind) not in ("f16", "bf16")
        and step.domain.dims == merge.domain.dims
        and not symbols_of(shape_of(merge.result.type)) & set(merge.domain.dims)
    )


def _is_walk(merge: MergeOp, walk: Walk) -> bool:
    """Whether the cases are the first point of a walk and the others."""
    from tempo_ir.index import isl

    parts = (walk.starting, walk.continuing)
    return all(
        isl.domain_set(walk.space, merge.case_domain(number)).is_equal(isl.domain_set(walk.space, part))
        for number, part in enumerate(parts)
    )


def _is_one_row(row: Access, walk: Walk) -> bool:
    """Whether the row is read at a shift of the dim, and at the other dims as the step is."""
    varying = [entry for entry in row.index if walk.dim in free_symbols(entry)]
    ranges = any(isinstance(entry, Slice) for entry in row.index)
    if ranges or len(varying) != 1 or not shifts_only(varying[0], walk.dim):
        return False
    return not symbols_of(shape_of(row.value.type)) & set(domain_of(row.value).dims)


def outside_readers(found: Accumulation) -> tuple[Readers, Readers]:
    """Who reads the merge, and who reads the step, apart from each other."""
    inside: set[SdgOp] = {found.merge, found.step}
    readers: list[Readers] = []
    for op in (found.merge, found.step):
        uses = [(use.operation, use.index) for use in op.results[0].uses if use.operation not in inside]
        readers.append([(user, number) for user, number in uses if isinstance(user, AccessOp)])
    return readers[0], readers[1]


def fixed_point(index: Index, dims: tuple[str, ...], dim: str, every_dim: tuple[str, ...]) -> Expr | None:
    """Where an index reads a dim, if that is the same for all readers; None if it varies, or is a range."""
    entry = index[dims.index(dim)]
    return None if isinstance(entry, Slice) or free_symbols(entry) & set(every_dim) else entry
