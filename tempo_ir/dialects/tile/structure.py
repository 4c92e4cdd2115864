"""The kernel and its control flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, RecursiveMemoryEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.tile.attributes import DYNAMIC, INDEX, IntegersAttr, TileType, ViewType

STREAMS = "streams"
"""The attribute of a kernel that finds nothing of what it reads in a cache: more is read before it runs again."""

NEAR = "near"
"""The attribute of one that finds all of it in a cache near by: little is read before it runs again."""

TURNS = "turns"
"""The attribute of one that is best run backwards where its last scalar argument is odd."""

ADVANCES = "advances"
"""The attribute that says by how much its scalar arguments grow from launch to launch, 0 of those that do not, or by no
number."""

SHARES = "shares"
"""The attribute that names pairs of arguments by number: the second pointer may lead to the memory of the first one."""


@irdl_op_definition
class KernelOp(NominalOperation):
    """
    A kernel: a grid of programs, each of which runs the body with its own `tile.program_id`.

    ```
    tile.kernel @scale(%x: !tile.ptr<f32>, %n: index) grid [?] {
      %block = tile.program_id 0
      ...
    }
    ```

    Arguments are pointers and scalars. The grid gives the number of programs along each axis, `?` where only the launch
    knows it. Programs run in any order and at the same time. No two pointers may lead to the same memory if the kernel
    writes it: a buffer updated in place is one argument. Only a state that may be written into the array that was given
    for it has two, which `shares` names, `attributes {shares = #tile.integers[0, 3]}`. With the attribute `streams`
    operands come from memory rather than from a cache, with `near` from one near by, with `turns` programs run
    backwards where the last argument is odd, and `advances` says by how much scalars grow from launch to launch, which
    changes nothing but how a target reads best.
    """

    name = "tile.kernel"
    sym_name = prop_def(StringAttr)
    grid = prop_def(IntegersAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, grid: Sequence[int], body: Region):
        super().__init__(properties={"sym_name": StringAttr(name), "grid": IntegersAttr(tuple(grid))}, regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("grid")
        grid = IntegersAttr.parse_parameter(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name.data, grid, parser.parse_region(arguments))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" grid ")
        self.grid.print_parameter(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_block_terminators=False)

    def verify_(self) -> None:
        if any(extent != DYNAMIC and extent <= 0 for extent in self.grid.data):
            raise VerifyException("grid extents are positive or ?")
        for argument in self.body.block.args:
            if isinstance(argument.type, (TileType, ViewType)):
                raise VerifyException(f"arguments are pointers and scalars, not {argument.type}")


@irdl_op_definition
class ProgramIdOp(NominalOperation):
    """`%p = tile.program_id 0`: this program's place along an axis of the grid."""

    name = "tile.program_id"
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[INDEX])

    def verify_(self) -> None:
        kernel = self.parent_op()
        while kernel is not None and not isinstance(kernel, KernelOp):
            kernel = kernel.parent_op()
        if kernel is not None and not 0 <= self.axis.value.data < len(kernel.grid.data):
            raise VerifyException(f"axis {self.axis.value.data} of a grid of {len(kernel.grid.data)} axes")


@irdl_op_definition
class YieldOp(NominalOperation):
    """Ends the body of a loop with the values it carries on; ends a branch with nothing."""

    name = "tile.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue] = ()):
        super().__init__(operands=[list(values)])


@irdl_op_definition
class ForOp(NominalOperation):
    """
    Counts from `low` to `high` (exclusive) by a positive step, carrying scalars and tiles from trip to trip.

    ```
    %m = tile.for %t = %low to %high step 64 init(%m0 = %a) : !tile.tile<2xf32> {
      ...
      tile.yield %m1 : !tile.tile<2xf32>
    }
    ```
    """

    name = "tile.for"
    low = operand_def(IndexType)
    high = operand_def(IndexType)
    init = var_operand_def()
    step = prop_def(IntegerAttr.constr(i64))
    body = region_def("single_block")
    carried = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, low: SSAValue, high: SSAValue, step: int, init: Sequence[SSAValue], body: Region):
        super().__init__(
            operands=[low, high, list(init)],
            properties={"step": IntegerAttr(step, i64)},
            regions=[body],
            result_types=[[value.type for value in init]],
        )

    @property
    def step_size(self) -> int:
        """The distance between trips."""
        return self.step.value.data

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """What the body carries on to the next trip."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last.values

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        counter = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        low = parser.parse_operand(INDEX)
        parser.parse_keyword("to")
        high = parser.parse_operand(INDEX)
        parser.parse_keyword("step")
        step = parser.parse_integer(allow_boolean=False)
        arguments: list[Parser.Argument] = [counter.resolve(INDEX)]
        init: list[SSAValue] = []
        if parser.parse_optional_keyword("init"):
            position = parser.pos
            pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_carry(parser))
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            init = list(parser.resolve_operands([operand for _, operand in pairs], types, position))
            arguments += [argument.resolve(type_) for (argument, _), type_ in zip(pairs, types, strict=True)]
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(low, high, step, init, _with_yield(parser.parse_region(arguments)))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        counter, *carried = self.body.block.args
        printer.print_string(" ")
        printer.print_ssa_value(counter)
        printer.print_string(" = ")
        printer.print_ssa_value(self.low)
        printer.print_string(" to ")
        printer.print_ssa_value(self.high)
        printer.print_string(f" step {self.step_size}")
        if carried:
            printer.print_string(" init(")
            printer.print_list(zip(carried, self.init, strict=True), lambda pair: _print_carry(printer, *pair))
            printer.print_string(") : ")
            printer.print_list([value.type for value in self.init], printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_block_terminators=bool(carried))

    def verify_(self) -> None:
        if self.step_size <= 0:
            raise VerifyException(f"step {self.step_size} is not positive")
        block = self.body.block
        if not block.args or block.args[0].type != INDEX:
            raise VerifyException("the body's first argument is the counter, of type index")
        if not isinstance(block.last_op, YieldOp):
            raise VerifyException("the body ends with tile.yield")
        expected = [value.type for value in self.init]
        carried = {
            "body arguments": [argument.type for argument in block.args[1:]],
            "yielded values": [value.type for value in self.yielded],
            "results": [result.type for result in self.carried],
        }
        for what, types in carried.items():
            if types != expected:
                raise VerifyException(f"{what} are {_types_text(types)}, carried are {_types_text(expected)}")


def _types_text(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def _parse_carry(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def _print_carry(printer: Printer, argument: SSAValue, init: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(init)


def _with_yield(region: Region) -> Region:
    """The region with an empty `tile.yield` at its end where the text left it out."""
    if not region.blocks:
        region.add_block(Block())
    if not isinstance(region.block.last_op, YieldOp):
        region.block.add_op(YieldOp())
    return region


@irdl_op_definition
class IfOp(NominalOperation):
    """
    Runs a branch for its stores. The condition is a scalar.

    `tile.if %first { ... } else { ... }`
    """

    name = "tile.if"
    condition = operand_def(i1)
    then = region_def("single_block")
    otherwise = opt_region_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, condition: SSAValue, then: Region, otherwise: Region | None = None):
        super().__init__(operands=[condition], regions=[then, [] if otherwise is None else otherwise])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parser.parse_operand(i1)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        then = _with_yield(parser.parse_region())
        otherwise = _with_yield(parser.parse_region()) if parser.parse_optional_keyword("else") else None
        op = cls(condition, then, otherwise)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.then, print_entry_block_args=False, print_block_terminators=False)
        if self.otherwise is not None:
            printer.print_string(" else ")
            printer.print_region(self.otherwise, print_entry_block_args=False, print_block_terminators=False)

    def verify_(self) -> None:
        for region in self.regions:
            block = region.block
            if block.args or not isinstance(block.last_op, YieldOp) or block.last_op.values:
                raise VerifyException("a branch has no arguments and yields nothing")


STRUCTURE = (KernelOp, ProgramIdOp, ForOp, IfOp, YieldOp)
"""Every op of this file."""
