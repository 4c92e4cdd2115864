"""What the proofs of formation have to know of a program before: what ran where, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
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
from tempo_ir.dialects.sdg.locations import location_text, value_text
from tempo_ir.index.expr import Expr, Index, index_text
from tempo_ir.lowering.proofs import IllegalError
from tempo_ir.lowering.storage.instances import Instance, instances

AT_A_POINT = frozenset(f"sdg.{name}" for name in "random floordiv mod gather scatter_add".split())
"""Ops whose value, or whose error, depends on the point at which a leaf says that it stands."""


class IllegalKernelError(IllegalError):
    """A kernel that does not compute what it should: a fault of the compiler. `op` is the operation concerned."""

    def __init__(self, message: str, op: Operation):
        super().__init__(f"internal error, illegal kernel: {message}", op)


@dataclass(frozen=True)
class Inner:
    """An op of a body."""

    name: str
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    types: tuple[Attribute, ...]
    arguments: tuple[SSAValue, ...] = ()
    """Of a fold; so are the next two."""
    body: tuple[Inner, ...] = ()
    yielded: tuple[SSAValue, ...] = ()


@dataclass(frozen=True)
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
    frames: Mapping[Operation, tuple[object, ...]]
    work: Mapping[Operation, Work]
    buffers: Mapping[SSAValue, Attribute]


def noted(program: ProgramOp) -> Before:
    """What the proof has to know of a program before its kernels are formed."""
    found = {instance.op: instance for instance in instances(program)}
    frames = {op: instance.pattern for op, instance in found.items()}
    return Before(found, frames, {op: work_of(op) for op in found}, buffers_of(program))


def buffers_of(program: ProgramOp) -> dict[SSAValue, Attribute]:
    """The buffers of a program, and what each is."""
    return {op.buffer: op.buffer.type for op in program.walk() if isinstance(op, BufferOperation)}


def work_of(op: Operation) -> Work:
    """What an operation does."""
    if not isinstance(op, AccessOperation):
        return Work(op.name, op.location, (), properties=(tuple(op.operands), tuple(op.properties.items())))
    if not isinstance(op, BodyOperation):
        made = tuple(op.properties.items())
        return Work(op.name, op.location, op.point, op.reads, op.writes, properties=made)
    body = tuple(map(_inner, _computing(op.body.block)))
    arguments = tuple(op.body.block.args)
    return Work(op.name, op.location, op.point, op.reads, op.writes, arguments, body, op.yielded)


def _computing(block: Block) -> list[Operation]:
    return [op for op in block.ops if not isinstance(op, YieldOp)]


def _inner(op: Operation) -> Inner:
    found = Inner(op.name, dict(op.properties), dict(op.attributes), tuple(op.operands), tuple(op.results),
                  tuple(op.result_types))  # fmt: skip
    if not isinstance(op, FoldOp):
        return found
    block = op.body.block
    return replace(found, arguments=tuple(block.args), body=tuple(map(_inner, _computing(block))),
                   yielded=op.next_values)  # fmt: skip


def row_text(buffer: SSAValue, index: Index) -> str:
    """`%h[t - 1]`, for messages."""
    return f"{value_text(buffer)}{index_text(index)}"
