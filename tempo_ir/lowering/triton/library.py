# pyright: basic
"""Functions that printed kernels call where Triton's own operation means something else, or is missing.

The printer copies the text of those that a kernel uses into the kernel's file, below the kernel, so that the file stands alone.
They follow the `tile` dialect: max and min propagate NaN, integer division floors and never traps, casts to integers saturate.
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
    divisor = tl.where(b == 0, 1, b)
    quotient = a // divisor
    remainder = a - quotient * divisor
    down = (remainder != 0) & ((remainder < 0) != (divisor < 0))
    return tl.where(b == 0, 0, tl.where(down, quotient - 1, quotient))


@triton.jit
def floor_modulo(a, b):
    divisor = tl.where(b == 0, 1, b)
    remainder = a - (a // divisor) * divisor
    down = (remainder != 0) & ((remainder < 0) != (divisor < 0))
    return tl.where(b == 0, 0, tl.where(down, remainder + divisor, remainder))


@triton.jit
def float_floor_modulo(a, b):
    return a - tl.floor(a / b) * b


@triton.jit
def tanh(x):
    # odd polynomial near 0, where 1 - 2 / (exp(2x) + 1) would cancel
    square = x * x
    near = x * (1.0 + square * (-0.3333333333 + square * (0.1333333333 - square * 0.0539682540)))
    magnitude = tl.minimum(tl.abs(x), 30.0)
    far = 1.0 - 2.0 / (tl.exp(2.0 * magnitude) + 1.0)
    return tl.where(x != x, x, tl.where(tl.abs(x) < 0.1, near, tl.where(x < 0, -far, far)))


@triton.jit
def power(a, b):
    # the sign of a negative base follows an integral exponent; other exponents give NaN
    magnitude = tl.exp2(b * tl.log2(tl.abs(a)))
    integral = tl.floor(b) == b
    odd = integral & (b - 2.0 * tl.floor(b * 0.5) != 0)
    signed = tl.where(odd, -magnitude, magnitude)
    result = tl.where(a < 0, tl.where(integral, signed, float("nan")), magnitude)
    return tl.where((b == 0) | (a == 1), 1.0, result)


@triton.jit
def round_even(x):
    low = tl.floor(x)
    rest = x - low
    odd = low - 2.0 * tl.floor(low * 0.5) != 0
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return tl.where(up, low + 1.0, low)


@triton.jit
def sign(x):
    return tl.where(x > 0, 1, tl.where(x < 0, -1, 0)).to(x.dtype)


@triton.jit
def float_sign(x):
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, x)).to(x.dtype)


@triton.jit
def saturate(x, low: tl.constexpr, high: tl.constexpr, dtype: tl.constexpr):
    inside = tl.where((x > low) & (x < high), x, 0.0).to(dtype)
    return tl.where(x >= high, high, tl.where(x <= low, low, inside)).to(dtype)


@triton.jit
def shift_left(a, amount, width: tl.constexpr):
    outside = (amount < 0) | (amount >= width)
    return tl.where(outside, 0, a << tl.where(outside, 0, amount))


@triton.jit
def shift_right(a, amount, width: tl.constexpr):
    outside = (amount < 0) | (amount >= width)
    return tl.where(outside, tl.where(a < 0, -1, 0), a >> tl.where(outside, 0, amount)).to(a.dtype)
