"""Functions that say their own gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.utils.exceptions import PassFailedException

import tempo_ir as tp

TARGETS = ("reference", "cpu")


def close(found: Any, expected: Any, what: str = "") -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-9, atol=1e-11, err_msg=what)


def run(program: Callable[[], None], **arrays: Any) -> list[tp.Result]:
    made = tp.program(program)()
    return [tp.compile(made, target)(**arrays) for target in TARGETS]


def test_a_straight_through_estimator() -> None:
    sign = tp.custom_gradient(tp.sign, lambda x, dy: dy * tp.where(tp.abs(x) < 1, 1.0, 0.0))

    def program() -> None:
        x = tp.input("x", tp.f64[4])
        tp.output("y", sign(x))
        tp.output("g", tp.grad(tp.sum(sign(x * 2) * np.arange(1.0, 5)), x))

    for out in run(program, x=np.array([-2, 0.25, -0.25, 3.0])):
        assert out["y"].tolist() == [-1, 1, -1, 1]
        assert out["g"].tolist() == [0, 4, 6, 0]


def test_what_the_gradient_says_counts_not_what_the_function_does() -> None:
    wrong = tp.custom_gradient(lambda x: x**3, lambda x, dy: dy * 7)

    def program() -> None:
        x = tp.input("x", tp.f64[2])
        tp.output("g", tp.grad(tp.sum(wrong(x) + x), x))

    for out in run(program, x=np.ones(2)):
        assert out["g"].tolist() == [8, 8]


def test_through_time_and_twice() -> None:
    """The gradients are right, so torch's are the same: of a recurrence, and of the gradient itself."""
    soft = tp.custom_gradient(tp.softplus, lambda x, dy: dy * tp.sigmoid(x))
    linear = tp.custom_gradient(lambda a, w: a @ w, lambda a, w, dy: (w @ dy, tp.expand_dims(a, 1) * dy))

    def program() -> None:
        t, T = tp.dim("t", at_least=1)
        x, w = tp.input("x", tp.f64[3], over=t), tp.input("w", tp.f64[3, 3])
        h = tp.tensor("h", tp.f64[3], over=t)
        h[0], h[t] = x, soft(linear(h[t - 1], w)) + x
        loss = tp.sum(h[T - 1] ** 2)
        by_w = tp.grad(loss, w)
        tp.output("by x", tp.grad(loss, x))
        tp.output("by w", by_w)
        tp.output("twice", tp.grad(tp.sum(by_w * by_w), w))

    made = tp.program(program)()
    compiled = [tp.compile(made, target) for target in TARGETS]
    for steps in (1, 2, 5):
        x = torch.tensor(np.random.default_rng(0).normal(size=(steps, 3)), requires_grad=True)
        w = torch.tensor(np.random.default_rng(1).normal(size=(3, 3)), requires_grad=True)
        h = x[0]
        for row in x[1:]:
            h = torch.nn.functional.softplus(h @ w) + row
        loss = (h**2).sum() + 0 * w.sum()
        by_x, by_w = torch.autograd.grad(loss, (x, w), create_graph=True)
        (twice,) = torch.autograd.grad((by_w**2).sum() + 0 * (w**2).sum(), w)
        for executable in compiled:
            out = executable(x=x.detach().numpy(), w=w.detach().numpy())
            for key, expected in {"by x": by_x, "by w": by_w, "twice": twice}.items():
                np.testing.assert_allclose(out[key], expected.detach().numpy(), rtol=1e-8, atol=1e-10, err_msg=key)


def test_one_inside_the_gradient_of_another() -> None:
    double = tp.custom_gradient(lambda x: x + x, lambda x, dy: dy * 5)
    cube = tp.custom_gradient(lambda x: x**3, lambda x, dy: double(dy) * x)

    def program() -> None:
        x = tp.input("x", tp.f64[2])
        first = tp.grad(tp.sum(cube(x) * x), x)  # x**3 + 2 x * x
        tp.output("first", first)
        tp.output("second", tp.grad(tp.sum(first), x))  # 2 x (of x**3) + 2 x + 5 x

    for out in run(program, x=np.array([2.0, 3.0])):
        close(out["first"], [16, 45])
        close(out["second"], [18, 27])


def test_integers_get_none_and_losses_are_apart() -> None:
    scaled = tp.custom_gradient(lambda x, n: x * n, lambda x, n, dy: dy * n * 10)

    def program() -> None:
        t, T = tp.dim("t")
        x, n = tp.input("x", tp.f64[()], over=t), tp.input("n", tp.i64[()], over=t)
        y = scaled(x, n)
        tp.output("all", tp.grad(y, x))
        tp.output("past", tp.grad(tp.sum(y[0 : t + 1]), x))

    for out in run(program, x=np.ones(3), n=np.array([1, 2, 3])):
        close(out["all"], [10, 20, 30])
        close(out["past"], [30, 40, 30])


def test_nothing_flows_by_what_is_no_argument() -> None:
    """Not by a tensor that the function takes from outside, nor by what it does inside, such as calls of hosts."""

    class Table:
        def look_up(self, x: np.ndarray) -> np.ndarray:
            return np.round(x * 4) / 4

    def program(allow_unused: bool) -> None:
        x, w = tp.input("x", tp.f64[2]), tp.input("w", tp.f64[2])
        table = tp.host(Table)
        call = tp.custom_gradient(lambda x: table.look_up(x, returns=tp.f64[2]) * w, lambda x, dy: dy * 3)
        loss = tp.sum(call(x) * np.array([1.0, 2.0]))
        tp.output("loss", loss)
        tp.output("by x", tp.grad(loss, x))
        tp.output("by w", tp.grad(loss, w, allow_unused=allow_unused))

    for out in run(lambda: program(allow_unused=True), x=np.array([0.3, 1.1]), w=np.array([2.0, 5.0])):
        close(out["loss"], 0.25 * 2 + 1.0 * 5 * 2)
        close(out["by x"], [3, 6])
        close(out["by w"], [0, 0])
    assert "does not depend on %w" in refusal(lambda: program(allow_unused=False))


def test_a_program_without_gradients_is_as_if_there_were_none() -> None:
    soft = tp.custom_gradient(tp.softplus, lambda x, dy: dy * tp.sigmoid(x))

    def program() -> None:
        tp.output("y", soft(tp.input("x", tp.f64[2])))

    for out in run(program, x=np.zeros(2)):
        close(out["y"], np.full(2, np.log(2)))


def refusal(program: Callable[[], None]) -> str:
    with pytest.raises((tp.ProgramError, PassFailedException)) as raised:
        tp.compile(tp.program(program)(), "reference")
    return str(raised.value)


def test_what_is_refused() -> None:
    def of(gradient: Callable[..., Any]) -> Callable[[], None]:
        def program() -> None:
            (i, _), (t, _) = tp.dims("i", "t")
            x, other = tp.input("x", tp.f64[2], over=t), tp.input("other", tp.f64[2], over=(i, t))
            y = tp.custom_gradient(lambda x: x * 2, lambda x, dy: gradient(x, dy, other))(x)
            tp.output("g", tp.grad(tp.sum(y), x))

        return program

    def said(x: Any, dy: Any, other: Any) -> Any:
        tp.log(dy)
        return dy

    def put_out(x: Any, dy: Any, other: Any) -> Any:
        tp.output("dy", dy)
        return dy

    def whole() -> None:
        x = tp.input("x", tp.i64[2])
        tp.custom_gradient(lambda x: x * 2, lambda x, dy: dy)(x)

    assert "returns 2 tensors for 1 float arguments" in refusal(of(lambda x, dy, other: (dy, dy)))
    assert "is f64 a scalar, it should be f64" in refusal(of(lambda x, dy, other: tp.sum(dy))).replace("()", "a scalar")
    assert "varies over i, over which neither the arguments nor the result do" in refusal(of(lambda x, dy, o: dy * o))
    assert "its function may only return tensors" in refusal(of(said))
    assert "its function may only return tensors" in refusal(of(put_out))
    assert "gradients are of floats" in refusal(whole)
    assert "is read at [0] inside a function with a custom gradient" in refusal(of(lambda x, dy, other: dy[0]))
    assert "is read at [0] inside a function" in refusal(of(lambda x, dy, other: (dy * 2)[0] + 0 * dy))
    assert "%x is read at [0]" in refusal(of(lambda x, dy, other: dy * x[0]))


def test_arguments_that_are_read_at_other_points() -> None:
    """The past of `x`, and `x` reversed, as arguments; where some of the results are needed, and all."""

    def program() -> None:
        t, T = tp.dim("t", at_least=1)
        x = tp.input("x", tp.f64[()], over=t)
        total = tp.custom_gradient(tp.sum, lambda rows, dy: rows * 0 + dy)
        same = tp.custom_gradient(lambda x: x * 1, lambda x, dy: dy)
        past, back = total(x[0 : t + 1]), same(x[T - 1 - t])
        tp.output("past", tp.grad(past * (t + 1), x))
        tp.output("back", tp.grad(back * (t + 1), x))
        tp.output("some", tp.grad(tp.sum(same(x[T - 1 - t])[0:T:2]), x))

    made = tp.program(program)()
    compiled = [tp.compile(made, target) for target in TARGETS]
    for steps in (1, 2, 3, 6):
        weights = np.arange(1.0, steps + 1)
        expected = {"past": np.cumsum(weights[::-1])[::-1], "back": weights[::-1]}
        expected["some"] = (np.arange(steps)[::-1] % 2 == 0) * 1.0
        for out in [*(executable(x=np.ones(steps)) for executable in compiled), made.run(x=np.ones(steps))]:
            for key, value in expected.items():
                close(out[key], value, f"{key} of {steps}")


def test_passes_before_it_keep_the_stand_in() -> None:
    from passes_support import apply, outputs

    def program() -> None:
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f64[()], over=t)
        y = tp.custom_gradient(lambda x: x * 2, lambda x, dy: dy * 3)(x)
        z = tp.custom_gradient(lambda x: x * 2, lambda x, dy: dy * 5)(x)
        tp.output("g", tp.grad(y * x + z * (t + 1), x))

    for before in ("sdg-simplify", "sdg-cse", "sdg-dce", "sdg-reduce-domain"):
        module = apply(tp.program(program)().module.clone(), before, "sdg-autodiff")
        found = outputs(module, {"x": np.ones(3)}, {"T": 3})["g"]
        close(found, [3 + 2 + 5, 3 + 2 + 10, 3 + 2 + 15], before)
