"""Coordinates and labelled tiles: which elements of a tensor a kernel holds at once, and along which axes of a tile.

A tensor of any rank is computed at *coordinates*, one per axis: a point, or the points of a *lane*, a block of
indices that makes an axis of the tile. At most two lanes are in use at a time, since a tile has rank 2 at most; two
axes read through one lane are a diagonal. A `Tile` names the lane of each of its axes, so that tiles are aligned by
lane, not by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.builder import KernelBuilder, Number, Value
from tempo_ir.dialects.types import Extent
from tempo_ir.index import Const, Expr


@dataclass(frozen=True, eq=False, slots=True)
class Lane:
    """A block of `size` indices from `first`; those not below `limit` are padding. `axis` says what it runs along.

    `full` is True where no index can be padding.
    """

    axis: object
    first: Expr
    size: int
    limit: Extent
    low: Extent = 0
    full: bool = False


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where an axis is read: `start` where there is no lane, else `start + step * k` for each k of the lane."""

    start: Expr
    lane: Lane | None = None
    step: int = 1

    @property
    def shift(self) -> Expr:
        """What is added to `step` times the index of the lane."""
        assert self.lane is not None
        return self.start - self.lane.first * self.step


Coordinates = tuple[Coordinate, ...]
ORIGIN = Coordinate(Const(0))


def lanes_of(coordinates: Iterable[Coordinate]) -> tuple[Lane, ...]:
    """The lanes that are read through, by first use."""
    return tuple(dict.fromkeys(c.lane for c in coordinates if c.lane is not None))


def extents_of(lanes: Iterable[Lane]) -> tuple[int, ...]:
    """The shape of a tile over the lanes."""
    return tuple(lane.size for lane in lanes)


@dataclass(frozen=True, slots=True)
class Tile:
    """A value of the kernel and the lane of each of its axes; a scalar has none.

    `zero_padded` holds the lanes along which padding is known to be zero.
    """

    value: Value
    lanes: tuple[Lane, ...] = ()
    zero_padded: frozenset[Lane] = frozenset()


def _is_alike(one: Lane | None, other: Lane | None) -> bool:
    """Whether two lanes are of the same indices, of whatever axis."""
    if one is None or other is None:
        return one is other
    return (one.first, one.size, one.limit, one.low) == (other.first, other.size, other.limit, other.low)


def read_as(places: Coordinates, tile: Tile, at: Coordinates) -> Tile | None:
    """The tile of a value that was read at some places as one read at others, if these are the same indices, with the
    lanes of the latter."""
    lanes: dict[Lane, Lane] = {}
    for asked, place in zip(at, places, strict=True):
        if (asked.start, asked.step) != (place.start, place.step) or not _is_alike(asked.lane, place.lane):
            return None
        if asked.lane is not None and place.lane is not None:
            lanes[place.lane] = asked.lane
    if len(set(lanes.values())) != len(lanes):
        return None
    padded = frozenset(lanes[lane] for lane in tile.zero_padded)
    return Tile(tile.value, tuple(lanes[lane] for lane in tile.lanes), padded)


def aligned(tile: Tile, lanes: tuple[Lane, ...]) -> Value:
    """The tile with its axes in the order of `lanes`, of extent 1 where it does not vary; scalars stay scalars."""
    if tile.lanes == lanes or not tile.lanes:
        return tile.value
    if len(tile.lanes) == 2:
        return tile.value.t
    position = lanes.index(tile.lanes[0])
    return tile.value[:, None] if position == 0 else tile.value[None, :]


def filled(builder: KernelBuilder, tile: Tile, lanes: tuple[Lane, ...]) -> Value:
    """The tile stretched to all of `lanes`, as stores, dots and loops need it."""
    value = aligned(tile, lanes)
    return value.broadcast(*extents_of(lanes)) if lanes else value


def common_lanes(tiles: Sequence[Tile], order: tuple[Lane, ...] = ()) -> tuple[Lane, ...]:
    """The lanes of all tiles, in the order of the first tile that has most of them; where none has all in `order`."""
    widest = max((tile.lanes for tile in tiles), key=len, default=())
    if len(widest) == 1 and set(order) == {lane for tile in tiles for lane in tile.lanes}:
        widest = order
    return tuple(dict.fromkeys([*widest, *(lane for tile in tiles for lane in tile.lanes)]))


def combine(
    builder: KernelBuilder,
    operation: type[ew.UnaryOp | ew.BinaryOp | ew.SelectOp],
    *operands: Tile | Number,
    order: tuple[Lane, ...] = (),
) -> Tile:
    """Apply an elementwise operation to tiles that are aligned lane by lane (`common_lanes`)."""
    tiles = [operand for operand in operands if isinstance(operand, Tile)]
    lanes = common_lanes(tiles, order)
    values = [aligned(operand, lanes) if isinstance(operand, Tile) else operand for operand in operands]
    return Tile(builder.apply(operation, *values), lanes)
