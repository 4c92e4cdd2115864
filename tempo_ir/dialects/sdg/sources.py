"""Ops without operands: what the caller gives, constants, values of index expressions, random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.sdg.attributes import (
    EntryAttr,
    IndexAttr,
    NumberAttr,
    RandomKind,
    parse_number,
)
from tempo_ir.dialects.sdg.base import (
    NO_DIMS,
    SdgOp,
    scope_problem,
)
from tempo_ir.dialects.sdg.directives import EVERYWHERE
from tempo_ir.dialects.sdg.inference import Extents
from tempo_ir.dialects.sdg.symbols import call_start
from tempo_ir.dialects.types import (
    DTYPES,
    Tensor,
    dtype_name,
    element,
    is_float,
    tensor,
)
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Const, Entry, Expr, Index, Slice, free_symbols, substitute


class SourceOp(SdgOp):
    """Base of the ops that bring a tensor of the caller into the program, by name."""

    key = prop_def(StringAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$key custom<InDomain>($domain) attr-dict `:` type($result)"

    def __init__(
        self,
        key: str,
        result_type: Tensor,
        *,
        domain: Domain = NO_DIMS,
        location: LocationAttr | None = None,
    ):
        self.setup((), (result_type,), domain, {"key": StringAttr(key)}, location)


@irdl_op_definition
class InputOp(SourceOp):
    """An array of the caller; its leading axes are the dims of the domain:
    `sdg.input "x" in (i, t) : tensor<4xf32>`."""

    name = "sdg.input"


@irdl_op_definition
class ParameterOp(SourceOp):
    """A constant that the caller owns, over no dim: `sdg.parameter "w" : tensor<64x64xf32>`.

    With an output of the same key it is a state: this is its first value, the output the last.
    """

    name = "sdg.parameter"

    def verify_(self) -> None:
        if self.domain != NO_DIMS:
            raise VerifyException(f'parameter "{self.key.data}" is one value for the whole call, so it has no domain')
        super().verify_()


@irdl_op_definition
class ConstantOp(SdgOp):
    """A number at every element, or a dense literal: `sdg.constant 0.5 : tensor<4xf32>`,
    `sdg.constant dense<[1, 2]> : tensor<2xi64>`."""

    name = "sdg.constant"

    value = prop_def(NumberAttr | DenseIntOrFPElementsAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = None

    def __init__(
        self,
        value: bool | float | DenseIntOrFPElementsAttr,
        result_type: Tensor,
        *,
        domain: Domain = NO_DIMS,
        location: LocationAttr | None = None,
    ):
        attribute = (
            value if isinstance(value, DenseIntOrFPElementsAttr) else NumberAttr.of(value, result_type.element_type)
        )
        self.setup((), (result_type,), domain, {"value": attribute}, location)

    @property
    def number(self) -> bool | int | float | None:
        """The value of every element, or None for a dense literal."""
        return self.value.data if isinstance(self.value, NumberAttr) else None

    @property
    def uniform(self) -> bool | float | None:
        """The number that all elements are to the last bit, be it that of a dense literal, or 0 where there is no
        element; None where elements differ, as 0.0 and -0.0 do."""
        if isinstance(self.value, NumberAttr):
            return self.value.data
        numbers, data = self.value.get_values(), self.value.data.data
        if not numbers:
            return 0
        if data != data[: len(data) // len(numbers)] * len(numbers):
            return None
        number = numbers[0]
        assert isinstance(number, (int, float))
        return number

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        if parser.parse_optional_keyword("dense") is None:
            value: Attribute = NumberAttr(parse_number(parser))
            attributes = parser.parse_optional_attr_dict()
            parser.parse_punctuation(":")
            result_type: Attribute = parser.parse_type()
        else:
            literal = parser.parse_dense_int_or_fp_elements_attr(None)
            value, result_type, attributes = literal, literal.type, parser.parse_optional_attr_dict()
        properties = {"value": value, "domain": EVERYWHERE}
        return cls.create(result_types=[result_type], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if not isinstance(self.value, NumberAttr):
            self._print_literal(self.value, printer)
            printer.print_op_attributes(self.attributes)
            return
        printer.print_string(str(self.value))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def _print_literal(self, literal: DenseIntOrFPElementsAttr, printer: Printer) -> None:
        """A literal; its bytes where xDSL would print 0.0 and -0.0 as one number for all."""
        if self.uniform is not None or not literal.is_splat():
            printer.print_attribute(literal)
            return
        printer.print_string(f'dense<"0x{literal.data.data.hex().upper()}"> : ')
        printer.print_attribute(literal.type)

    def verify_(self) -> None:
        super().verify_()
        if self.domain != NO_DIMS:
            raise VerifyException("a constant is one value for the whole call, so it has no domain")
        if not isinstance(self.value, NumberAttr):
            if self.value.type != self.result.type:
                raise VerifyException(f"the literal is a {self.value.type}, the result says {self.result.type}")
            return
        self.value.check(element(self.result.type))


@irdl_op_definition
class IndexOp(SdgOp):
    """The value of an index expression at the point, as an i64 scalar: `sdg.index t + 1 in (t) : tensor<i64>`.

    Dims count on from where a call starts; `t - call.start.t` is the point itself.
    """

    name = "sdg.index"

    expression_attr = prop_def(EntryAttr, prop_name="expression")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "custom<EntryOf>($expression) custom<InDomain>($domain) attr-dict `:` type($result)"

    def __init__(
        self,
        expression: Expr,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        properties = {"expression": EntryAttr(expression)}
        self.setup((), (result_type or self.infer(),), domain, properties, location)

    @staticmethod
    def infer() -> Tensor:
        """An i64 scalar."""
        return tensor(i64)

    @property
    def expression(self) -> Expr:
        """The expression over the dims of the domain and the bounds."""
        value = self.expression_attr.data
        if isinstance(value, Slice):
            raise VerifyException(f"sdg.index takes an expression, got the range {value}: use sdg.arange")
        return value

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        _ = self.expression
        return (self.infer(),)

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        if (problem := scope_problem(unstarted(self.expression, space), self.domain, space)) is not None:
            raise VerifyException(problem)


@irdl_op_definition
class ArangeOp(SdgOp):
    """The integers of a range, as a vector: `sdg.arange [0:t + 1] in (t) : tensor<?xi64, #sdg.size<t + 1>>`."""

    name = "sdg.arange"

    range_attr = prop_def(EntryAttr, prop_name="range")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "custom<EntryOf>($range) custom<InDomain>($domain) attr-dict `:` type($result)"

    def __init__(
        self,
        values: Slice,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        properties = {"range": EntryAttr(values)}
        self.setup((), (result_type or self.infer(values),), domain, properties, location)

    @staticmethod
    def infer(values: Slice) -> Tensor:
        """i64, one axis of the extent of the range."""
        return tensor(i64, [values.extent])

    @property
    def range(self) -> Slice:
        """The range over the dims of the domain and the bounds."""
        value = self.range_attr.data
        if not isinstance(value, Slice):
            raise VerifyException(f"sdg.arange takes a range such as 0:{value}, got an expression: use sdg.index")
        return value

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.range),)

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        if (problem := scope_problem(unstarted(self.range, space), self.domain, space)) is not None:
            raise VerifyException(problem)
        if starts := sorted(free_symbols(self.range.extent) & set(map(call_start, space.names))):
            raise VerifyException(f"the extent {self.range.extent} of a range does not depend on {starts[0]}")


def unstarted(entry: Entry, space: Space) -> Entry:
    """An entry without what the dims start at, which every point knows."""
    return substitute(entry, {call_start(name): Const(0) for name in space.names})


@irdl_op_definition
class RandomOp(SdgOp):
    """Philox draws, a function of the seed, `id`, the domain point and the element alone:
    `sdg.random uniform id 3 in (i, t) : tensor<8xf32>`. Kinds: `bits` (i64, 0 to 2**32 - 1), `uniform`, `normal`.

    `at [100 * b + j + call.start.t]`, behind the id, draws what an op over (t) draws there; as in `sdg.index`, dims
    count on from where a call starts.
    """

    name = "sdg.random"

    kind_attr = prop_def(StringAttr, prop_name="kind")
    id_attr = prop_def(IntegerAttr[I64], prop_name="id")
    point_attr = prop_def(IndexAttr, prop_name="point")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "custom<WordOf>($kind) `id` $id custom<AtPoint>($point) custom<InDomain>($domain) attr-dict `:` type($result)"
    )

    def __init__(
        self,
        kind: RandomKind | str,
        identity: int,
        result_type: Tensor,
        *,
        domain: Domain,
        point: Index = (),
        location: LocationAttr | None = None,
    ):
        properties = {
            "kind": StringAttr(str(RandomKind(kind))),
            "id": IntegerAttr(identity, i64),
            "point": IndexAttr(point),
        }
        self.setup((), (result_type,), domain, properties, location)

    @property
    def kind(self) -> RandomKind:
        """What is drawn."""
        return RandomKind(self.kind_attr.data)

    @property
    def identity(self) -> int:
        """The number that tells this op's draws from those of the program's other random ops."""
        return self.id_attr.value.data

    @property
    def point(self) -> tuple[Expr, ...]:
        """The point whose numbers are drawn, over the dims of the domain; empty for the op's own."""
        return tuple(entry for entry in self.point_attr.data if not isinstance(entry, Slice))

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        for entry in self.point_attr.data:
            if isinstance(entry, Slice):
                raise VerifyException(f"numbers are drawn at a point, got the range {entry}")
            if (problem := scope_problem(unstarted(entry, space), self.domain, space)) is not None:
                raise VerifyException(problem)

    def verify_(self) -> None:
        super().verify_()
        kinds = [str(kind) for kind in RandomKind]
        if self.kind_attr.data not in kinds:
            raise VerifyException(f"unknown kind of random numbers '{self.kind_attr.data}'; use {', '.join(kinds)}")
        drawn = element(self.result.type)
        if self.kind is RandomKind.BITS and drawn != DTYPES["i64"]:
            raise VerifyException(f"random bits are 32-bit words held in i64, got {dtype_name(drawn)}: cast the result")
        if self.kind is not RandomKind.BITS and not is_float(drawn):
            raise VerifyException(f"{self.kind} draws need floating-point elements, got {dtype_name(drawn)}")
