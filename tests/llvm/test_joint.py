"""Stores that one loop writes: with the results of one after the other, and without scratch between them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64

from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.engine import host_target
from tempo_ir.lowering.llvm.kernel import lower_kernel
from tempo_ir.lowering.llvm.target import AVX2, AVX512, SSE
from tests.llvm.support import assert_same
from tests.tile.programs import F32, numbers

NAMES = ("a", "b", "c", "d")


def loops_of(kernel: KernelOp) -> int:
    """How many loops a kernel of one program has."""
    return lower_kernel(kernel, AVX512).definition.count(" = phi i64 ")


def moments(size: int, element=f32) -> KernelOp:
    """Two moments and what is made of them, each in place: no number of the three is kept."""
    k = KernelBuilder("moments", {name: PointerType(element) for name in ("m", "v", "w", "g")})
    views = {name: k.view(k[name], [size]) for name in ("m", "v", "w", "g")}
    m, v, w, g = (k.load(view, (0, size)) for view in views.values())
    m1, v1 = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
    w1 = w - m1 / (k.sqrt(v1) + 1e-3)
    for value, name in ((m1, "m"), (v1, "v"), (w1, "w")):
        k.store(value, views[name], (0, size))
    return k.finish()


@pytest.mark.parametrize("element", [f32, f64], ids=str)
@pytest.mark.parametrize("size", [1, 5, 16, 64, 77, 500])
def test_what_is_overwritten_is_read_before(element, size):
    dtype = np.float32 if element == f32 else np.float64
    m, v, w, g = abs(numbers(4, size)).astype(dtype)
    assert_same(moments(size, element), [m, v, w, g])


def test_one_loop_without_scratch():
    definition = lower_kernel(moments(512), AVX512).definition
    assert loops_of(moments(512)) == 1
    assert "alloca" not in definition


def test_what_is_heavy_and_read_twice_by_one_store_is_not_kept():
    k = KernelBuilder("gate", {"x": F32, "out": F32})
    x = k.exp(k.load(k.view(k["x"], [500]), (0, 500)))
    k.store(x / (x + 1.0), k.view(k["out"], [500]), (0, 500))
    kernel = k.finish()
    assert "alloca" not in lower_kernel(kernel, AVX512).definition
    assert_same(kernel, [numbers(500), np.zeros(500, np.float32)])


def pair(first: str, second: str, shift: int = 0, size: int = 200) -> KernelOp:
    """Two stores of what a heavy number of `a` and `b` gives, the second one `shift` elements further."""
    k = KernelBuilder("pair", dict.fromkeys(NAMES, F32))
    views = {name: k.view(k[name], [size + 8]) for name in NAMES}
    b = k.load(views["b"], (0, size))
    common = k.exp(k.load(views["a"], (0, size))) * b
    more = common + b
    k.store(common, views[first], (0, size))
    k.store(more, views[second], (shift, size))
    return k.finish()


@pytest.mark.parametrize("shift", [0, 1, 7])
@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", NAMES)
def test_two_stores(first, second, shift):
    """To what is read, in place or further on, and to one memory."""
    assert_same(pair(first, second, shift), list(numbers(4, 208)))


def test_stores_to_one_memory_keep_their_order():
    assert loops_of(pair("c", "d")) == 1
    assert loops_of(pair("c", "c", 1)) > 1


def test_what_holds_a_product_has_a_loop_of_its_own():
    k = KernelBuilder("product", {"x": F32, "w": F32, "out": F32, "more": F32})
    x, w = k.load(k.view(k["x"], [24, 40]), (0, 24), (0, 40)), k.load(k.view(k["w"], [40, 48]), (0, 40), (0, 48))
    y = k.dot(x, w, k.const(0.0, f32, [24, 48]))
    for name, value in (("out", y), ("more", k.exp(y))):
        k.store(value, k.view(k[name], [24, 48]), (0, 24), (0, 48))
    zeros = np.zeros((24, 48), np.float32)
    assert_same(k.finish(), [numbers(24, 40) / 8, numbers(40, 48) / 8, zeros, zeros])


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
@pytest.mark.parametrize("seed", range(30))
def test_random_stores(seed, target):
    """Random ops of several arrays, stored into some of them: in place, shifted, transposed, in any order."""
    host = host_target()
    draw = random.Random(seed)
    shape = draw.choice([(1,), (7,), (40,), (130,), (3, 17), (20, 33)])
    k = KernelBuilder("random", dict.fromkeys(NAMES, F32))
    extents = [extent + 4 for extent in shape]
    strides = [[1], [60, 1]][len(shape) - 1]
    across = [1, 60] if len(shape) == 2 and draw.random() < 0.3 else strides
    views = {name: k.view(k[name], extents, across if name == "d" else strides) for name in NAMES}
    places = [[(0, extent) for extent in shape], [(draw.randint(0, 4), extent) for extent in shape]]
    values: list[Value] = [k.load(views[name], *draw.choice(places)) for name in NAMES for _ in range(2)]
    for _ in range(draw.randint(2, 9)):
        x, y = draw.choice(values), draw.choice(values)
        values.append(draw.choice([x + y, x * y * 0.5, k.exp(x * 0.1), k.tanh(x - y)]))
    for _ in range(draw.randint(2, 5)):
        k.store(draw.choice(values), views[draw.choice(NAMES)], *draw.choice(places))
    machine = host if target is None or target.lanes > host.lanes else target
    assert_same(k.finish(), list(numbers(4, 44 * 60)), target=machine)
