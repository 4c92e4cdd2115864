"""Random draws: Philox numbers that depend on the seed, the op and the point alone (Salmon et al. 2011).

No schedule, thread count or target changes a draw: integers and uniforms are the same bit for bit everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tempo_ir.dialects import sdg, types
from tempo_ir.frontend import elementwise as el
from tempo_ir.frontend.dims import Dim, dim_names
from tempo_ir.frontend.dtypes import DType, Spec, bool_, f32, i64
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.reductions import argmax
from tempo_ir.frontend.shapes import argsort, used_symbols
from tempo_ir.frontend.tensor import Tensor, Value, record

Over = Dim | Sequence[Dim]


def _draw(kind: str, dtype: DType, extents: Sequence[types.Extent], over: Sequence[str]) -> Tensor:
    """One random op; ops are numbered in the order of their recording."""
    recording = current()
    identity, recording.random_count = recording.random_count, recording.random_count + 1
    make = partial(sdg.RandomOp, kind, identity, types.tensor(dtype.element, extents))
    return record(make, over={*over, *used_symbols(extents)})


def _extents(spec: Spec) -> list[types.Extent]:
    return [extent if isinstance(extent, int) else extent.expr for extent in spec.shape]


def bits(spec: Spec, over: Over = ()) -> Tensor:
    """32 random bits an element, as the integers 0 to 2**32 - 1; `spec` is i64."""
    if spec.dtype != i64:
        raise ProgramError(f"random bits are 32-bit words held in tp.i64, got {spec.dtype}: draw i64 and cast")
    return _draw("bits", i64, _extents(spec), dim_names(over, "random bits"))


def uniform(low: float = 0.0, high: float = 1.0, spec: Spec = f32[()], over: Over = ()) -> Tensor:
    """Uniform numbers, `low <= x < high` (up to rounding)."""
    numbers = _draw("uniform", _float(spec), _extents(spec), dim_names(over, "random.uniform"))
    scaled = numbers if high - low == 1.0 else numbers * (high - low)
    return scaled if low == 0.0 else scaled + low


def normal(mean: float = 0.0, std: float = 1.0, spec: Spec = f32[()], over: Over = ()) -> Tensor:
    """Normal numbers."""
    numbers = _draw("normal", _float(spec), _extents(spec), dim_names(over, "random.normal"))
    scaled = numbers if std == 1.0 else numbers * std
    return scaled if mean == 0.0 else scaled + mean


def _float(spec: Spec) -> DType:
    if spec.dtype.kind != "float":
        raise ProgramError(f"random numbers are floats, got {spec}: use random.bits or random.integers for integers")
    return spec.dtype


def integers(low: int, high: int, spec: Spec = i64[()], over: Over = ()) -> Tensor:
    """Integers, `low <= n < high`."""
    if spec.dtype.kind != "int" or not low < high <= low + 2**32:
        raise ProgramError(
            f"random.integers draws from {low} up to {high} as {spec}: give low < high and an integer type"
        )
    words = bits(i64[spec.shape], over)
    return el.cast(words % (high - low) + low, spec.dtype)


def bernoulli(p: Value, spec: Spec | None = None, over: Over = ()) -> Tensor:
    """True with probability `p`; shape and dims are those of `p`, unless `spec` and `over` say more."""
    chance = el.as_tensor(p, f32)
    extents = chance.extents if spec is None else _extents(spec)
    if spec is not None and spec.dtype != bool_:
        raise ProgramError(f"random.bernoulli draws booleans, got {spec}")
    dtype = chance.dtype if chance.dtype.kind == "float" else f32
    return el.less(_draw("uniform", dtype, extents, (*chance.dims, *dim_names(over, "random.bernoulli"))), chance)


def categorical(logits: Value, over: Over = ()) -> Tensor:
    """Categories drawn with probabilities `softmax(logits)`: `logits` (..., n) -> (...), i64.

    By the largest of the logits plus Gumbel noise, which needs no sum over the categories (Maddison et al. 2014).
    """
    source = el.as_tensor(logits)
    if source.ndim == 0 or source.dtype.kind != "float":
        raise ProgramError(f"random.categorical takes float logits with an axis of categories, got {source.spec}")
    numbers = _draw("uniform", source.dtype, source.extents, (*source.dims, *dim_names(over, "random.categorical")))
    noise = -el.ln(-el.ln(numbers))
    return argmax(source + noise, -1)


def permutation(count: int | Dim, over: Over = ()) -> Tensor:
    """The integers 0 to `count - 1` in random order, i64."""
    return argsort(bits(i64[count], over), 0)
