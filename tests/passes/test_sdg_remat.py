"""sdg-remat: what is computed anew, at sizes round that of a block; what stays; budgets; and the values."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from passes_support import apply, program_of
from xdsl.dialects.builtin import ModuleOp

import tempo_ir as tp
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.passes.pipeline import recomputing_pipeline
from tempo_ir.passes.remarks import collecting
from tempo_ir.reference.sdg import run
from tests.fuzz.arguments import admissible, draw

Program = Callable[[], None]
BLOCKS = (1, 4)


def network(steps: tp.Expr | None = None) -> tuple[tp.Tensor, tp.Tensor, tp.Tensor, tp.Dim]:
    """`h[t] = tanh(h[t - 1] w + x u)`, and what else a program needs."""
    t, _ = tp.dim("t") if steps is None else tp.dim("t", steps)
    x = tp.input("x", tp.f64[2, 3], over=t)
    w, u = tp.parameter("w", tp.f64[4, 4]), tp.parameter("u", tp.f64[3, 4])
    h = tp.tensor("h", tp.f64[2, 4], over=t)
    h[0] = tp.tanh(x[0] @ u)
    h[t] = tp.tanh(h[t - 1] @ w * 0.3 + x @ u)
    return h, w, u, t


def plain():
    h, w, u, _ = network()
    loss = tp.mean(h * h)
    tp.output("w", tp.grad(loss, w))
    tp.output("u", tp.grad(loss, u))


def with_outputs():
    """Rows that the caller gets, and the loss of each step."""
    h, w, _, t = network()
    loss = tp.mean(tp.sin(h))
    tp.output("h", h)
    tp.output("loss", loss)
    tp.output("w", tp.grad(loss, w))
    tp.output("rows", tp.stop_gradient(h)[0 : t + 1].sum(0))


def two_values():
    """A cell and a state, each of which reads both."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f64[3], over=t)
    w = tp.parameter("w", tp.f64[3])
    c, h = tp.tensor("c", tp.f64[3], over=t), tp.tensor("h", tp.f64[3], over=t)
    c[0], h[0] = x[0] * w, tp.sin(x[0])
    c[t] = tp.sigmoid(h[t - 1] * w) * c[t - 1] + tp.tanh(x)
    h[t] = tp.tanh(c) * tp.sigmoid(x + h[t - 1])
    tp.output("w", tp.grad((h * x).sum(), w))
    tp.output("x", tp.grad((h * x).sum(), x))


def second_order():
    """Reads of the two steps before; a gradient of each step."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f64[3], over=t)
    h = tp.tensor("h", tp.f64[3], over=t)
    h[t < 2] = tp.sin(x)
    h[t] = tp.tanh(h[t - 1] * h[t - 2] + x)
    tp.output("x", tp.grad((h * h).sum(), x))


def training():
    """Steps of gradient descent, each through all of t."""
    (i, _), (t, _) = tp.dims("i", "t")
    w = tp.state("w", tp.f64[3], init=0.3, steps=i)
    x = tp.input("x", tp.f64[3], over=(i, t))
    h = tp.tensor("h", tp.f64[3], over=(i, t))
    h[i, 0] = x[i, 0]
    h[i, t] = tp.tanh(h[i, t - 1] * w[i] + x[i, t])
    loss = tp.mean(h * h)
    w.next = w[i] - 0.01 * tp.grad(loss, w)[i]
    tp.output("loss", loss)


def weights_of_each_step():
    """A loss that weighs steps by their number; weights of each step."""
    t, _ = tp.dim("t")
    w = tp.input("w", tp.f64[3], over=t)
    h = tp.tensor("h", tp.f64[3], over=t)
    h[0] = w[0]
    h[t] = tp.sin(h[t - 1] * w[t]) + w[t]
    tp.output("w", tp.grad((h * tp.cast(t, tp.f64)).sum(), w))


def means():
    """A mean over all steps of what a backward recurrence makes, and its greatest."""
    h, w, _, t = network()
    g = tp.tensor("g", tp.f64[2, 4], over=t)
    T = t.bound
    g[T - 1] = h[T - 1]
    g[t] = tp.cos(g[t + 1]) * h[t]
    tp.output("mean", g[0:T].mean(0))
    tp.output("greatest", g[0:T].max((0, 1)))


def inner_points():
    """Another dim beside t, which a block does not touch."""
    (e, _), (t, _) = tp.dim("e", 2), tp.dim("t")
    x = tp.input("x", tp.f64[3], over=(e, t))
    w = tp.parameter("w", tp.f64[3])
    h = tp.tensor("h", tp.f64[3], over=(e, t))
    h[e, 0] = x[e, 0]
    h[e, t] = tp.tanh(h[e, t - 1] * w) + x
    tp.output("w", tp.grad((h * h).sum(), w))


def bounded():
    h, w, _, _ = network(11)
    tp.output("w", tp.grad(tp.mean(h), w))


APPLIES = (plain, with_outputs, two_values, second_order, training, weights_of_each_step, inner_points, bounded)


@functools.cache
def graphs(program: Program, block: int) -> tuple[ModuleOp, ModuleOp]:
    """Before and after the pass; its own passes run before."""
    names = [name for name, _ in recomputing_pipeline((), {})]
    before = apply(tp.program(program)().module.clone(), *names[: names.index("sdg-remat")])
    with collecting() as collector:
        after = apply(before.clone(), "sdg-remat", block=block)
    assert collector.statistics["sdg-remat"]["recomputed"] > 0, collector.remarks
    return before, after


def sizes(program: ProgramOp, block: int) -> list[dict[str, int]]:
    """Values of the bounds: T round the length of a block."""
    every = (
        {**dict.fromkeys(program.space.params, 2), "T": size}
        for size in (0, 1, block - 1, block, block + 1, 2 * block + 3)
    )
    return [bounds for bounds in every if admissible(program, bounds)]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("program", APPLIES)
def test_the_values_stay(program: Program, block: int):
    before, after = (program_of(module) for module in graphs(program, block))
    simplified = program_of(apply(graphs(program, block)[1].clone(), "sdg-simplify", "sdg-reduce-domain", "sdg-dce"))
    for bounds in sizes(before, block):
        arguments = draw(before, bounds, bounds["T"])
        expected = run(before, arguments, bounds)
        for graph in (after, simplified):
            found = run(graph, arguments, bounds)
            for key, value in expected.items():
                np.testing.assert_allclose(found[key], value, 1e-11, 1e-11, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("program", [plain, with_outputs, two_values, second_order, training])
def test_on_the_cpu(program: Program):
    source = tp.program(program)()
    executable = tp.compile(source, remat={"block": 4})
    before = program_of(graphs(program, 4)[0])
    for bounds in sizes(before, 4):
        arguments = draw(before, bounds, bounds["T"])
        expected = run(before, arguments, bounds)
        state = {key: arguments.pop(key) for key in executable.signature.parameters}
        out = executable(**arguments, **bounds, state=state)
        for key, value in expected.items():
            found = out.state[key] if key in out.state else out[key]
            np.testing.assert_allclose(found, value, 1e-11, 1e-11, err_msg=f"{key} at {bounds}")
