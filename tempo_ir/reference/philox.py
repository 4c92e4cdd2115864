"""Random numbers: Philox4x32-10, a function of the seed, the op, the domain point and the element alone.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.

What compiled kernels must reproduce bit for bit. One block of four 32-bit words per element:

- key: word 0 the seed (0 to 2**32 - 1), word 1 the `id` of the op;
- counter: word 0 the element, its row-major position in the tensor at one point; words 1 and 2 the values of the first
  and second dim of the op's domain; word 3 the value of the third, and with more dims `word * 0x9E3779B9 + value`
  for each further one; 0 for a dim that is not there. All modulo 2**32.

From the words w0, w1, w2, w3 of the block:

- bits: w0, as i64;
- uniform: the p highest bits of w0 times 2**-p, p being the precision of the dtype: f32 `(w0 >> 8) * 2**-24`, f16 11
  and bf16 8 bits; f64 `((w0 >> 5) * 2**26 + (w1 >> 6)) * 2**-53`;
- normal (Box-Muller): `sqrt(-2 log u) * cos(2 pi v)` in f32 with `u = ((w0 >> 8) + 1) * 2**-24` and
  `v = (w1 >> 8) * 2**-24`, then rounded to the dtype; in f64 `u` and `v` are of 53 bits, from (w0, w1) and (w2, w3),
  and `u` is one unit, 2**-53, above 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tempo_ir.reference.dtypes import Array, DType

Words: TypeAlias = NDArray[np.uint32]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
LOW = 0xFFFFFFFF

_PRECISION: Mapping[DType, int] = MappingProxyType(
    {np.dtype(np.float16): 11, np.dtype(ml_dtypes.bfloat16): 8, np.dtype(np.float32): 24}
)


def philox(key: tuple[int, int], counter: Sequence[Words | int]) -> tuple[Words, Words, Words, Words]:
    """The four words of each block; the four words of the counter broadcast against each other."""
    word0, word1, word2, word3 = np.broadcast_arrays(*(np.asarray(word, np.uint64) for word in counter))
    key0, key1 = key
    for _ in range(ROUNDS):
        product0, product1 = word0 * np.uint64(MULTIPLIERS[0]), word2 * np.uint64(MULTIPLIERS[1])
        high0, high1 = product0 >> np.uint64(32), product1 >> np.uint64(32)
        low0, low1 = product0 & np.uint64(LOW), product1 & np.uint64(LOW)
        word0, word1, word2, word3 = high1 ^ word1 ^ np.uint64(key0), low1, high0 ^ word3 ^ np.uint64(key1), low0
        key0, key1 = (key0 + WEYL[0]) & LOW, (key1 + WEYL[1]) & LOW
    w0, w1, w2, w3 = (word.astype(np.uint32) for word in (word0, word1, word2, word3))
    return w0, w1, w2, w3


def point_words(point: Sequence[int]) -> tuple[int, int, int]:
    """Words 1 to 3 of the counter at a domain point."""
    first, second = (*point, 0, 0)[:2]
    rest = 0
    for value in point[2:]:
        rest = rest * WEYL[0] + value
    return first & LOW, second & LOW, rest & LOW


def blocks(seed: int, identity: int, point: Sequence[int], shape: Sequence[int]) -> tuple[Words, Words, Words, Words]:
    """The words of every element of a tensor of `shape`, each of that shape.

    Raises:
        ValueError: the seed is not in 0 to 2**32 - 1, or there are 2**32 elements or more.
    """
    if not 0 <= seed <= LOW:
        raise ValueError(f"the seed is {seed}: a seed is an integer of 0 to 2**32 - 1")
    count = int(np.prod(shape, dtype=np.int64))
    if count > LOW:
        raise ValueError(f"a random tensor of {count} elements: there are at most 2**32 - 1 at one point")
    elements = np.arange(count, dtype=np.uint32).reshape(shape)
    return philox((seed, identity & LOW), (elements, *point_words(point)))


def bits(words: Sequence[Words]) -> NDArray[np.int64]:
    """Integers of 0 to 2**32 - 1."""
    return words[0].astype(np.int64)


def uniform(words: Sequence[Words], dtype: DType) -> Array:
    """Uniform draws in [0, 1), exact in the dtype."""
    if dtype == np.dtype(np.float64):
        return _uniform53(words[0], words[1], 0)
    precision = _PRECISION[dtype]
    return ((words[0] >> np.uint32(32 - precision)).astype(np.float32) * np.float32(2.0**-precision)).astype(dtype)


def _uniform53(high: Words, low: Words, offset: int) -> NDArray[np.float64]:
    whole = (high >> np.uint32(5)).astype(np.float64) * 2.0**26 + (low >> np.uint32(6)).astype(np.float64)
    return (whole + offset) * 2.0**-53


def normal(words: Sequence[Words], dtype: DType) -> Array:
    """Standard normal draws."""
    if dtype == np.dtype(np.float64):
        radius, turn = _uniform53(words[0], words[1], 1), _uniform53(words[2], words[3], 0)
    else:
        radius = ((words[0] >> np.uint32(8)) + np.uint32(1)).astype(np.float32) * np.float32(2.0**-24)
        turn = (words[1] >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    circle = radius.dtype.type(2 * np.pi)
    return (np.sqrt(-2 * np.log(radius)) * np.cos(circle * turn)).astype(dtype)
