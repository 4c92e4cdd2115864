"""Elementwise ops of the tile dialect on registers, for every element type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from xdsl.ir import Attribute, Operation

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import bit_width, element_of, is_bool, is_float, is_unsigned
from tempo_ir.lowering.llvm import power, vector_math
from tempo_ir.lowering.llvm.memory import element_layout, round_trip
from tempo_ir.lowering.llvm.text import Register

FLOAT_PREDICATES: Mapping[type[Operation], str] = MappingProxyType(
    {ew.LtOp: "olt", ew.LeOp: "ole", ew.GtOp: "ogt", ew.GeOp: "oge", ew.EqOp: "oeq", ew.NeOp: "une"}
)
INTEGER_PREDICATES: Mapping[type[Operation], str] = MappingProxyType(
    {ew.LtOp: "lt", ew.LeOp: "le", ew.GtOp: "gt", ew.GeOp: "ge"}
)


SCALING = (ew.MulOp, ew.DivOp, ew.NegOp, ew.CastOp)
"""What an exponent may be scaled by."""


def apply(op: Operation, operands: Sequence[Register], store_rounds: bool = False) -> Register:
    """
    The result of an elementwise op. `store_rounds` says that a cast to f16 or bf16 goes to memory only, where it is
    rounded anyway.
    """
    if isinstance(op, ew.CastOp):
        return convert(operands[0], element_of(op.value), element_of(op.result), rounded=not store_rounds)
    if isinstance(op, ew.SelectOp):
        condition, a, b = operands
        return (
            a
            if condition.is_constant and condition.name in ("true", "splat (i1 true)")
            else a.text.select(condition, a, b)
        )
    unsigned = is_unsigned(element_of(op.operands[0]))
    if isinstance(op, ew.ComparisonOp):
        return compare(op, *operands, unsigned=unsigned)
    if isinstance(op, ew.SubOp) and operands[0].is_float and _is_an_exponent(op):
        return operands[0].text.binary("fsub", *operands, flags="nsz")
    if type(op) in PLAIN_FUNCTIONS:
        return PLAIN_FUNCTIONS[type(op)](*operands)
    if operands[0].is_float:
        return FLOAT_FUNCTIONS[type(op)](*operands)
    return INTEGER_FUNCTIONS[type(op)](*operands, unsigned)


CALLED_FROM = 4
"""So many uses of one function in a kernel are calls: the code of each is a dozen instructions a vector, which take
LLVM longer than all else of the kernel."""
CALLED_VECTORS = 4
"""Vectors that a call takes: they come and go in registers, and have the time of a call together."""


def called_functions(kernel: Operation) -> frozenset[type[Operation]]:
    """The elementary functions that a kernel has so many of that each is written once and called (of a kernel of a
    hundred `tanh`: a third of the time to compile, the same to run)."""
    uses = Counter(type(op) for op in kernel.walk() if isinstance(op, ew.FLOAT_UNARY))
    return frozenset(
        kind
        for kind, count in uses.items()
        if count >= CALLED_FROM and kind.name.removeprefix("tile.") in vector_math.FUNCTIONS
    )


def apply_shared(op: Operation, operands: Sequence[Register]) -> list[Register]:
    """The results of an elementary function by calls of a shared function, where operands are vectors of f32."""
    if not all(operand.lanes and operand.kind == "f32" for operand in operands):
        return [apply(op, [operand]) for operand in operands]
    name = op.name.removeprefix("tile.")
    groups = [operands[i : i + CALLED_VECTORS] for i in range(0, len(operands), CALLED_VECTORS)]
    compute = partial(vector_math.apply, name)
    return [result for group in groups for result in group[0].text.shared(name, compute, group)]


def _is_an_exponent(op: Operation, steps: int = 3) -> bool:
    """Whether a difference is that of an exponential, `exp(a * b - greatest)`, maybe scaled before in a few steps: a
    product that is fused into it is not the one, rounded, that is the greatest, and of large ones the difference would
    be any number."""
    users = [use.operation for use in op.results[0].uses]
    return any(
        isinstance(user, ew.ExpOp) or (steps > 0 and isinstance(user, SCALING) and _is_an_exponent(user, steps - 1))
        for user in users
    )


def compare(op: ew.ComparisonOp, a: Register, b: Register, unsigned: bool) -> Register:
    """A comparison, as i1."""
    if a.is_float:
        return a.text.compare(FLOAT_PREDICATES[type(op)], a, b)
    if isinstance(op, ew.EqualityOp):
        return a.text.compare("eq" if isinstance(op, ew.EqOp) else "ne", a, b)
    return a.text.compare(("u" if unsigned else "s") + INTEGER_PREDICATES[type(op)], a, b)


def convert(x: Register, source: Attribute, target: Attribute, rounded: bool = True) -> Register:
    """`tile.cast`"""
    text, kind = x.text, element_layout(target).kind
    if is_bool(target):
        return text.compare("une" if x.is_float else "ne", x, 0)
    if is_float(target):
        if x.is_float:
            return _convert_float(x, target, rounded)
        wide = text.convert("uitofp" if is_bool(source) or is_unsigned(source) else "sitofp", x, kind)
        return round_trip(element_layout(target), wide) if rounded else wide
    if x.is_float:
        return float_to_integer(x, bit_width(target), is_unsigned(target))
    width, wanted = bit_width(source), bit_width(target)
    if width == wanted:
        return x
    if width > wanted:
        return text.convert("trunc", x, kind)
    return text.convert("zext" if is_bool(source) or is_unsigned(source) else "sext", x, kind)


def _convert_float(x: Register, target: Attribute, rounded: bool) -> Register:
    layout = element_layout(target)
    if x.kind == "f64" and layout.storage == "f16":
        x = rounded_to_odd(x)
    elif x.kind != layout.kind:
        x = x.text.convert("fpext" if layout.kind == "f64" else "fptrunc", x, layout.kind)
    return round_trip(layout, x) if rounded else x


def rounded_to_odd(x: Register) -> Register:
    """
    f64 to f32, where a number between two floats is the one whose last bit is set: rounded further, to f16, it is
    rounded as if once (S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using
    rounding to odd, 2008).
    """
    text = x.text
    nearest = text.convert("fptrunc", x, "f32")
    back, bits = text.convert("fpext", nearest, "f64"), text.bits(nearest, "i32")
    is_beyond = text.compare("ogt", vector_math.magnitude(back), vector_math.magnitude(x))
    return text.bits(text.select(text.compare("one", back, x), text.select(is_beyond, bits - 1, bits) | 1, bits), "f32")


def float_to_integer(x: Register, width: int, unsigned: bool) -> Register:
    """
    Truncated and saturated, NaN to 0. LLVM's conversion is undefined outside the range, so x is clamped to what a
    float can hold of it, and the ends are selected.
    """
    text = x.text
    low, high = (0, (1 << width) - 1) if unsigned else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    mantissa = 53 if x.kind == "f64" else 24
    largest = (
        high if high.bit_length() <= mantissa else (1 << high.bit_length()) - (1 << (high.bit_length() - mantissa))
    )
    clamped = vector_math.at_least(vector_math.at_most(x, float(largest)), float(low))
    clamped = text.select(text.compare("uno", x, x), 0.0, clamped)
    kind = f"i{max(width, 32)}"
    result = text.convert("fptoui" if unsigned else "fptosi", clamped, kind)
    if largest != high:
        result = text.select(text.compare("ogt", x, float(largest)), high, result)
    return text.convert("trunc", result, f"i{width}") if width < 32 else result


PLAIN_FUNCTIONS: Mapping[type[Operation], Callable[..., Register]] = MappingProxyType(
    {
        ew.NegOp: Register.__neg__,
        ew.AddOp: Register.__add__,
        ew.SubOp: Register.__sub__,
        ew.MulOp: Register.__mul__,
        ew.DivOp: Register.__truediv__,
        ew.AndOp: Register.__and__,
        ew.OrOp: Register.__or__,
        ew.XorOp: Register.__xor__,
    }
)
"""What registers do by themselves, floats and integers."""


# -- floats


def _floor_remainder(a: Register, b: Register) -> tuple[Register, Register]:
    """a modulo b with the sign of b, and the quotient before rounding it to an integer."""
    text = a.text
    remainder = text.binary("frem", a, b, "nsz")
    differs = text.compare("olt", remainder * vector_math.copy_sign(text.constant(1.0, a.kind, a.lanes), b), 0.0)
    quotient = text.binary("fdiv", text.binary("fsub", a, remainder, "nsz"), b, "nsz")
    quotient = text.select(differs, quotient - 1.0, quotient)
    return text.select(differs, remainder + b, remainder), quotient


def _float_floordiv(a: Register, b: Register) -> Register:
    text = a.text
    _, quotient = _floor_remainder(a, b)
    floor = text.intrinsic("floor", quotient)
    floor = text.select(text.compare("ogt", quotient - floor, 0.5), floor + 1.0, floor)
    return text.select(text.compare("oeq", b, 0.0), a / b, floor)


def _float_mod(a: Register, b: Register) -> Register:
    return _floor_remainder(a, b)[0]


def _float_sign(x: Register) -> Register:
    text = x.text
    unit = vector_math.copy_sign(text.constant(1.0, x.kind, x.lanes), x)
    return text.select(text.compare("one", x, 0.0), unit, x)


def _float_max(a: Register, b: Register) -> Register:
    return a.text.maximum(a, b)


def _float_min(a: Register, b: Register) -> Register:
    return a.text.minimum(a, b)


FLOAT_FUNCTIONS: Mapping[type[Operation], Callable[..., Register]] = MappingProxyType(
    {
        ew.AbsOp: vector_math.magnitude,
        ew.SignOp: _float_sign,
        **{op: partial(vector_math.apply, op.name.removeprefix("tile.")) for op in ew.FLOAT_UNARY},
        ew.FloorDivOp: _float_floordiv,
        ew.ModOp: _float_mod,
        ew.PowOp: power.power,
        ew.MaxOp: _float_max,
        ew.MinOp: _float_min,
    }
)


# -- integers: functions of the operands and of whether they are unsigned


def _guarded_divisor(a: Register, b: Register, unsigned: bool) -> tuple[Register, Register | None]:
    """A divisor that cannot trap, and where it stands for another: 0, and -1, where the quotient may overflow."""
    text = a.text
    if b.is_constant and (not b.lanes or b.name.startswith("splat")):
        if b.name not in [text.constant(n, b.kind, b.lanes).name for n in (0, -1)]:
            return b, None
    bad = text.compare("eq", b, 0)
    if not unsigned:
        x, y = text.unify(bad, text.compare("eq", b, -1))
        bad = text.binary("or", x, y)
    return text.select(bad, 1, b), bad


def _integer_floordiv(a: Register, b: Register, unsigned: bool) -> Register:
    text = a.text
    divisor, bad = _guarded_divisor(a, b, unsigned)
    if unsigned:
        quotient = text.binary("udiv", a, divisor)
    else:
        truncated = text.binary("sdiv", a, divisor)
        remainder = a - truncated * divisor
        rounds_up = text.both(text.compare("ne", remainder, 0), text.compare("slt", remainder ^ divisor, 0))
        assert rounds_up is not None
        quotient = text.select(rounds_up, truncated - 1, truncated)
    if bad is None:
        return quotient
    special = text.select(text.compare("eq", b, 0), text.constant(0, a.kind), text.constant(0, a.kind) - a)
    return text.select(bad, special, quotient)


def _integer_mod(a: Register, b: Register, unsigned: bool) -> Register:
    text = a.text
    divisor, bad = _guarded_divisor(a, b, unsigned)
    if unsigned:
        remainder = text.binary("urem", a, divisor)
    else:
        remainder = text.binary("srem", a, divisor)
        differs = text.both(text.compare("ne", remainder, 0), text.compare("slt", remainder ^ divisor, 0))
        assert differs is not None
        remainder = text.select(differs, remainder + divisor, remainder)
    return remainder if bad is None else text.select(bad, text.constant(0, a.kind), remainder)


def _integer_pow(a: Register, b: Register, unsigned: bool) -> Register:
    """By squaring over the bits of the exponent; a negative exponent leaves 0, 1 or -1."""
    text, width = a.text, int(a.kind[1:])
    if b.is_constant and not b.lanes and 0 <= int(b.name) < 64:
        return power.integer_power(a, int(b.name))
    a, b = text.unify(a, b)
    result = text.constant(1, a.kind, a.lanes)
    factor = a
    # past log2(width) bits only the bases 0, 1, -1 and even ones differ from what more squarings give
    for bit in range(width if unsigned else width - 1):
        result = text.select(text.compare("ne", b & (1 << bit), 0), result * factor, result)
        factor = factor * factor
    if unsigned:
        return result
    odd = text.compare("ne", b & 1, 0)
    inverse = text.select(text.compare("eq", a, 1), a, text.constant(0, a.kind))
    inverse = text.select(text.compare("eq", a, -1), text.select(odd, a, 1), inverse)
    return text.select(text.compare("slt", b, 0), inverse, result)


def _shift(name: str, a: Register, b: Register, emptied: Register) -> Register:
    text, width = a.text, int(a.kind[1:])
    outside = text.compare("uge", b, width)
    return text.select(outside, emptied, text.binary(name, a, text.select(outside, 0, b)))


def _shl(a: Register, b: Register, unsigned: bool) -> Register:
    return _shift("shl", a, b, a.text.constant(0, a.kind))


def _shr(a: Register, b: Register, unsigned: bool) -> Register:
    if unsigned:
        return _shift("lshr", a, b, a.text.constant(0, a.kind))
    return _shift("ashr", a, b, a.text.binary("ashr", a, int(a.kind[1:]) - 1))


def _integer_abs(x: Register, unsigned: bool) -> Register:
    return x if unsigned else x.text.select(x.text.compare("slt", x, 0), x.text.negate(x), x)


def _integer_sign(x: Register, unsigned: bool) -> Register:
    text = x.text
    positive = text.select(text.compare("ne", x, 0), text.constant(1, x.kind), 0)
    return positive if unsigned else text.select(text.compare("slt", x, 0), -1, positive)


def integer_extremum(a: Register, b: Register, unsigned: bool, largest: bool) -> Register:
    """The larger or smaller."""
    predicate = ("u" if unsigned else "s") + ("gt" if largest else "lt")
    return a.text.select(a.text.compare(predicate, a, b), a, b)


def _integer_not(x: Register, unsigned: bool) -> Register:
    return x ^ (1 if x.kind == "i1" else -1)


INTEGER_FUNCTIONS: Mapping[type[Operation], Callable[..., Register]] = MappingProxyType(
    {
        ew.AbsOp: _integer_abs,
        ew.SignOp: _integer_sign,
        ew.NotOp: _integer_not,
        ew.FloorDivOp: _integer_floordiv,
        ew.ModOp: _integer_mod,
        ew.PowOp: _integer_pow,
        ew.MaxOp: partial(integer_extremum, largest=True),
        ew.MinOp: partial(integer_extremum, largest=False),
        ew.ShlOp: _shl,
        ew.ShrOp: _shr,
    }
)
