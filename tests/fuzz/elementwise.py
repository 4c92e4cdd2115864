"""Steps that add elementwise ops: unary, binary, comparisons, casts, choices between values."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access
from tempo_ir.dialects.types import dtype, shape_of, tensor
from tempo_ir.index.domain import Domain
from tests.fuzz.builder import Builder, NotHere, matching
from tests.fuzz.values import BOOLEANS, ROUNDINGS, WILD, Numbers, Value, coarsest, finest, union

Image = Callable[[Numbers], Numbers | None]
"""Bounds on the results of a unary op, or None where it does not take such operands."""


def _through(function: Callable[[float], float], low: float = -math.inf, high: float = math.inf) -> Image:
    """A rising function, for numbers between the bounds."""

    def image(n: Numbers) -> Numbers | None:
        return n.rounded(function(n.low), function(n.high)) if low <= n.low and n.high <= high else None

    return image


def _stepwise(n: Numbers) -> Numbers | None:
    """A function with jumps: of exact numbers only."""
    if n.grid is None:
        return None
    return Numbers(math.floor(n.low), math.ceil(n.high), 0, n.rounding)


FLOATS: dict[type[sdg.UnaryOp], Image] = {
    sdg.NegOp: lambda n: n.within(-n.high, -n.low),
    sdg.AbsOp: lambda n: n.within(0, n.magnitude),
    sdg.SignOp: lambda n: Numbers(-1, 1, 0, n.rounding) if n.grid is not None else None,
    sdg.FloorOp: _stepwise,
    sdg.CeilOp: _stepwise,
    sdg.RoundOp: _stepwise,
    sdg.TanhOp: lambda n: n.rounded(-1, 1),
    sdg.ErfOp: lambda n: n.rounded(-1, 1),
    sdg.SinOp: lambda n: n.rounded(-1, 1),
    sdg.CosOp: lambda n: n.rounded(-1, 1),
    sdg.SigmoidOp: lambda n: n.rounded(0, 1),
    sdg.ExpOp: _through(math.exp, -10, 3),
    sdg.LogOp: _through(math.log, 0.1),
    sdg.SqrtOp: _through(math.sqrt, 0.1),
    sdg.RsqrtOp: lambda n: n.rounded(0, 4) if n.low >= 0.1 else None,
}


def unary(b: Builder) -> Value:
    """A function of one value, read through any index."""
    value = b.pick(lambda v: True)
    access = b.read(value)
    domain = b.domain(access)
    if value.dtype == "bool":
        return b.add(sdg.NotOp(access, domain=domain), BOOLEANS)
    if not value.is_float:
        return b.add(b.random.choice([sdg.NegOp, sdg.AbsOp, sdg.SignOp, sdg.NotOp])(access, domain=domain), WILD)
    fitting = [(op, made) for op, image in FLOATS.items() if (made := image(value.numbers)) is not None]
    op, numbers = b.random.choice(fitting)
    return b.add(op(access, domain=domain), numbers)


def pair(b: Builder, fits: Callable[[Value], bool]) -> tuple[Access, Access, Numbers, Numbers]:
    """Two reads of one element type whose shapes broadcast, of values, or of a value and a number."""
    first = b.pick(fits)
    left, left_numbers = b.read(first), first.numbers
    type_ = left.tensor
    found = [v for v in b.values if fits(v) and v.dtype == first.dtype and matching(v.shape, shape_of(type_))]
    if not found or b.chance(0.15):
        other = b.constant(
            *b.number_of(b.random.choice([type_, tensor(type_.element_type)]))
            if _plain(left)
            else b.number_of(tensor(type_.element_type))
        )
        return left, b.at(other), left_numbers, other.numbers
    second = b.random.choice(found)
    right = b.read(second)
    if not matching(shape_of(right.type), shape_of(left.type)):
        right = b.at(second)
    sides = (left, right, left_numbers, second.numbers)
    return sides if b.chance(0.5) else (right, left, second.numbers, left_numbers)


def _plain(access: Access) -> bool:
    return all(isinstance(extent, int) for extent in shape_of(access.type))


def _sum(x: Numbers, y: Numbers) -> Numbers:
    return Numbers(x.low + y.low, x.high + y.high, finest([x, y]), coarsest([x, y]))


def _difference(x: Numbers, y: Numbers) -> Numbers:
    return _sum(x, Numbers(-y.high, -y.low, y.grid, y.rounding))


def _product(x: Numbers, y: Numbers) -> Numbers:
    corners = [a * c for a in (x.low, x.high) for c in (y.low, y.high)]
    grid = None if x.grid is None or y.grid is None else x.grid + y.grid
    return Numbers(min(corners), max(corners), grid, coarsest([x, y]))


def _quotient(x: Numbers, y: Numbers) -> Numbers | None:
    if y.low < 0.2 and y.high > -0.2:
        return None
    most = 5 * x.magnitude
    return Numbers(-most, most, None, coarsest([x, y]))


def _least(x: Numbers, y: Numbers) -> Numbers:
    both = union([x, y])
    return Numbers(both.low, min(x.high, y.high), both.grid, both.rounding)


def _greatest(x: Numbers, y: Numbers) -> Numbers:
    both = union([x, y])
    return Numbers(max(x.low, y.low), both.high, both.grid, both.rounding)


def _power(x: Numbers, y: Numbers) -> Numbers | None:
    if x.low < 0.2 or x.high > 4 or y.magnitude > 3:
        return None
    return Numbers(0, 130, None, coarsest([x, y]))


ARITHMETIC: dict[type[sdg.BinaryOp], Callable[[Numbers, Numbers], Numbers | None]] = {
    sdg.AddOp: _sum,
    sdg.SubOp: _difference,
    sdg.MulOp: _product,
    sdg.DivOp: _quotient,
    sdg.MinimumOp: _least,
    sdg.MaximumOp: _greatest,
    sdg.PowOp: _power,
}
INTEGERS = (sdg.AddOp, sdg.SubOp, sdg.MulOp, sdg.MinimumOp, sdg.MaximumOp, sdg.AndOp, sdg.OrOp, sdg.XorOp)
COMPARISONS = (sdg.LtOp, sdg.LeOp, sdg.GtOp, sdg.GeOp, sdg.EqOp, sdg.NeOp)
OPPOSITE = MappingProxyType({sdg.MinimumOp: sdg.MaximumOp, sdg.MaximumOp: sdg.MinimumOp})


def binary(b: Builder) -> Value:
    """Arithmetic or logic of two values."""
    left, right, x, y = pair(b, lambda v: True)
    domain = b.domain(left, right)
    element = left.tensor.element_type
    if element == dtype("bool"):
        return b.add(b.random.choice([sdg.AndOp, sdg.OrOp, sdg.XorOp])(left, right, domain=domain), BOOLEANS)
    if element in (dtype("i64"), dtype("i32")):
        return b.add(b.random.choice(INTEGERS)(left, right, domain=domain), WILD)
    fitting = [(op, made) for op, image in ARITHMETIC.items() if (made := image(x, y)) is not None]
    op, numbers = b.random.choice(fitting)
    return b.add(op(left, right, domain=domain), numbers)


def divided(b: Builder) -> Value:
    """Floor division, remainder or power by a number, of integers and exact floats."""
    value = b.pick(lambda v: v.is_exact and v.dtype != "bool")
    access = b.read(value)
    op = b.random.choice([sdg.FloordivOp, sdg.ModOp, sdg.ModOp] + ([] if value.is_float else [sdg.PowOp]))
    number = b.random.choice([2, 3, 4, 5]) if op is sdg.PowOp else b.random.choice([2, 3, 4, 5, -2, -3])
    scalar = tensor(access.tensor.element_type)
    by = b.constant(number, scalar)
    numbers = Numbers(min(0, number), max(0, number), value.numbers.grid, value.numbers.rounding)
    if op is sdg.FloordivOp:
        most = value.numbers.magnitude if value.is_float else WILD.high
        numbers = Numbers(-most - 1, most + 1, 0, value.numbers.rounding)
    elif op is sdg.PowOp:
        numbers = WILD
    return b.add(op(access, b.at(by), domain=b.domain(access)), numbers)


def compared(b: Builder) -> Value:
    """A comparison of exact values."""
    left, right, _, _ = pair(b, lambda v: v.is_exact)
    element = left.tensor.element_type
    op = b.random.choice(COMPARISONS[4:] if element == dtype("bool") else COMPARISONS)
    return b.add(op(left, right, domain=b.domain(left, right)), BOOLEANS)


def selected(b: Builder) -> Value:
    """One of two values by a boolean, element by element."""
    left, right, x, y = pair(b, lambda v: True)
    conditions = [
        v
        for v in b.values
        if v.dtype == "bool" and matching(v.shape, shape_of(left.type)) and matching(v.shape, shape_of(right.type))
    ]
    if not conditions:
        raise NotHere
    condition = b.at(b.random.choice(conditions))
    op = sdg.SelectOp(condition, left, right, domain=b.domain(condition, left, right))
    return b.add(op, union([x, y]))


def cast(b: Builder) -> Value:
    """Another element type; to integers and booleans from exact floats only, since rounding would jump."""
    value = b.pick(lambda v: True)
    access = b.read(value)
    targets = [name for name in (*ROUNDINGS, "i64", "i32", "bool") if name != value.dtype]
    if value.is_float and not value.is_exact:
        targets = [name for name in ROUNDINGS if name != value.dtype]
    elif not value.is_float and value.numbers.magnitude > 2**15:
        targets = [name for name in targets if name not in ROUNDINGS]
    target = b.random.choice(targets)
    numbers = value.numbers
    if target == "bool":
        numbers = BOOLEANS
    elif target.startswith("i"):
        numbers = WILD if numbers.magnitude > 2**15 else Numbers(math.floor(numbers.low), math.ceil(numbers.high))
    return b.add(sdg.CastOp(access, dtype(target), domain=b.domain(access)), numbers)


def stopped(b: Builder) -> Value:
    """A value that no gradient goes through."""
    value = b.pick(lambda v: v.is_float)
    return b.add(sdg.StopGradientOp(b.at(value), domain=Domain(value.dims)), value.numbers)
