"""What the LLVM back end cannot do, said with the op that asks for it."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException


class UnsupportedKernel(PassFailedException):
    """A tile kernel asks for what this back end does not have; the message says what to do instead."""

    def __init__(self, op: Operation, message: str):
        super().__init__(f"{op.name}: {message}")
        self.op = op
