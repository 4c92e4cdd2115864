"""A leaf as formation looks at it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import BodyOperation, BufferAccess, YieldOp
from tempo_ir.dialects.operation import ops_of
from tempo_ir.index import Index
from tempo_ir.lowering.formation.rules import Cost, cost_of

Row = tuple[SSAValue, Index]
"""A buffer and the rows of it that are accessed."""

AT_A_POINT = frozenset(
    (sdg.RandomOp, sdg.IndexOp, sdg.ArangeOp, sdg.FloordivOp, sdg.ModOp, sdg.GatherOp, sdg.ScatterAddOp)
)
_NO_WORK = frozenset((YieldOp, sdg.ConstantOp))


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    """
    A leaf, read once from its operation, which takes long and would happen at every question.

    `work` is the one op beside its constants, of a kernel the first, None of a copy; `cost` what an element of its
    value costs. `depends_on_point`: the value depends on more than what is read, or an error at run time names the
    point.
    """

    op: BodyOperation
    arguments: tuple[SSAValue, ...]
    reads: tuple[BufferAccess, ...]
    writes: tuple[BufferAccess, ...]
    yielded: tuple[SSAValue, ...]
    work: Operation | None
    cost: Cost
    depends_on_point: bool

    @staticmethod
    def of(op: BodyOperation) -> Leaf:
        """The leaf of an operation."""
        block = op.regions[0].block
        work = next((inner for inner in block.ops if type(inner) not in _NO_WORK), None)
        depends = not AT_A_POINT.isdisjoint(map(type, ops_of(block)))
        return Leaf(op, block.args, op.reads, op.writes, op.yielded, work, cost_of(work), depends)

    @property
    def buffer(self) -> SSAValue:
        """The buffer that a leaf of one value writes."""
        return self.writes[0].buffer


def row_of(access: BufferAccess) -> Row:
    """What is accessed: a kernel that writes `%h[t]` may read `%h[0:t]` from memory."""
    return access.buffer, access.index
