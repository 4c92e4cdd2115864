"""Dims that end by data: the step that ends a dim still runs, nothing of a later one does; what comes after is as in a
program whose bound is the number of steps that ran."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir import nn, optim
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime.errors import CallError
from tests.semantics.semantics_support import SIZES, Everywhere, agree, normal, ramp, refused, same


def ends(steps: int, stop: int) -> int:
    """How many of at most `steps` steps run where step `stop` ends the dim."""
    return min(steps, stop + 1)


def sums() -> None:
    t, T = tp.dim("t", until=lambda: a >= limit)
    x = tp.input("x", tp.f32[()], over=t)
    limit = tp.input("limit", tp.f32[()])
    s = tp.tensor("s", tp.f32[()], over=t)
    a = s + x
    s[0], s[t + 1] = 0.0, a
    tp.output("a", a)
    tp.output("reversed", a[T - 1 - t])
    tp.output("total", tp.sum(a[0:T]))
    tp.output("mask", tp.arange(T))
    tp.output("steps", T)
    tp.output("ahead", tp.sum(x[t:T]))


@pytest.fixture(scope="module")
def summed() -> Everywhere:
    return Everywhere(sums)


@pytest.mark.parametrize("stop", [0, 1, 3, 20])
@pytest.mark.parametrize("T", SIZES)
def test_what_comes_after_sees_the_steps_that_ran(summed: Everywhere, T: int, stop: int) -> None:
    outputs = summed(x=np.ones(T, np.float32), limit=np.float32(stop + 1))
    steps = ends(T, stop)
    assert outputs.extents == {"t": steps}
    a = ramp(steps) + 1
    expected = {"a": a, "reversed": a[::-1], "total": np.float32(a.sum()), "mask": np.arange(steps), "steps": steps}
    for name, value in {**expected, "ahead": a[::-1]}.items():
        same(outputs[name], value, name)


@pytest.mark.parametrize("T", SIZES)
def test_in_tritons_interpreter(T: int) -> None:
    program = tp.program(sums)()
    triton, reference = tp.compile(program, target="triton-interpret"), tp.compile(program, target="reference")
    given = {"x": np.ones(T, np.float32), "limit": np.float32(4)}
    agree(triton(**given), reference(**given), "triton-interpret")
    assert triton(**given).extents == {"t": ends(T, 3)}


class World:
    """Counts what is asked of it; says that the end has come at step `stop`."""

    log: list[str]

    def __init__(self, stop: int):
        self.stop, self.steps = stop, 0
        World.log = []

    def step(self, action: np.ndarray) -> tuple[np.float32, np.bool_]:
        World.log.append(f"step {self.steps}")
        self.steps += 1
        return np.float32(action + 1), np.bool_(self.steps > self.stop)

    def close(self) -> np.float32:
        World.log.append("close")
        return np.float32(self.steps)


class Notes:
    """Takes notes of every step."""

    taken: list[float]

    def __init__(self) -> None:
        Notes.taken = []

    def note(self, value: np.ndarray) -> None:
        Notes.taken.append(float(value))


def episode(stop: int) -> Callable[[], None]:
    def run() -> None:
        t, T = tp.dim("t", until=lambda: done)
        world = tp.host(lambda: World(stop))
        notes = tp.host(Notes)
        state = tp.tensor("state", tp.f32[()], over=t)
        after, done = world.step(state * 2.0, returns=(tp.f32[()], tp.bool[()]))
        state[0], state[t + 1] = 1.0, after
        notes.note(after, returns=())
        tp.output("state", state)
        tp.output("return", tp.sum(after[0:T]))

    return run


@pytest.mark.parametrize("stop", [0, 2, 7, 99])
def test_a_host_object_is_asked_for_no_step_more(stop: int) -> None:
    program = tp.program(episode(stop))()
    executables = [tp.compile(program, target=target) for target in ("reference", "cpu", "triton-interpret")]
    executables.append(tp.compile(program, without=("sdg-simplify", "sdg-vectorize", "loop-plan-storage")))
    for executable in executables:
        for T in SIZES:
            outputs = executable(T=T)
            steps, state = ends(T, stop), np.ones(T + 1, np.float32)
            for t in range(T):
                state[t + 1] = 2 * state[t] + 1
            assert World.log == [f"step {t}" for t in range(steps)], (executable.target, T)
            assert Notes.taken == state[1 : steps + 1].tolist()
            same(outputs["state"], state[:steps], "state")
            same(outputs["return"], np.float32(state[1 : steps + 1].sum()), "return")


def chain(stop: int) -> Callable[[], None]:
    """The call that makes a token is needed for each step but the last."""

    def run() -> None:
        t, _ = tp.dim("t", until=lambda: token >= stop)
        world = tp.host(lambda: World(99))
        token = tp.tensor("token", tp.f32[()], over=t)
        following, _ = world.step(token, returns=(tp.f32[()], tp.bool[()]))
        token[0], token[t + 1] = 0.0, following
        tp.output("token", token)

    return run


def test_a_call_for_the_next_step_is_made_where_there_is_one() -> None:
    program = tp.program(chain(3))()
    for target in ("reference", "cpu", "triton-interpret"):
        executable = tp.compile(program, target=target)
        for T in SIZES:
            outputs = executable(T=T)
            same(outputs["token"], ramp(ends(T, 3)), target)
            assert len(World.log) == max(0, ends(T, 3) - 1), (target, T)


def decode(batch: int, width: int, end: int) -> Callable[[], None]:
    """Greedy decoding with attention to all steps so far, until every row has said `end`."""

    def run() -> None:
        t, T = tp.dim("t", until=lambda: tp.all(said))
        p, P = tp.dim("p", at_most=T)
        prompt = tp.input("prompt", tp.i64[batch], over=p)
        table = tp.parameter("table", tp.f32[16, width], init=nn.normal())
        token = tp.tensor("token", tp.i64[batch], over=t)
        x = tp.take(table, token)
        scores = tp.softmax(tp.einsum("bk,nbk->bn", x, x[0 : t + 1]))
        mixed = tp.einsum("bn,nbk->bk", scores, x[0 : t + 1])
        logits = mixed @ tp.transpose(table) - 2.0 * tp.cast(tp.one_hot(token, 16), tp.f32)
        token[t < P] = prompt[t]
        token[t + 1] = tp.argmax(logits, axis=-1)
        said = tp.tensor("said", tp.bool[batch], over=t)
        now = tp.logical_and(token == end, tp.where(t >= P, True, False))
        said[0], said[t + 1] = now[0], tp.logical_or(said, now[t + 1])
        tp.output("token", token)

    return run


def test_a_batch_of_sequences_ends_when_all_have() -> None:
    batch, width = 3, 8
    everywhere = Everywhere(decode(batch, width, 5))
    state = everywhere.cpu.init(seed=0)
    prompt = np.array([[1, 2, 3], [4, 5, 6]])
    whole = tp.compile(tp.program(decode(batch, width, 99))(), target="reference")
    tokens = whole(prompt=prompt, T=40, state=state)["token"]
    for T in (2, 3, 5, 9, 17, 40):
        said = np.logical_or.accumulate((tokens[:T] == 5) & (np.arange(T) >= 2)[:, None]).all(axis=1)
        steps = ends(T, int(np.argmax(said)) if said.any() else T)
        outputs = everywhere(prompt=prompt, T=T, state=state)
        same(outputs["token"], tokens[:steps], f"T = {T}")


def power(size: int, until: bool) -> Callable[[], None]:
    """The greatest eigenvalue by power iteration, until it moves no more."""

    def run() -> None:
        i, _ = tp.dim("i", until=(lambda: moved < 1e-3) if until else None)
        matrix = tp.input("matrix", tp.f32[size, size])
        v = tp.state("v", tp.f32[size], init=1.0, steps=i)
        image = matrix @ v[i]
        length = tp.sqrt(tp.sum(image * image))
        v.next = image / length
        moved = tp.max(tp.abs(image / length - v[i]))
        tp.output("length", length)

    return run


@pytest.mark.parametrize("I", SIZES)
def test_a_state_is_updated_until_it_settles(I: int) -> None:
    everywhere, fixed = Everywhere(power(6, until=True)), tp.compile(tp.program(power(6, until=False))())
    a = np.abs(normal(6, 6)) + np.diag(np.arange(6, dtype=np.float32))
    v, steps = np.ones(6, np.float32), 0
    while steps < I:
        image = a @ v
        last, v, steps = v, image / np.sqrt(image @ image), steps + 1
        if np.abs(v - last).max() < 1e-3:
            break
    outputs = everywhere(matrix=a, I=I)
    assert outputs.extents == {"i": steps}
    agree(outputs, fixed(matrix=a, I=steps), "a bound")
    same(outputs.state["v"], v, "v")


def resumable() -> None:
    i, _ = tp.dim("i", until=lambda: after > 3.0)
    w = tp.state("w", tp.f32[()], init=0.0, steps=i)
    after = w[i] + tp.random.uniform(over=i) * 0.5 + tp.cast(i, tp.f32) * 1e-3
    w.next = after
    tp.output("walk", after)


def test_two_calls_equal_one() -> None:
    everywhere = Everywhere(resumable)
    whole = everywhere(I=40)
    steps = whole.extents["i"]
    assert 3 < steps < 40
    for cut in (1, 3, steps - 1):
        first = everywhere(I=cut)
        second = everywhere(I=40, state=first.state, start={"i": cut})
        assert second.extents == {"i": steps - cut}
        same(np.concatenate([first["walk"], second["walk"]]), whole["walk"], "walk", exact=True)
        same(second.state["w"], whole.state["w"], "state", exact=True)


def trained(until: bool) -> Callable[[], None]:
    """A recurrence that ends by its data, trained by gradients through the steps that ran."""

    def run() -> None:
        t, T = tp.dim("t", until=(lambda: total >= limit) if until else None)
        x = tp.input("x", tp.f32[4], over=t)
        limit = tp.input("limit", tp.f32[()])
        w = tp.parameter("w", tp.f32[4, 4], init=nn.normal(0.5))
        h = tp.tensor("h", tp.f32[4], over=t)
        after = tp.tanh(h @ w + x)
        h[0], h[t + 1] = 0.0, after
        total_before = tp.tensor("before", tp.f32[()], over=t)
        total = total_before + tp.sum(after * after)
        total_before[0], total_before[t + 1] = 0.0, total
        loss = tp.mean(after[0:T] * tp.reshape(tp.cast(tp.arange(T), tp.f32), (T, 1)))
        tp.output("loss", loss)
        tp.output("grad_w", tp.grad(loss, w))
        tp.output("grad_x", tp.grad(loss, x))

    return run


@pytest.fixture(scope="module")
def gradients() -> tuple[Everywhere, tp.Executable]:
    return Everywhere(trained(until=True)), tp.compile(tp.program(trained(until=False))())


@pytest.mark.parametrize("limit", [0.1, 3.0, 1e9])
@pytest.mark.parametrize("T", [size for size in SIZES if size])
def test_gradients_are_those_of_the_steps_that_ran(
    gradients: tuple[Everywhere, tp.Executable], T: int, limit: float
) -> None:
    everywhere, fixed = gradients
    x = normal(T, 4)
    outputs = everywhere(x=x, limit=np.float32(limit))
    steps = outputs.extents["t"]
    assert steps == (T if limit > 1e8 else max(1, min(T, steps)))
    agree(outputs, fixed(x=x[:steps], limit=np.float32(limit), state=everywhere.cpu.init(0)), "a bound")


def converging(until: bool) -> Callable[[], None]:
    """Steps of training until the loss is small; each goes through an inner dim forwards and back."""

    def run() -> None:
        i, _ = tp.dim("i", until=(lambda: mean < limit) if until else None)
        t, T = tp.dim("t")
        x, y = (tp.input(name, tp.f32[3], over=t) for name in "xy")
        limit = tp.input("limit", tp.f32[()])
        w = tp.state("w", tp.f32[3, 3], init=nn.normal(0.3), steps=i)
        h = tp.tensor("h", tp.f32[3], over=(i, t))
        after = tp.tanh(h @ w[i] + x[t])
        h[i, 0], h[i, t + 1] = 0.0, after
        loss = tp.mean((after - y[t]) ** 2)
        mean = tp.mean(loss[i, 0:T])
        optim.Adam(3e-2).minimize(loss, w)
        tp.output("loss", mean)

    return run


def test_training_until_the_loss_is_small() -> None:
    everywhere, fixed = Everywhere(converging(until=True)), tp.compile(tp.program(converging(until=False))())
    given = {"x": normal(5, 3), "y": np.tanh(normal(5, 3, seed=1)), "state": everywhere.cpu.init(0)}
    losses = fixed(**given, limit=np.float32(0), I=20)["loss"]
    for I in (0, 1, 3, 20):
        outputs = everywhere(**given, limit=(losses[6] + losses[7]) / 2, I=I)
        steps = outputs.extents["i"]
        assert steps == min(I, 8)
        agree(outputs, fixed(**given, limit=np.float32(0), I=steps), "a bound")


def shaped() -> None:
    t, T = tp.dim("t", until=lambda: stop)
    i, I = tp.dim("i")
    stop = tp.input("stop", tp.bool[()], over=t)
    x = tp.input("x", tp.f32[3, T])
    y = tp.input("y", tp.f32[2], over=i)
    z = tp.input("z", tp.f32[()], over=(t, i))
    tp.output("x", x * 2.0)
    tp.output("rows", tp.transpose(x))
    tp.output("y", y * tp.cast(T, tp.f32))
    tp.output("z", z[t, I - 1 - i])
    tp.output("sums", tp.sum(z[0:T], axis=0))


@pytest.fixture(scope="module")
def in_shapes() -> Everywhere:
    return Everywhere(shaped)


@pytest.mark.parametrize("stop", [0, 2, 20])
@pytest.mark.parametrize("T", SIZES)
def test_arrays_with_the_bound_in_the_shape_of_a_row(in_shapes: Everywhere, T: int, stop: int) -> None:
    ended = np.arange(T) == stop
    x, y, z = normal(3, T), normal(4, 2), normal(T, 4)
    steps = ends(T, stop)
    outputs = in_shapes(stop=ended, x=x, y=y, z=z)
    x, z = x[:, :steps], z[:steps]
    expected = {"x": x * 2, "rows": x.T, "y": y * steps, "z": z[:, ::-1], "sums": z.sum(axis=0, dtype=np.float32)}
    for name, value in expected.items():
        same(outputs[name], value, name)


def inner() -> None:
    """The dim that ends is not the outermost; each step goes through another dim, up and down."""
    i, I = tp.dim("i")
    t, T = tp.dim("t", until=lambda: tp.all(big[0:I, t]))
    x = tp.input("x", tp.f32[2], over=(i, t))
    s = tp.tensor("s", tp.f32[2], over=(i, t))
    up = tp.tensor("up", tp.f32[2], over=(i, t))
    after = s * 0.5 + up + x
    s[i, 0], s[i, t + 1] = 0.0, after
    up[0, t], up[i + 1, t] = 0.0, tp.tanh(after)
    big = tp.sum(after) > 2.5
    tp.output("after", after)
    tp.output("last", after[i, T - 1])
    tp.output("over_time", tp.sum(after[i, 0:T], axis=0))
    tp.output("back", after[I - 1 - i, T - 1 - t])


@pytest.fixture(scope="module")
def inside() -> Everywhere:
    return Everywhere(inner)


@pytest.mark.parametrize("I", [1, 2, 5])
@pytest.mark.parametrize("T", [size for size in SIZES if size])
def test_the_dim_that_ends_may_stand_inside_of_others(inside: Everywhere, T: int, I: int) -> None:
    x = 0.5 + 0.1 * np.abs(normal(I, T, 2))
    s, steps, rows = np.zeros((I, 2), np.float32), 0, []
    while steps < T:
        up = np.zeros(2, np.float32)
        for i in range(I):
            s[i] = s[i] * np.float32(0.5) + up + x[i, steps]
            up = np.tanh(s[i])
        rows.append(s.copy())
        steps += 1
        if (s.sum(axis=1) > 2.5).all():
            break
    outputs = inside(x=x, T=T)
    after = np.stack(rows, axis=1)
    assert outputs.extents == {"i": I, "t": steps}
    same(outputs["after"], after, "after")
    same(outputs["last"], after[:, -1], "last")
    same(outputs["over_time"], after.sum(axis=1), "over_time")
    same(outputs["back"], after[::-1, ::-1], "back")


def first_value() -> None:
    """What the first step makes, and no dim moves, stands in the loop too."""
    t, _ = tp.dim("t", until=lambda: after > 3.0 * first)
    x = tp.input("x", tp.f32[()], over=t)
    s = tp.tensor("s", tp.f32[()], over=t)
    after = s + tp.exp(x)
    first = tp.sqrt(after[0])
    s[0], s[t + 1] = 0.0, after
    tp.output("after", after - first)


def test_what_the_first_step_makes_is_there_for_all() -> None:
    everywhere = Everywhere(first_value)
    for T in SIZES:
        outputs = everywhere(x=np.zeros(T, np.float32))
        same(outputs["after"], ramp(ends(T, 3)), f"T = {T}")


def prefix() -> None:
    t, T = tp.dim("t", until=lambda: stop)
    p, P = tp.dim("p", at_most=T)
    stop = tp.input("stop", tp.bool[()], over=t)
    x = tp.input("x", tp.f32[()], over=p)
    y = tp.tensor("y", tp.f32[()], over=t)
    y[t < P] = x[t]
    y[t + 1] = y + 1.0
    tp.output("y", y)


def test_what_is_declared_of_the_bound_holds_of_the_steps_that_ran() -> None:
    everywhere = Everywhere(prefix)
    stop = np.arange(9) == 5
    everywhere.gives({"y": [1, 2, 3, 4, 5, 6]}, stop=stop, x=np.arange(1, 4, dtype=np.float32))
    with pytest.raises(CallError, match="needs P <= T"):
        everywhere.cpu(stop=stop, x=np.ones(10, np.float32))
    everywhere.fails(ExecutionError, "P <= T.*data ended the dim at T = 6", stop=stop, x=np.ones(7, np.float32))
    everywhere.gives({"y": np.ones(6)}, stop=stop, x=np.ones(6, np.float32))


def third() -> None:
    t, T = tp.dim("t", until=lambda: stop)
    stop = tp.input("stop", tp.bool[()], over=t)
    tp.output("third", tp.cast(stop, tp.f32)[3])
    tp.output("last", stop[T - 1])


def test_what_is_needed_of_the_bound_holds_of_the_steps_that_ran() -> None:
    everywhere = Everywhere(third)
    everywhere.gives({"third": 1, "last": True}, stop=np.arange(9) == 3)
    with pytest.raises(CallError, match="needs T >= 4"):
        everywhere.cpu(stop=np.zeros(3, bool))
    everywhere.fails(ExecutionError, "T >= 4.*data ended the dim at T = 3", stop=np.arange(9) == 2)
    triton = tp.compile(everywhere.program, target="triton-interpret")
    with pytest.raises(ExecutionError, match=r"T >= 4.*T = 3"):
        triton(stop=np.arange(9) == 2)
    same(triton(stop=np.arange(9) == 3)["third"], np.float32(1), "after an error")


def reads_the_bound() -> None:
    t, T = tp.dim("t", until=lambda: tp.any(x[0:T]))
    x = tp.input("x", tp.bool[()], over=t)
    tp.output("x", x)


def reads_ahead() -> None:
    t, T = tp.dim("t", until=lambda: tp.where(t < T - 1, y[tp.minimum(t + 1, T - 1)], False))
    x = tp.input("x", tp.bool[()], over=t)
    y = tp.logical_not(x)
    tp.output("y", y)


def over_two() -> None:
    i, _ = tp.dim("i")
    t, _ = tp.dim("t", until=lambda: x)
    x = tp.input("x", tp.bool[()], over=(i, t))
    tp.output("x", x)


def no_scalar() -> None:
    t, _ = tp.dim("t", until=lambda: x)
    x = tp.input("x", tp.bool[3], over=t)
    tp.output("x", x)


def no_bool() -> None:
    t, _ = tp.dim("t", until=lambda: x)
    x = tp.input("x", tp.f32[()], over=t)
    tp.output("x", x)


def has_a_bound() -> None:
    t, _ = tp.dim("t", 8, until=lambda: x)
    x = tp.input("x", tp.bool[()], over=t)
    tp.output("x", x)


def two_ends() -> None:
    i, _ = tp.dim("i", until=lambda: x)
    t, _ = tp.dim("t", until=lambda: y)
    x, y = tp.input("x", tp.bool[()], over=i), tp.input("y", tp.bool[()], over=t)
    tp.output("z", tp.logical_and(x, y))


def no_function() -> None:
    stop = tp.parameter("stop", tp.bool[()])
    t, _ = tp.dim("t", until=stop)
    tp.output("t", tp.cast(t, tp.f32))


def grows() -> None:
    t, T = tp.dim("t", until=lambda: x)
    p, P = tp.dim("p", at_least=T)
    x, y = tp.input("x", tp.bool[()], over=t), tp.input("y", tp.f32[()], over=p)
    tp.output("y", y[T:P])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (reads_the_bound, "T is known only after the last step; let the condition read steps up to t"),
        (reads_ahead, "T is known only after the last step"),
        (over_two, r"varies over i too, and a dim has one end: let it run until tp.all\(...\) over i"),
        (no_scalar, r"a bool at each step is needed: take tp.all or tp.any"),
        (no_bool, r"gives .*f32.*, a bool at each step is needed"),
        (has_a_bound, "its bound is found by the program: leave out 8"),
        (two_ends, "dim i ends by data, and t too: one dim of a program may, bound the other"),
        (no_function, "until= of dim 't' is a function.*until=lambda: done"),
        (grows, r"the extent max\(0, P - T\) grows as T falls, and dim t ends by data"),
    ],
)
def test_what_cannot_end_a_dim_is_refused(function: Callable[[], None], message: str) -> None:
    assert re.search(message, refused(function)), refused(function)


def conditions(until: Callable[[tp.Dim, tp.Dim, tp.Tensor], object]) -> Callable[[], None]:
    def run() -> None:
        t, _ = tp.dim("t", until=lambda: until(t, P, flag))
        p, P = tp.dim("p")
        flag = tp.input("flag", tp.bool[()])
        x = tp.input("x", tp.f32[()], over=p)
        tp.output("x", tp.sum(x[0:P]) + tp.cast(t, tp.f32))

    return run


@pytest.mark.parametrize(
    ("until", "steps"),
    [
        (lambda t, P, flag: flag, lambda T, P: 1),
        (lambda t, P, flag: tp.logical_not(flag), lambda T, P: T),
        (lambda t, P, flag: True, lambda T, P: 1),
        (lambda t, P, flag: False, lambda T, P: T),
        (lambda t, P, flag: t >= 4, lambda T, P: 5),
        (lambda t, P, flag: t + 1 >= P, lambda T, P: max(1, P)),
        (lambda t, P, flag: t % 3 == 2, lambda T, P: 3),
    ],
)
def test_what_a_condition_may_be(until: Callable[..., object], steps: Callable[[int, int], int]) -> None:
    everywhere = Everywhere(conditions(until))
    for T, P in ((0, 3), (1, 0), (2, 7), (9, 3), (17, 8)):
        x = normal(P)
        outputs = everywhere(T=T, x=x, flag=np.bool_(True))
        assert outputs.extents == {"t": min(T, steps(T, P)), "p": P}
        same(outputs["x"], ramp(min(T, steps(T, P))) + x.sum(), "x")


def derived() -> None:
    """Dims whose bounds follow from the one that data decides."""
    t, T = tp.dim("t", until=lambda: x > 2.0)
    s, _ = tp.dim("s", T)
    m, M = tp.dim("m", (T + 1) // 2)
    x = tp.input("x", tp.f32[()], over=t)
    tp.output("pairs", x[t] * x[s])
    tp.output("even", x[2 * m])
    tp.output("halves", tp.sum(x[0:M]))


@pytest.fixture(scope="module")
def following() -> Everywhere:
    return Everywhere(derived)


@pytest.mark.parametrize("T", SIZES)
def test_bounds_that_follow_from_the_one_that_data_decides(following: Everywhere, T: int) -> None:
    x = normal(T, seed=T)
    x[3:4] = 3.0
    steps = int(np.argmax(x > 2)) + 1 if (x > 2).any() else T
    outputs = following(x=x)
    x = x[:steps]
    assert outputs.extents == {"t": steps, "s": steps, "m": (steps + 1) // 2}
    same(outputs["pairs"], x[:, None] * x[None, :], "pairs")
    same(outputs["even"], x[::2], "even")
    same(outputs["halves"], x[: (steps + 1) // 2].sum(dtype=np.float32), "halves")


def test_states_may_be_given_away_and_arrays_be_torchs() -> None:
    torch = pytest.importorskip("torch")
    executable = tp.compile(tp.program(power(6, until=True))())
    a = np.abs(normal(6, 6)) + np.diag(np.arange(6, dtype=np.float32))
    expected = executable(matrix=a, I=17)
    given = executable.init()
    outputs = executable(matrix=a, I=17, state=given, donate=True)
    agree(outputs, expected, "donated", exact=True)
    assert outputs.state["v"] is given["v"]
    again = executable(matrix=torch.from_numpy(a), I=17)
    assert isinstance(again["length"], torch.Tensor)
    same(again["length"].numpy(), expected["length"], "torch", exact=True)
