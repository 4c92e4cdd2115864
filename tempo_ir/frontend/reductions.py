"""Reductions and scans along axes, and the functions made of them: softmax, normalisations, losses."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tempo_ir.dialects import sdg
from tempo_ir.frontend import elementwise, shapes
from tempo_ir.frontend.dtypes import DType, bool_, f32, i64
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.tensor import Tensor, Value, record

Axes = int | Sequence[int] | None


def axes_of(axis: Axes, rank: int, what: str) -> list[int]:
    """The axes counted from the front, each once; all of them for None."""
    if axis is None:
        return list(range(rank))
    listed = list(axis) if isinstance(axis, Sequence) else [axis]
    axes = sorted(shapes.axis_of(one, rank, what) for one in listed)
    if len(set(axes)) != len(axes):
        raise ProgramError(f"{what}: the axes {listed} name an axis twice")
    return axes


def _reduce(op: type[Operation], x: Value, axis: Axes, keepdims: bool, what: str, at_least: DType | None) -> Tensor:
    (source,) = elementwise.unified([x], at_least)
    axes = axes_of(axis, source.ndim, what)
    if not axes:
        return source
    result = record(op, source, axes=axes)
    if not keepdims:
        return result
    return shapes.reshape_to(result, [1 if number in axes else extent for number, extent in enumerate(source.extents)])


def sum(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, 0 over nothing; booleans are counted in i64."""
    return _reduce(sdg.SumOp, x, axis, keepdims, "sum", i64)


def prod(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product over axes, 1 over nothing."""
    return _reduce(sdg.ProdOp, x, axis, keepdims, "prod", i64)


def mean(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over axes, which must not be empty."""
    return _reduce(sdg.MeanOp, x, axis, keepdims, "mean", f32)


def max(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element over axes; NaN if there is one."""
    return _reduce(sdg.MaxOp, x, axis, keepdims, "max", None)


def min(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least element over axes; NaN if there is one."""
    return _reduce(sdg.MinOp, x, axis, keepdims, "min", None)


def any(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where one of the booleans is."""
    return max(_booleans(x, "any"), axis, keepdims)


def all(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where all booleans are."""
    return min(_booleans(x, "all"), axis, keepdims)


def _booleans(x: Value, what: str) -> Tensor:
    source = elementwise.as_tensor(x)
    if source.dtype != bool_:
        raise ProgramError(f"{what} needs booleans, got {source.dtype}: compare, as in x != 0")
    return source


def var(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean square distance from the mean; 0 for one element."""
    (source,) = elementwise.unified([x], f32)
    centred = elementwise.subtract(source, mean(source, axis, keepdims=True))
    return mean(elementwise.multiply(centred, centred), axis, keepdims)


def std(x: Value, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return elementwise.sqrt(var(x, axis, keepdims))


def argmax(x: Value, axis: int | None = None) -> Tensor:
    """The position of the greatest element along an axis, or in row-major order; the first of ties."""
    return _along(sdg.ArgmaxOp, x, axis, "argmax")


def argmin(x: Value, axis: int | None = None) -> Tensor:
    """The position of the least element along an axis, or in row-major order; the first of ties."""
    return _along(sdg.ArgminOp, x, axis, "argmin")


def _along(op: type[Operation], x: Value, axis: int | None, what: str) -> Tensor:
    source = elementwise.as_tensor(x)
    if axis is None:
        source, axis = (source if source.ndim == 1 else shapes.reshape(source, -1)), 0
    return record(op, source, axis=shapes.axis_of(axis, source.ndim, what))


def cumsum(x: Value, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running sums along an axis; from the end if `reverse`."""
    (source,) = elementwise.unified([x], i64)
    return record(sdg.CumsumOp, source, axis=shapes.axis_of(axis, source.ndim, "cumsum"), reverse=reverse)


def cumprod(x: Value, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running products along an axis; from the end if `reverse`."""
    (source,) = elementwise.unified([x], i64)
    return record(sdg.CumprodOp, source, axis=shapes.axis_of(axis, source.ndim, "cumprod"), reverse=reverse)


def softmax(x: Value, axis: int = -1) -> Tensor:
    """`exp(x) / sum(exp(x))` along an axis; zeros where every element is -inf."""
    (source,) = elementwise.unified([x], f32)
    return record(sdg.SoftmaxOp, source, axis=shapes.axis_of(axis, source.ndim, "softmax"))


def logsumexp(x: Value, axis: int = -1, keepdims: bool = False) -> Tensor:
    """`log(sum(exp(x)))` along an axis, without overflow."""
    (source,) = elementwise.unified([x], f32)
    top = elementwise.stop_gradient(max(source, axis, keepdims=True))
    total = elementwise.ln(sum(elementwise.exp(elementwise.subtract(source, top)), axis, keepdims=True))
    result = elementwise.add(total, top)
    return result if keepdims else sum(result, axis)


def log_softmax(x: Value, axis: int = -1) -> Tensor:
    """`log(softmax(x))` along an axis, without overflow."""
    (source,) = elementwise.unified([x], f32)
    shifted = elementwise.subtract(source, elementwise.stop_gradient(max(source, axis, keepdims=True)))
    return elementwise.subtract(shifted, elementwise.ln(sum(elementwise.exp(shifted), axis, keepdims=True)))


def layer_norm(x: Value, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5) -> Tensor:
    """The last axis shifted to mean 0 and scaled to variance 1, then times `weight` plus `bias` (Ba et al. 2016)."""
    source, result_type = _wide(x)
    centred = elementwise.subtract(source, mean(source, -1, keepdims=True))
    variance = mean(elementwise.multiply(centred, centred), -1, keepdims=True)
    result = elementwise.cast(
        elementwise.multiply(centred, elementwise.rsqrt(elementwise.add(variance, eps))), result_type
    )
    if weight is not None:
        result = elementwise.multiply(result, weight)
    return result if bias is None else elementwise.add(result, bias)


def rms_norm(x: Value, weight: Value | None = None, eps: float = 1e-6) -> Tensor:
    """The last axis over its root mean square, then times `weight` (Zhang and Sennrich 2019)."""
    source, result_type = _wide(x)
    power = mean(elementwise.multiply(source, source), -1, keepdims=True)
    result = elementwise.cast(elementwise.multiply(source, elementwise.rsqrt(elementwise.add(power, eps))), result_type)
    return result if weight is None else elementwise.multiply(weight, result)


def _wide(x: Value) -> tuple[Tensor, DType]:
    """`x` in f32 at least, and the type to go back to: statistics of 16-bit floats are taken in f32."""
    (source,) = elementwise.unified([x], f32)
    return (elementwise.cast(source, f32) if source.dtype.bits == 16 else source), source.dtype


def select_last(x: Value, position: Value) -> Tensor:
    """The element of the last axis at an integer position: `x` (..., n), `position` (...) -> (...)."""
    source, chosen = elementwise.as_tensor(x), elementwise.as_tensor(position)
    if chosen.dtype.kind != "int":
        raise ProgramError(f"a position is an integer, got {chosen.dtype}: cast it")
    if source.ndim == 0:
        raise ProgramError("a scalar has no last axis to select from")
    count = source.shape[-1]
    hit = elementwise.equal(shapes.arange(count), shapes.expand_dims(elementwise.cast(chosen, i64), chosen.ndim))
    return sum(elementwise.where(hit, source, 0), -1)


def log_prob(logits: Value, action: Value) -> Tensor:
    """The log probability of a category: `logits` (..., n), `action` (...) of integers -> (...)."""
    return select_last(log_softmax(logits), action)


def cross_entropy(logits: Value, target: Value) -> Tensor:
    """Minus the log probability of the target category: `logits` (..., n), `target` (...) of integers -> (...)."""
    return elementwise.negative(log_prob(logits, target))


def entropy(logits: Value) -> Tensor:
    """The entropy of the categories, in nats: `logits` (..., n) -> (...)."""
    log_p = log_softmax(logits)
    p = elementwise.exp(log_p)
    return elementwise.negative(
        sum(elementwise.where(elementwise.greater(p, 0), elementwise.multiply(p, log_p), 0), -1)
    )
