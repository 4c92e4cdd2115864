"""What a program knows of memory: the tiles that some places hold.

A walk over a kernel follows loads and stores. It changes nothing; `Found` is what it found: loads that need not be,
and tiles that loops carry in their stead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from tempo_ir.dialects.tile import memory, structure
from tempo_ir.dialects.tile.attributes import shape_of
from tempo_ir.index import compare, conj, negate
from tempo_ir.lowering.tiles.indices import Indices, can_precede, is_within
from tempo_ir.lowering.tiles.places import Place, Places


@dataclass(frozen=True, eq=False)
class Merged:
    """A tile that a branch may have changed: one where its condition holds, the other where it does not."""

    branch: structure.IfOp
    then: Tile
    otherwise: Tile


@dataclass(frozen=True, eq=False)
class Taken:
    """A tile that a branch makes, where it is known that the branch is taken."""

    branch: structure.IfOp
    tile: Tile


@dataclass(frozen=True, eq=False)
class Masked:
    """A stored tile as an access of the same place reads it: lanes outside of the view's sizes are its `other`."""

    tile: Tile
    access: memory.LoadOp


@dataclass(frozen=True, eq=False)
class Shaped:
    """A tile with other axes of extent 1."""

    tile: Tile
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Lane:
    """One lane of an axis of a tile, without that axis."""

    tile: Tile
    axis: int
    lane: int


@dataclass(frozen=True, eq=False)
class Assembled:
    """The tile whose lanes along an axis are other tiles."""

    lanes: tuple[Tile, ...]
    axis: int


@dataclass(frozen=True, eq=False)
class Carried:
    """
    What a place holds at the beginning of each iteration of a loop; `place` says which, at the counter.

    `first` is the tile before the loop; None where the place is loaded then; `never` where no iteration that is the
    first one asks for it.
    """

    loop: structure.ForOp
    access: memory.LoadOp
    place: Place
    first: Tile | None
    never: bool = False


Tile: TypeAlias = SSAValue | Merged | Taken | Masked | Shaped | Lane | Assembled | Carried
MOST_LANES = 8
"""Of an axis that is taken apart or put together: each takes an operation on the whole tile."""


@dataclass(frozen=True)
class Known:
    """The tile at a place, of its shape; of lanes that the place masks `other` is known where it was loaded, nothing
    where it was stored. It is known `where` some branches go one way, the first region or the other."""

    tile: Tile
    other: Attribute | None
    was_loaded: bool
    where: tuple[tuple[structure.IfOp, bool], ...] = ()


State: TypeAlias = dict[Place, Known]


@dataclass
class Found:
    """Loads with the tiles that they give, and what loops carry for that, with the tile that it is after an
    iteration."""

    loads: dict[memory.LoadOp, Tile] = field(default_factory=dict[memory.LoadOp, "Tile"])
    carried: dict[Carried, Tile] = field(default_factory=dict[Carried, "Tile"])

    def copy(self) -> Found:
        """What was found by now."""
        return Found(dict(self.loads), dict(self.carried))


@dataclass
class Walk:
    """Follows the memory of a kernel."""

    places: Places
    limit: int
    """Elements of the largest tile that a loop may carry."""
    found: Found = field(default_factory=Found)

    def block(self, block: Block, state: State) -> None:
        """Follow a block; the state becomes that at its end."""
        for op in block.ops:
            match op:
                case structure.ForOp():
                    self.loop(op, state)
                case structure.IfOp():
                    self.branch(op, state)
                case memory.LoadOp():
                    self.load(op, state)
                case memory.StoreOp():
                    self.store(op, state)
                case memory.WriteOp() | memory.IndexedWriteOp():
                    self.forget(state, [op])
                case _:
                    pass

    def load(self, op: memory.LoadOp, state: State) -> None:
        """A place that is known is not loaded."""
        place = self.places.of(op)
        known = self.lookup(place, state)
        if known is None or known.where:
            state[place] = Known(shaped(op.result, place.shape), other_of(op), True)
        elif (tile := self.as_loaded(known, place, op)) is not None:
            self.found.loads[op] = shaped(tile, shape_of(op.result), place.shape)

    def store(self, op: memory.StoreOp, state: State) -> None:
        """What may have been overwritten is not known any more."""
        self.forget(state, [op])
        place = self.places.of(op)
        if place.lanes_differ:
            state[place] = Known(shaped(op.value, place.shape), None, False)

    def lookup(self, place: Place, state: State) -> Known | None:
        """What is known of a place, be it as lanes of a larger one, or as the places of its lanes."""
        if place in state:
            return state[place]
        for larger, known in state.items():
            if larger.pointer is place.pointer and len(larger.axes) == len(place.axes) + 1:
                for number, lane in _lanes(larger):
                    if larger.lane(number, lane) == place:
                        return replace(known, tile=Lane(known.tile, number, lane))
        for number in dict.fromkeys(number for number, _ in _lanes(place)):
            lanes = [state.get(place.lane(number, lane)) for lane in range(place.axes[number].extent)]
            found = [known for known in lanes if known is not None and not known.where]
            if len(found) == len(lanes):
                kinds = {(known.other, known.was_loaded) for known in found}
                outside = kinds.pop() if len(kinds) == 1 else (None, False)
                return Known(Assembled(tuple(known.tile for known in found), number), *outside)
        return None

    def forget(self, state: State, writes: Iterable[Operation]) -> None:
        """Forget what writes may change."""
        for write in writes:
            assert isinstance(write, memory.AccessOp)
            for place in [place for place in state if self.may_change(write, place)]:
                del state[place]

    def may_change(self, write: memory.AccessOp, place: Place) -> bool:
        """Whether a write may touch a place."""
        if not isinstance(write, memory.WriteOp):
            return write.view_op.pointer is place.pointer
        return not self.places.apart(self.places.of(write), place)

    def as_loaded(self, known: Known, place: Place, op: memory.LoadOp) -> Tile | None:
        """What an access of the place gives; None where its masked lanes cannot be told."""
        if not place.is_masked or (known.was_loaded and known.other == other_of(op)):
            return known.tile
        indices = [axis.mask[0] for axis in place.axes if axis.mask is not None]
        return Masked(known.tile, op) if all(map(self.indices.at_least_zero, indices)) else None

    @property
    def indices(self) -> Indices:
        """The index values of the kernel."""
        return self.places.indices

    # -- branches

    def branch(self, op: structure.IfOp, state: State) -> None:
        """After a branch a place holds one tile or the other, if both can be had outside of it."""
        then, otherwise = dict(state), dict(state)
        self.block(op.then.block, then)
        if op.otherwise is not None:
            self.block(op.otherwise.block, otherwise)
        state.clear()
        for place in {**then, **otherwise}:
            known = self.after_branch(op, self.lookup(place, then), self.lookup(place, otherwise))
            if known is not None:
                state[place] = known

    def after_branch(self, op: structure.IfOp, one: Known | None, other: Known | None) -> Known | None:
        """What is known of a place behind a branch."""
        then, otherwise = op.then.block, _block(op.otherwise)
        if one is not None and other is not None:
            alike = (one.other, one.was_loaded) == (other.other, other.was_loaded)
            outside = (one.other, one.was_loaded) if alike else (None, False)
            if one.tile is other.tile and one.where == other.where:
                return Known(one.tile, *outside, one.where)
            if not one.where and not other.where:
                if self.can_leave(one.tile, then) and self.can_leave(other.tile, otherwise):
                    return Known(Merged(op, one.tile, other.tile), *outside)
        if one is not None and self.can_leave(one.tile, then):
            return replace(one, tile=Taken(op, one.tile), where=((op, True), *one.where))
        if other is not None and self.can_leave(other.tile, otherwise):
            return replace(other, tile=Taken(op, other.tile), where=((op, False), *other.where))
        return None

    def can_leave(self, tile: Tile, block: Block | None) -> bool:
        """Whether a tile can be had before the branch that makes it: no memory is read, nor any loop run for it."""
        match tile:
            case _ if block is None:
                return True
            case Merged(branch, then, otherwise):
                return all(self.can_leave(each, block) for each in (branch.condition, then, otherwise))
            case Taken(_, inner) | Shaped(inner, _) | Lane(inner, _, _):
                return self.can_leave(inner, block)
            case Assembled(lanes, _):
                return all(self.can_leave(each, block) for each in lanes)
            case Masked(inner, access):
                return self.can_leave(inner, block) and all(self.can_leave(each, block) for each in mask_values(access))
            case Carried():
                return True
            case SSAValue():
                return self._value_can_leave(tile, block)

    def _value_can_leave(self, value: SSAValue, block: Block) -> bool:
        if not is_within(value, block):
            return True
        op = value.owner
        if isinstance(op, memory.LoadOp) and op in self.found.loads:
            return self.can_leave(self.found.loads[op], block)
        if isinstance(op, Block) or not op.has_trait(Pure):
            return False
        return all(self._value_can_leave(operand, block) for operand in op.operands)

    # -- loops

    def loop(self, op: structure.ForOp, state: State) -> None:
        """What no iteration changes stays known; of what each changes, the tile of one may be carried to the next."""
        writes = [inner for inner in op.body.walk() if isinstance(inner, (memory.WriteOp, memory.IndexedWriteOp))]
        before = dict(state)
        self.forget(state, writes)
        active = self.candidates(op, before, {write.view_op.pointer for write in writes})
        while True:
            kept = self.found.copy()
            inside = dict(state)
            inside |= {each.place: Known(each, other_of(each.access), True) for each in active}
            self.block(op.body.block, inside)
            ends = {each: self.at_end(each, inside) for each in active}
            if all(end is not None for end in ends.values()):
                break
            self.found = kept
            active = [each for each in active if ends[each] is not None]
        for each, end in ends.items():
            assert end is not None
            self.found.carried[each] = end

    def candidates(self, op: structure.ForOp, before: State, written: set[SSAValue]) -> list[Carried]:
        """What might be carried: places that are loaded, and written by some iteration."""
        accesses: dict[Place, list[memory.LoadOp]] = {}
        for access in op.body.walk():
            if isinstance(access, memory.LoadOp) and access.view_op.pointer in written:
                accesses.setdefault(self.places.of(access), []).append(access)
        found = (
            self.candidate(op, place, each, before)
            for place, each in accesses.items()
            if self.is_of_iteration(place, op)
            and all(can_precede(value, op) for access in each for value in (access.view, *access.indices))
        )
        return [each for each in found if each is not None]

    def is_of_iteration(self, place: Place, op: structure.ForOp) -> bool:
        """Whether a place depends on the counter alone of what a loop makes, its masks on nothing of that."""
        symbols, counter = self.indices.symbols, self.indices.counter(op).name
        varying = {name for name in place.symbols & symbols.keys() if self.indices.is_inside(symbols[name], op)}
        masks = [axis.mask for axis in place.axes if axis.mask is not None]
        masked = any(self.indices.varies_in(each, op) for mask in masks for each in mask)
        return varying <= {counter} and not masked and math.prod(axis.extent for axis in place.axes) <= self.limit

    def candidate(
        self, op: structure.ForOp, place: Place, accesses: Sequence[memory.LoadOp], before: State
    ) -> Carried | None:
        """A place with what it holds before the first iteration; None if that cannot be said."""
        counter, low = self.indices.counter(op).name, self.indices.of(op.low)
        first = self.lookup(place.at(counter, low), before)
        if first is not None and not first.where and (tile := self.as_loaded(first, place, accesses[0])) is not None:
            return Carried(op, accesses[0], place, tile)
        runs = [self.runs_first(access, op) for access in accesses]
        if True in runs:
            may_load = self.indices.trips(op) or is_for_memory(op) or self.places.is_there(place)
            return Carried(op, accesses[runs.index(True)], place, None) if may_load else None
        return None if None in runs else Carried(op, accesses[0], place, None, never=True)

    def runs_first(self, access: memory.LoadOp, op: structure.ForOp) -> bool | None:
        """Whether the first iteration loads a place: for certain, certainly not, or None."""
        counter, low = self.indices.counter(op), self.indices.of(op.low)
        answer: bool | None = True
        region = access.parent_region()
        while region is not None and region is not op.body:
            around = region.parent_op()
            if not isinstance(around, structure.IfOp):
                return None
            condition = self.indices.condition(around.condition)
            holds = None if condition is None else self.indices.decide_at(condition, counter, low)
            if holds is not None and holds != (region is around.then):
                return False
            answer = answer if holds is not None else None
            region = around.parent_region()
        return answer

    def at_end(self, carried: Carried, state: State) -> Tile | None:
        """The tile that the next iteration finds."""
        counter = self.indices.counter(carried.loop)
        following = carried.place.at(counter.name, counter + carried.loop.step_size)
        known = self.lookup(following, state)
        if known is None or not all(self.goes(carried.loop, *each) for each in known.where):
            return None
        known = replace(known, tile=self.before_next(known.tile, carried.loop))
        return None if _is_made_up(known.tile) else self.as_loaded(known, following, carried.access)

    def before_next(self, tile: Tile, loop: structure.ForOp) -> Tile:
        """A tile where there is a next iteration: a branch that is taken then gives its own."""
        match tile:
            case Merged(branch, then, otherwise):
                if self.goes(loop, branch, True):
                    return Taken(branch, self.before_next(then, loop))
                return self.before_next(otherwise, loop) if self.goes(loop, branch, False) else tile
            case _:
                return tile

    def goes(self, loop: structure.ForOp, branch: structure.IfOp, holds: bool) -> bool:
        """Whether a branch of an iteration that is not the last one is known to go one way."""
        condition = self.indices.condition(branch.condition)
        counter, high = self.indices.counter(loop), self.indices.of(loop.high)
        if condition is None:
            return False
        is_next = compare("<", counter + loop.step_size, high)
        return self.places.cannot_hold(conj(is_next, negate(condition) if holds else condition))


def _is_made_up(tile: Tile) -> bool:
    """Whether a tile may be one that stands for what no first iteration asks for."""
    match tile:
        case Merged(_, then, otherwise):
            return _is_made_up(then) or _is_made_up(otherwise)
        case Masked(inner, _) | Taken(_, inner) | Shaped(inner, _) | Lane(inner, _, _):
            return _is_made_up(inner)
        case Assembled(lanes, _):
            return any(map(_is_made_up, lanes))
        case Carried():
            return tile.never
        case SSAValue():
            return False


def shaped(tile: Tile, shape: tuple[int, ...], own: tuple[int, ...] | None = None) -> Tile:
    """A tile with other axes of extent 1; of a value its own shape is known."""
    if own is None:
        assert isinstance(tile, SSAValue)
        own = shape_of(tile)
    return tile if own == shape else Shaped(tile, shape)


def _lanes(place: Place) -> Iterator[tuple[int, int]]:
    """The lanes of the axes of a place that may be taken apart: the number of the axis, and of the lane."""
    for number, axis in enumerate(place.axes):
        if axis.mask is None and 1 < axis.extent <= MOST_LANES:
            yield from ((number, lane) for lane in range(axis.extent))


def other_of(op: memory.LoadOp) -> Attribute | None:
    """What a load gives in masked lanes; None is zero."""
    return op.other


def mask_values(access: memory.LoadOp) -> list[SSAValue]:
    """The values that the mask of a load is made of."""
    return [*access.indices, *access.view_op.dynamic]


def is_for_memory(op: structure.ForOp) -> bool:
    """Whether a loop runs for its stores alone, so that it may stand in a branch."""
    return all(result.first_use is None for result in op.carried)


def _block(region: Region | None) -> Block | None:
    return None if region is None else region.block
