"""Bodies whose values have one axis of rows that no op mixes: such a body can be computed block by block of rows.

    %h = tanh(%x @ %w)        rows of %x and %h, columns and %w lie whole in a program
    %y = %h @ %v              reads the row of %h that it makes a row of
    %g = contract "bk,bn->kn" %h, %y      sums over the rows: what all blocks give is added

An axis is that of rows where every op that reads a value along it makes a value along it, row by row, or sums over it;
a sum over rows is only written, since it is not there before the last block is. What has no rows is memory, or little
to make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import PartsOp, YieldOp
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.tile.attributes import bit_width
from tempo_ir.dialects.types import Extent, element, is_float, shape_of
from tempo_ir.index import Const, as_expr
from tempo_ir.lowering.formation.rules import Cost, cost_of
from tempo_ir.lowering.kernels.axis_classes import Axis, AxisClasses, reduced_classes
from tempo_ir.lowering.kernels.collapse import may_be_joined

WIDEST = 512
"""Columns of a row that a program holds whole."""

_ROW_BY_ROW = (
    sdg.UnaryOp, sdg.BinaryOp, sdg.CompareOp, sdg.LogicOp, sdg.SelectOp, sdg.CastOp, sdg.StopGradientOp,
    sdg.BroadcastOp, sdg.ReshapeOp, sdg.TransposeOp, sdg.SliceOp, sdg.ReduceOp, sdg.ArgReduceOp, sdg.ContractOp,
    sdg.ConstantOp, sdg.ArangeOp, sdg.IndexOp,
)  # fmt: skip


@dataclass(frozen=True)
class RowBody:
    """How a body is computed by rows: the values that have some, each with the axis, in the order of the body, and the
    ops that sum over them. Rows that are counted along two axes, as of steps and environments, have `inner` ones along
    the axis behind."""

    extent: Extent
    rows: dict[SSAValue, int]
    sums: tuple[Operation, ...]
    inner: bool = False

    @property
    def axes(self) -> dict[SSAValue, range]:
        """The axes along which rows are counted, of each value that has some."""
        return {value: range(axis, axis + 1 + self.inner) for value, axis in self.rows.items()}

    @staticmethod
    def of(block: Block) -> RowBody | None:
        """The rows of a body, of which a product that is no sum over them has some; None where it has none."""
        if not all(is_row_by_row(op) for op in block.ops):
            return None
        classes = AxisClasses.of(block)
        for axis in product_axes([block], classes):
            for along in row_axes([block], classes, axis):
                found = rows_along(block, classes, along)
                if found is not None:
                    return found
        return None


def is_row_by_row(op: Operation) -> bool:
    """Whether an op is of those that make rows of rows."""
    if isinstance(op, YieldOp | PartsOp):
        return True
    if isinstance(op, sdg.ContractOp) and (len(op.inputs) != 2 or op.inputs[0] is op.inputs[1]):
        return False
    return isinstance(op, _ROW_BY_ROW) and not may_fail(op)


def has_product_axes(bodies: Iterable[Block], least: int = 2) -> bool:
    """Whether bodies have `product_axes`."""
    return any(True for _ in _axes_of_products(bodies, least))


def product_axes(bodies: Iterable[Block], classes: AxisClasses, least: int = 2) -> list[Axis]:
    """The axes that may be rows, of no fewer than `least`: those of products, the ones of which only a call knows the
    extent first."""
    found: dict[Axis, Extent] = {}
    for axis, extent in _axes_of_products(bodies, least):
        found.setdefault(classes.find(axis), extent)
    return sorted(found, key=lambda axis: isinstance(found[axis], int))


def _axes_of_products(bodies: Iterable[Block], least: int) -> Iterator[tuple[Axis, Extent]]:
    """Each axis of each product, with its extent, of no fewer than `least`."""
    for op in [op for body in bodies for op in body.ops if isinstance(op, sdg.ContractOp)]:
        for number, extent in enumerate(shape_of(op.result.type)):
            if not isinstance(extent, int) or extent >= least:
                yield (op.result, number), extent


def row_axes(blocks: Sequence[Block], classes: AxisClasses, axis: Axis) -> list[tuple[Axis, ...]]:
    """The axes that rows of some bodies may be counted along: one alone, or with one that stands behind it in a value.
    Bodies that are computed together count theirs along the same ones."""
    axis = classes.find(axis)
    behind: dict[Axis, None] = {}
    for found in [classes.of_value(value) for block in blocks for value in _values(block)]:
        if axis in found[:-1] and (after := found[found.index(axis) + 1]) is not None:
            behind[after] = None
    return [(axis,), *((axis, after) for after in behind)]


def rows_along(block: Block, classes: AxisClasses, axes: Sequence[Axis]) -> RowBody | None:
    """How a body is computed by rows along `row_axes`; None where some op mixes them, or tells two of them apart, or
    there is nothing beside."""
    along = [classes.find(axis) for axis in axes]
    rows: dict[SSAValue, int] = {}
    for value in _values(block):
        found = classes.of_value(value)
        if 0 in shape_of(value.type):
            return None
        if not any(place in along for place in found):
            continue
        number = found.index(along[0]) if along[0] in found else 0
        if found[number : number + len(along)] != along or not _is_narrow(value, number, along, found):
            return None
        rows[value] = number
    sums: list[Operation] = []
    for op in block.ops:
        if isinstance(op, YieldOp):
            continue
        summed = reduced_classes(op, classes).values()
        reduced = [place for place in summed if place in along]
        if reduced:
            others = [value for value, place in summed if shape_of(value.type)[place] != 1]
            if len(reduced) != len(along) or not is_sum(op) or not _sums_pairs(op, rows, len(others) > len(along)):
                return None
            sums.append(op)
        elif not _keeps_rows(op, rows):
            return None
    written = {op.results[0] for op in sums}
    ends = [op.operand if isinstance(op := value.owner, PartsOp) else value for value in yielded_by(block)]
    if not rows or not all(value in rows or value in written for value in ends):
        return None
    if len(along) > 1 and not may_be_joined(block, [*rows.items()]):
        return None
    first = next(iter(rows))
    extent = as_expr(1)
    for each in shape_of(first.type)[rows[first] : rows[first] + len(along)]:
        extent = extent * each
    return RowBody(extent.value if isinstance(extent, Const) else extent, rows, tuple(sums), len(along) > 1)


def _values(block: Block) -> list[SSAValue]:
    return [*block.args, *(result for op in block.ops for result in op.results)]


def yielded_by(block: Block) -> tuple[SSAValue, ...]:
    """What a body yields."""
    last = block.last_op
    return tuple(last.operands) if isinstance(last, YieldOp) else ()


def _is_narrow(value: SSAValue, number: int, along: Sequence[Axis], found: Sequence[Axis | None]) -> bool:
    """Whether a value has its rows once, and beside them no more than columns of a known number."""
    rest = range(number, number + len(along))
    others = [extent for place, extent in enumerate(shape_of(value.type)) if place not in rest and extent != 1]
    alone = sum(place in along for place in found) == len(along)
    return alone and len(others) <= 1 and all(isinstance(extent, int) and extent <= WIDEST for extent in others)


def is_sum(op: Operation) -> bool:
    """Whether a sum over rows is made block by block: of floats as wide as what is added, of known extents, which is
    written and not read."""
    if not isinstance(op, sdg.SumOp | sdg.ContractOp):
        return False
    kind = element(op.results[0].type)
    shape = [extent for extent in shape_of(op.results[0].type) if extent != 1]
    known = len(shape) <= 2 and all(isinstance(extent, int) and extent <= WIDEST for extent in shape)
    read = any(not isinstance(use.operation, YieldOp | PartsOp) for use in op.results[0].uses)
    return is_float(kind) and bit_width(kind) >= 32 and known and not read


def _sums_pairs(op: Operation, rows: dict[SSAValue, int], more: bool) -> bool:
    """Whether a product that sums over rows has them in both operands, and sums over nothing `more`."""
    return not isinstance(op, sdg.ContractOp) or (not more and all(value in rows for value in op.inputs))


def _keeps_rows(op: Operation, rows: dict[SSAValue, int]) -> bool:
    """Whether an op makes rows of rows, or of memory that is seen in another shape; what is made without rows is to be
    little."""
    makes = op.results[0] in rows
    if any(operand in rows for operand in op.operands):
        return makes
    if makes and isinstance(op, sdg.ReshapeOp):
        return isinstance(op.operand.owner, Block)
    if makes:
        return isinstance(op, sdg.BroadcastOp | sdg.ArangeOp | sdg.ConstantOp)
    return isinstance(op, PartsOp) or cost_of(op) <= Cost.LIGHT
