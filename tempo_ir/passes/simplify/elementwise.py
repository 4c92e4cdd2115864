"""Rules for elementwise ops.

All keep NaN and infinity: `0 * x` stays, for it is NaN where x is not finite, and so does `x - x`. The sign of a zero
may change (`x + 0`).
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import cast

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    AddOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    DivOp,
    MulOp,
    NegOp,
    NotOp,
    PowOp,
    Sdg,
    SelectOp,
    SubOp,
)
from tempo_ir.dialects.types import dtype_name, element
from tempo_ir.passes.building import Constructor, number_of
from tempo_ir.passes.simplify.rule import Rewriting, Rules, is_number, made_by, read_point_through, read_through


def add_of_negative(op: AddOp, rewriting: Rewriting) -> bool:
    """`x + (-y)` -> `x - y`, `(-x) + y` -> `y - x`."""
    for kept, negated in (op.accesses, op.accesses[::-1]):
        inner = made_by(negated, NegOp)
        source = None if inner is None else read_through(negated, inner.accesses[0], inner)
        if source is not None and rewriting.become(op, SubOp(kept, source, domain=op.domain)):
            return True
    return False


def sub_of_negative(op: SubOp, rewriting: Rewriting) -> bool:
    """`x - (-y)` -> `x + y`."""
    lhs, rhs = op.accesses
    inner = made_by(rhs, NegOp)
    source = None if inner is None else read_through(rhs, inner.accesses[0], inner)
    return source is not None and rewriting.become(op, AddOp(lhs, source, domain=op.domain))


def division_by_power_of_two(op: DivOp, rewriting: Rewriting) -> bool:
    """`x / 8` -> `x * 0.125`, which rounds alike, for powers of two that have a reciprocal in every float type."""
    lhs, rhs = op.accesses
    divisor = number_of(rhs)
    if not divisor or not math.isfinite(divisor) or rhs.tensor.get_num_dims():
        return False
    mantissa, exponent = math.frexp(divisor)
    if abs(mantissa) != 0.5 or abs(exponent) > 12:
        return False
    factor = rewriting.rewriter.insert(ConstantOp(1 / divisor, rhs.tensor))
    return rewriting.become(op, MulOp(lhs, Access(factor.result), domain=op.domain))


def square(op: PowOp, rewriting: Rewriting) -> bool:
    """`x ** 2` -> `x * x`."""
    base, exponent = op.accesses
    return is_number(exponent, 2) and rewriting.become(op, MulOp(base, base, domain=op.domain))


def select_of_constant(op: SelectOp, rewriting: Rewriting) -> bool:
    """`true ? x : y` -> `x`, where x has the shape of the result."""
    condition, lhs, rhs = op.accesses
    chosen = number_of(condition)
    return chosen is not None and rewriting.read(op, lhs if chosen else rhs)


def select_of_equals(op: SelectOp, rewriting: Rewriting) -> bool:
    """`c ? x : x` -> `x`."""
    _, lhs, rhs = op.accesses
    return lhs == rhs and rewriting.read(op, lhs)


def select_by_negation(op: SelectOp, rewriting: Rewriting) -> bool:
    """`(not c) ? x : y` -> `c ? y : x`."""
    condition, lhs, rhs = op.accesses
    inner = made_by(condition, NotOp)
    source = None if inner is None else read_through(condition, inner.accesses[0], inner)
    return source is not None and rewriting.become(op, SelectOp(source, rhs, lhs, domain=op.domain))


def cast_to_same(op: CastOp, rewriting: Rewriting) -> bool:
    """A cast to the operand's own type -> the operand."""
    return rewriting.read(op, op.accesses[0])


def cast_of_cast(op: CastOp, rewriting: Rewriting) -> bool:
    """A cast of a cast that lost nothing -> one cast: `f32 -> f64 -> i32` -> `f32 -> i32`; or of integers that are cut
    to fewer bits: `i64 -> i32 -> i8` -> `i64 -> i8`."""
    inner = made_by(op.accesses[0], CastOp)
    if inner is None or inner is op:
        return False
    source = read_through(op.accesses[0], inner.accesses[0], inner)
    if source is None:
        return False
    names = [dtype_name(element(tensor)) for tensor in (source.type, inner.result.type, op.result.type)]
    if not is_one_cast(*names):
        return False
    return rewriting.become(op, CastOp(source, element(op.result.type), domain=op.domain))


def is_one_cast(source: str, between: str, target: str) -> bool:
    """Whether casts by way of another dtype are a cast at once, for every value."""
    if is_wrapping(source, between, target):
        return True
    if not is_lossless(source, between):
        return False
    # an integer wraps where a float, that it became on the way, saturates
    saturates = source in _BITS and between in _EXACT_BITS and target in _BITS and target != "bool"
    return not saturates or is_lossless(source, target)


def is_wrapping(source: str, between: str, target: str) -> bool:
    """Whether integers are cut to fewer bits twice: the low bits are the same at once. A bool asks for all bits."""
    bits = [_BITS.get(name, 0) for name in (source, between, target)]
    return all(bits) and target != "bool" and source != "bool" and between != "bool" and bits[1] >= bits[2]


_EXACT_BITS = MappingProxyType({"f64": 53, "f32": 24, "f16": 11, "bf16": 8})
_RANGE = MappingProxyType({"f64": 1024, "f32": 128, "f16": 16, "bf16": 128})
_BITS = MappingProxyType({"bool": 1, "i8": 8, "u8": 8, "i16": 16, "i32": 32, "i64": 64})


def is_lossless(source: str, target: str) -> bool:
    """Whether every value of one dtype is a value of another, and comes back the same."""
    if source == target or source == "bool":
        return True
    if source in _EXACT_BITS:
        wider = target in _EXACT_BITS and _EXACT_BITS[source] <= _EXACT_BITS[target]
        return wider and _RANGE[source] <= _RANGE[target]
    if target in _EXACT_BITS:
        return _BITS[source] <= _EXACT_BITS[target] and _BITS[source] < _RANGE[target]
    if target not in _BITS or target == "bool":
        return False
    signs = source.startswith("u"), target.startswith("u")
    return (_BITS[source] < _BITS[target] and not signs[1]) or signs == (True, True)


def broadcast_operand(op: AccessOp, rewriting: Rewriting) -> bool:
    """An operand that was broadcast -> what was broadcast, where the op itself makes the same shape of it."""
    for number, access in enumerate(op.accesses):
        inner = made_by(access, BroadcastOp)
        source = None if inner is None else read_point_through(access, inner.accesses[0], inner)
        if source is None:
            continue
        operands = [*op.accesses[:number], source, *op.accesses[number + 1 :]]
        rebuilt = cast(Constructor, type(op))(*operands, domain=op.domain)
        same = rebuilt.results[0].type == op.results[0].type
        rebuilt.erase()
        if same:
            op.with_access(number, source.value, source.index)
            rewriting.rewriter.notify_op_modified(op)
            return True
    return False


_BROADCASTING = (*(kind for kind in Sdg.operations if issubclass(kind, BinaryOp)), SelectOp)

_TABLE: Rules = MappingProxyType(
    {
        AddOp: (add_of_negative,),
        SubOp: (sub_of_negative,),
        DivOp: (division_by_power_of_two,),
        PowOp: (square,),
        SelectOp: (select_of_constant, select_of_equals, select_by_negation),
        CastOp: (cast_to_same, cast_of_cast),
    }
)

RULES: Rules = MappingProxyType(
    {**_TABLE, **{kind: (*_TABLE.get(kind, ()), broadcast_operand) for kind in _BROADCASTING}}
)
