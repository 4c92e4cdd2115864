"""
Elementary functions of f32 as inline arithmetic, for scalars and vectors, each under 4 ulp with IEEE results for
infinities and NaN; f64 goes through LLVM's intrinsics or the C library, lane by lane.

Clamps are written `select(limit < x, limit, x)` so that a NaN in x, for which every comparison fails, passes through.
Sources: S. Moshier, Cephes Mathematical Library (exp, log); N. Juffa, "erff" (public domain, 2013) for erf; Cody and
Waite, Software Manual for the Elementary Functions, 1980 (argument reduction).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tempo_ir.lowering.llvm.text import AVX512_LANES, Register, Text, vector_type

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
"""ln 2 in two parts, the first of few bits, so that n * LN2_HIGH is exact."""

EXPONENT_BIAS = 127
"""What is added to the exponent of an f32 where it is stored."""

ROUND_MAGIC = 12582912.0
"""1.5 * 2**23: an f32 of magnitude below 2**22 added to it is rounded to an integer, which stands in its low bits."""

EXP_COEFFICIENTS = (
    1.3814602280035615e-3,
    8.3687156438827515e-3,
    4.1668388992547989e-2,
    0.1666652113199234,
    0.49999994039535522,
)
"""(exp(r) - 1 - r) / r**2 for |r| <= ln(2) / 2, highest power first: the least greatest relative error of exp(r), 0.73
ulp after rounding (fitted by iteratively reweighted least squares; C. Lawson, 1961)."""

TANH_COEFFICIENTS = (0.1311051845550537, -0.3333126902580261)
"""(tanh(r) / r - 1) / r**2 in r**2 for |r| <= ln(2) / 4, found the same way: a relative error of tanh(r) of 2**-24."""

LOG_COEFFICIENTS = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
"""(log(1 + m) - m + m**2 / 2) / m**3 for sqrt(1/2) <= 1 + m < sqrt(2)."""

ERF_SMALL = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
"""erf(x) / x - 1 in x**2, for |x| <= ERF_SPLIT."""

ERF_LARGE = (
    -1.72853470e-5,
    3.83197126e-4,
    -3.88396438e-3,
    2.42546219e-2,
    -1.06777877e-1,
    -6.34846687e-1,
    -1.28717512e-1,
)
"""log(1 - erf(x)) / x + 1 in x, for x > ERF_SPLIT."""

ERF_SPLIT = 0.927734375

SIN_COEFFICIENTS = (2.7183114939898219064e-6, -1.9839334836096632422e-4, 8.3333293858894631756e-3, -0.16666666641626524)
"""(sin(r) / r - 1) / r**2 in r**2, for |r| <= pi / 4."""

COS_COEFFICIENTS = (2.4390448796277409065e-5, -1.3886763774609929e-3, 4.1666623323739063e-2, -0.49999999725103100)
"""(cos(r) - 1) / r**2 in r**2, for |r| <= pi / 4."""

PI_HALVES = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""pi / 2 in parts, the first two of 33 bits, so that k times them is exact in f64 for k below 2**20."""

SIN_LIMIT = 1e6
"""Past this magnitude sin and cos ask the C library."""


def polynomial(x: Register, coefficients: Sequence[float]) -> Register:
    """Horner's rule, highest power first."""
    total = x.text.constant(coefficients[0], x.kind, x.lanes)
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def at_most(x: Register, limit: float) -> Register:
    """min(x, limit), NaN kept."""
    return x.text.select(x.text.compare("ogt", x, limit), limit, x)


def at_least(x: Register, limit: float) -> Register:
    """max(x, limit), NaN kept."""
    return x.text.select(x.text.compare("olt", x, limit), limit, x)


def magnitude(x: Register) -> Register:
    """|x|"""
    return x.text.intrinsic("fabs", x)


def copy_sign(x: Register, sign: Register) -> Register:
    """|x| with the sign of `sign`."""
    return x.text.intrinsic("copysign", x, sign)


def scale(x: Register, n: Register) -> Register:
    """
    x * 2**n for an f32 holding an integer n of -160 to 129: one instruction where vectors have 16 lanes (AVX-512),
    elsewhere two multiplications, as 2**n alone may have no f32.
    """
    text = x.text
    if x.lanes == AVX512_LANES:
        everywhere, current_rounding = text.constant(-1, "i16"), text.constant(4, "i32")
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        return text.call(name, "f32", x.lanes, x, n, x, everywhere, current_rounding)
    whole = text.convert("fptosi", n, "i32")
    half = text.binary("ashr", whole, 1)
    return x * power_of_two(half) * power_of_two(whole - half)


def power_of_two(n: Register) -> Register:
    """2**n as an f32, of an i32 of -126 to 127; the bits of n above the lowest 9 do not count."""
    return n.text.bits((n << 23) + (EXPONENT_BIAS << 23), "f32")


def reduce_exponent(x: Register) -> tuple[Register, Register]:
    """x = n ln 2 + r with |r| <= ln(2) / 2: n as an f32, and r; |x| < 2**20."""
    n = x * LOG2_E + ROUND_MAGIC - ROUND_MAGIC
    return n, x - n * LN2_HIGH - n * LN2_LOW


def exp(x: Register) -> Register:
    """e to the x; 0 below -104, infinity above 88.72."""
    n, r = reduce_exponent(at_least(at_most(x, 89.0), -104.0))
    return scale(polynomial(r, (*EXP_COEFFICIENTS, 1.0, 1.0)), n)


def tanh(x: Register) -> Register:
    """
    Hyperbolic tangent. With x = n ln(2) / 2 + r and t = tanh(r), exp(2x) is 2**n (1 + t) / (1 - t), so that tanh(x) is
    (2**n - 1 + (2**n + 1) t) / (2**n + 1 + (2**n - 1) t): t itself near 0, hence as accurate there. What n ln(2) / 2
    lacks in one f32, n times 2**-30, does not show, since tanh is the flatter the greater n is.
    """
    x, magic = at_least(at_most(x, 9.1), -9.1), ROUND_MAGIC + EXPONENT_BIAS
    shifted = x * (2 * LOG2_E) + magic
    r = x - (shifted - magic) * (LN2 / 2)
    square, power = r * r, x.text.bits(x.text.bits(shifted, "i32") << 23, "f32")
    t = polynomial(square, TANH_COEFFICIENTS) * (square * r) + r
    less, more = power - 1.0, power + 1.0
    return (t * more + less) / (t * less + more)


def sigmoid(x: Register) -> Register:
    """
    exp(x) / (exp(x) + 1), which fades out gradually. With x = n ln 2 + r and t = 2 tanh(r / 2), exp(x) is
    2**n (2 + t) / (2 - t), so that there is one division.
    """
    if x.kind != "f32":
        power = x.text.intrinsic("exp", -magnitude(x))
        return x.text.select(x.text.compare("olt", x, 0.0), power, 1.0) / (power + 1.0)
    n, r = reduce_exponent(at_least(at_most(x, 40.0), -105.0))
    square, (high, low) = r * r, TANH_COEFFICIENTS
    t = polynomial(square, (high / 16, low / 4)) * (square * r) + r
    power = scale(t + 2.0, n)
    return power / (power + (2.0 - t))


def log(x: Register) -> Register:
    """Natural logarithm; -inf at 0, NaN below 0."""
    text = x.text
    tiny = text.compare("olt", x, 1.1754943508222875e-38)
    normal = text.select(tiny, x * 8388608.0, x)
    bits = text.bits(normal, "i32")
    # the mantissa in [sqrt(1/2), sqrt(2)): 0x3F3504F3 is sqrt(1/2), and its distance to 1 goes into the exponent
    shifted = bits + (0x3F800000 - 0x3F3504F3)
    exponent = text.convert("sitofp", text.binary("ashr", shifted, 23) - 127, "f32")
    exponent = exponent + text.select(tiny, text.constant(-23.0, "f32"), 0.0)
    m = text.bits((shifted & 0x7FFFFF) + 0x3F3504F3, "f32") - 1.0
    square = m * m
    tail = polynomial(m, LOG_COEFFICIENTS) * (m * square) + exponent * LN2_LOW - square * 0.5
    result = m + tail + exponent * LN2_HIGH
    infinity = float("inf")
    result = text.select(text.compare("oeq", x, infinity), infinity, result)
    result = text.select(text.compare("oeq", x, 0.0), -infinity, result)
    return text.select(text.compare("oge", x, 0.0), result, float("nan"))


def log1p(x: Register) -> Register:
    """log(1 + x): what rounding 1 + x loses is added by the slope 1 / (1 + x) (W. Kahan; FreeBSD's s_log1p.c)."""
    text = x.text
    whole = x + 1.0
    lost = (x - (whole - 1.0)) / whole
    # it is no number where 1 + x is 0 or infinite: nothing is lost there
    return log(whole) + text.select(text.compare("ord", lost, lost), lost, 0.0)


def erf(x: Register) -> Register:
    """The error function."""
    text = x.text
    size = magnitude(x)
    square = x * x
    small = polynomial(square, ERF_SMALL) * x + x
    large = polynomial(size, ERF_LARGE) * size - size
    large = copy_sign(1.0 - exp(large), x)
    return text.select(text.compare("ogt", size, ERF_SPLIT), large, small)


def _reduce_angle(x: Register) -> tuple[Register, Register]:
    """x = k pi/2 + r: k as an i32 and r as an f32; in f64, exact enough for |x| <= SIN_LIMIT."""
    text = x.text
    wide = text.convert("fpext", x, "f64")
    k = text.intrinsic("rint", wide * 0.6366197723675814)
    r = wide
    for part in PI_HALVES:
        r = r - k * part
    limited = at_least(at_most(k, 2.0**30), -(2.0**30))
    safe = text.select(text.compare("uno", k, k), 0.0, limited)
    return text.convert("fptosi", safe, "i32"), text.convert("fptrunc", r, "f32")


def _sine(x: Register, quarter_turns: int) -> Register:
    """sin(x + quarter_turns * pi / 2)"""
    text = x.text
    k, r = _reduce_angle(x)
    k = k + quarter_turns if quarter_turns else k
    square = r * r
    sine = polynomial(square, SIN_COEFFICIENTS) * (square * r) + r
    cosine = polynomial(square, COS_COEFFICIENTS) * square + 1.0
    result = text.select(text.compare("eq", k & 1, 0), sine, cosine)
    return text.select(text.compare("eq", k & 2, 0), result, -result)


def _with_library(x: Register, result: Register, name: str) -> Register:
    """`result`, but from the C library where any |x| passes SIN_LIMIT."""
    text = x.text
    large = text.compare("ogt", magnitude(x), SIN_LIMIT)
    variable = text.variable(result)
    any_large = text.call(f"llvm.vector.reduce.or.v{x.lanes}i1", "i1", 0, large) if x.lanes else large
    with text.when(any_large):
        variable.set(text.select(large, lane_by_lane(name, x), result))
    return variable.get()


def sin(x: Register) -> Register:
    """Sine."""
    return _with_library(x, _sine(x, 0), "sinf")


def cos(x: Register) -> Register:
    """Cosine."""
    return _with_library(x, _sine(x, 1), "cosf")


def rsqrt(x: Register) -> Register:
    """1 / sqrt(x)"""
    return 1.0 / x.text.intrinsic("sqrt", x)


def lane_by_lane(function: str, *operands: Register) -> Register:
    """A function of the C library, called once per lane."""
    text = operands[0].text
    operands = tuple(text.unify(*operands))
    first = operands[0]
    if not first.lanes:
        return text.call(function, first.kind, 0, *operands)
    result = Register("poison", first.kind, first.lanes, 0, text)
    for lane in range(first.lanes):
        value = text.call(function, first.kind, 0, *(text.extract(x, lane) for x in operands))
        inserted = f"insertelement {vector_type(first.kind, first.lanes)} {result.name}, {value.typed}, i32 {lane}"
        result = text.new(inserted, first.kind, first.lanes)
    return result


Function = Callable[[Register], Register]

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "exp": exp,
        "log": log,
        "log1p": log1p,
        "tanh": tanh,
        "sigmoid": sigmoid,
        "erf": erf,
        "sin": sin,
        "cos": cos,
        "rsqrt": rsqrt,
    }
)
"""The functions of f32 by the name of their tile op."""


def apply(name: str, x: Register) -> Register:
    """An elementary function of f32 or f64 by the name of its tile op."""
    text: Text = x.text
    if name in ("sqrt", "floor", "ceil"):
        return text.intrinsic(name, x)
    if name == "round":
        return text.intrinsic("roundeven", x)
    if x.kind == "f32" or name in ("rsqrt", "sigmoid"):
        return FUNCTIONS[name](x)
    return lane_by_lane(name, x)
