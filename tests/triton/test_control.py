"""Loops with carried values, branches, grids and scalars in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i1, i32, i64
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.triton.printer import print_kernel
from tests.tile import programs
from tests.tile.programs import F32, numbers
from tests.triton.support import assert_same


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_tiles_are_exchanged_at_once(trips):
    assert_same(*programs.carried_tiles(trips, 16))


def test_carried_scalars_of_every_sort():
    for trips in (0, 1, 5):
        assert_same(*programs.carried_scalars(trips))


def test_counters_of_constant_loops():
    """In Triton they are of 32 bits, in its interpreter Python numbers."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "ids": PointerType(i64)})
    view = k.view(k["x"], [8, 16])
    with k.loop(0, 8, 2, [k.const(0.0, f32, [16]), k.value(0)]) as loop:
        with k.loop(0, loop.index + 2, 1, [loop.carried[0]]) as inner:
            row = k.load(view, k.minimum(inner.index, 7), (0, 16))
            inner.carry(inner.carried[0] + row * loop.index.to(f32))
        with k.when((loop.index % 4).eq(0)):
            k.store(loop.index.to(i64), k.view(k["ids"], [8]), loop.index)
        loop.carry(inner.results[0], loop.index)
    k.store(loop.results[0], k.view(k["out"], [16]), (0, 16))
    k.store(loop.results[1].to(i64), k.view(k["ids"], [8]), 7)
    assert_same(k.finish(), [numbers(8, 16), np.zeros(16, np.float32), np.zeros(8, np.int64)])


def test_nested_loops_with_bounds_from_each_other():
    assert_same(*programs.nested_loops(4, 32))


@pytest.mark.parametrize("low", [0, 2, 7])
@pytest.mark.parametrize("high", [0, 5, 8, 9, 23])
def test_loop_ranges(low, high):
    assert_same(*programs.loop_range(low, high))


@pytest.mark.parametrize("length", [1, 16, 37])
def test_a_length_read_from_memory(length):
    assert_same(*programs.length_from_memory(length))


@pytest.mark.parametrize("n", [-1, 3, 10])
def test_branches(n):
    assert_same(*programs.branches(n, 64))


@pytest.mark.parametrize("op", programs.INDEX_OPS)
@pytest.mark.parametrize(("a", "b"), programs.INDICES)
def test_index_arithmetic(op, a, b):
    assert_same(*programs.index_arithmetic(op, a, b))


@pytest.mark.parametrize("flag", [0, 1])
def test_scalar_arguments(flag):
    types = {"out": F32, "rate": f32, "flag": i1, "small": i32}
    k = KernelBuilder("kernel", types)
    value = k.select(k["flag"].ne(0), k["rate"] * 2.0, k["small"].to(f32))
    k.store(value.broadcast(8), k.view(k["out"], [5]), (0, 8))
    assert_same(k.finish(), [np.zeros(5, np.float32), 1.25, flag, -3])


def test_names_are_python_names_of_their_own():
    k = KernelBuilder("tanh", {"tanh": F32, "range": F32, "tl": INDEX, "lambda": INDEX})
    x = k.load(k.view(k["tanh"], [16]), (0, 16)).named("tl.load")
    y = k.tanh(x).named("tanh") + (k["tl"] + k["lambda"]).to(f32)
    k.store(y.named("def"), k.view(k["range"], [16]), (0, 16))
    assert_same(k.finish(), [numbers(16), np.zeros(16, np.float32), 1, 2])


def test_extents_that_are_no_powers_of_two_are_refused():
    k = KernelBuilder("scale", {"x": F32})
    view = k.view(k["x"], [12])
    k.store(k.load(view, (0, 12)) * 2.0, view, (0, 12))
    message = (
        r"kernel @scale: Triton needs tile extents that are powers of two, not 12; lower it for a GPU, as by loop-"
    )
    with pytest.raises(DiagnosticException, match=message):
        print_kernel(k.finish())
