"""Operations that make tiles, move their axes, or combine elements along an axis."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.tile.attributes import (
    UI32,
    Kind,
    ReduceKind,
    ReduceKindAttr,
    TileType,
    bit_width,
    broadcast_shapes,
    element_of,
    is_bool,
    is_float,
    is_integer,
    shape_of,
)


@irdl_op_definition
class ConstOp(NominalOperation):
    """
    A number, as a scalar or filling a tile.

    `%c = tile.const 0.0 : f32 -> !tile.tile<2x64xf32>`
    """

    name = "tile.const"
    value = prop_def(base(FloatAttr) | base(IntegerAttr))
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())
    assembly_format = "$value attr-dict `->` type($result)"

    def __init__(self, value: FloatAttr | IntegerAttr, shape: tuple[int, ...] = ()):
        super().__init__(properties={"value": value}, result_types=[TileType.of(shape, value.type)])

    def verify_(self) -> None:
        if element_of(self.result) != self.number.type:
            raise VerifyException(f"a constant of type {self.number.type} cannot give {self.result.type}")

    @property
    def number(self) -> FloatAttr | IntegerAttr:
        """The attribute that holds the number."""
        return self.value


@irdl_op_definition
class IotaOp(NominalOperation):
    """
    `start`, `start + 1`, ... as integers.

    `%i = tile.iota %t : !tile.tile<64xi32>`
    """

    name = "tile.iota"
    start = operand_def(IndexType)
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$start attr-dict `:` type($result)"

    def __init__(self, start: SSAValue, extent: int, element: Attribute = i32):
        super().__init__(operands=[start], result_types=[TileType.of([extent], element)])

    def verify_(self) -> None:
        if len(shape_of(self.result)) != 1 or not is_integer(element_of(self.result)):
            raise VerifyException(f"the result is a tile of integers of rank 1, not {self.result.type}")


@irdl_op_definition
class InRangeOp(NominalOperation):
    """
    Which of `start`, `start + 1`, ... are below `limit`: what a load's mask is, as a value. Known true in blocks that
    are known to be full, so prefer it over a comparison of `tile.iota` (softmax's -inf).

    `%m = tile.in_range %t below %L : !tile.tile<64xi1>`
    """

    name = "tile.in_range"
    start = operand_def(IndexType)
    limit = operand_def(IndexType)
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$start `below` $limit attr-dict `:` type($result)"

    def __init__(self, start: SSAValue, limit: SSAValue, extent: int):
        super().__init__(operands=[start, limit], result_types=[TileType.of([extent], i1)])

    def verify_(self) -> None:
        if len(shape_of(self.result)) != 1 or not is_bool(element_of(self.result)):
            raise VerifyException(f"the result is a tile of i1 of rank 1, not {self.result.type}")


@irdl_op_definition
class SplatOp(NominalOperation):
    """
    A tile filled with one scalar.

    `%y = tile.splat %x : f32 -> !tile.tile<2x64xf32>`
    """

    name = "tile.splat"
    value = operand_def()
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, shape: tuple[int, ...]):
        super().__init__(operands=[value], result_types=[TileType.of(shape, value.type)])

    def verify_(self) -> None:
        if self.value.type != element_of(self.result):
            raise VerifyException(f"a scalar {element_of(self.result)} is needed, not {self.value.type}")


@irdl_op_definition
class BroadcastOp(NominalOperation):
    """
    Stretch axes of extent 1. Elementwise ops do so by themselves; a store does not.

    `%y = tile.broadcast %x : !tile.tile<1x64xf32> -> !tile.tile<2x64xf32>`
    """

    name = "tile.broadcast"
    value = operand_def(TileType)
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, shape: tuple[int, ...]):
        super().__init__(operands=[value], result_types=[TileType.of(shape, element_of(value))])

    def verify_(self) -> None:
        shape, wide = shape_of(self.value), shape_of(self.result)
        if element_of(self.value) != element_of(self.result) or broadcast_shapes(shape, wide) != wide:
            raise VerifyException(f"{self.value.type} does not stretch to {self.result.type}")


@irdl_op_definition
class ExpandOp(NominalOperation):
    """
    Insert an axis of extent 1 into a tile of rank 1: axis 1 makes a column, axis 0 a row.

    `%y = tile.expand %x axis 1 : !tile.tile<64xf32> -> !tile.tile<64x1xf32>`
    """

    name = "tile.expand"
    value = operand_def(TileType)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$value `axis` $axis attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, axis: int):
        super().__init__(
            operands=[value],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[TileType.of(expanded_shape(shape_of(value), axis), element_of(value))],
        )

    def verify_(self) -> None:
        expected = TileType.of(expanded_shape(shape_of(self.value), self.axis_number), element_of(self.value))
        if self.result.type != expected:
            raise VerifyException(f"the result is {expected}, not {self.result.type}")

    @property
    def axis_number(self) -> int:
        """The axis of the result that has extent 1."""
        return self.axis.value.data


def expanded_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """`shape` with an axis of extent 1 at `axis`."""
    if len(shape) != 1 or axis not in (0, 1):
        raise VerifyException(f"axis {axis} of a tile of rank {len(shape)}: a tile of rank 1 expands at axis 0 or 1")
    return (1, *shape) if axis == 0 else (*shape, 1)


@irdl_op_definition
class TransOp(NominalOperation):
    """
    Swap the two axes.

    `%y = tile.trans %x : !tile.tile<2x64xf32> -> !tile.tile<64x2xf32>`
    """

    name = "tile.trans"
    value = operand_def(TileType)
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[TileType.of(shape_of(value)[::-1], element_of(value))])

    def verify_(self) -> None:
        if len(shape_of(self.value)) != 2:
            raise VerifyException(f"takes a tile of rank 2, not {self.value.type}")
        expected = TileType.of(shape_of(self.value)[::-1], element_of(self.value))
        if self.result.type != expected:
            raise VerifyException(f"the result is {expected}, not {self.result.type}")


def _check_axis(value: SSAValue, axis: int) -> None:
    if not 0 <= axis < len(shape_of(value)):
        raise VerifyException(f"axis {axis} of a tile of rank {len(shape_of(value))}")


@irdl_op_definition
class ReduceOp(NominalOperation):
    """
    Combine along an axis, which is dropped. `max` and `min` propagate NaN; `argmax` and `argmin` give the position of
    the first extreme value (of the first NaN, if any) as i32 or i64; `and` and `or` work bit by bit.

    `%m = tile.reduce max %x axis 1 : !tile.tile<2x64xf32> -> !tile.tile<2xf32>`
    """

    name = "tile.reduce"
    kind = prop_def(ReduceKindAttr)
    value = operand_def(TileType)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def()
    traits = traits_def(Pure())
    custom_directives = (Kind,)
    assembly_format = "custom<Kind>($kind) $value `axis` $axis attr-dict `:` type($value) `->` type($result)"

    def __init__(self, kind: ReduceKind | str, value: SSAValue, axis: int, index_element: Attribute = i64):
        """`index_element` is what `argmax` and `argmin` give: i32 or i64."""
        kind = ReduceKind(kind)
        _check_axis(value, axis)
        shape = [extent for i, extent in enumerate(shape_of(value)) if i != axis]
        element = index_element if kind in (ReduceKind.ARGMAX, ReduceKind.ARGMIN) else element_of(value)
        super().__init__(
            operands=[value],
            properties={"kind": ReduceKindAttr(kind), "axis": IntegerAttr(axis, i64)},
            result_types=[TileType.of(shape, element)],
        )

    @property
    def axis_number(self) -> int:
        """The axis that is dropped."""
        return self.axis.value.data

    @property
    def is_squeeze(self) -> bool:
        """Does it only drop an axis of extent 1?"""
        return shape_of(self.value)[self.axis_number] == 1 and not self.is_position

    @property
    def is_position(self) -> bool:
        """Does it give positions (`argmax`, `argmin`)?"""
        return self.kind.data in (ReduceKind.ARGMAX, ReduceKind.ARGMIN)

    def verify_(self) -> None:
        _check_axis(self.value, self.axis_number)
        element, result = element_of(self.value), element_of(self.result)
        expected = [extent for i, extent in enumerate(shape_of(self.value)) if i != self.axis_number]
        if list(shape_of(self.result)) != expected:
            raise VerifyException(f"result of shape {list(shape_of(self.result))}, expected {expected}")
        if self.is_position and result not in (i32, i64):
            raise VerifyException(f"{self.kind.data} gives i32 or i64, not {result}")
        if not self.is_position and result != element:
            raise VerifyException(f"result holds {result}, expected {element}")
        if self.kind.data in (ReduceKind.AND, ReduceKind.OR):
            if is_float(element):
                raise VerifyException(f"{self.kind.data} takes i1 or integers, not {element}")
        elif is_bool(element):
            raise VerifyException(f"{self.kind.data} takes integers or floats, not i1; use tile.cast")


@irdl_op_definition
class ScanOp(NominalOperation):
    """
    Running sum or product along an axis, including the element itself; `reverse` runs from the end.

    `%c = tile.scan sum %x axis 0 reverse : !tile.tile<64xf32> -> !tile.tile<64xf32>`
    """

    name = "tile.scan"
    kind = prop_def(ReduceKindAttr)
    value = operand_def(TileType)
    axis = prop_def(IntegerAttr.constr(i64))
    reverse = opt_prop_def(UnitAttr)
    result = result_def(TileType)
    traits = traits_def(Pure())
    custom_directives = (Kind,)
    assembly_format = (
        "custom<Kind>($kind) $value `axis` $axis (`reverse` $reverse^)? attr-dict `:` type($value) `->` type($result)"
    )

    def __init__(self, kind: ReduceKind | str, value: SSAValue, axis: int, reverse: bool = False):
        super().__init__(
            operands=[value],
            properties={
                "kind": ReduceKindAttr(ReduceKind(kind)),
                "axis": IntegerAttr(axis, i64),
                "reverse": UnitAttr() if reverse else None,
            },
            result_types=[value.type],
        )

    @property
    def axis_number(self) -> int:
        """The axis that the scan runs along."""
        return self.axis.value.data

    def verify_(self) -> None:
        _check_axis(self.value, self.axis_number)
        if self.result.type != self.value.type:
            raise VerifyException(f"the result is {self.value.type}, not {self.result.type}")
        if self.kind.data not in (ReduceKind.SUM, ReduceKind.PROD):
            raise VerifyException(f"a scan is of sum or prod, not of {self.kind.data}")
        if is_bool(element_of(self.value)):
            raise VerifyException("takes integers or floats, not i1; use tile.cast")


@irdl_op_definition
class DotOp(NominalOperation):
    """
    `accumulator + lhs @ rhs`, of MxK and KxN, any M, K, N: a matrix times a vector is a dot too. f16, bf16 and f32
    accumulate in f32, f64 in f64, integers in an integer type at least as wide.

    `%c = tile.dot %a, %b, %acc : !tile.tile<2x64xf32>, !tile.tile<64x64xf32> -> !tile.tile<2x64xf32>`
    """

    name = "tile.dot"
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    accumulator = operand_def(TileType)
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs `,` $accumulator attr-dict `:` type($lhs) `,` type($rhs) `,` type($accumulator) "
        "`->` type($result)"
    )

    def __init__(self, lhs: SSAValue, rhs: SSAValue, accumulator: SSAValue):
        super().__init__(operands=[lhs, rhs, accumulator], result_types=[accumulator.type])

    def verify_(self) -> None:
        a, b, c = (shape_of(x) for x in (self.lhs, self.rhs, self.accumulator))
        if len(a) != 2 or len(b) != 2 or a[1] != b[0] or c != (a[0], b[1]):
            raise VerifyException(f"shapes are MxK, KxN and MxN, not {list(a)}, {list(b)} and {list(c)}")
        if self.result.type != self.accumulator.type:
            raise VerifyException(f"the result is {self.accumulator.type}, not {self.result.type}")
        element, total = element_of(self.lhs), element_of(self.accumulator)
        if element != element_of(self.rhs):
            raise VerifyException(f"operands hold {element} and {element_of(self.rhs)}; use tile.cast")
        if not accumulates(element, total):
            raise VerifyException(f"a product of {element} does not accumulate in {total}")


def accumulates(element: Attribute, total: Attribute) -> bool:
    """May a dot of `element` be summed in `total`?"""
    if is_float(element):
        return is_float(total) and bit_width(total) == max(32, bit_width(element))
    return is_integer(element) and is_integer(total) and bit_width(total) >= bit_width(element)


@irdl_op_definition
class PhiloxOp(NominalOperation):
    """
    Random bits: the four words of Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011).

    `%w0, %w1, %w2, %w3 = tile.philox key(%k0, %k1) counter(%c0, %c1, %c2, %c3) : ui32, ui32, ui32, !tile.tile<64xui32>,
    ui32, ui32 -> !tile.tile<64xui32>`

    Key and counter are 32-bit words, each a scalar or a tile; the words of the result have their common shape. Unused
    words cost nothing. Uniform on [0, 1): `cast(w0 >> 8 to f32) * 2**-24`.
    """

    name = "tile.philox"
    key0 = operand_def()
    key1 = operand_def()
    counter0 = operand_def()
    counter1 = operand_def()
    counter2 = operand_def()
    counter3 = operand_def()
    word0 = result_def()
    word1 = result_def()
    word2 = result_def()
    word3 = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "`key` `(` $key0 `,` $key1 `)` `counter` `(` $counter0 `,` $counter1 `,` $counter2 `,` $counter3 `)` "
        "attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, key: tuple[SSAValue, SSAValue], counter: tuple[SSAValue, SSAValue, SSAValue, SSAValue]):
        shape = broadcast_shapes(*(shape_of(word) for word in (*key, *counter)))
        super().__init__(operands=[*key, *counter], result_types=[TileType.of(shape, UI32)] * 4)

    def verify_(self) -> None:
        for word in self.operands:
            if element_of(word) not in (i32, UI32):
                raise VerifyException(f"key and counter are words of 32 bits, not {element_of(word)}")
        expected = TileType.of(broadcast_shapes(*(shape_of(word) for word in self.operands)), UI32)
        for word in self.results:
            if word.type != expected:
                raise VerifyException(f"the words are {expected}, not {word.type}")


SHAPE = (
    ConstOp,
    IotaOp,
    InRangeOp,
    SplatOp,
    BroadcastOp,
    ExpandOp,
    TransOp,
    ReduceOp,
    ScanOp,
    DotOp,
    PhiloxOp,
)
"""Every op of this file."""
