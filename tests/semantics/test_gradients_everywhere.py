"""Cases 27 to 31: gradients, `w[t] = t + 1` unless said."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from semantics_support import SIZES, Everywhere, normal, refused

import tempo_ir as tp

READS = {
    "all": (lambda x, w, t, T: x[0:T].sum(), lambda x, w, t: x.sum() * (t == 0), [1] * 4),  # once, not per t
    "all weighted": (lambda x, w, t, T: x[0:T].sum() * w, lambda x, w, t: x.sum() * w[t], [10] * 4),
    "past": (lambda x, w, t, T: x[0 : t + 1].sum() * w, lambda x, w, t: x[: t + 1].sum() * w[t], [10, 9, 7, 4]),
    "before": (lambda x, w, t, T: 3 * x[tp.maximum(t - 1, 0)], lambda x, w, t: 3 * x[max(t - 1, 0)], [6, 3, 3, 0]),
    "after": (
        lambda x, w, t, T: 3 * x[tp.minimum(t + 1, T - 1)],
        lambda x, w, t: 3 * x[min(t + 1, len(x) - 1)],
        [0, 3, 3, 6],
    ),
    "first": (lambda x, w, t, T: x[0] * w, lambda x, w, t: x[0] * w[t], [10, 0, 0, 0]),
    "two before": (lambda x, w, t, T: w * x[tp.maximum(t - 2, 0)], lambda x, w, t: w[t] * x[max(t - 2, 0)], None),
    "reversed": (lambda x, w, t, T: w * x[T - 1 - t], lambda x, w, t: w[t] * x[len(x) - 1 - t], [4, 3, 2, 1]),
    "half": (lambda x, w, t, T: w * x[t // 2], lambda x, w, t: w[t] * x[t // 2], [3, 7, 0, 0]),
    "window": (
        lambda x, w, t, T: w * x[tp.maximum(t - 1, 0) : tp.minimum(t + 2, T)].sum(),
        lambda x, w, t: w[t] * x[max(t - 1, 0) : t + 2].sum(),
        [3, 6, 9, 7],
    ),
    "step": (lambda x, w, t, T: w * x[0:T:3].sum(), lambda x, w, t: w[t] * x[::3].sum(), [10, 0, 0, 10]),
    "attention over a window": (
        lambda x, w, t, T: (tp.softmax(x[tp.maximum(0, t - 2) : t + 1] * w) * x[tp.maximum(0, t - 2) : t + 1]).sum(),
        lambda x, w, t: (torch.softmax(x[max(0, t - 2) : t + 1] * w[t], 0) * x[max(0, t - 2) : t + 1]).sum(),
        None,
    ),
    "attention ahead": (
        lambda x, w, t, T: (tp.softmax(x[t : tp.minimum(t + 3, T)] * w) * x[t : tp.minimum(t + 3, T)]).sum(),
        lambda x, w, t: (torch.softmax(x[t : t + 3] * w[t], 0) * x[t : t + 3]).sum(),
        None,
    ),
    "attention": (
        lambda x, w, t, T: (tp.softmax(x[0 : t + 1] * w) * x[0 : t + 1]).sum(),
        lambda x, w, t: (torch.softmax(x[: t + 1] * w[t], 0) * x[: t + 1]).sum(),
        None,
    ),
}


def in_torch(loss, steps: int, x: np.ndarray) -> np.ndarray:
    """The gradient of the sum over t, by torch."""
    tx = torch.from_numpy(x).requires_grad_()
    w = torch.arange(1.0, steps + 1, dtype=torch.float64)
    total = sum((loss(tx, w, t) for t in range(steps)), torch.zeros((), dtype=torch.float64) + 0 * tx.sum())
    total.backward()
    return tx.grad.numpy()


@pytest.mark.parametrize("read", READS)
def test_27_28_reads_in_pieces(read: str) -> None:
    ours, theirs, stated = READS[read]

    def program():
        t, T = tp.dim("t", at_least=1 if read == "first" else None)
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        tp.output("g", tp.grad(ours(x, w, t, T), x))

    run = Everywhere(program)
    for T in SIZES[1:] if read == "first" else SIZES:
        x = normal(T, dtype=np.float64)
        run.gives({"g": in_torch(theirs, T, x)}, x=x, w=np.arange(1.0, T + 1))
    if stated is not None:
        run.gives({"g": stated}, x=np.zeros(4), w=np.arange(1.0, 5))


def test_28_modular_reads_and_two_before() -> None:
    def program():
        t, T = tp.dim("t", at_least=2)
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        tp.output("g", tp.grad(3 * x[t % 2] * w, x))

    run = Everywhere(program)
    for T in SIZES[2:]:
        w = np.arange(1.0, T + 1)
        expected = np.zeros(T)
        np.add.at(expected, np.arange(T) % 2, 3 * w)
        run.gives({"g": expected}, x=np.zeros(T), w=w)
    run.gives({"g": [6, 6, 0, 0]}, x=np.zeros(4), w=np.ones(4))


def test_29_through_time() -> None:
    def program():
        t, T = tp.dim("t")
        w, v = tp.input("w", tp.f64[()], over=t), tp.input("v", tp.f64[()])
        h, k = tp.tensor("h", tp.f64[()], over=t), tp.tensor("k", tp.f64[()], over=t)
        h[0] = w
        h[t] = h[t - 1] * w
        k[0] = v
        k[t] = k[t - 1] * v
        tp.output("g", tp.grad(h[T - 1], w))
        tp.output("shared", tp.grad(k[T - 1], v))

    run = Everywhere(program)
    for T in SIZES[1:]:
        run.gives({"g": np.full(T, 2.0 ** (T - 1)), "shared": T * 2.0 ** (T - 1)}, w=np.full(T, 2.0), v=np.float64(2))
    run.gives({"g": [8] * 4, "shared": 32}, w=np.full(4, 2.0), v=np.float64(2))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_29_recurrent_cells_equal_torchs(kind: str) -> None:
    from tempo_ir import nn

    def program():
        t, T = tp.dim("t", at_least=1)
        x = tp.input("x", tp.f64[2, 3], over=t)
        h, c = (tp.tensor(name, tp.f64[2, 4], over=t) for name in "hc")
        if kind == "RNN":
            cell = {"ih": tp.parameter("weight_ih", tp.f64[4, 3]), "hh": tp.parameter("weight_hh", tp.f64[4, 4])}
            new_h, new_c = tp.tanh(x @ cell["ih"].T + h @ cell["hh"].T), c
        else:
            cell = getattr(nn, kind + "Cell")(3, 4, name="cell", dtype=tp.f64)
            new_h, new_c = (cell(x, h), c) if kind == "GRU" else cell(x, (h, c))
        h[0], h[t + 1] = 0.0, new_h
        c[0], c[t + 1] = 0.0, new_c
        tp.output("h", new_h)
        tp.output("gradient", tp.grad(tp.mean(new_h**2), cell))

    torch.manual_seed(0)
    twin = getattr(torch.nn, kind + "Cell")(3, 4, bias=kind != "RNN").double()
    prefix = "" if kind == "RNN" else "cell."
    state = {f"{prefix}{name}": value.detach().numpy().copy() for name, value in twin.named_parameters()}
    run = Everywhere(program)
    for T in (1, 2, 7):
        x = normal(T, 2, 3, dtype=np.float64)
        hidden, loss, values = None, 0.0, []
        for row in torch.from_numpy(x):
            hidden = twin(row, hidden)
            values.append(hidden if kind != "LSTM" else hidden[0])
            loss = loss + (values[-1] ** 2).mean()
        twin.zero_grad()
        loss.backward()
        expected = {"h": torch.stack(values).detach().numpy()}
        for name, value in twin.named_parameters():
            expected[f"gradient.{name.removeprefix('weight_') if kind == 'RNN' else name}"] = value.grad.numpy()
        run.gives(expected, x=x, state=state)


def test_30_sums_over_dims_and_the_rules_of_operations() -> None:
    def program():
        (i, _), (t, _), (b, _) = tp.dims("i", "t", "b")
        x = tp.input("x", tp.f64[3], over=(i, t, b))
        w = tp.input("w", tp.f64[()], over=i)
        tp.output("g", tp.grad(tp.sum(x * w), w))

    run = Everywhere(program)
    for I, T, B in [(1, 1, 1), (2, 4, 3), (3, 0, 2), (0, 2, 2)]:
        x = normal(I, T, B, 3, dtype=np.float64)
        run.gives({"g": x.sum((1, 2, 3))}, x=x, w=np.ones(I))


OPERATIONS = {
    "sort": (lambda x, w: tp.sum(tp.sort(x) * w), [3, 1, 2], [30, 10, 20]),
    "ties": (lambda x, w: tp.sum(tp.maximum(x, np.full(3, 1.0))), [1, 0, 2], [0.5, 0, 1]),
    "same": (lambda x, w: tp.sum(tp.maximum(x, x)), [1, 2, 3], [1, 1, 1]),
    "embedding": (lambda x, w: tp.sum(x.take(np.array([0, 1, 1, 1, 2]))), [1, 2, 3], [1, 3, 1]),
    "masked softmax": (
        lambda x, w: tp.sum(tp.softmax(tp.where(x > 99, x, -np.inf)) * w), [1, 2, 3], [0, 0, 0],
    ),
    "where": (lambda x, w: tp.sum(tp.where(x > 0, tp.sqrt(x), 0.0)), [-1, 0, 4], [0, 0, 0.25]),
    "where of log": (lambda x, w: tp.sum(tp.where(x > 0, tp.ln(x), 0.0)), [-1, 0, 4], [0, 0, 0.25]),
    "max": (lambda x, w: tp.max(x), [1, 3, 2], [0, 1, 0]),
    "prod": (lambda x, w: tp.prod(x), [0, 3, 2], [6, 0, 0]),
    "cumprod": (lambda x, w: tp.sum(tp.cumprod(x) * w), [1, 3, 2], [10 + 60 + 180, 20 + 60, 90]),
    "cumsum": (lambda x, w: tp.sum(tp.cumsum(x) * w), [1, 3, 2], [60, 50, 30]),
    "abs": (lambda x, w: tp.sum(tp.abs(x)), [-1, 0, 2], [-1, 0, 1]),
    "reverse": (lambda x, w: tp.sum(tp.reverse(x) * w), [1, 3, 2], [30, 20, 10]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_30_31_rules_of_operations(name: str) -> None:
    loss, x, expected = OPERATIONS[name]

    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f64[3], over=t)
        tp.output("g", tp.grad(loss(x, np.array([10.0, 20.0, 30.0])), x))

    run = Everywhere(program)
    for T in (0, 1, 5):
        run.gives({"g": np.tile(np.array(expected, np.float64), (T, 1))}, x=np.tile(np.array(x, np.float64), (T, 1)))


def test_31_a_leaf_that_the_loss_does_not_reach() -> None:
    def program(allow_unused=False):
        x, y = tp.input("x", tp.f64[2]), tp.input("y", tp.f64[2])
        tp.output("g", tp.grad(tp.sum(x), y, allow_unused=allow_unused))

    with pytest.raises(Exception, match="does not depend on %y"):
        tp.compile(tp.program(program)())
    Everywhere(program, allow_unused=True).gives({"g": [0, 0]}, x=np.ones(2), y=np.ones(2))

    def through_a_host():
        x = tp.input("x", tp.f64[2])
        tp.output("g", tp.grad(tp.sum(tp.host(dict).get(x * 2, returns=tp.f64[2])), x))

    with pytest.raises(Exception, match="get"):
        tp.compile(tp.program(through_a_host)())
    assert "a gradient is taken of a scalar" in refused(
        lambda: tp.output("g", tp.grad(x := tp.input("x", tp.f64[2]), x))
    )


# ---- more forms, each compared with torch on every way to run it


def two_dims(read, shape) -> None:
    """The gradients by `x` and by the weight of `w * x[read]`, where `read(i, t, I, T, least, most)` is over (i, t)."""

    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        x = tp.input("x", tp.f64[()], over=[(i, t)[n] for n in shape])
        w = tp.input("w", tp.f64[()], over=(i, t))
        value = (x * x)[read(i, t, I, T, tp.minimum, tp.maximum)]
        loss = tp.sum(tp.sin(value if value.ndim == 0 else tp.cumsum(value))) * w
        tp.output("x", tp.grad(loss, x))
        tp.output("w", tp.grad(loss, w))

    run = Everywhere(program)
    for size in [(0, 2), (2, 0), (1, 1), (2, 3), (3, 7), (5, 2)]:
        x, w = normal(*[size[n] for n in shape], dtype=np.float64), normal(*size, seed=1, dtype=np.float64)
        tx, tw = (torch.from_numpy(array).requires_grad_() for array in (x, w))
        total = 0 * (tx.sum() + tw.sum())
        for point in np.ndindex(*size):
            value = (tx * tx)[read(*point, *size, min, max)]
            total = total + torch.sin(value if value.ndim == 0 else torch.cumsum(value, 0)).sum() * tw[point]
        total.backward()
        run.gives({"x": tx.grad.numpy(), "w": tw.grad.numpy()}, x=x, w=w)


ACROSS = {
    "row": (lambda i, t, I, T, least, most: (i, slice(0, T)), (0, 1)),
    "lesser of both": (lambda i, t, I, T, least, most: (i, least(i, t)), (0, 1)),
    "range from a sum": (lambda i, t, I, T, least, most: slice(least(i + t, T), T), (1,)),
    "steps from the other dim": (lambda i, t, I, T, least, most: slice(least(i, T), T, 2), (1,)),
}


@pytest.mark.parametrize("form", ACROSS)
def test_28_reads_across_dims(form: str) -> None:
    two_dims(*ACROSS[form])


def test_28_readers_over_a_part_of_the_points() -> None:
    def program():
        (i, _), (t, _) = tp.dims("i", "t")
        v, w = tp.input("v", tp.f64[()]), tp.input("w", tp.f64[()], over=(i, t))
        y = tp.tensor("y", tp.f64[()], over=(i, t))
        y[t < i] = tp.sin(v * w)
        y[(t + i) % 2 == 0] = v * w
        y[i, t] = w
        tp.output("v", tp.grad(y * y, v))
        tp.output("w", tp.grad(y * y, w))

    run = Everywhere(program)
    for size in [(0, 2), (1, 1), (3, 2), (5, 7)]:
        v, w = np.float64(0.7), normal(*size, dtype=np.float64)
        tv, tw = torch.tensor(v, requires_grad=True), torch.from_numpy(w).requires_grad_()
        i, t = (torch.from_numpy(axis) for axis in np.indices(size))
        y = torch.where(t < i, torch.sin(tv * tw), torch.where((t + i) % 2 == 0, tv * tw, tw))
        (y * y).sum().backward()
        run.gives({"v": tv.grad.numpy(), "w": tw.grad.numpy()}, v=v, w=w)


def test_29_recurrences_of_higher_order_by_turns_and_backwards() -> None:
    def program():
        t, T = tp.dim("t")
        x, w = tp.input("x", tp.f64[()], over=t), tp.input("w", tp.f64[()])
        h, k, b = (tp.tensor(name, tp.f64[()], over=t) for name in "hkb")
        h[t < 2] = x
        h[t] = tp.tanh(h[t - 1] * w + h[t - 2] * k[t - 1])
        k[0] = x * x
        k[t] = tp.sin(h[t - 1]) + k[t - 1] * w
        b[T - 1] = k
        b[t] = tp.cos(b[t + 1]) * h + x
        tp.output("x", tp.grad(b * b, x))
        tp.output("w", tp.grad(b * b, w))

    run = Everywhere(program)
    for T in SIZES:
        x, w = normal(T, dtype=np.float64), np.float64(0.8)
        tx, tw = torch.from_numpy(x).requires_grad_(), torch.tensor(w, requires_grad=True)
        h, k = [], []
        for t in range(T):
            h.append(tx[t] if t < 2 else torch.tanh(h[t - 1] * tw + h[t - 2] * k[t - 1]))
            k.append(tx[0] * tx[0] if t == 0 else torch.sin(h[t - 1]) + k[t - 1] * tw)
        total, b = 0 * (tx.sum() + tw), None
        for t in reversed(range(T)):
            b = k[t] if b is None else torch.cos(b) * h[t] + tx[t]
            total = total + b * b
        total.backward()
        run.gives({"x": tx.grad.numpy(), "w": tw.grad.numpy()}, x=x, w=w)


class Cell:
    """A recurrent cell in numpy."""

    def step(self, x, h):
        return np.tanh(x * h)

    def back(self, x, h, gradient):
        slope = gradient * (1 - np.tanh(x * h) ** 2)
        return slope * h, slope * x


def test_31_through_a_host_function_that_names_its_gradient() -> None:
    def program():
        t, T = tp.dim("t", at_least=1)
        x = tp.input("x", tp.f64[3], over=t)
        h = tp.tensor("h", tp.f64[3], over=t)
        after = tp.host(Cell).step(x, h, returns=tp.f64[3], gradient="back")
        h[0], h[t] = 1.0, after[t - 1]
        tp.output("g", tp.grad(tp.sum(after**2), x))

    run = Everywhere(program)
    for T in SIZES[1:]:
        x = normal(T, 3, dtype=np.float64)
        tx = torch.from_numpy(x).requires_grad_()
        h, total = torch.ones(3, dtype=torch.float64), 0
        for row in tx:
            h = torch.tanh(row * h)
            total = total + (h**2).sum()
        total.backward()
        run.gives({"g": tx.grad.numpy()}, x=x)


def test_31_nothing_leaks_from_an_unselected_side_far_away() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f64[3], over=t)
        norm = tp.sqrt(tp.sum(x * x))
        safe = tp.where(norm > 0, x / norm, 0.0)
        logs = tp.where(tp.sum(x) > 99, tp.sum(tp.ln(x)[0 : t + 1]), 0.0)
        tp.output("g", tp.grad(tp.sum(safe) + logs + tp.sum(x), x))

    run = Everywhere(program)
    for T in SIZES:
        run.gives({"g": np.ones((T, 3))}, x=np.zeros((T, 3)))
    x = np.array([[3.0, 4.0, 0.0]])
    run.gives({"g": 1 + 1 / 5 - x * 7 / 125}, x=x)
