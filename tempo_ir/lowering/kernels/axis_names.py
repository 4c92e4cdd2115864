"""What the axes of a kernel are called: by the dim that a read ranges over, or by a contraction's letter.

Before: `tile.load %k[%i, %z] block [64, 16]`. After: `tile.load %k[%i, %d] block [64, 16]`, where
`%d = tile.const 0 : index {along = "d"}`, in a loop `tile.for %i = ... attributes {along = "n"}`: the op that gives
the first index of a block says what it runs along. Nothing is computed otherwise; printers for people read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import BodyOperation, BufferAccess, BufferType, SharesOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Slice
from tempo_ir.lowering.kernels.axis_classes import Axis, AxisClasses, doubled, folds_of, reduced_classes, values_of
from tempo_ir.lowering.kernels.translator import AxisKey

SHARE = "share"
"""The axis of shares of a sum."""
_DIGITS = {"o": "_outer", "i": "_inner"}


@dataclass(frozen=True)
class AxisNames:
    """The names of the axes that a kernel iterates over; none on a target whose kernels nobody reads."""

    names: dict[AxisKey, str] = field(default_factory=dict[AxisKey, str])

    def of(self, key: object) -> str | None:
        """The name of an axis; of the digits of one `n_outer` and `n_inner`."""
        if not isinstance(key, AxisKey):
            return None
        name = self.names.get(replace(key, digit=""))
        return None if name is None else name + "".join(_DIGITS[digit] for digit in key.digit)

    @staticmethod
    def read(leaf: BodyOperation, block: Block, yielded: Sequence[SSAValue]) -> AxisNames:
        """The names of the axes of a leaf whose body may have fewer axes by now, in `block`."""
        classes = AxisClasses.of(block)
        excluded = doubled(classes, values_of(block))
        found: dict[Axis, str] = {}
        for argument, access in zip(block.args, leaf.reads, strict=False):
            _name_rows(argument, access, classes, found)
        ops = [op for inner in (block, *(fold.body.block for fold in folds_of(block))) for op in inner.ops]
        for op in ops:
            if isinstance(op, sdg.ContractOp | SharesOp):
                _name_letters(op, classes, found)
        axes = {AxisKey(op, number): axis for op in ops for number, axis in reduced_classes(op, classes).items()}
        axes |= {AxisKey(op, op.axis): classes.find((op.scores, op.axis)) for op in ops if isinstance(op, SharesOp)}
        first = yielded[0]
        axes |= {AxisKey(leaf, number): classes.find((first, number)) for number in range(len(shape_of(first.type)))}
        return AxisNames({key: found[axis] for key, axis in axes.items() if axis in found and axis not in excluded})


def _name_rows(argument: SSAValue, access: BufferAccess, classes: AxisClasses, found: dict[Axis, str]) -> None:
    """The leading axes of what is read over ranges of dims are these dims."""
    if len(shape_of(argument.type)) != len(shape_of(access.type)):
        return
    assert isinstance(access.buffer.type, BufferType)
    dims = [
        dim for dim, entry in zip(access.buffer.type.dim_names, access.index, strict=True) if isinstance(entry, Slice)
    ]
    for number, dim in enumerate(dims):
        found.setdefault(classes.find((argument, number)), dim)


def _name_letters(op: sdg.ContractOp | SharesOp, classes: AxisClasses, found: dict[Axis, str]) -> None:
    inputs, output = op.letters
    if isinstance(op, SharesOp):
        output = (SHARE, *output)
    for value, letters in zip((op.result, *op.inputs), (output, *inputs), strict=True):
        for number, letter in enumerate(letters):
            found.setdefault(classes.find((value, number)), letter)
