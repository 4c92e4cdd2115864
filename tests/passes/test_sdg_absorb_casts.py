"""sdg-absorb-casts: what is read narrow, that no bit changes, and that every pass takes contractions of mixed types."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import SIZES, apply, check_unchanged, check_values_stay, parse, program_of

import tempo_ir as tp
from tempo_ir.dialects.types import dtype, holds
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE
from tempo_ir.reference.dtypes import numpy_dtype
from tests.fuzz.check import failure_of

BOUNDS = [{"T": size} for size in SIZES]
NUMERIC = ("i8", "u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")

MIXED = """
!rows = tensor<?xf32, #sdg.size<t + 1>>
sdg.program @mixed dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %w = sdg.parameter "w" : tensor<5x4xbf16>
  %k = sdg.input "k" in (t) : tensor<4xf16>
  %w32 = sdg.cast %w : (tensor<5x4xbf16>) -> tensor<5x4xf32>
  %k32 = sdg.cast %k[t] in (t) : (tensor<4xf16>) -> tensor<4xf32>
  %y = sdg.contract "k,nk->n" %x[t], %w32 in (t) : (tensor<4xf32>, tensor<5x4xf32>) -> tensor<5xf32>
  %s = sdg.contract "d,nd->n" %x[t], %k32[0:t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>) -> !rows
  %p = sdg.softmax %s[t] axis 0 in (t) : (!rows) -> !rows
  %o = sdg.contract "n,nd->d" %p[t], %k32[0:t + 1] in (t) : (!rows, tensor<4xf32>) -> tensor<4xf32>
  %c = sdg.contract "nd,nd->d" %x[0:t + 1], %k32[0:t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y[t] in (t) : tensor<5xf32>
  sdg.output "o" %o[t] in (t) : tensor<4xf32>
  sdg.output "c" %c[t] in (t) : tensor<4xf32>
}"""


def every(name: str) -> np.ndarray:
    """All finite values of a type of 16 bits or less, else its extremes and what is near them."""
    kind = numpy_dtype(dtype(name))
    if kind.itemsize <= 2:
        values = np.arange(1 << 8 * kind.itemsize, dtype=np.uint64).astype(f"u{kind.itemsize}").view(kind)
        with np.errstate(invalid="ignore"):
            return values[np.isfinite(values.astype(np.float64))]
    if name.startswith("f"):
        return np.array([1.1, 1e-40, 3e38, 16777217], kind)
    info = np.iinfo(kind)
    return np.array([info.min, info.min + 1, -1, 0, 1, (1 << 24) + 1, info.max - 1, info.max], kind)


def numbers(values: np.ndarray) -> list[int | float]:
    """The values as Python's numbers, which compare exactly."""
    return [int(v) for v in values] if values.dtype.kind in "iu" else [float(v) for v in values]


@pytest.mark.parametrize("wide", NUMERIC)
@pytest.mark.parametrize("narrow", NUMERIC)
def test_what_a_type_holds(wide: str, narrow: str) -> None:
    """A type holds another if a cast to it changes no value."""
    values = every(narrow)
    with np.errstate(all="ignore"):
        there = values.astype(numpy_dtype(dtype(wide)))
    assert holds(dtype(wide), dtype(narrow)) == (numbers(there) == numbers(values))


def test_no_bit_changes() -> None:
    changed = check_unchanged(MIXED, "sdg-absorb-casts", bounds=BOUNDS, exact=True)
    assert not any(op.name == "sdg.cast" for op in program_of(changed).walk())


@pytest.mark.parametrize("name", [*(name for name in DEFAULT_PIPELINE if name != "sdg-absorb-casts"), "sdg-tile"])
def test_other_passes_take_operands_of_several_types(name: str) -> None:
    module = apply(parse(MIXED), "sdg-absorb-casts")
    options = {"tile": 3} if name == "sdg-tile" else {}
    check_values_stay(module, apply(module.clone(), name, **options), SIZES, 1e-5)


def test_every_way_to_run_it() -> None:
    failure = failure_of(str(apply(parse(MIXED), "sdg-absorb-casts")), thorough=True, native=True)
    assert failure is None, failure


def test_gradients_of_narrow_operands() -> None:
    @tp.program
    def program():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        w = tp.parameter("w", tp.bf16[5, 4], init=lambda generator, shape: generator.normal(size=shape))
        y = tp.einsum("k,nk->n", x, w)
        tp.output("dw", tp.grad((y * y).sum(), w))

    executable = tp.compile(program())
    reference = tp.compile(program(), target="reference")
    state = executable.init(3)
    for steps in (0, 1, 7):
        x = np.random.default_rng(steps).standard_normal((steps, 4)).astype(np.float32)
        found, expected = (each(x=x, state=state)["dw"] for each in (executable, reference))
        assert found.dtype == numpy_dtype(dtype("bf16"))
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("weights", [tp.bf16, tp.f16, tp.i8])
def test_a_loop_reads_weights_as_they_are_stored(weights: tp.DType) -> None:
    @tp.program
    def program():
        t, _ = tp.dim("t")
        h = tp.tensor("h", tp.f32[2, 64], over=t)
        w = tp.parameter("w", weights[64, 64], init=lambda generator, shape: generator.integers(-3, 4, shape))
        h[0] = tp.input("x", tp.f32[2, 64])
        h[t + 1] = tp.tanh(tp.einsum("bk,nk->bn", h, w) * 0.1)
        tp.output("h", h)

    executable = tp.compile(program())
    x = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
    found = executable(x=x, T=5, state=executable.init())["h"]
    w = np.asarray(executable.init()["w"]).astype(np.float32)
    expected = [x]
    for _ in range(4):
        expected.append(np.tanh(expected[-1] @ w.T * np.float32(0.1)))
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-4, atol=1e-5)
    assert executable.stats.peak_bytes < 4 * 64 * 64  # no copy of the weights in f32
