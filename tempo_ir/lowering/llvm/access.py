"""Loads, gathers and stores: from indices, views and blocks to addresses and masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tempo_ir.dialects.tile.attributes import DYNAMIC, element_of, is_unsigned, shape_of
from tempo_ir.dialects.tile.elementwise import CastOp
from tempo_ir.dialects.tile.memory import AccessOp, GatherOp, IndexedAccessOp, LoadOp
from tempo_ir.dialects.tile.shape import DotOp, TransOp
from tempo_ir.lowering.llvm import memory
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear, materialize, product
from tempo_ir.lowering.llvm.evaluate import At, Evaluator, Point, overhang
from tempo_ir.lowering.llvm.memory import Buffer, element_layout
from tempo_ir.lowering.llvm.text import AVX512_LANES, Register, Text


@dataclass(frozen=True)
class AxisAccess:
    """
    One axis of a view in an access. `tile_axis` is None for a point. `limit` is the size where the block may pass it,
    `below` says that it may start before 0; `somewhere` is a position that the axis is known to have.
    """

    start: Linear
    tile_axis: int | None
    stride: Linear | int
    limit: Linear | None
    below: bool
    somewhere: Linear | None
    positions: SSAValue | None = None


@dataclass(frozen=True)
class Access:
    """A block of memory: where each point of the tile lies and when it is inside."""

    buffer: Buffer
    axes: tuple[AxisAccess, ...]
    shape: tuple[int, ...]
    offset: Linear

    @property
    def lane_strides(self) -> dict[int, Linear | int | None]:
        """Per axis of the tile its stride in memory; None where positions come from a tile."""
        return {
            axis.tile_axis: None if axis.positions is not None else axis.stride
            for axis in self.axes
            if axis.tile_axis is not None
        }


@dataclass(frozen=True)
class Location:
    """
    Where one point lies: an offset, for a vector the offsets of its lanes (`stride` where they are regular), the mask
    of its lanes and the condition of the whole, None where they hold.
    """

    offset: Linear
    stride: Linear | int | None
    lane_offsets: Register | None
    mask: Register | None
    condition: Register | None
    safe: bool


def describe(evaluator: Evaluator, op: AccessOp) -> Access:
    """The access of an op, with the checks that cannot be proved superfluous."""
    named = evaluator.named.get(op)
    if named is None:
        view = op.view_op
        named = evaluator.named[op] = tuple(op.indices), tuple(view.dynamic), view.offset
    starts = tuple([evaluator.index(index) for index in named[0]])
    dynamic = tuple([evaluator.index(size) for size in named[1]])
    offset = ZERO if named[2] is None else evaluator.index(named[2])
    key = op, starts, dynamic, offset
    if key not in evaluator.accesses:
        evaluator.accesses[key] = _described(evaluator, op, starts, offset)
    return evaluator.accesses[key]


def _described(evaluator: Evaluator, op: AccessOp, starts: Sequence[Linear], offset: Linear) -> Access:
    view, blocks = op.view_op, op.block.data
    pointer = evaluator.environment[view.pointer]
    assert isinstance(pointer, Register)
    positions, positions_axis = (op.positions, op.axis_number) if isinstance(op, IndexedAccessOp) else (None, None)
    axes: list[AxisAccess] = []
    tile_axis = 0
    for axis, (start, extent, *dimensions) in enumerate(zip(starts, blocks, view.sizes, view.strides, strict=True)):
        size, stride = (_dimension(evaluator, dimension) for dimension in dimensions)
        stride = stride.constant if stride.is_constant else stride
        if not extent:
            axes.append(AxisAccess(start, None, stride, None, below=False, somewhere=start))
            continue
        somewhere = ZERO if size.is_constant and size.constant > 0 else None
        if axis == positions_axis:
            axes.append(AxisAccess(start, tile_axis, stride, size, True, somewhere, positions))
        else:
            fits = evaluator.bounds.prove(size - start - extent)
            below = not evaluator.bounds.prove(start)
            if somewhere is None and not below and evaluator.bounds.known(size - start - 1):
                somewhere = start
            axes.append(AxisAccess(start, tile_axis, stride, None if fits else size, below, somewhere))
        tile_axis += 1
    extents = tuple(extent for extent in blocks if extent)
    return Access(Buffer(pointer, element_layout(op.view_type.element)), tuple(axes), extents, offset)


def _dimension(evaluator: Evaluator, dimension: int | SSAValue) -> Linear:
    return Linear(dimension) if isinstance(dimension, int) else evaluator.index(dimension)


def locate(evaluator: Evaluator, access: Access, point: Point) -> Location:
    """Where a point of the tile lies."""
    text = evaluator.text
    offset, stride, lane_offsets = access.offset, None, None
    mask: Register | None = None
    condition: Register | None = None
    safe = True
    for axis in access.axes:
        if axis.tile_axis is None:
            offset = offset + product(text, axis.start, axis.stride)
            continue
        at = point[axis.tile_axis]
        inside = overhang(at, access.shape[axis.tile_axis], evaluator.lanes)
        if inside is not None:
            mask = text.both(mask, text.tail_mask(inside))
        if axis.positions is not None:
            position = evaluator.at(axis.positions, [(at,)])[0]
            position = widen(position, is_unsigned(element_of(axis.positions))) + materialize(text, axis.start)
            check = _inside(text, position, axis)
            if at.lane:
                mask = text.both(mask, check)
                lane_offsets = position * materialize(text, linear(axis.stride))
            else:
                condition, safe = text.both(condition, check), False
                offset = offset + product(text, linear(position), axis.stride)
            continue
        position = axis.start + at.position
        if at.lane:
            stride = axis.stride
            mask = text.both(mask, _lanes_inside(evaluator, position, axis))
            offset = offset + product(text, position, axis.stride)
            continue
        check = _position_inside(evaluator, position, axis)
        if check is not None:
            condition = text.both(condition, check)
            if axis.somewhere is not None:
                # a point outside reads another position instead: test and address are both of outer levels
                inside = materialize(text, axis.somewhere)
                position = linear(text.select(check, materialize(text, position), inside))
            else:
                safe = False
        offset = offset + product(text, position, axis.stride)
    return Location(offset, stride, lane_offsets, mask, condition, safe)


def _inside(text: Text, position: Register, axis: AxisAccess) -> Register:
    assert axis.limit is not None
    return text.compare("ult", position, materialize(text, axis.limit))


def _position_inside(evaluator: Evaluator, position: Linear, axis: AxisAccess) -> Register | None:
    check: Register | None = None
    if axis.limit is not None:
        check = _not_negative(evaluator, axis.limit - position - 1)
    return evaluator.text.both(check, _not_negative(evaluator, position)) if axis.below else check


def _not_negative(evaluator: Evaluator, x: Linear) -> Register | None:
    """x >= 0, None if that is known."""
    if evaluator.bounds.known(x):
        return None
    return evaluator.text.compare("sge", materialize(evaluator.text, x), 0)


def _lanes_inside(evaluator: Evaluator, position: Linear, axis: AxisAccess) -> Register | None:
    """Which of the positions from `position` on are inside; the counts are clamped to fit 32 bits."""
    text = evaluator.text
    mask: Register | None = None
    if axis.limit is not None and not evaluator.bounds.known(axis.limit - position - text.lanes):
        mask = first_lanes(text, axis.limit - position)
    if axis.below and not evaluator.bounds.known(position):
        mask = text.both(mask, _lanes_from(text, position.times(-1)))
    return mask


def _lanes_from(text: Text, count: Linear) -> Register:
    """A mask that is false in the first `count` lanes, however many."""
    if count.is_constant:
        return text.numbers([lane >= count.constant for lane in range(text.lanes)], "i1")
    return text.compare("sge", text.iota(), text.broadcast(clamped_count(text, count)))


def first_lanes(text: Text, count: Linear) -> Register | None:
    """A mask that is true in the first `count` lanes, however many; None if it is known to be true in all."""
    if count.is_constant:
        return None if count.constant >= text.lanes else text.tail_mask(count.constant)
    return text.compare("slt", text.iota(), text.broadcast(clamped_count(text, count)))


def clamped_count(text: Text, count: Linear) -> Register:
    """A number of lanes, 0 to all, as an i32."""
    if count.is_constant:
        return text.constant(min(max(count.constant, 0), text.lanes), "i32")
    value = materialize(text, count)
    value = text.select(text.compare("slt", value, 0), 0, value)
    value = text.select(text.compare("sgt", value, text.lanes), text.lanes, value)
    return text.convert("trunc", value, "i32")


def widen(x: Register, unsigned: bool) -> Register:
    """An integer as i64."""
    return x if x.kind == "i64" else x.text.convert("zext" if unsigned else "sext", x, "i64")


def number_of(attribute: Attribute) -> float:
    """The number that an attribute holds."""
    assert isinstance(attribute, (FloatAttr, IntegerAttr))
    return float(attribute.value.data) if isinstance(attribute, FloatAttr) else int(attribute.value.data)


def load(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """`tile.load` and `tile.gather`."""
    op = value.owner
    assert isinstance(op, (LoadOp, GatherOp))
    text, access = evaluator.text, describe(evaluator, op)
    kind = access.buffer.element.kind
    other = None if op.other is None else text.constant(number_of(op.other), kind)
    registers: list[Register] = []
    for point in points:
        location = locate(evaluator, access, point)
        vector = location.stride is not None or location.lane_offsets is not None
        if vector and location.stride != 0:
            registers.append(_load_vector(text, access.buffer, location, other))
        else:
            x = _load_scalar(text, access.buffer, location, other)
            if location.mask is not None and other is not None:
                x = text.select(location.mask, x, other)
            elif location.mask is not None:
                x = text.select(location.mask, x, text.constant(0, kind))
            registers.append(text.broadcast(x) if vector else x)
    return registers


def prefetch(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> None:
    """Ask for the memory of points of a loaded tile, perhaps transposed or converted; nothing for another value."""
    op, points = _source(value, points)
    if not isinstance(op, LoadOp):
        return
    access = describe(evaluator, op)
    for point in points:
        memory.prefetch(access.buffer, _offset(evaluator.text, access, point))


def prefetch_written(evaluator: Evaluator, access: Access, points: Sequence[Point]) -> None:
    """Ask for the lines that vectors at these points will be written to, where each lies in one piece."""
    for point in points:
        if any(at.lane and access.lane_strides[axis] != 1 for axis, at in enumerate(point)):
            return
        memory.prefetch(access.buffer, _offset(evaluator.text, access, point), near=True, written=True)


def address(evaluator: Evaluator, access: Access, point: Point) -> Register:
    """The address of a point, be it inside or not."""
    return access.buffer.at(_offset(evaluator.text, access, point))


def whole_pitch(access: Access, axis: int) -> int | None:
    """The elements between neighbours along an axis of a tile that lies in memory as in registers, all of it inside;
    None of others, and where only a call knows."""
    element, pitch = access.buffer.element, access.lane_strides[axis]
    is_checked = any(each.positions is not None or each.limit is not None or each.below for each in access.axes)
    return pitch if isinstance(pitch, int) and not is_checked and element.kind == element.storage else None


def _offset(text: Text, access: Access, point: Point) -> Linear:
    """Where a point lies, be it inside or not."""
    offset = access.offset
    for axis in access.axes:
        position = axis.start if axis.tile_axis is None else axis.start + point[axis.tile_axis].position
        offset = offset + product(text, position, axis.stride)
    return offset


def _source(value: SSAValue, points: Sequence[Point] = ()) -> tuple[Operation | Block, Sequence[Point]]:
    """What a tile is made of by conversions and transpositions, and the points of that one."""
    op = value.owner
    while isinstance(op, TransOp | CastOp):
        points = [point[::-1] for point in points] if isinstance(op, TransOp) else points
        op = op.value.owner
    return op, points


def loaded_from(value: SSAValue) -> Operation | Block:
    """What a tile is made of by conversions and transpositions."""
    return _source(value)[0]


def inside_along(evaluator: Evaluator, value: SSAValue, axis: int) -> Linear | None:
    """How many positions of a tile along an axis, from the first on, are inside of the memory that it is loaded from
    where it is used, and 0 beyond; None where all are, or where it is not of this kind."""
    load, axis = _loaded(value, axis, lambda known: known not in evaluator.environment)
    if load is None or load.other is not None:
        return None
    access = describe(evaluator, load)
    along = next(found for found in access.axes if found.tile_axis == axis)
    return None if along.limit is None or along.below else along.limit - along.start


SHORT_VECTORS = 8
"""Most vectors along the contracted axis for which that is written out."""


def runs_along_depth(op: DotOp, lanes: int, is_inline: Callable[[SSAValue], bool]) -> bool:
    """Is the right operand of a dot loaded where it lies, along the contracted axis, which is short, and has it columns
    enough for the lanes of a vector?"""
    depth, columns = shape_of(op.rhs)
    if not lanes <= depth <= SHORT_VECTORS * lanes or columns < lanes:
        return False
    load, axis = _loaded(op.rhs, 0, is_inline)
    return load is not None and is_contiguous(load, axis)


def _loaded(value: SSAValue, axis: int, is_inline: Callable[[SSAValue], bool]) -> tuple[LoadOp | None, int]:
    """The load of which a tile is made by conversions and transpositions, all where it is used, and the axis there."""
    while is_inline(value):
        maker = value.owner
        if isinstance(maker, LoadOp):
            return maker, axis
        if not isinstance(maker, TransOp | CastOp):
            break
        axis = 1 - axis if isinstance(maker, TransOp) else axis
        value = maker.value
    return None, axis


def stored_bytes(value: SSAValue) -> int:
    """The size of an element of a tile where it is loaded from."""
    op, _ = _source(value)
    return element_layout(element_of(op.result if isinstance(op, LoadOp) else value)).size


def whole_bytes(value: SSAValue) -> int:
    """The bytes of the array that a loaded tile is a block of, as far as its sizes are fixed, or else of the tile."""
    op, _ = _source(value)
    sizes = shape_of(value)
    if isinstance(op, LoadOp):
        axes = zip(op.view_type.shape.data, op.view_type.strides.data, op.block.data, strict=True)
        sizes = [(extent or 1) if size == DYNAMIC else size for size, stride, extent in axes if stride != 0]
    return prod(sizes) * stored_bytes(value)


def has_pairs(value: SSAValue, axis: int) -> bool:
    """Is the tile loaded from bf16 that lie side by side along an axis, perhaps transposed or made f32?"""
    op, points = _source(value, [(At(ZERO, lane=axis == 0), At(ZERO, lane=axis == 1))])
    along = next((n for n, at in enumerate(points[0]) if at.lane), None)
    if along is None or not isinstance(op, LoadOp) or len(op.tile_axes) != 2:
        return False
    return element_layout(op.view_type.element).is_bfloat and is_contiguous(op, along)


def load_pairs(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register] | None:
    """For tiles that `has_pairs`: per point twice as many elements as there are lanes, two in a word, the first one in
    its lower half; None where one may be outside."""
    ends = [tuple(At(at.position + evaluator.lanes, at.lane) if at.lane else at for at in point) for point in points]
    words = [load_pair(evaluator, (value, point), (value, end)) for point, end in zip(points, ends, strict=True)]
    found = [word for word in words if word is not None]
    return found if len(found) == len(words) else None


def load_pair(evaluator: Evaluator, first: tuple[SSAValue, Point], second: tuple[SSAValue, Point]) -> Register | None:
    """The elements of two vectors of tiles that `has_pairs`, two in a word, the first one in its lower half; None where
    one may be outside, or the second vector does not lie behind the first."""
    places: list[tuple[Buffer, Location]] = []
    for value, point in (first, second):
        op, (at,) = _source(value, [point])
        assert isinstance(op, LoadOp)
        access = describe(evaluator, op)
        places.append((access.buffer, locate(evaluator, access, at)))
    (buffer, start), (other, end) = places
    together = buffer.pointer is other.pointer and end.offset == start.offset + evaluator.lanes
    if not together or any(place.mask is not None or place.condition is not None for _, place in places):
        return None
    return memory.load_words(buffer, start.offset)


def _load_vector(text: Text, buffer: Buffer, location: Location, other: Register | None) -> Register:
    mask = location.mask
    if location.condition is not None:
        condition = text.broadcast(location.condition)
        if mask is None and location.safe and location.stride == 1 and text.lanes != AVX512_LANES:
            # elsewhere masked loads of 16 bits are a branch for each element
            x = memory.load_vector(buffer, location.offset)
            return text.select(condition, x, text.constant(0, x.kind, text.lanes) if other is None else other)
        mask = text.both(mask, condition)
    if location.lane_offsets is None and location.stride == 1:
        return memory.load_vector(buffer, location.offset, mask, other)
    offsets = location.lane_offsets
    if offsets is None:
        assert location.stride is not None
        offsets = memory.lane_offsets(text, location.stride)
    return memory.gather(buffer, location.offset, offsets, mask, other)


def _load_scalar(text: Text, buffer: Buffer, location: Location, other: Register | None) -> Register:
    if location.condition is None:
        return memory.load(buffer, location.offset)
    if location.safe:
        x = memory.load(buffer, location.offset)
    else:
        address = buffer.at(location.offset)
        nowhere = text.spare()
        pointer = text.pure(
            f"select i1 {location.condition.name}, ptr {address.name}, ptr {nowhere.name}",
            "ptr",
            0,
            location.condition,
            address,
        )
        x = memory.load(Buffer(pointer, buffer.element), ZERO)
    return text.select(location.condition, x, text.constant(0, x.kind) if other is None else other)


def store(evaluator: Evaluator, access: Access, point: Point, x: Register) -> None:
    """Write one point of a block, where it is inside."""
    text, location = evaluator.text, locate(evaluator, access, point)
    if location.stride is None and location.lane_offsets is None:
        if location.condition is None:
            memory.store(access.buffer, location.offset, x)
        else:
            with text.when(location.condition):
                memory.store(access.buffer, location.offset, x)
        return
    mask = location.mask
    if location.condition is not None:
        mask = text.both(mask, text.broadcast(location.condition))
    if location.lane_offsets is None and location.stride == 1:
        memory.store_vector(access.buffer, location.offset, x, mask)
        return
    offsets = location.lane_offsets
    if offsets is None:
        assert location.stride is not None
        offsets = memory.lane_offsets(text, location.stride)
    memory.scatter(access.buffer, location.offset, offsets, x, mask)


def add(evaluator: Evaluator, access: Access, point: Point, x: Register, concurrent: bool) -> None:
    """Add to one point of a block, where it is inside; a vector only where no other program runs and lanes differ."""
    text, location = evaluator.text, locate(evaluator, access, point)
    buffer = access.buffer
    if location.stride == 1:
        mask = location.mask
        if location.condition is not None:
            mask = text.both(mask, text.broadcast(location.condition))
        total = memory.load_vector(buffer, location.offset, mask) + text.broadcast(x)
        memory.store_vector(buffer, location.offset, total, mask)
        return
    condition = location.condition if location.condition is not None else text.constant(1, "i1")
    with text.when(condition):
        if concurrent:
            memory.add_atomically(buffer, location.offset, x)
        else:
            memory.store(buffer, location.offset, memory.load(buffer, location.offset) + x)


def is_contiguous(op: LoadOp | GatherOp, tile_axis: int) -> bool:
    """Does the tile's axis run along memory with stride 1?"""
    axis = op.tile_axes[tile_axis]
    if isinstance(op, GatherOp) and op.axis_number == axis:
        return False
    return op.view_type.strides.data[axis] == 1
