"""The kernel of a group of leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import KernelOp, YieldOp
from tempo_ir.dialects.operation import ops_of
from tempo_ir.lowering.formation.fusion import Group, external_reads
from tempo_ir.lowering.formation.leaf import Leaf, Row, row_of


def kernel_of(group: Group, leaves: Sequence[Leaf], *, emptied: bool) -> KernelOp:
    """
    One kernel of the leaves of a group, in their order.

    Where leaves may be `emptied`, those that are in no other kernel give it their ops, which is less work than copies.
    """
    reads = external_reads(leaves)
    body = Block(arg_types=[access.type for access in reads])
    outside = dict(zip(reads, body.args, strict=True))
    inside: dict[Row, SSAValue] = {}
    for access, argument in outside.items():
        argument.name_hint = access.buffer.name_hint
    for leaf in leaves:
        rows = [(row_of(access), access) for access in leaf.reads]
        values = [inside[row] if row in inside else outside[access] for row, access in rows]
        given = dict(zip(leaf.arguments, values, strict=True))
        _add_ops(body, leaf, given, moved=emptied and leaf not in group.copies)
        for value, write in zip(leaf.yielded, leaf.writes, strict=True):
            made = given.get(value, value)
            inside[row_of(write)] = made
            if isinstance(made.owner, Operation):
                made.name_hint = write.buffer.name_hint or made.name_hint
    writes = [write for leaf in leaves for write in leaf.writes if row_of(write) in group.written]
    body.add_op(YieldOp([inside[row_of(write)] for write in writes]))
    point = next((leaf.op.point for leaf in leaves if leaf.depends_on_point), leaves[-1].op.point)
    kernel = KernelOp(reads, writes, Region(body), point)
    kernel.location = leaves[-1].op.location
    return kernel


def _add_ops(body: Block, leaf: Leaf, values: dict[SSAValue, SSAValue], *, moved: bool) -> None:
    """Add the ops of a leaf to a body, or copies of them, on the values given; notes there what copies make."""
    for op in ops_of(leaf.op.body.block):
        if isinstance(op, YieldOp):
            continue
        if moved:
            _read_instead(op, values)
            op.detach()
            body.add_op(op)
            continue
        clone = op.clone(values)
        clone.location = op.location
        body.add_op(clone)


def _read_instead(op: Operation, values: Mapping[SSAValue, SSAValue]) -> None:
    """Let an op, with what is inside of it, read values in the place of others."""
    for inner in op.walk() if op.regions else (op,):
        operands = tuple(inner.operands)
        if not values.keys().isdisjoint(operands):
            inner.operands = [values.get(operand, operand) for operand in operands]
