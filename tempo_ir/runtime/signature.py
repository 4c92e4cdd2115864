"""What a program takes and gives: inputs, parameters, outputs, bounds, host objects, read off its sdg text; and calls
of it checked against that.

A bound is read off the axes of the inputs, or given; two sources that disagree are both named. What the program
declares of its bounds, and what its reads need of them (preconditions), is checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tempo_ir.dialects import sdg
from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.types import Extent, Shape, dtype_name, element, shape_of
from tempo_ir.index import TRUE, And, Cond, Expr, Space, Sym, evaluate, free_symbols
from tempo_ir.reference.calls import MOST_STEPS, typed_array_of, whole_number
from tempo_ir.reference.dtypes import Array, DType, numpy_dtype
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.tensors import is_torch, outline_of

Stated: TypeAlias = tuple[tuple[str, int], ...]
"""The bounds that a call states."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array of the caller: the bounds of its leading dims, the row at one point, the element type. One that is whole
    has a row at each point of its dims."""

    kind: str
    name: str
    dims: tuple[tuple[str, Expr], ...]
    row: Shape
    dtype: DType
    dtype_text: str
    line: str
    is_whole: bool

    @staticmethod
    def of(op: sdg.SourceOp | sdg.OutputOp, space: Space) -> ArraySpec:
        """The array that an op of the program stands for."""
        row = op.result.type if isinstance(op, sdg.SourceOp) else op.accesses[0].type
        kind = op.name.partition(".")[2]
        dims = tuple((dim, space.bound(dim)) for dim in op.domain.dims)
        text = sdg.location_text(op.location)
        element_type = element(row)
        name = op.key.data
        is_whole = not op.domain.ranges and op.domain.where == TRUE
        return ArraySpec(
            kind, name, dims, shape_of(row), numpy_dtype(element_type), dtype_name(element_type), text or "", is_whole
        )

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All extents, over the bounds."""
        return (*(bound for _, bound in self.dims), *self.row)

    def shape(self, bounds: Mapping[str, int]) -> tuple[int, ...]:
        """The extents for given bounds."""
        return tuple(e if isinstance(e, int) else max(0, evaluate(e, bounds)) for e in self.extents)

    @property
    def text(self) -> str:
        """`f32[T, 16, 64]`, for messages."""
        return f"{self.dtype_text}[{', '.join(map(str, self.extents))}]"

    def check_fixed(self, shape: tuple[int, ...]) -> None:
        """Raises CallError for an array of another rank, or of other extents where these are numbers."""
        extents = self.extents
        fits = len(shape) == len(extents) and all(
            not isinstance(extent, int) or size == extent for size, extent in zip(shape, extents, strict=True)
        )
        if not fits:
            raise self.error(f"is {self.text}, got an array of shape {tuple(shape)}")

    def error(self, message: str) -> CallError:
        """An error about this array, with the line that declares it."""
        where = f" ({self.line})" if self.line else ""
        return CallError(f"{self.kind} '{self.name}' {message}{where}")


@dataclass(frozen=True)
class Signature:
    """The arrays, bounds and host objects of a program."""

    name: str
    space: Space
    inputs: Mapping[str, ArraySpec]
    parameters: Mapping[str, ArraySpec]
    outputs: Mapping[str, ArraySpec]
    hosts: tuple[str, ...]
    preconditions: tuple[tuple[Cond, str], ...]

    @staticmethod
    def of(program: sdg.ProgramOp) -> Signature:
        """The signature of an sdg program."""
        space = program.space
        ops = list(ops_of(program.body.block))

        def arrays(found: Iterable[Operation], kind: type[sdg.SourceOp | sdg.OutputOp]) -> dict[str, ArraySpec]:
            return {op.key.data: ArraySpec.of(op, space) for op in found if isinstance(op, kind)}

        preconditions = tuple((p.cond.data, p.text.data) for p in program.preconditions or ())
        return Signature(
            program.sym_name.data,
            space,
            arrays(ops, sdg.InputOp),
            arrays(ops, sdg.ParameterOp),
            arrays(ops, sdg.OutputOp),
            tuple(op.object for op in ops if isinstance(op, sdg.HostStateOp)),
            preconditions,
        )

    @cached_property
    def params(self) -> tuple[str, ...]:
        """The bounds, in order."""
        return self.space.params

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The parameters that an output updates."""
        return tuple(name for name in self.parameters if name in self.outputs)

    @cached_property
    def covered(self) -> frozenset[str]:
        """The outputs of which a call writes each element."""
        return frozenset(name for name, spec in self.outputs.items() if spec.is_whole)

    def arguments(self, given: Mapping[str, Any], state: Mapping[str, Any], taken: Callable[[Any], Any]) -> Arguments:
        """The arguments of a call, checked; `taken` gives the array of what is none of numpy's. Raises CallError naming
        the argument that does not fit."""
        arrays: dict[str, Array] = {}
        shapes: list[tuple[int, ...]] = []
        in_torch = False
        stated = () if len(given) == len(self.inputs) else self._stated(given)
        if len(state) != len(self.parameters):
            self._check_names(state)
        for name, dtype in self._types:
            array = given.get(name) if name in self.inputs else state.get(name)
            if type(array) is not np.ndarray or array.dtype is not dtype:
                tensor = is_torch(array)
                array = self._checked(name, given, state, taken)
                in_torch = in_torch or tensor or is_torch(array)
            arrays[name] = array
            shapes.append(array.shape)
        return Arguments(arrays, self.sizes_of(stated, tuple(shapes)), in_torch)

    @cached_property
    def _types(self) -> list[tuple[str, DType]]:
        """The arrays that a call takes, in order, and their types."""
        return [(name, spec.dtype) for name, spec in (*self.inputs.items(), *self.parameters.items())]

    def _checked(
        self, name: str, given: Mapping[str, Any], state: Mapping[str, Any], taken: Callable[[Any], Any]
    ) -> Any:
        """An input or a parameter, checked. Raises CallError where it is missing or does not fit."""
        if name in self.inputs:
            if name not in given:
                self._stated(given)
            return checked(self.inputs[name], given[name], taken)
        if name not in state:
            self._check_names(state)
        return checked(self.parameters[name], state[name], taken)

    def _stated(self, given: Mapping[str, Any]) -> Stated:
        """The bounds that a call states. Raises CallError for what is no bound, and where an input is missing."""
        stated: list[tuple[str, int]] = []
        for name, value in given.items():
            if name not in self.inputs:
                if name not in self.params:
                    raise CallError(f"'{name}' is neither an input nor a bound: {self._takes()}")
                stated.append((name, stated_bound(name, value)))
        for name, spec in self.inputs.items():
            if name not in given:
                raise spec.error(f"is missing: {self._takes()}")
        return tuple(stated)

    def _check_names(self, state: Mapping[str, Any]) -> None:
        """Raises CallError where the state holds too few arrays, or others."""
        for name, spec in self.parameters.items():
            if name not in state:
                raise spec.error("is missing in the state: pass state=exe.init(seed), or a dict with it")
        for name in state:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise CallError(
                    f"the state has '{name}', which '{self.name}' does not declare; its parameters are {known}"
                )

    @cached_property
    def sizes_of(self) -> Callable[[Stated, tuple[tuple[int, ...], ...]], Sizes]:
        """The sizes of a call, of the bounds that it states and of the shapes of inputs and parameters, in order;
        worked out once for each. Raises CallError where they do not fit."""
        return lru_cache(maxsize=64)(self._sizes_of)

    def _sizes_of(self, stated: Stated, shapes: tuple[tuple[int, ...], ...]) -> Sizes:
        specs = [*self.inputs.values(), *self.parameters.values()]
        bounds = Bounds(self, dict(stated), dict.fromkeys([name for name, _ in stated], "the call"))
        for spec, shape in zip(specs, shapes, strict=True):
            spec.check_fixed(shape)
        for spec, shape in zip(specs, shapes, strict=True):
            bounds.read(spec, shape)
        found = bounds.settled(dict(zip(specs, shapes, strict=True)))
        return Sizes(found, self.extents(found))

    def extents(self, bounds: Mapping[str, int]) -> dict[str, int]:
        """The number of points of each dim."""
        return {dim: evaluate(bound, bounds) for dim, bound in self.space.dims}

    def _takes(self) -> str:
        inputs = ", ".join(f"{name}: {spec.text}" for name, spec in self.inputs.items()) or "none"
        bounds = ", ".join(self.space.params) or "none"
        return f"'{self.name}' takes the inputs {inputs} and the bounds {bounds}"


@dataclass(frozen=True, slots=True)
class Sizes:
    """The value of every bound, and the number of points of each dim."""

    bounds: Mapping[str, int]
    extents: Mapping[str, int]


@dataclass(slots=True)
class Arguments:
    """The arrays of a call by name (inputs and parameters), its sizes, and whether one of the arrays was a tensor of
    torch."""

    arrays: dict[str, Array]
    sizes: Sizes
    in_torch: bool


def checked(spec: ArraySpec, given: Any, taken: Callable[[Any], Any]) -> Array:
    """The caller's array as it is `taken`, with element type as declared; a tensor stays one, wherever it lies. Raises
    CallError."""
    try:
        value = taken(given)
        array = typed_array_of(outline_of(value) if is_torch(value) else value, spec.dtype)
    except ValueError as error:
        raise spec.error(f"is {spec.text}, got {error}") from None
    spec.check_fixed(array.shape)
    return value if is_torch(value) else array


def stated_bound(name: str, value: Any) -> int:
    """A bound that the caller states. Raises CallError for what is none."""
    number = whole_number(value)
    if number is None or number < 0:
        raise CallError(f"the bound {name} is an integer of 0 or more, got {value!r}")
    if number > MOST_STEPS:
        raise CallError(f"the bound {name} is at most 2**48, got {number}")
    return number


@dataclass
class Bounds:
    """The bounds of a call as they are found, and where."""

    signature: Signature
    values: dict[str, int]
    origins: dict[str, str]

    def read(self, spec: ArraySpec, shape: tuple[int, ...]) -> None:
        """Bounds that are axes of an array."""
        for extent, size in zip(spec.extents, shape, strict=True):
            if not isinstance(extent, Sym) or extent.name not in self.signature.params:
                continue
            name, source = extent.name, f"{spec.kind} '{spec.name}'"
            if self.values.setdefault(name, size) != size:
                other = f"{self.origins[name]} has {name} = {self.values[name]}"
                raise CallError(f"{source} has {name} = {size}, {other}: they must agree")
            self.origins.setdefault(name, source)

    def settled(self, shapes: Mapping[ArraySpec, tuple[int, ...]]) -> dict[str, int]:
        """All bounds. Raises CallError where one is missing, or where what is declared or needed of them fails."""
        signature = self.signature
        for name in signature.params:
            if name not in self.values:
                raise CallError(f"the bound {name} cannot be read off the inputs: give it, as in {name}=16")
        for spec, shape in shapes.items():
            expected = spec.shape(self.values)
            if shape != expected:
                needed = f"of shape {shape}, {expected} is needed for {self._text(spec.extents)}"
                raise spec.error(f"is {spec.text}, got an array {needed}")
        needed = dict(signature.preconditions)
        where = signature.space.where
        declared = where.args if isinstance(where, And) else (where,)
        for cond in dict.fromkeys((*declared, *needed)):
            if not evaluate(cond, self.values):
                names = ", ".join(f"{name} = {self.values[name]}" for name in sorted(free_symbols(cond)))
                reason = f": {needed[cond]}" if cond in needed else ""
                raise CallError(f"'{signature.name}' needs {cond}, got {names}{reason}")
        return {name: self.values[name] for name in signature.params}

    def _text(self, extents: Iterable[Extent]) -> str:
        names = sorted({name for extent in extents if not isinstance(extent, int) for name in free_symbols(extent)})
        return ", ".join(f"{name} = {self.values[name]}" for name in names)
