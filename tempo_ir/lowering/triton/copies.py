"""Copies of rows to the memory of the host and back, which go on while kernels run: who must wait for them.

    copies.offload(Rows(h, 64 * (t % 4), ...), Rows(h_host, 64 * t, ...))   # when what was launched before is done
    copies.wait(h, 64 * ((t + 1) % 4))                                      # before a launch that overwrites the row
    copies.wait(h_back, 64 * (t % 5))                                       # before the launch that reads it

What the checker of storage proves of a program is about its operations in their order. A copy begins after all that was
launched before it, so that only what comes after must be kept from it: a write of a row that a copy reads or writes,
and a read of one that it writes. Where rows are not known all copies of the buffer are waited for, and so they are
where its memory passes on to another buffer.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.loop.transfers import is_copied
from tempo_ir.index import Index, Slice

Waited = tuple[SSAValue, Index | None]
"""The row of a buffer, or all of its rows."""


def waited_for(op: Operation) -> list[Waited]:
    """What an operation must wait for, each once."""
    found: dict[Waited, None] = {}
    for buffer, index, writes in _touched(op):
        copied = not loop.is_host(buffer) and is_copied(buffer)
        if copied and (writes or _is_fetched(buffer)):
            whole = index is None or any(isinstance(entry, Slice) for entry in index)
            found[buffer, None if whole else index] = None
    return [*found]


def _touched(op: Operation) -> Iterator[tuple[SSAValue, Index | None, bool]]:
    """The rows that an operation reads and writes, as far as they are known; copies follow each other by themselves."""
    match op:
        case loop.LaunchOp() if op.touched is not None:
            yield from op.touched
        case loop.LaunchOp():
            yield from ((buffer, None, True) for buffer in op.buffers)
        case loop.TransferOp():
            pass
        case loop.AccessOperation():
            yield from ((access.buffer, access.index, False) for access in op.reads)
            yield from ((access.buffer, access.index, True) for access in op.writes)
        case _:
            pass


def _is_fetched(buffer: SSAValue) -> bool:
    """Whether rows of a buffer come back from the host."""
    return any(isinstance(use.operation, loop.FetchOp) for use in buffer.uses)


def ends(block: Block) -> dict[Operation, list[SSAValue]]:
    """By the operation of a block after which they are needed no more, the buffers of the block that are copied."""
    order = {op: number for number, op in enumerate(block.ops)}
    found: dict[Operation, list[SSAValue]] = {}
    for op in block.ops:
        if isinstance(op, loop.AllocOp) and is_copied(op.buffer) and not loop.is_host(op.buffer):
            users = [block.find_ancestor_op_in_block(use.operation) for use in op.buffer.uses]
            last = max((user for user in users if user is not None), key=order.__getitem__)
            found.setdefault(last, []).append(op.buffer)
    return found
