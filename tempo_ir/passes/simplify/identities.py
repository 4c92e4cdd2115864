"""Identities of elementwise ops, as tables: `x + 0` is `x`, `x < x` is false, `|-x|` is `|x|`.

A row says for which elements it holds (`KINDS`), for every value of them, NaN, infinities and the extremes of integers
included; rows that are true of finite numbers alone are `fast_math`. The sign of a zero may change. A test tries each
row on every element type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import (
    AbsOp,
    Access,
    AddOp,
    AndOp,
    BinaryOp,
    CeilOp,
    CosOp,
    DivOp,
    EqOp,
    ExpOp,
    FloordivOp,
    FloorOp,
    GeOp,
    GtOp,
    LeOp,
    LogOp,
    LtOp,
    MaximumOp,
    MinimumOp,
    ModOp,
    MulOp,
    NegOp,
    NeOp,
    NotOp,
    OrOp,
    PowOp,
    RoundOp,
    SigmoidOp,
    SignOp,
    SqrtOp,
    SubOp,
    UnaryOp,
    XorOp,
)
from tempo_ir.dialects.types import element, integer_range, is_bool, is_float
from tempo_ir.passes.building import number_of
from tempo_ir.passes.simplify.rule import Rewriting, Rules, made_by, read_through

Kind: TypeAlias = Literal["float", "signed", "unsigned", "bool"]
FLOAT: frozenset[Kind] = frozenset({"float"})
SIGNED: frozenset[Kind] = frozenset({"signed"})
INTEGER: frozenset[Kind] = frozenset({"signed", "unsigned"})
BOOL: frozenset[Kind] = frozenset({"bool"})
NUMBER = FLOAT | INTEGER
LOGIC = INTEGER | BOOL
ANY = FLOAT | INTEGER | BOOL


def kind_of(element_type: Attribute) -> Kind:
    """What an element type is."""
    if is_float(element_type):
        return "float"
    if is_bool(element_type):
        return "bool"
    return "signed" if integer_range(element_type)[0] < 0 else "unsigned"


class Number(Enum):
    """A number that every element type has, or some."""

    ZERO = "0"
    ONE = "1"
    MINUS_ONE = "-1"
    ALL_BITS = "all bits set"
    LEAST = "the least"
    GREATEST = "the greatest"

    def of(self, element_type: Attribute) -> bool | int | float | None:
        """The number in an element type; None where there is none."""
        match kind_of(element_type):
            case "bool":
                return {"ZERO": False, "ONE": True, "ALL_BITS": True, "LEAST": False, "GREATEST": True}.get(self.name)
            case "float":
                values = {"ZERO": 0.0, "ONE": 1.0, "MINUS_ONE": -1.0, "LEAST": -float("inf"), "GREATEST": float("inf")}
                return values.get(self.name)
            case "signed" | "unsigned":
                least, end = integer_range(element_type)
                if self is Number.MINUS_ONE:
                    return -1 if least < 0 else None
                bits = -1 if least < 0 else end - 1
                return {"ZERO": 0, "ONE": 1, "ALL_BITS": bits, "LEAST": least, "GREATEST": end - 1}[self.name]


class Operand(Enum):
    """What a result may be besides a number: the operand, or one op of it."""

    X = "x"
    NEGATED = "-x"
    INVERTED = "not x"


ZERO, ONE, MINUS_ONE, ALL_BITS, LEAST, GREATEST = Number
X, NEGATED, INVERTED = Operand
Side: TypeAlias = Literal["left", "right", "either"]


@dataclass(frozen=True)
class WithNumber:
    """An op of x and a number that stands on a side."""

    op: type[BinaryOp]
    number: Number
    side: Side
    result: Number | Operand
    kinds: frozenset[Kind]
    fast_math: bool = False


@dataclass(frozen=True)
class WithItself:
    """An op of x and x."""

    op: type[BinaryOp]
    result: Number | Operand
    kinds: frozenset[Kind]
    fast_math: bool = False


@dataclass(frozen=True)
class Nested:
    """An op of an op of x: the result is `x`, `inner(x)` or `outer(x)`."""

    outer: type[UnaryOp]
    inner: type[UnaryOp]
    result: Literal["x", "inner", "outer"]
    kinds: frozenset[Kind]
    fast_math: bool = False


WITH_NUMBER: Sequence[WithNumber] = (
    WithNumber(AddOp, ZERO, "either", X, NUMBER),
    WithNumber(SubOp, ZERO, "right", X, NUMBER),
    WithNumber(SubOp, ZERO, "left", NEGATED, NUMBER),
    WithNumber(MulOp, ONE, "either", X, NUMBER),
    WithNumber(MulOp, MINUS_ONE, "either", NEGATED, NUMBER),
    WithNumber(MulOp, ZERO, "either", ZERO, INTEGER),
    WithNumber(MulOp, ZERO, "either", ZERO, FLOAT, fast_math=True),
    WithNumber(DivOp, ONE, "right", X, FLOAT),
    WithNumber(DivOp, MINUS_ONE, "right", NEGATED, FLOAT),
    WithNumber(DivOp, ZERO, "left", ZERO, FLOAT, fast_math=True),
    WithNumber(FloordivOp, ONE, "right", X, INTEGER),
    WithNumber(FloordivOp, MINUS_ONE, "right", NEGATED, INTEGER),
    WithNumber(ModOp, ONE, "right", ZERO, INTEGER),
    WithNumber(ModOp, MINUS_ONE, "right", ZERO, INTEGER),
    WithNumber(PowOp, ONE, "right", X, NUMBER),
    WithNumber(PowOp, ZERO, "right", ONE, NUMBER),
    WithNumber(PowOp, ONE, "left", ONE, NUMBER),
    WithNumber(MaximumOp, LEAST, "either", X, NUMBER),
    WithNumber(MaximumOp, GREATEST, "either", GREATEST, INTEGER),
    WithNumber(MinimumOp, GREATEST, "either", X, NUMBER),
    WithNumber(MinimumOp, LEAST, "either", LEAST, INTEGER),
    WithNumber(AndOp, ALL_BITS, "either", X, LOGIC),
    WithNumber(AndOp, ZERO, "either", ZERO, LOGIC),
    WithNumber(OrOp, ZERO, "either", X, LOGIC),
    WithNumber(OrOp, ALL_BITS, "either", ALL_BITS, LOGIC),
    WithNumber(XorOp, ZERO, "either", X, LOGIC),
    WithNumber(XorOp, ALL_BITS, "either", INVERTED, LOGIC),
    WithNumber(EqOp, ONE, "either", X, BOOL),
    WithNumber(EqOp, ZERO, "either", INVERTED, BOOL),
    WithNumber(NeOp, ZERO, "either", X, BOOL),
    WithNumber(NeOp, ONE, "either", INVERTED, BOOL),
    WithNumber(LtOp, LEAST, "right", ZERO, NUMBER),
    WithNumber(LtOp, GREATEST, "left", ZERO, NUMBER),
    WithNumber(GtOp, GREATEST, "right", ZERO, NUMBER),
    WithNumber(GtOp, LEAST, "left", ZERO, NUMBER),
    WithNumber(GeOp, LEAST, "right", ONE, INTEGER),
    WithNumber(GeOp, GREATEST, "left", ONE, INTEGER),
    WithNumber(LeOp, GREATEST, "right", ONE, INTEGER),
    WithNumber(LeOp, LEAST, "left", ONE, INTEGER),
)
WITH_ITSELF: Sequence[WithItself] = (
    WithItself(SubOp, ZERO, INTEGER),
    WithItself(SubOp, ZERO, FLOAT, fast_math=True),
    WithItself(DivOp, ONE, FLOAT, fast_math=True),
    WithItself(MaximumOp, X, NUMBER),
    WithItself(MinimumOp, X, NUMBER),
    WithItself(AndOp, X, LOGIC),
    WithItself(OrOp, X, LOGIC),
    WithItself(XorOp, ZERO, LOGIC),
    WithItself(EqOp, ONE, LOGIC),
    WithItself(EqOp, ONE, FLOAT, fast_math=True),
    WithItself(NeOp, ZERO, LOGIC),
    WithItself(NeOp, ZERO, FLOAT, fast_math=True),
    WithItself(LeOp, ONE, INTEGER),
    WithItself(LeOp, ONE, FLOAT, fast_math=True),
    WithItself(GeOp, ONE, INTEGER),
    WithItself(GeOp, ONE, FLOAT, fast_math=True),
    WithItself(LtOp, ZERO, NUMBER),
    WithItself(GtOp, ZERO, NUMBER),
)
_WHOLE = (FloorOp, CeilOp, RoundOp)
NESTED: Sequence[Nested] = (
    Nested(NegOp, NegOp, "x", NUMBER),
    Nested(NotOp, NotOp, "x", LOGIC),
    Nested(AbsOp, NegOp, "outer", FLOAT | SIGNED),
    Nested(AbsOp, AbsOp, "inner", NUMBER),
    Nested(SignOp, SignOp, "inner", NUMBER),
    Nested(CosOp, NegOp, "outer", FLOAT),
    Nested(CosOp, AbsOp, "outer", FLOAT),
    *(Nested(AbsOp, inner, "inner", FLOAT) for inner in (ExpOp, SqrtOp, SigmoidOp)),
    *(Nested(outer, inner, "inner", FLOAT) for outer in _WHOLE for inner in _WHOLE),
    Nested(LogOp, ExpOp, "x", FLOAT, fast_math=True),
)

Row = TypeVar("Row", WithNumber, WithItself, Nested)


def applying(rows: Sequence[Row], kind: type[BinaryOp | UnaryOp]) -> Sequence[Row]:
    """The rows for ops of a class."""
    return [row for row in rows if (row.outer if isinstance(row, Nested) else row.op) is kind]


def holds(row: WithNumber | WithItself | Nested, element_type: Attribute, rewriting: Rewriting) -> bool:
    """Whether a row is true of an element type, as the pass was asked to reckon."""
    return kind_of(element_type) in row.kinds and (rewriting.fast_math or not row.fast_math)


def with_number(op: BinaryOp, rewriting: Rewriting) -> bool:
    """A row of `WITH_NUMBER`: `x + 0` -> `x`, where x has the shape of the result."""
    lhs, rhs = op.accesses
    left, right = number_of(lhs), number_of(rhs)
    if left is None and right is None:
        return False
    kind = element(lhs.type)
    for row in applying(WITH_NUMBER, type(op)):
        number = row.number.of(kind)
        if number is None or not holds(row, kind, rewriting):
            continue
        if row.side != "left" and right == number and _become(op, row.result, lhs, rewriting):
            return True
        if row.side != "right" and left == number and _become(op, row.result, rhs, rewriting):
            return True
    return False


def with_itself(op: BinaryOp, rewriting: Rewriting) -> bool:
    """A row of `WITH_ITSELF`: `x < x` -> false."""
    lhs, rhs = op.accesses
    if lhs != rhs:
        return False
    rows = applying(WITH_ITSELF, type(op))
    return any(holds(row, element(lhs.type), rewriting) and _become(op, row.result, lhs, rewriting) for row in rows)


def _become(op: BinaryOp, result: Number | Operand, operand: Access, rewriting: Rewriting) -> bool:
    if isinstance(result, Number):
        number = result.of(element(op.result.type))
        assert number is not None
        return rewriting.constant(op, number)
    if result is X:
        return rewriting.read(op, operand)
    kind = NegOp if result is NEGATED else NotOp
    return rewriting.become(op, kind(operand, domain=op.domain))


def nested(op: UnaryOp, rewriting: Rewriting) -> bool:
    """A row of `NESTED`: `|-x|` -> `|x|`."""
    access = op.accesses[0]
    for row in applying(NESTED, type(op)):
        inner = made_by(access, row.inner)
        if inner is None or inner is op or not holds(row, element(op.result.type), rewriting):
            continue
        if row.result == "inner":
            if rewriting.read(op, access):
                return True
            continue
        source = read_through(access, inner.accesses[0], inner)
        if source is None:
            continue
        if row.result == "x" and rewriting.read_proved(op, source):
            return True
        if row.result == "outer" and rewriting.become(op, type(op)(source, domain=op.domain)):
            return True
    return False


def _table() -> Rules:
    binary = {row.op: (with_number, with_itself) for row in (*WITH_NUMBER, *WITH_ITSELF)}
    return MappingProxyType({**binary, **{row.outer: (nested,) for row in NESTED}})


RULES: Rules = _table()
