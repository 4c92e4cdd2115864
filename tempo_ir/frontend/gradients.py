"""`tp.grad`: the gradient of a loss, recorded as sdg.grad; the pass sdg-autodiff expands it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xdsl.ir import Operation, SSAValue

from tempo_ir import index as ix
from tempo_ir.dialects import sdg, types
from tempo_ir.frontend.dtypes import DType
from tempo_ir.frontend.elementwise import as_tensor
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.shapes import materialised, shape_text
from tempo_ir.frontend.tensor import Tensor, Value, record
from tempo_ir.frontend.trees import leaves, tree_map
from tempo_ir.index import Domain


def grad(loss: Tensor, wrt: Any, *, allow_unused: bool = False) -> Any:
    """The gradient of `loss`, summed over its whole domain, with respect to `wrt`: a tensor, or a tree of tensors.

    `wrt` is a leaf: nothing flows through its own definition. The result has the dims and the shape of `wrt`.
    A `wrt` that the loss does not depend on is an error when the gradient is expanded; with `allow_unused` it is zero.
    Raises ProgramError for a loss that is no float scalar at each point, and for a `wrt` that is read at an index
    or no float.
    """
    loss = as_tensor(loss)
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


def custom_gradient(function: Callable[..., Tensor], gradient: Callable[..., Any]) -> Callable[..., Tensor]:
    """`function` of tensors, with a gradient that the program says, as jax.custom_vjp.

    `gradient(*arguments, dy)` gets the arguments and the gradient of the result, and returns the gradients of the float
    arguments: one tensor, or a tuple, each in the type and shape of its argument. Nothing flows into `function`. Both
    are functions of tensors at one point: what is wanted of the past is an argument, `f(x[0 : t + 1])`.

        squashed = tp.custom_gradient(tp.sign, lambda x, dy: dy * (tp.abs(x) < 1))   # a straight-through estimator

    Raises ProgramError, when it is called, for a result or gradients of another type, shape or number, and for an
    argument that is read at another point.
    """

    def applied(*arguments: Value) -> Tensor:
        given = [as_tensor(argument) for argument in arguments]
        last = current().block.last_op
        result = as_tensor(function(*given))
        _check_float(result.dtype, "the result of a function with a custom gradient")
        own = [result, *given]
        names = result.recording.in_order(frozenset[str]().union(*(ix.free_symbols(one.index) for one in own)))
        stand_in = sdg.CotangentOp(types.tensor(result.dtype.element, result.extents), domain=Domain(names))
        dy = Tensor(result.recording, result.recording.add(stand_in, name="").results[0])
        floats = [argument for argument in given if argument.dtype.kind == "float"]
        returned: Value | tuple[Value, ...] = gradient(*given, dy)
        gradients = [as_tensor(one) for one in (returned if isinstance(returned, tuple) else (returned,))]
        _check_returned(floats, gradients, names)
        pairs = [part for pair in zip(floats, gradients, strict=True) for part in pair]
        made = record(sdg.CustomGradientOp, result, dy, *pairs, over=names)
        _check_points(last, [*given, dy])
        return made

    return applied


def _check_points(last: Operation | None, given: Sequence[Tensor]) -> None:
    """What was recorded after `last` reads what is given, and what it makes of it, at the current point alone."""
    allowed: dict[SSAValue, set[ix.Index]] = {}
    for one in given:
        allowed.setdefault(one.value, set()).add(one.index)
    op = current().block.first_op if last is None else last.next_op
    while op is not None:
        for access in op.accesses if isinstance(op, sdg.AccessOp) else ():
            if access.value in allowed and access.index not in allowed[access.value]:
                raise ProgramError(
                    f"{sdg.value_text(access.value)} is read at {ix.index_text(access.index)} inside a function with "
                    "a custom gradient, which sees one point: read there outside, and give the result as an argument"
                )
        if isinstance(op, sdg.AccessOp) and any(operand in allowed for operand in op.operands):
            point = tuple(ix.Sym(dim) for dim in op.domain.dims)
            allowed.update({result: {point} for result in op.results})
        op = op.next_op


def _check_returned(arguments: Sequence[Tensor], gradients: Sequence[Tensor], names: Sequence[str]) -> None:
    """One gradient per float argument, each like it and over no other dims."""
    if len(arguments) != len(gradients) or not arguments:
        raise ProgramError(
            f"the custom gradient returns {len(gradients)} tensors for {len(arguments)} float arguments: one for each"
        )
    for argument, one in zip(arguments, gradients, strict=True):
        if one.dtype != argument.dtype or tuple(one.extents) != tuple(argument.extents):
            raise ProgramError(
                f"the custom gradient by {argument.name} is {one.dtype} {shape_text(one.extents)}, it should be "
                f"{argument.dtype} {shape_text(argument.extents)}: sum over what was repeated, or cast"
            )
        if more := ix.free_symbols(one.index) & set(one.recording.dims) - set(names):
            raise ProgramError(
                f"the custom gradient by {argument.name} varies over {min(more)}, over which neither the arguments nor "
                "the result do"
            )


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
