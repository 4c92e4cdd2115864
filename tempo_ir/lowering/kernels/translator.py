"""From a body of sdg ops to one tile kernel: every value is computed at the coordinates that its reader asks for.

The translation pulls. A sink (a row written) asks for its value at the coordinates of a block; an elementwise op asks
for its operands at the same ones, a transpose permutes them, a slice shifts them, a sum opens a loop over the axis
and asks there, a read of memory becomes a load. What was asked before at the same coordinates is shared, and stands
outside of the loops in which it does not vary (`scopes`).

Which axes are lanes is decided before; where an op finds that it cannot be read so, it raises `Refine`, and the
kernel is built again with the axis read point by point, in segments, or in digits. An op that has no tile form at all
raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from xdsl.dialects.builtin import NameLoc, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tempo_ir.dialects.loop import FoldOp
from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.sdg.locations import op_text
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.builder import Value, number_attribute
from tempo_ir.dialects.tile.shape import ConstOp
from tempo_ir.dialects.types import Extent, Shape, element, shape_of
from tempo_ir.index import Const, Expr, as_expr, compare, maximum, minimum, simplify
from tempo_ir.index.expr import TRUE, Relation
from tempo_ir.lowering.kernels.blocks import Blocks
from tempo_ir.lowering.kernels.layout import Array, Axis
from tempo_ir.lowering.kernels.scopes import ScopedBuilder
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Lane, Tile, combine, filled, lanes_of, read_as
from tempo_ir.lowering.kernels.views import Accessed, ViewAxis, add_lane


class Unsupported(Exception):
    """The body has no tile form; the message says which op and why."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What the grid of a kernel is to be that runs in the programs of a loop: `block` of the `rows`, an axis of what it
    writes, each; None where one program has everything."""

    rows: int | None = None
    block: int = 0


@dataclass(frozen=True)
class AxisKey:
    """An axis that a kernel iterates over: of a sink (a group of writes), or reduced by an op."""

    owner: object
    axis: int
    digit: str = ""


class Refine(Exception):
    """An axis cannot be iterated as it is: read it point by point, in segments cut at `cuts`, in digits of `factor`, in
    the order of the slots of a `ring`, or not in that of a ring since something on it has an order (`ordered`)."""

    def __init__(
        self,
        key: AxisKey,
        *,
        points: bool = False,
        cuts: Sequence[Expr] = (),
        factor: int = 0,
        ring: tuple[Expr, int] | None = None,
        ordered: bool = False,
    ):
        cut_texts = [str(cut) for cut in cuts]
        super().__init__(f"axis {key.axis}: {points=}, cuts={cut_texts}, {factor=}, {ring=}, {ordered=}")
        self.key = key
        self.points = points
        self.cuts = tuple(cuts)
        self.factor = factor
        self.ring = ring
        self.ordered = ordered


@dataclass
class Decisions:
    """What was learnt about the axes of one kernel."""

    points: set[AxisKey] = field(default_factory=set[AxisKey])
    cuts: dict[AxisKey, tuple[Expr, ...]] = field(default_factory=dict[AxisKey, tuple[Expr, ...]])
    factors: dict[AxisKey, int] = field(default_factory=dict[AxisKey, int])
    rings: dict[AxisKey, tuple[Expr, int]] = field(default_factory=dict[AxisKey, tuple[Expr, int]])
    """Axes that are summed in the order of a ring's slots, with the window's first element and the slots."""
    ordered: set[AxisKey] = field(default_factory=set[AxisKey])

    def learn(self, refine: Refine) -> None:
        """Record a refinement; raises Unsupported if it was known, so that a kernel is built a bounded number of
        times."""
        key = refine.key
        if refine.points and key not in self.points:
            self.points.add(key)
        elif refine.cuts and not set(refine.cuts) <= set(self.cuts.get(key, ())):
            self.cuts[key] = tuple(dict.fromkeys((*self.cuts.get(key, ()), *refine.cuts)))
        elif refine.factor and key not in self.factors:
            self.factors[key] = refine.factor
        elif refine.ring is not None and key not in self.rings and key not in self.ordered:
            self.rings[key] = refine.ring
        elif refine.ordered and key in self.rings:
            del self.rings[key]
            self.ordered.add(key)
        else:
            raise Unsupported(f"the iteration of an axis cannot be refined further ({refine})")


@dataclass(frozen=True, slots=True)
class Source:
    """A tensor in memory: the buffer's pointer in the kernel, its element type and where the elements lie."""

    pointer: Value
    element: Attribute
    array: Array


Emitter = Callable[["Translator", Operation, Coordinates], Tile]
Carried = list[Value]


@dataclass(frozen=True, slots=True)
class Iterated:
    """An axis to iterate over: its extent, and the block where it is a lane (0: point by point)."""

    key: AxisKey
    extent: Extent
    block: int


class Translator:
    """The state of building one kernel. `pull` gives the tile of a value at coordinates."""

    def __init__(
        self,
        builder: ScopedBuilder,
        sources: Mapping[SSAValue, Source],
        emitters: Mapping[type[Operation], Emitter],
        blocks: Blocks,
        decisions: Decisions,
        point: Sequence[Expr] = (),
        counted: Mapping[str, Expr] = MappingProxyType({}),
        status: Value | None = None,
        fold: Callable[[Translator, SSAValue, Coordinates], Tile] | None = None,
        shared: Mapping[AxisKey, object] = MappingProxyType({}),
        programs: Programs | None = None,
        axis_name: Callable[[object], str | None] = lambda key: None,
    ):
        self.builder = builder
        self.sources = sources
        self.emitters = emitters
        self.blocks = blocks
        self.decisions = decisions
        self._tiles: dict[tuple[SSAValue, Coordinates], Tile] = {}
        self._views: dict[tuple[object, ...], Value] = {}
        self.point = tuple(point)
        self.counted = counted
        self.status = status
        self.failures: list[str] = []
        self.rows: dict[tuple[Operation, Coordinates], tuple[Tile, Tile]] = {}
        """What was computed once per row, by op and row."""
        self.unordered: set[AxisKey] = set()
        """Axes along which elements are only combined, in whatever order."""
        self.fold = fold
        self.shared = shared
        """What reduced axes are the same axis: where one block holds it, all reductions along it share their lane."""
        self.whole: frozenset[AxisKey] = frozenset()
        """Axes that are one axis, and held whole: all of them have one lane."""
        self.axis_name = axis_name
        """What an axis is called, where kernels are read by people."""
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self.aliases: dict[SSAValue, SSAValue] = {}
        """The values of the kernel that the bodies of its folds read."""
        self.programs = programs
        self.inside: dict[Block, int] = {}
        """The bodies of the folds that are open, and within how many loops their values stand."""
        self.in_pass = False
        """Whether what is computed is the scores of a weighted sum, whose queries are held meanwhile."""
        self.stretches: dict[AxisKey, tuple[Expr, Expr]] = {}
        """From where to where elements of an axis count."""
        self.together: dict[Operation, tuple[int, ...]] = {}
        """Axes of a sum weighted by a softmax whose points one program computes in one pass."""
        self.dealt: dict[AxisKey, tuple[Expr, int]] = {}
        """Axes of which a program has every so manieth block: the first one, and how many programs share the axis."""
        self.made: dict[SSAValue, tuple[Coordinates, Tile]] = {}
        """Values that are made already, whole along all axes but their rows: who asks for them so gets that tile."""
        self.pinned: dict[AxisKey, Coordinate] = {}
        """Axes of which a sum is to have no more than one block."""
        self.iterators: Mapping[str, Expr] = MappingProxyType({})
        """The counters of the folds that are open."""

    # -- values

    def pull(self, value: SSAValue, coordinates: Sequence[Coordinate]) -> Tile:
        """The value at the coordinates, one per axis."""
        value, at = self.aliases.get(value, value), tuple(coordinates)
        known = self._tiles.get((value, at))
        if known is None and value in self.made:
            known = read_as(*self.made[value], at)
        if known is not None:
            return known
        with self.builder.at(self.depth_of(value, at)):
            tile = self._tiles[value, at] = self._compute(value, at)
        return tile

    def know(self, value: SSAValue, at: Coordinates, tile: Tile) -> None:
        """What a value is at coordinates."""
        self._tiles[value, at] = tile

    def forget(self, values: Iterable[SSAValue]) -> None:
        """Values that are another in the next iteration of a loop, or the next time that it is built."""
        gone = set(values)
        self._tiles = {key: tile for key, tile in self._tiles.items() if key[0] not in gone}
        self.rows = {key: row for key, row in self.rows.items() if gone.isdisjoint(key[0].results)}

    def _compute(self, value: SSAValue, at: Coordinates) -> Tile:
        source = self.sources.get(value)
        if source is not None:
            return self.load(source, at)
        op = maker_of(value)
        if op is None:
            raise Unsupported("the body reads a value from outside")
        if isinstance(op, FoldOp) and self.fold is not None:
            return self.fold(self, value, at)
        emitter = self.emitters.get(type(op))
        if emitter is None:
            raise Unsupported(f"{op.name} has no tile form")
        outer, self.builder.location = self.builder.location, NameLoc(StringAttr(op.name), op.location)
        tile = emitter(self, op, at)
        self.builder.location = outer
        if tile.value.ssa.name_hint is None:
            tile.value.ssa.name_hint = value.name_hint
        return tile

    def depth_of(self, value: SSAValue, at: Coordinates) -> int:
        """The number of open loops within which a value is to be computed that is read at the coordinates."""
        value = self.aliases.get(value, value)
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return max(self.depth(at), 0 if block is None else self.inside.get(block, 0))

    def depth(self, coordinates: Coordinates) -> int:
        """The number of open loops within which something varies that is read at the coordinates."""
        expressions: list[Expr | int] = [coordinate.start for coordinate in coordinates]
        for lane in lanes_of(coordinates):
            expressions += [lane.first, lane.limit]
        return max(map(self.builder.depth, expressions), default=0)

    def constant(self, number: float, element_type: Attribute) -> Tile:
        """A number, as a scalar."""
        return Tile(self.builder.const(number, element_type))

    def constant_tile(self, number: float, element_type: Attribute, extents: Sequence[int]) -> Value:
        """A tile filled with a number."""
        if not extents:
            return self.builder.const(number, element_type)
        return self.builder.add(ConstOp(number_attribute(number, element_type), tuple(extents)))

    # -- memory

    def _access(self, source: Source, at: Coordinates, positions: tuple[int, Tile] | None = None) -> Accessed:
        """A view of the memory for the coordinates, and what of it to access.

        Each lane is one axis of the view: its size is the lane's limit, so that padding is masked; axes that are read
        through one lane (a diagonal) add their strides. `positions` replaces the coordinate of one axis by the
        indices in a tile.
        """
        offset = source.array.offset
        axes: list[ViewAxis] = []
        for number, (axis, coordinate) in enumerate(zip(source.array.axes, at, strict=True)):
            if positions is not None and positions[0] == number:
                axes.append(ViewAxis(axis.extent, axis.stride, Const(0), positions[1].lanes[0], positions[1].value))
                continue
            axis, coordinate = self._unwrapped(axis, coordinate)
            fixed = coordinate.start if coordinate.lane is None else self.builder.simplify(coordinate.shift)
            if self.builder.is_local(fixed):
                axes.append(ViewAxis(axis.extent, axis.stride, fixed))
            else:
                offset = offset + fixed * axis.stride
            if coordinate.lane is not None:
                add_lane(axes, coordinate.lane, axis.stride * coordinate.step)
        lanes = [axis.lane for axis in axes if axis.lane is not None]
        if len(set(lanes)) != len(lanes):
            raise Refine(self.key_of(lanes[0]), points=True)
        places = [self._place(axis) for axis in axes]
        return Accessed(self._view(source, offset, axes), places, tuple(lanes))

    def _place(self, axis: ViewAxis) -> Value | tuple[Value, int]:
        if axis.positions is not None:
            return axis.positions
        if axis.lane is None:
            return self.builder.index(axis.start)
        return self.first(axis.lane), axis.lane.size

    def _view(self, source: Source, offset: Expr, axes: Sequence[ViewAxis]) -> Value:
        sizes, strides = tuple(axis.size for axis in axes), tuple(axis.stride for axis in axes)
        key = (source.pointer.ssa, offset, sizes, strides)
        known = self._views.get(key)
        if known is not None:
            return known
        with self.builder.at(max(map(self.builder.depth, [offset, *sizes, *strides]))):
            extents = [self.builder.extent(size) for size in sizes]
            steps = [self.builder.extent(stride) for stride in strides]
            start = None if offset == Const(0) else self.builder.index(offset)
            view = self._views[key] = self.builder.view(source.pointer, extents, steps, start)
        return view

    def _unwrapped(self, axis: Axis, coordinate: Coordinate) -> tuple[Axis, Coordinate]:
        """Replace an axis that wraps round a ring by the stretch of slots that the coordinate stands in."""
        lane = coordinate.lane
        ring = None if lane is None else self.decisions.rings.get(self.key_of(lane))
        if lane is not None and ring is not None:
            if axis.wrap != ring or coordinate.step != 1 or self.builder.simplify(coordinate.shift) != Const(0):
                raise Refine(self.key_of(lane), ordered=True)
            return Axis(axis.extent, axis.stride), coordinate
        if axis.wrap is None:
            return axis, coordinate
        first, slots = axis.wrap
        plain = Axis(axis.extent, axis.stride)
        if lane is None:
            return plain, Coordinate(self.builder.simplify((coordinate.start * axis.step + first) % slots))
        key = self.key_of(lane)
        if axis.filled and key in self.unordered and key not in self.decisions.ordered:
            raise Refine(key, ring=axis.wrap)
        if coordinate.step != 1 or axis.step != 1:
            raise Refine(self.key_of(lane), points=True)
        shift = self.builder.simplify(coordinate.shift)
        if self.builder.is_local(shift):
            raise Refine(self.key_of(lane), points=True)
        slot = (first + shift) % slots
        turn = simplify(slots - slot)
        if self.before(lane, turn):
            return plain, Coordinate(slot + lane.first, lane)
        if self.after(lane, turn):
            return plain, Coordinate(lane.first - turn, lane)
        raise Refine(self.key_of(lane), cuts=[turn])

    def load(self, source: Source, at: Coordinates) -> Tile:
        """Read memory at the coordinates; padding is zero."""
        accessed = self._access(source, at)
        lanes = accessed.lanes
        return Tile(self.builder.load(accessed.view, *accessed.places), lanes, frozenset(lanes))

    def gather(self, source: Source, at: Coordinates, axis: int, positions: Tile) -> Tile:
        """Read memory with the indices on one axis taken from a tile of one lane."""
        accessed = self._access(source, at, (axis, positions))
        return Tile(self.builder.gather(accessed.view, *accessed.places), accessed.lanes)

    def store(self, source: Source, at: Coordinates, tile: Tile) -> None:
        """Write the tile at the coordinates; padding is not written."""
        accessed = self._access(source, at)
        self.builder.store(self.filled(tile, accessed.lanes), accessed.view, *accessed.places)

    def add(self, target: Source, at: Coordinates, tile: Tile) -> None:
        """Add the tile to memory at the coordinates."""
        accessed = self._access(target, at)
        self.builder.atomic_add(self.filled(tile, accessed.lanes), accessed.view, *accessed.places)

    def first(self, lane: Lane) -> Value:
        """The first index of a lane."""
        return self.builder.first(lane.first, self.axis_name(lane.axis))

    def filled(self, tile: Tile, lanes: tuple[Lane, ...]) -> Value:
        """The tile stretched to `lanes`."""
        return filled(self.builder, tile, lanes)

    # -- padding

    def masked(self, tile: Tile, lane: Lane, identity: float) -> Tile:
        """The tile with `identity` in the padding of a lane."""
        if lane.full or (identity == 0 and lane in tile.zero_padded):
            return tile
        inside = self.builder.in_range(self.first(lane), lane.size, self.builder.index(lane.limit))
        masked = combine(
            self.builder,
            ew.SelectOp,
            Tile(inside, (lane,)),
            tile,
            Tile(self.builder.const(identity, tile.value.element)),
        )
        return Tile(masked.value, masked.lanes, frozenset({lane}) if identity == 0 else frozenset())

    # -- run-time errors

    def check(self, wrong: Tile, message: str, op: Operation, values: Tile | None = None) -> None:
        """Report where a flag is set in an element that is not padding.

        The kernel leaves the number of the message, and the greatest of the i64 `values` that are wrong.
        """
        assert self.status is not None
        for lane in wrong.lanes:
            wrong = self.masked(wrong, lane, 0)
        flag = wrong.value
        for _ in wrong.lanes:
            flag = self.builder.reduce("or", flag, 0)
        told = f"{message}, in {op_text(op)}"
        if told not in self.failures:
            self.failures.append(told)
        number = self.failures.index(told) + 1
        with self.builder.when(flag):
            status = self.builder.view(self.status, [number + 1], [1])
            self.builder.store(self.builder.const(number, i64), status, 0)
            if values is not None:
                self.builder.store(self._greatest(wrong, values), status, number)

    def _greatest(self, chosen: Tile, values: Tile) -> Value:
        """The greatest of the i64 values that are chosen."""
        least = Tile(self.builder.const(-(2**63), i64))
        greatest = combine(self.builder, ew.SelectOp, chosen, values, least)
        value = greatest.value
        for _ in greatest.lanes:
            value = self.builder.reduce("max", value, 0)
        return value

    # -- iteration

    def key_of(self, lane: Lane) -> AxisKey:
        """The axis that a lane runs along."""
        assert isinstance(lane.axis, AxisKey)
        return lane.axis

    def digits(self, axis: Iterated) -> list[tuple[Iterated, int]]:
        """The axes that stand for one, and what an index of each counts: `16*o + i` is iterated over o and i."""
        factor = self.decisions.factors.get(axis.key)
        if factor is None:
            return [(axis, 1)]
        outer = AxisKey(axis.key.owner, axis.key.axis, axis.key.digit + "o")
        inner = AxisKey(axis.key.owner, axis.key.axis, axis.key.digit + "i")
        extent = axis.extent
        if isinstance(extent, int) and extent % factor:
            raise Unsupported(f"an axis of {extent} is no whole rows of {factor}")
        rows = extent // factor if isinstance(extent, int) else simplify(extent // factor)
        block = min(factor, axis.block)
        parts = [(piece, weight * factor) for piece, weight in self.digits(Iterated(outer, rows, 0))]
        return parts + self.digits(Iterated(inner, factor, block))

    def segments(self, key: AxisKey, extent: Extent) -> list[tuple[Extent, Extent]]:
        """The stretches of an axis between its cuts."""
        bounds: list[Expr] = [Const(0)]
        cuts = self.decisions.cuts.get(key, ())
        if all(isinstance(cut, Const) for cut in cuts):
            cuts = tuple(sorted(cuts, key=lambda cut: cut.value if isinstance(cut, Const) else 0))
        for cut in cuts:
            clipped = minimum(cut, as_expr(extent))
            bounds.append(simplify(maximum(bounds[-1], clipped), self.builder.facts))
        bounds.append(as_expr(extent))
        stretches = [(low, high) for low, high in pairwise(bounds) if low != high]
        if key in self.stretches:
            first, last = self.stretches[key]
            within = ((maximum(first, low), minimum(last, high)) for low, high in stretches)
            stretches = [(self.builder.simplify(low), self.builder.simplify(high)) for low, high in within]
        return [(plain_extent(low), plain_extent(high)) for low, high in stretches]

    def over(
        self,
        axes: Sequence[Iterated],
        initial: Sequence[tuple[float, Attribute, tuple[int, ...]]],
        step: Callable[[list[Coordinate], Carried | None], Carried],
        *,
        fitted: bool = False,
    ) -> Carried:
        """Run `step` at every block of the axes, carrying values on; `initial` says what they are before the first.

        `step` gets None instead of carried values where nothing was done before, so that a single block needs no start.
        With `fitted` a segment that is shorter than a block has a lane of its own length: nothing carried has the lane.
        """

        def start() -> Carried:
            return [self.constant_tile(number, kind, extents) for number, kind, extents in initial]

        def run(position: int, at: list[Coordinate], carried: Carried | None) -> Carried | None:
            if position == len(axes):
                return step(at, carried)
            axis = axes[position]
            if axis.key in self.pinned:
                return run(position + 1, [*at, self.pinned[axis.key]], carried)
            digits = self.digits(axis)

            def enter(digit: int, start_: Expr, lane: Lane | None, carried: Carried | None) -> Carried | None:
                if digit == len(digits):
                    return run(position + 1, [*at, Coordinate(self.builder.simplify(start_), lane)], carried)
                piece, weight = digits[digit]
                for low, high in self.segments(piece.key, piece.extent):
                    carried = self._blocks(
                        piece,
                        low,
                        high,
                        carried,
                        start,
                        lambda c, kept: enter(digit + 1, start_ + c.start * weight, c.lane or lane, kept),
                        fitted,
                        self.dealt.get(axis.key) if digit == 0 else None,
                    )
                return carried

            return enter(0, Const(0), None, carried)

        result = run(0, [], None)
        return start() if result is None else result

    def _blocks(
        self,
        axis: Iterated,
        low: Extent,
        high: Extent,
        carried: Carried | None,
        start: Callable[[], Carried],
        body: Callable[[Coordinate, Carried | None], Carried | None],
        fitted: bool,
        dealt: tuple[Expr, int] | None = None,
    ) -> Carried | None:
        """Run `body` at the blocks (or points) of `[low, high)`, in a loop unless there is one only; of those dealt out
        at the ones that the program has."""
        extent = high - low if isinstance(low, int) and isinstance(high, int) else simplify(as_expr(high) - low)
        if extent == 0 or extent == Const(0):
            return carried
        block = 0 if axis.key in self.decisions.points else axis.block
        if fitted and block and isinstance(extent, int) and axis.key in self.decisions.cuts:
            block = min(block, self.blocks.fitted(extent))
        alone = isinstance(extent, int) and extent <= max(block, 1)
        if dealt is None and (alone or self._lies_whole(axis.key, extent, block)):
            first = as_expr(low)
            lane = self._whole_lane(Lane(axis.key, first, block, high, low, block == extent)) if block else None
            return body(Coordinate(first, lane), carried)
        if carried is None:
            carried = start()
        first, programs = dealt or (Const(0), 1)
        begin, step = as_expr(low) + first * (block or 1), programs * (block or 1)
        name = self.axis_name(axis.key)
        with self.builder.loop(self.builder.index(begin), self.builder.index(high), step, carried, name) as loop:
            counter = self.builder.counter(loop.index, as_expr(low), as_expr(high))
            full = bool(block) and isinstance(extent, int) and extent % block == 0
            lane = Lane(axis.key, counter, block, high, low, full) if block else None
            loop.carry(*(body(Coordinate(counter, lane), loop.carried) or []))
        return loop.results

    def _lies_whole(self, key: AxisKey, extent: Extent, block: int) -> bool:
        """Whether one block is known to hold an open axis along which there are several reductions."""
        return bool(block) and key in self.shared and self.holds("<=", extent, block)

    def _whole_lane(self, lane: Lane) -> Lane:
        """The lane, or the one of another reduction along the same axis."""
        axis = self.shared.get(self.key_of(lane))
        return lane if axis is None else self._lanes.setdefault((axis, lane.first, lane.size, lane.limit), lane)

    def share_whole(self, keys: Iterable[AxisKey]) -> None:
        """The axes are one, and one block holds it."""
        self.whole = frozenset(keys)
        self.shared = {**self.shared, **dict.fromkeys(self.whole, self.whole)}

    def needs_order(self, lane: Lane) -> None:
        """Something depends on where along the axis an element is: the slots of a ring are no order for it."""
        if self.key_of(lane) in self.decisions.rings:
            raise Refine(self.key_of(lane), ordered=True)

    # -- comparisons

    def holds(self, op: Relation, lhs: Extent, rhs: Extent) -> bool:
        """Whether a comparison is known to hold wherever the kernel is."""
        return simplify(compare(op, as_expr(lhs), as_expr(rhs)), self.builder.facts) == TRUE

    def before(self, lane: Lane, cut: Expr) -> bool:
        """Whether every index of the lane is known to be below `cut`."""
        return self.holds("<=", lane.limit, cut)

    def after(self, lane: Lane, cut: Expr) -> bool:
        """Whether no index of the lane is known to be below `cut`; a lane without indices is not."""
        return self.holds(">=", lane.low, minimum(cut, as_expr(lane.limit)))

    def shape(self, value: SSAValue) -> Shape:
        """The extents of a value."""
        return shape_of(value.type)

    def element(self, value: SSAValue) -> Attribute:
        """The element type of a value."""
        return element(value.type)


def plain_extent(extent: Expr) -> Extent:
    """A number where the extent is one."""
    return extent.value if isinstance(extent, Const) else extent
