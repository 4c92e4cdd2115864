"""The kernel of a group of leaves."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import KernelOp, YieldOp
from tempo_ir.lowering.formation.fusion import Group, Row, depends_on_point, external_reads, ordered, row_of


def kernel_of(group: Group) -> KernelOp:
    """One kernel of the leaves of a group."""
    leaves = ordered(group)
    reads = external_reads(leaves)
    body = Block(arg_types=[access.type for access in reads])
    outside = dict(zip(reads, body.args, strict=True))
    inside: dict[Row, SSAValue] = {}
    writes = [write for leaf in leaves for write in leaf.writes if row_of(write) in group.written]
    for access, argument in outside.items():
        argument.name_hint = access.buffer.name_hint
    for leaf in leaves:
        values: dict[SSAValue, SSAValue] = {}
        for argument, access in zip(leaf.body.block.args, leaf.reads, strict=True):
            row = row_of(access)
            values[argument] = inside[row] if row in inside else outside[access]
        for op in leaf.body.block.ops:
            if isinstance(op, YieldOp):
                continue
            clone = op.clone(values)
            clone.location = op.location
            body.add_op(clone)
        for value, write in zip(leaf.yielded, leaf.writes, strict=True):
            inside[row_of(write)] = values[value]
            if isinstance(values[value].owner, Operation):
                values[value].name_hint = write.buffer.name_hint or values[value].name_hint
    body.add_op(YieldOp([inside[row_of(write)] for write in writes]))
    point = next((leaf.point for leaf in leaves if depends_on_point(leaf)), leaves[-1].point)
    kernel = KernelOp(reads, writes, Region(body), point)
    kernel.location = leaves[-1].location
    return kernel
