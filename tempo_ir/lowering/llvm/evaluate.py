"""
Tile values as functions of their index. A value that is not in memory is computed where it is used, at the points that
the user asks for: `Evaluator.at(value, points)`.

A point has one coordinate per axis of the tile. A coordinate is one position, or, on at most one axis, the consecutive
positions of a vector's lanes. The last vector of an axis may reach past the extent: what those lanes hold means
nothing, so loads mask them off, writes too, and reductions replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.tile.attributes import shape_of
from tempo_ir.index.hashing import HashedOnce
from tempo_ir.lowering.llvm.address import ZERO, Bounds, Linear, linear, materialize
from tempo_ir.lowering.llvm.scratch import Scratch
from tempo_ir.lowering.llvm.text import Register, Text

if TYPE_CHECKING:
    from tempo_ir.dialects.tile.shape import DotOp
    from tempo_ir.lowering.llvm.access import Access
    from tempo_ir.lowering.llvm.ahead import Ahead, NextLaunch


@dataclass(frozen=True, slots=True)
class At(HashedOnce):
    """A coordinate: one position, or with `lane` the positions from there on, one per lane."""

    position: Linear
    lane: bool = False

    __hash__ = HashedOnce.__hash__


Point = tuple[At, ...]

ORIGIN = At(ZERO)

Handler = Callable[["Evaluator", SSAValue, Sequence[Point]], list[Register]]
"""Computes a result of one class of op at points."""


@dataclass(frozen=True)
class Part:
    """A piece of what a dot contracts, and the sums of the pieces before it, of the points from `origin` on."""

    start: Linear
    depth: int
    sums: Scratch
    origin: tuple[Linear, Linear]

    def place(self, point: Point) -> Point:
        """Where the sum of a point is kept."""
        return tuple(At(at.position - first, at.lane) for at, first in zip(point, self.origin, strict=True))


@dataclass
class Evaluator:
    """
    `environment` holds what has been computed: scratch memory of tiles, registers of scalars, sums of `index` scalars.
    `bounds` is what is known of addresses here, `accesses` the blocks of memory that were worked out before.
    """

    text: Text
    handlers: Mapping[type[Operation], Handler]
    bounds: Bounds
    environment: dict[SSAValue, Scratch | Register | Linear] = field(
        default_factory=dict[SSAValue, "Scratch | Register | Linear"]
    )
    frames: list[dict[tuple[SSAValue, Point], Register]] = field(
        default_factory=lambda: [dict[tuple[SSAValue, Point], Register]()]
    )

    called: frozenset[type[Operation]] = frozenset()
    """The elementary functions that are called instead of written out."""
    named: dict[Operation, tuple[tuple[SSAValue, ...], tuple[SSAValue, ...], SSAValue | None]] = field(
        default_factory=dict[Operation, tuple[tuple[SSAValue, ...], tuple[SSAValue, ...], "SSAValue | None"]]
    )
    """The scalars that accesses name: where they start, the sizes and strides of their memory, its offset."""
    accesses: dict[Hashable, Access] = field(default_factory=dict[Hashable, "Access"])
    ahead: Ahead | None = None
    """What products ask for, inside of a loop."""
    next_launch: NextLaunch | None = None
    """What they ask for beside that."""
    parts: dict[DotOp, Part] = field(default_factory=dict["DotOp", Part])
    """The dots of which only a piece is computed now."""
    streams: bool = False
    """Do operands come from memory rather than from a cache?"""
    near: bool = False
    """Do they come from a cache near by?"""
    foresees_rows: bool = True
    """Does the processor ask memory for rows that come one after the other by itself?"""
    backwards: Register | None = None
    """Are the outermost blocks of a product taken from the last to the first? None: they are not."""

    @property
    def lanes(self) -> int:
        """Lanes of a vector."""
        return self.text.lanes

    def at(self, value: SSAValue, points: Sequence[Point]) -> list[Register]:
        """The value at the points; what was computed for a point before, here or in an enclosing loop, is reused."""
        known: dict[Point, Register] = {}
        missing: list[Point] = []
        for point in points:
            if point in known:
                continue
            register = self._remembered(value, point)
            if register is not None:
                known[point] = register
            elif point not in missing:
                missing.append(point)
        if missing:
            for point, register in zip(missing, self.compute(value, missing), strict=True):
                known[point] = register
                self.remember(value, point, register)
        return [known[point] for point in points]

    def _remembered(self, value: SSAValue, point: Point) -> Register | None:
        key = value, point
        for frame in reversed(self.frames):
            if (register := frame.get(key)) is not None:
                return register
        return None

    def remember(self, value: SSAValue, point: Point, register: Register) -> None:
        """Reuse `register` for this value at this point as long as the innermost frame is open."""
        self.frames[-1][value, point] = register

    def compute(self, value: SSAValue, points: Sequence[Point]) -> list[Register]:
        """As `at`, but computed anew."""
        known = self.environment.get(value)
        if isinstance(known, Scratch):
            return [known.read(point) for point in points]
        if isinstance(known, Linear):
            return [materialize(self.text, known)] * len(points)
        if known is not None:
            return [known] * len(points)
        maker = maker_of(value)
        assert maker is not None, f"argument {value} is not in the environment"
        return self.handlers[type(maker)](self, value, points)

    def scalar(self, value: SSAValue) -> Register:
        """The value of a scalar."""
        return self.at(value, [()])[0]

    def index(self, value: SSAValue) -> Linear:
        """The value of an `index` scalar as a sum."""
        known = self.environment.get(value)
        return known if isinstance(known, Linear) else linear(self.scalar(value))

    def operand(self, value: SSAValue, points: Sequence[Point]) -> list[Register]:
        """An operand that broadcasts to the shape the points belong to."""
        shape = shape_of(value)
        if not shape:
            return self.at(value, [()]) * len(points)
        return self.at(value, [narrow(point, shape) for point in points])


def for_each_block(
    evaluator: Evaluator,
    extent: int,
    step: int,
    body: Callable[[Linear, int], None],
    backwards: Register | None = None,
) -> None:
    """
    `body(start, count)` over 0 to extent by `step`: full steps in a loop (none for a single one), from the last to the
    first where `backwards` holds, then the rest, whose start is a number. What is computed in a block is forgotten
    after it.
    """
    full = extent // step * step

    def block(start: Linear, count: int) -> None:
        evaluator.frames.append({})
        body(start, count)
        evaluator.frames.pop()

    if full == step:
        block(ZERO, step)
    elif full:
        text = evaluator.text
        with text.loop(text.constant(0, "i64"), text.constant(full, "i64"), step) as counter:
            if backwards is not None:
                counter = text.select(backwards, text.constant(full - step, "i64") - counter, counter)
            evaluator.bounds.learn(counter, lower=[ZERO], upper=[Linear(full - step)])
            block(linear(counter), step)
    if extent - full:
        block(Linear(full), extent - full)


def for_each_block_inside(
    evaluator: Evaluator,
    extent: int,
    inside: Linear,
    step: int,
    body: Callable[[Linear, int], None],
    *,
    cut: bool = False,
) -> Linear:
    """The same over those blocks of 0 to extent, a multiple of `step`, that have one of the first `inside` positions,
    a number of which only a call knows: whole ones in a loop, then one that is not, of which a `cut` one of two
    positions has its first alone. Gives where they end."""
    text = evaluator.text
    end = materialize(text, inside)
    end = text.select(text.compare("slt", end, 0), 0, end)
    end = text.select(text.compare("sgt", end, extent), extent, end)
    whole = end if step == 1 else text.new(f"and {end.typed}, {-step}", "i64")

    def block(start: Register, most: int, count: int) -> None:
        evaluator.bounds.learn(start, lower=[ZERO], upper=[Linear(extent - step), inside - most])
        evaluator.frames.append({})
        body(linear(start), count)
        evaluator.frames.pop()

    with text.loop(text.constant(0, "i64"), whole, step) as counter:
        block(counter, step, step)
    if step == 1:
        return linear(whole)
    with text.when(text.compare("slt", whole, end)):
        block(whole, 1, 1 if cut else step)
    return linear(text.new(f"and {(end + (step - 1)).typed}, {-step}", "i64"))


def narrow(point: Point, shape: tuple[int, ...]) -> Point:
    """The point of an operand of `shape` that broadcasts: position 0 on axes of extent 1."""
    return tuple(ORIGIN if extent == 1 else at for extent, at in zip(shape, point, strict=True))


def has_lane(point: Point) -> bool:
    """Is it the point of a vector?"""
    return any(at.lane for at in point)


def overhang(at: At, extent: int, lanes: int) -> int | None:
    """How many lanes are inside the extent, where not all are; only the last block of an axis can reach past it."""
    if not at.lane or not at.position.is_constant or at.position.constant + lanes <= extent:
        return None
    return extent - at.position.constant


def is_index(value: SSAValue) -> bool:
    """Is it an `index` scalar?"""
    return isinstance(value.type, IndexType)
