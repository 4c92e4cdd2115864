"""Kernels along rows give the numbers that they give one by one, at any number of rows and threads."""

from __future__ import annotations

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir import nn
from tempo_ir.dialects import loop
from tempo_ir.dialects.types import shape_of

SIZES = (0, 1, 2, 21, 22, 64, 65, 700)
"""Steps, of 3 rows: none, fewer than a block, blocks and some rows more."""


@tp.program
def learn(inner: int = 3, hidden: int = 8, out: int = 2, flat: bool = True, element=tp.f32):
    """A network of three layers over rows of steps and environments, and the gradients of its loss."""
    t, T = tp.dim("t")
    shapes = [(hidden, 4), (hidden, hidden), (out, hidden)]
    weights = [tp.parameter(f"w{n}", element[shape], init=nn.orthogonal()) for n, shape in enumerate(shapes)]
    biases = [tp.parameter(f"b{n}", element[shape[0]], init=nn.normal(1.0)) for n, shape in enumerate(shapes)]
    x, want = tp.input("x", element[inner, 4], over=t), tp.input("want", element[inner, out], over=t)
    rows, expected = (x[0:T].flatten(0, 1), want[0:T].flatten(0, 1)) if flat else (x, want)
    y = rows
    for number, (w, b) in enumerate(zip(weights, biases, strict=True)):
        y = nn.linear(y, w, b)
        y = y if number == 2 else tp.tanh(y)
    loss = tp.sum((y - expected) ** 2)
    for name, parameter in zip(("w0", "w1", "w2", "b0", "b1", "b2"), (*weights, *biases), strict=True):
        tp.output(f"g.{name}", tp.grad(loss, parameter))


def inputs(program: tp.Executable, steps: int) -> dict[str, np.ndarray]:
    """Random arrays of so many steps."""
    random = np.random.default_rng(steps)
    arrays = program.signature.inputs
    return {
        name: random.standard_normal(arrays[name].shape({"T": steps})).astype(arrays[name].dtype) for name in arrays
    }


def kernels_by_rows(program: loop.ProgramOp) -> list[loop.KernelOp]:
    """The kernels that go from product to product."""
    kernels = [op for op in program.walk() if isinstance(op, loop.KernelOp)]
    return [op for op in kernels if sum(inner.name == "sdg.contract" for inner in op.body.block.ops) > 2]


CASES = {
    "rows of a block": {},
    "whole blocks": {"inner": 64, "hidden": 64},
    "columns that are no vectors": {"inner": 100, "hidden": 33, "out": 1},
    "along two axes": {"flat": False},
    "along two axes in whole blocks": {"inner": 64, "flat": False},
    "f64": {"element": tp.f64},
}


@pytest.mark.parametrize("case", CASES)
def test_a_network_and_its_gradients_are_one_kernel_with_the_same_numbers(case: str) -> None:
    source = learn(**CASES[case])
    fused, apart = tp.compile(source), tp.compile(source, without=("loop-fuse-rows",))
    (kernel,) = kernels_by_rows(fused.formed)
    assert len(kernel.outs) == 6
    kept = [op.buffer.type for op in fused.formed.walk() if isinstance(op, loop.AllocOp)]
    assert all(isinstance(extent, int) for type in kept for extent in shape_of(type.row)), "an array with a row per row"
    assert not kernels_by_rows(apart.formed)
    state = fused.init(seed=1)
    tolerance = 1e-10 if CASES[case].get("element") is tp.f64 else 2e-5
    for steps in SIZES:
        arrays = inputs(fused, steps)
        found, expected = fused(**arrays, T=steps, state=state), apart(**arrays, T=steps, state=state)
        for name, array in expected.items():
            scale = max(1.0, float(np.abs(array).max(initial=0)))
            np.testing.assert_allclose(found[name] / scale, array / scale, atol=tolerance, err_msg=f"{name} {steps}")


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = tp.compile(learn(inner=64, hidden=64))
    state, arrays = fused.init(seed=2), inputs(fused, 40)
    found: list[dict[str, np.ndarray]] = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("TEMPO_NUM_THREADS", threads)
        found.append(dict(fused(**arrays, T=40, state=state).items()))
    for other in found[1:]:
        for name, array in found[0].items():
            np.testing.assert_array_equal(other[name], array)


@tp.program
def one_batch(rows: int = 2048):
    """Rows of a known number, a gradient and a sum over rows and columns."""
    w, v = (tp.parameter(name, tp.f32[8, 8], init=nn.orthogonal()) for name in "wv")
    x = tp.input("x", tp.f32[rows, 8])
    h = tp.tanh(x @ w)
    y = h @ v
    tp.output("y", y)
    tp.output("h", h + 1.0)
    tp.output("loss", tp.sum(y * y))
    tp.output("g", tp.grad(tp.sum(y * h), w))


@pytest.mark.parametrize("rows", [2048, 2100, 2500])
def test_rows_of_a_known_number(rows: int) -> None:
    fused, apart = tp.compile(one_batch(rows=rows)), tp.compile(one_batch(rows=rows), without=("loop-fuse-rows",))
    (kernel,) = kernels_by_rows(fused.formed)
    assert len(kernel.outs) == 4
    state, arrays = fused.init(seed=3), inputs(fused, 0)
    found, expected = fused(**arrays, state=state), apart(**arrays, state=state)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-5, err_msg=name)


@tp.program
def centred():
    """A loss that reads the mean of the rows: it is there when the last row is."""
    t, T = tp.dim("t")
    w, v = (tp.parameter(name, tp.f32[8, 8], init=nn.orthogonal()) for name in "wv")
    x = tp.input("x", tp.f32[8], over=t)
    y = tp.tanh(x[0:T] @ w) @ v
    tp.output("y", (y - tp.sum(y, axis=0)) @ v)


@tp.program
def residual():
    """Columns of one product are those of the next: `w` and `v` have them along both axes."""
    t, T = tp.dim("t")
    w, v = (tp.parameter(name, tp.f32[8, 8], init=nn.orthogonal()) for name in "wv")
    x = tp.input("x", tp.f32[8], over=t)
    rows = x[0:T]
    h = rows + tp.tanh(rows @ w)
    tp.output("y", h + tp.tanh(h @ v))


@tp.program
def mixed():
    """Rows that are turned round, and a softmax over rows, keep products apart."""
    t, T = tp.dim("t")
    w = tp.parameter("w", tp.f32[8, 8], init=nn.orthogonal())
    x = tp.input("x", tp.f32[8], over=t)
    h = tp.tanh(x[0:T] @ w)
    tp.output("y", tp.softmax(h @ w, axis=0) @ w)


@pytest.mark.parametrize("source", [centred, residual, mixed])
def test_what_mixes_rows_runs_between(source: tp.ProgramFunction) -> None:
    fused, apart = tp.compile(source()), tp.compile(source(), without=("loop-fuse-rows",))
    state = fused.init(seed=1)
    for steps in (0, 1, 65):
        arrays = inputs(fused, steps)
        found, expected = (each(**arrays, T=steps, state=state)["y"] for each in (fused, apart))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@tp.program
def dots(width: int = 8, inner: int | None = None):
    """Sums of all elements, of which what is read has as many columns as what is made: seen by itself, such a sum
    takes columns for rows; and layers of no columns."""
    t, T = tp.dim("t")
    w = tp.parameter("w", tp.f32[4, width], init=nn.normal(1.0))
    v = tp.parameter("v", tp.f32[width, 4], init=nn.normal(1.0))
    row = "bi" if inner is None else "bei"
    x = tp.input("x", tp.f32[4] if inner is None else tp.f32[inner, 4], over=t)[0:T]
    y = tp.tanh(x @ w) @ v + 1
    tp.output("y", y)
    tp.output("all", tp.einsum(f"{row},{row}->", y, x))
    tp.output("columns", tp.einsum(f"{row},{row}->i", y, x))
    tp.output("rows", tp.einsum(f"{row},{row}->b", y, x))


@pytest.mark.parametrize("width", [0, 8])
@pytest.mark.parametrize("inner", [None, 3, 4])
def test_leaves_of_a_kernel_count_rows_along_the_same_axes(width: int, inner: int | None) -> None:
    source = dots(width=width, inner=inner)
    fused, reference = tp.compile(source), tp.compile(source, "reference")
    state = fused.init(seed=1)
    for steps in (0, 1, 65):
        arrays = inputs(fused, steps)
        expected = reference(**arrays, T=steps, state=state)
        for name, found in fused(**arrays, T=steps, state=state).items():
            np.testing.assert_allclose(found, expected[name], rtol=2e-5, atol=2e-4, err_msg=f"{name} {steps}")


def test_triton_is_given_the_kernels_apart() -> None:
    assert "def contract" in tp.compile(learn()).ir("triton")
