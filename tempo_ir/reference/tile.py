"""
The meaning of the `tile` dialect: a numpy interpreter of kernels, slow and obvious.

`run_kernel(kernel, arguments, grid)` runs every program of the grid, one after another, on the caller's arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import (
    ReduceKind,
    bit_width,
    element_of,
    is_bool,
    is_float,
    is_unsigned,
    shape_of,
)

Array = np.ndarray[Any, np.dtype[Any]]

PHILOX_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
PHILOX_WEYL = 0x9E3779B9, 0xBB67AE85


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The numpy dtype of an element type of tiles; `index` is int64."""
    match element:
        case Float16Type():
            return np.dtype(np.float16)
        case BFloat16Type():
            return np.dtype(ml_dtypes.bfloat16)
        case Float32Type():
            return np.dtype(np.float32)
        case Float64Type():
            return np.dtype(np.float64)
        case IndexType():
            return np.dtype(np.int64)
        case _:
            if is_bool(element):
                return np.dtype(np.bool_)
            return np.dtype(f"{'u' if is_unsigned(element) else ''}int{bit_width(element)}")


def run_kernel(kernel: structure.KernelOp, arguments: Sequence[Array | int | float], grid: Sequence[int] = ()) -> None:
    """
    Run the kernel in place: one argument per kernel argument, a contiguous array for a pointer (of its element type,
    any shape), a number for a scalar. Raises IndexError where an access that the dialect trusts leaves its array.
    """
    buffers = [argument.reshape(-1) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    for program in itertools.product(*(range(extent) for extent in grid)):
        values: dict[SSAValue, Any] = {}
        for argument, value in zip(kernel.body.block.args, buffers, strict=True):
            scalar = isinstance(value, (int, float))
            values[argument] = numpy_dtype(element_of(argument)).type(value) if scalar else value
        with np.errstate(all="ignore"):
            _Program(values, program).run(kernel.body.block)


@dataclass
class _View:
    memory: Array
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass
class _Program:
    """One program of a grid: the values computed so far, and its place."""

    values: dict[SSAValue, Any]
    place: tuple[int, ...]

    def run(self, block: Block) -> None:
        for op in block.ops:
            self.execute(op)

    def execute(self, op: Operation) -> None:
        match op:
            case structure.ForOp():
                self.loop(op)
            case structure.IfOp():
                taken = op.then if self.values[op.condition] else op.otherwise
                if taken is not None:
                    self.run(taken.block)
            case structure.YieldOp():
                pass
            case memory.StoreOp() | memory.AtomicAddOp() | memory.ScatterOp() | memory.ScatterAddOp():
                self.write(op)
            case shape.PhiloxOp():
                words = philox(*(self.values[operand] for operand in op.operands))
                for result, word in zip(op.results, words, strict=True):
                    self.values[result] = np.broadcast_to(word, shape_of(result))
            case _:
                self.values[op.results[0]] = self.evaluate(op)

    def loop(self, op: structure.ForOp) -> None:
        counter, *carried = op.body.block.args
        state = [self.values[init] for init in op.init]
        for trip in range(int(self.values[op.low]), int(self.values[op.high]), op.step_size):
            self.values[counter] = np.int64(trip)
            self.values.update(zip(carried, state, strict=True))
            self.run(op.body.block)
            state = [self.values[value] for value in op.yielded]
        self.values.update(zip(op.carried, state, strict=True))

    def evaluate(self, op: Operation) -> Any:
        """The one result of an op without effects."""
        match op:
            case structure.ProgramIdOp():
                return np.int64(self.place[op.axis.value.data])
            case memory.ViewOp():
                return self.view(op)
            case memory.LoadOp() | memory.GatherOp():
                return self.read(op)
            case shape.ConstOp():
                return np.full(shape_of(op.result), number(op.value), numpy_dtype(element_of(op.result)))[()]
            case shape.IotaOp() | shape.InRangeOp():
                positions = self.values[op.start] + np.arange(shape_of(op.result)[0])
                if isinstance(op, shape.InRangeOp):
                    return positions < self.values[op.limit]
                return positions.astype(numpy_dtype(element_of(op.result)))
            case shape.SplatOp() | shape.BroadcastOp():
                return np.broadcast_to(self.values[op.value], shape_of(op.result))
            case shape.ExpandOp():
                return np.expand_dims(self.values[op.value], op.axis_number)
            case shape.TransOp():
                return self.values[op.value].T
            case shape.ReduceOp():
                return reduce(op.kind.data, self.values[op.value], op.axis_number).astype(
                    numpy_dtype(element_of(op.result))
                )[()]
            case shape.ScanOp():
                return scan(op.kind.data, self.values[op.value], op.axis_number, op.reverse is not None)
            case shape.DotOp():
                wide = numpy_dtype(element_of(op.result))
                lhs, rhs = (self.values[operand].astype(wide) for operand in (op.lhs, op.rhs))
                return lhs @ rhs + self.values[op.accumulator]
            case ew.CastOp():
                return cast_array(self.values[op.value], element_of(op.result))
            case _:
                return elementwise(op, [self.values[operand] for operand in op.operands])

    # -- memory

    def view(self, op: memory.ViewOp) -> _View:
        sizes, strides = (
            tuple(d if isinstance(d, int) else int(self.values[d]) for d in dimensions)
            for dimensions in (op.sizes, op.strides)
        )
        offset = 0 if op.offset is None else int(self.values[op.offset])
        return _View(self.values[op.pointer], offset, sizes, strides)

    def addresses(self, op: memory.AccessOp) -> tuple[_View, Array, Array]:
        """The view, the addresses of the block's elements in it, and which of them lie inside its sizes."""
        view: _View = self.values[op.view]
        rank = len(op.tile_axes)
        address, inside = np.full((1,) * rank, view.offset, np.int64), np.ones((1,) * rank, np.bool_)
        for axis, (index, extent) in enumerate(zip(op.indices, op.block.data, strict=True)):
            start = np.int64(self.values[index])
            if not extent:
                address = address + start * view.strides[axis]
                continue
            positions = np.arange(extent)
            if isinstance(op, memory.IndexedAccessOp) and op.axis_number == axis:
                positions = self.values[op.positions].astype(np.int64)
            positions = positions + start
            spread = [1] * rank
            spread[op.tile_axes.index(axis)] = extent
            address = address + (positions * view.strides[axis]).reshape(spread)
            inside = inside & ((positions >= 0) & (positions < view.sizes[axis])).reshape(spread)
        extents = tuple(extent for extent in op.block.data if extent)
        address, inside = np.broadcast_to(address, extents), np.broadcast_to(inside, extents)
        outside = inside & ((address < 0) | (address >= len(view.memory)))
        if outside.any():
            raise IndexError(f"{op.name} at {op.location} leaves its buffer of {len(view.memory)} elements")
        return view, address, inside

    def read(self, op: memory.LoadOp | memory.GatherOp) -> Array:
        view, address, inside = self.addresses(op)
        other = 0 if op.other is None else number(op.other)
        safe = np.where(inside, address, 0)
        if not inside.any():
            return np.full(inside.shape, other, view.memory.dtype)[()]
        return np.where(inside, view.memory[safe], np.asarray(other, view.memory.dtype))[()]

    def write(self, op: memory.WriteOp | memory.IndexedWriteOp) -> None:
        view, address, inside = self.addresses(op)
        value = np.broadcast_to(self.values[op.value], address.shape)
        if isinstance(op, memory.AtomicAddOp | memory.ScatterAddOp):
            np.add.at(view.memory, address[inside], value[inside])
        else:
            view.memory[address[inside]] = value[inside]


def number(attribute: Attribute) -> int | float:
    """The Python number of an attribute."""
    assert isinstance(attribute, (FloatAttr, IntegerAttr))
    return attribute.value.data


def reduce(kind: ReduceKind, x: Array, axis: int) -> Array:
    """Combine along an axis, in the element type of `x`."""
    narrow = x.dtype.itemsize < 4 and x.dtype.kind not in "iub"
    wide = x.astype(np.float32) if narrow else x
    match kind:
        case ReduceKind.SUM:
            return np.sum(wide, axis, dtype=wide.dtype).astype(x.dtype)
        case ReduceKind.PROD:
            return np.prod(wide, axis, dtype=wide.dtype).astype(x.dtype)
        case ReduceKind.MAX:
            return np.max(wide, axis).astype(x.dtype)
        case ReduceKind.MIN:
            return np.min(wide, axis).astype(x.dtype)
        case ReduceKind.ARGMAX:
            return np.argmax(wide, axis)
        case ReduceKind.ARGMIN:
            return np.argmin(wide, axis)
        case ReduceKind.AND:
            return np.bitwise_and.reduce(x, axis)
        case ReduceKind.OR:
            return np.bitwise_or.reduce(x, axis)


def scan(kind: ReduceKind, x: Array, axis: int, reverse: bool) -> Array:
    """Running sum or product along an axis."""
    wide = np.flip(x, axis) if reverse else x
    running = np.cumsum if kind is ReduceKind.SUM else np.cumprod
    narrow = x.dtype.itemsize < 4 and x.dtype.kind not in "iu"
    result = running(wide.astype(np.float32) if narrow else wide, axis, dtype=np.float32 if narrow else x.dtype)
    return (np.flip(result, axis) if reverse else result).astype(x.dtype)


def cast_array(x: Any, element: Attribute) -> Any:
    """As `tile.cast`: floats saturate to integers and send NaN to 0, integers wrap."""
    dtype = numpy_dtype(element)
    x = np.asarray(x)
    if is_bool(element):
        return (x != 0)[()]
    if is_float(element) or x.dtype.kind in "iub":
        return x.astype(dtype)[()]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    wide = x.astype(np.float64)
    inside = (wide > low) & (wide < high)
    result = np.where(inside, wide, 0).astype(dtype)
    result[wide >= high] = high
    result[wide <= low] = low
    return result[()]


def _floordiv(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.floor_divide(a, b)
    return np.where(b == 0, a.dtype.type(0), np.floor_divide(a, np.where(b == 0, a.dtype.type(1), b)))


def _mod(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.mod(a, b)
    return np.where(b == 0, a.dtype.type(0), np.mod(a, np.where(b == 0, a.dtype.type(1), b)))


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        # an array of exponents: numpy takes a square root for the number 0.5, which differs at -inf
        base, exponent = np.broadcast_arrays(a, b)
        return np.power(base, exponent.copy())
    positive = np.power(a, np.where(b < 0, a.dtype.type(0), b))
    sign = np.where(b % 2 == 0, a.dtype.type(1), a)
    negative = np.where(np.abs(a) == 1, sign, a.dtype.type(0))
    return np.where(b < 0, negative, positive)


def _shift_amount(a: Array, b: Array) -> tuple[Array, Array]:
    """The amount as an unsigned number below the width, and where it was not below."""
    amount = b.view(f"u{b.dtype.name}") if b.dtype.kind == "i" else b
    outside = amount >= a.dtype.itemsize * 8
    return np.where(outside, 0, amount).astype(a.dtype), outside


def _shl(a: Array, b: Array) -> Array:
    amount, outside = _shift_amount(a, b)
    return np.where(outside, a.dtype.type(0), np.left_shift(a, amount))


def _shr(a: Array, b: Array) -> Array:
    amount, outside = _shift_amount(a, b)
    emptied: Array = np.asarray(np.where(a < 0, -1, 0) if a.dtype.kind == "i" else 0, a.dtype)
    return np.where(outside, emptied, np.right_shift(a, amount))


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


FUNCTIONS: Mapping[type[Operation], Callable[..., Array]] = {
    ew.NegOp: np.negative,
    ew.AbsOp: np.abs,
    ew.SignOp: np.sign,
    ew.NotOp: np.invert,
    ew.ExpOp: np.exp,
    ew.LogOp: np.log,
    ew.Log1pOp: np.log1p,
    ew.SqrtOp: np.sqrt,
    ew.RsqrtOp: _rsqrt,
    ew.TanhOp: np.tanh,
    ew.SigmoidOp: _sigmoid,
    ew.ErfOp: _erf,
    ew.SinOp: np.sin,
    ew.CosOp: np.cos,
    ew.FloorOp: np.floor,
    ew.CeilOp: np.ceil,
    ew.RoundOp: np.rint,
    ew.AddOp: np.add,
    ew.SubOp: np.subtract,
    ew.MulOp: np.multiply,
    ew.DivOp: np.divide,
    ew.FloorDivOp: _floordiv,
    ew.ModOp: _mod,
    ew.PowOp: _pow,
    ew.MaxOp: np.maximum,
    ew.MinOp: np.minimum,
    ew.LtOp: np.less,
    ew.LeOp: np.less_equal,
    ew.GtOp: np.greater,
    ew.GeOp: np.greater_equal,
    ew.EqOp: np.equal,
    ew.NeOp: np.not_equal,
    ew.AndOp: np.bitwise_and,
    ew.OrOp: np.bitwise_or,
    ew.XorOp: np.bitwise_xor,
    ew.ShlOp: _shl,
    ew.ShrOp: _shr,
    ew.SelectOp: np.where,
}


def elementwise(op: Operation, operands: Sequence[Any]) -> Any:
    """An elementwise op other than `tile.cast`; floats below 64 bits are computed in f64 and rounded once."""
    arrays = [np.asarray(operand) for operand in operands]
    dtype = numpy_dtype(element_of(op.results[0]))
    if arrays[-1].dtype.kind not in "iub" and not isinstance(op, ew.SelectOp):
        arrays = [array.astype(np.float64) for array in arrays]
    return np.asarray(FUNCTIONS[type(op)](*arrays)).astype(dtype)[()]


def philox(*words: Any) -> tuple[Array, Array, Array, Array]:
    """Philox4x32-10 of two key words and four counter words, which broadcast; the four words of the result."""
    k0, k1, c0, c1, c2, c3 = (np.asarray(word).astype(np.uint32).astype(np.uint64) for word in words)
    low_half, high_shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = c0 * np.uint64(PHILOX_MULTIPLIERS[0]), c2 * np.uint64(PHILOX_MULTIPLIERS[1])
        c0, c1, c2, c3 = (p1 >> high_shift) ^ c1 ^ k0, p1 & low_half, (p0 >> high_shift) ^ c3 ^ k1, p0 & low_half
        k0 = (k0 + np.uint64(PHILOX_WEYL[0])) & low_half
        k1 = (k1 + np.uint64(PHILOX_WEYL[1])) & low_half
    return tuple(word.astype(np.uint32) for word in (c0, c1, c2, c3))  # pyright: ignore[reportReturnType]
