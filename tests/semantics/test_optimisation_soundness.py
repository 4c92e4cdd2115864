"""Cases 21 to 26: what passes must keep apart, and what they must not fold."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_support import SIZES, Everywhere, normal, ramp

import tempo_ir as tp


def test_21_what_is_alike_and_not_equal_stays_apart() -> None:
    def program():
        t, T = tp.dim("t")
        a, b = tp.input("a", tp.f32[2], over=t), tp.input("b", tp.f32[2], over=t)
        c = a > b
        tp.output("choice", tp.stack([tp.where(c, a, b), tp.where(c, b, a)]))
        tp.output("sum", tp.stack([a + b, a + b[tp.maximum(t - 1, 0)], b + a]))
        u, v = (tp.random.uniform(spec=tp.f32[2], over=t) for _ in "uv")
        tp.output("draws", tp.stack([u, v, u]))
        tp.output("steps", tp.stack([a - a[tp.maximum(t - 1, 0)], a - a]))
        tp.output("order", tp.stack([a - b, b - a, a / b, b / a]))
        first, last = tp.cumsum(a), tp.cumsum(a, reverse=True)
        tp.output("scans", tp.stack([first, last]))

    run = Everywhere(program)
    for T in SIZES:
        a, b = normal(T, 2), normal(T, 2, seed=1)
        back = np.maximum(np.arange(T) - 1, 0)
        expected = {
            "choice": np.stack([np.maximum(a, b), np.minimum(a, b)], 1),
            "sum": np.stack([a + b, a + b[back], a + b], 1), "steps": np.stack([a - a[back], a - a], 1),
            "order": np.stack([a - b, b - a, a / b, b / a], 1),
            "scans": np.stack([a.cumsum(1), a[:, ::-1].cumsum(1)[:, ::-1]], 1),
        }  # fmt: skip
        run.gives(expected, a=a, b=b)
        draws = run(a=a, b=b)["draws"]
        np.testing.assert_array_equal(draws[:, 0], draws[:, 2])
        assert T == 0 or not np.array_equal(draws[:, 0], draws[:, 1])


def test_21_two_results_of_one_host_call_stay_apart() -> None:
    class Pair:
        def both(self, t):
            return np.float32(t), np.float32(-2 * t)

    def program():
        t, T = tp.dim("t")
        first, second = tp.host(Pair).both(t, returns=(tp.f32[()], tp.f32[()]))
        tp.output("y", tp.stack([tp.exp(first), tp.exp(second)]))

    run = Everywhere(program)
    for T in SIZES:
        run.gives({"y": np.exp(np.stack([ramp(T), -2 * ramp(T)], 1))}, T=T)


@pytest.mark.parametrize("back", [False, True])
def test_22_suffix_and_prefix_sums(back: bool) -> None:
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[()], over=t)
        tp.output("y", a[0 : t + 1].sum() if back else a[t:T].sum())

    run = Everywhere(program)
    for T in SIZES:
        a = ramp(T)
        run.gives({"y": np.cumsum(a) if back else np.cumsum(a[::-1])[::-1]}, a=a)
    if not back:
        run.gives({"y": [28, 28, 27, 25, 22, 18, 13, 7]}, a=ramp(8))
        run.gives({"y": [21, 21, 20, 18, 15, 11, 6]}, a=ramp(7))


def test_23_reductions_over_a_growing_range() -> None:
    def program():
        t, T = tp.dim("t")
        a, w = tp.input("a", tp.f32[3], over=t), tp.input("w", tp.f32[()], over=t)
        past = a[0 : t + 1]
        tp.output("max", tp.max(past - 100, 0))
        tp.output("argmax", tp.argmax(past, 0))
        tp.output("weighted", tp.einsum("n,nd->d", tp.softmax(w[0 : t + 1]), past))
        tp.output("dot", tp.einsum("d,nd->n", a, past).sum())
        tp.output("min", tp.min(a[t:T]))
        tp.output("mean", tp.mean(a[0 : t + 1], 0))

    run = Everywhere(program)
    for T in (*SIZES, 70):
        a, w = normal(T, 3), 5 * normal(T, seed=1)
        rows = [a[: t + 1] for t in range(T)]
        p = [np.exp(w[: t + 1] - w[: t + 1].max()) for t in range(T)]
        expected = {
            "max": [row.max(0) - 100 for row in rows], "argmax": [row.argmax(0) for row in rows],
            "weighted": [e / e.sum() @ row for e, row in zip(p, rows, strict=True)],
            "mean": [row.mean(0) for row in rows],
        }  # fmt: skip
        shaped = {name: np.reshape(value, (T, 3)) for name, value in expected.items()}
        scalars = {"dot": [(row @ row[-1]).sum() for row in rows], "min": [a[t:].min() for t in range(T)]}
        run.gives({**shaped, **scalars}, a=a, w=w)


@pytest.mark.slow
@pytest.mark.parametrize("T", [1025])
def test_23_long_ranges_forward_and_backward(T: int) -> None:
    def program():
        t, T = tp.dim("t")
        k, q = tp.input("k", tp.f64[2], over=t), tp.input("q", tp.f64[2], over=t)
        p = tp.softmax(tp.einsum("d,nd->n", q, k[0 : t + 1]))
        y = tp.einsum("n,nd->d", p, k[0 : t + 1])
        tp.output("y", y)
        tp.output("g", tp.grad(y.sum(), k))

    import torch

    k, q = normal(T, 2, dtype=np.float64), normal(T, 2, seed=1, dtype=np.float64)
    tk = torch.from_numpy(k).requires_grad_()
    mask = torch.ones(T, T).tril().bool()
    y = torch.softmax((torch.from_numpy(q) @ tk.T).masked_fill(~mask, -torch.inf), -1) @ tk
    y.sum().backward()
    out = tp.compile(tp.program(program)())(k=k, q=q)
    np.testing.assert_allclose(out["y"], y.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(out["g"], tk.grad.numpy(), rtol=1e-8, atol=1e-10)


def test_24_vectorising_batch_and_time() -> None:
    def program():
        (b, B), (t, T) = tp.dims("b", "t")
        x = tp.input("x", tp.f32[3], over=(b, t))
        w = tp.input("w", tp.f32[3, 3])
        h = tp.tensor("h", tp.f32[3], over=(b, t))
        h[b, 0] = x
        h[b, t + 1] = tp.tanh(h @ w + x[b, t + 1])
        tp.output("h", h)
        tp.output("batch", (x @ w).sum(0) + h[0:B, t].sum())
        tp.output("rows", tp.cumsum(x[b, 0:T], 0))

    run = Everywhere(program)
    w = normal(3, 3, seed=2)
    for B, T in [(1, 1), (0, 3), (3, 0), (2, 7), (5, 8), (9, 17)]:
        x = normal(B, T, 3)
        h = np.zeros((B, T, 3))
        for t in range(T):
            h[:, t] = np.tanh(h[:, t - 1] @ w + x[:, t]) if t else x[:, 0]
        run.gives({"h": h, "batch": (x @ w).sum(2) + h.sum((0, 2)), "rows": x.cumsum(1)}, x=x, w=w)


def test_24_hosts_that_share_a_state_keep_their_order() -> None:
    log: list[tuple[str, int, int]] = []

    class Pair:
        def __init__(self) -> None:
            self.count = 0

        def __getattr__(self, name: str):
            def call(b, t, x):
                self.count += 1
                log.append((name, int(b), int(t)))
                return np.float32(self.count + x)

            if name.startswith("_"):
                raise AttributeError(name)
            return call

    def program():
        (b, B), (t, T) = tp.dims("b", "t")
        x = tp.input("x", tp.f32[()], over=(b, t))
        env = tp.host(Pair)
        first = env.first(b, t, x, returns=tp.f32[()])
        second = env.second(b, t, first * 2, returns=tp.f32[()])
        tp.output("y", tp.stack([first, second]))

    run = Everywhere(program)
    for B, T in [(1, 1), (2, 3), (3, 2), (0, 2)]:
        x = normal(B, T)
        count = 2 * np.arange(B * T).reshape(B, T) + 1
        first = count + x
        for executable in (run.reference, run.cpu, *run.others.values()):
            log.clear()
            y = executable(x=x)["y"]
            np.testing.assert_allclose(y, np.stack([first, count + 1 + 2 * first], -1), rtol=1e-5)
            assert log == [(name, b, t) for b in range(B) for t in range(T) for name in ("first", "second")]


def test_25_nothing_is_folded_that_may_be_nan() -> None:
    def program():
        x = tp.input("x", tp.f32[4])
        n = tp.input("n", tp.i64[4])
        tp.output("zero", x * 0.0)
        tp.output("difference", x - x)
        tp.output("ratio", x / x)
        tp.output("sum", tp.sum(tp.full((4,), 0.0) * x))
        tp.output("dot", tp.full((4,), 0.0) @ x)
        tp.output("power", x**0)
        tp.output("equal", tp.equal(x, x))
        tp.output("least", tp.maximum(x, -np.inf))
        tp.output("integers", n * 0 + (n - n))
        tp.output("signed", x + 0.0)
        tp.output("negative", 0.0 - x)

    x = np.array([np.nan, np.inf, -0.0, 2], np.float32)
    n = np.array([-3, 0, 2**62, 5])
    with np.errstate(invalid="ignore"):
        expected = {
            "zero": x * 0, "difference": x - x, "ratio": [np.nan, np.nan, np.nan, 1], "sum": np.nan, "dot": np.nan,
            "power": np.ones(4), "equal": x == x, "least": x, "integers": np.zeros(4), "signed": x, "negative": -x,
        }  # fmt: skip
    run = Everywhere(program)
    run.gives(expected, x=x, n=n)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
def test_26_discounted_returns_are_stable(gamma: float) -> None:
    def program():
        t, T = tp.dim("t")
        r = tp.input("r", tp.f64[()], over=t)
        g = tp.tensor("g", tp.f64[()], over=t)
        g[T - 1] = r
        g[t] = r + gamma * g[t + 1]
        tp.output("g", g)

    run = Everywhere(program)
    for T in SIZES:
        run.gives({"g": [sum(gamma**k for k in range(T - t)) for t in range(T)]}, r=np.ones(T))
    T = 2000
    left = T - np.arange(T)
    expected = left if gamma == 1 else np.ones(T) if gamma == 0 else 10 * (1 - 0.9**left)
    np.testing.assert_allclose(run.cpu(r=np.ones(T))["g"], expected, rtol=1e-12)


def test_21_sums_and_transposes_of_products_read_over_time() -> None:
    """The axis of a slice has no letter in the contraction that is read."""

    def program():
        t, T = tp.dim("t")
        x, w = tp.input("x", tp.f64[2, 3], over=t), tp.input("w", tp.f64[3, 4])
        tp.output("transposed", (x @ w)[0:T].transpose(2, 0, 1))
        tp.output("summed", (x @ (w * 2))[0:T].sum(0))
        tp.output("rows", (x @ (w * 3))[0:T].sum(1))
        tp.output("window", (x @ (w * 4))[t : tp.minimum(t + 2, T)].transpose(1, 2, 0).sum(2))
        tp.output("inner", tp.einsum("nij,jk->nk", x[0:T], w).T)

    run = Everywhere(program)
    for T in SIZES:
        x, w = normal(T, 2, 3, dtype=np.float64), normal(3, 4, dtype=np.float64, seed=1)
        y = x @ w
        window = np.reshape([4 * y[t : t + 2].sum(0) for t in range(T)], (T, 2, 4))
        expected = {
            "transposed": y.transpose(2, 0, 1), "summed": 2 * y.sum(0), "rows": 3 * y.sum(1), "window": window,
            "inner": y.sum(1).T,
        }  # fmt: skip
        run.gives(expected, x=x, w=w)


def test_21_slices_of_slices_with_steps() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[7], over=t)
        tp.output("axes", x[..., 0:7:2][..., 0:4] + x[..., 1:7:2][..., 0:3:2][..., -1:])
        tp.output("more", x[..., 0:7:3][..., 1:3:2])
        tp.output("square", tp.einsum("k,k->", x[..., 0:7:4][..., 0:2], x[..., 0:7:4]))
        tp.output("point", x[..., 0:7:3][..., -1])
        tp.output("steps", tp.cumsum(x[0:T:3], 0)[..., 0:7:5])

    run = Everywhere(program)
    for T in SIZES:
        x = normal(T, 7)
        run.gives(
            {
                "axes": x[:, ::2] + x[:, 5:6], "more": x[:, 3:4], "square": (x[:, ::4] ** 2).sum(1), "point": x[:, 6],
                "steps": np.cumsum(x[::3], 0)[:, ::5],
            },
            x=x,
        )  # fmt: skip
