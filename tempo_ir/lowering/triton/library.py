# pyright: basic
"""Functions that printed kernels call where Triton's own operation means something else, or is missing.

The printer copies the text of those that a kernel uses into the kernel's file, below the kernel, so that the file
stands alone. They follow the `tile` dialect: max and min propagate NaN, integer division floors and never traps, casts
to integers saturate. Results have the element type of the first argument; `a` and `b` have one element type.
"""

import triton
import triton.language as tl


@triton.jit
def nan_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def nan_minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def bitwise_and(a, b):
    return a & b


@triton.jit
def bitwise_or(a, b):
    return a | b


@triton.jit
def first_largest(a, i, b, j):
    beats = (a > b) | ((a != a) & (b == b))
    ties = (a == b) | ((a != a) & (b != b))
    first = beats | (ties & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def first_smallest(a, i, b, j):
    beats = (a < b) | ((a != a) & (b == b))
    ties = (a == b) | ((a != a) & (b != b))
    first = beats | (ties & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def floor_divide(a, b):
    # a divisor of 0 gives 0; one of -1 negates, which cannot trap
    divisor = tl.where((b == 0) | (b == -1), 1, b)
    quotient = a // divisor
    remainder = a - quotient * divisor
    down = (remainder != 0) & ((remainder < 0) != (divisor < 0))
    floored = tl.where(down, quotient - 1, quotient)
    return tl.where(b == 0, 0, tl.where(b == -1, 0 - a, floored))


@triton.jit
def floor_modulo(a, b):
    divisor = tl.where((b == 0) | (b == -1), 1, b)
    remainder = a - (a // divisor) * divisor
    down = (remainder != 0) & ((remainder < 0) != (divisor < 0))
    return tl.where(down, remainder + divisor, remainder)


@triton.jit
def unsigned_divide(a, b):
    return tl.where(b == 0, 0, a // tl.where(b == 0, 1, b))


@triton.jit
def unsigned_modulo(a, b):
    return tl.where(b == 0, 0, a % tl.where(b == 0, 1, b))


@triton.jit
def float_floor_modulo(a, b):
    remainder = a % b
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)


@triton.jit
def float_floor_divide(a, b):
    # as Python's: from the remainder, since a / b may round up to an integer
    remainder = a % b
    quotient = (a - remainder) / b
    quotient = tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), quotient - 1.0, quotient)
    low = tl.floor(quotient)
    return tl.where(b == 0, a / b, tl.where(quotient - low > 0.5, low + 1.0, low))


@triton.jit
def tanh(x):
    # near 0, where 1 - 2 / (exp(2x) + 1) would cancel, the terms of its Taylor series up to x ** 15:
    # x - x**3 / 3 + 2 x**5 / 15 - 17 x**7 / 315 + 62 x**9 / 2835 - ..., from the last one on
    square = x * x
    series = 21844 / 6081075 - square * (929569 / 638512875)
    series = 62 / 2835 - square * (1382 / 155925 - square * series)
    series = square * (-1 / 3 + square * (2 / 15 - square * (17 / 315 - square * series)))
    magnitude = tl.minimum(tl.abs(x), 30.0)
    far = 1.0 - 2.0 / (tl.exp(2.0 * magnitude) + 1.0)
    return tl.where(x != x, x, tl.where(tl.abs(x) < 0.1, x + x * series, tl.where(x < 0, -far, far)))


@triton.jit
def log1p(x):
    # the series of 2 atanh(x / (x + 2)) near 0, where 1 + x would round x away
    ratio = x / (x + 2.0)
    square = ratio * ratio
    series = 1 / 13 + square * (1 / 15 + square * (1 / 17 + square * (1 / 19)))
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square * (1 / 11 + square * series))))
    return tl.where(tl.abs(x) < 0.25, 2.0 * (ratio + ratio * square * series), tl.log(1.0 + x))


@triton.jit
def power(a, b):
    # in f64, for the digits that b * log2(a) has before the point
    magnitude = tl.exp2(tl.cast(b, tl.float64) * tl.log2(tl.cast(tl.abs(a), tl.float64))).to(a.dtype)
    magnitude = tl.where((tl.abs(a) == 1) & (b == b), 1.0, magnitude)
    integral = tl.floor(b) == b
    odd = integral & (b > -9007199254740992.0) & (b < 9007199254740992.0) & (b - 2.0 * tl.floor(b * 0.5) != 0)
    negative = (a < 0) | ((a == 0) & (1.0 / a < 0))
    result = tl.where(negative & odd, -magnitude, magnitude)
    undefined = (a < 0) & (integral == 0) & (tl.abs(a) != float("inf"))
    return tl.where((b == 0) | (a == 1), 1.0, tl.where(undefined, float("nan"), result))


@triton.jit
def integer_power(a, b, width: tl.constexpr):
    # by squaring; of the negative powers only those of 1 and -1 are integers other than 0
    result = unsigned_power(a, b, width)
    sign = tl.where((b & 1) == 0, 1, a)
    return tl.where(b >= 0, result, tl.where((a == 1) | (a == -1), sign, 0))


@triton.jit
def unsigned_power(a, b, width: tl.constexpr):
    result = tl.where(b != b, a, 1)
    base = a
    for bit in range(0, width):
        result = tl.where(((b >> bit) & 1) != 0, result * base, result)
        base = base * base
    return result


@triton.jit
def last_of_equals(positions, places):
    # which positions do not come again further on: of equal ones the last write stays
    again = (positions[:, None] == positions[None, :]) & (places[:, None] < places[None, :])
    return tl.sum(again.to(tl.int32), axis=1) == 0


@triton.jit
def round_even(x):
    low = tl.floor(x)
    rest = x - low
    odd = low - 2.0 * tl.floor(low * 0.5) != 0
    return tl.where((rest > 0.5) | ((rest == 0.5) & odd), low + 1.0, low)


@triton.jit
def sign(x):
    return tl.where(x > 0, 1, tl.where(x < 0, -1, 0)).to(x.dtype)


@triton.jit
def float_sign(x):
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, x))


@triton.jit
def saturate(x, low: tl.constexpr, high: tl.constexpr, dtype: tl.constexpr):
    inside = tl.where((x > low) & (x < high), x, 0.0).to(dtype)
    return tl.where(x >= high, high, tl.where(x <= low, low, inside))


@triton.jit
def shift_left(a, amount, width: tl.constexpr):
    outside = (amount < 0) | (amount >= width)
    return tl.where(outside, 0, a << tl.where(outside, 0, amount))


@triton.jit
def shift_right(a, amount, width: tl.constexpr):
    outside = (amount < 0) | (amount >= width)
    return tl.where(outside, tl.where(a < 0, -1, 0).to(a.dtype), a >> tl.where(outside, 0, amount))


@triton.jit
def unsigned_shift_right(a, amount, width: tl.constexpr):
    outside = amount >= width
    return tl.where(outside, 0, a >> tl.where(outside, 0, amount))
