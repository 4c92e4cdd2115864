"""Gradients with known answers, by sdg-autodiff and the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_support import error_of, record, run

import tempo_ir as tp


def gradient(loss, steps: int, wrt: str = "x", **values) -> list[float]:
    """The gradient of `loss(x, w, t, T)` with `w[t] = t + 1`."""

    def program():
        t, T = tp.dim("t")
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        tp.output("g", tp.grad(loss(x, w, t, T), x if wrt == "x" else w))

    given = {"x": np.zeros(steps), "w": np.arange(1.0, steps + 1), **values}
    return run(program, **given)["g"].tolist()


def test_reads_in_pieces() -> None:
    assert gradient(lambda x, w, t, T: x[0:T].sum(), 4) == [1] * 4
    assert gradient(lambda x, w, t, T: x[0:T].sum() * w, 4) == [10] * 4
    assert gradient(lambda x, w, t, T: x[0 : t + 1].sum() * w, 4) == [10, 9, 7, 4]
    assert gradient(lambda x, w, t, T: 3 * x[tp.maximum(t - 1, 0)], 4) == [6, 3, 3, 0]
    assert gradient(lambda x, w, t, T: 3 * x[tp.minimum(t + 1, T - 1)], 4) == [0, 3, 3, 6]
    assert gradient(lambda x, w, t, T: 3 * x[t % 2], 4) == [6, 6, 0, 0]
    assert gradient(lambda x, w, t, T: x[0] * w, 4) == [10, 0, 0, 0]
    assert gradient(lambda x, w, t, T: w * x[tp.maximum(t - 2, 0)], 5) == [6, 4, 5, 0, 0]


def test_through_recurrences() -> None:
    def product(x, w, t, T):
        h = tp.tensor("h", tp.f64[()], over=t)
        h[0] = w
        h[t] = h[t - 1] * w
        return h[T - 1]

    assert gradient(product, 4, "w", w=np.full(4, 2.0)) == [8] * 4

    def shared():
        t, T = tp.dim("t")
        w = tp.input("w", tp.f64[()])
        h = tp.tensor("h", tp.f64[()], over=t)
        h[0] = w
        h[t] = h[t - 1] * w
        tp.output("g", tp.grad(h[T - 1], w))

    assert run(shared, w=np.float64(2), T=4)["g"] == 32


def test_sums_over_the_dims_that_the_parameter_has_not() -> None:
    def program():
        (i, _), (t, _) = tp.dims("i", "t")
        x = tp.input("x", tp.f64[3], over=(i, t))
        w = tp.input("w", tp.f64[()], over=i)
        tp.output("g", tp.grad(tp.sum(x * w), w))

    x = np.random.default_rng(0).normal(size=(2, 4, 3))
    np.testing.assert_allclose(run(program, x=x, w=np.ones(2))["g"], x.sum((1, 2)))


def test_gradients_of_operations() -> None:
    def program(case):
        x = tp.input("x", tp.f64[3])
        weights = np.array([10.0, 20.0, 30.0])
        loss = {
            "sort": lambda: tp.sum(tp.sort(x) * weights),
            "ties": lambda: tp.sum(tp.maximum(x, np.full(3, 1.0))),
            "same": lambda: tp.sum(tp.maximum(x, x)),
            "embedding": lambda: tp.sum(x.take(np.array([0, 1, 1, 1, 2]))),
            "masked": lambda: tp.sum(tp.softmax(tp.where(x > 99, x, -np.inf)) * weights),
            "where": lambda: tp.sum(tp.where(x > 0, tp.sqrt(x), 0.0)),
            "stopped": lambda: tp.sum(x * tp.stop_gradient(x)),
        }[case]()
        tp.output("g", tp.grad(loss, x))

    def of(case: str, *x: float) -> list[float]:
        return record(program, case=case).run(x=np.array(x, np.float64))["g"].tolist()

    assert of("sort", 3, 1, 2) == [30, 10, 20]
    assert of("ties", 1, 0, 2) == [0.5, 0, 1]
    assert of("same", 1, 2, 3) == [1, 1, 1]
    assert of("embedding", 1, 2, 3) == [1, 3, 1]
    assert of("masked", 1, 2, 3) == [0, 0, 0]
    assert of("where", -1, 0, 4) == [0, 0, 0.25]
    assert of("stopped", 1, 2, 3) == [1, 2, 3]


def test_a_tree_has_a_gradient_per_leaf() -> None:
    def program():
        a, b = tp.input("a", tp.f64[2]), tp.input("b", tp.f64[2])
        tp.output("g", tp.grad(tp.sum(a * b), {"a": a, "b": b}))

    out = run(program, a=np.array([1.0, 2.0]), b=np.array([3.0, 4.0]))
    assert out["g.a"].tolist() == [3, 4]
    assert out["g.b"].tolist() == [1, 2]


def test_the_gradient_prints_as_one_op() -> None:
    def program():
        t, T = tp.dim("t")
        x, w = tp.input("x", tp.f32[2], over=t), tp.parameter("w", tp.f32[2])
        loss = tp.mean(x * w)
        tp.output("g", tp.grad(loss, w))

    assert "sdg.grad %loss wrt %w : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>" in str(record(program))


def test_errors_of_gradients() -> None:
    def program():
        tp.output("g", tp.grad(tp.sum(tp.input("x", tp.f32[2])), 3))

    assert "the gradient is taken with respect to a tensor or a tree of tensors, got a int" in error_of(program)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_a_decaying_return_has_decaying_gradients(steps: int) -> None:
    def returns(x, w, t, T):
        g = tp.tensor("g", tp.f64[()], over=t)
        g[T - 1] = x
        g[t] = x + 0.5 * g[t + 1]
        return g[0]

    np.testing.assert_allclose(gradient(returns, steps), 0.5 ** np.arange(steps))


def test_a_tensor_that_the_loss_does_not_reach() -> None:
    def program(allow_unused=False):
        x, y = tp.input("x", tp.f64[2]), tp.input("y", tp.f64[2])
        tp.output("g", tp.grad(tp.sum(x), y, allow_unused=allow_unused))

    arguments = {"x": np.ones(2), "y": np.ones(2)}
    with pytest.raises(tp.ProgramError, match=r"test_gradients.py:.*does not depend on %y"):
        record(program).run(**arguments)
    recorded = record(program, allow_unused=True)
    assert "wrt %y allow_unused : " in str(recorded)
    assert recorded.run(**arguments)["g"].tolist() == [0, 0]


def test_a_value_and_its_gradient() -> None:
    def program() -> None:
        x = tp.input("x", tp.f64[3])
        loss, gradient = tp.value_and_grad(tp.sum(x**2), x)
        tp.output("loss", loss)
        tp.output("gradient", gradient)

    out = tp.compile(tp.program(program)(), "reference")(x=np.arange(3.0))
    assert out["loss"] == 5
    assert out["gradient"].tolist() == [0, 2, 4]
