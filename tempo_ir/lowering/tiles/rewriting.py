"""The kernel without the loads that a walk found to be needless: tiles in their place, carried by loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import INDEX, TileType, element_of
from tempo_ir.dialects.tile.builder import number_attribute
from tempo_ir.index import Const
from tempo_ir.lowering.tiles.indices import is_within
from tempo_ir.lowering.tiles.known import Assembled, Carried, Found, Lane, Masked, Merged, Shaped, Taken, Tile
from tempo_ir.lowering.tiles.lanes import Inserter, assembled, lane_of, reshaped
from tempo_ir.lowering.tiles.places import Places


@dataclass
class Prelude:
    """What is computed before a loop for its first iteration."""

    loop: structure.ForOp
    places: Places
    copies: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    ops: list[Operation] = field(default_factory=list[Operation])
    may_miss: bool = False
    """Whether memory is read that may not be there if the loop does not run."""

    def __post_init__(self) -> None:
        self.copies[self.loop.body.block.args[0]] = self.loop.low

    def insert(self, op: Operation) -> Operation:
        """Place an op before the loop."""
        block = self.loop.parent
        assert block is not None
        block.insert_op_before(op, self.loop)
        self.ops.append(op)
        return op

    def copy(self, value: SSAValue) -> SSAValue:
        """What a value is in the first iteration, before the loop."""
        if value in self.copies or not is_within(value, self.loop.body.block):
            return self.copies.get(value, value)
        op = value.owner
        assert isinstance(op, Operation)
        if value.type == INDEX and isinstance(number := self.places.indices.at_first(value, self.loop), Const):
            self.copies[value] = self.insert(shape.ConstOp(number_attribute(number.value, INDEX))).results[0]
            return self.copies[value]
        for operand in op.operands:
            self.copy(operand)
        self.insert(op.clone(self.copies))
        return self.copies[value]

    def copy_load(self, access: memory.LoadOp) -> memory.LoadOp:
        """Load before the loop what the first iteration loads."""
        for operand in access.operands:
            self.copy(operand)
        self.may_miss |= not self.places.is_there(self.places.of(access))
        load = access.clone(self.copies)
        self.insert(load)
        return load

    def enclose(self) -> None:
        """Put the loop and what is computed for it into a branch, if memory is read that may not be there otherwise."""
        if not self.may_miss or self.places.indices.trips(self.loop):
            return
        block = self.loop.parent
        assert block is not None
        runs = ew.LtOp(self.loop.low, self.loop.high)
        branch = structure.IfOp(runs.result, Region(Block()))
        block.insert_ops_before([runs, branch], self.ops[0])
        for op in (*self.ops, self.loop):
            op.detach()
            branch.then.block.add_op(op)
        branch.then.block.add_op(structure.YieldOp())


@dataclass
class Rewriting:
    """Puts tiles where a kernel loads what it knows."""

    places: Places
    found: Found
    values: dict[Tile, SSAValue] = field(default_factory=dict[Tile, SSAValue])
    preludes: dict[structure.ForOp, Prelude] = field(default_factory=dict[structure.ForOp, Prelude])

    def apply(self) -> None:
        """Rewrite the kernel."""
        for carried in self.found.carried:
            block = carried.loop.body.block
            tile_type = TileType.of(carried.place.shape, element_of(carried.access.result))
            argument = block.insert_arg(tile_type, len(block.args))
            argument.name_hint = carried.access.result.name_hint
            self.values[carried] = argument
        for load, tile in self.found.loads.items():
            self.values[load.result] = self.value(tile, load)
            load.result.replace_all_uses_with(self.values[load.result])
        loops = list(dict.fromkeys(carried.loop for carried in self.found.carried))
        for loop in loops:
            self.extend(loop, [each for each in self.found.carried if each.loop is loop])
        for load in self.found.loads:
            load.detach()
            load.erase()
        for loop in loops:
            prelude = self.preludes[loop]
            prelude.loop = rebuilt(loop)
            prelude.enclose()

    def extend(self, loop: structure.ForOp, carried: Sequence[Carried]) -> None:
        """Give a loop the tiles before it and after an iteration; its results come with `rebuilt`."""
        prelude = self.preludes[loop] = Prelude(loop, self.places)
        last = loop.body.block.last_op
        assert last is not None
        firsts = [self.first(each, prelude) for each in carried]
        nexts = [self.value(self.found.carried[each], last, prelude) for each in carried]
        loop.operands = [*loop.operands, *firsts]
        last.operands = [*last.operands, *nexts]

    def first(self, carried: Carried, prelude: Prelude) -> SSAValue:
        """The tile that the first iteration finds."""
        access = carried.access
        if carried.never:
            element = element_of(access.result)
            zero = shape.ConstOp(number_attribute(0, element), carried.place.shape)
            return prelude.insert(zero).results[0]
        if carried.first is not None:
            return self.value(carried.first, prelude.loop, prelude)
        return reshaped(prelude.copy_load(access).result, carried.place.shape, prelude.insert)

    def value(self, tile: Tile, before: Operation, prelude: Prelude | None = None) -> SSAValue:
        """A tile as a value that is there before an op; the mask of what a loop carries stands before the loop."""
        if tile in self.values:
            return self.values[tile]
        match tile:
            case Merged(branch, then, otherwise):
                lhs, rhs = self.value(then, branch), self.value(otherwise, branch)
                for value in (branch.condition, lhs, rhs):
                    leave(value, branch)
                select = ew.SelectOp(branch.condition, lhs, rhs)
                insert_before(select, branch)
                select.result.name_hint = lhs.name_hint
                self.values[tile] = select.result
                return select.result
            case Taken(branch, inner):
                value = self.value(inner, branch)
                leave(value, branch)
                return value
            case _:
                put = prelude.insert if prelude is not None and before is prelude.loop else _inserter(before)
                return self.made(tile, before, put, prelude)

    def made(self, tile: Tile, before: Operation, put: Inserter, prelude: Prelude | None) -> SSAValue:
        """A tile that is made of others, by ops that `put` places."""

        def part(inner: Tile) -> SSAValue:
            value = self.value(inner, before, prelude)
            if isinstance(before, structure.IfOp):
                leave(value, before)
            return value

        match tile:
            case Masked(inner, access):
                mask = self.mask(access, put if prelude is None else prelude.insert, prelude)
                element = access.view_type.element
                other = shape.ConstOp(number_attribute(0, element) if access.other is None else access.other)
                stored = part(inner)
                select = ew.SelectOp(mask, stored, put(other).results[0])
                select.result.name_hint = stored.name_hint
                return put(select).results[0]
            case Shaped(inner, extents):
                return reshaped(part(inner), extents, put)
            case Lane(inner, axis, lane):
                return lane_of(part(inner), axis, lane, put)
            case Assembled(lanes, axis):
                return assembled([part(lane) for lane in lanes], axis, put)
            case _:
                assert isinstance(tile, SSAValue)
                return tile

    def mask(self, access: memory.LoadOp, put: Inserter, prelude: Prelude | None) -> SSAValue:
        """Which lanes of an access lie inside of the sizes of its view."""
        masks: list[SSAValue] = []
        axes = self.places.of(access).axes
        for position, (axis, number) in enumerate(zip(axes, self.places.numbers[access], strict=True)):
            if axis.mask is None:
                continue
            start, size = access.indices[number], access.view_op.sizes[number]
            limit = put(shape.ConstOp(number_attribute(size, INDEX))).results[0] if isinstance(size, int) else size
            if prelude is not None:
                start, limit = prelude.copy(start), prelude.copy(limit)
            inside = put(shape.InRangeOp(start, limit, axis.extent)).results[0]
            masks.append(inside if len(axes) == 1 else put(shape.ExpandOp(inside, 1 - position)).results[0])
        return masks[0] if len(masks) == 1 else put(ew.AndOp(*masks)).results[0]


def insert_before(op: Operation, place: Operation) -> Operation:
    """Place an op before another one."""
    block = place.parent
    assert block is not None
    block.insert_op_before(op, place)
    return op


def _inserter(place: Operation) -> Inserter:
    return lambda op: insert_before(op, place)


def leave(value: SSAValue, branch: structure.IfOp) -> None:
    """Compute a value before a branch rather than in it."""
    op = value.owner
    if isinstance(op, Block) or op.parent_op() is not branch:
        return
    for operand in op.operands:
        leave(operand, branch)
    op.detach()
    insert_before(op, branch)


def rebuilt(loop: structure.ForOp) -> structure.ForOp:
    """The loop with a result for each tile that its body carries."""
    body = loop.body
    loop.detach_region(body)
    new = structure.ForOp(loop.low, loop.high, loop.step_size, loop.init, body)
    new.attributes |= loop.attributes
    new.location = loop.location
    insert_before(new, loop)
    for old, result in zip(loop.carried, new.carried, strict=False):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    loop.detach()
    loop.erase()
    return new
