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
from functools import cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

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
from tempo_ir.dialects.types import Tensor
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import FALSE, TRUE, Cond, Expr, Index, Slice, Sym, free_symbols, substitute
from tempo_ir.lowering.schedule.conditions import solved
from tempo_ir.lowering.schedule.statements import Work, is_inline

Bindings = Mapping[str, Expr]

ARGUMENT_NAMES = "abcdefgh"
COPIES = frozenset((KeepOp, MergeOp, OutputOp, StopGradientOp))
COUNTED = frozenset((IndexOp, ArangeOp, RandomOp))
"""Ops whose values depend on the point."""
EVERYWHERE = DomainAttr(NO_DIMS)


class Place:
    """
    A point at which leaves stand, over the loop iterators, with what the dims of their ops are there.

    Mostly that is `(t = t)`, where all is as it was, and leaves ask for the rows of the same few indices.
    """

    def __init__(self, dims: Sequence[str], index: Index) -> None:
        self.index = index
        self.point = [(dim, entry) for dim, entry in zip(dims, index, strict=True) if not isinstance(entry, Slice)]
        self.bindings: Bindings = dict(self.point)
        self._as_it_was = all(value == Sym(dim) for dim, value in self.point)
        self._rows: dict[Index, Index] = {}

    def rows(self, index: Index) -> Index:
        """The rows that an index names here."""
        if index not in self._rows:
            self._rows[index] = substitute(index, self.bindings)
        return self._rows[index]

    def type(self, type: Attribute) -> Tensor:
        """A tensor type here."""
        return cast("Tensor", type) if self._as_it_was else type_at(type, self.bindings)

    def access(self, buffer: SSAValue, access: Access) -> BufferAccess:
        """The rows of a buffer that a read names here."""
        return BufferAccess(buffer, self.rows(access.index), self.type(access.type))

    def in_tensor_form(self, op: SdgOp, operands: Sequence[SSAValue]) -> Operation:
        """A copy of an op over no dims that takes its operands whole, with the dims of its domain replaced."""
        properties = dict(op.properties)
        if not self._as_it_was:
            here = _counted(self.bindings, op.space) if type(op) in COUNTED else self.bindings
            properties = {name: attribute_at(attribute, here) for name, attribute in properties.items()}
        properties["domain"] = EVERYWHERE
        if "indices" in properties:
            properties["indices"] = _taken_whole(len(operands))
        return type(op).create(
            operands=operands,
            result_types=[self.type(result.type) for result in op.results],
            properties=properties,
            attributes=op.attributes,
            location=op.location,
        )


@cache
def _taken_whole(operands: int) -> ArrayAttr[IndexAttr]:
    return ArrayAttr([IndexAttr(())] * operands)


def _counted(bindings: Bindings, space: Space) -> Bindings:
    """
    The dims as values of the program, which count on from where a call starts.

    What is named like a dim in a body counts on by itself: `t - 1` stays as it is. Of skewed loops the iterators do
    not, `t` at `wave - i` is `wave - i` and the start of `t`.
    """
    relative = {name: Sym(name) - Sym(call_start(name)) for name in space.names}
    return {dim: substitute(value, relative) + Sym(call_start(dim)) for dim, value in bindings.items()}


@dataclass(frozen=True, slots=True)
class LeafBuilder:
    """
    Makes the leaves of sdg ops. `buffers` holds the memory of every value, `copies` that of every output that copies
    one; `origins` remembers the op of each leaf, `places` each point at which some stand.
    """

    buffers: Mapping[SSAValue, SSAValue]
    copies: Mapping[OutputOp, SSAValue]
    origins: dict[Operation, SdgOp] = field(default_factory=dict[Operation, SdgOp])
    places: dict[tuple[tuple[str, ...], Index], Place] = field(
        default_factory=dict[tuple[tuple[str, ...], Index], Place]
    )

    def place(self, dims: tuple[str, ...], index: Index) -> Place:
        """The point of a domain over some dims at which leaves stand, or its rows that a formula is read at."""
        if (dims, index) not in self.places:
            self.places[dims, index] = Place(dims, index)
        return self.places[dims, index]

    def leaf(self, work: Work, point: tuple[Expr, ...]) -> Operation | None:
        """The work of a statement at a point, given over the loop iterators; None for tokens and ends of loops."""
        op = work.op
        place = self.place(op.domain.dims, point)
        if isinstance(op, SdgHostOp):
            return self._host(op, place)
        if isinstance(op, UntilOp):
            return None
        if not isinstance(op, MergeOp):
            return self._compute(op, op.accesses, place)
        if isinstance(op.result.type, TokenType):
            return None
        if work.case is not None:
            return self._compute(op, (op.accesses[work.case],), place)
        iterators = sorted(free_symbols(point) - set(op.space.params))
        cases = work.cases(op)
        leaf: Operation = self._compute(op, (cases.pop()[1],), place)
        for cond, access in reversed(cases):
            here = solved(substitute(cond, place.bindings), iterators)
            leaf = _guarded(here, self._compute(op, (access,), place), leaf)
        return leaf

    def _compute(self, op: SdgOp, accesses: Sequence[Access], place: Place) -> ComputeOp:
        block, reads = Block(), list[BufferAccess]()
        results: Sequence[SSAValue] = [self._operand(block, reads, access, op, place) for access in accesses]
        if type(op) not in COPIES:
            work = place.in_tensor_form(op, results)
            block.add_op(work)
            results = work.results
        block.add_op(YieldOp(results))
        leaf = ComputeOp(reads, self._writes(op, place), Region(block), place.point)
        leaf.location = op.location
        self.origins[leaf] = op
        return leaf

    def _operand(
        self, block: Block, reads: list[BufferAccess], access: Access, reader: SdgOp, place: Place
    ) -> SSAValue:
        """The tensor that a read sees. Equal reads share an argument; what a formula means is computed inside."""
        if is_inline(access, reader):
            formula = access.value.owner
            assert isinstance(formula, SdgOp)
            there = self.place(formula.domain.dims, place.rows(access.index))
            block.add_op(work := there.in_tensor_form(formula, ()))
            return work.results[0]
        read = place.access(self.buffers[access.value], access)
        if read in reads:
            return block.args[reads.index(read)]
        argument = block.insert_arg(read.type, len(reads))
        if len(reads) < len(ARGUMENT_NAMES):
            argument.name_hint = ARGUMENT_NAMES[len(reads)]
        reads.append(read)
        return argument

    def _host(self, op: SdgHostOp, place: Place) -> HostOp:
        reads = [place.access(self.buffers[access.value], access) for access in op.accesses[:-1]]
        form = None if op.vectorized is None else op.vectorized.at(place.bindings)
        call = HostOp(op.callee, reads, self._writes(op, place), place.point, form)
        call.location = op.location
        self.origins[call] = op
        return call

    def _writes(self, op: SdgOp, place: Place) -> list[BufferAccess]:
        if isinstance(op, OutputOp):
            (access,) = op.accesses
            return [BufferAccess(self.copies[op], place.index, place.type(access.type))]
        return [
            BufferAccess(self.buffers[result], place.index, place.type(result.type))
            for result in op.results
            if not isinstance(result.type, TokenType)
        ]


def _guarded(condition: Cond, then: Operation, otherwise: Operation) -> Operation:
    if condition in (TRUE, FALSE):
        kept, left_out = (then, otherwise) if condition == TRUE else (otherwise, then)
        left_out.erase()  # it would go on using the buffers
        return kept
    guard = IfOp(condition, Region(Block([then])), Region(Block([otherwise])))
    guard.location = then.location
    return guard
