"""Corners of the language: preconditions, attention windows, NaN, run-time errors, hosts that fail."""

from __future__ import annotations

import numpy as np
import pytest
from frontend_support import record, run

import tempo_ir as tp
from tempo_ir.reference.errors import ExecutionError


def test_reads_beyond_a_small_bound_are_a_precondition() -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", tp.stack([a[0:4].sum(), a[3:7].sum()]))

    recorded = record(program)
    assert str(recorded).startswith("sdg.program @program dims(t: T) where T >= 7")
    assert recorded.run(a=np.arange(9, dtype=np.float32))["y"].tolist() == [6, 18]
    with pytest.raises(tp.ProgramError, match=r"'program' needs T >= 7, got T = 6: sdg.sum .* reads %a\[3:7\]"):
        recorded.run(a=np.zeros(6, np.float32))


def test_a_mean_over_an_axis_that_may_be_empty_is_a_precondition() -> None:
    def program():
        t, T = tp.dim("t")
        tp.output("y", tp.mean(tp.input("a", tp.f32[()], over=t)[0:T]))

    recorded = record(program)
    assert "where T >= 1" in str(recorded)
    with pytest.raises(tp.ProgramError, match="needs T >= 1, got T = 0"):
        recorded.run(a=np.zeros(0, np.float32))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, window: int) -> np.ndarray:
    """Causal attention with grouped queries; row t sees keys t - window + 1 to t: (T, kv, group, d)."""
    rows = []
    for t in range(len(q)):
        past = slice(max(0, t - window + 1), t + 1)
        score = np.einsum("hgd,nhd->hgn", q[t], k[past])
        p = np.exp(score - score.max(-1, keepdims=True))
        rows.append(np.einsum("hgn,nhd->hgd", p / p.sum(-1, keepdims=True), v[past]))
    return np.stack(rows)


@pytest.mark.parametrize("window", [1, 3, 7, 8, 16])
@pytest.mark.parametrize(("kv_heads", "group", "width"), [(2, 3, 8), (1, 7, 5)])
def test_windowed_attention(window: int, kv_heads: int, group: int, width: int) -> None:
    def program():
        t, T = tp.dim("t")
        q = tp.input("q", tp.f64[kv_heads, group, width], over=t)
        k, v = (tp.input(name, tp.f64[kv_heads, width], over=t) for name in "kv")
        past = slice(tp.maximum(0, t - window + 1), t + 1)
        score = tp.einsum("hgd,nhd->hgn", q, k[past])
        tp.output("o", tp.einsum("hgn,nhd->hgd", tp.softmax(score), v[past]))

    generator = np.random.default_rng(0)
    q = generator.normal(size=(7, kv_heads, group, width))
    k, v = generator.normal(size=(2, 7, kv_heads, width))
    np.testing.assert_allclose(run(program, q=q, k=k, v=v)["o"], attention(q, k, v, window), rtol=1e-10)


def test_nan_propagates_and_masked_rows_are_zero() -> None:
    def program():
        x = tp.input("x", tp.f32[4])
        tp.output("max", tp.max(x))
        tp.output("argmax", tp.argmax(x))
        tp.output("softmax", tp.softmax(tp.full((3,), -np.inf)))
        tp.output("empty", tp.stack([tp.sum(x[2:1]), tp.prod(x[2:1]), tp.max(x[2:1])]))
        tp.output("guarded", tp.where(x > 0, tp.sqrt(x), 0))

    out = run(program, x=np.array([1, np.nan, 3, np.nan], np.float32))
    assert np.isnan(out["max"])
    assert out["argmax"] == 1
    assert out["softmax"].tolist() == [0, 0, 0]
    assert out["empty"].tolist() == [0, 1, -np.inf]
    assert out["guarded"][0] == 1


def test_run_time_errors_name_the_op_the_point_and_the_line() -> None:
    def program():
        t, T = tp.dim("t")
        n, table = tp.input("n", tp.i64[()], over=t), tp.input("table", tp.f32[4])
        tp.output("row", table.take(n))
        tp.output("quotient", 6 // n)

    line = program.__code__.co_firstlineno
    table = np.zeros(4, np.float32)
    with pytest.raises(ExecutionError) as raised:
        run(program, n=np.array([1, 2, 7]), table=table)
    assert f"test_semantics.py:{line + 3})" in str(raised.value)
    assert "t = 2" in str(raised.value)
    with pytest.raises(ExecutionError, match="division by zero") as raised:
        run(program, n=np.array([1, 0, 3]), table=table)
    assert f"test_semantics.py:{line + 4})" in str(raised.value)
    assert "t = 1" in str(raised.value)


def test_an_exception_of_a_host_is_raised_with_the_point_and_the_line() -> None:
    class Fragile:
        def step(self, t):
            if t == 3:
                raise KeyError("broken")
            return np.float32(t)

    def program():
        t, T = tp.dim("t")
        tp.output("y", tp.host(Fragile).step(t, returns=tp.f32[()]))

    recorded = record(program)
    with pytest.raises(KeyError, match="broken") as raised:
        recorded.run(T=5)
    notes = "\n".join(raised.value.__notes__)
    assert "t = 3" in notes
    assert f"test_semantics.py:{program.__code__.co_firstlineno + 2}" in notes
    assert recorded.run(T=3)["y"].tolist() == [0, 1, 2]


def test_random_ops_and_operand_orders_stay_apart() -> None:
    def program():
        t, T = tp.dim("t")
        a, b = tp.input("a", tp.f32[()], over=t), tp.input("b", tp.f32[()], over=t)
        c = a > b
        tp.output("y", tp.stack([tp.where(c, a, b), tp.where(c, b, a), a + b, a + b[tp.maximum(t - 1, 0)]]))

    a, b = np.array([1, 5, 2], np.float32), np.array([3, 4, 9], np.float32)
    expected = np.stack([np.maximum(a, b), np.minimum(a, b), a + b, a + b[[0, 0, 1]]], 1)
    np.testing.assert_array_equal(run(program, a=a, b=b)["y"], expected)
