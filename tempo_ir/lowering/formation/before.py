"""What the proofs of formation have to know of a program before: what ran where, and what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tempo_ir.dialects.loop import (
    AccessOperation,
    BodyOperation,
    BufferAccess,
    BufferOperation,
    FoldOp,
    PointAttr,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.sdg.locations import location_text, value_text
from tempo_ir.index.expr import Expr, Index, index_text
from tempo_ir.lowering.instances import Instance, instances
from tempo_ir.lowering.proofs import IllegalError

AT_A_POINT = frozenset(f"sdg.{name}" for name in "random floordiv mod gather scatter_add".split())
"""Ops whose value, or whose error, depends on the point at which a leaf says that it stands."""


class IllegalKernelError(IllegalError):
    """A kernel that does not compute what it should: a fault of the compiler. `op` is the operation concerned."""

    def __init__(self, message: str, op: Operation):
        super().__init__(f"internal error, illegal kernel: {message}", op)


@dataclass(slots=True)  # never changed; `frozen` would make it four times as slow to make
class Inner:
    """An op of a body."""

    name: str
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    types: Sequence[Attribute]
    arguments: tuple[SSAValue, ...] = ()
    """Of a fold; so are the next two."""
    body: tuple[Inner, ...] = ()
    yielded: tuple[SSAValue, ...] = ()


@dataclass(slots=True)  # never changed, as above
class Work:
    """What an operation does at one point, as it was when this was noted: the operation itself may be gone by now."""

    name: str
    location: Attribute
    point: tuple[tuple[str, Expr], ...]
    reads: tuple[BufferAccess, ...] = ()
    writes: tuple[BufferAccess, ...] = ()
    arguments: tuple[SSAValue, ...] = ()
    body: tuple[Inner, ...] = ()
    yielded: tuple[SSAValue, ...] = ()
    properties: tuple[object, ...] = ()
    """Of what is no leaf."""

    @property
    def text(self) -> str:
        """`%h[t] at (t = t) (model.py:12)`, for messages."""
        rows = " and ".join(row_text(write.buffer, write.index) for write in self.writes)
        at = f" at {PointAttr(self.point)}" if self.point else ""
        where = location_text(self.location)
        return f"{rows or self.name}{at}" + (f" ({where})" if where else "")


@dataclass(frozen=True)
class Before:
    """A program as it was: what ran where, and the buffers."""

    instances: Mapping[Operation, Instance]
    work: Mapping[Operation, Work]
    buffers: Mapping[SSAValue, Attribute]


def noted(program: ProgramOp) -> Before:
    """What the proof has to know of a program before its kernels are formed."""
    found = {instance.op: instance for instance in instances(program)}
    return Before(found, {op: work_of(instance) for op, instance in found.items()}, buffers_of(program))


def buffers_of(program: ProgramOp) -> dict[SSAValue, Attribute]:
    """The buffers of a program, and what each is."""
    made = (op.results[0] for op in program.operations() if isinstance(op, BufferOperation))
    return {buffer: buffer.type for buffer in made}


def work_of(instance: Instance) -> Work:
    """What an operation does."""
    op = instance.op
    if not isinstance(op, AccessOperation):
        return Work(op.name, op.location, (), properties=(tuple(op.operands), tuple(op.properties.items())))
    reads, writes = instance.reads, instance.writes
    if not isinstance(op, BodyOperation):
        return Work(op.name, op.location, op.point, reads, writes, properties=tuple(op.properties.items()))
    body = _inside(op.regions[0].block)
    return Work(op.name, op.location, op.point, reads, writes, instance.arguments, body, instance.results)


def _inside(block: Block) -> tuple[Inner, ...]:
    return tuple([_inner(op) for op in ops_of(block) if not isinstance(op, YieldOp)])


def _inner(op: Operation) -> Inner:
    found = Inner(op.name, dict(op.properties), dict(op.attributes), tuple(op.operands), op.results, op.result_types)
    if not isinstance(op, FoldOp):
        return found
    block = op.body.block
    return replace(found, arguments=block.args, body=_inside(block), yielded=op.next_values)


def row_text(buffer: SSAValue, index: Index) -> str:
    """`%h[t - 1]`, for messages."""
    return f"{value_text(buffer)}{index_text(index)}"
