"""The axes of a kernel's tiles: which are one, what they are called, and the indices along them.

    BLOCK_N = tl.constexpr(64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)

Two axes of tiles are one where an op reads them alike: those of the operands of a sum, the contracted ones of a dot,
the rows of a load and those of the mask beside it. An axis is called what the lowering says it is (`along`), else by
what a dot makes of it, `m`, `n`, `k`, else by its place, `row` and `col`, or `offsets` where it is alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import ALONG, TileType, shape_of
from tempo_ir.lowering.triton.addresses import constant_of, loop_of

Axis = tuple[SSAValue, int]
"""An axis of a tile; of a scalar, the axis that its indices `scalar + 0 .. extent` make."""
WHOLE = "offsets"
"""What the one axis of a kernel is called that means nothing in particular."""


def along(start: SSAValue) -> str | None:
    """What axis a block runs along whose first index this is, where the lowering says so."""
    owner = start.owner
    op = loop_of(start) if isinstance(owner, Block) else owner
    name = None if op is None else op.attributes.get(ALONG)
    return name.data if isinstance(name, StringAttr) else None


@dataclass(frozen=True, slots=True)
class Lane:
    """Indices along an axis: `start`, `start + 1`, ...; from 0 where there is no `start`."""

    axis: Axis
    start: SSAValue | None
    extent: int


class KernelAxes:
    """The axes of one kernel."""

    def __init__(self, kernel: structure.KernelOp):
        self._parent: dict[Axis, Axis] = {}
        self._starts: dict[tuple[SSAValue, int], Axis] = {}
        self._roles: dict[Axis, str] = {}
        self._ops = list(kernel.walk())
        for op in self._ops:
            self._tie_op(op)
        self.names = self._named()

    # -- the classes

    def find(self, axis: Axis) -> Axis:
        """The axis that stands for all that are one with it."""
        root = axis
        while (above := self._parent.get(root, root)) != root:
            root = above
        self._parent[axis] = root
        return root

    def _tie(self, first: Axis, second: Axis) -> None:
        if _extent(first) == _extent(second):
            self._parent.setdefault(first, first)
            self._parent[self.find(second)] = self.find(first)

    def _tie_all(self, first: SSAValue, second: SSAValue) -> None:
        if _rank(first) == _rank(second):
            for axis in range(_rank(first)):
                self._tie((first, axis), (second, axis))

    def _tie_op(self, op: Operation) -> None:
        match op:
            case memory.AccessOp():
                self._tie_access(op)
            case shape.IotaOp() | shape.InRangeOp():
                self._tie_start((op.result, 0), op.start)
            case shape.ExpandOp():
                self._tie((op.value, 0), (op.result, 1 - op.axis_number))
            case shape.TransOp():
                self._tie((op.value, 0), (op.result, 1))
                self._tie((op.value, 1), (op.result, 0))
            case shape.ReduceOp():
                kept = [axis for axis in range(len(shape_of(op.value))) if axis != op.axis_number]
                for result, axis in enumerate(kept):
                    self._tie((op.value, axis), (op.result, result))
            case shape.DotOp():
                self._tie_all(op.accumulator, op.result)
                pairs = [((op.lhs, 0), (op.result, 0)), ((op.lhs, 1), (op.rhs, 0)), ((op.rhs, 1), (op.result, 1))]
                for (one, other), role in zip(pairs, "mkn", strict=True):
                    self._tie(one, other)
                    self._roles.setdefault(one, role)
            case structure.ForOp():
                carried = op.body.block.args[1:]
                for values in zip(op.init, carried, op.yielded, op.carried, strict=True):
                    for value in values[1:]:
                        self._tie_all(values[0], value)
            case _:
                for operand in op.operands:
                    for result in op.results:
                        self._tie_all(operand, result)

    def _tie_access(self, op: memory.AccessOp) -> None:
        tile = op.value if isinstance(op, (memory.WriteOp, memory.IndexedWriteOp)) else op.results[0]
        for number, axis in enumerate(op.tile_axes):
            if isinstance(op, memory.IndexedAccessOp) and axis == op.axis_number:
                self._tie((op.positions, 0), (tile, number))
            else:
                self._tie_start((tile, number), op.indices[axis])

    def _tie_start(self, axis: Axis, start: SSAValue) -> None:
        """Blocks that begin together are along one axis; at a number many may, unless it has a name."""
        if constant_of(start) is None:
            self._tie(self._starts.setdefault((start, _extent(axis)), axis), axis)

    # -- names

    def _named(self) -> dict[Axis, str]:
        """A name for each class: said by the lowering, made by a dot, or by place."""
        said: dict[Axis, str] = {}
        placed: dict[Axis, str] = {}
        for axis, start in self._blocks():
            name = along(start)
            if name is not None:
                said.setdefault(self.find(axis), name)
        for axis, role in self._roles.items():
            said.setdefault(self.find(axis), role)
        for axis in self._axes():
            value, number = axis
            name = WHOLE if len(shape_of(value)) == 1 else ("row", "col")[number]
            root = self.find(axis)
            if placed.get(root, WHOLE) == WHOLE:
                placed[root] = name
        named = {root: said.get(root, name) for root, name in placed.items()}
        self._join(named)
        return {self.find(root): name for root, name in named.items()}

    def _join(self, named: Mapping[Axis, str]) -> None:
        """Axes of one name and extent are one, unless a tile has both."""
        beside: dict[Axis, set[Axis]] = {root: set() for root in named}
        for axis in self._axes():
            value, number = axis
            if _rank(value) == 2:
                beside[self.find(axis)].add(self.find((value, 1 - number)))
        first: dict[tuple[str, int], Axis] = {}
        for root, name in named.items():
            other = first.setdefault((name, _extent(root)), root)
            if other is not root and root not in beside[other]:
                beside[other] |= beside[root]
                self._tie(other, root)

    def _axes(self) -> Iterator[Axis]:
        for op in self._ops:
            for value in (*op.operands, *op.results):
                for number in range(_rank(value)):
                    yield value, number

    def _blocks(self) -> Iterator[tuple[Axis, SSAValue]]:
        """The axes of tiles with the first index of their block."""
        for op in self._ops:
            match op:
                case memory.AccessOp():
                    tile = op.value if isinstance(op, (memory.WriteOp, memory.IndexedWriteOp)) else op.results[0]
                    for number, axis in enumerate(op.tile_axes):
                        if not (isinstance(op, memory.IndexedAccessOp) and axis == op.axis_number):
                            yield (tile, number), op.indices[axis]
                case shape.IotaOp() | shape.InRangeOp():
                    yield (op.result, 0), op.start
                case _:
                    pass

    # -- lanes

    def lane(self, axis: Axis, start: SSAValue) -> Lane:
        """The indices along an axis of a tile whose block begins at `start`; less that where it is a number."""
        return Lane(self.find(axis), start if constant_of(start) is None else None, _extent(axis))

    def access_lane(self, op: memory.AccessOp, axis: int) -> Lane:
        """The indices along an axis of a view, of an access to a block of it."""
        tile = op.value if isinstance(op, (memory.WriteOp, memory.IndexedWriteOp)) else op.results[0]
        return self.lane((tile, op.tile_axes.index(axis)), op.indices[axis])

    def lanes(self) -> Sequence[Lane]:
        """All indices along axes that the kernel needs, in order."""
        found: dict[Lane, None] = {}
        for axis, start in self._blocks():
            if _extent(axis) > 1:
                found[self.lane(axis, start)] = None
        return list(found)


def _rank(value: SSAValue) -> int:
    """How many axes a tile has; memory and scalars have none here."""
    return len(value.type.shape.data) if isinstance(value.type, TileType) else 0


def _extent(axis: Axis) -> int:
    value, number = axis
    return shape_of(value)[number]
