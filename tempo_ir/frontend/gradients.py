"""`tp.grad`: the gradient of a loss, recorded as sdg.grad; the pass sdg-autodiff expands it."""

from __future__ import annotations

from functools import partial
from typing import Any

from tempo_ir.dialects import sdg
from tempo_ir.frontend.dtypes import DType
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.shapes import materialised, shape_text
from tempo_ir.frontend.tensor import Tensor
from tempo_ir.frontend.trees import leaves, tree_map


def grad(loss: Tensor, wrt: Any, *, allow_unused: bool = False) -> Any:
    """The gradient of `loss`, summed over its whole domain, with respect to `wrt`: a tensor, or a tree of tensors.

    `wrt` is a leaf: nothing flows through its own definition. The result has the dims and the shape of `wrt`.
    A `wrt` that the loss does not depend on is an error when the gradient is expanded; with `allow_unused` it is zero.
    Raises ProgramError for a loss that is no float scalar at each point, and for a `wrt` that is read at an index
    or no float.
    """
    if loss.ndim:
        raise ProgramError(
            f"the loss has the shape {shape_text(loss.extents)} at each point: a gradient is taken of a scalar, "
            "use tp.mean or tp.sum"
        )
    _check_float(loss.dtype, "the loss")
    whole = materialised(loss)
    if isinstance(wrt, Tensor):
        return _gradient(whole, allow_unused, wrt)
    if not leaves(wrt):
        raise ProgramError(
            f"the gradient is taken with respect to a tensor or a tree of tensors, got a {type(wrt).__name__}"
        )
    return tree_map(partial(_gradient, whole, allow_unused), wrt)


def value_and_grad(loss: Tensor, wrt: Any, *, allow_unused: bool = False) -> tuple[Tensor, Any]:
    """The loss and its gradient: `loss, gradients = tp.value_and_grad(model(x), parameters)`; see `grad`."""
    return loss, grad(loss, wrt, allow_unused=allow_unused)


def _gradient(loss: Tensor, allow_unused: bool, wrt: Tensor) -> Tensor:
    """One sdg.grad, over the dims of `wrt`."""
    _check_float(wrt.dtype, wrt.name)
    if not wrt.is_whole:
        raise ProgramError(
            f"{wrt.name} is read at another point than the current one: take the gradient with respect to it as it "
            "was declared, "
            "and index the result"
        )
    recording = wrt.recording
    op = recording.add(sdg.GradOp(loss.value, wrt.value, allow_unused=allow_unused))
    return Tensor(recording, op.results[0])


def _check_float(dtype: DType, what: str) -> None:
    if dtype.kind != "float":
        raise ProgramError(f"{what} is {dtype}: gradients are of floats")
