"""What has no tile form, but a function in every array library: GPUs leave it to torch."""

from __future__ import annotations

from xdsl.ir import Operation

from tempo_ir.dialects import loop, sdg

_OPERATIONS = (sdg.SortOp, sdg.ArgsortOp, sdg.ScatterAddOp)


def library_op(leaf: loop.BodyOperation) -> Operation | None:
    """The op of a leaf that is one call of a library: the leaf reads its operands, in order, and writes its result."""
    ops = list(leaf.body.block.ops)
    if len(ops) != 2 or not isinstance(op := ops[0], _OPERATIONS):
        return None
    plain = list(op.operands) == list(leaf.body.block.args) and leaf.yielded == (op.results[0],)
    return op if plain else None
