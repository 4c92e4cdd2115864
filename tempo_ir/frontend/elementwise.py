"""Elementwise operations: operands broadcast as in numpy, are cast to their common type, and one op is recorded.

Every function takes tensors, Dims, Conditions, Python scalars (weak: they take the type of the tensors they meet)
and numpy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from tempo_ir import index as ix
from tempo_ir.dialects import sdg, types
from tempo_ir.frontend.dims import Condition, Dim, expression, is_integer
from tempo_ir.frontend.dtypes import (
    DType,
    bool_,
    dtype_of_array,
    dtype_of_scalar,
    f32,
    i64,
    promote_all,
)
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.tensor import Tensor, Value, record

Scalar = bool | int | float


def checked_value(value: object) -> Value:
    """`value` if an operation can take it; raises ProgramError naming its type otherwise."""
    if isinstance(value, Tensor | Dim | Condition | bool | int | float | np.ndarray | np.generic):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise ProgramError(
        f"expected a tensor, a dim, a number or a numpy array, got {type(value).__name__}"
        + (": tp.stack joins the elements of a list" if isinstance(value, list | tuple) else "")
        + (": tp.log prints a line, the natural logarithm is tp.ln" if value is None else "")
    )


def is_scalar(value: object) -> TypeGuard[bool | int | float]:
    """True for a Python number, which is weak in promotion; numpy's numbers have a type of their own."""
    return isinstance(value, (int, float)) and not isinstance(value, np.generic)  # a bool is an int


def constant(value: Scalar, dtype: DType, shape: Sequence[int] = ()) -> Tensor:
    """A tensor of one number everywhere; equal constants of a program are one op."""
    if dtype.kind != "float" and isinstance(value, float):
        raise ProgramError(f"the number {value} does not fit a tensor of {dtype}: write an integer, or cast the tensor")
    if dtype.kind == "bool" and not isinstance(value, bool):
        raise ProgramError(f"the number {value} does not fit a tensor of bool: write True or False, or cast the tensor")
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        if not limits.min <= value <= limits.max:
            raise ProgramError(f"the number {value} is outside of {dtype}, {limits.min} to {limits.max}")
    number = float(value) if dtype.kind == "float" else int(value) if dtype.kind == "int" else value
    recording = current()
    key = (dtype.name, tuple(shape), math.copysign(1.0, number), str(number))
    if key not in recording.constants:
        result_type = types.tensor(dtype.element, list(shape))
        op = sdg.ConstantOp(number, result_type=result_type)
        recording.constants[key] = recording.add(op, name="").results[0]
    return Tensor(recording, recording.constants[key])


def constant_number(x: Tensor) -> Scalar | None:
    """The number that a constant tensor holds everywhere; None for any other tensor."""
    owner = x.value.owner
    return owner.number if isinstance(owner, sdg.ConstantOp) else None


def array_constant(array: np.ndarray[Any, Any]) -> Tensor:
    """A numpy array as a constant of its own type."""
    dtype = dtype_of_array(array)
    if dtype is None:
        raise ProgramError(
            f"a numpy array of {array.dtype} has no type here: convert it, as in array.astype(np.float32)"
        )
    if array.ndim == 0 or (array.size and array.size < 2):
        splat = constant(array.reshape(-1)[0].item(), dtype, array.shape)
        return splat
    recording = current()
    key = ("array", dtype.name, array.shape, array.tobytes())
    if key not in recording.constants:
        result_type = types.tensor(dtype.element, list(array.shape))
        literal_type: Any = result_type
        dense = DenseIntOrFPElementsAttr.from_list(literal_type, array.reshape(-1).tolist())
        recording.constants[key] = recording.add(sdg.ConstantOp(dense, result_type=result_type), name="").results[0]
    return Tensor(recording, recording.constants[key])


def as_tensor(value: Value, dtype: DType | None = None) -> Tensor:
    """Any value as a tensor: Dims are i64 and Conditions bool scalars at the current point. `dtype` types a Python
    number."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Dim):
        if isinstance(value.expr, ix.Const):
            return constant(value.expr.value, i64)
        return record(sdg.IndexOp, over=ix.free_symbols(value.expr), expression=value.expr)
    if isinstance(value, Condition):
        return _condition(value.cond)
    if isinstance(value, np.ndarray | np.generic):
        return array_constant(np.asarray(value))
    if is_scalar(value):
        return constant(value, dtype or dtype_of_scalar(value))
    return as_tensor(checked_value(value))


def _condition(cond: ix.Cond) -> Tensor:
    """A condition over dims as a boolean scalar."""
    if isinstance(cond, ix.Truth):
        return constant(cond.value, bool_)
    if isinstance(cond, ix.Compare):
        operation = _COMPARISONS[cond.op]
        return operation(Dim(cond.lhs), Dim(cond.rhs))
    parts = [_condition(arg) for arg in cond.args]
    join = logical_and if isinstance(cond, ix.And) else logical_or
    result = parts[0]
    for part in parts[1:]:
        result = join(result, part)
    return result


def cast(x: Value, dtype: DType) -> Tensor:
    """The numbers of `x` in another element type: floats to integers saturate (NaN is 0), integers wrap.

    Raises ProgramError for a `dtype` that is none of `tp.f32`, `tp.i64`, ...
    """
    if not isinstance(dtype, DType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(f"cast: an element type is one as tp.f32 or tp.i64, got {dtype!r}")
    if is_scalar(x):
        return constant(_converted(x, dtype), dtype)
    source = as_tensor(x)
    if source.dtype == dtype:
        return source
    return record(sdg.CastOp, source, result_type=types.tensor(dtype.element, source.extents))


def _converted(value: Any, dtype: DType) -> Scalar:
    if dtype.kind == "float":
        return float(value)
    return bool(value) if dtype.kind == "bool" else int(value)


def unified(values: Sequence[Value], at_least: DType | None = None) -> list[Tensor]:
    """The values as tensors of their common type; `at_least` replaces a type of a lower kind."""
    operands: list[Any] = [value if is_scalar(value) else as_tensor(value) for value in values]
    scalars = [operand for operand in operands if not isinstance(operand, Tensor)]
    dtypes = [operand.dtype for operand in operands if isinstance(operand, Tensor)]
    common = promote_all(dtypes, scalars)
    if at_least is not None and _rank(common) < _rank(at_least):
        common = at_least
    if not scalars and all(dtype is common for dtype in dtypes):
        return operands
    return [
        cast(operand, common) if isinstance(operand, Tensor) else constant(_converted(operand, common), common)
        for operand in operands
    ]


def _rank(dtype: DType) -> int:
    return ("bool", "int", "float").index(dtype.kind)


def _unary(op: type[Operation], x: Value, at_least: DType | None = None) -> Tensor:
    (operand,) = unified([x], at_least)
    return record(op, operand)


def _binary(op: type[Operation], a: Value, b: Value, at_least: DType | None = None) -> Tensor:
    return record(op, *unified([a, b], at_least))


# ------------------------------------------------------------------------------------------- arithmetic


def add(a: Value, b: Value) -> Tensor:
    """`a + b`; of booleans, the i64 sum."""
    return _binary(sdg.AddOp, a, b, i64)


def subtract(a: Value, b: Value) -> Tensor:
    """`a - b`."""
    return _binary(sdg.SubOp, a, b, i64)


def multiply(a: Value, b: Value) -> Tensor:
    """`a * b`."""
    return _binary(sdg.MulOp, a, b, i64)


def divide(a: Value, b: Value) -> Tensor:
    """`a / b`, a float also where both are integers."""
    return _binary(sdg.DivOp, a, b, f32)


def floor_divide(a: Value, b: Value) -> Tensor:
    """`a // b`, rounded down. An integer division by zero is an error when the program runs."""
    return _binary(sdg.FloordivOp, a, b, i64)


def mod(a: Value, b: Value) -> Tensor:
    """`a % b`, with the sign of `b`."""
    return _binary(sdg.ModOp, a, b, i64)


def power(a: Value, b: Value) -> Tensor:
    """`a ** b`; a square is a product.

    Values are those of C's pow, for a constant exponent too: `(-inf) ** 0.5` is inf, `(-inf) ** -0.5` is 0.
    numpy and torch agree on these for an array of exponents; where the exponent is a Python number, both take a square
    root for 0.5 (NaN), for -0.5 torch does (NaN) and numpy does not (0).
    """
    if is_scalar(b) and not isinstance(b, bool):
        if b == 2:
            (base,) = unified([a], i64)
            return record(sdg.MulOp, base, base)
        if b == 1:
            return unified([a], i64)[0]
        if isinstance(b, int) and b < 0:
            return _binary(sdg.PowOp, a, b, f32)
    return _binary(sdg.PowOp, a, b, i64)


def negative(x: Value) -> Tensor:
    """`-x`."""
    return _unary(sdg.NegOp, x, i64)


def minimum(a: Value, b: Value, *more: Value) -> Any:
    """The lesser of the arguments: a Dim of Dims and integers, an elementwise tensor otherwise (NaN propagates)."""
    return _extreme(ix.minimum, sdg.MinimumOp, (a, b, *more))


def maximum(a: Value, b: Value, *more: Value) -> Any:
    """The greater of the arguments: a Dim of Dims and integers, an elementwise tensor otherwise (NaN propagates)."""
    return _extreme(ix.maximum, sdg.MaximumOp, (a, b, *more))


def _extreme(exact: Callable[..., ix.Expr], op: type[Operation], values: tuple[Value, ...]) -> Any:
    if all(is_integer(value) for value in values):
        return Dim(exact(*(expression(value) for value in values if is_integer(value))))
    result: Value = values[0]
    for value in values[1:]:
        result = _binary(op, result, value)
    return result


def clip(x: Value, low: Value | None = None, high: Value | None = None) -> Tensor:
    """`x` held between `low` and `high`; either may be missing. Gradients are torch's: at an end that of `x`, at a NaN
    none."""
    result = as_tensor(x)
    if low is not None:
        result = _held(greater_equal, maximum, result, low)
    return result if high is None else _held(less_equal, minimum, result, high)


def _held(
    inside: Callable[[Value, Value], Tensor], extreme: Callable[[Value, Value], Any], x: Tensor, end: Value
) -> Tensor:
    """One end of `clip`. A maximum shares its gradient among ties; what is inside needs none, and beyond is the end."""
    beyond = extreme(x, end)
    if beyond.dtype.kind != "float":
        return beyond
    unknown = stop_gradient(beyond)  # a NaN is on neither side
    outside = unknown if is_scalar(end) else where(inside(end, x), end, unknown)
    return where(inside(x, end), x, outside)


# ------------------------------------------------------------------------------------------- functions


def exp(x: Value) -> Tensor:
    """The exponential."""
    return _unary(sdg.ExpOp, x, f32)


def ln(x: Value) -> Tensor:
    """The natural logarithm."""
    return _unary(sdg.LogOp, x, f32)


def log1p(x: Value) -> Tensor:
    """`ln(1 + x)`, as exact for small x as for others."""
    return _unary(sdg.Log1pOp, x, f32)


def sqrt(x: Value) -> Tensor:
    """The square root."""
    return _unary(sdg.SqrtOp, x, f32)


def rsqrt(x: Value) -> Tensor:
    """One over the square root."""
    return _unary(sdg.RsqrtOp, x, f32)


def tanh(x: Value) -> Tensor:
    """The hyperbolic tangent."""
    return _unary(sdg.TanhOp, x, f32)


def sigmoid(x: Value) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return _unary(sdg.SigmoidOp, x, f32)


def erf(x: Value) -> Tensor:
    """The error function."""
    return _unary(sdg.ErfOp, x, f32)


def sin(x: Value) -> Tensor:
    """The sine."""
    return _unary(sdg.SinOp, x, f32)


def cos(x: Value) -> Tensor:
    """The cosine."""
    return _unary(sdg.CosOp, x, f32)


def abs(x: Value) -> Tensor:
    """The absolute value."""
    return _unary(sdg.AbsOp, x, i64)


def sign(x: Value) -> Tensor:
    """-1, 0 or 1."""
    return _unary(sdg.SignOp, x, i64)


def floor(x: Value) -> Tensor:
    """The next integer below, as a float."""
    return _unary(sdg.FloorOp, x, f32)


def ceil(x: Value) -> Tensor:
    """The next integer above, as a float."""
    return _unary(sdg.CeilOp, x, f32)


def round(x: Value) -> Tensor:
    """The nearest integer, halves to even, as a float."""
    return _unary(sdg.RoundOp, x, f32)


def relu(x: Value) -> Tensor:
    """`max(x, 0)`, with the gradient 0 at 0."""
    operand = as_tensor(x)
    return where(less_equal(operand, 0), 0, operand) if operand.dtype.kind == "float" else maximum(operand, 0)


def silu(x: Value) -> Tensor:
    """`x * sigmoid(x)`."""
    operand = as_tensor(x)
    return multiply(operand, sigmoid(operand))


def gelu(x: Value) -> Tensor:
    """`x * Phi(x)`, by the error function."""
    operand = as_tensor(x)
    return multiply(multiply(operand, 0.5), add(erf(multiply(operand, math.sqrt(0.5))), 1.0))


def softplus(x: Value) -> Tensor:
    """`log(1 + exp(x))`: without overflow for large x, and `exp(x)` to the last digits far below 0."""
    operand = as_tensor(x)
    return add(maximum(operand, 0), log1p(exp(negative(abs(operand)))))


# ------------------------------------------------------------------------------------------- comparison and logic


def less(a: Value, b: Value) -> Tensor:
    """`a < b`."""
    return _binary(sdg.LtOp, a, b)


def less_equal(a: Value, b: Value) -> Tensor:
    """`a <= b`."""
    return _binary(sdg.LeOp, a, b)


def greater(a: Value, b: Value) -> Tensor:
    """`a > b`."""
    return _binary(sdg.GtOp, a, b)


def greater_equal(a: Value, b: Value) -> Tensor:
    """`a >= b`."""
    return _binary(sdg.GeOp, a, b)


def equal(a: Value, b: Value) -> Any:
    """`a == b`: a Condition of Dims and integers, an elementwise tensor otherwise."""
    if is_integer(a) and is_integer(b) and (isinstance(a, Dim) or isinstance(b, Dim)):
        return Condition(ix.compare("=", expression(a), expression(b)))
    return _binary(sdg.EqOp, a, b)


def not_equal(a: Value, b: Value) -> Any:
    """`a != b`: a Condition of Dims and integers, an elementwise tensor otherwise."""
    if is_integer(a) and is_integer(b) and (isinstance(a, Dim) or isinstance(b, Dim)):
        return Condition(ix.compare("!=", expression(a), expression(b)))
    return _binary(sdg.NeOp, a, b)


def _index_comparison(op: type[Operation]) -> Callable[[Value, Value], Tensor]:
    return lambda a, b: record(op, as_tensor(a), as_tensor(b))


_COMPARISONS: dict[str, Callable[[Value, Value], Tensor]] = {
    "<": _index_comparison(sdg.LtOp),
    "<=": _index_comparison(sdg.LeOp),
    ">": _index_comparison(sdg.GtOp),
    ">=": _index_comparison(sdg.GeOp),
    "=": _index_comparison(sdg.EqOp),
    "!=": _index_comparison(sdg.NeOp),
}


def _logic(op: type[Operation], word: str, *values: Value) -> Tensor:
    operands = unified(values)
    if operands[0].dtype.kind == "float":
        raise ProgramError(f"'{word}' needs booleans or integers, got {operands[0].dtype}: compare first, as in x > 0")
    return record(op, *operands)


def logical_and(a: Value, b: Value) -> Tensor:
    """`a & b`, bit by bit for integers."""
    return _logic(sdg.AndOp, "&", a, b)


def logical_or(a: Value, b: Value) -> Tensor:
    """`a | b`, bit by bit for integers."""
    return _logic(sdg.OrOp, "|", a, b)


def logical_xor(a: Value, b: Value) -> Tensor:
    """`a ^ b`, bit by bit for integers."""
    return _logic(sdg.XorOp, "^", a, b)


def logical_not(x: Value) -> Tensor:
    """`~x`, bit by bit for integers."""
    return _logic(sdg.NotOp, "~", x)


def where(condition: Value, a: Value, b: Value) -> Tensor:
    """`a` where the condition holds, else `b`; a NaN on the side not chosen has no effect, nor on gradients."""
    chosen = as_tensor(condition)
    if chosen.dtype != bool_:
        raise ProgramError(f"tp.where needs a boolean condition, got {chosen.dtype}: compare, as in x != 0")
    return record(sdg.SelectOp, chosen, *unified([a, b]))


def stop_gradient(x: Any) -> Any:
    """The same values, through which no gradient flows; of a record or another tree, every tensor in it."""
    from tempo_ir.frontend.trees import tree_map

    def stop(value: Value) -> Tensor:
        return record(sdg.StopGradientOp, as_tensor(value))

    return stop(x) if isinstance(x, Tensor) else tree_map(stop, x)
