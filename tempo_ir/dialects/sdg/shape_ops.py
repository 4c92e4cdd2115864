"""Ops that move, select or place elements: reshapes, slices, padding, gathers, scatters."""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, LocationAttr, TensorType, f32, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.sdg.attributes import IndexAttr, NumberAttr
from tempo_ir.dialects.sdg.base import AccessOp, Operand, as_access, index_problem
from tempo_ir.dialects.sdg.inference import (
    Extents,
    check_axes,
    check_axis,
    check_element,
    same_element,
    shape_text,
)
from tempo_ir.dialects.sdg.reduction import AlongAxisOp
from tempo_ir.dialects.types import Extent, Shape, Tensor, element, shape_of, tensor
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Cond, Const, Expr, Index, Slice, as_expr, compare, conj, disj, index_text


class ToShapeOp(AccessOp, ABC):
    """Base of the ops whose result type states the shape that they make."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Operand,
        shape: Sequence[Extent] | None = None,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        if result_type is None:
            if shape is None:
                raise ValueError(f"{self.name} needs shape or result_type")
            result_type = self.infer(as_access(operand).tensor, tuple(shape))
        self.setup((operand,), (result_type,), domain, {}, location)

    @staticmethod
    def infer(operand: Tensor, shape: Shape, extents: Extents | None = None) -> Tensor:
        """The operand's elements in the shape; raises VerifyException where it cannot be made."""
        raise VerifyException("each op says what it can make")

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, shape_of(self.result.type), extents),)


@irdl_op_definition
class ReshapeOp(ToShapeOp):
    """The same elements in row-major order: `sdg.reshape %x[t] in (t) : (tensor<4x8xf32>) -> tensor<32xf32>`."""

    name = "sdg.reshape"

    @staticmethod
    def infer(operand: Tensor, shape: Shape, extents: Extents | None = None) -> Tensor:
        """The operand's elements in `shape`, which must hold as many."""
        have, want = _count(shape_of(operand)), _count(shape)
        if have != want:
            what = f"cannot reshape {shape_text(shape_of(operand))} to {shape_text(shape)}"
            (extents or Extents()).same(_product(have), _product(want), what)
        return tensor(operand.element_type, shape)


def _count(shape: Shape) -> tuple[int, Counter[Expr]]:
    """How many elements there are: the static factor, and the dynamic ones."""
    static = 1
    dynamic: Counter[Expr] = Counter()
    for extent in shape:
        if isinstance(extent, int):
            static *= extent
        else:
            dynamic[extent] += 1
    return static, dynamic


def _product(count: tuple[int, Counter[Expr]]) -> Expr:
    product: Expr = Const(count[0])
    for factor in count[1].elements():
        product = product * factor
    return product


@irdl_op_definition
class BroadcastOp(ToShapeOp):
    """Elements repeated as numpy does, aligned right:
    `sdg.broadcast %x[t] in (t) : (tensor<8xf32>) -> tensor<4x8xf32>`."""

    name = "sdg.broadcast"

    @staticmethod
    def infer(operand: Tensor, shape: Shape, extents: Extents | None = None) -> Tensor:
        """The operand's elements in `shape`; only extents 1 stretch."""
        have = shape_of(operand)
        if len(have) > len(shape):
            raise VerifyException(f"cannot broadcast {shape_text(have)} to the lower rank of {shape_text(shape)}")
        what = f"cannot broadcast {shape_text(have)} to {shape_text(shape)}"
        for axis, (old, new) in enumerate(zip(have, shape[len(shape) - len(have) :], strict=True)):
            if old != 1:
                (extents or Extents()).same(old, new, f"{what}, axis {axis} of the operand")
        return tensor(operand.element_type, shape)


@irdl_op_definition
class TransposeOp(AccessOp):
    """Axis n of the result is axis permutation[n] of the operand:
    `sdg.transpose %x[t] permutation [1, 0] in (t) : (tensor<4x8xf32>) -> tensor<8x4xf32>`."""

    name = "sdg.transpose"

    operand = operand_def(TensorType)
    permutation_attr = prop_def(DenseArrayBase.constr(i64), prop_name="permutation")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Accesses>(operands, $indices) `permutation` $permutation custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: Operand,
        permutation: Sequence[int],
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(operand).tensor, permutation)
        properties = {"permutation": DenseArrayBase.from_list(i64, permutation)}
        self.setup((operand,), (result,), domain, properties, location)

    @staticmethod
    def infer(operand: Tensor, permutation: Sequence[int], extents: Extents | None = None) -> Tensor:
        """The operand's extents in the order of the permutation, which names each axis once."""
        shape = shape_of(operand)
        axes = check_axes(permutation, len(shape), "sdg.transpose")
        if len(axes) != len(shape):
            raise VerifyException(f"the permutation {list(axes)} does not name each axis of {shape_text(shape)} once")
        return tensor(operand.element_type, [shape[axis] for axis in axes])

    @property
    def permutation(self) -> tuple[int, ...]:
        """For each axis of the result, the axis of the operand."""
        return self.permutation_attr.get_values()

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, self.permutation),)


@irdl_op_definition
class SliceOp(AccessOp):
    """Part of each axis: a range keeps the axis, a point drops it. Entries may use dims.

    `sdg.slice %x[t] take [0:4, t] in (t) : (tensor<8x16xf32>) -> tensor<4xf32>`
    """

    name = "sdg.slice"

    operand = operand_def(TensorType)
    take_attr = prop_def(IndexAttr, prop_name="take")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Accesses>(operands, $indices) `take` custom<IndexOf>($take) custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: Operand,
        take: Index,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(operand).tensor, take)
        self.setup((operand,), (result,), domain, {"take": IndexAttr(take)}, location)

    @staticmethod
    def infer(operand: Tensor, take: Index, extents: Extents | None = None) -> Tensor:
        """One axis per range; entries that are numbers are checked against the extents."""
        shape = shape_of(operand)
        if len(take) != len(shape):
            raise VerifyException(
                f"sdg.slice takes one entry per axis of {shape_text(shape)}, got {index_text(take) or '[]'}"
            )
        for axis, (entry, extent) in enumerate(zip(take, shape, strict=True)):
            if isinstance(extent, int):
                check_entry(entry, extent, axis)
        return tensor(operand.element_type, [entry.extent for entry in take if isinstance(entry, Slice)])

    @property
    def take(self) -> Index:
        """What is taken of each axis."""
        return self.take_attr.data

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, self.take),)

    def claims(self) -> Sequence[tuple[Cond, str]]:
        shape = shape_of(self.accesses[0].type)
        claims = [inside(entry, as_expr(extent)) for entry, extent in zip(self.take, shape, strict=True)]
        return [
            (claim, f"'{entry}' of axis {n}") for n, (claim, entry) in enumerate(zip(claims, self.take, strict=True))
        ]

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        if (problem := index_problem(self.take, self.domain, space)) is not None:
            raise VerifyException(problem)


@lru_cache(maxsize=4096)
def inside(entry: Expr | Slice, extent: Expr) -> Cond:
    """That what the entry takes of an axis is there; a range without elements takes nothing."""
    if not isinstance(entry, Slice):
        return conj(compare(">=", entry, 0), compare("<", entry, extent))
    last_inside = compare("<=", entry.stop, extent)
    return disj(compare("<=", entry.stop, entry.start), conj(compare(">=", entry.start, 0), last_inside))


def check_entry(entry: Expr | Slice, extent: int, axis: int) -> None:
    """An entry made of numbers stays inside the axis; raises VerifyException otherwise."""
    if isinstance(entry, Const):
        first, last = entry.value, entry.value
    elif isinstance(entry, Slice) and isinstance(entry.start, Const) and isinstance(entry.stop, Const):
        first, last = entry.start.value, entry.stop.value - 1
        if last < first:
            return
    else:
        return
    if first < 0 or last >= extent:
        raise VerifyException(f"'{entry}' leaves axis {axis}, which has the elements 0 to {extent - 1}")


@irdl_op_definition
class PadOp(AccessOp):
    """Elements of one value round the operand; amounts per axis may use dims.

    `sdg.pad %x[t] low [0, 1] high [2, t] value 0.0 in (t) : (tensor<4x8xf32>) -> tensor<6x?xf32, #sdg.size<t + 9>>`
    """

    name = "sdg.pad"

    operand = operand_def(TensorType)
    low_attr = prop_def(IndexAttr, prop_name="low")
    high_attr = prop_def(IndexAttr, prop_name="high")
    value_attr = prop_def(NumberAttr, prop_name="value")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Accesses>(operands, $indices) `low` custom<IndexOf>($low) `high` custom<IndexOf>($high) "
        "`value` custom<NumberOf>($value) custom<InDomain>($domain) attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: Operand,
        low: Sequence[Extent],
        high: Sequence[Extent],
        value: bool | float,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(operand).tensor, low, high)
        properties = {
            "low": IndexAttr(tuple(map(as_expr, low))),
            "high": IndexAttr(tuple(map(as_expr, high))),
            "value": NumberAttr.of(value, result.element_type),
        }
        self.setup((operand,), (result,), domain, properties, location)

    @staticmethod
    def infer(operand: Tensor, low: Sequence[Extent], high: Sequence[Extent], extents: Extents | None = None) -> Tensor:
        """Each extent grown by its two amounts, which are not negative."""
        shape = shape_of(operand)
        if len(low) != len(shape) or len(high) != len(shape):
            raise VerifyException(f"sdg.pad needs an amount per axis of {shape_text(shape)} on either side")
        for amount in map(as_expr, (*low, *high)):
            if isinstance(amount, Const) and amount.value < 0:
                raise VerifyException(f"sdg.pad by {amount}: amounts are not negative, sdg.slice takes elements away")
        grown = [as_expr(n) + before + after for n, before, after in zip(shape, low, high, strict=True)]
        return tensor(operand.element_type, grown)

    @property
    def low(self) -> tuple[Expr, ...]:
        """Elements added in front of each axis."""
        return self._amounts(self.low_attr.data)

    @property
    def high(self) -> tuple[Expr, ...]:
        """Elements added behind each axis."""
        return self._amounts(self.high_attr.data)

    @property
    def value(self) -> bool | int | float:
        """What is added."""
        return self.value_attr.data

    @staticmethod
    def _amounts(index: Index) -> tuple[Expr, ...]:
        amounts = tuple(entry for entry in index if not isinstance(entry, Slice))
        if len(amounts) != len(index):
            raise VerifyException(f"the amounts of sdg.pad are numbers, got {index_text(index)}")
        return amounts

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        self.value_attr.check(element(self.result.type))
        return (self.infer(self.accesses[0].tensor, self.low, self.high),)

    def claims(self) -> Sequence[tuple[Cond, str]]:
        amounts = (*self.low, *self.high)
        return [(compare(">=", amount, 0), f"sdg.pad by {amount}") for amount in amounts]

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        for amounts in (self.low, self.high):
            if (problem := index_problem(amounts, self.domain, space)) is not None:
                raise VerifyException(problem)


@irdl_op_definition
class ConcatOp(AlongAxisOp):
    """Operands one after the other along an axis:
    `sdg.concat %x[t], %y[t] axis 0 in (t) : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>`."""

    name = "sdg.concat"

    inputs = var_operand_def(TensorType)

    def __init__(
        self,
        *operands: Operand,
        axis: int,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer([as_access(operand).tensor for operand in operands], axis)
        self.setup(operands, (result,), domain, {"axis": IntegerAttr(axis, i64)}, location)

    @staticmethod
    def infer(types: Sequence[Tensor], axis: int, extents: Extents | None = None) -> Tensor:
        """The sum of the extents along the axis; the others are equal."""
        if not types:
            raise VerifyException("sdg.concat needs at least one operand")
        common = same_element(types, "sdg.concat")
        shapes = [shape_of(operand) for operand in types]
        check_axis(axis, len(shapes[0]), "sdg.concat")
        rest = _without(shapes[0], axis)
        total = as_expr(shapes[0][axis])
        for number, shape in enumerate(shapes[1:], 1):
            if len(shape) != len(shapes[0]):
                raise VerifyException(
                    f"sdg.concat: operand #{number} has shape {shape_text(shape)}, operand #0 {shape_text(shapes[0])}"
                )
            what = f"sdg.concat: operand #{number} {shape_text(shape)} beside {shape_text(shapes[0])}, axes but {axis}"
            rest = (extents or Extents()).same_shape(rest, _without(shape, axis), what)
            total = total + shape[axis]
        return tensor(common, (*rest[:axis], total, *rest[axis:]))

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer([access.tensor for access in self.accesses], self.axis, extents),)


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


@irdl_op_definition
class GatherOp(AlongAxisOp):
    """Rows of a table by number; the axes of the ids stand where the axis stood. An id out of range is an
    error at run time.

    `sdg.gather %table, %ids[t] axis 0 in (t) : (tensor<100x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>`
    """

    name = "sdg.gather"

    table = operand_def(TensorType)
    ids = operand_def(TensorType)

    def __init__(
        self,
        table: Operand,
        ids: Operand,
        axis: int = 0,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(table).tensor, as_access(ids).tensor, axis)
        self.setup((table, ids), (result,), domain, {"axis": IntegerAttr(axis, i64)}, location)

    @staticmethod
    def infer(table: Tensor, ids: Tensor, axis: int, extents: Extents | None = None) -> Tensor:
        """`table.shape[:axis] + ids.shape + table.shape[axis + 1:]`."""
        check_element(ids.element_type, "integer", "the ids of sdg.gather")
        shape = shape_of(table)
        check_axis(axis, len(shape), "sdg.gather")
        return tensor(table.element_type, (*shape[:axis], *shape_of(ids), *shape[axis + 1 :]))

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        table, ids = self.accesses
        return (self.infer(table.tensor, ids.tensor, self.axis),)


@irdl_op_definition
class ScatterAddOp(AlongAxisOp):
    """Zeros to which each update is added at its id, equal ids one after the other; the adjoint of sdg.gather.

    `sdg.scatter_add %ids[t], %updates[t] axis 0 in (t) : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<100x8xf32>`
    """

    name = "sdg.scatter_add"

    ids = operand_def(TensorType)
    updates = operand_def(TensorType)

    def __init__(
        self,
        ids: Operand,
        updates: Operand,
        axis: int = 0,
        *,
        shape: Sequence[Extent] | None = None,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        if result_type is None:
            if shape is None:
                raise ValueError("a scatter needs shape or result_type")
            result_type = self.infer(as_access(ids).tensor, as_access(updates).tensor, axis, tuple(shape))
        self.setup((ids, updates), (result_type,), domain, {"axis": IntegerAttr(axis, i64)}, location)

    @staticmethod
    def infer(ids: Tensor, updates: Tensor, axis: int, shape: Shape, extents: Extents | None = None) -> Tensor:
        """`shape`; the updates have its extents with those of the ids in place of the axis."""
        check_element(ids.element_type, "integer", "the ids of sdg.scatter_add")
        check_element(updates.element_type, "number", "sdg.scatter_add")
        check_axis(axis, len(shape), "sdg.scatter_add")
        wanted = (*shape[:axis], *shape_of(ids), *shape[axis + 1 :])
        what = f"sdg.scatter_add: updates {shape_text(shape_of(updates))} where {shape_text(wanted)} is needed"
        (extents or Extents()).same_shape(wanted, shape_of(updates), what)
        return tensor(updates.element_type, shape)

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        ids, updates = self.accesses
        return (self.infer(ids.tensor, updates.tensor, self.axis, shape_of(self.result.type), extents),)


@irdl_op_definition
class OneHotOp(AccessOp):
    """A new last axis of `depth` with 1 at the id and 0 elsewhere, also for ids out of range:
    `sdg.one_hot %ids[t] depth 8 in (t) : (tensor<4xi64>) -> tensor<4x8xf32>`."""

    name = "sdg.one_hot"

    ids = operand_def(TensorType)
    depth_attr = prop_def(IntegerAttr[I64], prop_name="depth")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Accesses>(operands, $indices) `depth` $depth custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        ids: Operand,
        depth: int,
        element_type: Attribute = f32,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(as_access(ids).tensor, depth, element_type)
        self.setup((ids,), (result,), domain, {"depth": IntegerAttr(depth, i64)}, location)

    @staticmethod
    def infer(ids: Tensor, depth: int, element_type: Attribute, extents: Extents | None = None) -> Tensor:
        """The shape of the ids with a last axis of `depth`."""
        check_element(ids.element_type, "integer", "the ids of sdg.one_hot")
        check_element(element_type, "any", "sdg.one_hot")
        if depth < 1:
            raise VerifyException(f"the depth of sdg.one_hot is at least 1, got {depth}")
        return tensor(element_type, (*shape_of(ids), depth))

    @property
    def depth(self) -> int:
        """The extent of the new axis."""
        return self.depth_attr.value.data

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.accesses[0].tensor, self.depth, element(self.result.type)),)
