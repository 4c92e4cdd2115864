"""Contractions at coordinates.

A result read along one lane of each of two operands is a `tile.dot` per block of the contracted axis; along a lane of
one operand only it is a dot with one row (or column). Where a lane is shared by the operands, where there are more or
fewer than two operands, or where there is nothing to contract, the operands are multiplied element by element and
summed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import SharesOp
from tempo_ir.dialects.sdg.inference import widest_element
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ReduceKind
from tempo_ir.dialects.tile.builder import Value
from tempo_ir.dialects.types import Extent, as_tensor
from tempo_ir.lowering.kernels.reductions import SHORT_REDUCTION, accumulator, fold, lanes_and_axes
from tempo_ir.lowering.kernels.tiles import Coordinate, Coordinates, Lane, Tile, combine
from tempo_ir.lowering.kernels.translator import AxisKey, Carried, Iterated, Refine, Translator


@dataclass(frozen=True, slots=True)
class Contraction:
    """A contraction for a result read at coordinates: who has which letter, and where each letter is read."""

    op: sdg.ContractOp | SharesOp
    inputs: tuple[str, ...]
    at: Mapping[str, Coordinate]
    summed: Mapping[str, Extent]

    @staticmethod
    def of(translator: Translator, op: sdg.ContractOp | SharesOp, at: Coordinates) -> Contraction:
        """The contraction of `op` read at `at`."""
        inputs, output = op.letters
        extents = {
            letter: extent
            for letters, operand in zip(inputs, op.inputs, strict=True)
            for letter, extent in zip(letters, translator.shape(operand), strict=True)
        }
        summed = {letter: extent for letter, extent in extents.items() if letter not in output}
        return Contraction(op, inputs, dict(zip(output, at, strict=True)), summed)

    @property
    def element(self) -> Attribute:
        """The type in which elements are multiplied."""
        return widest_element([as_tensor(operand.type) for operand in self.op.inputs], self.op.name)

    def coordinates(self, operand: int, places: Mapping[str, Coordinate]) -> Coordinates:
        """Where an operand is read, given where the summed letters are."""
        return tuple(places[letter] if letter in places else self.at[letter] for letter in self.inputs[operand])

    def lanes(self, operand: int) -> tuple[Lane, ...]:
        """The lanes of the result that an operand has."""
        lanes = [self.at[letter].lane for letter in self.inputs[operand] if letter in self.at]
        return tuple(dict.fromkeys(lane for lane in lanes if lane is not None))


def emit_contract(translator: Translator, op: Operation, at: Coordinates) -> Tile:
    """An einsum."""
    assert isinstance(op, sdg.ContractOp)
    contraction = Contraction.of(translator, op, at)
    element = translator.element(op.result)
    total = _dot(translator, contraction, at) or _products(translator, contraction, at)
    return Tile(total.value.to(element), total.lanes)


def _numbered(contraction: Contraction) -> dict[int, str]:
    """The summed letters by number."""
    return dict(enumerate(contraction.summed))


def _products(translator: Translator, contraction: Contraction, at: Coordinates) -> Tile:
    """The operands multiplied element by element, and summed."""
    letters = _numbered(contraction)
    element = accumulator(translator.element(contraction.op.result))
    extents = {number: contraction.summed[letter] for number, letter in letters.items()}
    axes, lanes = lanes_and_axes(translator, contraction.op, extents, at)

    def body(places: Mapping[int, Coordinate]) -> Tile:
        named = {letters[number]: coordinate for number, coordinate in places.items()}
        tiles = [
            translator.pull(operand, contraction.coordinates(number, named))
            for number, operand in enumerate(contraction.op.inputs)
        ]
        product = Tile(tiles[0].value.to(element), tiles[0].lanes, tiles[0].zero_padded)
        for tile in tiles[1:]:
            product = combine(translator.builder, ew.MulOp, product, Tile(tile.value.to(element), tile.lanes))
        padded = [lane for lane in product.lanes if all(lane in tile.zero_padded for tile in tiles)]
        return Tile(product.value, product.lanes, frozenset(padded))

    if not axes:
        return body({})
    return fold(translator, ReduceKind.SUM, element, axes, lanes, body, lane_first=_is_summed_first(contraction, lanes))


def _is_summed_first(contraction: Contraction, lanes: tuple[Lane, ...]) -> bool:
    """Whether the operand that has the one lane of the result has its summed axes before it."""
    for letters in contraction.inputs:
        for place, letter in enumerate(letters):
            if lanes and letter in contraction.at and contraction.at[letter].lane is lanes[0]:
                return any(other in contraction.summed for other in letters[:place])
    return False


def _dot(translator: Translator, contraction: Contraction, at: Coordinates) -> Tile | None:
    """The sum of dots over the blocks of the contracted axes; None where the contraction is none."""
    if len(contraction.inputs) != 2 or not contraction.summed:
        return None
    left, right = contraction.lanes(0), contraction.lanes(1)
    if set(left) & set(right) or not (left or right):
        return None
    if translator.blocks.filling and not (left and right):
        return None  # a vector: many programs' threads multiply and add, and sum what they have at the end
    for lanes in (left, right):
        if len(lanes) == 2:
            raise Refine(translator.key_of(lanes[0]), points=True)
    letters = _numbered(contraction)
    shared = [n for n, letter in letters.items() if all(letter in letters_ for letters_ in contraction.inputs)]
    chosen = _contracted(translator, contraction, shared, letters)
    if chosen is None:
        return None
    return _sum_of_dots(translator, contraction, letters, chosen)


def _contracted(
    translator: Translator, contraction: Contraction, shared: Sequence[int], letters: Mapping[int, str]
) -> int | None:
    """The summed letter that the dots run along: the greatest, the last one of these, an open one only before short
    ones."""
    free = [n for n in shared if AxisKey(contraction.op, n) not in translator.decisions.points]
    if pinned := [n for n in free if AxisKey(contraction.op, n) in translator.pinned]:
        return pinned[0]

    def weight(number: int) -> tuple[int, int]:
        extent = contraction.summed[letters[number]]
        return (extent if isinstance(extent, int) else SHORT_REDUCTION), number

    return max(free, key=weight, default=None)


def _sum_of_dots(translator: Translator, contraction: Contraction, letters: Mapping[int, str], chosen: int) -> Tile:
    builder = translator.builder
    left, right = contraction.lanes(0), contraction.lanes(1)
    result = translator.element(contraction.op.result)
    total = accumulator(result)
    shape = (left[0].size if left else 1), (right[0].size if right else 1)
    block = translator.blocks.contracted(
        contraction.summed[letters[chosen]], shape, contraction.element, total, whole=translator.in_pass
    )
    axes = [
        Iterated(AxisKey(contraction.op, number), contraction.summed[letter], block if number == chosen else 0)
        for number, letter in letters.items()
    ]
    axes.sort(key=lambda axis: axis.block)
    translator.unordered.update(axis.key for axis in axes)

    def step(at: list[Coordinate], carried: Carried | None) -> Carried:
        named = {letters[axis.key.axis]: coordinate for axis, coordinate in zip(axes, at, strict=True)}
        lane = named[letters[chosen]].lane
        assert lane is not None
        lhs, rhs = (
            _operand(translator, contraction.op.inputs[number], contraction.coordinates(number, named), lane, sides)
            for number, sides in enumerate((partial(rows_of, lanes=left), partial(columns_of, lanes=right)))
        )
        if lhs.element != rhs.element:  # one holds the values of the other
            lhs, rhs = lhs.to(result), rhs.to(result)
        start = translator.constant_tile(0, total, shape) if carried is None else carried[0]
        return [builder.dot(lhs, rhs, start)]

    (sums,) = translator.over(axes, [(0, total, shape)], step, fitted=True)
    if left and right:
        return Tile(sums, (left[0], right[0]))
    return Tile(builder.reduce(ReduceKind.SUM, sums, 1 if left else 0), left or right)


def _operand(translator: Translator, value: SSAValue, at: Coordinates, lane: Lane, side: Callable[..., Value]) -> Value:
    """An operand of a dot, which is turned round where it is made: outside of the loops in which it does not vary."""
    depth = translator.builder.level if translator.blocks.powers_of_two else translator.depth_of(value, at)
    tile = translator.pull(value, at)
    with translator.builder.at(depth):
        return side(translator, translator.masked(tile, lane, 0), contracted=lane)


def rows_of(translator: Translator, tile: Tile, lanes: tuple[Lane, ...], contracted: Lane) -> Value:
    """The left operand of a dot, rows x contracted: one row where the result has no lane of it."""
    if lanes:
        return translator.filled(tile, (lanes[0], contracted))
    return translator.filled(tile, (contracted,))[None, :]


def columns_of(translator: Translator, tile: Tile, lanes: tuple[Lane, ...], contracted: Lane) -> Value:
    """The right operand of a dot, contracted x columns: one column where the result has no lane of it."""
    if lanes:
        return translator.filled(tile, (contracted, lanes[0]))
    return translator.filled(tile, (contracted,))[:, None]
