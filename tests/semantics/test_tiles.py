"""Cases 15, 19, 22, 23 and 26 in tiles, by sdg-tile, and as scans, by sdg-lift{all=true}."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from semantics_support import SIZES, agree, normal, optional_passes, ramp, same
from xdsl.context import Context

import tempo_ir as tp
from tempo_ir.passes import get_all_passes

TILES = (1, 3, 4, 64)
"""Of one element, one that divides some sizes and one that divides others, and longer than all of them."""


class After:
    """A program after passes by name: on the interpreter, on the CPU with the default passes and with none of them.

    `run(function, ("sdg-tile", {"tile": 4}))`; gradients are expanded first.
    """

    def __init__(self, function: Callable[..., None], *passes: tuple[str, Mapping[str, Any]]):
        program = tp.program(function)()
        self.plain = tp.compile(program, target="reference")
        module = program.module.clone()
        for name, options in (("sdg-autodiff", {}), *passes):
            get_all_passes()[name]()(**options).apply(Context(), module)
            module.verify()
        self.text = str(module)
        self.reference = tp.compile(module, target="reference")
        self.cpu = tp.compile(module)
        self.bare = tp.compile(module, without=optional_passes()[-1])

    def gives(self, expected: Mapping[str, Any], **arguments: Any) -> None:
        """The outputs are these on every way, and those of the program as recorded."""
        outputs = self.plain(**arguments)
        for name, value in expected.items():
            same(outputs[name], value, name)
        for name in ("reference", "cpu", "bare"):
            agree(getattr(self, name)(**arguments), outputs, name)
        agree(self.cpu(**arguments), self.cpu(**arguments), "the second call", exact=True)


def tiled(function: Callable[..., None], tile: int) -> After:
    """A program in tiles."""
    run = After(function, ("sdg-tile", {"tile": tile}))
    assert in_tiles(run.text)
    assert in_tiles(str(run.cpu.levels.optimised))
    return run


def in_tiles(text: str) -> bool:
    """Whether a program has a dim of tiles."""
    return re.search(r"\bm: ", text) is not None


def stencil() -> None:
    (i, I), (j, J) = tp.dims("i", "j")
    a = tp.input("a", tp.i64[()], over=(i, j))
    x, y = tp.tensor("x", tp.i64[()], over=(i, j)), tp.tensor("y", tp.i64[()], over=(i, j))
    x[(i == 0) | (j == J - 1)] = a
    x[...] = x[i - 1, j + 1] + 1
    y[(i == 0) | (j == J - 1)] = a
    y[...] = y[i - 1, j + 1 : J].max(0) + a
    tp.output("x", x)
    tp.output("y", y)
    tp.output("row", x[i, 0 : j + 1].sum(0))
    tp.output("column", x[0 : i + 1, j].max(0))


@pytest.mark.parametrize(("tile", "vectorised"), [(2, True), (3, False)])
def test_15_a_stencil_of_neighbour_rows_in_tiles(tile: int, vectorised: bool) -> None:
    first = [("sdg-vectorize", {"all": True})] if vectorised else []
    run = After(stencil, *first, ("sdg-tile", {"tile": tile}))
    assert in_tiles(run.text)
    for I, J in [(0, 4), (1, 1), (2, 2), (3, 5), (5, 3), (8, 9), (9, 17)]:
        a = np.arange(I * J).reshape(I, J) * 7 % 5
        x, y = a.copy(), a.copy()
        for i in range(1, I):
            for j in range(J - 1):
                x[i, j] = x[i - 1, j + 1] + 1
                y[i, j] = y[i - 1, j + 1 :].max() + a[i, j]
        run.gives({"x": x, "y": y, "row": x.cumsum(1), "column": np.maximum.accumulate(x, 0)}, a=a)


@pytest.mark.parametrize("tile", TILES)
def test_19_tiles_at_rising_and_falling_sizes(tile: int) -> None:
    def program() -> None:
        t, T = tp.dim("t")
        a = tp.input("a", tp.f64[()], over=t)
        h = tp.tensor("h", tp.f64[()], over=t)
        h[0] = a
        h[t + 1] = 0.9 * h + a[t + 1] ** 2
        tp.output("y", h[t:T].sum() - h[0 : t + 1].sum())

    run = tiled(program, tile)
    for T in (9, 3, 0, 300, 1, 64, 65, 2, 17):
        a = normal(T, dtype=np.float64)
        h = np.zeros(T)
        for t in range(T):
            h[t] = a[t] ** 2 + 0.9 * h[t - 1] if t else a[t]
        y = h[::-1].cumsum()[::-1] - h.cumsum()
        if T < 20:
            run.gives({"y": y}, a=a)
        for _ in "twice":
            same(run.cpu(a=a)["y"], y, f"at {T}")


def test_19_donated_states_in_tiles() -> None:
    def program() -> None:
        (i, I), (t, T) = tp.dims("i", "t")
        x = tp.input("x", tp.f64[()], over=(i, t))
        w = tp.state("w", tp.f64[()], init=2.0, steps=i)
        w.next = 0.5 * w + (x * w)[i, 0:T].sum()
        tp.output("y", (x * w)[i, 0 : t + 1].sum())

    run = tiled(program, 4)
    for I, T in [(1, 1), (2, 3), (3, 0), (2, 17), (5, 8)]:
        x = 0.1 * normal(I, T, dtype=np.float64)
        w, y = 2.0, np.zeros((I, T))
        for i in range(I):
            y[i] = w * x[i].cumsum()
            w = 0.5 * w + w * x[i].sum()
        for executable in (run.plain, run.reference, run.cpu, run.bare):
            for donate in (False, True, True):
                out = executable(x=x, state={"w": np.full((), 2.0)}, donate=donate)
                same(out["y"], y, f"y at {I}, {T}")
                same(out.state["w"], w, f"w at {I}, {T}")


def sums(*, ahead: bool) -> Callable[[], None]:
    def program() -> None:
        t, T = tp.dim("t")
        a, w = tp.input("a", tp.f32[()], over=t), tp.input("w", tp.f32[()], over=t)
        y = a[t:T].sum() if ahead else a[0 : t + 1].sum()
        tp.output("y", y)
        tp.output("g", tp.grad((y * w)[0:T].sum(), a))

    return program


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("ahead", [False, True])
def test_22_suffix_and_prefix_sums_in_tiles(ahead: bool, tile: int) -> None:
    run = tiled(sums(ahead=ahead), tile)
    for T in SIZES:
        a, w = ramp(T), ramp(T) + 1
        before, behind = (lambda x: x.cumsum()), (lambda x: x[::-1].cumsum()[::-1])
        y, g = (behind(a), before(w)) if ahead else (before(a), behind(w))
        run.gives({"y": y, "g": g}, a=a, w=w)
    if ahead:
        run.gives({"y": [28, 28, 27, 25, 22, 18, 13, 7]}, a=ramp(8), w=ramp(8))
        run.gives({"y": [21, 21, 20, 18, 15, 11, 6]}, a=ramp(7), w=ramp(7))


def growing() -> None:
    t, T = tp.dim("t")
    a, w = tp.input("a", tp.f64[3], over=t), tp.input("w", tp.f64[()], over=t)
    past = a[0 : t + 1]
    values = {
        "sum": past.sum(0),
        "max": tp.max(past - 100, 0),
        "weighted": tp.einsum("n,nd->d", tp.softmax(w[0 : t + 1]), past),
        "dot": tp.einsum("n,nd->d", w[0 : t + 1], past),
    }
    for name, value in values.items():
        tp.output(name, value)
    loss = tp.stack([value * tp.cos(number * a) for number, value in enumerate(values.values(), 1)])[0:T].sum()
    tp.output("of_a", tp.grad(loss, a))
    tp.output("of_w", tp.grad(loss, w))


def expected_growing(a: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
    """By torch, over all rows with a mask."""
    import torch

    ta, tw = torch.from_numpy(a).requires_grad_(), torch.from_numpy(w).requires_grad_()
    mask = torch.ones(len(a), len(a), dtype=torch.float64).tril()
    values = {
        "sum": mask @ ta,
        "max": torch.cummax(ta - 100, 0)[0],
        "weighted": torch.softmax(torch.where(mask > 0, tw, -torch.inf), -1) @ ta,
        "dot": (mask * tw) @ ta,
    }
    loss = torch.stack([value * torch.cos(number * ta) for number, value in enumerate(values.values(), 1)]).sum()
    gradients = torch.autograd.grad(loss, (ta, tw))
    found = {**values, **dict(zip(("of_a", "of_w"), gradients, strict=True))}
    return {name: value.detach().numpy() for name, value in found.items()}


@pytest.mark.parametrize("tile", [3, 4, 64])
def test_23_reductions_over_a_growing_range_in_tiles(tile: int) -> None:
    run = tiled(growing, tile)
    for T in SIZES:
        a, w = normal(T, 3, dtype=np.float64), 5 * normal(T, seed=1, dtype=np.float64)
        run.gives(expected_growing(a, w), a=a, w=w)
    if tile > 3:
        a, w = normal(1025, 3, dtype=np.float64), 5 * normal(1025, seed=1, dtype=np.float64)
        outputs = run.cpu(a=a, w=w)
        for name, value in expected_growing(a, w).items():
            np.testing.assert_allclose(outputs[name], value, rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
def test_26_discounted_returns_as_scans_and_in_tiles(gamma: float) -> None:
    def loop() -> None:
        t, T = tp.dim("t")
        r = tp.input("r", tp.f64[()], over=t)
        g = tp.tensor("g", tp.f64[()], over=t)
        g[T - 1] = r
        g[t] = r + gamma * g[t + 1]
        tp.output("g", g)
        tp.output("of_r", tp.grad(g[0:T].sum(), r))

    def sums() -> None:
        t, T = tp.dim("t")
        r = tp.input("r", tp.f64[()], over=t)
        g = tp.rl.discounted_sum(r[t:T], gamma)
        tp.output("g", g)
        tp.output("of_r", tp.grad(g[0:T].sum(), r))

    lifted = After(loop, ("sdg-simplify", {}), ("sdg-lift", {"all": True}))
    # a recurrence with a factor stays one: as a scan it would divide by powers that underflow
    assert ("sdg.cumsum" in lifted.text) is (gamma == 1)
    for run in (lifted, tiled(sums, 64)):
        for T in SIZES:
            t = np.arange(T)
            powers = gamma ** np.abs(t[:, None] - t).astype(float)
            run.gives({"g": np.triu(powers).sum(1), "of_r": np.tril(powers).sum(1)}, r=np.ones(T))
        left = 2000 - np.arange(2000)
        expected = left if gamma == 1 else np.ones(2000) if gamma == 0 else 10 * (1 - 0.9**left)
        outputs = run.cpu(r=np.ones(2000))
        np.testing.assert_allclose(outputs["g"], expected, rtol=1e-12)
        np.testing.assert_allclose(outputs["of_r"], expected[::-1], rtol=1e-12)
