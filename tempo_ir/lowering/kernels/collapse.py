"""Axes of a kernel's values that are one axis: neighbours that every op of the body treats alike, and that lie one
inside the other in memory.

Before: `contract "tbk,tbn->kn"` of a `?x8x64` and a `?x8x32`, whose lanes run along 8 elements at a time. After:
`contract "tk,tn->kn"` of a `?x64` and a `?x32`, with `8 * T` rows. An elementwise kernel over a dense `4x8x64` runs
over 2048 elements.

Two neighbouring axes of a value are a *pair*. Ops tie pairs of their operands and results together; a pair is no pair
where an op treats its two axes differently (one is summed, one is broadcast) or where memory has gaps. A pair of known
extents is joined wherever it can be. Where an extent is open, so will be that of the joined axis, whose last block then
needs masks: such a pair is joined only if the inner axis is too short to fill a block by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import BodyOperation, FoldOp, YieldOp
from tempo_ir.dialects.sdg.attributes import IndexAttr
from tempo_ir.dialects.types import Extent, element, shape_of, tensor
from tempo_ir.index import Const, Entry, Slice, as_expr, simplify
from tempo_ir.lowering.kernels.elementwise import ELEMENTWISE
from tempo_ir.lowering.kernels.layout import Array

SHORT = 64
"""Elements of an inner axis from which on it fills a block."""

FEW_ROWS = 8
"""Rows of a product from which on they fill the registers."""

_ALIGNED = (*ELEMENTWISE, sdg.BroadcastOp)
_FREE = (sdg.RandomOp, sdg.ConstantOp, sdg.IndexOp, YieldOp)

Pair = tuple[SSAValue, int]
"""Two axes of a value: this one and the next."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a kernel computes: a block of sdg ops, where its arguments lie and where what it yields goes; `rows` is the
    axis of what it yields that is no part of any other, if one is."""

    block: Block
    reads: tuple[Array, ...]
    writes: tuple[Array, ...]
    rows: int | None = None

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """The values written."""
        last = self.block.last_op
        assert isinstance(last, YieldOp)
        return last.operands


def collapsed(
    leaf: BodyOperation,
    reads: Sequence[Array],
    writes: Sequence[Array],
    rows: int | None = None,
    asked: Collection[Pair] = (),
) -> Body:
    """The body of a leaf with all axes joined that are one, and those that are `asked` for wherever they can be, but
    for the axis `rows` of what it yields; one with a fold stays as it is."""
    body = Body(leaf.body.block, tuple(reads), tuple(writes), rows)
    if any(isinstance(op, FoldOp) for op in body.block.ops):
        return body
    pairs = _Pairs.of(body, through_views=bool(asked))
    if rows is not None:
        for value in body.yielded:
            pairs.part(value, rows - 1)
            pairs.part(value, rows)
    joined = pairs.joined(asked)
    return _rebuilt(body, joined) if joined else body


def may_be_joined(block: Block, asked: Collection[Pair]) -> bool:
    """Whether all ops of a body let pairs be joined; memory may not."""
    pairs = _Pairs({pair: set() for pair in asked}, through_views=True)
    for op in block.ops:
        pairs.visit(op)
    return {*asked} <= {pair for members in pairs.classes() for pair in members}


@dataclass
class _Pairs:
    """The pairs of all values, tied together, and those that are none."""

    ties: dict[Pair, set[Pair]] = field(default_factory=dict[Pair, set[Pair]])
    apart: set[Pair] = field(default_factory=set[Pair])
    through_views: bool = False
    """Whether slices and axes of one element are looked through, in order to join what is asked for."""

    @staticmethod
    def of(body: Body, *, through_views: bool) -> _Pairs:
        """The pairs of a body."""
        pairs = _Pairs(through_views=through_views)
        for op in body.block.ops:
            pairs.visit(op)
        for value, array in [
            *zip(body.block.args, body.reads, strict=True),
            *zip(body.yielded, body.writes, strict=True),
        ]:
            pairs.memory(value, array)
        return pairs

    def tie(self, first: Pair, second: Pair) -> None:
        """Both or none."""
        self.ties.setdefault(first, set()).add(second)
        self.ties.setdefault(second, set()).add(first)

    def part(self, value: SSAValue, axis: int) -> None:
        """The axes are not one."""
        self.apart.add((value, axis))

    def memory(self, value: SSAValue, array: Array) -> None:
        """Axes of memory are one where the outer one steps over the whole of the inner one. One of a single element has
        no step of its own: what is outside of it steps over what is inside."""
        covered = as_expr(1) if not array.axes else array.axes[-1].stride * array.axes[-1].extent
        for axis in reversed(range(len(array.axes) - 1)):
            outer, inner = array.axes[axis], array.axes[axis + 1]
            self.ties.setdefault((value, axis), set())
            dense = outer.extent == 1 or simplify(covered - outer.stride) == Const(0)
            if outer.wrap is not None or inner.wrap is not None or not dense:
                self.part(value, axis)
            covered = covered if outer.extent == 1 else outer.stride * outer.extent

    def visit(self, op: Operation) -> None:
        """The ties of an op."""
        if isinstance(op, _ALIGNED):
            for operand in op.operands:
                self._aligned(operand, op.results[0])
        elif isinstance(op, sdg.ContractOp):
            self._contraction(op)
        elif isinstance(op, sdg.ReduceOp):
            self._reduction(op.operand, op.result, op.axes)
        elif isinstance(op, sdg.ArgReduceOp):
            self._reduction(op.operand, op.result, (op.axis,))
        elif isinstance(op, sdg.SoftmaxOp):
            for axis in range(_rank(op.operand) - 1):
                self.tie((op.operand, axis), (op.result, axis))
                if op.axis in (axis, axis + 1):
                    self.part(op.operand, axis)
        elif isinstance(op, sdg.OneHotOp):
            for axis in range(_rank(op.ids) - 1):
                self.tie((op.ids, axis), (op.result, axis))
            if _rank(op.ids):
                self.part(op.result, _rank(op.ids) - 1)
        elif self.through_views and (view := _view(op)) is not None:
            self._kept(op.operands[0], op.results[0], *view)
        elif not isinstance(op, _FREE):
            for value in (*op.operands, *op.results):
                for axis in range(_rank(value) - 1):
                    self.part(value, axis)

    def _aligned(self, operand: SSAValue, result: SSAValue) -> None:
        """Aligned right; what the operand has not, or has with extent 1, it is stretched along."""
        small, large = shape_of(operand.type), shape_of(result.type)
        shift = len(large) - len(small)
        stretched = _stretched([*[1] * shift, *small], large)
        for axis in range(len(large) - 1):
            if axis >= shift:
                self.tie((operand, axis - shift), (result, axis))
            if stretched[axis] is None or stretched[axis] != stretched[axis + 1]:
                self.part(result, axis)

    def _contraction(self, op: sdg.ContractOp) -> None:
        inputs, output = op.letters
        terms = [*zip(op.inputs, inputs, strict=True), (op.result, output)]
        for value, letters in terms:
            for axis in range(len(letters) - 1):
                pair = letters[axis : axis + 2]
                for other, others in terms:
                    if pair in others and others.count(pair[0]) == others.count(pair[1]) == 1:
                        self.tie((value, axis), (other, others.index(pair)))
                    elif set(pair) & set(others):
                        self.part(value, axis)

    def _kept(self, operand: SSAValue, result: SSAValue, places: Sequence[int], whole: Collection[int]) -> None:
        """The axes of the result are those of the operand at some places: neighbours of which all is there stay so."""
        tied: set[int] = set()
        for axis in range(_rank(result) - 1):
            if (
                axis + 1 < len(places)
                and {*places[axis : axis + 2]} <= {*whole}
                and places[axis] + 1 == places[axis + 1]
            ):
                self.tie((operand, places[axis]), (result, axis))
                tied.add(places[axis])
            else:
                self.part(result, axis)
        for axis in range(_rank(operand) - 1):
            if axis not in tied:
                self.part(operand, axis)

    def _reduction(self, operand: SSAValue, result: SSAValue, axes: Sequence[int]) -> None:
        kept = [axis for axis in range(_rank(operand)) if axis not in axes]
        for axis in range(_rank(operand) - 1):
            if axis in kept and axis + 1 in kept:
                self.tie((operand, axis), (result, kept.index(axis)))
            elif axis in kept or axis + 1 in kept or len(axes) < 2:
                self.part(operand, axis)
        for number, axis in enumerate(kept[:-1]):
            if kept[number + 1] != axis + 1:
                self.part(result, number)

    # -- choosing

    def joined(self, asked: Collection[Pair]) -> set[Pair]:
        """The pairs that become one axis."""
        classes = self.classes()
        chosen = {
            pair
            for members in classes
            for pair in members
            if all(map(_is_static, members)) or not members.isdisjoint(asked)
        }
        for members in classes:
            enough = FEW_ROWS if any(isinstance(value.owner, sdg.ContractOp) for value, _ in members) else SHORT
            if not members <= chosen and max(_inner(pair, chosen) for pair in members) < enough:
                chosen |= members
        return chosen

    def classes(self) -> list[set[Pair]]:
        """Pairs that are joined together, those left out that are none."""
        seen: set[Pair] = set()
        classes: list[set[Pair]] = []
        for start in self.ties:
            if start in seen:
                continue
            members, waiting = {start}, [start]
            while waiting:
                new = self.ties.get(waiting.pop(), set()) - members
                members |= new
                waiting += new
            seen |= members
            if not members & self.apart:
                classes.append(members)
        return classes


def _view(op: Operation) -> tuple[list[int], Collection[int]] | None:
    """The axes of the operand that those of the result are, and which of them are taken whole, of a slice and of a
    reshape that only adds axes of one element at the end, or leaves such ones out."""
    if isinstance(op, sdg.SliceOp):
        shape = shape_of(op.operand.type)
        places = [axis for axis, entry in enumerate(op.take) if isinstance(entry, Slice)]
        return places, {axis for axis in places if op.take[axis] == Slice(Const(0), as_expr(shape[axis]))}
    if isinstance(op, sdg.ReshapeOp):
        old, new = shape_of(op.operand.type), shape_of(op.result.type)
        kept = min(len(old), len(new))
        if old[:kept] == new[:kept] and {*old[kept:], *new[kept:]} <= {1}:
            return list(range(kept)), range(kept)
    return None


def _stretched(small: Sequence[Extent], large: Sequence[Extent]) -> list[bool | None]:
    """For each axis whether an operand is stretched along it, None where that is not known. An axis of one element on
    both sides may be either: it is what its neighbour is, so that `2x1x1` within `2x1x4` is `2x1` within `2x4`."""
    kinds = [False if a == b else True if a == 1 else None for a, b in zip(small, large, strict=True)]
    single = [a == b == 1 for a, b in zip(small, large, strict=True)]
    free = next((kind for kind, one in zip(kinds, single, strict=True) if not one), False)
    for axis, one in enumerate(single):
        kinds[axis] = free = free if one else kinds[axis]
    return kinds


def _rank(value: SSAValue) -> int:
    return len(shape_of(value.type))


def _is_static(pair: Pair) -> bool:
    value, axis = pair
    return all(isinstance(extent, int) for extent in shape_of(value.type)[axis : axis + 2])


def _inner(pair: Pair, joined: set[Pair]) -> int:
    """The extent of the inner axis, with what is joined to it; a great number where it is open."""
    value, axis = pair
    total = 1
    for number, extent in enumerate(shape_of(value.type)[axis + 1 :], axis + 1):
        if not isinstance(extent, int):
            return 1 << 40
        total *= extent
        if (value, number) not in joined:
            break
    return total


# Rebuilding


@dataclass(frozen=True, slots=True)
class _Groups:
    """The axes of a value as they become: the old axes of each new one."""

    axes: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(value: SSAValue, joined: set[Pair]) -> _Groups:
        """How the axes of a value are joined."""
        groups: list[tuple[int, ...]] = []
        for axis in range(_rank(value)):
            if axis and (value, axis - 1) in joined:
                groups[-1] = (*groups[-1], axis)
            else:
                groups.append((axis,))
        return _Groups(tuple(groups))

    def new(self, axis: int) -> int:
        """The new number of an axis."""
        return next(number for number, group in enumerate(self.axes) if axis in group)

    def extents(self, shape: Sequence[Extent]) -> list[Extent]:
        """The extents of the joined axes."""
        return [_product([shape[axis] for axis in group]) for group in self.axes]

    def array(self, array: Array) -> Array:
        """The memory with its axes joined."""
        extents = self.extents([axis.extent for axis in array.axes])
        # an axis of one element has any stride
        last = [
            next((array.axes[axis] for axis in reversed(group) if array.axes[axis].extent != 1), array.axes[group[-1]])
            for group in self.axes
        ]
        axes = [replace(axis, extent=extent) for extent, axis in zip(extents, last, strict=True)]
        return Array(array.offset, tuple(axes))


def _product(extents: Sequence[Extent]) -> Extent:
    total = as_expr(1)
    for extent in extents:
        total = total * extent
    return total.value if isinstance(total, Const) else total


def _rebuilt(body: Body, joined: set[Pair]) -> Body:
    groups = {value: _Groups.of(value, joined) for value in _values(body.block)}
    block = Block(arg_types=[_type(argument, groups[argument]) for argument in body.block.args])
    known: dict[SSAValue, SSAValue] = dict(zip(body.block.args, block.args, strict=True))
    for old, new in known.items():
        new.name_hint = old.name_hint
    for op in body.block.ops:
        fresh = type(op).create(
            operands=[known[operand] for operand in op.operands],
            result_types=[_type(result, groups[result]) for result in op.results],
            properties={**op.properties, **_properties(op, groups)},
            attributes=op.attributes,
        )
        fresh.location = op.location
        for old, new in zip(op.results, fresh.results, strict=True):
            known[old] = new
            new.name_hint = old.name_hint
        block.add_op(fresh)
    reads = [groups[value].array(array) for value, array in zip(body.block.args, body.reads, strict=True)]
    writes = [groups[value].array(array) for value, array in zip(body.yielded, body.writes, strict=True)]
    rows = None if body.rows is None else groups[body.yielded[0]].new(body.rows)
    return Body(block, tuple(reads), tuple(writes), rows)


def _values(block: Block) -> list[SSAValue]:
    return [*block.args, *(result for op in block.ops for result in op.results)]


def _type(value: SSAValue, groups: _Groups) -> Attribute:
    return tensor(element(value.type), groups.extents(shape_of(value.type)))


def _properties(op: Operation, groups: Mapping[SSAValue, _Groups]) -> dict[str, Attribute]:
    """The properties that name axes."""
    match op:
        case sdg.ContractOp():
            inputs, output = op.letters
            values = (*op.inputs, op.result)
            letters = [
                "".join(term[group[0]] for group in groups[value].axes)
                for value, term in zip(values, (*inputs, output), strict=True)
            ]
            return {"spec": StringAttr(",".join(letters[:-1]) + "->" + letters[-1])}
        case sdg.ReduceOp():
            axes = dict.fromkeys(groups[op.operand].new(axis) for axis in op.axes)
            return {"axes": DenseArrayBase.from_list(i64, list(axes))}
        case sdg.SliceOp():
            shape, joined = shape_of(op.operand.type), groups[op.operand]
            entries: list[Entry] = [
                op.take[group[0]] if len(group) == 1 else Slice(Const(0), as_expr(extent))
                for group, extent in zip(joined.axes, joined.extents(shape), strict=True)
            ]
            return {"take": IndexAttr(tuple(entries))}
        case sdg.SoftmaxOp() | sdg.ArgReduceOp():
            return {"axis": IntegerAttr(groups[op.operand].new(op.axis), i64)}
        case _:
            return {}
