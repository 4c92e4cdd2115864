"""
From an sdg op at a point to a leaf: the op over the accessed tensors, its dims replaced by expressions over the loops.

`%h = sdg.add %x[t], %c in (t)` at `t - 1`, where `%c` is a constant, becomes

```mlir
loop.compute at (t = t - 1) ins(%a = %x[t - 1]) outs(%h[t - 1]) {
  %c = sdg.constant 1.0 : tensor<4xf32>
  %r = sdg.add %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  loop.yield %r : tensor<4xf32>
}
```

A merge becomes guarded copies, the first case that holds first: `loop.if t = 0 { copy } else { copy }`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import BufferAccess, ComputeOp, HostOp, IfOp, YieldOp, call_start
from tempo_ir.dialects.sdg import (
    NO_DIMS,
    Access,
    ArangeOp,
    DomainAttr,
    IndexAttr,
    IndexOp,
    KeepOp,
    MergeOp,
    OutputOp,
    RandomOp,
    SdgOp,
    StopGradientOp,
    TokenType,
    UntilOp,
)
from tempo_ir.dialects.sdg import HostOp as SdgHostOp
from tempo_ir.dialects.sdg.symbols import attribute_at, type_at
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import FALSE, TRUE, Cond, Expr, Slice, Sym, free_symbols, substitute
from tempo_ir.lowering.schedule.conditions import solved
from tempo_ir.lowering.schedule.statements import Work, is_inline

Bindings = Mapping[str, Expr]

ARGUMENT_NAMES = "abcdefgh"
COPIES = (KeepOp, MergeOp, OutputOp, StopGradientOp)


@dataclass(frozen=True, slots=True)
class LeafBuilder:
    """
    Makes the leaves of sdg ops. `buffers` holds the memory of every value, `copies` that of every output that copies
    one; `origins` remembers the op of each leaf.
    """

    buffers: Mapping[SSAValue, SSAValue]
    copies: Mapping[OutputOp, SSAValue]
    origins: dict[Operation, SdgOp] = field(default_factory=dict[Operation, SdgOp])

    def leaf(self, work: Work, point: Sequence[Expr]) -> Operation | None:
        """The work of a statement at a point, given over the loop iterators; None for tokens and ends of loops."""
        op = work.op
        if isinstance(op, SdgHostOp):
            return self._host(op, point)
        if isinstance(op, UntilOp):
            return None
        if not isinstance(op, MergeOp):
            return self._compute(op, op.accesses, point)
        if isinstance(op.result.type, TokenType):
            return None
        if work.case is not None:
            return self._compute(op, (op.accesses[work.case],), point)
        bindings = dict(zip(op.domain.dims, point, strict=True))
        iterators = sorted(frozenset[str]().union(*map(free_symbols, point)) - set(op.space.params))
        cases = work.cases(op)
        leaf: Operation = self._compute(op, (cases.pop()[1],), point)
        for cond, access in reversed(cases):
            here = solved(substitute(cond, bindings), iterators)
            leaf = _guarded(here, self._compute(op, (access,), point), leaf)
        return leaf

    def _compute(self, op: SdgOp, accesses: Sequence[Access], point: Sequence[Expr]) -> ComputeOp:
        body = _Body(self.buffers, dict(zip(op.domain.dims, point, strict=True)))
        operands = [body.operand(access, op) for access in accesses]
        results: Sequence[SSAValue] = operands
        if not isinstance(op, COPIES):
            results = body.add(op, operands, body.bindings).results
        leaf = ComputeOp(body.reads, self._writes(op, body.bindings, point), body.finish(results), _at(op, point))
        leaf.location = op.location
        self.origins[leaf] = op
        return leaf

    def _host(self, op: SdgHostOp, point: Sequence[Expr]) -> HostOp:
        bindings = dict(zip(op.domain.dims, point, strict=True))
        reads = [_buffer_access(self.buffers, access, bindings) for access in op.accesses[:-1]]
        form = None if op.vectorized is None else op.vectorized.at(bindings)
        call = HostOp(op.callee, reads, self._writes(op, bindings, point), _at(op, point), form)
        call.location = op.location
        self.origins[call] = op
        return call

    def _writes(self, op: SdgOp, bindings: Bindings, point: Sequence[Expr]) -> list[BufferAccess]:
        if isinstance(op, OutputOp):
            (access,) = op.accesses
            return [BufferAccess(self.copies[op], tuple(point), type_at(access.type, bindings))]
        return [
            BufferAccess(self.buffers[result], tuple(point), type_at(result.type, bindings))
            for result in op.results
            if not isinstance(result.type, TokenType)
        ]


@dataclass(slots=True)
class _Body:
    """A body under construction. Equal reads share an argument; what a formula means is computed inside."""

    buffers: Mapping[SSAValue, SSAValue]
    bindings: Bindings
    block: Block = field(default_factory=Block)
    reads: list[BufferAccess] = field(default_factory=list[BufferAccess])

    def operand(self, access: Access, reader: SdgOp) -> SSAValue:
        """The tensor that a read sees."""
        producer = access.value.owner
        if isinstance(producer, SdgOp) and is_inline(access, reader):
            here = {
                dim: substitute(entry, self.bindings)
                for dim, entry in zip(producer.domain.dims, access.index, strict=True)
                if not isinstance(entry, Slice)
            }
            return self.add(producer, (), here).results[0]
        read = _buffer_access(self.buffers, access, self.bindings)
        if read in self.reads:
            return self.block.args[self.reads.index(read)]
        argument = self.block.insert_arg(read.type, len(self.reads))
        if len(self.reads) < len(ARGUMENT_NAMES):
            argument.name_hint = ARGUMENT_NAMES[len(self.reads)]
        self.reads.append(read)
        return argument

    def add(self, op: SdgOp, operands: Sequence[SSAValue], bindings: Bindings) -> Operation:
        """Append an op in tensor form: over no dims, its symbols replaced."""
        placed = in_tensor_form(op, operands, bindings)
        self.block.add_op(placed)
        return placed

    def finish(self, results: Sequence[SSAValue]) -> Region:
        """The region, with its terminator."""
        self.block.add_op(YieldOp(results))
        return Region(self.block)


def in_tensor_form(op: SdgOp, operands: Sequence[SSAValue], bindings: Bindings) -> Operation:
    """A copy of an op over no dims that takes its operands whole, with the dims of its domain replaced."""
    here = _counted(bindings, op.space) if isinstance(op, IndexOp | ArangeOp | RandomOp) else bindings
    properties = {name: attribute_at(attribute, here) for name, attribute in op.properties.items()}
    properties["domain"] = DomainAttr(NO_DIMS)
    if "indices" in properties:
        properties["indices"] = ArrayAttr([IndexAttr(())] * len(operands))
    return type(op).create(
        operands=operands,
        result_types=[type_at(result.type, bindings) for result in op.results],
        properties=properties,
        attributes=op.attributes,
        location=op.location,
    )


def _counted(bindings: Bindings, space: Space) -> Bindings:
    """
    The dims as values of the program, which count on from where a call starts.

    What is named like a dim in a body counts on by itself: `t - 1` stays as it is. Of skewed loops the iterators do
    not, `t` at `wave - i` is `wave - i` and the start of `t`.
    """
    relative = {name: Sym(name) - Sym(call_start(name)) for name in space.names}
    return {dim: substitute(value, relative) + Sym(call_start(dim)) for dim, value in bindings.items()}


def _buffer_access(buffers: Mapping[SSAValue, SSAValue], access: Access, bindings: Bindings) -> BufferAccess:
    index = substitute(access.index, bindings)
    return BufferAccess(buffers[access.value], index, type_at(access.type, bindings))


def _guarded(condition: Cond, then: Operation, otherwise: Operation) -> Operation:
    if condition in (TRUE, FALSE):
        return then if condition == TRUE else otherwise
    guard = IfOp(condition, Region(Block([then])), Region(Block([otherwise])))
    guard.location = then.location
    return guard


def _at(op: SdgOp, point: Sequence[Expr]) -> list[tuple[str, Expr]]:
    return list(zip(op.domain.dims, point, strict=True))
