"""One step of the reverse pass: from the gradient of an op's result to the gradients of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg import Access, AccessOp, EqOp
from tempo_ir.dialects.types import Extent, Shape, shape_of
from tempo_ir.index import Sym
from tempo_ir.passes.building import GraphBuilder


@dataclass(frozen=True)
class Sent:
    """The gradient of one operand, at the points of the step; the shape broadcasts to that of the operand."""

    operand: int
    gradient: Access
    mask: Access | None = None


@dataclass(frozen=True)
class Step:
    """What a rule sees: the op, the gradient of its result, a builder for new ops, and where to send gradients.

    `gradient` broadcasts to the shape of the result: a gradient that is the same along an axis has extent 1 there, or
    lacks the axis. `mask` says where it can differ from zero, if an unselected side of a select lies downstream: what
    a rule computes is masked again, so that `0 * inf` at an unselected element stays 0. Behind a sum, or at another
    point, no mask is known, only that there is a select (`selected`): then a gradient of 0 stays 0 where the rule
    multiplies by what may be infinite, of which `unbounded` holds the values.
    """

    op: AccessOp
    build: GraphBuilder
    gradient: Access
    mask: Access | None
    wanted: frozenset[int]
    selected: bool = False
    unbounded: frozenset[SSAValue] = frozenset()
    sent: list[Sent] = field(default_factory=list[Sent])

    def operand(self, number: int = 0) -> Access:
        """What the op reads, at the current point."""
        return self.op.accesses[number]

    def shape(self, number: int = 0) -> Shape:
        """The shape of what the op reads."""
        return shape_of(self.op.accesses[number].tensor)

    @property
    def result(self) -> Access:
        """The result of the op, at the current point."""
        return Access(self.op.results[0], tuple(Sym(dim) for dim in self.op.domain.dims))

    @property
    def result_shape(self) -> Shape:
        """The shape of the result."""
        return shape_of(self.op.results[0].type)

    def expanded(self) -> Access:
        """The gradient in the full shape of the result."""
        return self.build.broadcast(self.gradient, self.result_shape)

    def send(self, number: int, gradient: Access, mask: Access | None = None) -> None:
        """The gradient of an operand."""
        self.sent.append(Sent(number, gradient, mask))

    def send_elementwise(
        self, number: int, gradient: Access, *, may_overflow: bool = True, singular: bool = False
    ) -> None:
        """The gradient of an operand of an elementwise op, in (or broadcasting to) the shape of the result.

        Broadcasting is undone by sums. `may_overflow` says that the rule multiplied by something that can be infinite,
        `singular` that this is to be expected: by a slope without bound, or a factor that has none.
        """
        if singular and self.selected:
            zero = self.build.number_like(0.0, gradient)
            nothing = self.build.build(EqOp, self.gradient, self.build.number_like(0.0, self.gradient))
            gradient = self.build.select(nothing, zero, gradient)
        elif may_overflow and self.mask is not None:
            gradient = self.build.where(self.mask, gradient)
        reduced = unbroadcast(self.build, gradient, self.result_shape, self.shape(number))
        self.send(number, reduced, self.mask if reduced == gradient else None)


Rule: TypeAlias = Callable[[Step], None]


def aligned(shape: Sequence[Extent], rank: int) -> Shape:
    """A shape with axes of extent 1 in front, up to a rank."""
    return (*[1] * (rank - len(shape)), *shape)


def stripped(shape: Sequence[Extent]) -> Shape:
    """A shape without the leading axes of extent 1, which broadcasting adds."""
    start = 0
    while start < len(shape) and shape[start] == 1:
        start += 1
    return tuple(shape[start:])


def unbroadcast(build: GraphBuilder, gradient: Access, shape: Shape, target: Shape) -> Access:
    """The gradient of an operand of shape `target` that was broadcast to `shape`: the sum over what was repeated.

    Along an axis where the gradient is the same everywhere (it has extent 1, or no such axis) the sum is a product.
    """
    rank = len(shape)
    have = aligned(shape_of(gradient.tensor), rank)
    want = aligned(target, rank)
    missing = rank - gradient.tensor.get_num_dims()
    repeated = [axis for axis in range(rank) if want[axis] == 1 and shape[axis] != 1]
    summed = [axis for axis in repeated if have[axis] != 1]
    total = build.sum(gradient, [axis - missing for axis in summed])
    if counted := [shape[axis] for axis in repeated if have[axis] == 1]:
        total = build.mul(total, build.count(counted, total.tensor.element_type))
    if not summed:
        return _without_excess(build, total, len(target))
    kept = [1 if axis in repeated else have[axis] for axis in range(rank)]
    return build.reshape(total, stripped(kept))


def _without_excess(build: GraphBuilder, gradient: Access, rank: int) -> Access:
    """A gradient of at most the given rank: leading axes of extent 1 go where there are too many."""
    shape = shape_of(gradient.tensor)
    return gradient if len(shape) <= rank else build.reshape(gradient, shape[len(shape) - rank :])


def restored(build: GraphBuilder, gradient: Access, operand: Shape, axes: Sequence[int]) -> Access:
    """A gradient of a reduction's result, broadcastable to the operand: the reduced axes come back with extent 1."""
    kept = [axis for axis in range(len(operand)) if axis not in axes]
    have = aligned(shape_of(gradient.tensor), len(kept))
    extents: list[Extent] = [1] * len(operand)
    for axis, extent in zip(kept, have, strict=True):
        extents[axis] = extent
    shape = stripped(extents)
    return gradient if stripped(shape_of(gradient.tensor)) == shape else build.reshape(gradient, shape)
