"""Rows of buffers as numpy arrays, for what Python runs within a compiled program: host calls, leaves without a tile
form.

What an access means is worked out once for all calls of the same bounds: a program calls its environment thousands of
times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index import Const, Expr, Slice, Sym, evaluate, free_symbols, substitute
from tempo_ir.index.rules import terms
from tempo_ir.lowering.kernels.layout import Axis, Layout, array_of
from tempo_ir.reference import operations
from tempo_ir.reference.calls import host_results
from tempo_ir.reference.dtypes import Array, DType, numpy_dtype
from tempo_ir.reference.errors import ExecutionError

Symbols = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Linear:
    """An index expression for given bounds: `constant + sum of factor * iterator`, or where it is no sum the whole."""

    constant: int
    factors: tuple[tuple[str, int], ...]
    other: Expr | None = None

    @staticmethod
    def of(expression: Expr, bounds: Symbols) -> _Linear:
        """The expression with numbers for the bounds."""
        left = substitute(expression, {name: Const(value) for name, value in bounds.items()})
        polynomial = dict(terms(left))
        constant = polynomial.pop((), 0)
        factors: list[tuple[str, int]] = []
        for monomial, factor in polynomial.items():
            if len(monomial) != 1 or not isinstance(monomial[0], Sym):
                return _Linear(0, (), left)
            factors.append((monomial[0].name, factor))
        return _Linear(constant, tuple(factors))

    def at(self, symbols: Symbols) -> int:
        """The value."""
        if self.other is not None:
            return evaluate(self.other, symbols)
        total = self.constant
        for name, factor in self.factors:
            total += factor * symbols[name]
        return total


class _Located:
    """An access where the bounds have values: where its elements lie in the buffer at given iterators."""

    def __init__(self, access: loop.BufferAccess, layout: Layout, bounds: Symbols):
        place = array_of(access, layout)
        self.type = access.type
        self.dtype: DType = numpy_dtype(element(access.type))
        self.axes = place.axes
        self.offset = _Linear.of(place.offset, bounds)
        self.wraps = any(axis.wrap is not None for axis in place.axes)
        varying = {symbol for axis in place.axes for symbol in free_symbols(axis.stride)}
        varying.update(
            s for extent in shape_of(access.type) if not isinstance(extent, int) for s in free_symbols(extent)
        )
        self._fixed = self._extents(bounds) if varying <= set(bounds) else None

    def _extents(self, symbols: Symbols) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = operations.concrete_shape(self.type, symbols)
        return shape, tuple(evaluate(axis.stride, symbols) * self.dtype.itemsize for axis in self.axes)

    def extents(self, symbols: Symbols) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The extents, and the strides in bytes."""
        return self._extents(symbols) if self._fixed is None else self._fixed


class _Accessed:
    """An access in a call: the elements of one buffer at given iterators."""

    def __init__(self, located: _Located, flat: Array):
        self.located = located
        self.dtype = located.dtype
        self._flat = flat
        self._memory = flat.view(np.uint8).data  # bf16 has no buffer of its own

    def shape(self, symbols: Symbols) -> tuple[int, ...]:
        """The extents."""
        return self.located.extents(symbols)[0]

    def view(self, symbols: Symbols) -> Array:
        """The elements where they lie; a window that wraps round a ring is a copy."""
        shape, strides = self.located.extents(symbols)
        if 0 in shape:
            return np.zeros(shape, self._flat.dtype)
        offset = self.located.offset.at(symbols)
        if self.located.wraps:
            return self._flat[offset + self._positions(shape, symbols)]
        return np.ndarray(shape, self.dtype, self._memory, offset * self.dtype.itemsize, strides)

    def write(self, value: Array, symbols: Symbols) -> None:
        """Write the elements."""
        if value.size == 0:
            return
        if self.located.wraps:
            self._flat[self.located.offset.at(symbols) + self._positions(value.shape, symbols)] = value
            return
        np.copyto(self.view(symbols), value, "same_kind")

    def _positions(self, shape: Sequence[int], symbols: Symbols) -> Array:
        """Where the elements of a window stand, counted from the first one's row 0."""
        total = np.zeros((), np.int64)
        for number, (axis, extent) in enumerate(zip(self.located.axes, shape, strict=True)):
            place = _slots(axis, extent, symbols) * evaluate(axis.stride, symbols)
            total = total + place.reshape([-1 if other == number else 1 for other in range(len(shape))])
        return total


def _slots(axis: Axis, extent: int, symbols: Symbols) -> Array:
    """The places along an axis, round the ring where it is one."""
    places = np.arange(extent)
    if axis.wrap is None:
        return places
    return (places + evaluate(axis.wrap[0], symbols)) % axis.wrap[1]


@dataclass(frozen=True, slots=True)
class _HostCall:
    """What all calls of a host op have in common: object and method, what is read and written, the point, and the
    points of more dims that one call makes."""

    callee: tuple[str, str]
    reads: tuple[_Accessed, ...]
    writes: tuple[_Accessed, ...]
    point: tuple[tuple[str, _Linear], ...]
    over: tuple[tuple[str, Slice], ...]


class Meanings:
    """What accesses, and the points of calls, mean where the bounds have values: each worked out when it is first asked
    for."""

    def __init__(self, layouts: Mapping[SSAValue, Layout], bounds: Symbols):
        self.layouts = layouts
        self.bounds = bounds
        self.located = cache(self._located)
        self.point = cache(self._point)

    def _located(self, access: loop.BufferAccess) -> _Located:
        return _Located(access, self.layouts[access.buffer], self.bounds)

    def _point(self, op: loop.HostOp) -> tuple[tuple[str, _Linear], ...]:
        return tuple((name, _Linear.of(value, self.bounds)) for name, value in op.point)


class Rows:
    """The memory of a call: each buffer as a flat array, read and written by accesses."""

    def __init__(self, arrays: Mapping[SSAValue, Array], meanings: Meanings, seed: int, start: Symbols):
        self.arrays = arrays
        self.seed = seed
        self.start = start
        self._meanings = meanings
        self._accessed = cache(self._access)
        self._called = cache(self._host_call)

    def _access(self, access: loop.BufferAccess) -> _Accessed:
        return _Accessed(self._meanings.located(access), self.arrays[access.buffer])

    def _host_call(self, op: loop.HostOp) -> _HostCall:
        reads, writes = (tuple(map(self._accessed, accesses)) for accesses in (op.reads, op.writes))
        return _HostCall(op.callee, reads, writes, self._meanings.point(op), op.over)

    def rebind(self, bounds: Symbols) -> None:
        """Bounds have changed: what accesses mean is to be worked out anew."""
        self._meanings = Meanings(self._meanings.layouts, bounds)
        self._accessed.cache_clear()
        self._called.cache_clear()

    def view(self, access: loop.BufferAccess, symbols: Symbols) -> Array:
        """The accessed elements where they lie; a window that wraps round a ring is a copy."""
        return self._accessed(access).view(symbols)

    def write(self, access: loop.BufferAccess, value: Array, symbols: Symbols) -> None:
        """Write the accessed elements."""
        self._accessed(access).write(value, symbols)

    def run_body(self, op: loop.BodyOperation, symbols: Symbols) -> None:
        """A leaf or a kernel, op by op in numpy."""
        point = point_of(op, symbols)
        values: dict[SSAValue, Array] = {}
        for argument, access in zip(op.body.block.args, op.reads, strict=True):
            values[argument] = self.view(access, symbols)
        for inner in op.body.block.ops:
            if isinstance(inner, sdg.SdgOp):
                inputs = [values[operand] for operand in inner.operands]
                results = operations.evaluate(inner, inputs, symbols, self.seed, point, self.start)
                values.update(zip(inner.results, results, strict=True))
        results = [np.array(values[value]) for value in op.yielded]
        for result, access in zip(results, op.writes, strict=True):
            self.write(access, result, symbols)

    def run_host(self, op: loop.HostOp, host: object, symbols: Symbols) -> None:
        """A call of a method of a host object."""
        called = self._called(op)
        inputs = [access.view(symbols).copy() for access in called.reads]  # a method may keep what it is given
        expected = [(access.dtype, access.shape(symbols)) for access in called.writes]
        point: dict[str, int | range] = {name: place.at(symbols) for name, place in called.point}
        point.update((name, evaluate(points, symbols)) for name, points in called.over)
        results = host_results(host, called.callee, inputs, expected, op, point)
        for access, result in zip(called.writes, results, strict=True):
            access.write(result, symbols)

    def failure(self, op: loop.CheckOp, symbols: Symbols) -> ExecutionError:
        """The run-time error whose number a kernel has left."""
        point = {name: evaluate(value, symbols) for name, value in op.point}
        return ExecutionError(op.message(self.arrays[op.status].tolist()), None, point)


def point_of(op: loop.AccessOperation, symbols: Symbols) -> dict[str, int]:
    """The point of the sdg op's domain at which a leaf runs."""
    return {name: evaluate(value, symbols) for name, value in op.point}
