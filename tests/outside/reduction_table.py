"""Counterparts of torch's reductions, scans, normalisations, losses and contractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from elementwise_table import FLOATS, NUMBERS, number
from oracle import DTYPES, Absent, Counterpart
from shape_table import broadcast_tensors

import tempo_ir as tp
from tempo_ir import nn


def axes(dim: Any, x: Any) -> Any:
    """torch's `dim` as axes: no axis is all axes, and a scalar has an axis 0, which is left out here."""
    return None if dim is None or dim == () or dim == [] or x.ndim == 0 else dim


def typed(x: Any, dtype: Any) -> Any:
    """The operand of a reduction that is asked for in another type."""
    if dtype == torch.bool:
        raise Absent("a sum or a product in booleans")
    return x if dtype is None else tp.cast(x, DTYPES[dtype])


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch takes sums of small integers in i64; here they stay in their type unless they are cast."""

    def call(x: Any, *rest: Any) -> Any:
        return function(tp.cast(x, tp.i64) if x.dtype.kind == "int" else x, *rest)

    return call


def reduced(function: Callable[..., Any], **options: Any) -> Counterpart:
    """A reduction of torch's signature."""

    def call(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        result = function(typed(x, dtype), axes(dim, x), keepdim)
        return result if dtype is None else tp.cast(result, DTYPES[dtype])

    return Counterpart(call, **options)


def along(function: Callable[..., Any], **options: Any) -> Counterpart:
    """A function along one axis that torch takes scalars for too."""

    def call(x: Any, dim: Any = -1, *, dtype: Any = None, **_: Any) -> Any:
        x = typed(x, dtype)
        if x.ndim == 0:
            return tp.reshape(function(tp.reshape(x, 1), 0), ())
        return typed(function(x, dim), dtype)

    return Counterpart(call, **options)


def argument(function: Callable[..., Any]) -> Counterpart:
    """argmax and argmin."""

    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.ndim == 0:
            return tp.reshape(function(tp.reshape(x, 1), 0), ())
        result = function(x, dim)
        if not keepdim:
            return result
        return tp.reshape(result, [1] * x.ndim) if dim is None else tp.expand_dims(result, dim % x.ndim)

    return Counterpart(call, gradient=False, dtypes=NUMBERS)


def extreme(function: Callable[..., Any], position: Callable[..., Any]) -> Counterpart:
    """max and min along an axis, with positions."""

    def call(x: Any, dim: Any, keepdim: bool = False) -> Any:
        return function(x, dim, keepdim) if x.ndim else x, position(x, dim, keepdim)

    return Counterpart(call, dtypes=NUMBERS)


def variance(x: Any, dim: Any = None, keepdim: bool = False, *, correction: Any = None, unbiased: Any = None) -> Any:
    if isinstance(dim, bool):  # torch.var(x, unbiased)
        dim, unbiased = None, dim
    lost = (0 if unbiased is False else 1) if correction is None else number(correction)
    count = count_of(x, axes(dim, x))
    if count - lost <= 0:
        raise Absent("a variance of too few numbers")
    return tp.var(x, axes(dim, x), keepdim) * (count / (count - lost))


def count_of(x: Any, dim: Any) -> int:
    """The number of elements along axes."""
    listed = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    return math.prod(x.shape[axis] if x.ndim else 1 for axis in listed)


def deviation(x: Any, *rest: Any, **named: Any) -> Any:
    return tp.sqrt(variance(x, *rest, **named))


def mean_of(x: Any, *rest: Any, **named: Any) -> Any:
    dim = rest[0] if rest and not isinstance(rest[0], bool) else named.get("dim")
    keep = rest[1] if len(rest) > 1 else named.get("keepdim", False)
    return tp.mean(x, axes(dim, x), keep)


def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return tp.cast(x, tp.f32) if x.dtype.kind != "float" else x
    if not isinstance(dim, int):
        if len(dim) != 1:
            raise Absent("logsumexp over several axes")
        (dim,) = dim
    return tp.logsumexp(x, dim, keepdim)


def norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = typed(x, dtype)
    size = tp.abs(x)
    if ord == math.inf:
        return tp.max(size, axes(dim, x), keepdim)
    if ord == -math.inf:
        return tp.min(size, axes(dim, x), keepdim)
    if ord == 1:
        return tp.sum(size, axes(dim, x), keepdim)
    if ord == 0:
        return tp.sum(tp.cast(x != 0, x.dtype), axes(dim, x), keepdim)
    if ord == 2:
        return tp.sqrt(tp.sum(x * x, axes(dim, x), keepdim))
    return tp.sum(size**ord, axes(dim, x), keepdim) ** (1 / ord)


def not_nan(function: Callable[..., Any], otherwise: float) -> Callable[..., Any]:
    return lambda x, dim, keep: function(tp.where(x == x, x, otherwise), dim, keep)


def nanmean(x: Any, dim: Any, keep: bool) -> Any:
    return tp.sum(tp.where(x == x, x, 0.0), dim, keep) / tp.sum(x == x, dim, keep)


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    flat = tp.reshape(x, (*x.shape[: x.ndim - len(shape)], math.prod(shape)))
    vector = (None if part is None else tp.reshape(part, math.prod(shape)) for part in (weight, bias))
    return tp.reshape(tp.layer_norm(flat, *vector, eps=eps), x.shape)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    flat = tp.reshape(x, (*x.shape[: x.ndim - len(shape)], math.prod(shape)))
    vector = None if weight is None else tp.reshape(weight, math.prod(shape))
    smallest = 2.0**-52 if x.dtype == tp.f64 else 2.0**-23
    return tp.reshape(tp.rms_norm(flat, vector, smallest if eps is None else eps), x.shape)


def averaged(loss: Any, how: str) -> Any:
    """The reduction that a loss of torch is asked for."""
    return {"none": lambda x: x, "sum": tp.sum, "mean": tp.mean}[how](loss)


def classes_last(x: Any) -> Any:
    return x if x.ndim < 3 else tp.transpose(x, 0, *range(2, x.ndim), 1)


def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if weight is not None or label_smoothing:
        raise Absent("a weighted or smoothed cross entropy")
    logits = classes_last(x)
    if target.dtype.kind == "float":
        losses = -tp.sum(tp.log_softmax(logits) * classes_last(target), -1)
        return tp.sum(losses) / count_of(losses, None) if reduction == "mean" else averaged(losses, reduction)
    kept = target != ignore_index
    losses = tp.where(kept, tp.cross_entropy(logits, tp.where(kept, target, 0)), 0.0)
    if reduction == "mean":
        return tp.sum(losses) / tp.sum(kept)
    return averaged(losses, reduction)


def nll_loss(x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    if weight is not None:
        raise Absent("a weighted loss")
    kept = target != ignore_index
    losses = -tp.select_last(classes_last(x), tp.where(kept, target, 0))
    losses = tp.where(kept, losses, 0.0)
    return tp.sum(losses) / tp.sum(kept) if reduction == "mean" else averaged(losses, reduction)


def elementwise_loss(function: Callable[..., Any], **options: Any) -> Counterpart:
    """A loss of two tensors, elementwise and then reduced."""

    def call(x: Any, target: Any, *, reduction: str = "mean", **rest: Any) -> Any:
        if rest.pop("weight", None) is not None or rest.pop("pos_weight", None) is not None:
            raise Absent("a weighted loss")
        return averaged(function(x, target, **rest), reduction)

    return Counterpart(call, **options)


def smooth_l1(x: Any, target: Any, beta: float = 1.0) -> Any:
    distance = tp.abs(x - target)
    if beta == 0:
        return distance
    return tp.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)


def huber(x: Any, target: Any, delta: float = 1.0) -> Any:
    distance = tp.abs(x - target)
    return tp.where(distance < delta, distance * distance * 0.5, delta * (distance - 0.5 * delta))


def cosine_similarity(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    if a.ndim == 0 or b.ndim == 0:
        raise Absent("the angle of scalars")
    a, b = broadcast_tensors(a, b)
    lengths = (tp.maximum(tp.sqrt(tp.sum(x * x, dim)), eps) for x in (a, b))
    first, second = lengths
    return tp.sum(a * b, dim) / (first * second)


def normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return x / tp.maximum(norm(x, p, dim, True), eps)


def attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if dropout_p or enable_gqa:
        raise Absent("dropout, or grouped queries, in attention")
    scores = tp.einsum("...qd,...kd->...qk", q, k) * (scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        rows, columns = tp.arange(q.shape[-2]), tp.arange(k.shape[-2])
        scores = tp.where(columns <= rows[:, None], scores, -math.inf)
    if attn_mask is not None:
        scores = tp.where(attn_mask, scores, -math.inf) if attn_mask.dtype == tp.bool else scores + attn_mask
    return tp.einsum("...qk,...kd->...qd", tp.softmax(scores), v)


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    flat = tp.reshape(x, (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    result = tp.reshape(tp.layer_norm(flat, eps=eps), x.shape)
    spread = (..., slice(None), *[None] * (x.ndim - 2))
    result = result if weight is None else result * weight[spread]
    return result if bias is None else result + bias[spread]


def embedding(weight: Any, ids: Any, **options: Any) -> Any:
    if options.get("max_norm") is not None or options.get("padding_idx") is not None:
        raise Absent("an embedding that renormalises, or has a row without gradient")
    if options.get("scale_grad_by_freq") or options.get("sparse"):
        raise Absent("gradients by frequency, or sparse ones")
    return tp.take(weight, ids, 0)


REDUCTIONS: dict[str, Counterpart] = {
    "sum": reduced(widened(tp.sum)),
    "prod": reduced(widened(tp.prod)),
    "mean": reduced(tp.mean),
    "amax": reduced(tp.max),
    "amin": reduced(tp.min),
    "max:reduction_no_dim": reduced(tp.max),
    "min:reduction_no_dim": reduced(tp.min),
    "max:reduction_with_dim": Counterpart(lambda x, dim, keepdim=False: tp.max(x, axes(dim, x), keepdim), results=1),
    "min:reduction_with_dim": Counterpart(lambda x, dim, keepdim=False: tp.min(x, axes(dim, x), keepdim), results=1),
    "aminmax": Counterpart(
        lambda x, *, dim=None, keepdim=False: (tp.min(x, axes(dim, x), keepdim), tp.max(x, axes(dim, x), keepdim))
    ),
    "argmax": argument(tp.argmax),
    "argmin": argument(tp.argmin),
    "all": reduced(lambda x, dim, keep: tp.all(x if x.dtype == tp.bool else x != 0, dim, keep), same_type=False),
    "any": reduced(lambda x, dim, keep: tp.any(x if x.dtype == tp.bool else x != 0, dim, keep), same_type=False),
    "count_nonzero": Counterpart(lambda x, dim=None: tp.sum(x != 0 if x.dtype != tp.bool else x, axes(dim, x))),
    "var": Counterpart(variance),
    "var:unbiased": Counterpart(variance),
    "std": Counterpart(deviation),
    "std:unbiased": Counterpart(deviation),
    "var_mean": Counterpart(lambda *a, **k: (variance(*a, **k), mean_of(*a, **k))),
    "var_mean:unbiased": Counterpart(lambda *a, **k: (variance(*a, **k), mean_of(*a, **k))),
    "std_mean": Counterpart(lambda *a, **k: (deviation(*a, **k), mean_of(*a, **k))),
    "std_mean:unbiased": Counterpart(lambda *a, **k: (deviation(*a, **k), mean_of(*a, **k))),
    "logsumexp": Counterpart(logsumexp),
    "linalg.vector_norm": Counterpart(norm, tolerance=10, dtypes=FLOATS[:2]),
    "nansum": reduced(not_nan(tp.sum, 0.0), dtypes=FLOATS),
    "nanmean": reduced(nanmean, dtypes=FLOATS),
    "cumsum": along(widened(tp.cumsum)),
    "cumprod": along(widened(tp.cumprod)),
    "softmax": along(tp.softmax),
    "softmax:with_dtype": along(tp.softmax),
    "log_softmax": along(tp.log_softmax),
    "log_softmax:with_dtype": along(tp.log_softmax),
    "nn.functional.softmin": along(lambda x, dim: tp.softmax(-x, dim), dtypes=FLOATS),
    "nn.functional.softmin:with_dtype": along(lambda x, dim: tp.softmax(-x, dim), dtypes=FLOATS),
    "nn.functional.layer_norm": Counterpart(layer_norm),
    "nn.functional.rms_norm": Counterpart(rms_norm),
    "nn.functional.group_norm": Counterpart(group_norm),
    "nn.functional.cross_entropy": Counterpart(cross_entropy),
    "nn.functional.nll_loss": Counterpart(nll_loss),
    "nn.functional.mse_loss": elementwise_loss(lambda x, y: (x - y) ** 2),
    "nn.functional.l1_loss": elementwise_loss(lambda x, y: tp.abs(x - y)),
    "nn.functional.smooth_l1_loss": elementwise_loss(smooth_l1),
    "nn.functional.huber_loss": elementwise_loss(huber),
    "nn.functional.binary_cross_entropy": elementwise_loss(lambda p, y: -(y * tp.ln(p) + (1 - y) * tp.ln(1 - p))),
    "nn.functional.binary_cross_entropy_with_logits": elementwise_loss(
        lambda x, y: tp.maximum(x, 0) - x * y + tp.softplus(-tp.abs(x)) - 0 * x
    ),
    "nn.functional.soft_margin_loss": elementwise_loss(
        lambda x, y: tp.ln(1 + tp.exp(-y * x)), gradient=False, dtypes=FLOATS[:1]
    ),
    "nn.functional.cosine_similarity": Counterpart(cosine_similarity, dtypes=FLOATS[:2]),
    "nn.functional.normalize": Counterpart(normalize, dtypes=FLOATS[:2]),
    "nn.functional.scaled_dot_product_attention": Counterpart(attention, tolerance=10),
    "nn.functional.embedding": Counterpart(embedding),
    "nn.functional.one_hot": Counterpart(
        lambda x, num_classes=-1: (
            tp.one_hot(x, num_classes, tp.i64) if num_classes >= 0 else absent("a depth that the numbers tell")
        )
    ),
}


def absent(reason: str) -> Any:
    """For a table: the sample has no counterpart."""
    raise Absent(reason)


def einsum(operands: Any, spec: Any = None) -> Any:
    """The samples pass the operands first."""
    for term in spec.replace(" ", "").partition("->")[0].split(","):
        if len(set(term.replace(".", ""))) != len(term.replace(".", "")):
            raise Absent("einsum of a diagonal")
    return tp.einsum(spec, *operands)


def added(product: Callable[..., Any], **options: Any) -> Counterpart:
    """`beta * x + alpha * product`."""

    def call(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        beta, alpha = number(beta), number(alpha)
        if x.dtype.kind == "int" and (isinstance(beta, float) or isinstance(alpha, float)):
            raise Absent("a float factor of integers, which torch truncates")
        first = product(a, b)
        first = first if alpha == 1 else alpha * first
        return first if beta == 0 else (x if beta == 1 else beta * x) + first

    return Counterpart(call, **options)


def chain(matrices: Any, *_: Any) -> Any:
    result = matrices[0]
    for matrix in matrices[1:]:
        result = result @ matrix
    return result


def inner(a: Any, b: Any) -> Any:
    return tp.einsum("...k,...k->...", a, b) if a.ndim < 2 and b.ndim < 2 else tp.tensordot(a, b)


def kron(a: Any, b: Any) -> Any:
    if a.ndim != 2 or b.ndim != 2:
        raise Absent("kron of other ranks")
    product = tp.einsum("ab,cd->acbd", a, b)
    return tp.reshape(product, (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]))


def bilinear(a: Any, b: Any, weight: Any, bias: Any = None) -> Any:
    result = tp.einsum("...i,oij,...j->...o", a, weight, b)
    return result if bias is None else result + bias


def tensordot(a: Any, b: Any, dims: Any = 2, **_: Any) -> Any:
    left, right = (list(range(-dims, 0)), list(range(dims))) if isinstance(dims, int) else dims
    names = [chr(97 + axis) for axis in range(a.ndim)]
    others = [chr(65 + axis) for axis in range(b.ndim)]
    for one, other in zip(left, right, strict=True):
        if a.shape[one] != b.shape[other]:
            raise Absent("axes of one element that are stretched")
        others[other] = names[one]
    shared = {names[axis] for axis in left}
    kept = [name for name in (*names, *others) if name not in shared]
    return tp.einsum(f"{''.join(names)},{''.join(others)}->{''.join(kept)}", a, b)


CONTRACTIONS: dict[str, Counterpart] = {
    "matmul": Counterpart(lambda a, b: a @ b),
    "__rmatmul__": Counterpart(lambda a, b: b @ a),
    "mm": Counterpart(lambda a, b: a @ b),
    "bmm": Counterpart(lambda a, b: a @ b),
    "mv": Counterpart(lambda a, b: a @ b),
    "dot": Counterpart(lambda a, b: a @ b),
    "vdot": Counterpart(lambda a, b: a @ b),
    "outer": Counterpart(lambda a, b: tp.einsum("a,b->ab", a, b), dtypes=NUMBERS),
    "linalg.vecdot": Counterpart(lambda a, b, *, dim=-1: tp.sum(a * b, dim)),
    "einsum": Counterpart(einsum, dtypes=(*FLOATS, torch.int64)),
    "tensordot": Counterpart(tensordot),
    "kron": Counterpart(kron, dtypes=NUMBERS),
    "addmm": added(lambda a, b: a @ b),
    "addmm:decomposed": added(lambda a, b: a @ b),
    "addmv": added(lambda a, b: a @ b),
    "addr": added(lambda a, b: tp.einsum("a,b->ab", a, b), dtypes=NUMBERS),
    "baddbmm": added(lambda a, b: a @ b),
    "addbmm": added(lambda a, b: tp.sum(a @ b, 0)),
    "linalg.multi_dot": Counterpart(chain),
    "nn.functional.linear": Counterpart(nn.linear),
    "nn.functional.bilinear": Counterpart(bilinear),
    "trace": Counterpart(
        lambda x: tp.sum(tp.where(tp.arange(x.shape[0])[:, None] == tp.arange(x.shape[1]), x, 0)),
        dtypes=(*FLOATS, torch.int64),
    ),
}
