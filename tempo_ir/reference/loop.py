"""The meaning of a loop program: its loops, guards and leaves in order, over buffers that remember what each row holds.

Rows are kept by their place in memory (a ring of 4 has 4 places), with the point that was written there, so that order
and storage are checked as the program runs: a read before the write, after the free, or of a row that a ring has since
overwritten is an error that names the op and both points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.types import element
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Index, Slice
from tempo_ir.index.expr import evaluate as evaluate_index
from tempo_ir.reference import operations
from tempo_ir.reference.bodies import evaluate_body
from tempo_ir.reference.calls import (
    HostFactories,
    Outputs,
    argument,
    call_host,
    check_bounds,
    check_end,
    frozen,
    make_host,
)
from tempo_ir.reference.dtypes import Array, DType, numpy_dtype
from tempo_ir.reference.errors import ExecutionError

Place: TypeAlias = tuple[int, ...]
"""Where a row lies: one number per stored dim."""


def run_loop(
    program: loop.ProgramOp,
    arguments: Mapping[str, Any],
    bounds: Mapping[str, int],
    seed: int = 0,
    hosts: HostFactories | None = None,
    start: Mapping[str, int] | None = None,
) -> Outputs:
    """The outputs of a loop program by key; a row that is never written is zero.

    Arguments as `tempo_ir.reference.sdg.run`.

    Raises:
        ExecutionError: an argument, bound or host object is missing or does not fit; a row is read before it is
            written, after it is freed or after it is overwritten; an op has no value; a kernel is compiled already.
    """
    check_bounds(program.space, bounds)
    run = LoopRun(program.space, arguments, bounds, seed, start or {})
    for op in program.body.block.walk():
        if isinstance(op, loop.HostOp) and (name := op.method.root_reference.data) not in run.hosts:
            run.hosts[name] = make_host(name, hosts or {}, op)
    starts = {loop.call_start(dim): run.start.get(dim, 0) for dim in program.space.names}
    run.block(program.body.block, {**bounds, **starts})
    outputs = [op for op in program.body.block.ops if isinstance(op, loop.OutputOp)]
    return Outputs.of({op.key.data: run.memory[op.buffer].whole(*run.extents(op)) for op in outputs}, run.bounds)


@dataclass(frozen=True, slots=True)
class Where:
    """An op that runs, and its point: what an error shows."""

    op: Operation
    point: Mapping[str, int]

    def error(self, message: str) -> ExecutionError:
        """The error to raise."""
        return ExecutionError(message, self.op, self.point)


@dataclass(frozen=True, slots=True)
class Row:
    """What lies in a place: the row of which point, and whether it may still be read."""

    point: Place
    value: Array
    freed: bool = False


@dataclass
class Memory:
    """A buffer: how many rows each dim has, in how many slots if it is a ring (else 0), and what was written."""

    name: str
    dtype: DType
    extents: tuple[int, ...]
    rings: tuple[int, ...]
    rows: dict[Place, Row] = field(default_factory=dict[Place, Row])

    def place(self, point: Place, where: Where) -> Place:
        """Where the row of a point lies. Raises ExecutionError where the buffer has no such row."""
        for value, extent in zip(point, self.extents, strict=True):
            if not 0 <= value < extent:
                raise where.error(f"{self.text(point)} is outside of the {extent} rows of the buffer")
        return tuple(value % slots if slots else value for value, slots in zip(point, self.rings, strict=True))

    def text(self, point: Place) -> str:
        """`%h[3]`."""
        return f"{self.name}[{', '.join(map(str, point))}]" if point else self.name

    def write(self, point: Place, value: Array, where: Where) -> None:
        """Put a row in its place, whatever lay there."""
        self.rows[self.place(point, where)] = Row(point, value)

    def read(self, point: Place, where: Where) -> Array:
        """The row of a point. Raises ExecutionError where it is not there."""
        return self._held(point, "read", where).value

    def free(self, point: Place, where: Where) -> None:
        """The row of a point is read no more. Raises ExecutionError where it is not there."""
        row = self._held(point, "freed", where)
        self.rows[self.place(point, where)] = Row(row.point, row.value, freed=True)

    def _held(self, point: Place, what: str, where: Where) -> Row:
        row = self.rows.get(self.place(point, where))
        if row is None:
            raise where.error(f"{self.text(point)} is {what} before it is written")
        if row.point != point:
            raise where.error(f"{self.text(point)} is {what}, its place in the ring holds {self.text(row.point)}")
        if row.freed:
            raise where.error(f"{self.text(point)} is {what} after it was freed")
        return row

    def whole(self, extents: tuple[int, ...], row_shape: tuple[int, ...]) -> Array:
        """All rows as one array, zero where nothing was written."""
        shapes = {row.value.shape for row in self.rows.values()} or {row_shape}
        if len(shapes) > 1:
            raise ExecutionError(f"the rows of {self.name} have different shapes: {sorted(shapes)}")
        result = np.zeros((*extents, *shapes.pop()), self.dtype)
        for place, row in self.rows.items():
            result[place] = row.value
        return result


@dataclass
class LoopRun:
    """One call of a loop program."""

    space: Space
    arguments: Mapping[str, Any]
    bounds: Mapping[str, int]
    seed: int
    start: Mapping[str, int]
    memory: dict[SSAValue, Memory] = field(default_factory=dict[SSAValue, Memory])
    hosts: dict[str, Any] = field(default_factory=dict[str, Any])

    def block(self, block: Block, symbols: Mapping[str, int]) -> None:
        """Run the operations of a block in order; `symbols` are the iterators and bounds."""
        for op in block.ops:
            match op:
                case loop.ForOp():
                    count = self._loop(op, symbols)
                    if op.gives is not None:
                        self.bounds = {**self.bounds, op.gives: count}
                        symbols = {**symbols, op.gives: count}
                        check_end(self.space, self.bounds, op.gives)
                case loop.IfOp():
                    taken = op.then if evaluate_index(op.condition, symbols) else op.otherwise
                    if taken is not None:
                        self.block(taken.block, symbols)
                case loop.BodyOperation():
                    self._body(op, symbols)
                case loop.HostOp():
                    self._host(op, symbols)
                case loop.TransferOp():
                    where = Where(op, {})
                    self._write(op.target, self._read(op.source, symbols, where), symbols, where)
                case loop.FreeOp():
                    for point in product(*_ranges(op.index, symbols)):
                        self.memory[op.buffer].free(point, Where(op, {}))
                case loop.BufferOperation():
                    self._define(op)
                case _:
                    raise ExecutionError("only the target runs compiled kernels; interpret the program before them", op)

    def _define(self, op: loop.BufferOperation) -> None:
        """Make the memory of a buffer, filled where the caller gave it."""
        stored = op.buffer_type.dims
        dtype = numpy_dtype(element(op.buffer_type.row))
        extents, row = self.extents(op)
        name = f"%{op.buffer.name_hint}" if op.buffer.name_hint is not None else f"the {op.name}"
        memory = Memory(name, dtype, extents, tuple(dim.slots for dim in stored))
        self.memory[op.buffer] = memory
        if isinstance(op, loop.InputOp | loop.ParameterOp):
            array = argument(op, op.key.data, self.arguments, dtype, (*extents, *row), longer=len(extents))
            for point in product(*map(range, extents)):
                memory.write(point, frozen(array[point]), Where(op, {}))

    def extents(self, op: loop.BufferOperation) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The rows of each stored dim, and the shape of the row at 0, for the bounds as they are now."""
        stored = op.buffer_type.dims
        row = operations.concrete_shape(op.buffer_type.row, {**{dim.name: 0 for dim in stored}, **self.bounds})
        return tuple(self._rows(dim) for dim in stored), row

    def _rows(self, dim: loop.BufferDim) -> int:
        extent = dim.extent if dim.extent is not None else self.space.bound(dim.name)
        return max(0, evaluate_index(extent, self.bounds))

    def _loop(self, op: loop.ForOp, symbols: Mapping[str, int]) -> int:
        """Run a loop; how many iterations there were."""
        values = evaluate_index(op.range, symbols)
        for number, value in enumerate(reversed(values) if op.down else values):
            inner = {**symbols, op.iterator: value}
            self.block(op.body.block, inner)
            if op.until is None:
                continue
            buffer, index = op.until
            if self._read(loop.BufferAccess.of(buffer, index), inner, Where(op, {op.iterator: value})):
                return number + 1
        return len(values)

    def _body(self, op: loop.BodyOperation, symbols: Mapping[str, int]) -> None:
        """A leaf or a kernel: what is read, the sdg ops in order, what is written."""
        where = _where(op, symbols)
        values: dict[SSAValue, Array] = {}
        for block_argument, access in zip(op.body.block.args, op.reads, strict=True):
            values[block_argument] = self._read(access, symbols, where)
        evaluate_body(op.body.block, values, symbols, self.seed, where.point, self.start)
        for value, access in zip(op.yielded, op.writes, strict=True):
            self._write(access, values[value], symbols, where)

    def _host(self, op: loop.HostOp, symbols: Mapping[str, int]) -> None:
        where = _where(op, symbols)
        inputs = [self._read(access, symbols, where) for access in op.reads]
        expected = [
            (numpy_dtype(element(access.type)), operations.concrete_shape(access.type, symbols)) for access in op.writes
        ]
        point = {**where.point, **{dim: evaluate_index(points, symbols) for dim, points in op.over}}
        results = call_host(self.hosts[op.callee[0]], op.callee, inputs, expected, op, point)
        for access, result in zip(op.writes, results, strict=True):
            self._write(access, result, symbols, where)

    def _read(self, access: loop.BufferAccess, symbols: Mapping[str, int], where: Where) -> Array:
        """The accessed tensor: an axis per slice, then the row; of a row no more than the accessed extents."""
        memory = self.memory[access.buffer]
        ranges = _ranges(access.index, symbols)
        lengths = [len(taken) for taken, entry in zip(ranges, access.index, strict=True) if isinstance(entry, Slice)]
        shape = operations.concrete_shape(access.type, symbols)
        if list(shape[: len(lengths)]) != lengths:
            raise where.error(f"{memory.name} is read as {shape}, the slices have {tuple(lengths)} points")
        inner = shape[len(lengths) :]
        rows = [_part(memory.read(point, where), inner, memory.text(point), where) for point in product(*ranges)]
        return np.stack(rows).reshape(shape) if rows else np.zeros(shape, memory.dtype)

    def _write(self, access: loop.BufferAccess, value: Array, symbols: Mapping[str, int], where: Where) -> None:
        memory = self.memory[access.buffer]
        ranges = _ranges(access.index, symbols)
        shape = operations.concrete_shape(access.type, symbols)
        if value.shape != shape:
            raise where.error(f"{memory.name} is written as {shape}, the value has the shape {value.shape}")
        count = len([entry for entry in access.index if isinstance(entry, Slice)])
        points = list(product(*ranges))
        for point, row in zip(points, value.reshape((len(points), *shape[count:])), strict=True):
            memory.write(point, frozen(row), where)


def _where(op: loop.AccessOperation, symbols: Mapping[str, int]) -> Where:
    return Where(op, {name: evaluate_index(value, symbols) for name, value in op.point})


def _ranges(index: Index, symbols: Mapping[str, int]) -> list[range]:
    """The values that each entry takes."""
    values = [evaluate_index(entry, symbols) for entry in index]
    return [value if isinstance(value, range) else range(value, value + 1) for value in values]


def _part(row: Array, shape: Sequence[int], name: str, where: Where) -> Array:
    """The accessed part of a row: the first elements of each axis."""
    if len(row.shape) != len(shape) or any(have < want for have, want in zip(row.shape, shape, strict=True)):
        raise where.error(f"{name} is read as {tuple(shape)}, it holds {row.shape}")
    return row[tuple(slice(0, extent) for extent in shape)]
