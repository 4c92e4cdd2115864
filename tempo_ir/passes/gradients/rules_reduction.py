"""Derivatives of reductions, scans, softmax and contractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast as typed

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    ArangeOp,
    ContractOp,
    CumprodOp,
    CumsumOp,
    EqOp,
    GeOp,
    GtOp,
    MaxOp,
    MeanOp,
    MinOp,
    PadOp,
    ProdOp,
    ReduceOp,
    ReverseOp,
    ScanOp,
    SoftmaxOp,
    SumOp,
)
from tempo_ir.dialects.types import Extent, Shape, element, shape_of
from tempo_ir.index import Slice, as_expr, free_symbols
from tempo_ir.passes.building import GraphBuilder, full
from tempo_ir.passes.gradients.step import Rule, Step, aligned, restored, stripped


def _axes(step: Step) -> tuple[int, ...]:
    return typed(ReduceOp, step.op).axes


def total(step: Step) -> None:
    """Of a sum: `dx = dy`, repeated."""
    step.send(0, restored(step.build, step.gradient, step.shape(), _axes(step)), None)


def mean(step: Step) -> None:
    """`dx = dy / n`, repeated."""
    shape = step.shape()
    build, axes = step.build, _axes(step)
    count = build.count([shape[axis] for axis in axes], element(step.gradient.type))
    step.send(0, restored(build, build.div(step.gradient, count), shape, axes))


def extreme(step: Step) -> None:
    """Of the greatest or least: `dy`, in equal parts to the elements that are it, as in torch."""
    build, axes, shape = step.build, _axes(step), step.shape()
    winners = build.build(EqOp, step.operand(), restored(build, step.result, shape, axes))
    share = build.cast(winners, element(step.gradient.type))
    part = build.div(step.gradient, build.sum(share, axes))
    step.send(0, build.mul(share, restored(build, part, shape, axes)))


def product(step: Step) -> None:
    """`dx[i] = dy * (product of the others)`, exact where elements are 0: the product of what is before and after."""
    build, axes = step.build, _axes(step)
    partial = [step.operand()]
    for axis in sorted(axes, reverse=True):
        partial.append(build.reduce(ProdOp, partial[-1], (axis,)))
    gradient = step.gradient
    for factor, axis in zip(reversed(partial[:-1]), sorted(axes), strict=True):
        gradient = restored(build, gradient, shape_of(factor.tensor), (axis,))
        gradient = build.mul(gradient, _others(build, factor, axis))
    step.send(0, gradient)


def _others(build: GraphBuilder, factors: Access, axis: int) -> Access:
    """For each element along the axis, the product of all others."""
    backwards = build.build(ReverseOp, factors, axis=axis)
    after = build.build(ReverseOp, _before(build, backwards, axis), axis=axis)
    return build.mul(_before(build, factors, axis), after)


def _before(build: GraphBuilder, factors: Access, axis: int) -> Access:
    """For each element along the axis, the product of those in front of it."""
    shape = shape_of(factors.tensor)
    front: list[Extent] = [0] * len(shape)
    front[axis] = 1
    padded = build.build(PadOp, factors, low=front, high=[0] * len(shape), value=1.0)
    running = build.build(CumprodOp, padded, axis=axis)
    return build.slice(running, tuple(full(extent) for extent in shape))


def running_sum(step: Step) -> None:
    """`dx` is the running sum of `dy` from the other end."""
    op = typed(ScanOp, step.op)
    step.send(0, step.build.build(CumsumOp, _along(step, op.axis), axis=op.axis, reverse=not op.reverse))


def _along(step: Step, axis: int) -> Access:
    """The gradient with every element of an axis, and all the rank of the result."""
    shape = step.result_shape
    have = list(aligned(shape_of(step.gradient.tensor), len(shape)))
    have[axis] = shape[axis]
    return step.build.broadcast(step.gradient, have)


def running_product(step: Step) -> None:
    """`dx[i] = before[i] * sum over k >= i of dy[k] * x[i + 1] ... x[k]`, without a division, so exact at zeros.

    Takes n * n products for an axis of n elements.
    """
    op = typed(ScanOp, step.op)
    build, axis, x, g = step.build, op.axis, step.operand(), step.expanded()
    if op.reverse:
        x, g = (build.build(ReverseOp, value, axis=axis) for value in (x, g))
    gradient = build.mul(_before(build, x, axis), _weighted_products(build, x, g, axis))
    step.send(0, build.build(ReverseOp, gradient, axis=axis) if op.reverse else gradient)


def _weighted_products(build: GraphBuilder, x: Access, g: Access, axis: int) -> Access:
    """`sum over k >= i of g[k] * x[i + 1] ... x[k]` at each i, by a table of rows i and columns k."""
    shape = shape_of(x.tensor)
    extent = shape[axis]
    numbers = build.build(ArangeOp, values=full(extent), symbols=free_symbols(as_expr(extent)))
    rows = build.reshape(numbers, (extent, *[1] * (len(shape) - axis)))
    columns = build.reshape(numbers, (extent, *[1] * (len(shape) - axis - 1)))
    table = (*shape[:axis], 1, *shape[axis:])
    one, zero = build.number_like(1.0, x), build.number_like(0.0, x)
    factors = build.select(build.build(GtOp, columns, rows), build.reshape(x, table), one)
    products = build.build(CumprodOp, factors, axis=axis + 1)
    kept = build.select(build.build(GeOp, columns, rows), build.mul(products, build.reshape(g, table)), zero)
    return build.sum(kept, (axis + 1,))


def softmax(step: Step) -> None:
    """`dx = y * (dy - sum(dy * y))`; a row of zeros has the gradient zero."""
    build, axis, y = step.build, typed(SoftmaxOp, step.op).axis, step.result
    inner = build.sum(build.mul(y, step.gradient), (axis,))
    inner = restored(build, inner, step.result_shape, (axis,))
    step.send(0, build.mul(y, build.sub(step.gradient, inner)))


def contract(step: Step) -> None:
    """The spec permuted: of `bk,kn->bn`, `bn,kn->bk` and `bk,bn->kn`.

    Axes along which the gradient is the same everywhere take no letter; letters that only the operand has are repeated.
    """
    op = typed(ContractOp, step.op)
    inputs, output = op.letters
    gradient, letters = _lettered(step, output)
    total = element(op.result.type)
    for number in sorted(step.wanted):
        others = [(inputs[n], step.build.cast(step.operand(n), total)) for n in range(len(inputs)) if n != number]
        others.insert(number, (letters, gradient))
        sent = _contracted(step.build, others, inputs[number], step.shape(number))
        step.send(number, step.build.cast(sent, element(op.accesses[number].type)))


def _lettered(step: Step, output: str) -> tuple[Access, str]:
    """The gradient without its axes of extent 1, and the letters of those that stay."""
    shape = shape_of(step.gradient.tensor)
    named = list(zip(output[len(output) - len(shape) :], shape, strict=True))
    kept = [(letter, extent) for letter, extent in named if extent != 1]
    return step.build.reshape(step.gradient, [extent for _, extent in kept]), "".join(letter for letter, _ in kept)


def _contracted(build: GraphBuilder, terms: Sequence[tuple[str, Access]], wanted: str, shape: Shape) -> Access:
    """The contraction of the terms to the letters of `wanted`, broadcastable to `shape`.

    A letter that `wanted` repeats stands for a diagonal, which gets the gradient, zero elsewhere.
    """
    available = {letter for letters, _ in terms for letter in letters}
    once = dict.fromkeys(wanted)
    found = "".join(letter for letter in once if letter in available)
    gradient = _product(build, terms, found)
    extents = dict(zip(found, shape_of(gradient.tensor), strict=True))
    gradient = build.reshape(gradient, stripped([extents.get(letter, 1) for letter in once]))
    return gradient if len(once) == len(wanted) else _on_diagonal(build, gradient, wanted, shape)


def _product(build: GraphBuilder, terms: Sequence[tuple[str, Access]], found: str) -> Access:
    """The contraction; a product with a scalar instead where one of two terms is a scalar and nothing is summed."""
    if len(terms) == 1 and terms[0][0] == found:
        return terms[0][1]
    if len(terms) == 2 and "" in (terms[0][0], terms[1][0]) and found == terms[0][0] + terms[1][0]:
        (_, first), (_, second) = terms
        return build.mul(second, first) if terms[0][0] == "" else build.mul(first, second)
    return build.contract(f"{','.join(letters for letters, _ in terms)}->{found}", *(access for _, access in terms))


def _on_diagonal(build: GraphBuilder, gradient: Access, wanted: str, shape: Shape) -> Access:
    """A gradient by distinct letters, put where the axes of a repeated letter have equal positions."""
    once = "".join(dict.fromkeys(wanted))
    extents = dict(zip(wanted, shape, strict=True))
    gradient = build.broadcast(gradient, [extents[letter] for letter in once])
    terms = [(once, gradient)]
    spare = iter(sorted(set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").difference(wanted)))
    result = ""
    for letter in wanted:
        if letter not in result:
            result += letter
            continue
        twin = next(spare)
        result += twin
        terms.append((letter + twin, _identity(build, extents[letter], gradient)))
    return build.contract(f"{','.join(letters for letters, _ in terms)}->{result}", *(access for _, access in terms))


def _identity(build: GraphBuilder, extent: Extent, like: Access) -> Access:
    """The identity matrix."""
    numbers = build.build(ArangeOp, values=Slice(as_expr(0), as_expr(extent)), symbols=free_symbols(as_expr(extent)))
    equal = build.build(EqOp, build.reshape(numbers, (extent, 1)), numbers)
    return build.cast(equal, element(like.type))


RULES: Mapping[type[AccessOp], Rule] = MappingProxyType(
    {
        SumOp: total,
        MeanOp: mean,
        MaxOp: extreme,
        MinOp: extreme,
        ProdOp: product,
        CumsumOp: running_sum,
        CumprodOp: running_product,
        SoftmaxOp: softmax,
        ContractOp: contract,
    }
)
