"""Gradients through calls of host functions that name the method which carries them back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from xdsl.utils.exceptions import PassFailedException

import tempo_ir as tp

TARGETS = ("reference", "cpu")
SIZES = (1, 2, 3, 5, 8)


def close(found: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-10, atol=1e-12, err_msg=what)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


class Cell:
    """A recurrent cell in numpy that keeps what its gradients need, last in, first out."""

    def __init__(self, calls: list[str]):
        self.calls = calls
        self.kept: list[np.ndarray] = []

    def step(self, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        self.calls.append("step")
        self.kept.append(np.tanh(x * h))
        return self.kept[-1]

    def back(self, x: np.ndarray, h: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.calls.append("back")
        slope = gradient * (1 - self.kept.pop() ** 2)
        return slope * h, slope * x

    def fail(self, x: np.ndarray, h: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise ArithmeticError("no gradient today")


def through_time(calls: list[str], gradient: str = "back") -> Any:
    def program() -> None:
        t, T = tp.dim("t", at_least=1)
        x = tp.input("x", tp.f64[3], over=t)
        h = tp.tensor("h", tp.f64[3], over=t)
        after = tp.host(lambda: Cell(calls)).step(x, h, returns=tp.f64[3], gradient=gradient)
        h[0] = 1.0
        h[t] = after[t - 1]
        tp.output("gradient", tp.grad(tp.sum(after[T - 1] ** 2), x))

    return tp.program(program)()


@pytest.mark.parametrize("target", TARGETS)
def test_through_time_in_reverse_order(target: str) -> None:
    calls: list[str] = []
    compiled = tp.compile(through_time(calls), target)
    for steps in SIZES:
        x = torch.tensor(draw(steps, 3), requires_grad=True)
        h = torch.ones(3, dtype=torch.float64)
        for row in x:
            h = torch.tanh(row * h)
        (h**2).sum().backward()
        calls.clear()
        close(compiled(x=x.detach().numpy())["gradient"], x.grad, f"{steps} steps")
        assert calls == ["step"] * steps + ["back"] * steps


@pytest.mark.parametrize("target", TARGETS)
def test_an_exception_of_the_gradient_is_that_of_the_call(target: str) -> None:
    with pytest.raises(ArithmeticError, match="no gradient today"):
        tp.compile(through_time([], "fail"), target)(x=draw(3, 3))


class Model:
    """Two results, of a float and an integer argument."""

    def __init__(self, calls: list[str]):
        self.calls = calls

    def run(self, w: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.calls.append("run")
        return np.sin(w * number), (w**2).sum()

    def back(self, w: np.ndarray, number: np.ndarray, values: np.ndarray, total: np.ndarray) -> np.ndarray:
        self.calls.append("back")
        return values * np.cos(w * number) * number + total * 2 * w


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("both", [False, True])
def test_each_step_of_training_has_its_own_calls_back(target: str, both: bool) -> None:
    calls: list[str] = []

    def program() -> None:
        i, (t, _) = tp.dim("i")[0], tp.dim("t", at_least=1)
        number = tp.input("number", tp.i64[()], over=(i, t))
        w = tp.state("w", tp.f64[3], steps=i)
        values, total = tp.host(lambda: Model(calls)).run(w, number, returns=(tp.f64[3], tp.f64[()]), gradient="back")
        loss = tp.sum(values**2)
        w.next = w - 0.1 * tp.grad(loss + total if both else loss, w)

    compiled = tp.compile(tp.program(program)(), target)
    for steps, length in ((0, 2), (1, 1), (3, 4)):
        number = np.random.default_rng(0).integers(-2, 3, (steps, length))
        start = draw(3, seed=1)
        w = torch.tensor(start)
        for row in torch.tensor(number):
            w = w.detach().requires_grad_()
            loss = torch.stack([(torch.sin(w * one) ** 2).sum() + both * (w**2).sum() for one in row]).sum()
            w = w - 0.1 * torch.autograd.grad(loss, w)[0]
        calls.clear()
        close(compiled(number=number, state={"w": start}).state["w"], w.detach(), f"{steps} steps of {length}")
        assert calls == (["run"] * length + ["back"] * length) * steps


class Layers:
    """Two functions of one object."""

    def __init__(self, calls: list[str]):
        self.calls = calls

    def first(self, x: np.ndarray) -> np.ndarray:
        self.calls.append("first")
        return x**2

    def second(self, x: np.ndarray) -> np.ndarray:
        self.calls.append("second")
        return x**3

    def first_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        self.calls.append("first_back")
        return 2 * x * gradient

    def second_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        self.calls.append("second_back")
        return 3 * x**2 * gradient


@pytest.mark.parametrize("target", TARGETS)
def test_two_functions_of_one_object(target: str) -> None:
    calls: list[str] = []

    def program() -> None:
        t, T = tp.dim("t", at_least=2)
        x = tp.input("x", tp.f64[2], over=t)
        layers = tp.host(lambda: Layers(calls))
        y = layers.first(x, returns=tp.f64[2], gradient="first_back")
        z = layers.second(tp.sum(y[0:T], 0), returns=tp.f64[2], gradient="second_back")
        tp.output("gradient", tp.grad(tp.sum(z), x))

    compiled = tp.compile(tp.program(program)(), target)
    for steps in (2, 3, 5):
        x = torch.tensor(draw(steps, 2), requires_grad=True)
        ((x**2).sum(0) ** 3).sum().backward()
        calls.clear()
        close(compiled(x=x.detach().numpy())["gradient"], x.grad, f"{steps} steps")
        assert calls == ["first"] * steps + ["second", "second_back"] + ["first_back"] * steps


def refusal(program: Any) -> str:
    with pytest.raises((tp.ProgramError, PassFailedException)) as raised:
        tp.compile(tp.program(program)(), "reference")
    return str(raised.value)


def test_what_is_refused() -> None:
    def twice() -> None:
        x = tp.input("x", tp.f64[2])
        y = tp.host(dict).first(x, returns=tp.f64[2], gradient="first_back")
        tp.output("g", tp.grad(tp.sum(tp.grad(tp.sum(y**2), x) ** 2), x))

    def trained_inside() -> None:
        (i, _), (t, _) = tp.dims("i", "t")
        x, w = tp.input("x", tp.f64[()], over=(i, t)), tp.state("w", tp.f64[()], steps=t)
        y = tp.host(dict).first(x * w, returns=tp.f64[()], gradient="first_back")
        w.next = w - tp.grad(y, w)

    def nothing_back() -> None:
        x = tp.input("x", tp.f64[2])
        tp.output("y", tp.host(dict).first(x, returns=tp.i64[()], gradient="back"))

    def nothing_in() -> None:
        tp.output("y", tp.host(dict).first(returns=tp.f64[()], gradient="back"))

    def unnamed() -> None:
        tp.output("y", tp.host(dict).first(tp.input("x", tp.f64[2]), returns=tp.f64[()], gradient=dict))

    def without() -> None:
        x = tp.input("x", tp.f64[2])
        tp.output("g", tp.grad(tp.sum(tp.host(dict).first(x, returns=tp.f64[2])), x))

    assert "through the host function @dict::@first_back, by its argument" in refusal(twice)
    assert "have no order: a parameter is trained over t, inside of i" in refusal(trained_inside)
    assert "first returns no float, so gradient='back' is never called" in refusal(nothing_back)
    assert "first gets no float, so gradient='back' has nothing to return" in refusal(nothing_in)
    assert "names no method: give the name of a method of the object" in refusal(unnamed)
    assert "name the method that carries gradients back (gradient=...)" in refusal(without)
