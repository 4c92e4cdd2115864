"""The elementary functions of f32: under 4 ulp everywhere, IEEE results at the ends, on every width of vector."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

import tempo_ir as tp
from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.llvm import vector_math
from tempo_ir.lowering.llvm.address import linear
from tempo_ir.lowering.llvm.engine import compile_object, host_target, load_object
from tempo_ir.lowering.llvm.jit import compile_kernel
from tempo_ir.lowering.llvm.kernel import KernelCode, module_text
from tempo_ir.lowering.llvm.memory import Buffer, load_vector, register_layout, store_vector
from tempo_ir.lowering.llvm.target import AVX2, SSE, Target
from tempo_ir.lowering.llvm.text import Text

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    1e-45,
    -1e-45,
    1.2e-38,
    3e38,
    -3e38,
    88.72,
    88.73,
    -103.9,
    -104.1,
]
REFERENCES = {
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf),
    "sin": np.sin,
    "cos": np.cos,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
}


def evaluate(name: str, x: np.ndarray, target: Target) -> np.ndarray:
    """The function on an array whose length is a multiple of the lanes."""
    text, layout = Text(target.lanes), register_layout("f32" if x.dtype == np.float32 else "f64")
    parameters = (("x", "ptr"), ("y", "ptr"), ("n", "i64"))
    with text.function("f", parameters) as (source, destination, n), text.loop(text.constant(0, "i64"), n, 16) as i:
        for offset in range(0, 16, target.lanes):
            register = load_vector(Buffer(source, layout), linear(i) + offset)
            store_vector(Buffer(destination, layout), linear(i) + offset, vector_math.apply(name, register))
    code = KernelCode("f", text.functions[0], frozenset(text.declarations), parameters, 0, 0)
    library = load_object(compile_object(module_text([code], target), target), target)
    y = np.empty_like(x)
    library.function("f", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(x.ctypes.data, y.ctypes.data, len(x))
    return y


def inputs() -> np.ndarray:
    rng = np.random.default_rng(0)
    scales = [rng.standard_normal(4096) * scale for scale in (1e-20, 1e-4, 0.1, 1, 5, 20, 100, 1e4, 1e8)]
    bits = rng.integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([np.array(SPECIAL, np.float32), *(x.astype(np.float32) for x in scales), bits])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
def test_accuracy(name: str, target: Target | None):
    host = host_target()
    x = inputs()
    with np.errstate(all="ignore"):
        got = evaluate(name, x, host if target is None or target.lanes > host.lanes else target).astype(np.float64)
        want = REFERENCES[name](x.astype(np.float64))
        rounded = want.astype(np.float32)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    # results below the normal numbers may be flushed to zero
    unit = np.spacing(np.maximum(np.abs(rounded[~special]), np.float32(1.2e-38))).astype(np.float64)
    error = np.abs(got[~special] - want[~special])
    ulps = np.where(np.abs(want[~special]) < 1.2e-38, 0, error / unit)
    worst = np.argmax(ulps)
    assert ulps[worst] < 4, f"{ulps[worst]} ulp at {x[~special][worst]!r}"


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
def test_accuracy_of_doubles(name: str, target: Target | None):
    """Against 80 bits where this machine has them, else against the C library; results below normal numbers too."""
    host, rng = host_target(), np.random.default_rng(0)
    scales = [rng.standard_normal(512) * scale for scale in (1e-200, 1e-8, 0.1, 1, 20, 300, 1e5, 1e22, 1e300)]
    bits = rng.integers(0, 1 << 64, 512, dtype=np.uint64).view(np.float64)
    extremes = np.array([*SPECIAL[:7], 5e-324, -5e-324, 1e308, 709.7, 709.8, -740.0, -746.0, 1e-310, -2e-308])
    x = np.concatenate([extremes, *scales, bits])
    with np.errstate(all="ignore"):
        got = evaluate(name, x, host if target is None or target.lanes > host.lanes else target)
        want = REFERENCES[name](x if name == "erf" else x.astype(np.longdouble))
        rounded = want.astype(np.float64)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    ulps = np.abs((got[finite] - want[finite]) / np.spacing(np.abs(rounded[finite])))
    worst = np.argmax(ulps)
    assert ulps[worst] < 4, f"{ulps[worst]} ulp at {x[finite][worst]!r}"


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
def test_results_below_normal_numbers(target: Target | None):
    """Exponentials fade out gradually; what is close to its argument is so for the least numbers."""
    host = host_target()
    target = host if target is None or target.lanes > host.lanes else target
    low = np.linspace(-87.0, -104.2, 4096).astype(np.float32)
    least = np.float32(2.0**-149)
    want = np.exp(low.astype(np.float64))
    assert np.max(np.abs(evaluate("exp", low, target) - want)) <= least
    want = 1 / (1 + np.exp(-low.astype(np.float64)))
    assert np.max(np.abs(evaluate("sigmoid", low, target) - want)) <= 4 * 2.0**-23 * np.exp(-87.0)
    small = (np.arange(1, 4097) * np.float32(2.0**-149)).astype(np.float32)
    for name in ("tanh", "sin", "log1p"):
        assert np.max(np.abs(evaluate(name, small, target) - small)) <= least, name
    ratio = 2 / np.sqrt(np.pi)
    assert np.max(np.abs(evaluate("erf", small, target) - ratio * small.astype(np.float64))) <= 2 * least


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
def test_limits(target: Target | None):
    """What functions tend to is reached exactly, and not passed."""
    host = host_target()
    target = host if target is None or target.lanes > host.lanes else target
    far = np.repeat(np.array([-np.inf, -3e38, -150, 150, 3e38, np.inf], np.float32), 16)
    for name, low, high in (("tanh", -1, 1), ("sigmoid", 0, 1), ("erf", -1, 1), ("exp", 0, np.inf)):
        np.testing.assert_array_equal(evaluate(name, far, target), np.where(far < 0, np.float32(low), high))
    x = np.linspace(-30, 30, 1 << 16).astype(np.float32)
    for name, low in (("tanh", -1), ("sigmoid", 0), ("erf", -1)):
        y = evaluate(name, x, target)
        assert y.min() >= low, name
        assert y.max() <= 1, name


def test_power():
    rng = np.random.default_rng(0)
    special = np.array([*SPECIAL, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 2.5, 2.0**25], np.float32)
    positive = np.abs(rng.standard_normal(4096)) * 10 ** rng.uniform(-5, 5, 4096)
    x = np.concatenate([np.repeat(special, len(special)), positive, rng.standard_normal(4096) * 3]).astype(np.float32)
    y = np.concatenate([np.tile(special, len(special)), rng.standard_normal(4096) * 10, rng.integers(-9, 9, 4096)])
    y = y.astype(np.float32)
    k = KernelBuilder("power", {name: PointerType(f32) for name in ("x", "y", "out")})
    base, exponent = (k.load(k.view(k[name], [len(x)]), (0, len(x))) for name in ("x", "y"))
    k.store(base**exponent, k.view(k["out"], [len(x)]), (0, len(x)))
    got = np.zeros_like(x)
    compile_kernel(k.finish())(x, y, got)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
        rounded = want.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), np.float32(1.2e-38)))
    assert np.max(np.abs(got[finite] - want[finite]) / unit) < 1
    assert (np.signbit(got) == np.signbit(rounded))[~np.isnan(rounded)].all()


@pytest.mark.parametrize("form", ["softmax", "exponential", "scaled"])
@pytest.mark.parametrize("element", [tp.f32, tp.f64], ids=str)
@pytest.mark.parametrize(("axis", "shape"), [(1, (4, 8)), (2, (4, 8)), (1, (3,)), (1, (100,))])
def test_the_greatest_of_large_products_has_the_exponential_of_zero(
    axis: int, shape: tuple[int, ...], element: tp.DType, form: str
) -> None:
    """`x * y` is made twice, for the greatest and for the exponentials: one that is not rounded would differ."""

    @tp.program
    def program():
        t, T = tp.dim("t")
        x, y = (tp.input(name, element[shape], over=t) for name in "xy")
        product = x[0:T] * y[0:T]
        less = product - tp.max(product, axis=axis, keepdims=True)
        weights = tp.exp(-less * -0.5 if form == "scaled" else less)
        tp.output("weights", tp.softmax(product, axis=axis) if form == "softmax" else weights)

    random = np.random.default_rng(5)
    kind = np.float64 if element is tp.f64 else np.float32
    x, y = ((random.standard_normal((22, *shape)) * 1e14).astype(kind) for _ in range(2))
    found, expected = (tp.compile(program(), target)(x=x, y=y)["weights"] for target in ("cpu", "reference"))
    np.testing.assert_array_equal(found, expected)
