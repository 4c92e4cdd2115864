"""What the caller of a program gives, checked: bounds, arrays and host objects. Shared by all that runs programs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
from xdsl.ir import Operation

from tempo_ir.dialects.sdg import PreconditionAttr
from tempo_ir.dialects.sdg.locations import host_text
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import TRUE
from tempo_ir.index.expr import evaluate as evaluate_index
from tempo_ir.reference.dtypes import Array, DType
from tempo_ir.reference.errors import ExecutionError, Point, point_text

HostFactories: TypeAlias = Mapping[str, Callable[[], Any]]
"""Makes the object of each host name, anew for each call of a program."""


MOST_STEPS = 1 << 48
"""The most that a bound or a start may be: numbers of elements and addresses made of them stay within 64 bits."""


def whole_number(value: Any) -> int | None:
    """An integer of Python's, numpy's or torch's as one of Python's; None for anything else, truth values too."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def array_of(value: Any) -> Array:
    """The array that a caller gives. Raises ValueError, `a list that makes no array: ...`, for what is none, and for an
    array whose mask would be lost."""
    if _has_mask(value):
        raise ValueError("an array of which elements are masked: give it filled, as x.filled(0)")
    try:
        return np.asarray(value)
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"a {type(value).__name__} that makes no array: {error}") from None


def _has_mask(value: Any) -> bool:
    """Whether elements of a numpy array are masked."""
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(cast("Any", value)))


def typed_array_of(value: Any, dtype: DType) -> Array:
    """The array that a caller gives, of a dtype, to which Python's own numbers are converted. Raises ValueError that
    says what the value is instead."""
    array = array_of(value)
    if array.dtype == dtype:
        return array
    plain = isinstance(value, int | float | bool | list | tuple)
    if not plain or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(f"an array of {array.dtype}: convert it")
    converted = array.astype(dtype)
    if dtype.kind == "i" and not np.array_equal(converted, array):
        raise ValueError(f"numbers that are outside of {dtype}")
    return converted


def mapping_of(argument: str, value: Any, holds: str) -> dict[str, Any]:
    """A dict that a caller gives; an empty one for None. Raises ValueError, `state is a dict of arrays by name, got a
    list`, for what is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{argument} is a dict of {holds}, got a {type(value).__name__}")
    return dict(cast("Mapping[str, Any]", value))


def starts_of(start: Any, names: Sequence[str]) -> dict[str, int]:
    """What dims count on from. Raises ValueError for what is no dict of numbers by dim."""
    started: dict[str, int] = {}
    for name, value in mapping_of("start", start, 'numbers by dim, as in start={"i": 40}').items():
        if name not in names:
            raise ValueError(f"start: there is no dim '{name}', the program has {', '.join(names) or 'none'}")
        number = whole_number(value)
        if number is None or not 0 <= number <= MOST_STEPS:
            raise ValueError(f"start: dim {name} cannot start at {value!r}: it starts at an integer of 0 to 2**48")
        started[name] = number
    return started


class Outputs(dict[str, Array]):
    """The outputs of a call by key. `bounds` are those it ran with: where a dim ends by data, the steps that ran."""

    __slots__ = ("bounds",)
    bounds: Mapping[str, int]

    @staticmethod
    def of(arrays: Mapping[str, Array], bounds: Mapping[str, int]) -> Outputs:
        """The outputs of a call that ran with some bounds."""
        outputs = Outputs(arrays)
        outputs.bounds = dict(bounds)
        return outputs


def frozen(array: Array) -> Array:
    """The array as others may hold it: nobody may write into it."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def check_bounds(space: Space, bounds: Mapping[str, int], preconditions: Iterable[PreconditionAttr] = ()) -> None:
    """Every bound has a value of at least 0, and what the program declares or requires of them holds.

    Raises ExecutionError that names the bound, or the condition and the read that needs it.
    """
    for name in space.params:
        if name not in bounds:
            raise ExecutionError(f"the bound {name} has no value")
        if bounds[name] < 0:
            raise ExecutionError(f"the bound {name} is {bounds[name]}: a bound is at least 0")
    given = point_text({name: bounds[name] for name in space.params})
    if space.where != TRUE and not evaluate_index(space.where, bounds):
        raise ExecutionError(f"the program is declared for `{space.where}`, which fails for {given}")
    for precondition in preconditions:
        if not evaluate_index(precondition.cond.data, bounds):
            needed = f"`{precondition.cond.data}` is needed, which fails for {given}"
            raise ExecutionError(f"{needed}: {precondition.text.data}")


def check_end(space: Space, bounds: Mapping[str, int], bound: str) -> None:
    """What the program declares or requires of its bounds holds where data ended a dim. Raises ExecutionError."""
    if not evaluate_index(space.where, bounds):
        needed = f"the program is declared for `{space.where}`, which fails for"
        raise ExecutionError(f"{needed} {point_text(bounds)}: data ended the dim at {bound} = {bounds[bound]}")


def argument(
    op: Operation, key: str, arguments: Mapping[str, Any], dtype: DType, shape: tuple[int, ...], longer: int = 0
) -> Array:
    """The caller's array for an input or parameter, read only, of the dtype and shape that the program says.

    The first `longer` axes may have more rows than the program reads. Raises ExecutionError naming the argument.
    """
    kind = op.name.partition(".")[2]
    if key not in arguments:
        given = ", ".join(f'"{name}"' for name in arguments) or "none"
        raise ExecutionError(f'{kind} "{key}" is missing; given are {given}', op)
    array = np.asarray(arguments[key])
    fits = len(array.shape) == len(shape) and array.shape[longer:] == shape[longer:]
    if not fits or any(have < want for have, want in zip(array.shape[:longer], shape[:longer], strict=True)):
        raise ExecutionError(f'{kind} "{key}" has shape {array.shape}, expected {shape}', op)
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ExecutionError(f'{kind} "{key}" is of dtype {array.dtype}, expected {dtype}', op)
    return frozen(array.astype(dtype, copy=False))


def make_host(name: str, factories: HostFactories, op: Operation) -> Any:
    """A new object for a host name. Raises ExecutionError where the caller gave no way to make one."""
    if name not in factories:
        given = ", ".join(f"@{other}" for other in factories) or "none"
        error = ExecutionError(f"there is no host object @{name}; given are {given}")
        error.op = op
        raise error
    return factories[name]()


def call_host(
    host: Any,
    callee: tuple[str, str],
    inputs: Sequence[Array],
    expected: Sequence[tuple[DType, tuple[int, ...]]],
    op: Operation,
    point: Point,
) -> list[Array]:
    """What a method (object and method name) returns for read-only arrays, as arrays of the expected dtypes and shapes.

    The method's own exceptions pass through, with a note of op and point. Raises ExecutionError where it returns
    something else than is declared.
    """
    function = method_of(host, callee, op, point)
    try:
        returned = function(*map(frozen, inputs))
    except Exception as error:
        raise_noted(error, callee, op, point)
    results = checked_results(returned, callee, expected, op, point)
    return [frozen(result.astype(dtype)) for result, (dtype, _) in zip(results, expected, strict=True)]


def method_of(host: Any, callee: tuple[str, str], op: Operation, point: Point) -> Callable[..., Any]:
    """The method (object and method name) of a host object. Raises ExecutionError where it has none."""
    function = getattr(host, callee[1], None)
    if function is None:
        raise _host_error("the host object @{} has no method {}".format(*callee), op, point)
    return function


def raise_noted(error: Exception, callee: tuple[str, str], op: Operation, point: Point) -> NoReturn:
    """Raise what a method raised, with a note of op and point."""
    error.add_note(str(_host_error("raised by @{}::@{}".format(*callee), op, point)))
    raise error


def checked_results(
    returned: Any,
    callee: tuple[str, str],
    expected: Sequence[tuple[DType, tuple[int, ...]]],
    op: Operation,
    point: Point,
) -> list[Array]:
    """What a method returned as arrays of the expected shapes, of dtypes that can be cast to the expected ones. Raises
    ExecutionError where it is something else."""
    results = _as_results(returned, len(expected), "@{}::@{}".format(*callee), op, point)
    arrays: list[Array] = []
    for number, (result, (dtype, shape)) in enumerate(zip(results, expected, strict=True)):
        try:
            array = array_of(result)
        except ValueError as error:
            raise _host_error("@{}::@{} returned {} as result #{}".format(*callee, error, number), op, point) from None
        fits = array.shape == shape and (array.dtype == dtype or np.can_cast(array.dtype, dtype, "same_kind"))
        if not fits:
            got = f"returned {array.dtype} of shape {array.shape} as result #{number}"
            message = "@{}::@{} {}, expected {} of shape {}".format(*callee, got, dtype, shape)
            raise _host_error(message, op, point)
        arrays.append(array)
    return arrays


def _host_error(message: str, op: Operation, point: Point) -> ExecutionError:
    """The same words at every level."""
    error = ExecutionError(f"{message}, in {host_text(op)}", None, point)
    error.op = op
    return error


def _as_results(returned: Any, count: int, name: str, op: Operation, point: Point) -> Sequence[Any]:
    """One element per declared result."""
    if count == 1:
        return (returned,)
    if count == 0:
        if returned is not None:
            raise _host_error(f"{name} returned {type(returned).__name__}, expected None", op, point)
        return ()
    if not isinstance(returned, (tuple, list)):
        raise _host_error(f"{name} returned {type(returned).__name__}, expected a tuple of {count}", op, point)
    values = cast(Sequence[Any], returned)
    if len(values) != count:
        raise _host_error(f"{name} returned {len(values)} values, expected {count}", op, point)
    return values
