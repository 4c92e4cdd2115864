"""Axis classes: axes of the values of a body that are one axis, since every op reads them alike.

`sub %c, %m` ties the axes of its operands and result, a contraction those of one letter, a fold those of what it
carries. Two reductions along axes of one class read the same elements of what they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import FoldOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.passes.tile.axes import axes_through

Axis = tuple[SSAValue, int]


@dataclass
class AxisClasses:
    """A union-find of axes; axes of extent 1 are in no class but their own."""

    parent: dict[Axis, Axis] = field(default_factory=dict[Axis, Axis])

    @staticmethod
    def of(block: Block) -> AxisClasses:
        """The classes of a body and of the folds in it."""
        classes = AxisClasses()
        classes.visit(block)
        return classes

    def find(self, axis: Axis) -> Axis:
        """The axis that stands for a class."""
        root = axis
        while (above := self.parent.get(root, root)) != root:
            root = above
        self.parent[axis] = root
        return root

    def of_value(self, value: SSAValue) -> list[Axis | None]:
        """The class of each axis of a value; None of those of one element."""
        shape = shape_of(value.type)
        return [None if extent == 1 else self.find((value, axis)) for axis, extent in enumerate(shape)]

    def visit(self, block: Block) -> None:
        """Tie what the ops of a block tie."""
        for op in block.ops:
            if isinstance(op, FoldOp):
                self.visit(op.body.block)
                arguments = op.body.block.args
                for outside, inside in zip(op.operands, arguments, strict=True):
                    self.tie_all(outside, inside)
                for argument, following, final in zip(arguments, op.next_values, op.finals, strict=False):
                    self.tie_all(argument, following)
                    self.tie_all(argument, final)
            elif isinstance(op, sdg.SdgOp):
                self._op(op)

    def _op(self, op: sdg.SdgOp) -> None:
        if isinstance(op, sdg.ContractOp):
            inputs, output = op.letters
            first: dict[str, Axis] = {}
            for value, letters in zip((*op.inputs, op.result), (*inputs, output), strict=True):
                for axis, letter in enumerate(letters):
                    self.tie(first.setdefault(letter, (value, axis)), (value, axis))
            return
        if isinstance(op, sdg.SoftmaxOp | sdg.ScanOp):
            self.tie_all(op.operand, op.result)
            return
        for axis in range(len(shape_of(op.results[0].type))):
            for operand, place in zip(op.operands, axes_through(op, axis) or (), strict=False):
                if place is not None:
                    self.tie((operand, place), (op.results[0], axis))

    def tie_all(self, first: SSAValue, second: SSAValue) -> None:
        """Each axis of one value is that of the other."""
        for axis in range(len(shape_of(first.type))):
            self.tie((first, axis), (second, axis))

    def tie(self, first: Axis, second: Axis) -> None:
        """Both are one axis, unless one of them has a single element."""
        if 1 in (shape_of(value.type)[axis] for value, axis in (first, second)):
            return
        self.parent[self.find(first)] = self.find(second)


def doubled(classes: AxisClasses, values: Iterable[SSAValue]) -> set[Axis]:
    """The classes that a value has on two axes: they stand for no one coordinate."""
    found: set[Axis] = set()
    for value in values:
        known = [axis for axis in classes.of_value(value) if axis is not None]
        found |= {axis for axis in known if known.count(axis) > 1}
    return found


def values_of(block: Block) -> list[SSAValue]:
    """The values of a body, those in its folds too."""
    found: list[SSAValue] = list(block.args)
    for op in block.ops:
        found += op.results
        if isinstance(op, FoldOp):
            found += values_of(op.body.block)
    return found


def folds_of(block: Block) -> list[FoldOp]:
    """The folds of a body."""
    return [op for op in block.ops if isinstance(op, FoldOp)]


def reduced_classes(op: Operation, classes: AxisClasses) -> dict[int, Axis]:
    """The classes of the axes that an op reduces, by the numbers that its kernel gives them."""
    match op:
        case sdg.ReduceOp():
            return {axis: classes.find((op.operand, axis)) for axis in op.axes}
        case sdg.ArgReduceOp() | sdg.SoftmaxOp():
            return {op.axis: classes.find((op.operand, op.axis))}
        case sdg.ContractOp():
            inputs, output = op.letters
            letters = [letter for letter in dict.fromkeys("".join(inputs)) if letter not in output]
            places = {letter: (value, term.index(letter)) for letter in letters
                      for value, term in zip(op.inputs, inputs, strict=True) if letter in term}  # fmt: skip
            return {number: classes.find(places[letter]) for number, letter in enumerate(letters)}
        case _:
            return {}
