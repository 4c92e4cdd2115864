"""The rows of a loop: an axis that everything written in it has, and along which nothing is mixed.

`h = tanh(x[t] + h @ w)` has one: row b of a step is made of row b of the step before. A sum over the batch, or a
product of two values that the loop makes, has none. What the loop only reads is free: weights, inputs, draws.

If there is such an axis, no iteration for one row reads or writes what an iteration for another row touches, so that
rows may run all their iterations in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import BodyOperation, BufferAccess, FoldOp, ForOp, IfOp, YieldOp
from tempo_ir.dialects.types import Extent, shape_of
from tempo_ir.index import Slice
from tempo_ir.lowering.kernels.axis_classes import Axis, AxisClasses
from tempo_ir.passes.tile.axes import axes_through


class NoRows(Exception):
    """The loop has no axis of independent rows; the message says why."""


@dataclass(frozen=True)
class Rows:
    """The rows of a loop: how many, and which axis of what each leaf writes they are."""

    extent: Extent
    axes: Mapping[BodyOperation, int]
    classes: AxisClasses
    axis: Axis
    """What stands for the axis among the classes."""

    def is_row(self, value: SSAValue, axis: int) -> bool:
        """Whether an axis of a value runs along the rows."""
        return self.classes.find((value, axis)) == self.axis


def leaves_of(block: Block) -> list[BodyOperation]:
    """The leaves and kernels of a block, in their order, those of its guards and loops too."""
    found: list[BodyOperation] = []
    for op in block.ops:
        if isinstance(op, BodyOperation):
            found.append(op)
        elif isinstance(op, ForOp | IfOp):
            for region in op.regions:
                for inner in region.blocks:
                    found += leaves_of(inner)
    return found


def rows_of(block: Block) -> Rows:
    """The rows of the body of a loop. Raises NoRows where it has none."""
    leaves = leaves_of(block)
    written = {access.buffer for leaf in leaves for access in leaf.writes}
    classes = AxisClasses()
    places: dict[SSAValue, tuple[SSAValue, int]] = {}
    for leaf in leaves:
        classes.visit(leaf.body.block)
    for access, value in _accessed(leaves):
        if access.buffer in written:
            own = _slices(access)
            first, start = places.setdefault(access.buffer, (value, own))
            for axis in range(min(_rank(first) - start, _rank(value) - own)):
                classes.tie((first, start + axis), (value, own + axis))
    reasons: list[str] = []
    (_, (value, start)) = next(iter(places.items()))
    for axis, found in enumerate(classes.of_value(value)):
        if axis < start or found is None:
            continue
        try:
            return _along(leaves, written, classes, classes.find(found), shape_of(value.type)[axis])
        except NoRows as error:
            reasons.append(str(error))
    raise NoRows(reasons[0] if reasons else "what it writes has no axis of rows")


def _accessed(leaves: Sequence[BodyOperation]) -> Iterator[tuple[BufferAccess, SSAValue]]:
    """What is accessed, with the values that are read and written."""
    for leaf in leaves:
        yield from zip(leaf.reads, leaf.body.block.args, strict=True)
        yield from zip(leaf.writes, leaf.yielded, strict=True)


def _slices(access: BufferAccess) -> int:
    """The leading axes of what is accessed that are ranges of dims."""
    return sum(isinstance(entry, Slice) for entry in access.index)


def _rank(value: SSAValue) -> int:
    return len(shape_of(value.type))


def _along(
    leaves: Sequence[BodyOperation], written: set[SSAValue], classes: AxisClasses, root: Axis, extent: Extent
) -> Rows:
    """The rows along an axis; raises NoRows where something mixes them."""

    def place(access: BufferAccess, value: SSAValue) -> int:
        found = [axis for axis, other in enumerate(classes.of_value(value)) if other == root]
        name = value.name_hint or access.buffer.name_hint or "a value"
        if len(found) != 1 or found[0] < _slices(access):
            raise NoRows(f"%{name} of type {access.type} has no axis of its {extent} rows")
        if shape_of(value.type)[found[0]] != extent:
            raise NoRows(f"%{name} of type {access.type} has other rows than {extent}")
        return found[0]

    axes: dict[BodyOperation, int] = {}
    for leaf in leaves:
        known: dict[SSAValue, int] = {
            value: place(access, value)
            for access, value in zip(leaf.reads, leaf.body.block.args, strict=True)
            if access.buffer in written
        }
        _spread(leaf, known)
        sinks = {place(access, value) for access, value in zip(leaf.writes, leaf.yielded, strict=True)}
        if any(value in known and known[value] not in sinks for value in leaf.yielded) or len(sinks) != 1:
            raise NoRows("a kernel writes its rows along several axes")
        (axes[leaf],) = sinks
    return Rows(extent, axes, classes, root)


def _spread(leaf: BodyOperation, known: dict[SSAValue, int]) -> None:
    """From the rows of what a leaf reads to those of all that depends on it: each op must make row b of row b."""
    for op in leaf.body.block.ops:
        if isinstance(op, YieldOp) or not (mine := [operand for operand in op.operands if operand in known]):
            continue
        if isinstance(op, FoldOp) or not isinstance(op, sdg.SdgOp) or len(op.results) != 1:
            raise NoRows(f"{op.name} is not computed row by row")
        axis = next((axis for axis in range(_rank(op.results[0])) if _keeps_rows(op, axis, known)), None)
        if axis is None:
            raise NoRows(f"{op.name} mixes the rows of %{mine[0].name_hint or 'a value'}")
        known[op.results[0]] = axis


def _keeps_rows(op: sdg.SdgOp, axis: int, known: Mapping[SSAValue, int]) -> bool:
    """Whether an axis of a result is that of the rows of each operand that has some."""
    through = axes_through(op, axis)
    if through is None:
        return False
    places = [*zip(op.operands, through, strict=False)]
    return len(places) == len(op.operands) and all(own == known[operand] for operand, own in places if operand in known)
