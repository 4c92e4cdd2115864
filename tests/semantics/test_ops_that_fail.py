"""What can fail when it runs fails where something needs it, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_support import Everywhere

import tempo_ir as tp
from tempo_ir.reference.errors import ExecutionError

SIZES = (0, 1, 3, 4, 5)


def late(value: tp.Tensor, k: tp.Tensor, t: tp.Dim, over: tuple[tp.Dim, ...] = ()) -> tp.Tensor:
    """`k` where t < 3, `k + value` later."""
    y = tp.tensor("y", tp.i64[()], over=over or t)
    y[t < 3] = k
    y[over or t] = k + value
    return y


def test_a_division_that_only_later_steps_need() -> None:
    def program():
        t, _ = tp.dim("t")
        k, n = tp.input("k", tp.i64[()], over=t), tp.input("n", tp.i64[()])
        m = n * 2
        tp.output("y", late(12 // m + 7 % n, k, t))

    run = Everywhere(program)
    for T in SIZES:
        k = np.arange(T)
        run.gives({"y": np.where(k < 3, k, k + 4)}, k=k, n=np.int64(2))
        if T < 4:
            run.gives({"y": k}, k=k, n=np.int64(0))
        else:
            run.fails(ExecutionError, "integer division by zero", k=k, n=np.int64(0))


def test_rows_by_number_that_only_later_steps_need() -> None:
    def program():
        t, _ = tp.dim("t")
        k, n, table = tp.input("k", tp.i64[()], over=t), tp.input("n", tp.i64[()]), tp.input("table", tp.i64[3])
        tp.output("y", late(table.take(n) * 2, k, t))

    run = Everywhere(program)
    table = np.array([5, 6, 7])
    for T in SIZES:
        k = np.arange(T)
        run.gives({"y": np.where(k < 3, k, k + 14)}, k=k, n=np.int64(2), table=table)
        if T < 4:
            run.gives({"y": k}, k=k, n=np.int64(3), table=table)
        else:
            run.fails(ExecutionError, "id 3 is outside of the 3 rows", k=k, n=np.int64(3), table=table)


def test_rows_by_number_of_a_range_that_may_be_empty() -> None:
    def program():
        t, T = tp.dim("t")
        k, n = tp.input("k", tp.i64[()], over=t), tp.input("n", tp.i64[()])
        tp.output("y", k[0:T].take(n, axis=0) + k)

    run = Everywhere(program)
    for T in SIZES:
        k = np.arange(T)
        run.gives({"y": k if T == 0 else k + k[0]}, k=k, n=np.int64(0))
        if T > 0:
            run.fails(ExecutionError, f"id {T} is outside", k=k, n=np.int64(T))


@pytest.mark.parametrize("steps_are_outer", [False, True])
def test_a_division_per_row_that_only_later_steps_need(steps_are_outer: bool) -> None:
    def program():
        first, second = ("t", "i") if steps_are_outer else ("i", "t")
        dims = {name: tp.dim(name)[0] for name in (first, second)}
        over = tuple(dims.values())
        k, n = tp.input("k", tp.i64[()], over=over), tp.input("n", tp.i64[()], over=dims["i"])
        tp.output("y", late(6 // n, k, dims["t"], over))

    run = Everywhere(program)
    for T in SIZES:
        step, row = np.meshgrid(np.arange(T), np.arange(2), indexing="ij" if steps_are_outer else "xy")
        k, divided = 10 * row + step, np.array([3, 6])[row]
        run.gives({"y": np.where(step < 3, k, k + divided)}, k=k, n=np.array([2, 1]))
        if T < 4:
            run.gives({"y": k}, k=k, n=np.array([2, 0]))
        else:
            run.fails(ExecutionError, r"(?s)division by zero.*i = 1", k=k, n=np.array([2, 0]))


def test_points_in_between_that_nothing_needs() -> None:
    def program():
        t, T = tp.dim("t")
        k, n = tp.input("k", tp.i64[()], over=t), tp.input("n", tp.i64[()], over=t)
        weights = tp.input("weights", tp.f32[2, 2])
        divided = k // n
        tp.output("even", divided[t // 2 * 2])
        tp.output("rows", tp.cast(tp.stack([divided, divided + 1]), tp.f32)[t // 2 * 2] @ weights)
        tp.output("sum", divided[0 : t // 2 * 2 : 2].sum(0))
        s = tp.tensor("s", tp.i64[()], over=t)
        s[0] = 0
        s[t + 1] = s + divided[t // 2 * 2]
        tp.output("running", s)

    run = Everywhere(program)
    weights = np.array([[1, 2], [3, 4]], np.float32)
    for T in SIZES:
        k = np.arange(T)
        odd = k % 2 == 1
        n = np.where(odd, 0, 2)
        even = (k - k % 2) // 2
        run.gives(
            {
                "even": even,
                "rows": np.stack([even, even + 1], 1).astype(np.float32) @ weights,
                "sum": [sum(even[0 : step - step % 2 : 2]) for step in k],
                "running": np.cumsum(even) - even,
            },
            k=k,
            n=n,
            weights=weights,
        )
        if T > 2:
            n[2] = 0
            run.fails(ExecutionError, r"(?s)division by zero.*t = 2", k=k, n=n, weights=weights)


def test_divisors_that_are_constant_cannot_fail() -> None:
    def program():
        t, _ = tp.dim("t")
        k, n = tp.input("k", tp.i64[()], over=t), tp.input("n", tp.i64[()])
        tp.output("y", late(n // -3, k, t))

    compiled = tp.compile(tp.program(program)())
    assert "loop.if T" not in str(compiled.levels.loop)
    assert "loop.check" not in str(compiled.levels.lowered)
    np.testing.assert_array_equal(compiled(k=np.arange(5), n=np.int64(7))["y"], [0, 1, 2, 0, 1])
