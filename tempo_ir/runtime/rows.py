"""Rows of buffers as numpy arrays, for what Python runs within a compiled program: host calls, leaves without a tile
form.

What an access means is worked out once for all calls of the same bounds: a program calls its environment thousands of
times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index import Const, Expr, Sym, evaluate, free_symbols, substitute
from tempo_ir.index.rules import terms
from tempo_ir.lowering.kernels.layout import Axis, Layout, array_of
from tempo_ir.reference import operations
from tempo_ir.reference.bodies import evaluate_body
from tempo_ir.reference.calls import checked_results, method_of, raise_noted
from tempo_ir.reference.dtypes import Array, DType, numpy_dtype
from tempo_ir.reference.errors import ExecutionError, Point

Symbols: TypeAlias = Mapping[str, int]
Run: TypeAlias = Callable[[Sequence[int]], None]
"""Runs an operation at some values of the iterators round it."""


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
        self.fixed = self._extents(bounds) if varying <= set(bounds) else None
        """The extents, and the strides in bytes, where they are the same at all iterators."""

    def _extents(self, symbols: Symbols) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = operations.concrete_shape(self.type, symbols)
        return shape, tuple(evaluate(axis.stride, symbols) * self.dtype.itemsize for axis in self.axes)

    def extents(self, symbols: Symbols) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The extents, and the strides in bytes."""
        return self._extents(symbols) if self.fixed is None else self.fixed


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

    def reader(self, iterators: Sequence[str], bounds: Symbols) -> Callable[[Sequence[int]], Array]:
        """What gives the elements where they lie, or a copy, at values of the iterators."""
        rows = self._rows(iterators)
        return rows or (lambda values: self.view({**bounds, **dict(zip(iterators, values, strict=True))}))

    def writer(self, iterators: Sequence[str], bounds: Symbols) -> Callable[[Sequence[int], Array], None]:
        """What writes the elements at values of the iterators."""
        rows = self._rows(iterators)
        if rows is None:
            return lambda values, value: self.write(
                np.asarray(value), {**bounds, **dict(zip(iterators, values, strict=True))}
            )

        def write(values: Sequence[int], value: Array) -> None:
            rows(values)[...] = value

        return write

    def _rows(self, iterators: Sequence[str]) -> Callable[[Sequence[int]], Array] | None:
        """What gives the elements at values of the iterators, where these are rows of one array: extents are fixed, and
        the offset is a sum. It takes a tenth of the time of `view`."""
        offset, fixed = self.located.offset, self.located.fixed
        if fixed is None or self.located.wraps or offset.other is not None:
            return None
        shape, strides = fixed
        if min(strides, default=0) < 0:
            return None
        if 0 in shape or not offset.factors:
            view = self.view({})
            return lambda values: view
        step = gcd(*(factor for _, factor in offset.factors))
        first, size = offset.constant % step, self.dtype.itemsize
        span = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + size
        count = (len(self._memory) - first * size - span) // (step * size) + 1
        rows = np.ndarray((count, *shape), self.dtype, self._memory, first * size, (step * size, *strides))
        begin = offset.constant // step
        places = [(iterators.index(name), factor // step) for name, factor in offset.factors]
        if len(places) == 1:
            ((place, steps),) = places
            return lambda values: rows[begin + steps * values[place], ...]
        return lambda values: rows[begin + sum(steps * values[place] for place, steps in places), ...]

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


class Meanings:
    """What accesses, and the points of calls, mean where the bounds have values: each worked out when it is first asked
    for."""

    def __init__(self, layouts: Mapping[SSAValue, Layout], bounds: Symbols):
        self.layouts = layouts
        self.bounds = bounds
        self.located = cache(self._located)

    def _located(self, access: loop.BufferAccess) -> _Located:
        return _Located(access, self.layouts[access.buffer], self.bounds)


class Rows:
    """The memory of calls: buffers as flat arrays, read and written by accesses."""

    def __init__(self, meanings: Meanings):
        self.arrays: dict[SSAValue, Array] = {}
        self._meanings = meanings
        self._accessed: dict[loop.BufferAccess, _Accessed] = {}

    def place(self, buffer: SSAValue, flat: Array) -> None:
        """A buffer, which lay nowhere, lies in an array."""
        self.arrays[buffer] = flat

    def forget(self, buffer: SSAValue) -> None:
        """A buffer lies nowhere."""
        self.arrays.pop(buffer, None)
        for access in [access for access in self._accessed if access.buffer is buffer]:
            del self._accessed[access]

    def rebind(self, bounds: Symbols) -> None:
        """Bounds have changed: what accesses mean is to be worked out anew."""
        if bounds != self._meanings.bounds:
            self._meanings = Meanings(self._meanings.layouts, bounds)
            self._accessed.clear()

    def accessed(self, access: loop.BufferAccess) -> _Accessed:
        """The accessed elements, wherever the iterators stand."""
        found = self._accessed.get(access)
        if found is None:
            found = self._accessed[access] = _Accessed(self._meanings.located(access), self.arrays[access.buffer])
        return found

    def run_body(self, op: loop.BodyOperation, symbols: Symbols, seed: int, start: Symbols) -> None:
        """A leaf or a kernel, op by op in numpy."""
        point = point_of(op, symbols)
        values: dict[SSAValue, Array] = {}
        for argument, access in zip(op.body.block.args, op.reads, strict=True):
            values[argument] = self.accessed(access).view(symbols)
        evaluate_body(op.body.block, values, symbols, seed, point, start)
        results = [np.array(values[value]) for value in op.yielded]
        for result, access in zip(results, op.writes, strict=True):
            self.accessed(access).write(result, symbols)

    def host_call(self, op: loop.HostOp, objects: Mapping[str, Any], iterators: Sequence[str]) -> Run:
        """What calls the method of a host object at values of the iterators, where buffers lie where they do now."""
        reads, writes = (list(map(self.accessed, accesses)) for accesses in (op.reads, op.writes))
        return _HostCall(op, objects, iterators, self._meanings.bounds, reads, writes)

    def failure(self, op: loop.CheckOp, symbols: Symbols) -> ExecutionError:
        """The run-time error whose number a kernel has left."""
        point = {name: evaluate(value, symbols) for name, value in op.point}
        return ExecutionError(op.message(self.arrays[op.status].tolist()), None, point)


class _HostCall:
    """
    Calls a method of a host object. Where rows lie at some iterators is all that is worked out in a call: programs call
    their environments thousands of times.

    `_accepted` are the kinds of the results that were found to fit the last time: what is of the same does too.
    """

    def __init__(
        self,
        op: loop.HostOp,
        objects: Mapping[str, Any],
        iterators: Sequence[str],
        bounds: Symbols,
        reads: Sequence[_Accessed],
        writes: Sequence[_Accessed],
    ):
        self._op, self._objects, self._iterators, self._bounds = op, objects, iterators, bounds
        self._name, self._method = op.callee
        self._reads = [access.reader(iterators, bounds) for access in reads]
        self._writes = [access.writer(iterators, bounds) for access in writes]
        self._declared = writes
        self._are_fixed = all(access.located.fixed is not None for access in writes)
        self._accepted: list[_Kind] | None = None

    def __call__(self, values: Sequence[int]) -> None:
        function = getattr(self._objects[self._name], self._method, None)
        if function is None:
            function = method_of(self._objects[self._name], self._op.callee, self._op, self._point(values))
        inputs = [read(values).copy() for read in self._reads]  # a method may keep what it is given
        for array in inputs:
            array.flags.writeable = False
        try:
            returned = function(*inputs)
        except Exception as error:
            raise_noted(error, self._op.callee, self._op, self._point(values))
        results = (returned,) if len(self._writes) == 1 else returned
        if not _have(results, self._accepted):
            results = self._checked(returned, results, values)
        for write, result in zip(self._writes, results, strict=True):
            write(values, result)

    def _checked(self, returned: Any, results: Any, values: Sequence[int]) -> Sequence[Array]:
        """The results as arrays. Raises ExecutionError for others than are declared."""
        symbols = self._symbols(values)
        expected = [(access.dtype, access.shape(symbols)) for access in self._declared]
        arrays = checked_results(returned, self._op.callee, expected, self._op, self._point(values))
        plain = [result for result in cast("Sequence[Any]", results or ()) if _is_plain(result)]
        if self._are_fixed and len(plain) == len(arrays):
            self._accepted = [(type(r), a.dtype, a.shape) for r, a in zip(plain, arrays, strict=True)]
        return arrays

    def _symbols(self, values: Sequence[int]) -> dict[str, int]:
        return {**self._bounds, **dict(zip(self._iterators, values, strict=True))}

    def _point(self, values: Sequence[int]) -> Point:
        symbols = self._symbols(values)
        stacked = {name: evaluate(points, symbols) for name, points in self._op.over}
        return {**{name: evaluate(value, symbols) for name, value in self._op.point}, **stacked}


_Kind: TypeAlias = tuple[type, DType, tuple[int, ...]]
"""A type of Python's, and the element type and the shape of the array that it makes."""


def _is_plain(result: Any) -> bool:
    """Whether all of the same kind as a result make arrays of the same kind: of Python's integers the size says it."""
    return type(result) in (np.ndarray, float, bool) or isinstance(result, np.generic)


def _have(results: Any, accepted: Sequence[_Kind] | None) -> bool:
    """Whether what a method returned is of such kinds."""
    if accepted is None or not isinstance(results, tuple | list):
        return False
    values = cast("Sequence[Any]", results)
    if len(values) != len(accepted):
        return False
    for value, (kind, dtype, shape) in zip(values, accepted, strict=True):
        if type(value) is not kind or (kind is np.ndarray and (value.dtype is not dtype or value.shape != shape)):
            return False
    return True


def point_of(op: loop.AccessOperation, symbols: Symbols) -> dict[str, int]:
    """The point of the sdg op's domain at which a leaf runs."""
    return {name: evaluate(value, symbols) for name, value in op.point}
