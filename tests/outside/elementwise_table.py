"""Counterparts of torch's elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from oracle import DTYPES, Absent, Counterpart

import tempo_ir as tp
from tempo_ir.frontend import elementwise as el

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
NUMBERS = (*FLOATS, *INTEGERS)  # booleans are compared and added as integers here, which the program has to ask for


def unary(function: Callable[[Any], Any], **options: Any) -> Counterpart:
    """A function of one tensor."""
    return Counterpart(lambda x: function(x), **options)


def binary(function: Callable[[Any, Any], Any], **options: Any) -> Counterpart:
    """A function of two."""
    return Counterpart(lambda a, b: function(a, b), **options)


def swapped(function: Callable[[Any, Any], Any], **options: Any) -> Counterpart:
    """The function of `a.__rop__(b)`."""
    return Counterpart(lambda a, b: function(b, a), **options)


def number(value: Any) -> Any:
    """A number that a program can hold."""
    if isinstance(value, complex):
        raise Absent("complex numbers")
    return value


def scaled(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`function(a, alpha * b)`."""
    return lambda a, b, *, alpha=1: function(a, b if alpha == 1 else weight(alpha, b) * b)


def weight(alpha: Any, x: Any) -> Any:
    """A factor of `x`, of its type."""
    if x.dtype == tp.u8 and number(alpha) < 0:
        raise Absent("a negative factor of unsigned integers")
    return number(alpha)


def divided(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return a / b
    if rounding_mode == "floor":
        return a // b
    if el.unified([a, b])[0].dtype.kind == "float":
        return truncated(a / b)
    raise Absent("integer division that truncates")


def truncated(x: Any) -> Any:
    return tp.where(x < 0, tp.ceil(x), tp.floor(x)) if x.dtype.kind == "float" else x


def cast(dtype: torch.dtype) -> Counterpart:
    """A cast, which torch asks a method for."""

    def call(x: Any, **_: Any) -> Any:
        return tp.cast(x, DTYPES[dtype])

    return Counterpart(call)


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return tp.where(x * beta > threshold, x, tp.softplus(x * beta) / beta)


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return tp.gelu(x)
    return 0.5 * x * (1 + tp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def clamp(x: Any, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return tp.clip(x, low if min is None else min, high if max is None else max)


def where(condition: Any, a: Any, b: Any) -> Any:
    return tp.where(condition, a, b)


def positional(function: Callable[..., Any]) -> Callable[..., Any]:
    """`Tensor.where(x, condition, other)`: the operator of the samples takes the condition second."""
    return lambda a, condition, b: function(condition, a, b)


def elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    return scale * tp.where(x > 0, x, alpha * (tp.exp(tp.minimum(x, 0)) - 1))


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return tp.where(x > 0, x, negative_slope * x)


def logaddexp(a: Any, b: Any) -> Any:
    return tp.maximum(a, b) + tp.ln(1 + tp.exp(-tp.abs(a - b)))


def xlogy(a: Any, b: Any) -> Any:
    return tp.where((a == 0) & (b == b), 0.0, a * tp.ln(b))


def lerp(a: Any, b: Any, weight: Any) -> Any:
    return a + number(weight) * (b - a)


def addcmul(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + (a * b if value == 1 else number(value) * (a * b))


def addcdiv(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + (a / b if value == 1 else number(value) * (a / b))


def nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind != "float":
        return x
    limit = float(torch.finfo({v: k for k, v in DTYPES.items()}[x.dtype]).max)
    high = limit if posinf is None else posinf
    low = -limit if neginf is None else neginf
    finite = tp.where(x == math.inf, high, tp.where(x == -math.inf, low, x))
    return tp.where(x != x, 0.0 if nan is None else nan, finite)


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return tp.where(mask, number(value), x)


def is_float(x: Any) -> Any:
    return x if x.dtype.kind == "float" else tp.cast(x, tp.f32)


def logical(function: Callable[..., Any]) -> Callable[..., Any]:
    """A logical operator of numbers: true where they are not 0."""

    def truth(x: Any) -> Any:
        return x if x.dtype == tp.bool else x != 0

    return lambda *operands: function(*(truth(operand) for operand in operands))


def power(base: Any, exponent: Any) -> Any:
    return number(base) ** number(exponent)


UNARY: dict[str, Counterpart] = {
    "abs": unary(tp.abs),
    "neg": unary(lambda x: -x),
    "positive": unary(lambda x: +x),
    "exp": unary(tp.exp),
    "log": unary(tp.ln),
    "log1p": unary(tp.log1p),
    "sqrt": unary(tp.sqrt),
    "rsqrt": unary(tp.rsqrt),
    "tanh": unary(tp.tanh),
    "sigmoid": unary(tp.sigmoid),
    "erf": unary(tp.erf),
    "sin": unary(tp.sin),
    "cos": unary(tp.cos),
    "sign": unary(tp.sign, dtypes=NUMBERS),
    "sgn": unary(tp.sign, dtypes=NUMBERS),
    "floor": unary(tp.floor, dtypes=FLOATS),
    "ceil": unary(tp.ceil, dtypes=FLOATS),
    "round": unary(tp.round, dtypes=FLOATS),
    "trunc": unary(truncated),
    "frac": unary(lambda x: x - truncated(x)),
    "square": unary(lambda x: x**2),
    "reciprocal": unary(lambda x: 1 / x),
    "tan": unary(lambda x: tp.sin(x) / tp.cos(x)),
    "sinh": unary(lambda x: (tp.exp(x) - tp.exp(-x)) / 2, dtypes=FLOATS[:1]),
    "cosh": unary(lambda x: (tp.exp(x) + tp.exp(-x)) / 2, dtypes=FLOATS[:1]),
    "exp2": unary(lambda x: tp.exp(x * math.log(2)), dtypes=FLOATS[:2]),
    "log2": unary(lambda x: tp.ln(x) / math.log(2)),
    "log10": unary(lambda x: tp.ln(x) / math.log(10)),
    "deg2rad": unary(lambda x: x * (math.pi / 180)),
    "rad2deg": unary(lambda x: x * (180 / math.pi)),
    "isnan": unary(lambda x: x != x),
    "isinf": unary(lambda x: tp.abs(x) == math.inf if x.dtype.kind == "float" else x != x),
    "isfinite": unary(lambda x: tp.abs(x) < math.inf if x.dtype.kind == "float" else x == x),
    "isposinf": unary(lambda x: x == math.inf, dtypes=FLOATS),
    "isneginf": unary(lambda x: x == -math.inf, dtypes=FLOATS),
    "logical_not": unary(logical(tp.logical_not)),
    "bitwise_not": unary(lambda x: ~x),
    "logit": Counterpart(lambda x, eps=None: _logit(x, eps), tolerance=10),
    "nan_to_num": Counterpart(nan_to_num),
    "clone": Counterpart(lambda x, **_: tp.reshape(x, x.shape)),
    "nn.functional.relu": unary(tp.relu),
    "nn.functional.silu": unary(tp.silu),
    "nn.functional.gelu": Counterpart(gelu),
    "nn.functional.softplus": Counterpart(softplus),
    "nn.functional.softsign": unary(lambda x: x / (1 + tp.abs(x)), dtypes=FLOATS),
    "nn.functional.relu6": unary(lambda x: tp.clip(x, 0, 6)),
    "nn.functional.hardtanh": Counterpart(lambda x, min_val=-1, max_val=1: tp.clip(x, min_val, max_val), dtypes=FLOATS),
    "nn.functional.elu": Counterpart(elu),
    "nn.functional.celu": Counterpart(
        lambda x, alpha=1.0: tp.maximum(x, 0) + alpha * (tp.exp(tp.minimum(x, 0) / alpha) - 1)
    ),
    "nn.functional.selu": unary(lambda x: elu(x, 1.6732632423543772, 1.0507009873554805)),
    "nn.functional.leaky_relu": Counterpart(leaky_relu),
    "nn.functional.logsigmoid": unary(lambda x: -tp.softplus(-x)),
    "nn.functional.mish": unary(lambda x: x * tp.tanh(tp.softplus(x)), dtypes=FLOATS[:1]),
    "nn.functional.tanhshrink": unary(lambda x: x - tp.tanh(x), tolerance=10),
    "nn.functional.hardsigmoid": unary(lambda x: tp.clip(x + 3, 0, 6) / 6, tolerance=100),
    "nn.functional.hardswish": unary(lambda x: x * tp.clip(x + 3, 0, 6) / 6),
    "nn.functional.softshrink": Counterpart(
        lambda x, lambd=0.5: tp.where(tp.abs(x) > lambd, x - tp.sign(x) * lambd, 0.0)
    ),
    "nn.functional.hardshrink": Counterpart(lambda x, lambd=0.5: tp.where(tp.abs(x) > lambd, x, 0.0)),
    "nn.functional.threshold": Counterpart(lambda x, threshold, value: tp.where(x > threshold, x, value)),
    "special.entr": unary(
        lambda x: tp.where(x > 0, -x * tp.ln(x), tp.where(x == 0, 0.0, tp.where(x < 0, -math.inf, x))),
        gradient=False,
        dtypes=FLOATS,
    ),
    "special.ndtr": unary(lambda x: 0.5 * (1 + tp.erf(x * math.sqrt(0.5))), tolerance=10, dtypes=FLOATS),
    "bool": cast(torch.bool),
    "byte": cast(torch.uint8),
    "char": cast(torch.int8),
    "short": cast(torch.int16),
    "int": cast(torch.int32),
    "long": cast(torch.int64),
    "half": cast(torch.float16),
    "bfloat16": cast(torch.bfloat16),
    "float": cast(torch.float32),
    "double": cast(torch.float64),
}


def _logit(x: Any, eps: float | None) -> Any:
    held = is_float(x) if eps is None else tp.clip(is_float(x), eps, 1 - eps)
    return tp.ln(held / (1 - held))


BINARY: dict[str, Counterpart] = {
    "add": Counterpart(scaled(lambda a, b: a + b), dtypes=NUMBERS),
    "sub": Counterpart(scaled(lambda a, b: a - b)),
    "rsub": Counterpart(lambda a, b, alpha=1: b - (a if alpha == 1 else weight(alpha, a) * a)),
    "mul": binary(lambda a, b: a * b, dtypes=NUMBERS),
    "true_divide": binary(lambda a, b: a / b),
    "div:no_rounding_mode": Counterpart(divided),
    "div:floor_rounding": Counterpart(divided),
    "div:trunc_rounding": Counterpart(divided, gradient=False, dtypes=FLOATS[:2]),
    "floor_divide": binary(lambda a, b: a // b, gradient=False),
    "remainder": binary(lambda a, b: number(a) % number(b)),
    "pow": binary(power),
    "maximum": binary(tp.maximum, dtypes=NUMBERS),
    "minimum": binary(tp.minimum, dtypes=NUMBERS),
    "max:binary": binary(tp.maximum, dtypes=NUMBERS),
    "min:binary": binary(tp.minimum, dtypes=NUMBERS),
    "fmax": binary(lambda a, b: tp.where((a >= b) | (b != b), a, b), dtypes=NUMBERS),
    "fmin": binary(lambda a, b: tp.where((a <= b) | (b != b), a, b), dtypes=NUMBERS),
    "lt": binary(lambda a, b: a < b, dtypes=NUMBERS),
    "le": binary(lambda a, b: a <= b, dtypes=NUMBERS),
    "gt": binary(lambda a, b: a > b, dtypes=NUMBERS),
    "ge": binary(lambda a, b: a >= b, dtypes=NUMBERS),
    "eq": binary(tp.equal),
    "ne": binary(tp.not_equal),
    "logical_and": binary(logical(tp.logical_and)),
    "logical_or": binary(logical(tp.logical_or)),
    "logical_xor": binary(logical(tp.not_equal)),
    "bitwise_and": binary(lambda a, b: a & b),
    "bitwise_or": binary(lambda a, b: a | b),
    "bitwise_xor": binary(lambda a, b: a ^ b),
    "__radd__": swapped(lambda a, b: a + b, dtypes=NUMBERS),
    "__rsub__": swapped(lambda a, b: a - b),
    "__rmul__": swapped(lambda a, b: a * b, dtypes=NUMBERS),
    "__rdiv__": swapped(lambda a, b: a / b),
    "__rmod__": swapped(lambda a, b: a % b),
    "__rpow__": swapped(power),
    "__rand__": swapped(lambda a, b: a & b),
    "__ror__": swapped(lambda a, b: a | b),
    "__rxor__": swapped(lambda a, b: a ^ b),
    "clamp": Counterpart(clamp),
    "clamp_min": binary(lambda x, low: tp.clip(x, low), dtypes=NUMBERS),
    "clamp_max": binary(lambda x, high: tp.clip(x, None, high), dtypes=NUMBERS),
    "where": Counterpart(positional(where)),
    "masked_fill": Counterpart(masked_fill, dtypes=NUMBERS),
    "lerp": Counterpart(lerp, dtypes=FLOATS),
    "addcmul": Counterpart(addcmul),
    "addcdiv": Counterpart(addcdiv, dtypes=FLOATS),
    "xlogy": binary(xlogy),
    "logaddexp": binary(logaddexp, dtypes=FLOATS),
    "hypot": binary(lambda a, b: tp.sqrt(a * a + b * b), dtypes=FLOATS[:2]),
    "heaviside": binary(lambda a, b: tp.where(a > 0, 1, tp.where(a == 0, b, 0)), gradient=False, dtypes=NUMBERS),
    "float_power": binary(lambda a, b: tp.cast(number(a), tp.f64) ** tp.cast(number(b), tp.f64)),
    "isclose": Counterpart(
        lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: (
            (a == b)
            | (tp.abs(a - b) <= atol + tp.abs(rtol * b)) & (tp.abs(b) < math.inf)
            | ((a != a) & (b != b) if equal_nan else tp.full((), False))
        ),
        dtypes=FLOATS[:2],
    ),
}
