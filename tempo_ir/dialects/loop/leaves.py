"""
The work of a loop program: leaves and kernels over accessed tensors, host calls, launches of compiled kernels.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.accessors import segments
from tempo_ir.dialects.loop.attend import AttendOp
from tempo_ir.dialects.loop.attributes import BufferType, PointAttr, TouchedAttr
from tempo_ir.dialects.loop.fold import FoldOp
from tempo_ir.dialects.loop.parts import PartsOp
from tempo_ir.dialects.loop.shares import SharesOp
from tempo_ir.dialects.loop.structure import LoopOperation, parse_access, parse_buffer, print_access
from tempo_ir.dialects.sdg.attributes import IndexAttr, Vectorized, VectorizedAttr, parse_vectorized
from tempo_ir.dialects.sdg.base import space_of
from tempo_ir.dialects.types import Tensor, as_tensor, shape_of
from tempo_ir.index.expr import Expr, Index, Slice, free_symbols, index_text
from tempo_ir.index.parser import parse_expr


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class BufferAccess:
    """The rows `buffer[index]` as a tensor of `type`; a symbolic extent may be less than the buffer has room for."""

    buffer: SSAValue
    index: Index
    type: Tensor

    @staticmethod
    def of(buffer: SSAValue, index: Index) -> BufferAccess:
        """All of the rows at the index."""
        assert isinstance(buffer.type, BufferType)
        return BufferAccess(buffer, index, buffer.type.accessed(index))


class AccessOperation(LoopOperation, ABC):
    """An operation that reads some rows and writes others, at one point of an sdg op's domain."""

    ins = var_operand_def(BufferType)
    outs = var_operand_def(BufferType)
    in_indices = prop_def(ArrayAttr[IndexAttr])
    out_indices = prop_def(ArrayAttr[IndexAttr])
    in_types = prop_def(ArrayAttr[TensorType])
    out_types = prop_def(ArrayAttr[TensorType])
    point_attr = prop_def(PointAttr, prop_name="point")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def reads(self) -> tuple[BufferAccess, ...]:
        """The rows read, in the order of the block arguments."""
        return tuple(map(BufferAccess, self.operands, *_rows(self, "in")))

    @property
    def writes(self) -> tuple[BufferAccess, ...]:
        """The rows written, in the order of the yielded values."""
        indices, types = _rows(self, "out")
        buffers = tuple(self.operands)
        return tuple(map(BufferAccess, buffers[len(buffers) - len(types) :], indices, types))

    @property
    def point(self) -> tuple[tuple[str, Expr], ...]:
        """The point in the domain of the sdg op."""
        return self.point_attr.data

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        for access in self.reads:
            yield "an index read", free_symbols(access.index)
        for access in self.writes:
            yield "an index written", free_symbols(access.index)
        for name, value in self.point:
            yield f"point '{name}'", free_symbols(value)

    def verify_(self) -> None:
        if not len(self.ins) == len(self.in_indices) == len(self.in_types):
            raise VerifyException("ins need an index and a type for each buffer")
        if not len(self.outs) == len(self.out_indices) == len(self.out_types):
            raise VerifyException("outs need an index and a type for each buffer")
        for access in (*self.reads, *self.writes):
            _verify_access(access)


def _rows(op: AccessOperation, side: Literal["in", "out"]) -> tuple[list[Index], Sequence[Tensor]]:
    """The indices and the types of the accesses on one side; asked for so often that xDSL's accessors, which are slow,
    are not."""
    indices, types = op.properties[f"{side}_indices"], op.properties[f"{side}_types"]
    return [index.data for index in cast("ArrayAttr[IndexAttr]", indices)], cast("ArrayAttr[Tensor]", types).data


@lru_cache(maxsize=4096)
def _indices(indices: tuple[Index, ...]) -> ArrayAttr[IndexAttr]:
    return ArrayAttr(map(IndexAttr, indices))


@lru_cache(maxsize=4096)
def _point(point: tuple[tuple[str, Expr], ...]) -> PointAttr:
    return PointAttr(point)


def _verify_access(access: BufferAccess) -> None:
    """The tensor has the rank, the element type and the fixed extents of the rows read; of a row it may be a part."""
    assert isinstance(access.buffer.type, BufferType)
    whole = access.buffer.type.accessed(access.index)
    extents, room = shape_of(access.type), shape_of(whole)
    slices = sum(isinstance(entry, Slice) for entry in access.index)
    fits = len(extents) == len(room) and access.type.element_type == whole.element_type
    if not fits or any(
        extent > space or (extent != space and axis < slices)
        for axis, (extent, space) in enumerate(zip(extents, room, strict=True))
        if isinstance(extent, int) and isinstance(space, int)
    ):
        raise VerifyException(f"{access.type} does not fit {whole}, which is what the index accesses")


def access_properties(
    reads: Sequence[BufferAccess], writes: Sequence[BufferAccess], point: Sequence[tuple[str, Expr]]
) -> dict[str, Attribute]:
    """The properties that every access operation has."""
    return {
        "in_indices": _indices(tuple([access.index for access in reads])),
        "out_indices": _indices(tuple([access.index for access in writes])),
        "in_types": ArrayAttr([access.type for access in reads]),
        "out_types": ArrayAttr([access.type for access in writes]),
        "point": _point(tuple(point)),
    }


def parse_typed_access(parser: Parser) -> BufferAccess:
    """Parse `%h[t - 1]` or, where less than the rows is accessed, `%s[t] : tensor<?xf32, #sdg.size<t + 1>>`."""
    buffer, index = parse_access(parser)
    if parser.parse_optional_punctuation(":"):
        return BufferAccess(buffer, index, as_tensor(parser.parse_type()))
    if not isinstance(buffer.type, BufferType):
        parser.raise_error(f"buffer expected, got a value of type {buffer.type}")
    try:
        return BufferAccess.of(buffer, index)
    except VerifyException as error:
        parser.raise_error(str(error))


def print_typed_access(printer: Printer, access: BufferAccess) -> None:
    """Print an access, with its type where that is not all of the rows."""
    print_access(printer, access.buffer, access.index)
    if access.type != BufferAccess.of(access.buffer, access.index).type:
        printer.print_string(" : ")
        printer.print_attribute(access.type)


def _parse_point(parser: Parser) -> PointAttr:
    return PointAttr(PointAttr.parse_list(parser) if parser.parse_optional_keyword("at") else ())


def _print_point(printer: Printer, point: PointAttr) -> None:
    if point.data:
        printer.print_string(f" at {point}")


def _parse_list(parser: Parser, keyword: str) -> list[BufferAccess]:
    if parser.parse_optional_keyword(keyword) is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_typed_access(parser))


def _print_list(printer: Printer, keyword: str, accesses: Sequence[BufferAccess]) -> None:
    if not accesses:
        return
    printer.print_string(f" {keyword}")
    with printer.in_parens():
        printer.print_list(accesses, lambda access: print_typed_access(printer, access))


@irdl_op_definition
class YieldOp(LoopOperation):
    """Ends a leaf or a kernel: the values that are written, in the order of `outs`. `loop.yield %r : tensor<4xf32>`."""

    name = "loop.yield"

    values = var_operand_def(TensorType)

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ComputeOp, KernelOp, FoldOp)))

    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue]):
        self.initialise(operands=values)


class BodyOperation(AccessOperation, ABC):
    """An access operation whose work is a body of sdg ops in tensor form, over the accessed tensors."""

    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove())

    def __init__(
        self,
        reads: Sequence[BufferAccess],
        writes: Sequence[BufferAccess],
        body: Region,
        point: Sequence[tuple[str, Expr]] = (),
    ):
        # xDSL's own initialiser of IRDL ops is reflective and slow, and leaves are many
        self.initialise(
            operands=[access.buffer for access in (*reads, *writes)],
            properties={
                **access_properties(reads, writes, point),
                "operandSegmentSizes": segments((len(reads), len(writes))),
            },
            regions=[body],
        )

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The values written."""
        last = self.regions[0].block.last_op
        return tuple(last.operands) if isinstance(last, YieldOp) else ()

    def verify_(self) -> None:
        super().verify_()
        arguments = [argument.type for argument in self.body.block.args]
        if arguments != list(self.in_types.data):
            raise VerifyException(f"body takes ({_types(arguments)}), ins are ({_types(self.in_types.data)})")
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("body does not end in loop.yield")
        yielded = [value.type for value in self.yielded]
        if yielded != list(self.out_types.data):
            raise VerifyException(f"body yields ({_types(yielded)}), outs are ({_types(self.out_types.data)})")
        for op in self.body.block.ops:
            if not op.name.startswith("sdg.") and not isinstance(op, YieldOp | FoldOp | SharesOp | AttendOp | PartsOp):
                others = "loop.fold, loop.shares, loop.attend and loop.parts"
                raise VerifyException(f"{op.name} in a body, expected sdg ops, {others} only")

    @classmethod
    def parse(cls, parser: Parser):
        point = _parse_point(parser)
        reads: list[BufferAccess] = []
        arguments: list[Parser.Argument] = []

        def read() -> None:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            access = parse_typed_access(parser)
            reads.append(access)
            arguments.append(argument.resolve(access.type))

        if parser.parse_optional_keyword("ins"):
            parser.parse_comma_separated_list(parser.Delimiter.PAREN, read)
        writes = _parse_list(parser, "outs")
        return cls(reads, writes, parser.parse_region(arguments), point.data)

    def print(self, printer: Printer) -> None:
        _print_point(printer, self.point_attr)
        reads = list(zip(self.body.block.args, self.reads, strict=True))

        def read(pair: tuple[SSAValue, BufferAccess]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" = ")
            print_typed_access(printer, pair[1])

        if reads:
            printer.print_string(" ins")
            with printer.in_parens():
                printer.print_list(reads, read)
        _print_list(printer, "outs", self.writes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _types(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


@irdl_op_definition
class ComputeOp(BodyOperation):
    """
    A leaf: one sdg op, with the constants that only it reads; no op at all is a copy.

    `loop.compute at (t = t) ins(%a = %x[t]) outs(%h[t]) { %r = sdg.exp %a : ... loop.yield %r : ... }`
    """

    name = "loop.compute"


@irdl_op_definition
class KernelOp(BodyOperation):
    """
    A group of leaves that becomes one kernel; what only they use is a plain value in the body.

    `loop.kernel at (t = t) ins(%a = %x[t]) outs(%h[t]) { ... }`
    """

    name = "loop.kernel"


@irdl_op_definition
class HostOp(AccessOperation):
    """
    A call of a method of a host object: `loop.host @env::@step at (t = t) ins(%action[t]) outs(%after[t], %reward[t])`.

    Calls on one object run in program order. The method is given the rows read, and what it returns is written. With
    `vectorized @step_all along (b) over (b)`, written behind the point, one call of that method makes those at all
    points of b, of which there is at least one.
    """

    name = "loop.host"

    method = prop_def(SymbolRefAttr)
    vectorized_attr = opt_prop_def(VectorizedAttr, prop_name="vectorized")

    def __init__(
        self,
        method: SymbolRefAttr,
        reads: Sequence[BufferAccess],
        writes: Sequence[BufferAccess],
        point: Sequence[tuple[str, Expr]] = (),
        vectorized: Vectorized | None = None,
    ):
        properties: dict[str, Attribute] = {"method": method}
        if vectorized is not None:
            properties["vectorized"] = VectorizedAttr(vectorized)
        super().__init__(
            operands=[[access.buffer for access in reads], [access.buffer for access in writes]],
            properties={**properties, **access_properties(reads, writes, point)},
        )

    @property
    def vectorized(self) -> Vectorized | None:
        """The vectorised form of the method, if there is one."""
        return None if self.vectorized_attr is None else self.vectorized_attr.data

    @property
    def callee(self) -> tuple[str, str]:
        """The object, and the method that is called: the vectorised form where the call is over points of a dim."""
        form, method = self.vectorized, self.method.nested_references.data[0].data
        called = form.method if form is not None and form.over.dims else method
        return self.method.root_reference.data, called

    @property
    def over(self) -> tuple[tuple[str, Slice], ...]:
        """The points that one call makes, a range of each of these dims; none for a call of the method itself."""
        form, space = self.vectorized, space_of(self)
        return () if form is None or space is None else form.points(space)

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        yield from super().symbol_uses()
        if (form := self.vectorized) is not None:
            yield "the points of a call", form.symbols()

    def verify_(self) -> None:
        super().verify_()
        if len(self.method.nested_references) != 1:
            raise VerifyException(f"{self.method} is not of the form @object::@method")
        form, space = self.vectorized, space_of(self)
        if form is not None and space is not None and (unknown := set(form.over.dims) - set(space.names)):
            raise VerifyException(f"a call is over the points of {min(unknown)}, which is no dim of the program")

    @classmethod
    def parse(cls, parser: Parser) -> HostOp:
        method = parser.parse_attribute()
        if not isinstance(method, SymbolRefAttr):
            parser.raise_error("method expected, as in @object::@method")
        point = _parse_point(parser)
        form = parse_vectorized(parser) if parser.parse_optional_keyword("vectorized") else None
        return cls(method, _parse_list(parser, "ins"), _parse_list(parser, "outs"), point.data, form)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.method)
        _print_point(printer, self.point_attr)
        if (form := self.vectorized) is not None:
            printer.print_string(f" vectorized {form}")
        _print_list(printer, "ins", self.reads)
        _print_list(printer, "outs", self.writes)


@irdl_op_definition
class LaunchOp(LoopOperation):
    """
    Runs a tile.kernel over whole buffers, with index expressions as scalar arguments: `loop.launch @k(%x, %h)[t, T]`.

    Of buffers whose rows are copied to the host and back it says which rows it touches, as far as that is known:
    `loop.launch @k(%x, %h)[t, T] reads(%x[t]) writes(%h[t])`.
    """

    name = "loop.launch"

    kernel = prop_def(SymbolRefAttr)
    buffers = var_operand_def(BufferType)
    scalars_attr = prop_def(IndexAttr, prop_name="scalars")
    touched_attr = opt_prop_def(TouchedAttr, prop_name="touched")

    def __init__(
        self,
        kernel: str | StringAttr | SymbolRefAttr,
        buffers: Sequence[SSAValue | Operation],
        scalars: Sequence[Expr] = (),
        touched: Sequence[tuple[SSAValue, Index, bool]] | None = None,
    ):
        symbol = kernel if isinstance(kernel, SymbolRefAttr) else SymbolRefAttr(kernel)
        values = [SSAValue.get(buffer) for buffer in buffers]
        properties: dict[str, Attribute] = {"kernel": symbol, "scalars": IndexAttr(tuple(scalars))}
        if touched is not None:
            rows = tuple((values.index(buffer), index, writes) for buffer, index, writes in touched)
            properties["touched"] = TouchedAttr(rows)
        self.initialise(operands=values, properties=properties)

    @property
    def scalars(self) -> tuple[Expr, ...]:
        """The scalar arguments, after the buffers."""
        return tuple(scalar for scalar in self.scalars_attr.data if isinstance(scalar, Expr))

    @property
    def touched(self) -> tuple[tuple[SSAValue, Index, bool], ...] | None:
        """The rows touched of buffers that are copied, and whether it writes them; None where they are not known."""
        if self.touched_attr is None:
            return None
        return tuple((self.operands[number], index, writes) for number, index, writes in self.touched_attr.data)

    def remove_buffer(self, number: int) -> None:
        """Take one of the buffers away, with what is said of its rows."""
        if self.touched_attr is not None:
            rows = [row for row in self.touched_attr.data if row[0] != number]
            self.touched_attr = TouchedAttr(tuple((each - (each > number), index, way) for each, index, way in rows))
        self.operands = [buffer for position, buffer in enumerate(self.buffers) if position != number]

    def symbol_uses(self) -> Iterator[tuple[str, frozenset[str]]]:
        for scalar in self.scalars:
            yield f"scalar '{scalar}'", free_symbols(scalar)
        for _, index, _ in self.touched or ():
            yield "an index touched", free_symbols(index)

    def verify_(self) -> None:
        if len(self.scalars) != len(self.scalars_attr.data):
            raise VerifyException("a scalar argument is a slice")
        for number, index, _ in () if self.touched_attr is None else self.touched_attr.data:
            if not 0 <= number < len(self.operands):
                raise VerifyException(f"rows of buffer {number} are touched, there are {len(self.operands)}")
            kind = self.operands[number].type
            assert isinstance(kind, BufferType)
            kind.accessed(index)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_symbol_name()
        buffers = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_buffer(parser))
        scalars = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser))
        touched: list[tuple[SSAValue, Index, bool]] = []
        for keyword in ("reads", "writes"):
            if parser.parse_optional_keyword(keyword):
                rows = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_access(parser))
                touched += [(buffer, index, keyword == "writes") for buffer, index in rows]
        if unknown := [buffer for buffer, _, _ in touched if buffer not in buffers]:
            parser.raise_error(f"the rows of a buffer of type {unknown[0].type} are touched, which is no argument")
        return cls(kernel, buffers, scalars or (), touched or None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        printer.print_operands(self.buffers)
        if self.scalars:
            printer.print_string(index_text(self.scalars))
        for keyword in ("reads", "writes"):
            rows = [row for row in self.touched or () if row[2] == (keyword == "writes")]
            if rows:
                printer.print_string(f" {keyword}(")
                printer.print_list(rows, lambda row: print_access(printer, row[0], row[1]))
                printer.print_string(")")
