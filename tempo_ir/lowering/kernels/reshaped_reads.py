"""Reshapes of what a kernel computes element by element become reshapes of what it reads.

Before (a row of weights in i8 has its scale; the heads of a product are apart):

    %y = sdg.mul %x, %scale : (tensor<4x256xf32>, tensor<256xf32>) -> tensor<4x256xf32>
    %q = sdg.reshape %y : (tensor<4x256xf32>) -> tensor<4x8x32xf32>

After:

    %0 = sdg.reshape %x : (tensor<4x256xf32>) -> tensor<4x8x32xf32>
    %1 = sdg.reshape %scale : (tensor<256xf32>) -> tensor<8x32xf32>
    %q = sdg.mul %0, %1 : (tensor<4x8x32xf32>, tensor<8x32xf32>) -> tensor<4x8x32xf32>

Memory is seen in a new shape for nothing; a place in a tile of a computed value would be taken apart by divisions,
which no block of several heads survives. It applies where a reshape splits axes and nothing else reads the ops between
it and the arguments of the kernel; not where it puts axes together, since an operand that broadcasts along one of them
has none to put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.operation import maker_of
from tempo_ir.dialects.types import Extent, Shape, element, shape_of, tensor
from tempo_ir.lowering.kernels.elementwise import ELEMENTWISE


def reshape_reads(block: Block) -> None:
    """Move the reshapes of a kernel's body to its arguments, in place."""
    for op in [op for op in block.ops if isinstance(op, sdg.ReshapeOp)]:
        parts = _split(shape_of(op.operand.type), shape_of(op.result.type))
        if parts is None or isinstance(op.operand, BlockArgument) or (makers := _of_reads_alone(op.operand)) is None:
            continue
        reshaped = _Reshaped(op, parts)
        if not reshaped.splits(makers):
            continue
        result = reshaped.of(makers)
        result.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(result)
        for gone in (op, *reversed(makers)):
            gone.detach()
            gone.erase()


def _split(old: Shape, new: Shape) -> list[Shape] | None:
    """The new extents that each of the old ones is split into; None where they do not differ so, or in nothing but axes
    of one element."""
    left, parts = list(new), list[Shape]()
    for extent in old:
        part = [left.pop(0)] if left else []
        while part != [extent] and left and isinstance(extent, int) and _product(part) in range(1, extent):
            part.append(left.pop(0))
        if part != [extent] and _product(part) != extent:
            return None
        parts.append(tuple(part))
    if not parts or any(extent != 1 for extent in left):
        return None
    parts[-1] = (*parts[-1], *left)
    return parts if any(sum(extent != 1 for extent in part) > 1 for part in parts) else None


def _product(extents: Sequence[Extent]) -> int:
    """How many elements; 0 where a call says it."""
    return prod(extent if isinstance(extent, int) else 0 for extent in extents)


def _of_reads_alone(value: SSAValue) -> list[Operation] | None:
    """The ops that compute a value element by element from arguments of the kernel and numbers, each for one use, those
    that others read first; None where there are others among them."""
    makers: list[Operation] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        maker = maker_of(value)
        if maker is None or (isinstance(maker, sdg.ConstantOp) and not shape_of(value.type)):
            continue
        if not isinstance(maker, ELEMENTWISE) or not value.has_one_use():
            return None
        makers.append(maker)
        waiting += maker.operands
    return makers[::-1]


@dataclass
class _Reshaped:
    """Values that broadcast to a shape whose axes become `parts`, computed before a reshape."""

    reshape: sdg.ReshapeOp
    parts: Sequence[Shape]
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def of(self, makers: Sequence[Operation]) -> SSAValue:
        """What the last of these ops makes."""
        for maker in makers:
            (result,) = maker.results
            fresh = type(maker).create(
                operands=[self.read(operand) for operand in maker.operands],
                result_types=[tensor(element(result.type), self.shape(result))],
                properties=maker.properties,
                attributes=maker.attributes,
            )
            fresh.location = maker.location
            self.known[result] = self.insert(fresh)
        return self.known[makers[-1].results[0]]

    def read(self, value: SSAValue) -> SSAValue:
        """An operand in its new shape."""
        if value not in self.known:
            shape = self.shape(value)
            same = shape == shape_of(value.type)
            self.known[value] = value if same else self.insert(sdg.ReshapeOp(value, shape, domain=self.reshape.domain))
        return self.known[value]

    def shape(self, value: SSAValue) -> Shape:
        """The new shape of a value: of one element along the parts of an axis of one, else its own where an axis stays,
        which may be written otherwise than in the full shape."""
        shape: list[Extent] = []
        for extent, part in self.aligned(value):
            shape += [1] * len(part) if extent == 1 else part if len(part) > 1 else [extent]
        return tuple(shape)

    def splits(self, makers: Sequence[Operation]) -> bool:
        """Whether what these ops read and make has one element along each axis that is split, or is written as long."""
        values = [value for maker in makers for value in (*maker.operands, *maker.results)]
        pairs = [pair for value in values for pair in self.aligned(value)]
        return all(len(part) == 1 or extent in (1, _product(part)) for extent, part in pairs)

    def aligned(self, value: SSAValue) -> list[tuple[Extent, Shape]]:
        """The axes of a value with what they become, aligned right."""
        shape = shape_of(value.type)
        return list(zip(shape, self.parts[len(self.parts) - len(shape) :], strict=True))

    def insert(self, op: Operation) -> SSAValue:
        """The result of an op, which is put before the reshape."""
        block = self.reshape.parent
        assert block is not None
        block.insert_op_before(op, self.reshape)
        return op.results[0]
