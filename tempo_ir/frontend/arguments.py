"""What a call gives and gets: inputs checked, bounds read off them, states checked; results by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempo_ir import index as ix
from tempo_ir.frontend.description import Array, InputInfo
from tempo_ir.frontend.dims import Dim, is_integer
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.index.expr import Expr
from tempo_ir.reference.calls import array_of, typed_array_of

if TYPE_CHECKING:
    from tempo_ir.frontend.program import Program
    from tempo_ir.reference.calls import Outputs


class Result(dict[str, Array]):
    """The outputs by name; `state` holds the last value of every state, and the parameters as they were; `extents` the
    number of points of each dim."""

    state: dict[str, Array]
    extents: dict[str, int]

    @classmethod
    def of(cls, program: Program, arguments: Arguments, values: Outputs) -> Result:
        """Sort what the program gave into outputs and states."""
        result = cls({name: values[name] for name in program.outputs})
        result.state = {name: values.get(name, arguments.arrays[name]) for name in program.states}
        result.extents = {dim: ix.evaluate(bound, values.bounds) for dim, bound in program.dims.items()}
        return result


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arrays by name (inputs and states), and the value of every bound."""

    arrays: dict[str, Array]
    bounds: dict[str, int]

    @classmethod
    def of(cls, program: Program, given: Mapping[str, Any], state: Mapping[str, Array]) -> Arguments:
        """Check a call's arguments. Raises ProgramError naming the input, the bound or the state that does not fit."""
        takes = f"'{program.name}' takes the inputs {_listed(program.inputs)} and the bounds {_listed(program.bounds)}"
        if unknown := [name for name in given if name not in program.inputs and name not in program.bounds]:
            raise ProgramError(f"no input or bound is called '{unknown[0]}': {takes}")
        bounds: dict[str, int] = {}
        origin: dict[str, str] = {}
        for name in program.bounds:
            if name in given:
                bounds[name], origin[name] = _bound(name, given[name]), "the call"
        arrays: dict[str, Array] = {}
        for name, info in program.inputs.items():
            if name not in given:
                raise ProgramError(f"the input '{name}' is missing: {takes}")
            arrays[name] = checked_input(info, [program.dims[dim] for dim in info.over], given[name])
            for axis, dim in enumerate(info.over):
                _read_bound(program.dims[dim], arrays[name].shape[axis], f"input '{name}'", bounds, origin)
        if missing := [name for name in program.bounds if name not in bounds]:
            raise ProgramError(f"the bound {missing[0]} cannot be read off the inputs: give it, as in {missing[0]}=16")
        _check_derived(program, bounds, arrays)
        return cls({**arrays, **checked_state(program, state)}, bounds)


def checked_input(info: InputInfo, leading: Sequence[Expr], value: Any) -> Array:
    """The array of an input, with its element type and rank checked and the axes of its spec."""
    try:
        array = typed_array_of(value, info.spec.dtype.numpy)
    except ValueError as error:
        raise ProgramError(f"the input '{info.name}' is {info.spec.dtype}, got {error}", info.place) from None
    expected = [*leading, *info.spec.shape]
    fits = array.ndim == len(expected) and all(
        not isinstance(extent, int) or size == extent for size, extent in zip(array.shape, expected, strict=True)
    )
    if not fits:
        shape = f"({', '.join(map(str, expected))}{',' if len(expected) == 1 else ''})"
        raise ProgramError(
            f"the input '{info.name}' has the shape {shape}, got an array of shape {array.shape}", info.place
        )
    return array


def checked_state(program: Program, state: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of all states, each with the declared element type and shape."""
    arrays: dict[str, Array] = {}
    for name, info in program.states.items():
        if name not in state:
            raise ProgramError(f"the state lacks '{name}': make one with program.init(seed)", info.place)
        try:
            array = array_of(state[name])
        except ValueError as error:
            raise ProgramError(f"'{name}' is {info.spec}, got {error}", info.place) from None
        if array.dtype != info.spec.dtype.numpy or array.shape != info.spec.shape:
            raise ProgramError(
                f"'{name}' is {info.spec}, the state has {array.dtype} of shape {array.shape}", info.place
            )
        arrays[name] = array
    if unknown := [name for name in state if name not in program.states]:
        raise ProgramError(f"the state has '{unknown[0]}', which '{program.name}' does not declare")
    return arrays


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"


def _bound(name: str, value: Any) -> int:
    if not is_integer(value) or isinstance(value, Dim) or value < 0:
        raise ProgramError(f"the bound {name} is a number of steps, 0 or more, got {value!r}")
    return int(value)


def _read_bound(bound: Expr, size: int, source: str, bounds: dict[str, int], origin: dict[str, str]) -> None:
    """Take a bound from an axis; two sources that disagree are both named."""
    if not isinstance(bound, ix.Sym):
        return
    if bounds.setdefault(bound.name, size) != size:
        raise ProgramError(
            f"{source} has {bound.name} = {size}, {origin[bound.name]} has {bound.name} = {bounds[bound.name]}: "
            "they must agree"
        )
    origin.setdefault(bound.name, source)


def _check_derived(program: Program, bounds: Mapping[str, int], arrays: Mapping[str, Array]) -> None:
    """Axes over dims whose bound follows from others have that size; the declared relations hold."""
    for name, info in program.inputs.items():
        for axis, dim in enumerate(info.over):
            expected = ix.evaluate(program.dims[dim], bounds)
            if arrays[name].shape[axis] != expected:
                raise ProgramError(
                    f"the input '{name}' has {arrays[name].shape[axis]} points of dim {dim}, {program.dims[dim]} = "
                    f"{expected} are needed",
                    info.place,
                )
    where = program.op.space.where
    parts = where.args if isinstance(where, ix.And) else (where,)
    for part in parts:
        if not ix.evaluate(part, bounds):
            values = ", ".join(f"{name} = {bounds[name]}" for name in sorted(ix.free_symbols(part)))
            raise ProgramError(f"'{program.name}' needs {part}, got {values}{_reason(program, part)}")


def _reason(program: Program, part: ix.Cond) -> str:
    """The read that made a precondition, if one did."""
    for precondition in program.op.preconditions or ():
        if precondition.cond.data == part:
            return f": {precondition.text.data}"
    return ""
