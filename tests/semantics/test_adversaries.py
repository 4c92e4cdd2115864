"""Programs that once were wrong, or might be: odd reads, odd types, odd arguments, several threads, other hashes."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest
import torch
from semantics_support import SIZES, Everywhere, normal, per_step, ramp

import tempo_ir as tp


def test_a_row_that_one_op_reads_through_two_windows() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f64[2], over=t)
        h = tp.tensor("h", tp.f64[2], over=t)
        h[0] = a
        h[t + 1] = tp.sin(h) + a[t + 1]
        tp.output("y", h[T - 1 - t] + h * 2 + h[t // 2])

    run = Everywhere(program)
    for T in SIZES:
        a, h = normal(T, 2, dtype=np.float64), np.zeros((T, 2))
        for t in range(T):
            h[t] = a[t] + (np.sin(h[t - 1]) if t else 0)
        run.gives({"y": h[::-1] + 2 * h + h[np.arange(T) // 2]}, a=a)


@pytest.mark.parametrize("order", ["up", "down"])
def test_windows_ahead_of_and_behind_a_loop(order: str) -> None:
    """The loop starts before the first, or ends after the last point: no iterator may be negative."""

    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f64[()], over=t)
        h = tp.tensor("h", tp.f64[()], over=t)
        if order == "up":
            h[t < 1] = a
            h[...] = h[t - 1] * 0.5 + a
        else:
            h[t > T - 2] = a
            h[...] = h[t + 1] * 0.5 + a
        k = tp.tanh(h)
        tp.output("around", k[tp.maximum(t - 2, 0) : tp.minimum(t + 2, T)].sum())
        tp.output("behind", tp.max(k[tp.maximum(t - 3, 0) : t]))
        tp.output("ahead", k[tp.minimum(t + 2, T) : T].sum())
        tp.output("steps", h[t:T:3].sum() - h[0 : t + 1 : 2].sum())

    run = Everywhere(program)
    for T in SIZES:
        a, h = normal(T, dtype=np.float64), np.zeros(T)
        for t in range(T) if order == "up" else reversed(range(T)):
            before = t - 1 if order == "up" else t + 1
            h[t] = a[t] + (0.5 * h[before] if 0 <= before < T else 0)
        k = np.tanh(h)
        expected = {
            "around": [k[max(t - 2, 0) : t + 2].sum() for t in range(T)],
            "behind": [k[max(t - 3, 0) : t].max(initial=-np.inf) for t in range(T)],
            "ahead": [k[t + 2 :].sum() for t in range(T)],
            "steps": [h[t::3].sum() - h[: t + 1 : 2].sum() for t in range(T)],
        }
        run.gives(expected, a=a)


def test_a_maximum_that_recurs_in_place() -> None:
    def program():
        (b, B), (t, T) = tp.dims("b", "t")
        x = tp.input("x", tp.f32[()], over=(b, t))
        high, low = tp.tensor("high", tp.f32[()], over=(b, t)), tp.tensor("low", tp.f32[()], over=(b, t))
        high[b, 0], low[b, 0] = x, x
        high[...] = tp.maximum(high[b, t - 1], x)
        low[...] = tp.minimum(low[b, t - 1], x)
        tp.output("y", high * 2 - low)

    run = Everywhere(program)
    for B, T in [(1, 1), (3, 2), (2, 9), (0, 3), (3, 0)]:
        x = normal(B, T)
        y = 2 * np.maximum.accumulate(x, 1) - np.minimum.accumulate(x, 1)
        run.gives({"y": y}, x=x)


def test_three_guards_the_second_with_an_else() -> None:
    def program():
        t, T = tp.dim("t", at_least=1)
        w, v = tp.input("w", tp.f64[()], over=t), tp.input("v", tp.f64[()])
        h, k = tp.tensor("h", tp.f64[()], over=t), tp.tensor("k", tp.f64[()], over=t)
        h[0], k[0] = w, v
        h[t] = h[t - 1] * w
        k[t] = k[t - 1] * v
        tp.output("g", tp.grad(h[T - 1] * k[T - 1], w))

    run = Everywhere(program)
    for T in SIZES[1:]:
        run.gives({"g": np.full(T, 0.5 ** (T - 1) * 2.0**T)}, w=np.full(T, 0.5), v=np.float64(2))


def test_outputs_that_are_reads() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        x = tp.input("x", tp.i64[2], over=(i, t))
        p = tp.parameter("p", tp.f32[3], init=1.5)
        y = x * 2
        tp.output("input", x)
        tp.output("table", x[0:I, 0:T])
        tp.output("row", x[0:I:2, t])
        tp.output("reversed", x[I - 1 - i, T - 1 - t])
        tp.output("doubled", y)
        tp.output("doubled_again", y)
        tp.output("doubled_table", y[0:I, t])
        tp.output("parameter", p)
        tp.output("number", 7)
        tp.output("dim", i)

    run = Everywhere(program)
    for I, T in [(1, 1), (0, 2), (2, 0), (3, 4), (4, 3)]:
        x = np.arange(I * T * 2).reshape(I, T, 2)
        expected = {
            "input": x, "table": x, "row": x[::2].swapaxes(0, 1), "reversed": x[::-1, ::-1], "doubled": 2 * x,
            "doubled_again": 2 * x, "doubled_table": 2 * x.swapaxes(0, 1), "parameter": [1.5] * 3, "number": 7,
            "dim": np.arange(I),
        }  # fmt: skip
        run.gives(expected, x=x)
        out = run.cpu(x=x)
        before = out["doubled_again"].copy()
        out["doubled"][...] = 0
        out["input"][...] = -1
        np.testing.assert_array_equal(out["doubled_again"], before)
        np.testing.assert_array_equal(x, np.arange(I * T * 2).reshape(I, T, 2))


def test_an_output_of_rows_of_many_lengths_is_refused() -> None:
    def program():
        t, T = tp.dim("t")
        tp.output("y", tp.input("a", tp.f32[()], over=t)[0 : t + 1])

    with pytest.raises(tp.ProgramError, match=r'output "y" has the extent t \+ 1, another at each t'):
        tp.program(program)()


def test_unused_inputs_and_programs_without_dims() -> None:
    def program():
        t, T = tp.dim("t")
        tp.input("unused", tp.f32[2], over=t)
        x = tp.input("x", tp.f32[3])
        tp.output("y", x / 2)
        tp.output("bound", T * 1)

    run = Everywhere(program)
    for T in (0, 1, 5):
        run.gives({"y": [0.5, 1, 1.5], "bound": T}, unused=normal(T, 2), x=np.array([1, 2, 3], np.float32))


DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type_through_a_recurrence_and_a_window(name: str) -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", getattr(tp, name)[3], over=t)
        h = tp.tensor("h", getattr(tp, name)[3], over=t)
        h[0] = x
        h[...] = h[t - 1] | x if name == "bool" else tp.maximum(h[t - 1], x)
        tp.output("h", h)
        tp.output("back", x[T - 1 - t])
        tp.output("count", (x[0 : t + 1] > 0).sum(0))
        tp.output("any", tp.any(x[t:T] > 0, 0))
        tp.output("where", tp.where(x > 0, x, h))
        tp.output("steps", x[1:T:3])
        tp.output("modular", x[tp.minimum(t % 2, T - 1)])
        around = x[tp.maximum(0, t - 1) : tp.minimum(t + 2, T)]
        tp.output("around", tp.any(around, 0) if name == "bool" else tp.max(around, 0))

    run = Everywhere(program)
    for T in SIZES:
        x = (normal(T, 3) * 3).astype(DTYPES[name]) if name != "bool" else normal(T, 3) > 0.8
        wide = x.astype(np.float64)
        count = np.array([(wide[: t + 1] > 0).sum(0) for t in range(T)], np.int64).reshape(T, 3)
        out = run(x=x)
        np.testing.assert_array_equal(out["h"].astype(np.float64), np.maximum.accumulate(wide, 0))
        np.testing.assert_array_equal(out["back"].astype(np.float64), wide[::-1])
        np.testing.assert_array_equal(out["count"], count)
        np.testing.assert_array_equal(out["steps"].astype(np.float64), wide[1::3])
        np.testing.assert_array_equal(out["modular"].astype(np.float64), wide[np.minimum(np.arange(T) % 2, T - 1)])
        around = [wide[max(0, t - 1) : t + 2].max(0) for t in range(T)]
        np.testing.assert_array_equal(out["around"].astype(np.float64), np.reshape(around, (T, 3)))
        assert out["steps"].dtype == out["around"].dtype == x.dtype
        assert out["h"].dtype == out["back"].dtype == out["where"].dtype == x.dtype


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("heads", [(), (2, 3)])
def test_attention_over_16_bit_values(name: str, heads: tuple[int, ...]) -> None:
    def program():
        t, T = tp.dim("t")
        q, k = (tp.input(key, getattr(tp, name)[(*heads, 8)], over=t) for key in "qk")
        p = tp.softmax(tp.einsum("...d,n...d->...n", q, k[0 : t + 1]))
        tp.output("o", tp.einsum("...n,n...d->...d", p, k[0 : t + 1]))

    run = Everywhere(program)
    for T in (0, 1, 5, 70):
        q, k = (normal(T, *heads, 8, seed=seed).astype(DTYPES[name]) for seed in (0, 1))
        wide = k.astype(np.float64)
        expected = np.zeros(q.shape)
        for t in range(T):
            score = np.einsum("...d,n...d->...n", q[t].astype(np.float64), wide[: t + 1])
            p = np.exp(score - score.max(-1, keepdims=True))
            expected[t] = np.einsum("...n,n...d->...d", p / p.sum(-1, keepdims=True), wide[: t + 1])
        np.testing.assert_allclose(run(q=q, k=k)["o"].astype(np.float64), expected, atol=0.05)


def cumulated():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[2, 3], over=t)
    h = tp.tensor("h", tp.f32[2, 3], over=t)
    h[0], h[t + 1] = x, h + x[t + 1]
    tp.output("h", h)


def test_arrays_of_every_layout() -> None:
    exe = tp.compile(tp.program(cumulated)())
    base = normal(14, 6, 5)
    shape = (7, 2, 3)
    layouts = {
        "strided": base[::2, ::3, 1:4],
        "transposed": np.ascontiguousarray(base[:7, :3, :2]).transpose(0, 2, 1),
        "reversed": base[:7, :2, :3][::-1],
        "broadcast": np.broadcast_to(base[:1, :2, :3], shape),
        "fortran": np.asfortranarray(base[:7, :2, :3]),
        "offset": np.frombuffer(b"1234" + base.tobytes(), np.float32, 42, 4).reshape(shape),
    }
    for name, x in layouts.items():
        np.testing.assert_allclose(exe(x=x)["h"], np.cumsum(x, 0), rtol=1e-5, atol=1e-5, err_msg=name)
    read_only = np.ones((3, 2, 3), np.float32)
    read_only.flags.writeable = False
    np.testing.assert_array_equal(exe(x=read_only)["h"][-1], 3)
    odd = np.ndarray(shape, np.float32, np.zeros(4 * 42 + 1, np.uint8)[1:].data)
    odd[...] = 1
    np.testing.assert_array_equal(exe(x=odd)["h"][-1], 7)
    with pytest.raises(ValueError, match="'x'"):
        exe(x=base[:7, :2, :3].astype(">f4"))


def test_tensors_of_torch() -> None:
    exe = tp.compile(tp.program(cumulated)())
    x = torch.from_numpy(normal(6, 3, 2)).permute(0, 2, 1)
    out = exe(x=x)["h"]
    assert isinstance(out, torch.Tensor)
    torch.testing.assert_close(out, x.cumsum(0))
    torch.testing.assert_close(exe(x=x.clone().requires_grad_())["h"], x.cumsum(0))

    def half():
        x = tp.input("x", tp.bf16[4])
        tp.output("y", x * 2)

    y = tp.compile(tp.program(half)())(x=torch.ones(4, dtype=torch.bfloat16))["y"]
    assert y.dtype == torch.bfloat16
    assert y.tolist() == [2] * 4


def test_results_of_one_call_are_not_touched_by_the_next() -> None:
    exe = tp.compile(tp.program(cumulated)())
    x = normal(5, 2, 3)
    first = exe(x=x)["h"]
    kept = first.copy()
    exe(x=-x)
    exe(x=normal(50, 2, 3))
    np.testing.assert_array_equal(first, kept)


def test_calls_from_threads_with_hosts_states_and_draws() -> None:
    class Doubler:
        def __init__(self) -> None:
            self.calls = 0

        def double(self, x):
            self.calls += 1
            return np.float32(2 * x + self.calls)

    def program():
        t, T = tp.dim("t")
        w = tp.state("w", tp.f32[()], init=1.0, steps=t)
        y = tp.host(Doubler).double(w, returns=tp.f32[()])
        w.next = y * 0.25 + tp.random.uniform(spec=tp.f32[()], over=t)
        tp.output("before", w)

    exe = tp.compile(tp.program(program)())
    cases = [(T, seed) for T in (1, 7, 40) for seed in (0, 1)]
    expected = {case: exe(T=case[0], seed=case[1]) for case in cases}
    wrong: list[tuple[int, int]] = []

    def call(T: int, seed: int) -> None:
        for _ in range(10):
            out = exe(T=T, seed=seed)
            same = np.array_equal(out["before"], expected[T, seed]["before"])
            if not same or out.state["w"] != expected[T, seed].state["w"]:
                wrong.append((T, seed))

    threads = [threading.Thread(target=call, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_hosts_and_one_that_fails_in_the_middle() -> None:
    log: list[str] = []

    class Source:
        def draw(self, t):
            log.append(f"draw {t}")
            return np.float64(t), np.int64(10 * t)

    class Sink:
        def put(self, a, b):
            if a == 4:
                raise RuntimeError("full")
            log.append(f"put {a:g} {b}")

    def program():
        t, T = tp.dim("t")
        a, b = tp.host(Source).draw(t, returns=(tp.f64[()], tp.i64[()]))
        tp.host(Sink).put(a, b + 1)
        tp.output("y", a * b)

    run = Everywhere(program)
    run.gives({"y": [0, 10, 40]}, T=3)
    for executable in (run.reference, run.cpu, *run.others.values()):
        log.clear()
        executable(T=3)
        assert [line for line in log if line.startswith("put")] == ["put 0 1", "put 1 11", "put 2 21"]
        assert [line for line in log if line.startswith("draw")] == ["draw 0", "draw 1", "draw 2"]
    for error in run.fails(RuntimeError, "full", T=9):
        assert "t = 4" in "\n".join(error.__notes__)
    assert run(T=2)["y"].tolist() == [0, 10]


@pytest.mark.parametrize("wrong", ["shape", "dtype", "count", "none"])
def test_results_of_hosts_are_checked(wrong: str) -> None:
    class Host:
        def give(self, t):
            right = (np.zeros(2, np.float32), np.zeros(2, np.float32))
            if t < 2:
                return right
            return {"shape": (np.zeros(3, np.float32), right[1]), "dtype": (np.array(["a", "b"]), right[1]),
                    "count": right[:1], "none": None}[wrong]  # fmt: skip

    def program():
        t, T = tp.dim("t")
        a, b = tp.host(Host).give(t, returns=(tp.f32[2], tp.f32[2]))
        tp.output("y", a + b)

    run = Everywhere(program)
    run.gives({"y": np.zeros((2, 2))}, T=2)
    for executable in (run.reference, run.cpu):
        with pytest.raises(Exception, match="give") as raised:
            executable(T=3)
        text = str(raised.value) + "\n".join(getattr(raised.value, "__notes__", ()))
        assert "t = 2" in text


@pytest.mark.slow
def test_merges_with_odd_conditions_over_three_dims() -> None:
    def program():
        (i, I), (j, J), (t, T) = tp.dims("i", "j", "t")
        x = tp.input("x", tp.f32[()], over=(i, j, t))
        m = tp.tensor("m", tp.f32[()], over=(i, j, t))
        m[(i == j) & (t % 2 == 1)] = x
        m[i + j > t] = -x[I - 1 - i, j, t]
        m[~((t < 2) | (j == 0))] = m[i, j - 1, t - 2] + 1
        m[t == T - 1] = x * 3
        m[...] = 0.25
        tp.output("m", m)
        tp.output("total", m[0:I, j, 0 : t + 1].sum())

    run = Everywhere(program)
    for I, J, T in [(1, 1, 1), (2, 3, 4), (4, 2, 5), (3, 3, 9), (0, 2, 2)]:
        x = normal(I, J, T)
        m = np.zeros((I, J, T))
        for i, j, t in np.ndindex(I, J, T):
            m[i, j, t] = (
                x[i, j, t] if i == j and t % 2 == 1
                else -x[I - 1 - i, j, t] if i + j > t
                else m[i, j - 1, t - 2] + 1 if t >= 2 and j != 0
                else 3 * x[i, j, t] if t == T - 1
                else 0.25
            )  # fmt: skip
        run.gives({"m": m, "total": m.sum(0).cumsum(1)}, x=x)


def test_extents_that_would_be_negative_are_empty() -> None:
    def program():
        (t, T), (n, N) = tp.dims("t", "n")
        a = tp.input("a", tp.f64[()], over=t)
        part = a[tp.minimum(n, T) : tp.maximum(T - n, 0)]
        tp.output("sum", part.sum())
        tp.output("max", tp.max(part))
        tp.output("softmax", (tp.softmax(part) * part).sum())
        tp.output("count", tp.ones((part.shape[0],)).sum())
        tp.output("range", tp.arange(n, T - n).sum())

    run = Everywhere(program)
    for T in SIZES:
        a, N = normal(T, dtype=np.float64), 10
        rows = [a[min(n, T) : max(T - n, 0)] for n in range(N)]
        expected = {
            "sum": [row.sum() for row in rows], "max": [row.max(initial=-np.inf) for row in rows],
            "softmax": [np.exp(row) / np.exp(row).sum() @ row for row in rows], "count": [len(row) for row in rows],
            "range": [np.arange(n, T - n).sum() for n in range(N)],
        }  # fmt: skip
        run.gives(expected, a=a, N=N)


def test_a_reversed_dependence_on_two_dims_at_once() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        a = tp.input("a", tp.f64[()], over=(i, t))
        x, y = tp.tensor("x", tp.f64[()], over=(i, t)), tp.tensor("y", tp.f64[()], over=(i, t))
        x[i, T - 1] = a
        x[...] = x[i, t + 1] * 0.5 + a
        y[I - 1, t] = x
        y[...] = y[i + 1, T - 1 - t] - x
        tp.output("y", y)
        tp.output("z", y[I - 1 - i, 0:T].sum() + x)

    run = Everywhere(program)
    for I, T in [(1, 1), (3, 1), (1, 3), (3, 4), (5, 8), (0, 2), (2, 0)]:
        a = normal(I, T, dtype=np.float64)
        x, y = a.copy(), np.zeros((I, T))
        for t in reversed(range(T - 1)):
            x[:, t] += 0.5 * x[:, t + 1]
        for i in reversed(range(I)):
            y[i] = x[i] if i == I - 1 else y[i + 1, ::-1] - x[i]
        run.gives({"y": y, "z": y[::-1].sum(1)[:, None] + x}, a=a)


def test_counters_and_conditions_as_values() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        tp.output("n", i * 10 + t)
        tp.output("odd", tp.where((t % 2 == 1) & (i != 1) | (t == T - 1), t, -1))
        tp.output("quotient", (7 * t - 3 * i) // 4 + (t - i) % 3)
        tp.output("share", t / T)
        tp.output("bound", I * T + 0)

    run = Everywhere(program)
    for I, T in [(0, 0), (1, 1), (3, 5), (2, 9)]:
        i, t = np.indices((I, T))
        expected = {
            "n": 10 * i + t, "odd": np.where((t % 2 == 1) & (i != 1) | (t == T - 1), t, -1), "bound": I * T,
            "quotient": (7 * t - 3 * i) // 4 + (t - i) % 3, "share": np.arange(T) / max(T, 1),
        }  # fmt: skip
        run.gives(expected, I=I, T=T)


def test_ramps_reversed_through_a_state() -> None:
    def program():
        i, I = tp.dim("i")
        t, T = tp.dim("t")
        w = tp.state("w", tp.f64[()], init=1.0, steps=(i, t))
        a = tp.input("a", tp.f64[()], over=t)
        w.next = w * 0.5 + a[T - 1 - t]
        tp.output("before", w)
        tp.output("drift", w.next - w)

    run = Everywhere(program)
    for I, T in [(1, 1), (2, 3), (3, 2), (2, 0), (0, 2)]:
        a, w = ramp(T, np.float64), 1.0
        before, after = np.zeros((I, T)), np.zeros((I, T))
        for i, t in np.ndindex(I, T):
            before[i, t] = w
            after[i, t] = w = 0.5 * w + a[T - 1 - t]
        run.gives({"before": before, "drift": after - before}, a=a, I=I)
        assert run(a=a, I=I).state["w"] == pytest.approx(w)


def test_per_step_shapes_of_one_and_none() -> None:
    def program():
        t, T = tp.dim("t")
        a, b = tp.input("a", tp.f32[1, 1], over=t), tp.input("b", tp.f32[0, 3], over=t)
        tp.output("one", tp.softmax(a) + tp.sum(a) + (a @ a)[..., 0, 0])
        tp.output("none", tp.sum(b, 0))
        tp.output("kept", b * 2)
        tp.output("joined", tp.concat([b, tp.ones((2, 3))]))

    run = Everywhere(program)
    for T in (0, 1, 3):
        a = normal(T, 1, 1)
        one = 1 + a + a**2
        kept = np.zeros((T, 0, 3))
        run.gives(
            {"one": one, "none": np.zeros((T, 3)), "kept": kept, "joined": np.ones((T, 2, 3))},
            a=a,
            b=kept.astype(np.float32),
        )


def test_a_prefix_of_what_a_step_itself_makes() -> None:
    def program():
        t, T = tp.dim("t")
        h = tp.tensor("h", tp.f64[()], over=t)
        h[0] = 1.0
        h[t] = h[0:t].sum() * 0.5 + t
        tp.output("h", h)

    run = Everywhere(program)
    for T in SIZES:
        h = np.ones(T)
        for t in range(1, T):
            h[t] = 0.5 * h[:t].sum() + t
        run.gives({"h": h}, T=T)
    assert per_step(3, lambda t: t).tolist() == [0, 1, 2]


def exchanged():
    i, I = tp.dim("i")
    x = tp.input("x", tp.f32[4], over=i)
    w = tp.state("w", tp.f32[4], init=1.0, steps=i)
    v = tp.state("v", tp.f32[4], init=2.0, steps=i)
    w.next = w + v * x
    v.next = w * 0.5
    tp.output("first", w)
    tp.output("second", v)


@pytest.mark.parametrize("donate", [False, True])
@pytest.mark.parametrize("sharing", ["nothing", "one array", "overlap", "an input", "read-only", "strided", "torch"])
def test_donated_arrays_that_share_memory(sharing: str, donate: bool) -> None:
    exe = tp.compile(tp.program(exchanged)())
    for I in (1, 2, 5):
        x, memory = normal(I, 4), np.arange(16, dtype=np.float32) / 4
        w, v = memory[:4], memory[8:12]
        if sharing == "one array":
            v = w
        elif sharing == "overlap":
            v = memory[2:6]
        elif sharing == "an input":
            w = x[-1]
        elif sharing == "read-only":
            w.flags.writeable = False
        elif sharing == "strided":
            w = memory[:8:2]
        first, second = [], []
        carried = w.astype(np.float64), v.astype(np.float64)
        for row in x.astype(np.float64):
            first.append(carried[0])
            second.append(carried[1])
            carried = carried[0] + carried[1] * row, carried[0] * 0.5
        kept = memory.copy()
        given = {"w": torch.from_numpy(w), "v": torch.from_numpy(v)} if sharing == "torch" else {"w": w, "v": v}
        out = exe(x=x, state=given, donate=donate)
        for actual, expected in zip(
            (out["first"], out["second"], out.state["w"], out.state["v"]), (first, second, *carried), strict=True
        ):
            np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5)
        if not donate:
            np.testing.assert_array_equal(memory, kept)
        if sharing == "read-only":
            np.testing.assert_array_equal(w, kept[:4])
