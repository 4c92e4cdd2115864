"""Rows of buffers as numpy arrays, for what Python runs within a compiled program: host calls, leaves without a tile
form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element
from tempo_ir.index import evaluate
from tempo_ir.lowering.kernels.layout import Axis, Layout, array_of
from tempo_ir.reference import operations
from tempo_ir.reference.calls import call_host, frozen
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.reference.errors import ExecutionError

Symbols = Mapping[str, int]


class Rows:
    """The memory of a call: each buffer as a flat array, read and written by accesses."""

    def __init__(self, arrays: Mapping[SSAValue, Array], layouts: Mapping[SSAValue, Layout], seed: int, start: Symbols):
        self.arrays = arrays
        self.layouts = layouts
        self.seed = seed
        self.start = start

    def view(self, access: loop.BufferAccess, symbols: Symbols) -> Array:
        """The accessed elements where they lie; a window that wraps round a ring is a copy."""
        flat = self.arrays[access.buffer]
        array = array_of(access, self.layouts[access.buffer])
        shape = operations.concrete_shape(access.type, symbols)
        offset = evaluate(array.offset, symbols)
        if 0 in shape:
            return np.zeros(shape, flat.dtype)
        if all(axis.wrap is None for axis in array.axes):
            strides = [evaluate(axis.stride, symbols) * flat.dtype.itemsize for axis in array.axes]
            return np.lib.stride_tricks.as_strided(flat[offset:], shape, strides)
        return flat[offset + self._positions(array.axes, shape, symbols)]

    def _positions(self, axes: Sequence[Axis], shape: Sequence[int], symbols: Symbols) -> Array:
        total = np.zeros((), np.int64)
        for number, (axis, extent) in enumerate(zip(axes, shape, strict=True)):
            place = np.arange(extent)
            if axis.wrap is not None:
                place = (place + evaluate(axis.wrap[0], symbols)) % axis.wrap[1]
            place = place * evaluate(axis.stride, symbols)
            total = total + place.reshape([-1 if other == number else 1 for other in range(len(shape))])
        return total

    def write(self, access: loop.BufferAccess, value: Array, symbols: Symbols) -> None:
        """Write the accessed elements."""
        flat = self.arrays[access.buffer]
        array = array_of(access, self.layouts[access.buffer])
        if value.size == 0:
            return
        if any(axis.wrap is not None for axis in array.axes):
            flat[evaluate(array.offset, symbols) + self._positions(array.axes, value.shape, symbols)] = value
            return
        self.view(access, symbols)[...] = value

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
        inputs = [frozen(self.view(access, symbols)) for access in op.reads]
        expected = [
            (numpy_dtype(element(access.type)), operations.concrete_shape(access.type, symbols)) for access in op.writes
        ]
        callee = (op.method.root_reference.data, op.method.nested_references.data[0].data)
        results = call_host(host, callee, inputs, expected, op, point_of(op, symbols))
        for access, result in zip(op.writes, results, strict=True):
            self.write(access, result, symbols)

    def failure(self, op: loop.CheckOp, symbols: Symbols) -> ExecutionError:
        """The run-time error whose number a kernel has left."""
        number = int(self.arrays[op.status][0])
        point = {name: evaluate(value, symbols) for name, value in op.point}
        return ExecutionError(op.messages[number - 1], None, point)


def point_of(op: loop.AccessOperation, symbols: Symbols) -> dict[str, int]:
    """The point of the sdg op's domain at which a leaf runs."""
    return {name: evaluate(value, symbols) for name, value in op.point}
