"""Loops inside of kernels: a recurrence of which only the last values are needed."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, TensorType, i32
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.structure import LoopOperation, parse_buffer
from tempo_ir.dialects.sdg.attributes import EntryAttr
from tempo_ir.dialects.types import as_tensor
from tempo_ir.index.expr import Expr, Slice, as_expr
from tempo_ir.index.parser import parse_expr


@irdl_op_definition
class FoldOp(LoopOperation):
    """
    Values carried through the iterations of a loop, in the body of a leaf or kernel:

    `%total = loop.fold m = 0 to t floordiv 64 carry(%a = %first) reads(%b = %x) { ... loop.yield %next : tensor<f32> }`

    The body is one of sdg ops, whose free names may be the iterator; it gets the carried values and what is read, and
    yields the carried values after the iteration. The results are those after the last one, the values carried in
    where there is none.
    """

    name = "loop.fold"

    iterator_attr = prop_def(StringAttr, prop_name="iterator")
    count_attr = prop_def(EntryAttr, prop_name="count")
    carried = var_operand_def(TensorType)
    reads = var_operand_def(TensorType)
    finals = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, iterator: str, count: Expr | int, carried: Sequence[SSAValue], reads: Sequence[SSAValue], body: Region
    ):
        self.initialise(
            operands=[*carried, *reads],
            result_types=[value.type for value in carried],
            properties={
                "iterator": StringAttr(iterator),
                "count": EntryAttr(as_expr(count)),
                "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(carried), len(reads)]),
            },
            regions=[body],
        )

    @property
    def iterator(self) -> str:
        """The name that index expressions in the body use."""
        return self.iterator_attr.data

    @property
    def count(self) -> Expr:
        """The number of iterations, from 0."""
        count = self.count_attr.data
        assert not isinstance(count, Slice)
        return count

    @property
    def next_values(self) -> tuple[SSAValue, ...]:
        """What the body yields."""
        last = self.body.block.last_op
        return tuple(last.operands) if last is not None else ()

    def verify_(self) -> None:
        if isinstance(self.count_attr.data, Slice):
            raise VerifyException(f"the number of iterations is a range, {self.count_attr.data}")
        carried = [value.type for value in self.carried]
        if [argument.type for argument in self.body.block.args] != [value.type for value in self.operands]:
            raise VerifyException("the arguments of the body are not what is carried and read")
        if [value.type for value in self.finals] != carried or [value.type for value in self.next_values] != carried:
            raise VerifyException("what is carried changes its type")
        for op in self.body.block.ops:
            if not op.name.startswith("sdg.") and op is not self.body.block.last_op:
                raise VerifyException(f"{op.name} in a fold, expected sdg ops only")

    @classmethod
    def parse(cls, parser: Parser) -> FoldOp:
        iterator = parser.parse_identifier()
        parser.parse_punctuation("=")
        if parser.parse_integer() != 0:
            parser.raise_error("a fold counts from 0")
        parser.parse_keyword("to")
        count = parse_expr(parser)
        carried: list[SSAValue] = []
        reads: list[SSAValue] = []
        arguments: list[Parser.Argument] = []
        for group, keyword in ((carried, "carry"), (reads, "reads")):
            if parser.parse_optional_keyword(keyword) is None:
                continue

            def read(group: list[SSAValue] = group) -> None:
                argument = parser.parse_argument(expect_type=False)
                parser.parse_punctuation("=")
                group.append(parse_buffer(parser, "value"))
                arguments.append(argument.resolve(as_tensor(group[-1].type)))

            parser.parse_comma_separated_list(parser.Delimiter.PAREN, read)
        return cls(iterator, count, carried, reads, parser.parse_region(arguments))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.iterator} = 0 to {self.count}")
        arguments = list(zip(self.body.block.args, self.operands, strict=True))

        def read(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" = ")
            printer.print_ssa_value(pair[1])

        carried = len(self.carried)
        for keyword, group in (("carry", arguments[:carried]), ("reads", arguments[carried:])):
            if group:
                printer.print_string(f" {keyword}")
                with printer.in_parens():
                    printer.print_list(group, read)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
