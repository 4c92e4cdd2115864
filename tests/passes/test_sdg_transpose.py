"""sdg-transpose: the same numbers, and a loop whose products turn no weights round."""

from __future__ import annotations

import numpy as np
from passes_support import SIZES, check_unchanged

import tempo_ir as tp
from tempo_ir import nn

LAYERS = """
sdg.program @layers dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<33x5xf32>
  %w = sdg.input "w" in (i) : tensor<17x5xf32>
  %v = sdg.input "v" : tensor<19x17xf32>
  %y = sdg.contract "bk,nk->bn" %x[i, t], %w[i] in (i, t) : (tensor<33x5xf32>, tensor<17x5xf32>) -> tensor<33x17xf32>
  %z = sdg.contract "nk,bk->bn" %v, %y[i, t] in (i, t) : (tensor<19x17xf32>, tensor<33x17xf32>) -> tensor<33x19xf32>
  sdg.output "z" %z[i, t] in (i, t) : tensor<33x19xf32>
}
"""


def test_numbers_do_not_change():
    bounds = [{"I": i, "T": t} for i in SIZES for t in SIZES]
    check_unchanged(LAYERS, "sdg-transpose", bounds=bounds)
    check_unchanged(LAYERS, "sdg-transpose", "sdg-simplify", bounds=bounds)


@tp.program
def recurrent(rows=37, width=24):
    """A recurrent network of many rows, and its gradient."""
    t, T = tp.dim("t")
    x, cell = tp.input("x", tp.f32[rows, width], over=t), nn.Linear(width, width, name="cell")
    h = tp.tensor("h", tp.f32[rows, width], over=t)
    h[0] = tp.tanh(x[0])
    h[t] = tp.tanh(cell(h[t - 1]) + x)
    tp.output("last", h[T - 1])
    tp.output("g", tp.grad(tp.mean(h**2), cell.weight))


def test_compiled_programs_agree():
    with_it, without = tp.compile(recurrent()), tp.compile(recurrent(), without=["sdg-transpose"])
    assert "permutation [1, 0]" in str(with_it.levels.optimised)
    rng = np.random.default_rng(0)
    for steps in (1, 2, 9):
        x, state = rng.normal(size=(steps, 37, 24)).astype(np.float32), with_it.init(0)
        found, expected = with_it(x=x, state=state), without(x=x, state=state)
        for name in ("last", "g"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def test_a_gpu_reads_weights_as_they_lie():
    assert "permutation [1, 0]" not in str(tp.compile(recurrent(), target="triton-interpret").levels.optimised)
