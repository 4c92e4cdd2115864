"""Cases 16 to 20: windows, rings, donation, and what is freed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from semantics_support import SIZES, Everywhere, agree, normal, ramp
from xdsl.context import Context

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.passes.pipeline import default_pipeline
from tempo_ir.runtime.compiler import run_passes
from tempo_ir.runtime.executable import Compiled

REQUESTS = ("sdg-insert-dealloc", "sdg-insert-donate", "sdg-insert-swap")


def slots(run: Everywhere) -> list[str]:
    """The storage of the temporaries of the compiled program, as their types print."""
    (program,) = [op for op in run.cpu.levels.loop.ops if isinstance(op, loop.ProgramOp)]
    return [str(op.buffer.type) for op in program.body.walk() if isinstance(op, loop.AllocOp)]


def test_16_two_blocks_of_one_tensor() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        b = a * 1.0 + 0.0
        tp.output("y", tp.stack([b[0:4].sum(), b[3:7].sum()]))

    run = Everywhere(program)
    assert str(run.program).startswith("sdg.program @program dims(t: T) where T >= 7")
    for T in (7, 8, 9, 17):
        run.gives({"y": [6, 18]}, a=ramp(T))
    for T in (0, 3, 6):
        for error in run.fails(ValueError, f"T >= 7, got T = {T}", a=ramp(T)):
            assert "sdg.sum" in str(error)
            assert "test_storage_and_memory.py" in str(error)


@pytest.mark.parametrize("w", [1, 2, 3, 4, 5, 8])
def test_17_a_window_of_a_recurrence(w: int) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[3], over=t)
        h = tp.tensor("h", tp.f32[3], over=t)
        h[0] = a
        h[t + 1] = 0.5 * h + a[t + 1]
        past = h[tp.maximum(0, t - w + 1) : t + 1]
        weights = tp.cast(tp.arange(0, past.shape[0]), tp.f32)
        tp.output("sum", past.sum(0))
        tp.output("ordered", tp.einsum("n,nd->d", weights, past))
        tp.output("oldest", h[tp.maximum(0, t - w + 1)])

    run = Everywhere(program)
    for T in (*SIZES, 18):
        a = normal(T, 3)
        h = np.zeros((T, 3))
        for t in range(T):
            h[t] = a[t] + (0.5 * h[t - 1] if t else 0)
        rows = [h[max(0, t - w + 1) : t + 1] for t in range(T)]
        expected = {
            "sum": [row.sum(0) for row in rows], "ordered": [np.arange(len(row)) @ row for row in rows],
            "oldest": [row[0] for row in rows],
        }  # fmt: skip
        run.gives({name: np.reshape(value, (T, 3)) for name, value in expected.items()}, a=a)


@pytest.mark.parametrize("w", [2, 3, 4, 8])
def test_17_a_window_keeps_exactly_its_slots(w: int) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[3], over=t)
        p = tp.input("p", tp.f32[3], over=t)
        o, k = tp.tensor("o", tp.f32[3], over=t), tp.tensor("k", tp.f32[3], over=t)
        o[0], o[t + 1] = 1.0, k + a
        k[...] = tp.sin(o)
        past = k[tp.maximum(0, t - w + 1) : t + 1]
        tp.output("y", tp.einsum("n,nd->d", tp.softmax(tp.einsum("d,nd->n", p, past)), past))

    run = Everywhere(program)
    for T in (*SIZES, 18):
        a, p = normal(T, 3), normal(T, 3, seed=1)
        o, k, expected = np.ones(3), np.zeros((T, 3)), np.zeros((T, 3))
        for t in range(T):
            k[t] = np.sin(o)
            o = k[t] + a[t]
            past = k[max(0, t - w + 1) : t + 1]
            e = np.exp(past @ p[t])
            expected[t] = e / e.sum() @ past
        run.gives({"y": expected}, a=a, p=p)
    assert [text for text in slots(run) if "ring" in text] == [f"!loop.buffer<(t: ring {w}) 3xf32>"]


@pytest.mark.parametrize("w", [1, 2, 3, 7])
def test_18_a_ring_written_at_t_and_read_at_t_minus_w(w: int) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[2], over=t)
        h = tp.tensor("h", tp.f32[2], over=t)
        h[t < w] = a
        h[...] = h[t - w] * 0.5 + a
        g = tp.sin(h)
        tp.output("y", tp.where(t < w, g, g - g[tp.maximum(t - w, 0)]))

    run = Everywhere(program)
    for T in SIZES:
        a = normal(T, 2)
        h = a.copy()
        for t in range(w, T):
            h[t] = 0.5 * h[t - w] + a[t]
        g = np.sin(h)
        expected = g.copy()
        expected[w:] -= g[: max(T - w, 0)]
        run.gives({"y": expected}, a=a)


@pytest.mark.parametrize("w", [1, 3, 4])
def test_18_a_ring_whose_first_row_is_donated(w: int) -> None:
    """The producer's first row lies in the array that the caller gives away."""

    def program():
        i, I = tp.dim("i")
        x = tp.input("x", tp.f32[2], over=i)
        h = tp.state("h", tp.f32[2], init=1.0, steps=i)
        h.next = 0.5 * h + x
        tp.output("window", h[tp.maximum(i - w + 1, 0) : i + 1].sum(0))
        tp.output("behind", h.next - h[tp.maximum(i - w, 0)])

    run = Everywhere(program)
    for I in SIZES[1:]:
        x = normal(I, 2)
        h = np.ones((I + 1, 2))
        for i in range(I):
            h[i + 1] = 0.5 * h[i] + x[i]
        window = [h[max(i - w + 1, 0) : i + 1].sum(0) for i in range(I)]
        behind = h[1:] - h[np.maximum(np.arange(I) - w, 0)]
        for executable in (run.cpu, run.reference, *run.others.values()):
            for donate in (False, True):
                out = executable(x=x, state={"h": np.ones(2, np.float32)}, donate=donate)
                np.testing.assert_allclose(out["window"], window, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(out["behind"], behind, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(out.state["h"], h[-1], rtol=1e-5, atol=1e-5)


def test_19_the_same_executable_at_rising_and_falling_sizes() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f64[()], over=t)
        h = tp.tensor("h", tp.f64[()], over=t)
        h[0] = a
        h[t + 1] = 0.9 * h + a[t + 1] ** 2
        tp.output("y", h[t:T].sum() - h[tp.maximum(t - 2, 0) : t + 1].sum())

    run = Everywhere(program)
    for T in (1000, 3, 0, 17, 1, 999, 2):
        a = normal(T, dtype=np.float64)
        h = np.zeros(T)
        for t in range(T):
            h[t] = a[t] ** 2 + 0.9 * h[t - 1] if t else a[t]
        expected = [h[t:].sum() - h[max(t - 2, 0) : t + 1].sum() for t in range(T)]
        if T < 100:
            run.gives({"y": expected}, a=a)
        np.testing.assert_allclose(run.cpu(a=a)["y"], expected, rtol=1e-9, atol=1e-9)


def carried():
    i, I = tp.dim("i")
    x = tp.input("x", tp.f32[4], over=i)
    w = tp.state("w", tp.f32[4], init=1.0, steps=i)
    v = tp.state("v", tp.f32[4], init=0.0, steps=i)
    v.next = 0.5 * v + x
    w.next = w - v.next * w[..., 0]
    tp.output("w_before", w)
    tp.output("v_first", v[0])
    tp.output("swing", w.next - w)


def expected_carried(x: np.ndarray, w: np.ndarray, v: np.ndarray):
    before, swing = [], []
    for row in x:
        before.append(w)
        v = 0.5 * v + row
        swing.append(-v * w[0])
        w = w + swing[-1]
    return np.reshape(before, x.shape), np.reshape(swing, x.shape), w, v


@pytest.mark.parametrize("donate", [False, True])
def test_19_donated_states(donate: bool) -> None:
    run = Everywhere(carried)
    for I in SIZES[1:]:
        x = normal(I, 4) * 0.1
        state = {"w": np.full(4, 1.5, np.float32), "v": np.full(4, 0.25, np.float32)}
        kept = {name: array.copy() for name, array in state.items()}
        before, swing, w, v = expected_carried(x, state["w"].astype(np.float64), state["v"].astype(np.float64))
        for executable in (run.cpu, *run.others.values()):
            given = {name: array.copy() for name, array in kept.items()}
            out = executable(x=x, state=given, donate=donate)
            np.testing.assert_allclose(out["w_before"], before, rtol=1e-5)
            np.testing.assert_allclose(out["swing"], swing, rtol=1e-5)
            np.testing.assert_allclose(out["v_first"], kept["v"])
            np.testing.assert_allclose(out.state["w"], w, rtol=1e-5)
            np.testing.assert_allclose(out.state["v"], v, rtol=1e-5)
            if not donate:
                np.testing.assert_array_equal(given["w"], kept["w"])


def requesting(program: tp.Program, *passes: str, early: bool = False) -> Compiled:
    """A program that asks for something of its memory, before the other passes see it or after them."""
    module = program.module.clone()
    before = ("sdg-autodiff",) if early else default_pipeline()
    run_passes(Context(), module, (*before, *passes), {})
    module.verify()
    executable = tp.compile(module)
    assert isinstance(executable, Compiled)
    executable.levels.loop.verify()
    return executable


def trained():
    """Steps of training, each by back-propagation through time, and the states of the last one."""
    (i, I), (t, T) = tp.dims("i", "t")
    x = tp.input("x", tp.f64[2, 3], over=(i, t))
    w = tp.state("w", tp.f64[3, 3], init=0.5, steps=i)
    h = tp.tensor("h", tp.f64[2, 3], over=(i, t))
    h[i, 0] = x
    h[i, t + 1] = tp.tanh(h @ w[i] + x[i, t + 1])
    loss = tp.sum(h * h)
    w.next = w - 0.01 * tp.grad(loss, w[i])
    tp.output("w_before", w)
    tp.output("loss", loss)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("passes", [some for count in (1, 2, 3) for some in combinations(REQUESTS, count)])
def test_19_requests_on_and_off(passes: tuple[str, ...], early: bool) -> None:
    program = tp.program(trained)()
    plain, asked = tp.compile(program), requesting(program, *passes, early=early)
    for I, T in [(1, 0), (1, 1), (2, 1), (3, 2), (2, 5), (1, 17)]:
        x, state = 0.3 * normal(I, T, 2, 3, dtype=np.float64), {"w": np.full((3, 3), 0.4)}
        expected = plain(x=x, state={"w": state["w"].copy()})
        for donate in (False, True, True):
            given = {"w": state["w"].copy()}
            agree(asked(x=x, state=given, donate=donate), expected, f"{passes} at {I}, {T}, donate={donate}")
            assert donate or np.array_equal(given["w"], state["w"])


@pytest.mark.parametrize("budget", [None, 1 << 20, 6000])
def test_19_within_a_budget_and_without(budget: int | None) -> None:
    """A program compiled for an amount of memory at one size gives the same numbers at all."""
    program = tp.program(trained)()
    plain = tp.compile(program)
    small = tp.compile(program, memory_budget=budget or 1, sizes=None if budget is None else {"I": 2, "T": 200})
    for I, T in [(1, 0), (1, 1), (2, 3), (2, 200), (1, 7), (1, 201)]:
        x, state = 0.1 * normal(I, T, 2, 3, dtype=np.float64), {"w": np.full((3, 3), 0.1)}
        expected, outputs = plain(x=x, state=state), small(x=x, state=state)
        agree(outputs, expected, f"{budget} at {I}, {T}")
        if T == 200 and budget is not None:
            assert small.stats.peak_by_space["device"] <= budget
            assert ("host" in small.stats.peak_by_space) == (plain.stats.peak_bytes > budget)


@pytest.mark.parametrize("w", [1, 2, 3, 7])
def test_18_rows_that_come_back_are_written_at_t_and_read_at_t_minus_w(w: int) -> None:
    """The ring of rows that come back from the host is written and read in the same step."""

    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[2], over=t)
        h = tp.tensor("h", tp.f32[2], over=t)
        h[0] = a
        h[t + 1] = tp.sin(h) + a[t + 1]
        g = tp.tensor("g", tp.f32[2], over=t)
        g[T - 1] = h
        g[t < w] = 0.5 * g[t + 1] * h
        g[t] = 0.5 * g[t + 1] * h + h[t - w]
        tp.output("g", g)

    run = Everywhere(program)
    small = tp.compile(run.program, memory_budget=1 << 20)
    assert f"ring {w + 2}) 2xf32" in small.ir("loop")
    swapped = requesting(run.program, "sdg-insert-swap")
    for T in SIZES:
        a = normal(T, 2)
        h, g = np.zeros((T, 2)), np.zeros((T, 2))
        for t in range(T):
            h[t] = a[t] + (np.sin(h[t - 1]) if t else 0)
        for t in reversed(range(T)):
            g[t] = h[t] if t == T - 1 else 0.5 * g[t + 1] * h[t] + (h[t - w] if t >= w else 0)
        run.gives({"g": g}, a=a)
        for executable in (small, swapped):
            np.testing.assert_allclose(executable(a=a)["g"], g, rtol=1e-5, atol=1e-5)


def test_20_a_donation_that_is_asked_for_and_not_right() -> None:
    """The first value of the state is read after the last one is written: it is kept whatever is asked."""

    def program():
        i, I = tp.dim("i")
        x = tp.input("x", tp.f32[3], over=i)
        w = tp.state("w", tp.f32[3], init=2.0, steps=i)
        w.next = w * x
        tp.output("moved", w[I - 1] - w[0])

    recorded = tp.program(program)()
    asked = requesting(recorded, "sdg-insert-donate")
    assert "donates" in str(asked.levels.optimised)
    for I in (1, 2, 5):
        x, w = normal(I, 3), np.full(3, 2.0, np.float32)
        expected = tp.compile(recorded, "reference")(x=x, state={"w": w})
        agree(asked(x=x, state={"w": w.copy()}, donate=True), expected, f"at {I}")


def test_20_a_state_that_is_read_after_its_update() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        x = tp.input("x", tp.f32[()], over=(i, t))
        w = tp.state("w", tp.f32[()], init=2.0, steps=i)
        w.next = w + (x * w)[i, 0:T].sum()
        tp.output("y", x + w)  # the value before, at every t, while the update of the same step is known
        tp.output("z", x * w.next)
        tp.output("first", w[0])

    run = Everywhere(program)
    for I, T in [(1, 1), (2, 3), (3, 0), (5, 7)]:
        x = 0.1 * normal(I, T)
        w, y, z = 2.0, np.zeros((I, T)), np.zeros((I, T))
        for i in range(I):
            y[i] = x[i] + w
            w = w + (x[i].astype(np.float64) * w).sum()
            z[i] = x[i] * w
        run.gives({"y": y, "z": z, "first": 2.0}, x=x)
        np.testing.assert_allclose(run.cpu(x=x, donate=True).state["w"], w, rtol=1e-5)
        np.testing.assert_allclose(run.cpu(x=x, donate=True)["y"], y, rtol=1e-5)
