"""The elements along an axis that grows: what the row that joins is, and how the others differ from point to point.

In `sum(gamma ** arange(T - t) * r[t:T])` the row that joins at t is `gamma ** 0 * r[t]`; the others were there at
`t + 1`, and each is `gamma` times what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg import (
    Access,
    AddOp,
    ArangeOp,
    BroadcastOp,
    CastOp,
    DivOp,
    EqOp,
    ExpOp,
    IndexOp,
    MaxOp,
    MulOp,
    NegOp,
    PowOp,
    ReshapeOp,
    SdgOp,
    SliceOp,
    StopGradientOp,
    SubOp,
    TransposeOp,
)
from tempo_ir.dialects.types import DTYPES, element, is_float, shape_of
from tempo_ir.index import Const, Domain, Expr, Slice, free_symbols
from tempo_ir.passes.building import GraphBuilder, symbols_of
from tempo_ir.passes.recurrences.axes import ABSENT, Along, Places, rule_of, without_axis
from tempo_ir.passes.recurrences.growth import Walk
from tempo_ir.passes.simplify.rule import current_point, made_by
from tempo_ir.passes.utilities import is_slice

Maxima: TypeAlias = Mapping[SSAValue, Access]
"""Running maxima made before, and the growing rows whose maximum each is."""


@dataclass(frozen=True)
class Shifted:
    """A row is what it was at the previous point, plus a number."""

    by: int = 0


SAME = Shifted()


@dataclass(frozen=True)
class Scaled:
    """A row is what it was at the previous point, times a factor: `apply` multiplies.

    `alone`: only a sum of the very rows may use it, since the factor has their shape.
    """

    apply: Callable[[GraphBuilder, Access], Access]
    alone: bool = False


Change: TypeAlias = Shifted | Scaled
_EXACT = (DTYPES["i32"], DTYPES["i64"], DTYPES["f32"], DTYPES["f64"])
_AS_IT_IS = (ReshapeOp, BroadcastOp, TransposeOp, StopGradientOp)


class Moving(Protocol):
    """How an axis differs from that of the previous point of a walk, by a row at one end."""

    @property
    def walk(self) -> Walk:
        """The walk."""
        ...

    @property
    def at_end(self) -> bool | None:
        """Whether the others keep their place counted from the start; if not, from the end; None: from neither."""
        ...

    def keeps(self, rows: Slice) -> bool:
        """Whether the other rows of a range stay."""
        ...

    def joining(self, rows: Slice) -> Expr:
        """The row of a range that differs."""
        ...


@dataclass
class Rows:
    """The rows along an axis that grows. Ask `change` first: where it is None there is no `row`."""

    growth: Moving
    maxima: Maxima = field(default_factory=dict[SSAValue, Access])
    _changes: dict[tuple[Access, int | None], Change | None] = field(
        default_factory=dict["tuple[Access, int | None]", "Change | None"]
    )
    _rows: dict[tuple[Access, int | None, Domain], Access] = field(
        default_factory=dict["tuple[Access, int | None, Domain]", Access], repr=False
    )

    @property
    def dim(self) -> str:
        """The dim that is walked along."""
        return self.growth.walk.dim

    # ---- from point to point ----

    def change(self, access: Access, axis: int | None) -> Change | None:
        """How the rows of an axis (None: the value, which has no such axis) differ from those at the previous point;
        None where no rule says."""
        key = (access, axis)
        if key not in self._changes:
            self._changes[key] = None
            self._changes[key] = self._change(access, axis)
        return self._changes[key]

    def _change(self, access: Access, axis: int | None) -> Change | None:
        shape = shape_of(access.tensor)
        if self.dim in symbols_of(shape if axis is None else without_axis(shape, axis)):
            return None
        if axis is None and self.dim not in free_symbols(access.index):
            return SAME
        if axis is not None and axis < sum(map(is_slice, access.index)):
            return self._change_of_range(access, axis)
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or access.index != current_point(producer):
            return None
        if isinstance(producer, ArangeOp | IndexOp):
            return self._change_of_counting(producer)
        places = self.places(producer, axis)
        if places is None or self._is_sliced_by_dim(producer):
            return None
        if isinstance(producer, ExpOp) and (found := self._exponential(producer, axis)) is not None:
            return found
        changes = [
            self.change(operand, place.axis if place.varies else None)
            for operand, place in zip(producer.accesses, places, strict=True)
        ]
        found = [change for change in changes if change is not None]
        return combined(producer, found) if len(found) == len(changes) else None

    def places(self, op: SdgOp, axis: int | None) -> Places | None:
        """Where the operands of an op have an axis of its result."""
        rule = rule_of(op)
        if rule is None:
            return None
        return rule.places(op, axis) if axis is not None else [ABSENT] * len(op.operands)

    def _is_sliced_by_dim(self, op: SdgOp) -> bool:
        return isinstance(op, SliceOp) and self.dim in free_symbols(op.take)

    def _change_of_range(self, access: Access, axis: int) -> Change | None:
        position = [number for number, entry in enumerate(access.index) if is_slice(entry)][axis]
        rows = access.index[position]
        assert isinstance(rows, Slice)
        others = (*access.index[:position], *access.index[position + 1 :])
        return SAME if self.growth.keeps(rows) and self.dim not in free_symbols(others) else None

    def _change_of_counting(self, op: ArangeOp | IndexOp) -> Change | None:
        if isinstance(op, IndexOp):
            anchor = op.expression
        elif self.growth.keeps(op.range):
            return SAME
        elif op.range.step != 1 or self.growth.at_end is None:
            return None
        else:
            anchor = op.range.start if self.growth.at_end else op.range.stop
        by = anchor - self.growth.walk.before(anchor)
        return Shifted(by.value) if isinstance(by, Const) else None

    def _exponential(self, op: ExpOp, axis: int | None) -> Change | None:
        """`exp(x - m)`, m the greatest row so far: rows shrink by `exp(m_before - m)`, which is at most 1."""
        inner = made_by(op.accesses[0], SubOp)
        if inner is None or axis is None or op.accesses[0].index != current_point(inner):
            return None
        (rows, place), (top, top_place) = zip(inner.accesses, self.places(inner, axis) or (), strict=True)
        if not place.varies or top_place.varies or self.change(rows, place.axis) != SAME:
            return None
        greatest = self._maximum(top, rows)
        shape = without_axis(shape_of(op.result.type), axis)
        if greatest is None or _own(shape_of(greatest.tensor)) != _own(shape):
            return None

        def shrink(build: GraphBuilder, total: Access) -> Access:
            before = Access(greatest.value, self.growth.walk.before_index(greatest.index))
            earlier, now = build.reshape(before, shape), build.reshape(greatest, shape)
            nothing = build.build(EqOp, earlier, build.number_like(float("-inf"), earlier))
            shrunk = build.mul(total, build.unary(ExpOp, build.sub(earlier, now)))
            return build.select(nothing, build.number_like(0.0, total), shrunk)

        return Scaled(shrink, alone=True)

    def _maximum(self, access: Access, rows: Access) -> Access | None:
        """The maximum of the very rows that an access reads, reshaped at most; None where it reads anything else.

        Where it was -inf all rows were, so that nothing is lost with them.
        """
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or access.index != current_point(producer):
            return None
        if self.maxima.get(access.value) == rows or (isinstance(producer, MaxOp) and producer.accesses[0] == rows):
            return access
        if isinstance(producer, ReshapeOp | BroadcastOp | StopGradientOp):
            return self._maximum(producer.accesses[0], rows)
        return None

    # ---- the row that joins ----

    def row(self, build: GraphBuilder, access: Access, axis: int | None) -> Access:
        """The row of an axis that joins, as a value without that axis; of a value without it, the value."""
        if axis is None:
            return access
        key = (access, axis, build.domain)
        if key not in self._rows:
            self._rows[key] = self._row(build, access, axis)
        return self._rows[key]

    def _row(self, build: GraphBuilder, access: Access, axis: int) -> Access:
        positions = [number for number, entry in enumerate(access.index) if is_slice(entry)]
        if axis < len(positions):
            rows = access.index[positions[axis]]
            assert isinstance(rows, Slice)
            index = list(access.index)
            index[positions[axis]] = self.growth.joining(rows)
            return Access(access.value, tuple(index))
        producer = access.value.owner
        if isinstance(producer, ArangeOp):
            value = self.growth.joining(producer.range)
            return build.build(IndexOp, expression=value, symbols=free_symbols(value))
        assert isinstance(producer, SdgOp)
        rule, places = rule_of(producer), self.places(producer, axis)
        assert rule is not None
        assert places is not None
        return rule.row(build, producer, axis, self.rows(build, producer.accesses, places))

    def rows(self, build: GraphBuilder, operands: Sequence[Access], places: Sequence[Along]) -> list[Access]:
        """The rows of operands, where they have the axis."""
        return [self._row_at(build, access, place) for access, place in zip(operands, places, strict=True)]

    def _row_at(self, build: GraphBuilder, access: Access, place: Along) -> Access:
        if place.axis is not None and place.repeated:
            return build.reshape(access, without_axis(shape_of(access.tensor), place.axis))
        return self.row(build, access, place.axis)


def _own(shape: Sequence[object]) -> list[object]:
    return [extent for extent in shape if extent != 1]


def combined(op: SdgOp, changes: Sequence[Change]) -> Change | None:
    """How the rows of a result change, by the changes of the rows of its operands; None where no rule says."""
    if all(change == SAME for change in changes):
        return SAME
    if isinstance(op, _AS_IT_IS):
        return None if isinstance(changes[0], Scaled) and changes[0].alone else changes[0]
    if isinstance(op, NegOp) and isinstance(changes[0], Shifted):
        return Shifted(-changes[0].by)
    if isinstance(op, CastOp) and isinstance(changes[0], Shifted):
        return changes[0] if element(op.result.type) in _EXACT else None
    match op, changes:
        case AddOp(), [Shifted(first), Shifted(second)]:
            return Shifted(first + second)
        case SubOp(), [Shifted(first), Shifted(second)]:
            return Shifted(first - second)
        case PowOp(), [Shifted(0), Shifted(steps)]:
            return _power(op, steps)
        case MulOp(), [Scaled() as scaled, Shifted(0)] | [Shifted(0), Scaled() as scaled]:
            return None if scaled.alone else scaled
        case MulOp(), [Scaled() as first, Scaled() as second]:
            return None if first.alone or second.alone else _both(first, second)
        case DivOp(), [Scaled() as scaled, Shifted(0)]:
            return None if scaled.alone else scaled
        case _:
            return None


def _power(op: PowOp, steps: int) -> Change | None:
    """`base ** (n + 1)` is `base * base ** n`; a negative step would divide, which overflows where powers underflow."""
    base = op.accesses[0]
    if steps < 0 or base.tensor.get_num_dims() or not is_float(element(base.type)):
        return None

    def scale(build: GraphBuilder, total: Access) -> Access:
        wide = build.cast(base, element(total.type))
        factor = wide if steps == 1 else build.build(PowOp, wide, build.number_like(steps, wide))
        return build.mul(total, factor)

    return Scaled(scale)


def _both(first: Scaled, second: Scaled) -> Scaled:
    return Scaled(lambda build, total: first.apply(build, second.apply(build, total)))
