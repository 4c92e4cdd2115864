"""What a kernel may answer from inside: how a leaf reads an operand, and what its own value costs to compute again.

A kernel asks for the values that it writes block by block; what they read of each other is computed at the coordinates
that the reader asks for. That is free where the reader asks for each element once, and ruinous where it asks for a
contraction many times.
"""

from __future__ import annotations

from enum import IntEnum, auto
from functools import cache
from math import prod

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import YieldOp
from tempo_ir.dialects.types import Shape, shape_of


class Cost(IntEnum):
    """The work of one element, from moving it to a loop over others."""

    FREE = auto()
    LIGHT = auto()
    HEAVY = auto()
    PASS = auto()
    """A loop over other elements: a sum, a maximum."""
    DEAR = auto()
    """Not to be computed twice: a contraction, a softmax."""
    ALONE = auto()


class Read(IntEnum):
    """How a leaf asks for the elements of an operand, from once to many times."""

    SAME = auto()
    """At its own coordinates."""
    WEIGHTS = auto()
    """Each element once: the softmax of a weighted sum, computed in the pass of the sum."""
    SPLIT = auto()
    """Each element once, where one axis is seen as several."""
    HELD = auto()
    """Each element once, by the one program that goes on to loop over what it is multiplied with: the queries of
    attention."""
    STRETCHED = auto()
    """At some of its own coordinates: the operand broadcasts."""
    MOVED = auto()
    """Each element about once, at other coordinates."""
    REDUCED = auto()
    """Each element once, in a loop."""
    AMORTISED = auto()
    """Each element some times, for many multiplications each: the rows of a product with many columns."""
    CHOSEN = auto()
    """Each element once, or in vain where another is chosen when the kernel runs."""
    ROW = auto()
    """Each element of a row two or three times, in loops."""
    REPEATED = auto()
    """Each element many times."""


_FREE = (sdg.CastOp, sdg.StopGradientOp, sdg.TransposeOp, sdg.ReshapeOp, sdg.BroadcastOp, sdg.SliceOp, sdg.ReverseOp)
_SOURCES = (sdg.IndexOp, sdg.ArangeOp, sdg.ConstantOp)
_HEAVY = (
    sdg.ExpOp, sdg.LogOp, sdg.Log1pOp, sdg.TanhOp, sdg.SigmoidOp, sdg.ErfOp, sdg.SinOp, sdg.CosOp, sdg.PowOp,
    sdg.FloordivOp, sdg.ModOp, sdg.RandomOp,
)  # fmt: skip
_LIGHT = (sdg.UnaryOp, sdg.BinaryOp, sdg.CompareOp, sdg.LogicOp, sdg.SelectOp, sdg.ConcatOp)
_PASS = (sdg.ReduceOp, sdg.ArgReduceOp)
_COSTS: dict[tuple[type[Operation], ...], Cost] = {
    (*_FREE, *_SOURCES): Cost.FREE,
    _HEAVY: Cost.HEAVY,
    _LIGHT: Cost.LIGHT,
    _PASS: Cost.PASS,
    (sdg.ContractOp, sdg.SoftmaxOp): Cost.DEAR,
}
_WAYS: dict[tuple[type[Operation], ...], Read] = {
    (YieldOp,): Read.SAME,
    (
        sdg.UnaryOp, sdg.BinaryOp, sdg.CompareOp, sdg.LogicOp, sdg.SelectOp, sdg.CastOp, sdg.StopGradientOp,
        sdg.BroadcastOp,
    ): Read.STRETCHED,
    _PASS: Read.REDUCED,
    (sdg.SoftmaxOp,): Read.ROW,
    (sdg.ConcatOp,): Read.CHOSEN,
    (sdg.TransposeOp, sdg.ReshapeOp, sdg.SliceOp, sdg.ReverseOp): Read.MOVED,
}  # fmt: skip

DEAREST = {
    Read.SAME: Cost.DEAR,
    Read.WEIGHTS: Cost.DEAR,
    Read.SPLIT: Cost.DEAR,
    Read.HELD: Cost.PASS,
    Read.STRETCHED: Cost.PASS,
    Read.MOVED: Cost.PASS,
    Read.REDUCED: Cost.PASS,
    Read.AMORTISED: Cost.PASS,
    Read.CHOSEN: Cost.LIGHT,
    Read.ROW: Cost.LIGHT,
    Read.REPEATED: Cost.FREE,
}
"""The dearest value that may be computed anew, by the worst read between it and what the kernel writes."""


WEIGHTED_COLUMNS = 256
"""The widest rows of which a weighted sum is computed in one pass with its weights."""


def cost_of(work: Operation | None) -> Cost:
    """What an element of the value of an op, or of a copy, costs. ALONE: its kernel has a form of its own."""
    return Cost.FREE if work is None else _cost(type(work))


@cache
def _cost(kind: type[Operation]) -> Cost:
    for kinds, cost in _COSTS.items():
        if issubclass(kind, kinds):
            return cost
    return Cost.ALONE


def reads_of(argument: SSAValue) -> list[Read]:
    """How a leaf reads one of its arguments, once per use."""
    return [_read(use.operation, argument) for use in argument.uses]


def is_weighted_sum(sum_: Operation | None, argument: SSAValue, softmax: Operation | None) -> bool:
    """Whether the work of a leaf gives the weights of a sum: a softmax along the one axis that a contraction sums.

    The kernel of such a sum asks for every weight once (`kernels/weighted_sums`), if what is summed fits in one block
    beside.
    """
    if not isinstance(softmax, sdg.SoftmaxOp) or not isinstance(sum_, sdg.ContractOp) or len(sum_.inputs) != 2:
        return False
    inputs, output = sum_.letters
    number = list(sum_.inputs).index(argument) if argument in sum_.inputs else 0
    weights, other = inputs[number], inputs[1 - number]
    summed = set(weights + other) - set(output)
    if sum_.inputs[0] is sum_.inputs[1] or summed != {weights[softmax.axis]} or not summed <= set(other):
        return False
    free = [extent for letter, extent in zip(other, shape_of(sum_.inputs[1 - number].type), strict=True)
            if letter in output and letter not in weights]  # fmt: skip
    return len(free) <= 1 and all(isinstance(extent, int) and extent <= WEIGHTED_COLUMNS for extent in free)


def is_query(scores: Operation | None, argument: SSAValue, weights: Operation | None) -> bool:
    """Whether an operand of the scores of a weighted sum varies along all of their axes but that of the softmax: the
    program that makes these rows of the sum reads it, and no other."""
    if not isinstance(scores, sdg.ContractOp) or not isinstance(weights, sdg.SoftmaxOp):
        return False
    inputs, output = scores.letters
    own = [letters for letters, operand in zip(inputs, scores.inputs, strict=True) if operand is argument]
    return len(own) == 1 and set(output) - set(own[0]) == {output[weights.axis]}


MANY_COLUMNS = 64
"""Columns of a product for each of which an element of its rows is multiplied, from which on making it is little."""


def is_amortised(op: Operation | None, argument: SSAValue) -> bool:
    """Whether a leaf multiplies each element of an operand with many elements of the other."""
    if not isinstance(op, sdg.ContractOp) or len(op.inputs) != 2 or op.inputs[0] is op.inputs[1]:
        return False
    number = list(op.inputs).index(argument) if argument in op.inputs else 0
    inputs, output = op.letters
    own, other = inputs[number], inputs[1 - number]
    if not set(own) - set(output):
        return False
    columns = [
        extent
        for letter, extent in zip(other, shape_of(op.inputs[1 - number].type), strict=True)
        if letter in output and letter not in own
    ]
    return prod(extent if isinstance(extent, int) else 1 for extent in columns) >= MANY_COLUMNS


def _splits(old: Shape, new: Shape) -> bool:
    """Whether a reshape only sees axes as several: each is the product of neighbouring axes of the new shape."""
    if not all(isinstance(extent, int) and extent > 0 for extent in new):
        return False
    left = [extent for extent in new if isinstance(extent, int)]
    for extent in old:
        rest = extent
        while isinstance(rest, int) and rest > 1:
            while left and left[0] == 1:
                left.pop(0)
            if not left or rest % left[0]:
                return False
            rest //= left.pop(0)
        if not isinstance(rest, int):
            return False
    return all(extent == 1 for extent in left)


def _read(op: Operation, argument: SSAValue) -> Read:
    read = _way(type(op))
    if read is Read.STRETCHED and shape_of(argument.type) == shape_of(op.results[0].type):
        return Read.SAME
    if isinstance(op, sdg.ReshapeOp) and _splits(shape_of(argument.type), shape_of(op.result.type)):
        return Read.SPLIT
    return read


@cache
def _way(kind: type[Operation]) -> Read:
    """How ops of a kind read an operand, where those that work element by element stretch it."""
    return next((read for kinds, read in _WAYS.items() if issubclass(kind, kinds)), Read.REPEATED)
