"""Reading at indices: points, slices, negative literals, missing entries, axes."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_support import error_of, record, run

import tempo_ir as tp

SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)


def ramp(steps: int) -> np.ndarray:
    return np.arange(steps, dtype=np.float32)


def of_ramp(read, steps: int) -> np.ndarray:
    """The output `read(a, t, T)` where `a[t] = t`."""

    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", read(a, t, T))

    return run(program, a=ramp(steps))["y"]


@pytest.mark.parametrize("steps", SIZES)
def test_sums_over_slices(steps: int) -> None:
    a = ramp(steps)
    cases = [
        (lambda a, t, T: a[0 : t + 1].sum(), lambda t: a[: t + 1]),
        (lambda a, t, T: a[t:T].sum(), lambda t: a[t:]),
        (lambda a, t, T: a[tp.maximum(0, t - 2) : t + 1].sum(), lambda t: a[max(0, t - 2) : t + 1]),
        (lambda a, t, T: a[t : tp.minimum(t + 3, T)].sum(), lambda t: a[t : t + 3]),
        (lambda a, t, T: a[t:t].sum(), lambda t: a[t:t]),
    ]
    for read, expected in cases:
        np.testing.assert_array_equal(of_ramp(read, steps), [expected(t).sum() for t in range(steps)])


def test_points() -> None:
    assert of_ramp(lambda a, t, T: a[t % 2], 6).tolist() == [0, 1, 0, 1, 0, 1]
    assert of_ramp(lambda a, t, T: a[t // 2], 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert of_ramp(lambda a, t, T: a[T - 1 - t], 6).tolist() == [5, 4, 3, 2, 1, 0]
    assert of_ramp(lambda a, t, T: a[-1], 6).tolist() == 5
    assert of_ramp(lambda a, t, T: a[tp.minimum(t + 3, T - 1)], 6).tolist() == [3, 4, 5, 5, 5, 5]


def test_number_and_order_of_dims() -> None:
    def program():
        (a, A), (b, B) = tp.dims("a", "b")
        x = tp.input("x", tp.f32[2, 3], over=(a, b))
        assert x[0].dims == ("b",)
        assert x[0, 1].dims == ()
        assert x[a + 1, b].dims == ("a", "b")
        assert x[0:5, b].dims == ("b",)
        assert x[0:5, b].shape == (5, 2, 3)
        assert x[0 : a + 1].dims == ("a", "b")
        assert str(x[0 : a + 1].shape) == "(a + 1, 2, 3)"
        assert str(x[:, 0:4].shape) == "(A, 4, 2, 3)"
        assert x[..., 1].shape == (2,)
        assert x[a, b, 0].shape == (3,)
        assert x[..., None].shape == (2, 3, 1)
        assert x[..., -1:].shape == (2, 1)
        assert x[..., 0:100].shape == (2, 3)  # numbers beyond a known extent are clipped, as in numpy
        tp.output("x", x)

    record(program)


def test_two_slices_put_their_axes_in_front_in_the_order_of_the_dims() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        c = tp.input("c", tp.i64[()], over=(i, t))
        tp.output("rows", c[i, 0:T].sum())
        tp.output("all", c[0:I, 0:T].sum())
        tp.output("table", c[:, :])

    values = 10 * np.arange(3)[:, None] + np.arange(3)
    out = run(program, c=values)
    assert out["rows"].tolist() == [3, 33, 63]
    assert out["all"] == 99
    np.testing.assert_array_equal(out["table"], values)


def test_slices_of_length_one_keep_their_axis() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        assert a[t : t + 1].shape == (1,)
        tp.output("all", a[0:T])
        tp.output("one", a[t : t + 1])

    out = run(program, a=ramp(1))
    assert out["all"].shape == (1,)
    assert out["one"].shape == (1, 1)


def test_steps() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.i64[()], over=t)
        tp.output("y", tp.cumsum(a[0:T:3]))

    for steps in (0, 1, 3, 9, 10, 11):
        a = np.arange(1, steps + 1)
        np.testing.assert_array_equal(run(program, a=a)["y"], np.cumsum(a[::3]))


def test_a_read_of_a_read_is_one_index() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        back = x[tp.maximum(t - 1, 0)]
        tp.output("y", back[0 : t + 1].sum())
        tp.output("z", x[t, 1:3][T - 1 - t, 0])
        tp.output("w", x[0 : t + 1][T - 1])

    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    out = run(program, x=x)
    np.testing.assert_array_equal(out["y"], [x[np.maximum(np.arange(t + 1) - 1, 0)].sum() for t in range(5)])
    np.testing.assert_array_equal(out["z"], x[::-1, 1])
    np.testing.assert_array_equal(out["w"], x)


def test_axes_are_cut_by_dims_and_gathered_by_tensors() -> None:
    def program():
        (m, M) = tp.dim("m", 3)
        ids = tp.input("ids", tp.i64[2])
        x = tp.input("x", tp.f32[6, 4])
        tp.output("block", x[2 * m : 2 * (m + 1)])
        tp.output("row", x[2 * m])
        tp.output("gathered", x[ids])
        tp.output("columns", x[:, ids])

    x, ids = np.arange(24, dtype=np.float32).reshape(6, 4), np.array([3, 1])
    out = run(program, x=x, ids=ids)
    np.testing.assert_array_equal(out["block"], x.reshape(3, 2, 4))
    np.testing.assert_array_equal(out["row"], x[::2])
    np.testing.assert_array_equal(out["gathered"], x[ids])
    np.testing.assert_array_equal(out["columns"], x[:, ids])


def error_of_reading(read) -> str:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        x = tp.input("x", tp.f32[4], over=(i, t))
        tp.output("y", read(x, i, t))

    return error_of(program)


def test_errors_of_indices() -> None:
    assert error_of_reading(lambda x, i, t: x[i, t, 0, 0]) == (
        "too many indices: 'x' takes 3, one per dim (i, t) and one per axis of f32[4], got 4"
    )
    assert "an index has at most one '...'" in error_of_reading(lambda x, i, t: x[..., 0, ...])
    assert "index 7 is outside of axis 0 of 'x', which has 4 elements" in error_of_reading(lambda x, i, t: x[..., 7])
    assert "is a tensor, known only when the program runs" in error_of_reading(
        lambda x, i, t: x[x[..., 0].cast(tp.i64)]
    )
    assert "the step of a slice is a positive number, got -1" in error_of_reading(lambda x, i, t: x[i, ::-1])
    assert "'t < i' selects points of a definition" in error_of_reading(lambda x, i, t: x[i, t < i])
    assert "is a float: use an integer, a dim or a slice" in error_of_reading(lambda x, i, t: x[0.5])
    assert "use .take(ids, axis)" in error_of_reading(lambda x, i, t: x[..., [0, 1]])


@pytest.mark.parametrize("index", ["t - 1", "t + 3", "2 * t"])
def test_reads_out_of_range_show_the_points(index: str) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", a[eval(index, {"t": t})])

    text = error_of(program)
    assert f"[{index}]" in text
    assert "t = " in text
