"""Random numbers: published vectors, exactness, independence of everything but key and counter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tempo_ir.reference import philox

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((philox.LOW,) * 4, (philox.LOW,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_published_vectors(counter: tuple[int, ...], key: tuple[int, int], words: str):
    """The vectors that Random123 ships (kat_vectors, philox4x32 10)."""
    assert " ".join(f"{int(word):08x}" for word in philox.philox(key, counter)) == words


def test_the_counter_is_element_and_point():
    whole = philox.blocks(7, 3, (5, 2), (4, 8))
    one = philox.philox((7, 3), (8 * 2 + 6, 5, 2, 0))
    assert [int(word[2, 6]) for word in whole] == [int(word) for word in one]
    assert philox.point_words(()) == (0, 0, 0)
    assert philox.point_words((1, 2, 3)) == (1, 2, 3)
    assert philox.point_words((1, 2, 3, 4)) == (1, 2, (3 * 0x9E3779B9 + 4) & philox.LOW)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_uniforms(dtype: philox.DType):
    draws = philox.uniform(philox.blocks(0, 1, (), (20000,)), dtype).astype(np.float64)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert abs(draws.mean() - 0.5) < 0.01


def test_uniform_of_f32_is_the_24_high_bits():
    words = philox.blocks(0, 1, (), (100,))
    assert np.array_equal(philox.uniform(words, F32), (words[0] >> 8).astype(np.float64) / 2**24)
    assert np.array_equal(philox.bits(words), words[0].astype(np.int64))


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_normals(dtype: philox.DType):
    draws = philox.normal(philox.blocks(0, 1, (), (20000,)), dtype)
    assert draws.dtype == dtype
    wide = draws.astype(np.float64)
    assert np.isfinite(wide).all()
    assert abs(wide.mean()) < 0.03
    assert abs(wide.std() - 1) < 0.03


def test_a_normal_is_finite_where_all_bits_are_zero():
    zero = [np.zeros(1, np.uint32)] * 4
    assert np.isfinite(philox.normal(zero, F32)).all()
    assert np.isfinite(philox.normal(zero, F64)).all()


def test_seed_op_and_point_all_matter():
    base = philox.bits(philox.blocks(1, 2, (3,), (8,)))
    for other in ((2, 2, (3,)), (1, 3, (3,)), (1, 2, (4,))):
        assert not np.any(philox.bits(philox.blocks(*other, (8,))) == base)


def test_a_seed_has_32_bits():
    with pytest.raises(ValueError, match="the seed is -1"):
        philox.blocks(-1, 0, (), (2,))
