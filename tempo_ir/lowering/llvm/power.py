"""
Powers. A literal exponent that is a small integer or a half is multiplications or a square root; f32 vectors go through
log2 and exp2 in f64, whose 29 spare bits make the result correct to about half an ulp; the rest asks the C library.
"""

from __future__ import annotations

from tempo_ir.lowering.llvm.text import Register
from tempo_ir.lowering.llvm.vector_math import (
    at_least,
    at_most,
    copy_sign,
    lane_by_lane,
    magnitude,
    polynomial,
)

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453

ATANH_COEFFICIENTS = tuple(2 * LOG2_E / n for n in (13, 11, 9, 7, 5, 3, 1))
"""log2(m) = 2 / ln(2) * (s + s**3 / 3 + s**5 / 5 + ...) with s = (m - 1) / (m + 1)."""

EXP_COEFFICIENTS = (1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0)
"""exp(r) by Taylor's series, for |r| <= ln(2) / 2."""

SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
ONE_BITS = 0x3FF0000000000000
MANTISSA = (1 << 52) - 1


def power(x: Register, y: Register) -> Register:
    """x to the y, with the special cases of C's pow."""
    simple = _literal_power(x, y)
    if simple is not None:
        return simple
    if x.kind == "f64":
        return lane_by_lane("pow", x, y)
    x, y = x.text.unify(x, y)
    return _vector_power(x, y) if x.lanes else lane_by_lane("powf", x, y)


def _literal_power(x: Register, y: Register) -> Register | None:
    """The power by multiplication where y is a literal that allows it."""
    text = x.text
    for exponent in (*range(-4, 17), 0.5, -0.5):
        if y.name not in (text.constant(exponent, y.kind).name, text.constant(exponent, y.kind, text.lanes).name):
            continue
        if exponent in (0.5, -0.5):
            # a square root differs at -inf (NaN, the power is inf) and at -0.0 (-0.0, the power is 0)
            root = text.select(text.compare("oeq", x, 0.0), 0.0, text.intrinsic("sqrt", x))
            root = text.select(text.compare("oeq", x, float("-inf")), float("inf"), root)
            return root if exponent > 0 else 1.0 / root
        return integer_power(x, int(exponent))
    return None


def integer_power(x: Register, n: int) -> Register:
    """x to a literal integer, by squaring; works for integers where n >= 0."""
    text = x.text
    if n < 0:
        return 1.0 / integer_power(x, -n)
    result: Register | None = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        x = x * x if n else x
    return text.constant(1, x.kind, x.lanes) if result is None else result


def _log2(x: Register) -> Register:
    """log2 of an f64 that is not negative; -inf at 0, inf at infinity."""
    text = x.text
    bits = text.bits(x, "i64")
    shifted = bits + (ONE_BITS - SQRT_HALF_BITS)
    exponent = text.convert("sitofp", text.binary("ashr", shifted, 52) - 1023, "f64")
    m = text.bits((shifted & MANTISSA) + SQRT_HALF_BITS, "f64")
    s = (m - 1.0) / (m + 1.0)
    result = polynomial(s * s, ATANH_COEFFICIENTS) * s + exponent
    result = text.select(text.compare("oeq", x, 0.0), float("-inf"), result)
    # infinity and NaN, whose exponent bits are all ones, stay what they are
    return text.select(text.compare("olt", x, float("inf")), result, x)


def _exp2(x: Register) -> Register:
    """2 to the x, of an f64 between -200 and 200."""
    text = x.text
    n = text.intrinsic("rint", x)
    scale = text.bits((text.convert("fptosi", n, "i64") + 1023) << 52, "f64")
    return polynomial((x - n) * LN2, EXP_COEFFICIENTS) * scale


def _vector_power(x: Register, y: Register) -> Register:
    text = x.text
    wide_x, wide_y = text.convert("fpext", magnitude(x), "f64"), text.convert("fpext", y, "f64")
    exponent = wide_y * _log2(wide_x)
    known = text.select(text.compare("uno", exponent, exponent), 0.0, exponent)
    result = text.convert("fptrunc", _exp2(at_least(at_most(known, 200.0), -200.0)), "f32")
    result = text.select(text.compare("uno", exponent, exponent), float("nan"), result)
    # negative bases: an odd exponent keeps the sign, one that is no integer has no real power
    whole = text.compare("oeq", text.intrinsic("rint", y), y)
    parity = text.convert("fptosi", at_least(at_most(text.select(whole, y, 0.0), 2.0**24), -(2.0**24)), "i32") & 1
    odd = text.compare("ne", parity, 0)
    negative = text.compare("olt", copy_sign(text.constant(1.0, "f32", x.lanes), x), 0.0)
    result = text.select(text.select(negative, odd, False), -result, result)
    finite = text.compare("one", magnitude(x), float("inf"))
    impossible = text.select(text.select(text.compare("olt", x, 0.0), finite, False), whole, True)
    result = text.select(impossible, result, float("nan"))
    # 1 whatever the other operand is
    result = text.select(text.compare("oeq", x, 1.0), 1.0, result)
    minus_one = text.select(text.compare("oeq", x, -1.0), text.compare("oeq", magnitude(y), float("inf")), False)
    result = text.select(minus_one, 1.0, result)
    return text.select(text.compare("oeq", y, 0.0), 1.0, result)
