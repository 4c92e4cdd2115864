"""Calls of host functions that name a vectorised form: the same values, the same effects, fewer calls (case 24)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from semantics_support import Everywhere, agree, normal

import tempo_ir as tp
from tempo_ir.reference.errors import ExecutionError

WIDTH, ACTIONS = 4, 2


class Carts:
    """A vector environment, one cart per b, that counts all steps in their order; `calls` is what was called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.steps = 0
        self.state: dict[int, np.ndarray] = {}

    def reset(self, i: np.ndarray, b: np.ndarray) -> np.ndarray:
        self.calls.append("reset")
        return self._reset(i, b)

    def reset_all(self, i: np.ndarray, b: np.ndarray) -> np.ndarray:
        self.calls.append("reset_all")
        return np.stack([self._reset(*each) for each in zip(i, b, strict=True)])

    def step(self, b: np.ndarray, action: np.ndarray) -> tuple[Any, ...]:
        self.calls.append("step")
        return self._step(b, action)

    def step_all(self, b: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, ...]:
        self.calls.append("step_all")
        assert not action.flags.writeable
        rows = [self._step(*each) for each in zip(b, action, strict=True)]
        return tuple(np.stack(column) for column in zip(*rows, strict=True))

    def _reset(self, i: np.ndarray, b: np.ndarray) -> np.ndarray:
        self.state[int(b)] = np.sin(np.arange(WIDTH) + i + 2 * b).astype(np.float32)
        return self.state[int(b)]

    def _step(self, b: np.ndarray, action: np.ndarray) -> tuple[Any, ...]:
        self.steps += 1
        state = np.tanh(self.state[int(b)] + np.tile(action, WIDTH // ACTIONS)).astype(np.float32)
        self.state[int(b)] = state
        return state, np.float32(state.sum()), np.bool_(state[0] > 0.5), np.int64(self.steps)


def acting_and_learning() -> None:
    (i, I), (t, T), (b, B) = tp.dims("i", "t", "b")
    w = tp.state("w", tp.f32[WIDTH, ACTIONS], np.eye(WIDTH, ACTIONS, dtype=np.float32), steps=(i,))
    env = tp.host(Carts, "env")
    obs = tp.tensor("obs", tp.f32[WIDTH], over=(i, t, b))
    obs[i, 0, b] = env.reset(i, b, returns=tp.f32[WIDTH], vectorized="reset_all", along=b)
    seen = tp.stop_gradient(obs)
    action = tp.tanh(seen @ w[i])
    after, reward, done, number = env.step(
        b, action, returns=(tp.f32[WIDTH], tp.f32[()], tp.bool[()], tp.i64[()]), vectorized="step_all", along=b
    )
    obs[i, t + 1, b] = after
    loss = tp.sum(action * tp.stop_gradient(tp.where(done, 0.0, reward)))
    w.next = w - 0.01 * tp.grad(loss, w)
    tp.output("reward", reward)
    tp.output("mean", reward[i, t, 0:B].sum())
    tp.output("number", number)


def test_24_calls_of_environments_vectorise() -> None:
    run = Everywhere(acting_and_learning)
    for I, T, B in [(2, 3, 4), (2, 2, 0), (2, 0, 3), (0, 2, 2), (1, 5, 8)]:
        outputs = run(I=I, T=T, B=B)
        assert outputs["number"].ravel().tolist() == list(range(1, I * T * B + 1))
        for executable, together in ((run.cpu, True), (run.others["sdg-vectorize"], False), (run.reference, False)):
            made: list[Carts] = []
            executable(I=I, T=T, B=B, hosts={"env": lambda made=made: made.append(Carts()) or made[-1]})
            # the first observation is needed where there is a step
            once, suffix = (min(B, 1), "_all") if together else (B, "")
            expected = I * once * ([f"reset{suffix}"] * min(T, 1) + [f"step{suffix}"] * T)
            assert sorted(made[0].calls) == sorted(expected)
            if executable is not run.reference:
                bounds, formula = {"I": I, "T": T, "B": B}, executable.costs.host_calls
                assert formula.subs({s: bounds[s.name] for s in formula.free_symbols}) == len(expected)


class Scores:
    """A function of two dims and a parameter that is the same at all points; it sums what it is given, in order."""

    def __init__(self) -> None:
        self.total = 0.0
        self.shapes: list[tuple[int, ...]] = []

    def score(self, x: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.shapes.append(x.shape)
        return self._one(x, k)

    def scores(self, x: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.shapes.append(x.shape)
        assert k.shape == (*x.shape, 2)
        rows = [self._one(x[point], k[point]) for point in np.ndindex(x.shape)]
        each, total = (np.stack(column) for column in zip(*rows, strict=True))
        return each.reshape(*x.shape, 2), total.reshape(x.shape)

    def _one(self, x: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.total = self.total / 2 + float(x)
        return x * k, np.asarray(self.total)


@pytest.mark.parametrize("along", ["both", "t", "b"])
def test_24_axes_stand_in_the_order_of_the_dims(along: str) -> None:
    def program() -> None:
        (t, T), (b, B) = tp.dims("t", "b")
        x = tp.input("x", tp.f64[()], over=(t, b))
        k = tp.input("k", tp.f64[2])
        host = tp.host(Scores, "host")
        dims = {"both": (t, b), "t": t, "b": b}[along]
        each, total = host.score(x, k, returns=(tp.f64[2], tp.f64[()]), vectorized="scores", along=dims)
        tp.output("each", each)
        tp.output("total", total)

    run = Everywhere(program)
    for T, B in [(2, 3), (3, 1), (1, 2), (0, 2), (2, 0)]:
        x, k = normal(T, B, dtype=np.float64), np.array([1.0, -2.0])
        total, running = np.zeros(T * B), 0.0
        for number, value in enumerate(x.ravel()):
            total[number] = running = running / 2 + value
        run.gives({"each": x[..., None] * k, "total": total.reshape(T, B)}, x=x, k=k)
        made: list[Scores] = []
        run.cpu(x=x, k=k, hosts={"host": lambda made=made: made.append(Scores()) or made[-1]})
        whole = {"both": [(T, B)] * min(T * B, 1), "t": [()] * (T * B), "b": [(B,)] * (T * min(B, 1))}[along]
        assert made[0].shapes == whole


def test_24_calls_that_take_turns_stay_one_by_one() -> None:
    log: list[tuple[str, int]] = []

    class Both:
        def __getattr__(self, name: str) -> Any:
            if name not in ("first", "second"):
                raise AttributeError(name)
            return lambda b: log.append((name, int(b))) or np.int64(len(log))

    def program() -> None:
        b, _ = tp.dim("b")
        host = tp.host(Both, "host")
        one = host.first(b, returns=tp.i64[()], vectorized="first_all")
        tp.output("y", tp.stack([one, host.second(b, returns=tp.i64[()], vectorized="second_all")]))

    for target in ("cpu", "reference"):
        run = tp.compile(tp.program(program)(), target)
        for B in (0, 1, 3):
            log.clear()
            assert run(B=B)["y"].tolist() == [[2 * b + 1, 2 * b + 2] for b in range(B)]
            assert log == [(name, b) for b in range(B) for name in ("first", "second")]


def broken() -> Any:
    @tp.program
    def program() -> None:
        (t, _), (b, _) = tp.dims("t", "b")
        x = tp.tensor("x", tp.f32[()], over=(t, b))
        x[0, b] = 1.0
        env = tp.host(Fragile, "env")
        x[t + 1, b] = env.step(x, returns=tp.f32[()], vectorized="step_all", along=b)
        tp.output("x", x)

    return program()


class Fragile:
    def __init__(self, answer: Any = None) -> None:
        self.calls, self.answer = 0, answer

    def step_all(self, x: np.ndarray) -> Any:
        self.calls += 1
        if self.calls == 3 and self.answer is None:
            raise ValueError("the environment broke")
        return x if self.answer is None or self.calls < 2 else self.answer


@pytest.mark.parametrize("target", ["cpu", "triton-interpret"])
def test_24_errors_name_the_method_and_the_points(target: str) -> None:
    run = tp.compile(broken(), target)
    with pytest.raises(ValueError, match="the environment broke") as raised:
        run(T=9, B=3)
    (note,) = raised.value.__notes__
    assert note.startswith("raised by @env::@step_all, in sdg.host (")
    assert note.endswith(") at t = 2, b = 0 to 3")
    message = r"@env::@step_all returned float32 of shape \(2,\) as result #0, expected float32 of shape \(3,\), in "
    with pytest.raises(ExecutionError, match=message + r"sdg.host \(.*\) at t = 1, b = 0 to 3") as error:
        run(T=9, B=3, hosts={"env": lambda: Fragile(np.ones(2, np.float32))})
    assert error.value.point == {"t": 1, "b": range(3)}
    assert run(T=3, B=2)["x"].shape == (3, 2)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_24_a_missing_form_is_named(target: str) -> None:
    missing = {"cpu": "step_all", "reference": "step"}[target]
    with pytest.raises(ExecutionError, match=f"the host object @env has no method {missing}"):
        tp.compile(broken(), target)(T=3, B=3, hosts={"env": lambda: object()})


def test_24_a_dim_that_ends_by_data_and_steps_of_many_environments() -> None:
    def program() -> None:
        t, _ = tp.dim("t", until=lambda: over)
        b, B = tp.dim("b")
        x = tp.tensor("x", tp.i64[()], over=(t, b))
        env = tp.host(Counting, "env")
        x[0, b] = b * 1
        y = env.add(x, returns=tp.i64[()], vectorized="add_all", along=b)
        over = tp.all(y[t, 0:B] > 5)
        x[t + 1, b] = y
        tp.output("y", y)

    run = Everywhere(program)
    outputs = run(T=20, B=3)
    assert outputs["y"].tolist() == [[n + 1 + b for b in range(3)] for n in range(6)]


class Counting:
    def add(self, x: np.ndarray) -> np.ndarray:
        return x + 1

    add_all = add


class Simulator:
    """A product with a slope of its own, which its gradient needs: the slopes are kept, last in, first out."""

    def __init__(self) -> None:
        self.slopes: list[np.ndarray] = []

    def step(self, x: np.ndarray) -> np.ndarray:
        self.slopes.append(np.cos(x) * len(self.slopes))
        return np.sin(x) * (len(self.slopes) - 1)

    def step_all(self, x: np.ndarray) -> np.ndarray:
        return np.stack([self.step(row) for row in x])

    def back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient * self.slopes.pop()


def test_24_gradients_go_back_through_calls_that_were_one() -> None:
    def program() -> None:
        t, _ = tp.dim("t", at_least=1)
        b, _ = tp.dim("b", at_least=1)
        x = tp.input("x", tp.f64[2], over=(t, b))
        y = tp.host(Simulator, "host").step(x, returns=tp.f64[2], gradient="back", vectorized="step_all", along=b)
        tp.output("dx", tp.grad(tp.sum(y * y), x))

    run = Everywhere(program)
    assert "vectorized @step_all along (b) over (b)" in run.optimised(())
    for T, B in [(2, 3), (1, 1), (3, 2)]:
        x = normal(T, B, 2, dtype=np.float64)
        number = np.arange(T * B).reshape(T, B, 1)
        run.gives({"dx": 2 * np.sin(x) * np.cos(x) * number**2}, x=x)


class Sensor:
    """Gives a number for each step, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def sense(self, t: np.ndarray) -> np.ndarray:
        self.count += 1
        return np.sin(np.arange(3) + t * self.count)

    def sense_all(self, t: np.ndarray) -> np.ndarray:
        return np.stack([self.sense(each) for each in t])


def test_24_calls_stay_one_by_one_in_blocks_of_their_dim() -> None:
    @tp.program
    def program() -> None:
        t, T = tp.dim("t")
        w = tp.input("w", tp.f64[3, 3])
        x = tp.host(Sensor, "host").sense(t, returns=tp.f64[3], vectorized="sense_all")
        h = tp.tensor("h", tp.f64[3], over=t)
        h[0] = x[0]
        h[t] = tp.tanh(h[t - 1] @ w + x)
        tp.output("dw", tp.grad(tp.sum(h[0:T] ** 2), w))

    w = normal(3, 3, dtype=np.float64)
    plain, blocks = tp.compile(program(), "reference"), tp.compile(program(), remat={"block": 3})
    for T in (1, 2, 3, 7):
        agree(blocks(w=w, T=T), plain(w=w, T=T), f"T = {T}")
