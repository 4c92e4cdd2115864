"""The meaning of an sdg program: values on demand, each op at each point at most once.

A dim that ends by data ends first: step by step, with what the condition needs. Then
`run` asks for every host call and every output at the points of its domain, and computes what they need, depth first,
with an explicit stack: recurrences of any length need no deep recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg.base import Access, SdgOp
from tempo_ir.dialects.sdg.locations import op_text, value_text
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.until import bound_of, until_of
from tempo_ir.dialects.types import element
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Cond, Index, Slice, free_symbols, index_text
from tempo_ir.index.expr import evaluate as evaluate_index
from tempo_ir.reference import operations
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
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.reference.errors import ExecutionError

Coordinates: TypeAlias = tuple[int, ...]
Instance: TypeAlias = tuple[SdgOp, Coordinates]
"""One op at one point of its domain."""


def run(
    program: sdg.ProgramOp,
    arguments: Mapping[str, Any],
    bounds: Mapping[str, int],
    seed: int = 0,
    hosts: HostFactories | None = None,
    start: Mapping[str, int] | None = None,
) -> Outputs:
    """The outputs of a program by key, their leading axes being the dims of the output's domain.

    Rows run from 0 to the end of each dim's range; one outside of the domain is zero. `arguments` holds inputs
    and parameters by key; `start` what dims count on from, as data and in random numbers, when a call resumes.

    Raises:
        ExecutionError: an argument, bound or host object is missing or does not fit; the bounds break what the program
            declares; a value needs itself; an op has no value at some point.
    """
    starts = dict.fromkeys(program.space.names, 0) | dict(start or {})
    state = Run(program, arguments, bounds, seed, hosts or {}, starts)
    return Outputs.of(state.outputs(), state.bounds)


@dataclass
class Run:
    """One call of a program. `values` holds the results of each instance that ran, `inside` when an op has points."""

    program: sdg.ProgramOp
    arguments: Mapping[str, Any]
    bounds: Mapping[str, int]
    seed: int
    factories: HostFactories
    start: Mapping[str, int]
    values: dict[Instance, Sequence[Array | None]] = field(default_factory=dict[Instance, Sequence[Array | None]])
    hosts: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: dict[SdgOp, Array] = field(default_factory=dict[SdgOp, Array])
    inside: dict[SdgOp, Cond] = field(default_factory=dict[SdgOp, Cond])

    @property
    def space(self) -> Space:
        """The declaration of the program."""
        return self.program.space

    def outputs(self) -> dict[str, Array]:
        """Check what the caller gave, make all host calls in the order of nested loops, then compute the outputs."""
        check_bounds(self.space, self.bounds, self.program.preconditions or ())
        for op in self.program.body.block.ops:
            if isinstance(op, sdg.SourceOp):
                self.sources[op] = self._source(op)
        for host in self.program.body.block.ops:
            if isinstance(host, sdg.HostStateOp):
                self.hosts[host.object] = make_host(host.object, self.factories, host)
        self._end_by_data()
        for instance in self._host_calls():
            self.need(instance)
        return {op.key.data: self._output(op) for op in self.program.body.block.ops if isinstance(op, sdg.OutputOp)}

    def _end_by_data(self) -> None:
        """Run the steps of the dim that ends by data, each as if it were the last, until one is: their number is the
        bound."""
        until = until_of(program_ops(self.program))
        if until is None:
            return
        bound, (access,) = bound_of(until, self.space), until.accesses
        for step in range(self.bounds[bound]):
            self.bounds = {**self.bounds, bound: step + 1}
            symbols = {**self.bounds, until.dim: step}
            for instance in self._reads(access, symbols):
                self.need(instance)
            if self._gathered(access, symbols):
                break
        check_end(self.space, self.bounds, bound)

    def _source(self, op: sdg.SourceOp) -> Array:
        dims = tuple(evaluate_index(self.space.bound(dim), self.bounds) for dim in op.domain.dims)
        shape = (*dims, *operations.concrete_shape(op.result.type, self.bounds))
        return argument(op, op.key.data, self.arguments, numpy_dtype(element(op.result.type)), shape)

    def _host_calls(self) -> Iterable[Instance]:
        """Every host call: by point in the order of the declared dims, then by position in the program."""
        found: list[tuple[tuple[int, ...], int, Instance]] = []
        for number, op in enumerate(self.program.body.block.ops):
            if isinstance(op, sdg.HostOp):
                for point in op.domain.points(self.space, self.bounds):
                    order = tuple(point.get(name, -1) for name in self.space.names)
                    found.append((order, number, (op, tuple(point.values()))))
        return [instance for _, _, instance in sorted(found, key=lambda entry: entry[:2])]

    def _output(self, op: sdg.OutputOp) -> Array:
        extents = self._extents(op)
        result: Array | None = None
        for point in op.domain.points(self.space, self.bounds):
            symbols = {**self.bounds, **point}
            for instance in self._reads(op.accesses[0], symbols):
                self.need(instance)
            row = self._gathered(op.accesses[0], symbols)
            if result is None:
                result = np.zeros((*extents, *row.shape), row.dtype)
            if result.shape[len(extents) :] != row.shape:
                message = f'output "{op.key.data}" has rows of different shapes, {result.shape[len(extents) :]} and '
                raise ExecutionError(f"{message}{row.shape}: pad them to one shape", op, point)
            result[tuple(point.values())] = row
        if result is not None:
            return result
        shape = operations.concrete_shape(op.accesses[0].type, {**dict.fromkeys(op.domain.dims, 0), **self.bounds})
        return np.zeros((*extents, *shape), numpy_dtype(element(op.accesses[0].type)))

    def _extents(self, op: sdg.OutputOp) -> list[int]:
        """The end of the range of each dim; the declared bound where that end varies with another dim."""
        ends = [(dim, op.domain.upper(dim, self.space)) for dim in op.domain.dims]
        inner = set(op.domain.dims)
        extents = [self.space.bound(dim) if free_symbols(end) & inner else end for dim, end in ends]
        return [max(0, evaluate_index(extent, self.bounds)) for extent in extents]

    # Values on demand

    def need(self, wanted: Instance) -> None:
        """Compute an op at a point, after everything that it reads, which `values` then holds."""
        stack = [wanted]
        open_instances: dict[Instance, None] = {}
        while stack:
            instance = stack[-1]
            if instance in self.values:
                stack.pop()
                open_instances.pop(instance, None)
                continue
            open_instances[instance] = None
            missing = [read for read in self._instance_reads(instance) if read not in self.values]
            if not missing:
                self.values[instance] = self._execute(instance)
                continue
            for read in missing:
                if read in open_instances:
                    self._raise_cycle(open_instances, read)
            stack.extend(reversed(missing))

    def _raise_cycle(self, open_instances: Mapping[Instance, None], repeated: Instance) -> None:
        chain = list(open_instances)
        chain = [*chain[chain.index(repeated) :], repeated]
        steps = " <- ".join(_instance_text(instance) for instance in chain)
        raise ExecutionError(f"a value needs itself: {steps}", repeated[0], _point(repeated))

    def _symbols(self, instance: Instance) -> dict[str, int]:
        return {**self.bounds, **_point(instance)}

    def _instance_reads(self, instance: Instance) -> list[Instance]:
        """The op instances that an instance reads; of a merge only what its first case that holds reads."""
        symbols = self._symbols(instance)
        return [read for access in self._taken(instance, symbols) for read in self._reads(access, symbols)]

    def _taken(self, instance: Instance, symbols: Mapping[str, int]) -> Sequence[Access]:
        op = instance[0]
        if not isinstance(op, sdg.MergeOp):
            return op.accesses
        for cond, access in zip(op.conds, op.accesses, strict=True):
            if evaluate_index(cond, symbols):
                return (access,)
        raise ExecutionError("no case of the merge holds", op, _point(instance))

    def _reads(self, access: Access, symbols: Mapping[str, int]) -> list[Instance]:
        """The instances that an access reads; none of an input, whose rows are there."""
        producer = access.value.owner
        if not isinstance(producer, SdgOp) or producer in self.sources:
            return []
        return [(producer, point) for point in product(*_ranges(access.index, symbols))]

    def _gathered(self, access: Access, symbols: Mapping[str, int]) -> Array:
        """The accessed tensor: an axis per slice, then the axes of the value at one point."""
        producer = access.value.owner
        assert isinstance(producer, SdgOp)
        ranges = _ranges(access.index, symbols)
        lengths = [len(taken) for taken, entry in zip(ranges, access.index, strict=True) if isinstance(entry, Slice)]
        if producer in self.sources:
            row = operations.concrete_shape(access.type, symbols)[len(lengths) :]
            return _rows(self.sources[producer], ranges, lengths, row, access)
        rows = [self._row(producer, access.value, point) for point in product(*ranges)]
        if not lengths:
            return rows[0]
        if not rows:
            dims = zip(producer.domain.dims, ranges, strict=True)
            there = {dim: taken[0] if taken else 0 for dim, taken in dims}
            inner = operations.concrete_shape(access.value.type, {**symbols, **there})
            return np.zeros((*lengths, *inner), numpy_dtype(element(access.value.type)))
        return np.stack(rows).reshape(*lengths, *rows[0].shape)

    def _row(self, producer: SdgOp, value: SSAValue, point: Coordinates) -> Array:
        row = self.values[(producer, point)][producer.results.index(value)]  # pyright: ignore[reportArgumentType]
        assert row is not None
        return row

    def _execute(self, instance: Instance) -> Sequence[Array | None]:
        op, _ = instance
        point = _point(instance)
        self._check_inside(op, point)
        symbols = self._symbols(instance)
        if isinstance(op, sdg.HostStateOp):
            return [None]
        if isinstance(op, sdg.HostOp):
            inputs = [self._gathered(access, symbols) for access in op.accesses[:-1]]
            return [*self._call(op, inputs, point), None]
        taken = self._taken(instance, symbols)
        if isinstance(op, sdg.MergeOp):
            is_token = isinstance(op.result.type, sdg.TokenType)
            return [None if is_token else self._gathered(taken[0], symbols)]
        inputs = [self._gathered(access, symbols) for access in taken]
        results = operations.evaluate(op, inputs, symbols, self.seed, start=self.start)
        return [frozen(result) for result in results]

    def _check_inside(self, op: SdgOp, point: Mapping[str, int]) -> None:
        if op not in self.inside:
            self.inside[op] = op.domain.condition(Space(self.space.dims))  # what is declared was checked before
        if evaluate_index(self.inside[op], {**self.bounds, **point}):
            return
        raise ExecutionError(f"a read of {op_text(op)}, which has the domain {op.domain}, outside of it", op, point)

    def _call(self, op: sdg.HostOp, inputs: Sequence[Array], point: Mapping[str, int]) -> list[Array]:
        """A call of the method, or of its vectorised form where the op is over points of a dim."""
        symbols = {**self.bounds, **point}
        form = op.vectorized
        over = () if form is None else form.points(self.space)
        method = op.method if form is None or not over else form.method
        where = {**point, **{dim: evaluate_index(points, symbols) for dim, points in over}}
        expected = [
            (numpy_dtype(element(result.type)), operations.concrete_shape(result.type, symbols))
            for result in op.outputs
        ]
        return call_host(self.hosts[op.object], (op.object, method), inputs, expected, op, where)


def _point(instance: Instance) -> dict[str, int]:
    op, coordinates = instance
    return dict(zip(op.domain.dims, coordinates, strict=True))


def _instance_text(instance: Instance) -> str:
    op, coordinates = instance
    name = value_text(op.results[0]) if op.results else op.name
    return f"{name}[{', '.join(map(str, coordinates))}]" if coordinates else name


def _ranges(index: Index, symbols: Mapping[str, int]) -> list[range]:
    """The values that each entry takes."""
    values = [evaluate_index(entry, symbols) for entry in index]
    return [value if isinstance(value, range) else range(value, value + 1) for value in values]


def _rows(source: Array, ranges: Sequence[range], lengths: Sequence[int], row: Sequence[int], access: Access) -> Array:
    """The rows of an argument, which may have room for more steps than there were."""
    reads_some = all(ranges)
    for taken, extent in zip(ranges, source.shape, strict=False):
        if reads_some and not (0 <= taken[0] and taken[-1] < extent):
            read = f"{value_text(access.value)}{index_text(access.index)}"
            raise ExecutionError(f"{read} reads {taken.start} to {taken[-1]} of {extent} rows")
    selected = source[tuple(slice(t.start, t.stop, t.step) if t else slice(0, 0) for t in ranges)]
    inner = tuple(slice(0, extent) for extent in row)
    return selected.reshape((*lengths, *source.shape[len(ranges) :]))[(..., *inner)]
