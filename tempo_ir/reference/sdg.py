"""The meaning of an sdg program: values on demand, each op at each point at most once.

`run` asks for every host call and every output at the points of its domain, and computes what they need, depth first,
with an explicit stack: recurrences of any length need no deep recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg.base import Access, SdgOp
from tempo_ir.dialects.sdg.locations import op_text, value_text
from tempo_ir.dialects.types import element
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import TRUE, Index, Slice, index_text
from tempo_ir.index.expr import evaluate as evaluate_index
from tempo_ir.reference import operations
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.reference.errors import ExecutionError, point_text

HostFactories: TypeAlias = Mapping[str, Callable[[], Any]]
"""Makes the object of each host name, anew for each call of a program."""

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
) -> dict[str, Array]:
    """The outputs of a program by key, their leading axes being the dims of the output's domain.

    A row of an output outside of its domain, where that is narrower than declared, is zero. `arguments` holds inputs
    and parameters by key; `start` what dims count on from, as data and in random numbers, when a call resumes.

    Raises:
        ExecutionError: an argument, bound or host object is missing or does not fit; the bounds break what the program
            declares; a value needs itself; an op has no value at some point.
    """
    state = Run(program, arguments, bounds, seed, hosts or {}, start or {})
    return state.outputs()


@dataclass
class Run:
    """One call of a program. `values` holds the results of each op instance that ran."""

    program: sdg.ProgramOp
    arguments: Mapping[str, Any]
    bounds: Mapping[str, int]
    seed: int
    factories: HostFactories
    start: Mapping[str, int]
    values: dict[Instance, Sequence[Array | None]] = field(default_factory=dict[Instance, Sequence[Array | None]])
    hosts: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: dict[SdgOp, Array] = field(default_factory=dict[SdgOp, Array])

    @property
    def space(self) -> Space:
        """The declaration of the program."""
        return self.program.space

    def outputs(self) -> dict[str, Array]:
        """Check what the caller gave, make all host calls in the order of nested loops, then compute the outputs."""
        check_bounds(self.program, self.bounds)
        for op in self.program.body.block.ops:
            if isinstance(op, sdg.SourceOp):
                self.sources[op] = argument(op, self.arguments, self.space, self.bounds)
        for host in self.program.body.block.ops:
            if isinstance(host, sdg.HostStateOp):
                self.hosts[host.object] = make_host(host.object, self.factories, host)
        for instance in self._host_calls():
            self.need(instance)
        return {op.key.data: self._output(op) for op in self.program.body.block.ops if isinstance(op, sdg.OutputOp)}

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
        extents = [evaluate_index(self.space.bound(dim), self.bounds) for dim in op.domain.dims]
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
            return _rows(self.sources[producer], ranges, lengths, access)
        rows = [self._row(producer, access.value, point) for point in product(*ranges)]
        if not lengths:
            return rows[0]
        if not rows:
            inner = operations.concrete_shape(access.value.type, {**dict.fromkeys(producer.domain.dims, 0), **symbols})
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
        dims = {dim: value + self.start.get(dim, 0) for dim, value in point.items()}
        return [_frozen(result) for result in operations.evaluate(op, inputs, symbols, self.seed, dims)]

    def _check_inside(self, op: SdgOp, point: Mapping[str, int]) -> None:
        symbols = {**self.bounds, **point}
        if evaluate_index(op.domain.condition(self.space), symbols):
            return
        raise ExecutionError(f"a read of {op_text(op)}, which has the domain {op.domain}, outside of it", op, point)

    def _call(self, op: sdg.HostOp, inputs: Sequence[Array], point: Mapping[str, int]) -> list[Array]:
        shapes = [operations.concrete_shape(result.type, {**self.bounds, **point}) for result in op.outputs]
        return call_host(self.hosts[op.object], op.method, inputs, op, shapes, point)


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


def _rows(source: Array, ranges: Sequence[range], lengths: Sequence[int], access: Access) -> Array:
    """The rows of an argument."""
    for taken, extent in zip(ranges, source.shape, strict=False):
        if taken and not (0 <= taken[0] and taken[-1] < extent):
            read = f"{value_text(access.value)}{index_text(access.index)}"
            raise ExecutionError(f"{read} reads {taken.start} to {taken[-1]} of {extent} rows")
    selected = source[tuple(slice(t.start, t.stop, t.step) if t else slice(0, 0) for t in ranges)]
    return selected.reshape((*lengths, *source.shape[len(ranges) :]))


def _frozen(array: Array) -> Array:
    """The array as others may hold it: nobody may write into it."""
    view = array.view()
    view.flags.writeable = False
    return view


# What the caller gives


def check_bounds(program: Operation, bounds: Mapping[str, int]) -> None:
    """Every bound has a value of at least 0, and what the program declares or requires of them holds.

    Raises ExecutionError that names the bound, or the condition and the read that needs it.
    """
    assert isinstance(program, sdg.ProgramOp)
    space = program.space
    for name in space.params:
        if name not in bounds:
            raise ExecutionError(f"the bound {name} has no value")
        if bounds[name] < 0:
            raise ExecutionError(f"the bound {name} is {bounds[name]}: a bound is at least 0")
    given = point_text({name: bounds[name] for name in space.params})
    if space.where != TRUE and not evaluate_index(space.where, bounds):
        raise ExecutionError(f"the program is declared for `{space.where}`, which fails for {given}")
    for precondition in program.preconditions or ():
        if not evaluate_index(precondition.cond.data, bounds):
            needed = f"`{precondition.cond.data}` is needed, which fails for {given}"
            raise ExecutionError(f"{needed}: {precondition.text.data}")


def argument(op: sdg.SourceOp, arguments: Mapping[str, Any], space: Space, bounds: Mapping[str, int]) -> Array:
    """The caller's array for an input or parameter, read only, of the dtype and shape that the program says.

    Raises ExecutionError naming the argument.
    """
    kind, key = op.name.removeprefix("sdg."), op.key.data
    if key not in arguments:
        given = ", ".join(f'"{name}"' for name in arguments) or "none"
        raise ExecutionError(f'{kind} "{key}" is missing; given are {given}', op)
    array = np.asarray(arguments[key])
    dims = [evaluate_index(space.bound(dim), bounds) for dim in op.domain.dims]
    shape = (*dims, *operations.concrete_shape(op.result.type, bounds))
    if array.shape != shape:
        over = f", the first {len(dims)} over {op.domain}" if dims else ""
        raise ExecutionError(f'{kind} "{key}" has shape {array.shape}, expected {shape}{over}', op)
    dtype = numpy_dtype(element(op.result.type))
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ExecutionError(f'{kind} "{key}" is of dtype {array.dtype}, expected {dtype}', op)
    return _frozen(array.astype(dtype, copy=False))


def make_host(name: str, factories: HostFactories, op: Operation) -> Any:
    """A new object for a host name. Raises ExecutionError where the caller gave no way to make one."""
    if name not in factories:
        given = ", ".join(f"@{other}" for other in factories) or "none"
        raise ExecutionError(f"there is no host object @{name}; given are {given}", op)
    return factories[name]()


def call_host(
    host: Any,
    method: str,
    inputs: Sequence[Array],
    op: sdg.HostOp,
    shapes: Sequence[tuple[int, ...]],
    point: Mapping[str, int],
) -> list[Array]:
    """What a method returns for read-only arrays, as arrays of the declared dtypes and shapes.

    The method's own exceptions pass through, with a note of op and point. Raises ExecutionError where it returns
    something else than is declared.
    """
    name = f"@{op.object}::@{method}"
    function = getattr(host, method, None)
    if function is None:
        raise ExecutionError(f"the host object @{op.object} has no method {method}", op, point)
    try:
        returned = function(*(_frozen(array) for array in inputs))
    except Exception as error:
        error.add_note(str(ExecutionError(f"raised by {name}", op, point)))
        raise
    results: Sequence[Any] = [] if not shapes else [returned] if len(shapes) == 1 else returned
    if not shapes and returned is not None:
        raise ExecutionError(f"{name} returned something, expected None", op, point)
    if len(shapes) > 1 and not (isinstance(returned, (tuple, list)) and len(results) == len(shapes)):
        raise ExecutionError(f"{name} returned no {len(shapes)} values in a tuple", op, point)
    arrays: list[Array] = []
    for number, (result, shape, value) in enumerate(zip(results, shapes, op.outputs, strict=True)):
        array = np.asarray(result)
        dtype = numpy_dtype(element(value.type))
        if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            got = f"returned {array.dtype} of shape {array.shape} as result #{number}"
            raise ExecutionError(f"{name} {got}, expected {dtype} of shape {shape}", op, point)
        arrays.append(_frozen(array.astype(dtype)))
    return arrays
