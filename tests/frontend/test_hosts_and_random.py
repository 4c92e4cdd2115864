"""Host objects in the order of nested loops; random draws."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_support import error_of, record, run

import tempo_ir as tp


class Recorder:
    """Notes every call; `reset`, `step` and `next` give the number of calls so far."""

    def __init__(self, log: list[tuple]):
        self.calls = log

    def __getattr__(self, method: str):
        def call(*arguments):
            self.calls.append((method, *(int(argument) for argument in arguments)))
            return np.int64(len(self.calls)) if method in ("reset", "step", "next") else None

        return call


def test_calls_run_in_the_order_of_nested_loops() -> None:
    log: list[tuple] = []

    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        host = tp.host(lambda: Recorder(log))
        count = tp.i64[()]
        host.open()
        first = host.reset(i, returns=count)
        tp.output("step", host.step(i, t, returns=count) + first)
        host.judge(i, t)
        host.end(i)
        host.close()

    out = run(program, I=2, T=2)
    expected = [("open",)]
    for i in range(2):
        expected += [("reset", i)]
        for t in range(2):
            expected += [("step", i, t), ("judge", i, t)]
        expected += [("end", i)]
    assert log == [*expected, ("close",)]
    assert out["step"].tolist() == [[2 + 3, 2 + 5], [8 + 9, 8 + 11]]


def test_tokens_print_as_the_documents_have_them() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        env = tp.host(lambda: Recorder([]), "env")
        first = env.reset(i, returns=tp.f32[4])
        after = env.step(t, over=(i, t), returns=tp.f32[4])
        tp.output("y", after + first)

    text = str(record(program))
    assert "%env = sdg.host_state @env : !sdg.token" in text
    assert "{i = 0 : %env, i > 0 : %" in text
    assert "[i - 1, T - 1]} in (i" in text
    assert "sdg.host @env::@reset(%" in text


def test_the_object_is_made_anew_for_every_call_of_the_program() -> None:
    made: list[Recorder] = []

    def make():
        made.append(Recorder([]))
        return made[-1]

    def program():
        t, T = tp.dim("t")
        tp.output("n", tp.host(make).next(t, returns=tp.i64[()]))

    recorded = record(program)
    assert recorded.run(T=3)["n"].tolist() == [1, 2, 3]
    assert recorded.run(T=2)["n"].tolist() == [1, 2]
    assert len(made) == 2
    assert list(recorded.hosts) == ["make"]


def test_log_prints_a_line_per_point(capsys) -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[2], over=t)
        tp.log(t, mean=tp.mean(x))
        tp.print(done=t + 1)

    run(program, x=np.array([[1, 2], [3, 4]], np.float32))
    assert capsys.readouterr().out.splitlines() == ["t=0 mean=1.5", "done=1", "t=1 mean=3.5", "done=2"]


def test_errors_of_hosts() -> None:
    def program():
        t, T = tp.dim("t")
        tp.host(lambda: Recorder([])).step("text")

    assert "got str" in error_of(program)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda host, t, i: host.step(t, vectorized="all"), None),
        (lambda host, t, i: host.step(t, over=(i, t), vectorized="all", along=t), None),
        (lambda host, t, i: host.step(t, vectorized=3), "vectorized=3 names no method: give the name of a method"),
        (lambda host, t, i: host.step(t, vectorized="a b"), "names no method"),
        (lambda host, t, i: host.step(over=t, vectorized="all"), "could not tell how many points there are: pass the"),
        (lambda host, t, i: host.step(1.0, vectorized="all"), "step varies over no dim, so there are no points"),
        (lambda host, t, i: host.step(t, vectorized="all", along=i), "step does not vary over i, but over t: say"),
        (lambda host, t, i: host.step(t, vectorized="all", along=()), "along= names no dim"),
        (lambda host, t, i: host.step(t, along=t), "along= says of which dims vectorized= takes the points"),
    ],
)
def test_the_vectorised_form_of_a_call(call, message) -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        call(tp.host(lambda: Recorder([]), "env"), t, i)

    if message is None:
        assert "vectorized @all along (t) in (" in str(record(program))
    else:
        assert message in error_of(program)


def draw(build, seed: int = 0, **bounds: int):
    def program():
        t, T = tp.dim("t")
        tp.output("y", build(t, T))

    return record(program).run(seed=seed, **bounds)["y"]


def test_uniform_normal_and_integers() -> None:
    u = draw(lambda t, T: tp.random.uniform(-2, 3, tp.f32[100], over=t), T=50)
    assert u.dtype == np.float32
    assert -2 <= u.min() < -1.9
    assert 2.9 < u.max() <= 3
    assert abs(u.mean() - 0.5) < 0.1
    n = draw(lambda t, T: tp.random.normal(1, 2, tp.f64[100], over=t), T=50)
    assert abs(n.mean() - 1) < 0.1
    assert abs(n.std() - 2) < 0.1
    k = draw(lambda t, T: tp.random.integers(3, 6, tp.i32[100], over=t), T=50)
    assert sorted(set(k.reshape(-1))) == [3, 4, 5]
    assert k.dtype == np.int32
    b = draw(lambda t, T: tp.random.bits(tp.i64[100], over=t), T=50)
    assert 0 <= b.min()
    assert 2**31 < b.max() < 2**32


def test_draws_depend_on_seed_op_and_point_only() -> None:
    def two(t, T):
        x = tp.random.uniform(spec=tp.f32[()], over=t)
        y = tp.random.uniform(spec=tp.f32[()], over=t)
        return tp.stack([x, x, y])

    first, second = draw(two, T=9), draw(two, T=5)
    np.testing.assert_array_equal(first[:5], second)
    np.testing.assert_array_equal(first[:, 0], first[:, 1])
    assert not np.array_equal(first[:, 0], first[:, 2])
    assert not np.array_equal(first, draw(two, seed=1, T=9))
    assert len(set(first[:, 0])) == 9


def test_categories_follow_their_probabilities() -> None:
    def build(t, T):
        logits = tp.where(tp.arange(3) == 1, 1.0, 0.0) + 0.0 * t
        return tp.random.categorical(tp.broadcast_to(logits, (40, 3)))

    counts = np.bincount(draw(build, T=100).reshape(-1), minlength=3) / 4000
    expected = np.exp([0, 1, 0]) / np.exp([0, 1, 0]).sum()
    np.testing.assert_allclose(counts, expected, atol=0.03)


def test_a_masked_category_is_never_drawn() -> None:
    drawn = draw(lambda t, T: tp.random.categorical(tp.stack([t * 0.0, t * 0.0 - np.inf])), T=200)
    assert set(drawn) == {0}


def test_bernoulli_and_permutation() -> None:
    hits = draw(lambda t, T: tp.random.bernoulli(0.3, tp.bool[100], over=t), T=50)
    assert abs(hits.mean() - 0.3) < 0.03
    rows = draw(lambda t, T: tp.random.permutation(T * 2, over=t), T=8)
    np.testing.assert_array_equal(np.sort(rows, -1), np.broadcast_to(np.arange(16), (8, 16)))
    assert len({tuple(row) for row in rows}) == 8


def test_errors_of_random() -> None:
    def program(kind):
        if kind == "bits":
            tp.random.bits(tp.i32[2])
        if kind == "uniform":
            tp.random.uniform(0, 1, tp.i64[2])
        if kind == "range":
            tp.random.integers(3, 3)
        if kind == "logits":
            tp.random.categorical(tp.input("x", tp.i64[2]))

    assert "draw i64 and cast" in error_of(program, kind="bits")
    assert "use random.bits or random.integers" in error_of(program, kind="uniform")
    assert "give low < high" in error_of(program, kind="range")
    assert "takes float logits" in error_of(program, kind="logits")


@pytest.mark.parametrize("start", [0, 3])
def test_draws_of_a_resumed_call_count_on(start: int) -> None:
    def program():
        t, T = tp.dim("t")
        tp.output("y", tp.random.uniform(spec=tp.f32[()], over=t))

    recorded = record(program)
    whole, part = recorded.run(T=8)["y"], recorded.run(T=8 - start, start={"t": start})["y"]
    np.testing.assert_array_equal(whole[start:], part)


def test_compiled_draws_are_those_of_the_seed():
    @tp.program
    def draws():
        t, _ = tp.dim("t")
        tp.output("u", tp.random.uniform(spec=tp.f32[4], over=t))

    cpu, reference = tp.compile(draws()), tp.compile(draws(), target="reference")
    first, second = (cpu(T=5, seed=seed)["u"] for seed in (3, 4))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, reference(T=5, seed=3)["u"])
    np.testing.assert_array_equal(second, reference(T=5, seed=4)["u"])
