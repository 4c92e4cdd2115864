"""From a loop nest over statements to a loop program: buffers first, then loops, guards and leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import (
    AllocOp,
    BufferDim,
    BufferOperation,
    BufferType,
    ForOp,
    IfOp,
    InputOp,
    OutputOp,
    ParameterOp,
    ProgramOp,
)
from tempo_ir.dialects.sdg import InputOp as SdgInputOp
from tempo_ir.dialects.sdg import OutputOp as SdgOutputOp
from tempo_ir.dialects.sdg import ParameterOp as SdgParameterOp
from tempo_ir.dialects.sdg import SdgOp, TokenType
from tempo_ir.dialects.sdg.attributes import BLOCKS
from tempo_ir.dialects.sdg.until import until_of
from tempo_ir.dialects.types import as_tensor
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Expr, Sym, free_symbols, substitute
from tempo_ir.index.rules import rises
from tempo_ir.lowering.schedule.leaf_bodies import LeafBuilder
from tempo_ir.lowering.schedule.nest import Call, For, If, Nest, NestNode
from tempo_ir.lowering.schedule.statements import Statements


@dataclass(frozen=True, slots=True)
class Emitted:
    """A loop program, the sdg op that each leaf computes, and the buffer of each value."""

    program: ProgramOp
    origins: Mapping[Operation, SdgOp]
    memory: Mapping[SSAValue, SSAValue]


def loop_program(statements: Statements, nest: Nest) -> Emitted:
    """The loop program that runs the statements of a program in the order of a nest; every buffer keeps all points."""
    buffers = Buffers(statements)
    builder = LeafBuilder(buffers.of_value, buffers.of_output)
    body = Block(buffers.operations)
    body.add_ops(_Emitter(statements, nest.groups, builder).emit(nest.nodes))
    program = ProgramOp(statements.program.sym_name.data, statements.program.space, Region(body))
    program.location = statements.program.location
    if BLOCKS in (attributes := statements.program.attributes):
        program.attributes[BLOCKS] = attributes[BLOCKS]
    return Emitted(program, builder.origins, buffers.of_value)


class Buffers:
    """The memory of a program: one buffer per value, those of the caller by key, a row per point of the domain."""

    def __init__(self, statements: Statements) -> None:
        self.of_value: dict[SSAValue, SSAValue] = {}
        self.of_output: dict[SdgOutputOp, SSAValue] = {}
        self._space = statements.program.space
        self._stored: dict[Domain, tuple[BufferDim, ...]] = {}
        self._bound = None if statements.graph.ending is None else statements.graph.ending.bound
        callers: list[BufferOperation] = []
        own: list[BufferOperation] = []
        working = set(statements.ops)
        for op in statements.program.body.block.ops:
            if isinstance(op, SdgInputOp | SdgParameterOp):
                make = InputOp if isinstance(op, SdgInputOp) else ParameterOp
                buffer = make(op.key.data, self._callers_type(op.domain, op.result.type))
                callers.append(self._holding(buffer, op.result, op))
            elif isinstance(op, SdgOutputOp):
                callers.append(self._output(op, in_place=op not in working))
            elif isinstance(op, SdgOp) and op in working:
                own.extend(self._allocs(op, statements.in_place))
        self.operations: Sequence[Operation] = [*callers, *own]

    def _output(self, op: SdgOutputOp, in_place: bool) -> BufferOperation:
        (access,) = op.accesses
        buffer = OutputOp(op.key.data, self._output_type(op.domain, access.type))
        if in_place:
            return self._holding(buffer, op.value, op)
        self.of_output[op] = buffer.buffer
        key = op.key.data
        buffer.buffer.name_hint = key if SSAValue.is_valid_name(key) else None
        buffer.location = op.location
        return buffer

    def _allocs(self, op: SdgOp, in_place: Mapping[SSAValue, SdgOutputOp]) -> Iterator[BufferOperation]:
        for result in op.results:
            if result not in in_place and not isinstance(result.type, TokenType):
                yield self._holding(AllocOp(self._type(op.domain, result)), result, op)

    def _holding(self, made: BufferOperation, value: SSAValue, op: SdgOp) -> BufferOperation:
        buffer = self.of_value[value] = made.results[0]
        buffer.name_hint = value.name_hint
        made.location = op.location
        return made

    def _type(self, domain: Domain, value: SSAValue) -> BufferType:
        if domain not in self._stored:
            self._stored[domain] = tuple(BufferDim(dim, extent=self._room(domain, dim)) for dim in domain.dims)
        return BufferType.of(self._stored[domain], as_tensor(value.type))

    def _room(self, domain: Domain, dim: str) -> Expr | None:
        """The extent of a dim; where data ends one, what is enough for the most steps is enough for any fewer."""
        extent = _extent(domain, dim, self._space)
        return extent if extent is None or self._bound is None or rises(extent, self._bound) else None

    def _callers_type(self, domain: Domain, point: Attribute) -> BufferType:
        """An array that the caller gives has all the points that the program declares, whatever the domain."""
        return BufferType.of(tuple(BufferDim(dim) for dim in domain.dims), as_tensor(point))

    def _output_type(self, domain: Domain, point: Attribute) -> BufferType:
        """An output has rows to the end of each dim's range; to the declared bound where another dim moves that end."""
        ends = {dim: domain.upper(dim, self._space) for dim in domain.dims}
        fixed = {dim: end for dim, end in ends.items() if not free_symbols(end) & set(domain.dims)}
        dims = tuple(
            BufferDim(dim, extent=None if fixed.get(dim) in (None, self._space.bound(dim)) else fixed[dim])
            for dim in domain.dims
        )
        return BufferType.of(dims, as_tensor(point))


def _extent(domain: Domain, dim: str, space: Space) -> Expr | None:
    """One past the greatest value of a dim where that is not the declared bound, over the bounds alone; None where it
    is, or no expression says it."""
    upper = domain.upper(dim, space)
    if upper == space.bound(dim):
        return None
    if not free_symbols(upper) & set(domain.dims):
        return upper
    from tempo_ir.index.isl import Inexact, upper_bound

    try:
        bound = upper_bound(upper, space, domain)
    except Inexact:
        return None
    return None if bound == space.bound(dim) else bound


@dataclass(frozen=True, slots=True)
class _Emitter:
    """Makes the ops of a nest."""

    statements: Statements
    groups: Sequence[Sequence[int]]
    builder: LeafBuilder

    def emit(self, nodes: Sequence[NestNode]) -> list[Operation]:
        """The ops of some nodes, in order."""
        emitted: list[Operation] = []
        for node in nodes:
            match node:
                case Call():
                    works = [self.statements.works[number] for number in self.groups[node.group]]
                    leaves = [self.builder.leaf(work, node.point) for work in works]
                    emitted.extend(leaf for leaf in leaves if leaf is not None)
                case For():
                    emitted.append(self._loop(node))
                case If():
                    otherwise = self._region(node.otherwise) if node.otherwise else None
                    emitted.append(IfOp(node.condition, self._region(node.then), otherwise))
        return emitted

    def _region(self, nodes: Sequence[NestNode]) -> Region:
        return Region(Block(self.emit(nodes)))

    def _loop(self, node: For) -> ForOp:
        body = self._region(node.body)
        if node.gives is None:
            return ForOp(node.iterator, node.lower, node.upper, body, step=node.step, down=node.down)
        until = until_of(self.statements.ops)
        assert until is not None
        (access,) = until.accesses
        index = substitute(access.index, {until.dim: Sym(node.iterator)})
        done = self.builder.buffers[access.value], index
        loop = ForOp(node.iterator, node.lower, node.upper, body, step=node.step, until=done, gives=node.gives)
        loop.location = until.location
        self.builder.origins[loop] = until
        return loop
