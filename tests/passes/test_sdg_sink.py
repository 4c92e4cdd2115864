"""sdg-sink: the same bits, and a loop that reads the caller's array instead of what is made of it."""

from __future__ import annotations

import numpy as np
from passes_support import SIZES, check_unchanged

import tempo_ir as tp
from tempo_ir import optim
from tempo_ir.dialects import loop

MOMENTS = """
sdg.program @moments dims(i: I, t: T) {
  %g = sdg.input "g" in (i) : tensor<5xf32>
  %x = sdg.input "x" in (i, t) : tensor<5xf32>
  %half = sdg.constant 0.5 : tensor<f32>
  %one = sdg.mul %half, %g[i] in (i) : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %square = sdg.mul %g[i], %g[i] in (i) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %two = sdg.sub %square[i], %half in (i) : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %m = sdg.add %x[i, t], %one[i] in (i, t: 1 to T) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %v = sdg.mul %m[i, t], %two[i] in (i, t: 1 to T) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  sdg.output "v" %v[i, t] in (i, t: 1 to T) : tensor<5xf32>
}
"""


def test_no_bit_changes():
    bounds = [{"I": i, "T": t} for i in SIZES for t in SIZES]
    check_unchanged(MOMENTS, "sdg-sink", bounds=bounds, exact=True)
    check_unchanged(MOMENTS, "sdg-sink", "sdg-reduce-domain", "sdg-sink", bounds=bounds, exact=True)


@tp.program
def descent(size=37):
    """Steps of Adam with the same gradient in each."""
    i, _ = tp.dim("i")
    gradient = tp.input("gradient", tp.f32[size])
    w = tp.state("w", tp.f32[size], np.ones(size, np.float32), steps=i)
    optim.Adam(1e-2).update([w], [gradient])


def test_a_step_reads_the_gradient_alone():
    """No kernel makes multiples of it before the loop, and no memory keeps them."""
    executable, before = tp.compile(descent()), tp.compile(descent(), without=["sdg-sink"])
    kernels = [sum(isinstance(op, loop.LaunchOp) for op in exe.lowered.walk()) for exe in (before, executable)]
    assert kernels[0] - kernels[1] == 2
    gradient, state = np.linspace(-1, 1, 37, dtype=np.float32), executable.init(0)
    for steps in (0, 1, 7):
        found = executable(gradient=gradient, I=steps, state=state).state["w"]
        expected = before(gradient=gradient, I=steps, state=state).state["w"]
        np.testing.assert_allclose(found, expected, rtol=1e-6)  # what is multiplied is added without being rounded
    assert executable.stats.peak_bytes < before.stats.peak_bytes


@tp.program
def gated(size=24):
    """A recurrence whose scale the way back reads too."""
    t, _ = tp.dim("t")
    m, x = tp.input("m", tp.f32[size]), tp.input("x", tp.f32[size], over=t)
    u = tp.parameter("u", tp.f32[size], np.ones(size, np.float32))
    scale = m * 0.5 + 1.0
    n = tp.tensor("n", tp.f32[size], over=t)
    n[0] = tp.tanh(x[0] * u)
    n[t] = tp.tanh(n[t - 1] + tp.tanh(x * u) * scale)
    tp.output("g", tp.grad(tp.mean(n**2), u))


def test_what_the_way_back_reads_too_is_not_kept_for_all_steps():
    with_it, without = tp.compile(gated()), tp.compile(gated(), without=["sdg-sink"])
    rng, found = np.random.default_rng(0), []
    x, m = (rng.normal(size=shape).astype(np.float32) for shape in ((50, 24), (24,)))
    for executable in (with_it, without):
        found.append(executable(x=x, m=m, state=executable.init(0))["g"])
    np.testing.assert_array_equal(*found)
    assert with_it.stats.peak_bytes <= without.stats.peak_bytes
