"""Derivatives of the elementwise ops, as tables of small functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from tempo_ir.dialects.sdg import (
    AbsOp,
    Access,
    AccessOp,
    AddOp,
    CastOp,
    CeilOp,
    CosOp,
    DivOp,
    EqOp,
    ErfOp,
    ExpOp,
    FloordivOp,
    FloorOp,
    GeOp,
    KeepOp,
    Log1pOp,
    LogOp,
    LtOp,
    MaximumOp,
    MinimumOp,
    ModOp,
    MulOp,
    NegOp,
    NotOp,
    PowOp,
    RoundOp,
    RsqrtOp,
    SelectOp,
    SigmoidOp,
    SignOp,
    SinOp,
    SqrtOp,
    SubOp,
    TanhOp,
)
from tempo_ir.dialects.types import element
from tempo_ir.passes.building import GraphBuilder, number_of
from tempo_ir.passes.gradients.step import Rule, Step

UnaryRule: TypeAlias = Callable[[GraphBuilder, Access, Access, Access], Access]
"""Builder, gradient of the result, operand and result to the gradient of the operand."""


def _sqrt(build: GraphBuilder, g: Access, x: Access, y: Access) -> Access:
    return build.div(build.scaled(0.5, g), y)


def _rsqrt(build: GraphBuilder, g: Access, x: Access, y: Access) -> Access:
    return build.mul(build.scaled(-0.5, g), build.mul(y, build.mul(y, y)))


def _tanh(build: GraphBuilder, g: Access, x: Access, y: Access) -> Access:
    return build.mul(g, build.sub(build.number_like(1.0, y), build.mul(y, y)))


def _sigmoid(build: GraphBuilder, g: Access, x: Access, y: Access) -> Access:
    return build.mul(g, build.mul(y, build.sub(build.number_like(1.0, y), y)))


def _erf(build: GraphBuilder, g: Access, x: Access, y: Access) -> Access:
    bell = build.unary(ExpOp, build.neg(build.mul(x, x)))
    return build.mul(build.scaled(2 / math.sqrt(math.pi), g), bell)


UNARY: Mapping[type[AccessOp], UnaryRule] = MappingProxyType(
    {
        NegOp: lambda build, g, x, y: build.neg(g),
        ExpOp: lambda build, g, x, y: build.mul(g, y),
        LogOp: lambda build, g, x, y: build.div(g, x),
        Log1pOp: lambda build, g, x, y: build.div(g, build.add(x, build.number_like(1.0, x))),
        SqrtOp: _sqrt,
        RsqrtOp: _rsqrt,
        TanhOp: _tanh,
        SigmoidOp: _sigmoid,
        ErfOp: _erf,
        SinOp: lambda build, g, x, y: build.mul(g, build.unary(CosOp, x)),
        CosOp: lambda build, g, x, y: build.neg(build.mul(g, build.unary(SinOp, x))),
        AbsOp: lambda build, g, x, y: build.mul(g, build.unary(SignOp, x)),
    }
)


STEEP = (ExpOp, LogOp, Log1pOp, SqrtOp, RsqrtOp)
"""Ops whose slope has no bound."""


def unary(step: Step) -> None:
    """`dx = dy * f'(x)`."""
    rule = UNARY[type(step.op)]
    gradient = rule(step.build, step.gradient, step.operand(), step.result)
    step.send_elementwise(0, gradient, singular=isinstance(step.op, STEEP))


def cast(step: Step) -> None:
    """`dx = cast(dy)`, back to the operand's element type."""
    step.send_elementwise(0, step.build.cast(step.gradient, element(step.operand().type)), may_overflow=False)


def constant_almost_everywhere(step: Step) -> None:
    """Steps (floor, sign, round, floordiv) have the derivative zero."""


def add(step: Step) -> None:
    """`dx = dy`, for both."""
    for number in sorted(step.wanted):
        step.send_elementwise(number, step.gradient, may_overflow=False)


def sub(step: Step) -> None:
    """`da = dy`, `db = -dy`."""
    if 0 in step.wanted:
        step.send_elementwise(0, step.gradient, may_overflow=False)
    if 1 in step.wanted:
        step.send_elementwise(1, step.build.neg(step.gradient), may_overflow=False)


def mul(step: Step) -> None:
    """`da = dy * b`, `db = dy * a`; for a square, `da = 2 * dy * a` at once."""
    a, b = step.operand(0), step.operand(1)
    if a == b:
        singular = a.value in step.unbounded
        step.send_elementwise(0, step.build.mul(a, step.build.scaled(2.0, step.gradient)), singular=singular)
        return
    for number, other in ((0, b), (1, a)):
        if number in step.wanted:
            gradient, singular = step.build.mul(step.gradient, other), other.value in step.unbounded
            step.send_elementwise(number, gradient, may_overflow=number_of(other) is None, singular=singular)


def div(step: Step) -> None:
    """`da = dy / b`, `db = -dy * y / b`."""
    build, b = step.build, step.operand(1)
    quotient = build.div(step.gradient, b)
    if 0 in step.wanted:
        step.send_elementwise(0, quotient, may_overflow=not number_of(b), singular=not number_of(b))
    if 1 in step.wanted:
        step.send_elementwise(1, build.neg(build.mul(quotient, step.result)), singular=True)


def power(step: Step) -> None:
    """`da = dy * b * a ** (b - 1)`, 0 where b is 0; `db = dy * y * log(a)`, 0 where a is 0 and b is not negative."""
    if 0 in step.wanted:
        step.send_elementwise(0, _power_base(step), singular=(number_of(step.operand(1)) or 0) < 1)
    if 1 in step.wanted:
        build, a, b, zero = step.build, step.operand(0), step.operand(1), step.build.number_like(0.0, step.operand(0))
        smooth = build.mul(step.gradient, build.mul(step.result, build.unary(LogOp, a)))
        flat = build.logical_and(build.build(EqOp, a, zero), build.build(GeOp, b, zero))
        step.send_elementwise(1, build.select(flat, zero, smooth), singular=True)


def _power_base(step: Step) -> Access:
    build, a, b = step.build, step.operand(0), step.operand(1)
    exponent = number_of(b)
    if exponent is None:
        lowered = build.build(PowOp, a, build.sub(b, build.number_like(1.0, b)))
        slope = build.mul(step.gradient, build.mul(b, lowered))
        zero = build.number_like(0.0, a)
        return build.select(build.build(EqOp, b, zero), zero, slope)
    if exponent == 0:
        return build.number_like(0.0, a)
    lowered = a if exponent == 2 else build.build(PowOp, a, build.number_like(exponent - 1.0, a))
    return build.mul(build.scaled(float(exponent), step.gradient), lowered)


def modulo(step: Step) -> None:
    """`da = dy`, `db = -dy * floor(a / b)`."""
    build = step.build
    if 0 in step.wanted:
        step.send_elementwise(0, step.gradient, may_overflow=False)
    if 1 in step.wanted:
        whole = build.unary(FloorOp, build.div(step.operand(0), step.operand(1)))
        step.send_elementwise(1, build.neg(build.mul(step.gradient, whole)), singular=True)


def extreme(step: Step) -> None:
    """The gradient goes to the greater (or smaller) operand; half of it to each where they are equal, as in torch."""
    build, a, b = step.build, step.operand(0), step.operand(1)
    half = build.scaled(0.5, step.gradient)
    equal = build.build(EqOp, a, b)
    for number, own, other in ((0, a, b), (1, b, a)):
        if number not in step.wanted:
            continue
        first, second = (own, other) if isinstance(step.op, MaximumOp) else (other, own)
        lost = build.build(LtOp, first, second)
        zero = build.number_like(0.0, half)
        shared = build.select(equal, half, step.gradient)
        step.send_elementwise(number, build.select(lost, zero, shared), may_overflow=False)


def select(step: Step) -> None:
    """`da = c ? dy : 0`, `db = c ? 0 : dy`; upstream of the unselected side gradients stay 0, not `0 * inf`."""
    build, condition = step.build, step.operand(0)
    zero = build.number_like(0.0, step.gradient)
    for number in sorted(step.wanted):
        chosen = build.select(condition, *((step.gradient, zero) if number == 1 else (zero, step.gradient)))
        side = condition if number == 1 else build.build(NotOp, condition)
        mask = side if step.mask is None else build.logical_and(step.mask, side)
        masked = replace(step, gradient=chosen, mask=mask)
        masked.send_elementwise(number, chosen, may_overflow=False)


BINARY: Mapping[type[AccessOp], Rule] = MappingProxyType(
    {
        AddOp: add,
        SubOp: sub,
        MulOp: mul,
        DivOp: div,
        PowOp: power,
        ModOp: modulo,
        MaximumOp: extreme,
        MinimumOp: extreme,
    }
)

FLAT = (CeilOp, FloorOp, FloordivOp, RoundOp, SignOp)

RULES: Mapping[type[AccessOp], Rule] = MappingProxyType(
    {
        **dict.fromkeys(UNARY, unary),
        **dict.fromkeys(FLAT, constant_almost_everywhere),
        **BINARY,
        CastOp: cast,
        KeepOp: cast,
        SelectOp: select,
    }
)
