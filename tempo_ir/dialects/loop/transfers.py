"""Copies between the memory of the device and that of the host: rows that a program keeps and does not need for now."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.leaves import (
    AccessOperation,
    BufferAccess,
    access_properties,
    parse_typed_access,
    print_typed_access,
)
from tempo_ir.dialects.loop.structure import is_host
from tempo_ir.index.expr import Slice


class TransferOp(AccessOperation, ABC):
    """Copies a row of a buffer to a row of another, in another memory."""

    TO_HOST: ClassVar[bool]

    def __init__(self, source: BufferAccess, target: BufferAccess):
        properties = access_properties([source], [target], ())
        super().__init__(operands=[[source.buffer], [target.buffer]], properties=properties)

    @property
    def source(self) -> BufferAccess:
        """The row that is copied."""
        (access,) = self.reads
        return access

    @property
    def target(self) -> BufferAccess:
        """Where it is copied to."""
        (access,) = self.writes
        return access

    def verify_(self) -> None:
        super().verify_()
        if len(self.ins) != 1 or len(self.outs) != 1:
            raise VerifyException(f"{self.name} copies from one buffer to one")
        if any(isinstance(entry, Slice) for access in (self.source, self.target) for entry in access.index):
            raise VerifyException(f"{self.name} copies one row, an index of it has a slice")
        if self.source.type != self.target.type:
            raise VerifyException(f"{self.source.type} is copied to {self.target.type}")
        if is_host(self.source.buffer) == self.TO_HOST or is_host(self.target.buffer) != self.TO_HOST:
            way = (
                "from the device to a buffer of the host" if self.TO_HOST else "from a buffer of the host to the device"
            )
            raise VerifyException(f"{self.name} copies {way}")

    @classmethod
    def parse(cls, parser: Parser):
        source = parse_typed_access(parser)
        parser.parse_keyword("to")
        return cls(source, parse_typed_access(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_typed_access(printer, self.source)
        printer.print_string(" to ")
        print_typed_access(printer, self.target)


@irdl_op_definition
class OffloadOp(TransferOp):
    """A row goes to the host, and may be overwritten on the device: `loop.offload %h[t] to %h_host[t]`."""

    name = "loop.offload"
    TO_HOST: ClassVar[bool] = True


@irdl_op_definition
class FetchOp(TransferOp):
    """A row comes back to the device: `loop.fetch %h_host[t - 4] to %h_back[t - 4]`."""

    name = "loop.fetch"
    TO_HOST: ClassVar[bool] = False


def is_copied(buffer: SSAValue) -> bool:
    """Whether rows of a buffer are copied to the memory of the host, or from there."""
    return any(isinstance(use.operation, TransferOp) for use in buffer.uses)
