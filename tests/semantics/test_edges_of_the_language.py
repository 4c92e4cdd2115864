"""Cases 41 to 46: empty programs, run-time errors, hosts that fail, calls that resume, bounds that follow."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_support import SIZES, Everywhere, normal, refused

import tempo_ir as tp
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime.errors import CallError


def test_41_preconditions_are_printed_and_checked() -> None:
    def program():
        t, T = tp.dim("t")
        k = tp.input("k", tp.f32[()], over=t)
        tp.output("last", k[T - 1])
        tp.output("mean", tp.mean(k[0:T]))

    run = Everywhere(program)
    assert str(run.program).startswith("sdg.program @program dims(t: T) where T >= 1")
    for T in SIZES[1:]:
        k = normal(T)
        run.gives({"last": k[-1], "mean": k.mean()}, k=k)
    for error in run.fails(CallError, "T >= 1, got T = 0", k=np.zeros(0, np.float32)):
        assert "test_edges_of_the_language.py" in str(error)


def test_42_odd_slices() -> None:
    def program():
        (t, T), (a, A) = tp.dims("t", "a")
        x = tp.input("x", tp.f32[3, 2], over=t)
        tp.output("last", x[..., 0] + x[..., 1, 1])
        tp.output("empty", x[tp.minimum(a, T) : 0].sum(0))
        tp.output("down", x[T:0:1].sum(0))
        tp.output("between", x[tp.minimum(a, T) : tp.minimum(tp.maximum(T - a, 0), T)].sum(0).sum(0))

    run = Everywhere(program)
    for T in SIZES:
        x = normal(T, 3, 2)
        A = 6
        between = [x[min(a, T) : max(T - a, 0)].sum((0, 1)) for a in range(A)]
        expected = {
            "last": x[:, :, 0] + x[:, 1, 1, None], "empty": np.zeros((A, 3, 2)), "down": np.zeros((3, 2)),
            "between": np.reshape(between, (A, 2)),
        }  # fmt: skip
        run.gives(expected, x=x, A=A)


def test_42_run_time_errors_name_op_point_and_line() -> None:
    def gather():
        t, T = tp.dim("t")
        n, table = tp.input("n", tp.i64[()], over=t), tp.input("table", tp.f32[4])
        tp.output("row", table.take(n))

    def division():
        t, T = tp.dim("t")
        n, m = (tp.input(name, tp.i64[2], over=t) for name in "nm")
        tp.output("quotient", n // m)
        tp.output("rest", n % m)

    table = np.arange(4, dtype=np.float32)
    run = Everywhere(gather)
    run.gives({"row": [1, 2, 0, 3]}, n=np.array([1, 2, 0, 3]), table=table)
    for wrong in (7, 4, -1, -5, 2**40):
        for error in run.fails(ExecutionError, "t = 2", n=np.array([1, 2, wrong, wrong]), table=table):
            assert f"test_edges_of_the_language.py:{gather.__code__.co_firstlineno + 3}" in str(error)
    run.gives({"row": [3, 3]}, n=np.array([3, 3]), table=table)

    run = Everywhere(division)
    n, m = np.array([[-7, 7], [7, -(2**63)]]), np.array([[2, -2], [3, -1]])
    with np.errstate(over="ignore"):
        run.gives({"quotient": n // m, "rest": n % m}, n=n, m=m)
    for error in run.fails(ExecutionError, r"(?s)division by zero.*t = 1", n=n, m=np.array([[1, 1], [3, 0]])):
        assert "test_edges_of_the_language.py" in str(error)


def test_43_nan_infinity_and_casts() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        tp.output("max", tp.max(x))
        tp.output("min", tp.min(x))
        tp.output("argmax", tp.argmax(x))
        tp.output("argmin", tp.argmin(x))
        tp.output("softmax", tp.softmax(tp.where(tp.equal(x, x) & (x > 1e9), x, -np.inf)))
        tp.output("larger", tp.maximum(x, 0.5))
        tp.output("smaller", tp.minimum(x, x[..., 0]))
        tp.output("compare", tp.stack([x < 1, x <= 1, x > 1, x >= 1, tp.equal(x, 1), tp.not_equal(x, 1)]))
        for name in ("i8", "u8", "i16", "i32", "i64"):
            tp.output(name, x.cast(getattr(tp, name)))
        tp.output("bool", x.cast(tp.bool))
        tp.output("over", tp.max(x[t:t], 0))
        tp.output("cumulative", tp.cumsum(x))
        tp.output("f16", x.cast(tp.f16))
        tp.output("bf16", x.cast(tp.bf16))
        tp.output("back", x.cast(tp.bf16).cast(tp.f32))

    nan, inf = np.nan, np.inf
    rows = [[1, nan, 3, nan], [-inf, 2, inf, 0], [1e30, -1e30, -2.7, 2.7], [7, 7, 3, 3], [-inf] * 4, [nan] * 4]
    x = np.array(rows, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        kinds = {"i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32"}
        limits = {name: np.iinfo(kind) for name, kind in kinds.items()}
        casts = {
            name: np.nan_to_num(np.trunc(np.clip(x.astype(np.float64), limit.min, limit.max)))
            for name, limit in limits.items()
        }
        most = 2**63 - 1
        i64 = [[0 if v != v else int(max(min(v, most), -most - 1)) if abs(v) < 1e9 else int(np.sign(v) * 2.0**63)
                if v < 0 else most for v in row] for row in rows]  # fmt: skip
        expected = {
            "max": x.max(1), "min": x.min(1), "argmax": x.argmax(1), "argmin": x.argmin(1),
            "larger": np.maximum(x, 0.5), "smaller": np.minimum(x, x[:, :1]), "i64": i64, "bool": x.astype(bool),
            "compare": np.stack([x < 1, x <= 1, x > 1, x >= 1, x == 1, x != 1], 1), **casts,
            "over": np.full((6, 4), -inf), "cumulative": np.cumsum(x, 1), "f16": x.astype(np.float16),
        }  # fmt: skip
    run = Everywhere(program)
    run.gives(expected, x=x)
    softmax = run(x=x)["softmax"]
    assert softmax[0].tolist() == [0, 0, 0, 0]
    assert softmax[2].tolist() == [1, 0, 0, 0]
    assert softmax[4].tolist() == [0, 0, 0, 0]
    assert np.isnan(softmax[1]).all() == np.isnan(run.reference(x=x)["softmax"][1]).all()


def test_43_integers_floor() -> None:
    def program():
        t, T = tp.dim("t")
        n, m = (tp.input(name, tp.i64[()], over=t) for name in "nm")
        a, b = n.cast(tp.f32), m.cast(tp.f32)
        tp.output("i", tp.stack([n // m, n % m]))
        tp.output("f", tp.stack([a // b, a % b]))
        tp.output("dim", tp.stack([(t - 5) // 3, (t - 5) % 3]) * 1)

    n, m = np.array([-7, 7, -8, 8, 0, -1]), np.array([2, -2, 3, -3, 5, 7])
    expected = {
        "i": np.stack([n // m, n % m], 1), "f": np.stack([n // m, n % m], 1),
        "dim": np.stack([(np.arange(6) - 5) // 3, (np.arange(6) - 5) % 3], 1),
    }  # fmt: skip
    Everywhere(program).gives(expected, n=n, m=m)
    assert (-7 // 2, -7 % 2) == (-4, 1)


class Fragile:
    """Raises at one step."""

    def step(self, t):
        if t == 3:
            raise KeyError("broken")
        return np.float32(t)

    def judge(self, value):
        return np.float32(value * 2)


def test_44_an_exception_of_a_host_is_raised_with_its_point() -> None:
    def program():
        t, T = tp.dim("t")
        env = tp.host(Fragile)
        y = env.step(t, returns=tp.f32[()])
        tp.output("y", tp.host(Fragile, "judge").judge(tp.exp(y) - 1, returns=tp.f32[()]))

    run = Everywhere(program)
    for _ in range(2):
        for error in run.fails(KeyError, "broken", T=5):
            notes = "\n".join(error.__notes__)
            assert "t = 3" in notes
            assert "@fragile::@step" in notes
            assert f"test_edges_of_the_language.py:{program.__code__.co_firstlineno + 3}" in notes
        run.gives({"y": 2 * (np.exp(np.arange(3)) - 1)}, T=3)


@pytest.mark.parametrize("cut", [0, 1, 4, 9])
def test_45_two_calls_equal_one(cut: int) -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        x = tp.input("x", tp.f64[3], over=i)
        w = tp.state("w", tp.f64[3], init=1.0, steps=i)
        noise = tp.random.normal(spec=tp.f64[3], over=(i, t))
        w.next = 0.5 * w + x + noise[i, 0:T].sum(0) + i * 0.25
        tp.output("before", w)
        tp.output("drawn", tp.random.bits(tp.i64[2], over=i))
        tp.output("i", i * 2 + 1)
        tp.output("even", tp.where(i % 2 == 0, 1, 0))

    run = Everywhere(program)
    x, state = normal(9, 3, dtype=np.float64), {"w": np.full(3, 0.5)}
    whole = run(x=x, T=2, seed=3, state=state)
    for executable in (run.reference, run.cpu, *run.others.values()):
        first = executable(x=x[:cut], T=2, seed=3, state=state)
        second = executable(x=x[cut:], T=2, seed=3, state=first.state, start={"i": cut})
        for name in ("drawn", "i", "even"):
            np.testing.assert_array_equal(np.concatenate([first[name], second[name]]), whole[name])
        joined = np.concatenate([first["before"], second["before"]])
        if executable is run.cpu:
            np.testing.assert_array_equal(joined, whole["before"])
            np.testing.assert_array_equal(second.state["w"], whole.state["w"])
        np.testing.assert_allclose(joined, whole["before"], rtol=1e-12)


def test_45_forty_steps_and_sixty_equal_a_hundred() -> None:
    def program():
        i, I = tp.dim("i")
        w = tp.state("w", tp.f64[2], init=1.0, steps=i)
        w.next = 0.9 * w + tp.random.normal(spec=tp.f64[2], over=i)
        tp.output("before", w)

    run = Everywhere(program)
    state = {"w": np.ones(2)}
    whole = run(I=100, seed=7, state=state)
    for executable in (run.cpu, *run.others.values()):
        first = executable(I=40, seed=7, state=state)
        second = executable(I=60, seed=7, state=first.state, start={"i": 40})
        joined = np.concatenate([first["before"], second["before"]])
        again = executable(I=100, seed=7, state=state)
        np.testing.assert_array_equal(joined, again["before"])  # bit for bit, the random numbers too
        np.testing.assert_array_equal(second.state["w"], again.state["w"])
        np.testing.assert_allclose(again["before"], whole["before"], rtol=1e-12)


def test_46_bounds_that_follow_from_others() -> None:
    def program():
        t, T = tp.dim("t")
        m, M = tp.dim("m", T * 8 // 64)
        x = tp.input("x", tp.f32[8], over=t)
        y = tp.input("y", tp.f32[()], over=m)
        tp.output("block", y * 2 + 0 * x[0:T].sum())
        tp.output("count", tp.arange(0, M).sum())

    run = Everywhere(program)
    for T in (0, 1, 7, 8, 9, 17):
        M = T * 8 // 64
        y = normal(M)
        run.gives({"block": 2 * y, "count": sum(range(M))}, x=normal(T, 8), y=y)
    run.fails(ValueError, "y", x=normal(17, 8), y=normal(3))

    def blocks():
        t, T = tp.dim("t")
        m, M = tp.dim("m", T // 4)
        x = tp.input("x", tp.f32[()], over=t)
        tp.output("sum", x[4 * m : 4 * m + 4].sum())

    run = Everywhere(blocks)
    for T in SIZES:
        x = normal(T)
        run.gives({"sum": x[: T // 4 * 4].reshape(-1, 4).sum(1)}, x=x)

    def disagree():
        t, T = tp.dim("t")
        tp.output("y", tp.input("a", tp.f32[()], over=t) + tp.input("b", tp.f32[()], over=t))

    for error in Everywhere(disagree).fails(ValueError, "T = 2", a=normal(3), b=normal(2)):
        assert "'a'" in str(error)
        assert "'b'" in str(error)
        assert "T = 3" in str(error)


def test_46_a_bound_is_no_negative_number() -> None:
    def program():
        t, T = tp.dim("t")
        m, M = tp.dim("m", T - 3)
        tp.output("y", m * 2)

    try:
        run = Everywhere(program)
    except tp.ProgramError:
        assert "M" in refused(program)
        return
    run.gives({"y": [0, 2]}, T=5)
    run.gives({"y": []}, T=3)
