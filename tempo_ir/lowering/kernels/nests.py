"""Sinks: the values that a kernel writes, and the loops over their elements.

The axes of a result are iterated over by the programs of the grid (up to three axes of it) or by loops inside; up to
two of them are lanes. Which ones follows from the op that makes the value: the free axes of the two operands of a
contraction, the last two axes otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import AttendOp, FoldOp, SharesOp
from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.sdg.inference import widest_element
from tempo_ir.dialects.types import Extent, Shape, shape_of
from tempo_ir.index import Const, Expr, as_expr, simplify
from tempo_ir.lowering.formation.rules import is_weighted_sum
from tempo_ir.lowering.kernels.axis_classes import AxisClasses, reduced_classes
from tempo_ir.lowering.kernels.blocks import Blocks
from tempo_ir.lowering.kernels.elementwise import BINARY, DIVISIONS, UNARY
from tempo_ir.lowering.kernels.scopes import name_axis
from tempo_ir.lowering.kernels.tiles import Coordinate, Lane
from tempo_ir.lowering.kernels.translator import (
    AxisKey,
    Carried,
    Iterated,
    Programs,
    Source,
    Translator,
    Unsupported,
)

GRID_AXES = 3
MANY_QUERIES = 1 << 20
"""What an axis of queries is taken to have of which only a call knows the extent."""
ENOUGH = 8
"""Programs of attention (heads, rows of a batch) with which each runs over all blocks of queries: the last one, which
may have fewer, is masked by itself then, without a second copy of the kernel that masks everything."""
MANY_PROGRAMS = 64
"""What an axis of an extent that only a call knows is taken to have."""
_PASS_THROUGH = (*UNARY, *BINARY, *DIVISIONS, sdg.SelectOp, sdg.CastOp, sdg.StopGradientOp)
_PASSES = (sdg.ReduceOp, sdg.ArgReduceOp, sdg.SoftmaxOp, FoldOp, AttendOp)


@dataclass(frozen=True, slots=True)
class Sink:
    """A value of the body and where it is written."""

    value: SSAValue
    target: Source


@dataclass(frozen=True, slots=True)
class GridAxis:
    """An axis of the grid: the number of programs."""

    extent: Extent


def write_all(translator: Translator, owner: object, sinks: Sequence[Sink]) -> list[GridAxis]:
    """Compute and write values of one shape; returns the grid that the kernel has."""
    shape = translator.shape(sinks[0].value)
    if any(extent == 0 for extent in shape):
        return []
    axes = iterated_axes(translator, owner, sinks, shape)
    grid = grid_axes(translator, sinks, axes)
    places: dict[int, Coordinate] = {}
    extents: list[GridAxis] = []
    for number in grid:
        places[number], extent = program_coordinate(translator, axes[number], len(extents))
        extents.append(GridAxis(extent))
    together = [number for numbers in translator.together.values() for number in numbers]
    inner = [number for number in range(len(axes)) if number not in places and number not in together]

    def step(at: list[Coordinate], carried: Carried | None) -> Carried:
        everywhere = {**places, **dict(zip(inner, at, strict=True))}
        for point in points(shape, together):
            coordinates = tuple((everywhere | point)[number] for number in range(len(axes)))
            tiles = [translator.pull(sink.value, coordinates) for sink in sinks]
            for sink, tile in zip(sinks, tiles, strict=True):
                translator.store(sink.target, coordinates, tile)
        return []

    translator.over([axes[number] for number in inner], [], step, fitted=True)
    return extents


def points(shape: Shape, axes: Sequence[int]) -> list[dict[int, Coordinate]]:
    """The coordinates of all points along some axes, which have as many as a number says."""
    extents = [extent if isinstance(extent := shape[axis], int) else 0 for axis in axes]
    found = product(*map(range, extents))
    return [{axis: Coordinate(Const(place)) for axis, place in zip(axes, each, strict=True)} for each in found]


def iterated_axes(translator: Translator, owner: object, sinks: Sequence[Sink], shape: Shape) -> list[Iterated]:
    """The axes of the result with their blocks."""
    keys = [AxisKey(owner, axis) for axis in range(len(shape))]
    free = [axis for axis in range(len(shape)) if keys[axis] not in translator.decisions.points]
    column, row = lane_axes(sinks[0].value, shape, free)
    if translator.blocks.filling and row is not None and 1 in (shape[column or 0], shape[row]):
        column, row = (row if shape[column or 0] == 1 else column), None  # a vector fills the threads
    blocks = dict.fromkeys(range(len(shape)), 0)
    if translator.programs is not None and translator.programs.rows is not None:
        blocks |= _blocks_of_rows(translator, translator.programs, shape, free, (column, row))
    elif column is not None and translator.blocks.filling and _is_one_by_one(sinks, column):
        rows = None if row is None else shape[row]
        blocks[column], high = translator.blocks.filled(shape[column], rows)
        row = None if not high else row
        blocks |= {} if row is None else {row: high}
    elif column is not None:
        blocks[column] = translator.blocks.columns(shape[column])
        blocks |= {} if row is None else {row: translator.blocks.rows(shape[row])}
        contraction = _contraction(sinks[0].value, shape)
        if contraction is not None and (isinstance(contraction, AttendOp) or _blocks_queries(translator, contraction)):
            weighted = weighted_blocks(translator, contraction).items()
            blocks = dict.fromkeys(range(len(shape)), 0) | {axis: block for axis, block in weighted if axis in free}
        elif contraction is not None and translator.blocks.powers_of_two and _is_weighted(contraction):
            blocks |= {a: block for a, block in weighted_blocks(translator, contraction).items() if a in free}
            rows, beside = query_axes(translator.blocks, contraction)
            if rows in free and all(axis in free for axis in beside):
                translator.together[contraction] = beside
        elif contraction is not None:
            work = multiplications(translator, contraction)
            if row is not None:
                blocks[row] = translator.blocks.rows(shape[row], work)
            others = prod(programs_along(shape[axis], blocks[axis]) for axis in blocks if axis != column)
            streamed = _is_last_letter(contraction, column)
            rows = 1 if row is None else shape[row]
            blocks[column] = translator.blocks.shared_columns(shape[column], work, rows, others, streamed)
            if row is not None:
                blocks |= {axis: _padded(translator, contraction, blocks[axis]) for axis in (row, column)}
        else:
            blocks |= _whole_rows(translator, owner, sinks, column, row)
    return [Iterated(keys[axis], extent, blocks[axis]) for axis, extent in enumerate(shape)]


def _blocks_of_rows(
    translator: Translator, programs: Programs, shape: Shape, free: Sequence[int], lanes: tuple[int | None, int | None]
) -> dict[int, int]:
    """The blocks of a result of which each program has some rows: the rows are a lane, beside one of the two."""
    rows = programs.rows
    if rows is None or rows not in free:
        raise Unsupported("rows are read point by point")
    column = lanes[0] if lanes[0] != rows else lanes[1]
    blocks = {rows: programs.block}
    return blocks if column is None else blocks | {column: translator.blocks.columns(shape[column])}


def _whole_rows(
    translator: Translator, owner: object, sinks: Sequence[Sink], column: int, row: int | None
) -> dict[int, int]:
    """The blocks of a result whose rows are reduced for it (a softmax, a norm): whole rows, which are read once for
    all, few enough for the first cache. The reductions along them get the lane of the result."""
    ops = _ops(sinks)
    reducing = [op for op in ops if isinstance(op, (sdg.ReduceOp, sdg.ArgReduceOp, sdg.SoftmaxOp))]
    if not reducing or any(isinstance(op, (sdg.ContractOp, FoldOp)) for op in ops):
        return {}
    classes = _classes_of(sinks)
    own = {classes.find((sink.value, column)) for sink in sinks}
    keys = {AxisKey(op, n) for op in reducing for n, axis in reduced_classes(op, classes).items() if {axis} == own}
    shape = translator.shape(sinks[0].value)
    blocks = translator.blocks.whole_rows(shape[column], None if row is None else shape[row])
    if not keys or blocks is None:
        return {}
    translator.share_whole({*keys, AxisKey(owner, column)})
    return {column: blocks[0]} if row is None else {column: blocks[0], row: blocks[1]}


def _padded(translator: Translator, op: sdg.ContractOp, block: int) -> int:
    """The block along a side of a product, where few are padded."""
    letters = op.letters[0][0]
    extents = zip(letters, translator.shape(op.inputs[0]), strict=True)
    summed = [extent for letter, extent in extents if letter not in op.letters[1]]
    longest = max(summed, key=lambda extent: extent if isinstance(extent, int) else MANY_PROGRAMS, default=1)
    product = widest_element([operand.type for operand in op.inputs], op.name)
    return translator.blocks.side(block, product, longest)


def _is_weighted(op: sdg.ContractOp) -> bool:
    """Whether the contraction is a sum weighted by a softmax."""
    return any(is_weighted_sum(op, value, value.owner) for value in op.inputs if isinstance(value.owner, Operation))


def _blocks_queries(translator: Translator, op: sdg.ContractOp) -> bool:
    """Whether a program on a CPU has a block of queries, each with scores of its own."""
    if translator.blocks.powers_of_two or not _is_weighted(op):
        return False
    rows, _ = query_axes(translator.blocks, op)
    extent = 1 if rows is None else translator.shape(op.result)[rows]
    return not isinstance(extent, int) or extent >= translator.blocks.row


def query_axes(blocks: Blocks, op: sdg.ContractOp | SharesOp | AttendOp) -> tuple[int | None, tuple[int, ...]]:
    """The axes of a sum weighted by a softmax that what is summed has not: the longest, which is the rows of tiles, and
    others that a program holds beside it, queries that share their keys."""
    inputs, output = op.letters
    number = next((n for n, value in enumerate(op.inputs) if isinstance(value.owner, sdg.SoftmaxOp)), 0)
    shape = shape_of(op.result.type)[-len(output) :]
    own = [axis for axis, letter in enumerate(output) if letter not in inputs[1 - number]]
    if not own:
        return None, ()
    extents = {axis: extent if isinstance(extent := shape[axis], int) else MANY_QUERIES for axis in own}
    rows = max(own, key=lambda axis: (extents[axis], axis))
    others = tuple(axis for axis in own if axis != rows and extents[axis] != 1)
    element = widest_element([operand.type for operand in op.inputs], op.name)
    few = extents[rows] > blocks.row and blocks.shares_keys(prod(extents[axis] for axis in others), element)
    return rows, others if few else ()


def weighted_blocks(translator: Translator, op: sdg.ContractOp | SharesOp | AttendOp) -> dict[int, int]:
    """The blocks along the axes of a sum weighted by a softmax that are lanes: all of the columns, which would each
    need the weights again, beside some rows."""
    inputs, output = op.letters
    number = next((n for n, value in enumerate(op.inputs) if isinstance(value.owner, sdg.SoftmaxOp)), 0)
    shape = shape_of(op.result.type)[-len(output) :]
    rows, beside = query_axes(translator.blocks, op)
    columns = [axis for axis, letter in enumerate(output) if letter not in inputs[number]]
    held: dict[int, int] = {}
    if rows is not None:
        product = widest_element([operand.type for operand in op.inputs], op.name)
        others = prod(extent for axis in beside if isinstance(extent := shape[axis], int))
        held[rows] = translator.blocks.queries(shape[rows], product, others)
    if columns:
        extent = shape[columns[-1]]
        held[columns[-1]] = translator.blocks.fitted(extent) if isinstance(extent, int) else 0
    return held


def _is_one_by_one(sinks: Sequence[Sink], column: int) -> bool:
    """Whether the elements along the columns of a result stand one beside the other in all that is reduced for it too:
    there are no contractions, and what is summed is summed along the columns."""
    ops = _ops(sinks)
    if any(isinstance(op, (sdg.ContractOp, FoldOp)) for op in ops):
        return False
    reducing = [op for op in ops if isinstance(op, _PASSES)]
    if not reducing:
        return True
    classes = _classes_of(sinks)
    own = classes.find((sinks[0].value, column))
    return all(own in reduced_classes(op, classes).values() for op in reducing)


def _classes_of(sinks: Sequence[Sink]) -> AxisClasses:
    """The axis classes of the body that the values are of."""
    owner = sinks[0].value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    assert block is not None
    return AxisClasses.of(block)


def programs_along(extent: Extent, block: int) -> int:
    """How many programs or trips an axis takes; many, where that is not known."""
    return -(-extent // max(1, block)) if isinstance(extent, int) else MANY_PROGRAMS


def multiplications(translator: Translator, op: sdg.ContractOp) -> int:
    """How many a contraction takes, an extent that only a call knows left out."""
    extents = dict[str, int]()
    for letters, operand in zip(op.letters[0], op.inputs, strict=True):
        for letter, extent in zip(letters, translator.shape(operand), strict=True):
            extents[letter] = extent if isinstance(extent, int) else 1
    return prod(extents.values())


def lane_axes(value: SSAValue, shape: Shape, free: Sequence[int]) -> tuple[int | None, int | None]:
    """The axes that are columns and rows of tiles."""
    contraction = _contraction(value, shape)
    if contraction is None:
        ordered = [axis for axis in free if shape[axis] != 1] or list(free)
        return (ordered[-1] if ordered else None), (ordered[-2] if len(ordered) > 1 else None)
    inputs, output = contraction.letters
    own = [
        [axis for axis, letter in enumerate(output) if _only_in(letter, number, inputs) and axis in free]
        for number in range(len(inputs))
    ]
    long = [[axis for axis in axes if shape[axis] != 1] or axes for axes in own]
    chosen = sorted((axes[-1] for axes in long if axes), reverse=True)[:2]
    if len(inputs) != 2 or not chosen:
        chosen = sorted(free, reverse=True)[:1]
    return (chosen[0] if chosen else None), (chosen[1] if len(chosen) > 1 else None)


def _only_in(letter: str, number: int, inputs: Sequence[str]) -> bool:
    return all((letter in letters) == (other == number) for other, letters in enumerate(inputs))


def _is_last_letter(op: sdg.ContractOp, axis: int) -> bool:
    """Whether an operand of a contraction has an axis of the result as its last one, where memory is contiguous."""
    inputs, output = op.letters
    return any(letters.endswith(output[axis]) for letters in inputs)


def _contraction(value: SSAValue, shape: Shape) -> sdg.ContractOp | AttendOp | None:
    """The contraction that gives a value its shape, through elementwise ops: the first in the order of operands."""
    waiting, seen = [value], {value}
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, sdg.ContractOp | AttendOp):
            return op
        if not isinstance(op, _PASS_THROUGH):
            continue
        for operand in reversed(op.operands):
            if len(operand.type.get_shape()) == len(shape) and operand not in seen:  # pyright: ignore
                waiting.append(operand)
                seen.add(operand)
    return None


def grid_axes(translator: Translator, sinks: Sequence[Sink], axes: Sequence[Iterated]) -> list[int]:
    """The axes that the grid runs along, in order.

    An axis in segments is not one; nor is a lane along which what is reduced does not vary, which would be reduced
    again for each of its blocks. Of programs that run a loop the rows are all that the grid has.
    """
    decisions = translator.decisions
    if translator.programs is not None:
        rows = [] if translator.programs.rows is None else [translator.programs.rows]
        if any(axes[number].key in decisions.cuts or axes[number].key in decisions.factors for number in rows):
            raise Unsupported("rows are read in pieces")
        return rows
    whole = [
        number
        for number, axis in enumerate(axes)
        if axis.key not in decisions.cuts and axis.key not in decisions.factors and not lies_in_one_block(axis)
    ]
    together = {number for numbers in translator.together.values() for number in numbers}
    whole = [number for number in whole if number not in together]
    reducing = [op for op in _ops(sinks, below_products=False) if isinstance(op, _PASSES)]
    if reducing:
        varying = _varying_axes(sinks, reducing)
        whole = [number for number in whole if not axes[number].block or number in varying]
    points = [axes[number].extent for number in whole if not axes[number].block]
    if any(isinstance(op, AttendOp) for op in reducing) and prod(e for e in points if isinstance(e, int)) >= ENOUGH:
        whole = [number for number in whole if not axes[number].block]
    return whole[:GRID_AXES]


def _varying_axes(sinks: Sequence[Sink], reducing: Sequence[Operation]) -> set[int]:
    """The axes of the result along which all that is reduced varies too, so that nothing is reduced twice where
    programs share such an axis."""
    classes = _classes_of(sinks)
    own = [classes.find((sinks[0].value, axis)) for axis in range(len(shape_of(sinks[0].value.type)))]
    return {
        axis
        for axis, found in enumerate(own)
        if all(any(found in classes.of_value(result) for result in op.results) for op in reducing)
    }


def lies_in_one_block(axis: Iterated) -> bool:
    """Whether one block or point is all there is of the axis."""
    return isinstance(axis.extent, int) and axis.extent <= max(axis.block, 1)


def _ops(sinks: Sequence[Sink], *, below_products: bool = True) -> list[Operation]:
    """The ops that the values are made of; without `below_products` not those that only a product of matrices reads,
    which are little beside it."""
    found: dict[Operation, None] = {}
    waiting = [sink.value for sink in sinks]
    while waiting:
        op = maker_of(waiting.pop())
        if op is None or op in found:
            continue
        found[op] = None
        if below_products or not isinstance(op, sdg.ContractOp) or any(map(_is_dear, op.inputs)):
            waiting += op.operands
    return list(found)


def _is_dear(value: SSAValue) -> bool:
    """Whether a value is made by products or a softmax."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        inner = waiting.pop()
        if isinstance(inner.owner, (sdg.ContractOp, sdg.SoftmaxOp, FoldOp)):
            return True
        if isinstance(inner.owner, Operation) and inner not in seen:
            seen.add(inner)
            waiting += inner.owner.operands
    return False


def program_coordinate(translator: Translator, axis: Iterated, number: int) -> tuple[Coordinate, Extent]:
    """The coordinate of a program of the grid along an axis, and how many programs there are."""
    builder = translator.builder
    block = axis.block
    blocks = as_expr(axis.extent) if not block else simplify((as_expr(axis.extent) + (block - 1)) // block)
    count: Extent = blocks.value if isinstance(blocks, Const) else blocks
    program = builder.program_id(number)
    counter: Expr = builder.counter(program, Const(0), blocks, "p")
    if not block:
        if (name := translator.axis_name(axis.key)) is not None:
            name_axis(program, name)
        return Coordinate(counter), count
    first = counter * block
    full = isinstance(axis.extent, int) and axis.extent % block == 0
    return Coordinate(first, Lane(axis.key, first, block, axis.extent, 0, full)), count
