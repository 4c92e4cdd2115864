"""Rules that group operands in another way, where that leaves fewer ops.

Exact for integers, which wrap, for logic and for extremes. Sums and products of floats round otherwise, and lose
infinities (`(x + y) - y`), so that they are grouped under `fast-math` only.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import cast

from tempo_ir.dialects.sdg import (
    Access,
    AddOp,
    AndOp,
    BinaryOp,
    ConstantOp,
    DivOp,
    EqOp,
    GeOp,
    GtOp,
    LeOp,
    LtOp,
    MaximumOp,
    MinimumOp,
    MulOp,
    NegOp,
    NeOp,
    NotOp,
    OrOp,
    SelectOp,
    SubOp,
    XorOp,
)
from tempo_ir.dialects.types import as_tensor, element, is_float
from tempo_ir.passes.building import Constructor, number_of
from tempo_ir.passes.simplify.rule import Rewriting, Rules, current_point, made_by, only_use, read_through


def is_exact(op: BinaryOp, rewriting: Rewriting) -> bool:
    """Whether operands of an op may be grouped otherwise."""
    return rewriting.fast_math or isinstance(op, MaximumOp | MinimumOp) or not is_float(element(op.result.type))


def constants_together(op: BinaryOp, rewriting: Rewriting) -> bool:
    """`(x + 2) + 3` -> `x + 5`, and the same of products, logic and extremes."""
    for access, number in (op.accesses, op.accesses[::-1]):
        inner = made_by(access, type(op))
        if inner is None or inner is op or number_of(number) is None or not is_exact(op, rewriting):
            continue
        for variable, constant in (inner.accesses, inner.accesses[::-1]):
            source = read_through(access, variable, inner)
            if number_of(constant) is None or source is None:
                continue
            both = _computed(type(op), constant, number)
            if both is not None and _become_of(op, type(op), source, both, rewriting):
                return True
    return False


def offsets_together(op: AddOp | SubOp, rewriting: Rewriting) -> bool:
    """`(x - 2) + 3` -> `x + 1`, `2 - (x + 3)` -> `-1 - x`: sums and differences of x and two numbers."""
    lhs, rhs = op.accesses
    if not is_exact(op, rewriting):
        return False
    for position, (access, number) in enumerate(((lhs, rhs), (rhs, lhs))):
        inner = made_by(access, AddOp) or made_by(access, SubOp)
        if inner is None or inner is op or number_of(number) is None:
            continue
        for own, (variable, constant) in enumerate((inner.accesses, inner.accesses[::-1])):
            source = read_through(access, variable, inner)
            if number_of(constant) is None or source is None:
                continue
            # the value is `sign * x + both`
            sign = -1 if isinstance(inner, SubOp) and own == 1 else 1
            offset = _computed(SubOp, _zero(constant), constant) if isinstance(inner, SubOp) and own == 0 else constant
            if isinstance(op, SubOp) and position == 1:  # number - inner
                sign, both = -sign, offset and _computed(SubOp, number, offset)
            else:
                both = offset and _computed(type(op), offset, number)
            if both is None:
                continue
            if sign > 0 and _become_of(op, AddOp, source, both, rewriting):
                return True
            if sign < 0 and _become_of(op, SubOp, both, source, rewriting):
                return True
    return False


def _zero(like: Access | ConstantOp) -> ConstantOp:
    value = like.value.owner if isinstance(like, Access) else like
    assert isinstance(value, ConstantOp)
    return ConstantOp(0, as_tensor(value.result.type))


def _computed(kind: type[BinaryOp], lhs: Access | ConstantOp, rhs: Access | ConstantOp) -> ConstantOp | None:
    """The op of two numbers, as the reference interpreter computes it; None for what is not one number."""
    from tempo_ir.passes.sdg_fold_constants import folded_number

    operands = [access.value.owner if isinstance(access, Access) else access for access in (lhs, rhs)]
    found = [operand for operand in operands if isinstance(operand, ConstantOp)]
    return folded_number(kind, *found) if len(found) == 2 else None


def _become_of(
    op: BinaryOp, kind: type[BinaryOp], lhs: Access | ConstantOp, rhs: Access | ConstantOp, rewriting: Rewriting
) -> bool:
    """The op becomes one of a value and a new constant, which is put in only if it does."""
    new = [operand for operand in (lhs, rhs) if isinstance(operand, ConstantOp)]
    sides = [operand if isinstance(operand, Access) else Access(operand.result) for operand in (lhs, rhs)]
    other = cast(Constructor, kind)(*sides, domain=op.domain)
    return rewriting.become(op, other, *new)


def cancelled(op: AddOp | SubOp, rewriting: Rewriting) -> bool:
    """`(x + y) - y` -> `x`, `(x - y) + y` -> `x`, `x - (x - y)` -> `y`, where that has the shape of the result."""
    if not is_exact(op, rewriting):
        return False
    for position, (access, other) in enumerate((op.accesses, op.accesses[::-1])):
        inner = made_by(access, SubOp if isinstance(op, AddOp) else AddOp)
        if isinstance(op, SubOp) and position == 1:
            inner = made_by(access, SubOp)  # x - (x - y)
        if inner is None or inner is op:
            continue
        first, second = (read_through(access, operand, inner) for operand in inner.accesses)
        kept = None
        if isinstance(op, AddOp):
            kept = first if second == other else None  # (x - y) + y
        elif position == 1:
            kept = second if first == other else None
        else:
            kept = first if second == other else second if first == other else None
        if kept is not None and rewriting.read_proved(op, kept):
            return True
    return False


def common_factor(op: AddOp | SubOp, rewriting: Rewriting) -> bool:
    """`a * x + a * y` -> `a * (x + y)`, where nobody else uses the products: two ops for three."""
    lhs, rhs = op.accesses
    first, second = made_by(lhs, MulOp), made_by(rhs, MulOp)
    if first is None or second is None or first is second or not is_exact(op, rewriting):
        return False
    if not only_use(lhs) or not only_use(rhs) or op in (first, second):
        return False
    left = [read_through(lhs, access, first) for access in first.accesses]
    right = [read_through(rhs, access, second) for access in second.accesses]
    for i, factor in enumerate(left):
        for j, other in enumerate(right):
            x, y = left[1 - i], right[1 - j]
            if factor is None or factor != other or x is None or y is None or x.type != y.type:
                continue
            inner = type(op)(x, y, domain=op.domain)
            outer = MulOp(factor, Access(inner.result, current_point(inner)), domain=op.domain)
            if rewriting.become(op, outer, inner):
                return True
    return False


def negatives_cancel(op: MulOp | DivOp, rewriting: Rewriting) -> bool:
    """`(-x) * (-y)` -> `x * y`, `(-x) / (-y)` -> `x / y`."""
    found: list[Access] = []
    for access in op.accesses:
        inner = made_by(access, NegOp)
        source = None if inner is None else read_through(access, inner.accesses[0], inner)
        if source is None:
            return False
        found.append(source)
    return rewriting.become(op, type(op)(*found, domain=op.domain))


def negated_difference(op: NegOp, rewriting: Rewriting) -> bool:
    """`-(x - y)` -> `y - x`."""
    access = op.accesses[0]
    inner = made_by(access, SubOp)
    if inner is None:
        return False
    lhs, rhs = (read_through(access, operand, inner) for operand in inner.accesses)
    return lhs is not None and rhs is not None and rewriting.become(op, SubOp(rhs, lhs, domain=op.domain))


_OPPOSITE: MappingProxyType[type[BinaryOp], type[BinaryOp]] = MappingProxyType(
    {EqOp: NeOp, NeOp: EqOp, LtOp: GeOp, GeOp: LtOp, GtOp: LeOp, LeOp: GtOp}
)


def negated_comparison(op: NotOp, rewriting: Rewriting) -> bool:
    """`not (x = y)` -> `x ne y`; `not (x < y)` -> `x >= y` where there is no NaN, to which neither applies."""
    access = op.accesses[0]
    inner = access.value.owner
    if not isinstance(inner, BinaryOp) or type(inner) not in _OPPOSITE:
        return False
    ordered = not isinstance(inner, EqOp | NeOp)
    if ordered and is_float(element(inner.operands[0].type)) and not rewriting.fast_math:
        return False
    lhs, rhs = (read_through(access, operand, inner) for operand in inner.accesses)
    if lhs is None or rhs is None:
        return False
    return rewriting.become(op, cast(Constructor, _OPPOSITE[type(inner)])(lhs, rhs, domain=op.domain))


def absorbed(op: AndOp | OrOp | MaximumOp | MinimumOp, rewriting: Rewriting) -> bool:
    """`x and (x or y)` -> `x`, `max(max(x, y), y)` -> `max(x, y)`, `max(x, min(x, y))` -> `x` where there is no NaN."""
    dual = {AndOp: OrOp, OrOp: AndOp, MaximumOp: MinimumOp, MinimumOp: MaximumOp}[type(op)]
    for access, other in (op.accesses, op.accesses[::-1]):
        for kind in (type(op), dual):
            inner = made_by(access, kind)
            if inner is None or inner is op:
                continue
            sources = [read_through(access, operand, inner) for operand in inner.accesses]
            if other not in sources:
                continue
            if kind is type(op) and rewriting.read(op, access):
                return True
            exact = rewriting.fast_math or not is_float(element(op.result.type))
            if kind is dual and exact and rewriting.read(op, other):
                return True
    return False


def select_of_select(op: SelectOp, rewriting: Rewriting) -> bool:
    """`c ? (c ? x : y) : z` -> `c ? x : z`, `c ? x : (c ? y : z)` -> `c ? x : z`."""
    condition, *sides = op.accesses
    for position, access in enumerate(sides):
        inner = made_by(access, SelectOp)
        if inner is None or inner is op or read_through(access, inner.accesses[0], inner) != condition:
            continue
        chosen = read_through(access, inner.accesses[1 + position], inner)
        if chosen is None:
            continue
        new = [chosen if number == position else side for number, side in enumerate(sides)]
        if rewriting.become(op, SelectOp(condition, *new, domain=op.domain)):
            return True
    return False


RULES: Rules = MappingProxyType(
    {
        AddOp: (constants_together, offsets_together, cancelled, common_factor),
        SubOp: (offsets_together, cancelled, common_factor),
        MulOp: (constants_together, negatives_cancel),
        DivOp: (negatives_cancel,),
        AndOp: (constants_together, absorbed),
        OrOp: (constants_together, absorbed),
        XorOp: (constants_together,),
        MaximumOp: (constants_together, absorbed),
        MinimumOp: (constants_together, absorbed),
        NegOp: (negated_difference,),
        NotOp: (negated_comparison,),
        SelectOp: (select_of_select,),
    }
)
