"""Profiles of calls: every launch is counted, and the work of a kernel is that of its leaves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.index.closed_form import value
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.profile import Profile, cycles_per_second


def layers(width: int = 96) -> tp.Program:
    """A large product in every step, and a sum of what it gives."""

    @tp.program
    def program():
        t, _ = tp.dim("t")
        x, w = tp.input("x", tp.f32[width, width], over=t), tp.input("w", tp.f32[width, width])
        h = tp.tensor("h", tp.f32[width, width], over=t)
        h[0] = x[0]
        h[t] = tp.tanh(h[t - 1] @ w) + x
        tp.output("y", tp.sum(h[t], axis=(0, 1)))

    return program()


def arrays(steps: int, width: int = 96) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    return {
        "x": draw.normal(size=(steps, width, width)).astype(np.float32),
        "w": (draw.normal(size=(width, width)) / 10).astype(np.float32),
    }


@pytest.mark.parametrize("steps", [1, 2, 33])
def test_launches_and_work_are_those_of_the_program(steps: int):
    exe = tp.compile(layers())
    found = tp.profile(exe, **arrays(steps))
    assert sum(kernel.launches for kernel in found.kernels) == value(exe.costs.launches, {"T": steps})
    for name in ("operations", "bytes_moved"):
        total = sum(getattr(kernel, name) for kernel in found.kernels)
        assert total == value(getattr(exe.costs, name), {"T": steps})


def test_no_step_runs_no_kernel():
    assert tp.profile(tp.compile(layers()), **arrays(0)).kernels == ()


def test_times_add_up_and_the_product_is_most_of_them():
    found = tp.profile(tp.compile(layers()), **arrays(65))
    first = found.kernels[0]
    assert "contract" in first.kernel
    assert first.operations == 64 * (2 * 96**3 + 2 * 96**2)
    lines = Path(__file__).read_text().splitlines()
    numbers = [int(place.rpartition(":")[2]) for place in first.places]
    assert any("h[t - 1] @ w" in lines[number - 1] for number in numbers)
    assert 0 < first.least * first.launches <= first.seconds < found.seconds
    assert sum(kernel.seconds for kernel in found.kernels) <= found.seconds
    assert [kernel.seconds for kernel in found.kernels] == sorted((k.seconds for k in found.kernels), reverse=True)


def test_what_passes_in_the_host_is_not_that_of_kernels():
    class Slow:
        def step(self, x: np.ndarray) -> np.ndarray:
            time.sleep(0.02)
            return x + 1

    @tp.program
    def program():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f32[8], over=t)
        env = tp.host(Slow)
        y = env.step(x * 2, returns=tp.f32[8])
        tp.output("y", tp.exp(y))

    found = tp.profile(tp.compile(program()), x=np.ones((3, 8), np.float32))
    assert 0.06 <= found.elsewhere <= found.seconds


def test_literals_are_no_work_of_the_program():
    @tp.program
    def program():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        tp.output("y", tp.exp(x * np.array([1, 2, 3, 4], np.float32)))

    exe = tp.compile(program())
    found = tp.profile(exe, x=np.ones((5, 4), np.float32))
    assert sum(kernel.operations or 0 for kernel in found.kernels) == value(exe.costs.operations, {"T": 5})


def test_the_text_has_a_line_for_each_kernel():
    found = tp.profile(tp.compile(layers()), **arrays(9))
    head, *lines = str(found).splitlines()
    assert head.split() == ["kernel", "launches", "seconds", "share", "shortest", "GF/s", "GB/s", "lines"]
    assert [line.split()[0] for line in lines[:-1]] == [kernel.kernel for kernel in found.kernels]
    assert lines[-1].startswith("(loops, host calls)")
    assert str(Profile(0.0, ())).count("\n") == 1


def test_only_cpu_has_one():
    with pytest.raises(CallError, match="target 'reference' has no profile: compile for cpu"):
        tp.profile(tp.compile(layers(), "reference"), **arrays(1))


def test_the_rate_is_that_of_a_clock():
    assert 1e8 < cycles_per_second() < 1e11


def test_a_gather_reads_the_rows_that_it_gathers():
    @tp.program
    def program():
        t, _ = tp.dim("t")
        table, ids = tp.input("table", tp.f32[1000, 8]), tp.input("ids", tp.i64[3], over=t)
        tp.output("y", tp.take(table, ids, axis=0))

    costs = tp.compile(program()).costs
    assert value(costs.bytes_moved, {"T": 5}) == 5 * (3 * 8 + 2 * 3 * 8 * 4)


def test_work_is_that_of_the_steps_that_ran():
    @tp.program
    def until_three():
        t, _ = tp.dim("t", until=lambda: done)
        x = tp.input("x", tp.f32[64], over=t)
        done = tp.sum(x, axis=0) == 3.0
        tp.output("y", x + 1.0)

    x = np.zeros((1000, 64), np.float32)
    x[2, 0] = 3.0
    found = {kernel.kernel: kernel for kernel in tp.profile(tp.compile(until_three()), x=x).kernels}
    added = next(kernel for name, kernel in found.items() if name.startswith("add"))
    assert (added.launches, added.operations) == (3, 3 * 64)


def test_work_of_kernels_whose_sums_are_cut_in_parts():
    """A kernel of blocks of rows leaves a sum of its parts to one more, which no other kernel's work goes to."""

    @tp.program
    def learns():
        i, _ = tp.dim("i")
        x = tp.input("x", tp.f32[4096, 8])
        network = tp.nn.MLP(8, 64, 64, 4, steps=i)
        loss = tp.sum(network(x) ** 2, axis=(0, 1))
        tp.optim.SGD(1e-5).minimize(loss, network)
        tp.output("loss", loss)

    exe = tp.compile(learns())
    found = tp.profile(exe, x=np.ones((4096, 8), np.float32), I=3, state=exe.init(seed=0)).kernels
    (rows,) = (kernel for kernel in found if "parts" in kernel.kernel)
    (whole,) = (kernel for kernel in found if kernel.kernel == "sum_kernel")
    weights = [kernel for kernel in found if kernel.kernel.startswith("contract_mul_sub")]
    assert sorted(kernel.operations or 0 for kernel in weights) == [
        3 * (2 * 4096 * count + 2 * count) for count in (4 * 64, 64 * 8, 64 * 64)
    ]
    assert (rows.operations or 0) > 3 * 2 * 4096 * (8 * 64 + 2 * 64 * 64 + 2 * 64 * 4)
    total = sum(kernel.operations or 0 for kernel in found)
    assert total == value(exe.costs.operations, {"I": 3}) + (whole.operations or 0)


@pytest.mark.parametrize("ask", [tp.profile, tp.memory_timeline])
def test_what_is_no_executable(ask: Any):
    with pytest.raises(CallError, match=r"an executable is needed, as tempo_ir\.compile gives it: got a Program"):
        ask(layers())


@pytest.mark.parametrize("steps", [1, 3, 70])
def test_attention_of_all_steps_at_once_is_the_work_of_the_steps(steps: int):
    @tp.program
    def attention():
        t, _ = tp.dim("t")
        q, k, v = (tp.input(name, tp.f32[4, 64], over=t) for name in "qkv")
        scores = tp.einsum("hd,khd->hk", q, k[0 : t + 1]) * 0.125
        tp.output("y", tp.einsum("hk,khd->hd", tp.softmax(scores), v[0 : t + 1]))

    draw, exe = np.random.default_rng(0), tp.compile(attention())
    (found,) = tp.profile(exe, **{n: draw.normal(size=(steps, 4, 64)).astype(np.float32) for n in "qkv"}).kernels
    assert found.launches == 1
    assert "attend" in found.kernel
    for name in ("operations", "bytes_moved"):
        assert getattr(found, name) == value(getattr(exe.costs, name), {"T": steps})
