"""
The structure of a loop program: the program, its buffers, its loops and its guards.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NoReturn

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.attributes import BufferType
from tempo_ir.dialects.operation import NominalOperation, ops_of
from tempo_ir.dialects.sdg.attributes import CondAttr, EntryAttr, IndexAttr, SpaceAttr
from tempo_ir.dialects.sdg.base import OpError
from tempo_ir.dialects.sdg.symbols import call_start
from tempo_ir.index.domain import Space, parse_space
from tempo_ir.index.expr import Cond, Const, Expr, Index, Slice, as_expr, free_symbols, index_text
from tempo_ir.index.parser import parse_cond, parse_expr, parse_name, parse_optional_index

CALL_SEED = "call.seed"
"""The scalar of every program that is the seed of the call."""


def call_most(bound: str) -> str:
    """The scalar of a program in which data ends a dim: what the caller gave as its bound, the most that it may be."""
    return f"call.most.{bound}"


def parse_buffer(parser: Parser, what: str = "buffer") -> SSAValue:
    """Parse the name of a buffer, or of another value, defined above; its type is known from there."""
    operand = parser.parse_unresolved_operand(f"{what} expected")
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error(f"{what} {operand.span.text} is not defined above", operand.span)
    return values[operand.index]


def parse_access(parser: Parser) -> tuple[SSAValue, Index]:
    """Parse `%h[t - 1]`; a buffer that stores no dim takes no index: `%w`."""
    buffer = parse_buffer(parser)
    return buffer, parse_optional_index(parser)


def print_access(printer: Printer, buffer: SSAValue, index: Index) -> None:
    """Print `%h[t - 1]`, or `%w` where the index is empty."""
    printer.print_ssa_value(buffer)
    printer.print_string(index_text(index))


class LoopOperation(NominalOperation, ABC):
    """An operation of the loop dialect. A verification error carries the op, so that tools can print its line."""

    def emit_error(self, message: str, underlying_error: Exception) -> NoReturn:
        """Raise the error with the op attached as `.op`, so that tools can show the user's line."""
        if isinstance(underlying_error, OpError):
            raise underlying_error
        raise OpError(message, self) from underlying_error

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        """What each part of the op that is an index expression names, with a word for error messages."""
        yield from ()


@irdl_op_definition
class ProgramOp(LoopOperation):
    """
    A program as loops over its dims. Loop iterators and bounds are names; buffers are SSA values.

    `loop.program @p dims(t: T) where T >= 1 { ... }`
    """

    name = "loop.program"

    sym_name = prop_def(StringAttr)
    space_attr = prop_def(SpaceAttr, prop_name="space")
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, sym_name: str, space: Space, body: Region | None = None):
        super().__init__(
            properties={"sym_name": StringAttr(sym_name), "space": SpaceAttr(space)},
            regions=[body if body is not None else Region(Block())],
        )

    @property
    def space(self) -> Space:
        """The dims and bounds that the program declares."""
        return self.space_attr.data

    @property
    def ending(self) -> ForOp | None:
        """The loop that gives a bound its value, if there is one."""
        return next((loop for loop in self.loops() if loop.gives is not None), None)

    def operations(self) -> Iterator[Operation]:
        """The operations of the program in textual order; the bodies of leaves are not looked into."""
        return _operations(self.body.block)

    def loops(self) -> Iterator[ForOp]:
        """The loops of the program in textual order."""
        return (op for op in self.operations() if isinstance(op, ForOp))

    def verify_(self) -> None:
        call = {CALL_SEED, *map(call_start, self.space.names)}
        if (ending := self.ending) is not None:
            from tempo_ir.dialects.loop.ending import verify_ending

            call.add(call_most(verify_ending(self, ending)))
        _verify_names(self.body.block, call | set(self.space.params))

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        sym_name = parser.parse_symbol_name().data
        space = parse_space(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        program = cls(sym_name, space, body)
        program.attributes |= {} if attributes is None else attributes.data
        return program

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        printer.print_string(f" {self.space}")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _operations(block: Block) -> Iterator[Operation]:
    for op in ops_of(block):
        yield op
        if isinstance(op, ForOp | IfOp):
            for region in op.regions:
                yield from _operations(region.block)


def _verify_names(block: Block, scope: AbstractSet[str]) -> None:
    """Every name in an index expression is a bound of the program, a scalar of the call or the iterator of an
    enclosing loop."""
    for op in block.ops:
        if not isinstance(op, LoopOperation):
            continue
        for part, names in op.symbol_uses():
            if unknown := sorted(names - scope):
                raise OpError(
                    f"{part} uses '{unknown[0]}', neither a bound of the program nor the iterator of an enclosing loop",
                    op,
                )
        if isinstance(op, ForOp):
            if op.iterator in scope:
                raise OpError(f"iterator '{op.iterator}' is taken by an enclosing loop or a bound", op)
            _verify_names(op.body.block, scope | {op.iterator})
        elif isinstance(op, IfOp):
            for region in op.regions:
                for inner in region.blocks:
                    _verify_names(inner, scope)


class BufferOperation(LoopOperation, ABC):
    """An operation that makes a buffer."""

    buffer = result_def(BufferType)

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer made."""
        type = self.results[0].type
        assert isinstance(type, BufferType)
        return type

    @property
    def space(self) -> Space | None:
        """The dims and bounds of the enclosing program."""
        parent = self.parent_op()
        while parent is not None and not isinstance(parent, ProgramOp):
            parent = parent.parent_op()
        return None if parent is None else parent.space

    def verify_(self) -> None:
        space = self.space
        declared = {} if space is None else dict(space.dims)
        for dim in self.buffer_type.dims:
            if space is not None and dim.extent is None and dim.name not in declared:
                raise VerifyException(f"dim '{dim.name}' is not declared by the program and has no extent")


class NamedBufferOperation(BufferOperation, ABC):
    """A buffer that the caller knows by a key."""

    key = prop_def(StringAttr)

    traits = traits_def(HasParent(ProgramOp))

    assembly_format = "$key attr-dict `:` type($buffer)"

    def __init__(self, key: str, type: BufferType):
        super().__init__(properties={"key": StringAttr(key)}, result_types=[type])


@irdl_op_definition
class InputOp(NamedBufferOperation):
    """An array of the caller, read only: `%x = loop.input "x" : !loop.buffer<(t: full) 16xf32>`."""

    name = "loop.input"


@irdl_op_definition
class ParameterOp(NamedBufferOperation):
    """A constant or an initial state that the caller owns: `%w = loop.parameter "w" : !loop.buffer<16xf32>`."""

    name = "loop.parameter"


DONATES = "donates"
"""The attribute of an output that may lie in the array of the parameter of its key."""


DEALLOC = "dealloc"
"""The attribute of memory whose rows are asked to be given back one by one, after their last readers."""
SWAP = "swap"
"""The attribute of memory whose rows are asked to lie in host memory meanwhile: how many iterations ahead of its next
reader each comes back, an i64."""
HOST = "host"
"""The attribute of memory that lies with the host: only `loop.offload` writes it, only `loop.fetch` reads it."""
HOST_USERS = ("loop.offload", "loop.fetch", "loop.free")


@irdl_op_definition
class OutputOp(NamedBufferOperation):
    """
    The memory of a result: `%y = loop.output "y" : !loop.buffer<f32>`. A state has a parameter of the same key.

    With the attribute `donates` it may lie in the array of that parameter, which is not read after it is written.
    """

    name = "loop.output"


@irdl_op_definition
class AllocOp(BufferOperation):
    """
    Memory of a value that lives inside one call: `%h = loop.alloc : !loop.buffer<(t: ring 2) 16xf32>`.

    `{dealloc}` and `{swap = 4 : i64}` are requests to loop-plan-storage, which takes them away. `{host}` memory lies
    with the host.
    """

    name = "loop.alloc"

    assembly_format = "attr-dict `:` type($buffer)"

    def __init__(self, type: BufferType):
        self.initialise(result_types=[type])

    @property
    def ahead(self) -> int | None:
        """How many iterations ahead of their readers the rows are asked to come back, if they are to be swapped."""
        attribute = self.attributes.get(SWAP)
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None

    def verify_(self) -> None:
        super().verify_()
        users = [use.operation.name for use in self.buffer.uses] if HOST in self.attributes else []
        if wrong := [name for name in users if name not in HOST_USERS]:
            raise VerifyException(f"memory of the host is used by {wrong[0]}, expected {', '.join(HOST_USERS)} only")


def is_host(buffer: SSAValue) -> bool:
    """Whether a buffer lies in the memory of the host."""
    return isinstance(buffer.owner, AllocOp) and HOST in buffer.owner.attributes


@irdl_op_definition
class FreeOp(LoopOperation):
    """The rows at the index are read no more: `loop.free %k[t - 63]`, `loop.free %h[0:T]`."""

    name = "loop.free"

    buffer = operand_def(BufferType)
    index_attr = prop_def(IndexAttr, prop_name="index")

    def __init__(self, buffer: SSAValue, index: Index):
        super().__init__(operands=[buffer], properties={"index": IndexAttr(index)})

    @property
    def index(self) -> Index:
        """The rows freed."""
        return self.index_attr.data

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        yield "index", free_symbols(self.index)

    def verify_(self) -> None:
        assert isinstance(self.buffer.type, BufferType)
        self.buffer.type.accessed(self.index)

    @classmethod
    def parse(cls, parser: Parser) -> FreeOp:
        return cls(*parse_access(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_access(printer, self.buffer, self.index)


@irdl_op_definition
class ForOp(LoopOperation):
    """
    A sequential loop: `loop.for t = 0 to T { ... }`, `loop.for t = T - 1 down to 0 { ... }`, both with `step k`.

    Upwards the bound after `to` is not reached; downwards both bounds are (so that each prints as it is read). With
    `until %done[t]`, a buffer of one boolean per row, the loop ends after the first iteration that leaves true there.
    With `giving T` besides, the bound T is from then on the number of iterations; before, it is the most that there may
    be, which the memory of the program has room for and nothing but this loop may name.
    On a GPU `in one program` lets one launch run all iterations, and so does `in programs of 16 rows`, each of which
    runs them for its own rows (loop-persist says when); the meaning is that of the loop without.
    The range is held as one slice `lower:upper:step` whatever the direction, so that `3 down to 0 step 2` is 2, then 0.
    The iterator is never negative: where that is no matter of a constant, lowering passes prove it.
    """

    name = "loop.for"

    iterator_attr = prop_def(StringAttr, prop_name="iterator")
    range_attr = prop_def(EntryAttr, prop_name="range")
    down_attr = opt_prop_def(UnitAttr, prop_name="down")
    done = opt_operand_def(BufferType)
    done_index = opt_prop_def(IndexAttr)
    gives_attr = opt_prop_def(StringAttr, prop_name="gives")
    programs_attr = opt_prop_def(IntegerAttr.constr(i64), prop_name="programs")
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(
        self,
        iterator: str,
        lower: Expr | int,
        upper: Expr | int,
        body: Region | None = None,
        *,
        step: int = 1,
        down: bool = False,
        until: tuple[SSAValue, Index] | None = None,
        gives: str | None = None,
        programs: int | None = None,
    ):
        super().__init__(
            operands=[[] if until is None else [until[0]]],
            properties={
                "iterator": StringAttr(iterator),
                "range": EntryAttr(Slice(as_expr(lower), as_expr(upper), step)),
                "down": UnitAttr() if down else None,
                "done_index": None if until is None else IndexAttr(until[1]),
                "gives": None if gives is None else StringAttr(gives),
                "programs": None if programs is None else IntegerAttr(programs, i64),
            },
            regions=[body if body is not None else Region(Block())],
        )

    @property
    def iterator(self) -> str:
        """The name that index expressions in the body use."""
        return self.iterator_attr.data

    @property
    def range(self) -> Slice:
        """The values of the iterator, from below."""
        entry = self.range_attr.data
        assert isinstance(entry, Slice)
        return entry

    @property
    def lower(self) -> Expr:
        """The least value, reached."""
        return self.range.start

    @property
    def upper(self) -> Expr:
        """The bound above, not reached."""
        return self.range.stop

    @property
    def step(self) -> int:
        """The distance of two iterations, positive."""
        return self.range.step

    @property
    def down(self) -> bool:
        """Whether the loop runs to `lower`, from the greatest iterator of the range."""
        return self.down_attr is not None

    @property
    def first(self) -> Expr:
        """The iterator of the first iteration, where there is one."""
        return self._greatest if self.down else self.lower

    @property
    def last(self) -> Expr:
        """The iterator of the last iteration, where there is one."""
        return self.lower if self.down else self._greatest

    @property
    def _greatest(self) -> Expr:
        if self.step == 1:
            return self.upper - 1
        return self.lower + (self.upper - 1 - self.lower) // self.step * self.step

    @property
    def until(self) -> tuple[SSAValue, Index] | None:
        """The boolean that ends the loop, after the iteration that makes it true."""
        if self.done is None:
            return None
        return self.done, () if self.done_index is None else self.done_index.data

    @property
    def gives(self) -> str | None:
        """The bound that is the number of iterations once the loop has ended."""
        return None if self.gives_attr is None else self.gives_attr.data

    @property
    def programs(self) -> int | None:
        """How many rows each program has that runs all iterations, 0 where there is one program; None where each
        iteration has launches of its own."""
        return None if self.programs_attr is None else self.programs_attr.value.data

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        yield "range", free_symbols(self.range)
        if self.done_index is not None:
            yield "until", free_symbols(self.done_index.data) - {self.iterator}

    def verify_(self) -> None:
        if not isinstance(self.range_attr.data, Slice):
            raise VerifyException(f"range is {self.range_attr.data}, expected a slice")
        if isinstance(self.lower, Const) and self.lower.value < 0:
            shifted = f"{self.iterator} - {-self.lower.value}"
            raise VerifyException(
                f"'{self.iterator}' begins at {self.lower}, iterators are at least 0: count from 0 and write {shifted}"
            )
        if self.until is not None:
            buffer, index = self.until
            assert isinstance(buffer.type, BufferType)
            accessed = buffer.type.accessed(index)
            if str(accessed) != "tensor<i1>":
                raise VerifyException(f"until reads {accessed}, expected tensor<i1>")
        if self.programs is not None and self.programs < 0:
            raise VerifyException(f"programs of {self.programs} rows, expected 0 for one program, or more")

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        iterator = parse_name(parser)
        parser.parse_punctuation("=")
        first = parse_expr(parser)
        down = parser.parse_optional_keyword("down") is not None
        parser.parse_keyword("to")
        last = parse_expr(parser)
        lower, upper = (last, first + 1) if down else (first, last)
        step = 1
        if parser.parse_optional_keyword("step"):
            step = parser.parse_integer(allow_boolean=False, allow_negative=False)
        until = parse_access(parser) if parser.parse_optional_keyword("until") else None
        gives = parse_name(parser) if parser.parse_optional_keyword("giving") else None
        programs = _parse_programs(parser) if parser.parse_optional_keyword("in") else None
        body = _parse_block(parser)
        return cls(iterator, lower, upper, body, step=step, down=down, until=until, gives=gives, programs=programs)

    def print(self, printer: Printer) -> None:
        bounds = f"{self.upper - 1} down to {self.lower}" if self.down else f"{self.lower} to {self.upper}"
        step = f" step {self.step}" if self.step != 1 else ""
        printer.print_string(f" {self.iterator} = {bounds}{step} ")
        if self.until is not None:
            printer.print_string("until ")
            print_access(printer, *self.until)
            printer.print_string(" ")
        if self.gives is not None:
            printer.print_string(f"giving {self.gives} ")
        if self.programs is not None:
            printer.print_string(f"in programs of {self.programs} rows " if self.programs else "in one program ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class IfOp(LoopOperation):
    """A guard: `loop.if t > 0 and t < P { ... } else { ... }`; the second part may be missing."""

    name = "loop.if"

    condition_attr = prop_def(CondAttr, prop_name="condition")
    then = region_def("single_block")
    otherwise = opt_region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(self, condition: Cond, then: Region | None = None, otherwise: Region | None = None):
        super().__init__(
            properties={"condition": CondAttr(condition)},
            regions=[then if then is not None else Region(Block()), [] if otherwise is None else [otherwise]],
        )

    @property
    def condition(self) -> Cond:
        """When the first part runs; otherwise the second does."""
        return self.condition_attr.data

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        yield "condition", free_symbols(self.condition)

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parse_cond(parser)
        then = _parse_block(parser)
        return cls(condition, then, _parse_block(parser) if parser.parse_optional_keyword("else") else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.condition} ")
        printer.print_region(self.then, print_entry_block_args=False)
        if self.otherwise is not None:
            printer.print_string(" else ")
            printer.print_region(self.otherwise, print_entry_block_args=False)


def _parse_programs(parser: Parser) -> int:
    """Parse `one program` or `programs of 16 rows`."""
    if parser.parse_optional_keyword("one"):
        parser.parse_keyword("program")
        return 0
    parser.parse_keyword("programs")
    parser.parse_keyword("of")
    rows = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_keyword("rows")
    return rows


def _parse_block(parser: Parser) -> Region:
    """Parse a region of one block, which may be empty."""
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    return region


def enclosing_loops(op: Operation) -> Sequence[ForOp]:
    """The loops round an op, outermost first."""
    loops: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ProgramOp):
        if isinstance(parent, ForOp):
            loops.append(parent)
        parent = parent.parent_op()
    return loops[::-1]
