"""Requests about memory: what a graph asks of the storage of a value, visible in the text and no part of its meaning.

They are no `SdgOp`s: they have no value, no domain, and read nothing, so that no analysis of reads and points sees
them. sdg-schedule hands them to the buffers, loop-plan-storage does what they ask where that is proved right.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from xdsl.dialects.builtin import I64, IntegerAttr, LocationAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.sdg.base import SdgOp, raise_at
from tempo_ir.dialects.sdg.locations import value_text
from tempo_ir.dialects.sdg.sources import SourceOp

if TYPE_CHECKING:
    from tempo_ir.dialects.sdg.structure import ProgramOp


class RequestOp(NominalOperation, ABC):
    """Asks something of the memory of a value."""

    value = operand_def(TensorType)

    assembly_format = "$value attr-dict `:` type($value)"

    def emit_error(self, message: str, underlying_error: Exception) -> NoReturn:
        """Raise the error with `op` set, so that whoever shows it can tell the line of the user."""
        raise_at(self, underlying_error)

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is not None and parent.name != "sdg.program":
            raise VerifyException(f"{self.name} stands in {parent.name}: it belongs in the body of an sdg.program")
        text = value_text(self.value)
        if isinstance(self.value.owner, SourceOp):
            raise VerifyException(f"{text} lies in an array of the caller, which the program does not manage")
        if not isinstance(self.value.owner, SdgOp):
            raise VerifyException(f"{text} is no value of the program")
        if any(type(use.operation) is type(self) and use.operation is not self for use in self.value.uses):
            raise VerifyException(f"{self.name} is asked of {text} twice: remove one")


@irdl_op_definition
class DeallocOp(RequestOp):
    """The memory of each point of a value is given back once all its readers ran: `sdg.dealloc %x : tensor<4xf32>`."""

    name = "sdg.dealloc"

    def __init__(self, value: SSAValue, *, location: LocationAttr | None = None):
        self.initialise(operands=[value], location=location)


@irdl_op_definition
class SwapOp(RequestOp):
    """Points of a value that are read again only in a later loop lie in host memory meanwhile, and come back `ahead`
    iterations before the one that reads them: `sdg.swap %x ahead 4 : tensor<4xf32>`."""

    name = "sdg.swap"

    ahead_attr = prop_def(IntegerAttr[I64], prop_name="ahead")

    assembly_format = "$value `ahead` $ahead attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, ahead: int, *, location: LocationAttr | None = None):
        self.initialise(operands=[value], properties={"ahead": IntegerAttr(ahead, i64)}, location=location)

    @property
    def ahead(self) -> int:
        """How many iterations lie between the copy back and the read."""
        return self.ahead_attr.value.data

    def verify_(self) -> None:
        super().verify_()
        if self.ahead < 0:
            raise VerifyException(f"rows cannot come back {self.ahead} iterations ahead: ask for 0 or more")


def requests_of(program: ProgramOp) -> list[RequestOp]:
    """The requests of a program in textual order, as a list that stays valid while the program changes."""
    return [op for op in program.body.block.ops if isinstance(op, RequestOp)]


def requests_about(op: SdgOp) -> Iterator[RequestOp]:
    """The requests about the results of an op."""
    for result in op.results:
        yield from (use.operation for use in list(result.uses) if isinstance(use.operation, RequestOp))
