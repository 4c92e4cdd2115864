"""The gradient of every form of read, one dim and two, beside torch's: `docs/gradients.md` names these tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tempo_ir as tp

TARGETS = ("reference", "cpu")
SIZES = (0, 1, 2, 3, 5, 9)
SHAPES = ((0, 2), (2, 0), (1, 1), (2, 3), (3, 2), (5, 4))


def least(*values: Any) -> Any:
    return min(values) if all(isinstance(value, int) for value in values) else tp.minimum(*values)


def most(*values: Any) -> Any:
    return max(values) if all(isinstance(value, int) for value in values) else tp.maximum(*values)


POINTS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "t": (lambda t, T: t, 0),
    "before": (lambda t, T: most(t - 3, 0), 0),
    "after": (lambda t, T: least(t + 2, T - 1), 0),
    "between": (lambda t, T: least(most(t - 1, 0), T // 2), 0),
    "first": (lambda t, T: 0, 1),
    "third": (lambda t, T: 2, 3),
    "last": (lambda t, T: T - 1, 1),
    "middle": (lambda t, T: T // 2, 1),
    "reversed": (lambda t, T: T - 1 - t, 0),
    "remainder": (lambda t, T: t % 3, 3),
    "remainder of a shift": (lambda t, T: (t + 1) % 2, 2),
    "remainder reversed": (lambda t, T: (T - 1 - t) % 3, 3),
    "quotient": (lambda t, T: t // 3, 0),
    "quotient of a shift": (lambda t, T: (t + 1) // 2, 2),
    "start of a block": (lambda t, T: t // 3 * 3, 0),
    "even": (lambda t, T: t - t % 2, 0),
    "twice": (lambda t, T: least(2 * t, T - 1), 0),
    "to and fro": (lambda t, T: most(2 * t - T, T - 1 - 2 * t, 0) // 2, 0),
}

RANGES: dict[str, tuple[Callable[[Any, Any], slice], int]] = {
    "all": (lambda t, T: slice(0, T), 0),
    "past": (lambda t, T: slice(0, t + 1), 0),
    "strict past": (lambda t, T: slice(0, t), 0),
    "future": (lambda t, T: slice(t, T), 0),
    "strict future": (lambda t, T: slice(t + 1, T), 0),
    "future past the end": (lambda t, T: slice(t + 2, T), 0),
    "window past the end": (lambda t, T: slice(t + 2, least(t + 4, T)), 0),
    "window": (lambda t, T: slice(most(0, t - 2), t + 1), 0),
    "strict window": (lambda t, T: slice(most(0, t - 2), t), 0),
    "window ahead": (lambda t, T: slice(t, least(t + 3, T)), 0),
    "window far ahead": (lambda t, T: slice(least(t + 2, T), least(t + 4, T)), 0),
    "window of both sides": (lambda t, T: slice(most(0, t - 2), least(t + 3, T)), 0),
    "block": (lambda t, T: slice(t // 2 * 2, least(t // 2 * 2 + 2, T)), 0),
    "block so far": (lambda t, T: slice(t // 4 * 4, t + 1), 0),
    "half of the past": (lambda t, T: slice(0, t // 2 + 1), 0),
    "later half": (lambda t, T: slice(t // 2, t + 1), 0),
    "twice the past": (lambda t, T: slice(0, least(2 * t, T)), 0),
    "mirrored past": (lambda t, T: slice(0, T - t), 0),
    "mirrored window": (lambda t, T: slice(least(t, T - 1 - t), most(t, T - 1 - t) + 1), 0),
    "empty": (lambda t, T: slice(t, t), 0),
    "sometimes empty": (lambda t, T: slice(t, T // 2), 0),
    "fixed": (lambda t, T: slice(1, 3), 3),
    "every third": (lambda t, T: slice(0, T, 3), 0),
    "every third from one": (lambda t, T: slice(1, T, 3), 0),
    "every second of the past": (lambda t, T: slice(0, t + 1, 2), 0),
    "every second of the future": (lambda t, T: slice(t, T, 2), 0),
    "every second of a phase": (lambda t, T: slice(t % 2, T, 2), 0),
}

TWO_DIMS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "row": lambda i, t, I, T: (i, slice(0, T)),
    "column": lambda i, t, I, T: (slice(0, I), t),
    "table": lambda i, t, I, T: (slice(0, I), slice(0, T)),
    "past of a row": lambda i, t, I, T: (i, slice(0, t + 1)),
    "past of both": lambda i, t, I, T: (slice(0, i + 1), slice(0, t + 1)),
    "past and future": lambda i, t, I, T: (slice(0, i + 1), slice(t, T)),
    "windows": lambda i, t, I, T: (slice(most(0, i - 1), i + 1), slice(most(t - 1, 0), least(t + 2, T))),
    "rows before": lambda i, t, I, T: (slice(0, i), most(t - 1, 0)),
    "row before": lambda i, t, I, T: (most(i - 1, 0), slice(0, T)),
    "steps of a row": lambda i, t, I, T: (i, slice(0, T, 2)),
    "neighbour": lambda i, t, I, T: (most(i - 1, 0), least(t + 1, T - 1)),
    "both reversed": lambda i, t, I, T: (I - 1 - i, T - 1 - t),
    "quotient": lambda i, t, I, T: (i // 2, most(t - 1, 0)),
    "triangle": lambda i, t, I, T: (i, slice(0, least(i, T))),
    "rest of a triangle": lambda i, t, I, T: (i, slice(least(i, T), T)),
    "lesser of both": lambda i, t, I, T: (i, least(i, t)),
    "sum of both": lambda i, t, I, T: (i, least(i + t, T - 1)),
    "difference of both": lambda i, t, I, T: (i, most(t - i, 0)),
}

ACROSS_DIMS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "sum": lambda i, t, I, T: least(i + t, T - 1),
    "distance": lambda i, t, I, T: least(most(i - t, t - i), T - 1),
    "remainder of a sum": lambda i, t, I, T: least((i + t) % 3, T - 1),
    "weighted sum": lambda i, t, I, T: least(2 * i + 3 * t, T - 1),
    "range from a sum": lambda i, t, I, T: slice(least(i + t, T), T),
    "range between sums": lambda i, t, I, T: slice(least(i + t, T), least(i + 2 * t, T)),
    "steps from the other dim": lambda i, t, I, T: slice(least(i, T), T, 2),
}


def value(library: Any, read: Any) -> Any:
    """A scalar that weighs every element of what was read by what stands before it."""
    if read.ndim == 0:
        return library.sin(read)
    return library.sin(library.cumsum(read, read.ndim - 1)).sum()


def agree(program: Any, sizes: Any, reads: Callable[..., list[torch.Tensor]], shapes: Callable[..., Any]) -> None:
    """Both targets give torch's gradients of the sum of all that is read, times its weight."""
    compiled = [tp.compile(tp.program(program)(), target) for target in TARGETS]
    for size in sizes:
        drawn = [np.random.default_rng(seed).uniform(0.5, 1.5, shape) for seed, shape in enumerate(shapes(size))]
        x, w = (torch.tensor(array, requires_grad=True) for array in drawn)
        total = sum(reads(x * x, w, size), 0 * (x.sum() + w.sum()))
        total.backward()
        for executable in compiled:
            found = executable(x=drawn[0], w=drawn[1])
            for key, tensor in (("gx", x), ("gw", w)):
                np.testing.assert_allclose(
                    found[key], np.asarray(tensor.grad), rtol=1e-9, atol=1e-11, err_msg=f"{key} at {size}"
                )


def one_dim(index: Callable[[Any, Any], Any], at_least: int) -> None:
    def program() -> None:
        t, T = tp.dim("t", at_least=at_least or None)
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        loss = value(tp, (x * x)[index(t, T)]) * w
        tp.output("gx", tp.grad(loss, x))
        tp.output("gw", tp.grad(loss, w))

    def reads(x: Any, w: Any, size: int) -> list[torch.Tensor]:
        return [value(torch, x[index(t, size)]) * w[t] for t in range(size)]

    agree(program, [size for size in SIZES if size >= at_least], reads, lambda size: ((size,), (size,)))


@pytest.mark.parametrize("form", POINTS)
def test_point(form: str) -> None:
    one_dim(*POINTS[form])


@pytest.mark.parametrize("form", RANGES)
def test_range(form: str) -> None:
    one_dim(*RANGES[form])


def two_dims(index: Callable[..., Any], own: tuple[int, ...]) -> None:
    """`own` are the positions of the dims of what is read."""

    def program() -> None:
        (i, I), (t, T) = tp.dims("i", "t")
        x, w = tp.input("x", tp.f64[()], over=[(i, t)[n] for n in own]), tp.input("w", tp.f64[()], over=(i, t))
        loss = value(tp, (x * x)[index(i, t, I, T)]) * w
        tp.output("gx", tp.grad(loss, x))
        tp.output("gw", tp.grad(loss, w))

    def reads(x: Any, w: Any, size: tuple[int, int]) -> list[torch.Tensor]:
        return [value(torch, x[index(*point, *size)]) * w[point] for point in np.ndindex(*size)]

    agree(program, SHAPES, reads, lambda size: (tuple(size[n] for n in own), size))


@pytest.mark.parametrize("form", TWO_DIMS)
def test_two_dims(form: str) -> None:
    two_dims(TWO_DIMS[form], (0, 1))


@pytest.mark.parametrize("form", ACROSS_DIMS)
def test_across_dims(form: str) -> None:
    two_dims(ACROSS_DIMS[form], (1,))


# ---- where the points of the reader are no range


DOMAINS: dict[str, tuple[Callable[..., Any], Callable[..., bool]]] = {
    "triangle": (lambda i, t, I, T: t < i, lambda i, t, I, T: t < i),
    "stripes": (lambda i, t, I, T: (t + i) % 2 == 0, lambda i, t, I, T: (t + i) % 2 == 0),
    "every third": (lambda i, t, I, T: t % 3 == 0, lambda i, t, I, T: t % 3 == 0),
    "corner": (lambda i, t, I, T: 2 * i + t < T, lambda i, t, I, T: 2 * i + t < T),
}


@pytest.mark.parametrize("form", DOMAINS)
def test_reader_over_a_part_of_the_points(form: str) -> None:
    """A scalar, a row and a value of the point itself, read where a case holds."""
    ours, theirs = DOMAINS[form]

    def program() -> None:
        (i, I), (t, T) = tp.dims("i", "t")
        x, w = tp.input("x", tp.f64[()]), tp.input("w", tp.f64[()], over=(i, t))
        y = tp.tensor("y", tp.f64[()], over=(i, t))
        y[ours(i, t, I, T)] = tp.sin(x * w) * w[i, t : t + 1].sum()
        y[i, t] = w * 2
        tp.output("gx", tp.grad(y * y, x))
        tp.output("gw", tp.grad(y * y, w))

    def reads(x: Any, w: Any, size: tuple[int, int]) -> list[torch.Tensor]:
        root = x**0.5  # `agree` hands over the square
        values = {p: torch.sin(root * w[p]) * w[p] if theirs(*p, *size) else w[p] * 2 for p in np.ndindex(*size)}
        return [one * one for one in values.values()]

    agree(program, SHAPES, reads, lambda size: ((), size))


# ---- rows of several extents that are read more than once


RAGGED: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "past of half": (lambda x, t, T: tp.cumsum(x[0 : t + 1]), lambda t, T: t // 2),
    "past before": (lambda x, t, T: tp.cumsum(x[0 : t + 1]), lambda t, T: most(t - 2, 0)),
    "future mirrored": (lambda x, t, T: tp.cumsum(x[t:T]), lambda t, T: T - 1 - t // 2),
}


@pytest.mark.parametrize("form", RAGGED)
def test_rows_of_several_extents(form: str) -> None:
    rows, index = RAGGED[form]

    def program() -> None:
        t, T = tp.dim("t")
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        loss = value(tp, rows(x * x, t, T)[index(t, T)]) * w
        tp.output("gx", tp.grad(loss, x))
        tp.output("gw", tp.grad(loss, w))

    def reads(x: Any, w: Any, size: int) -> list[torch.Tensor]:
        sums = [torch.cumsum(x[t:] if form.startswith("future") else x[: t + 1], 0) for t in range(size)]
        return [value(torch, sums[index(t, size)]) * w[t] for t in range(size)]

    agree(program, SIZES, reads, lambda size: ((size,), (size,)))


ONE_POINT: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "first": (lambda t, T: 0, 1),
    "third": (lambda t, T: 2, 3),
    "last": (lambda t, T: T - 1, 1),
}


@pytest.mark.parametrize("form", ONE_POINT)
def test_rows_of_several_extents_at_one_point(form: str) -> None:
    """What reads the rows of one point has a fixed extent; the gradient there is added to that of what reads all."""
    index, at_least = ONE_POINT[form]

    def program() -> None:
        t, T = tp.dim("t", at_least=at_least)
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        rows = tp.cumsum((x * x)[0 : t + 1])
        loss = value(tp, rows) * value(tp, rows[index(t, T)]) * w
        tp.output("gx", tp.grad(loss, x))
        tp.output("gw", tp.grad(loss, w))

    def reads(x: Any, w: Any, size: int) -> list[torch.Tensor]:
        sums = [torch.cumsum(x[: t + 1], 0) for t in range(size)]
        return [value(torch, sums[t]) * value(torch, sums[index(t, size)]) * w[t] for t in range(size)]

    agree(program, [size for size in SIZES if size >= at_least], reads, lambda size: ((size,), (size,)))


def test_the_scalar_of_all() -> None:
    """A value over no dim is read at every point, and a product over dims of its own."""

    def program() -> None:
        (i, _), (t, _) = tp.dims("i", "t")
        x, w = tp.input("x", tp.f64[()]), tp.input("w", tp.f64[()], over=(i, t))
        tp.output("gx", tp.grad(tp.sin(x * x) * w, x))
        tp.output("gw", tp.grad(tp.sin(x * x) * w, w))

    def reads(x: Any, w: Any, size: tuple[int, int]) -> list[torch.Tensor]:
        return [torch.sin(x) * w[point] for point in np.ndindex(*size)]

    agree(program, SHAPES, reads, lambda size: ((), size))


def test_every_reader_adds_the_same() -> None:
    """The gradient of each reader is 1, over no dim: it is the same among all points of two dims."""

    def program() -> None:
        (i, _), (t, _) = tp.dims("i", "t")
        x = tp.input("x", tp.f64[()], over=(i, t))
        tp.output("gx", tp.grad(tp.sum(x[least(i, t) : i + 1, 0 : t + 1]), x))

    for target in TARGETS:
        executable = tp.compile(tp.program(program)(), target)
        for size in SHAPES:
            expected = np.zeros(size)
            for i, t in np.ndindex(*size):
                expected[min(i, t) : i + 1, : t + 1] += 1
            np.testing.assert_array_equal(executable(x=np.ones(size))["gx"], expected)


def test_an_axis_along_which_the_gradient_is_the_same_is_one_row() -> None:
    """Of the two axes that the slices add, the sum over the second leaves one row of the gradient for all points."""

    def program() -> None:
        (i, _), (t, _) = tp.dims("i", "t")
        x, w = (tp.input(name, tp.f64[()], over=(i, t)) for name in "xw")
        loss = value(tp, tp.sum((x * x)[0 : i + 1, 0 : t + 1], 1)) * w
        tp.output("gx", tp.grad(loss, x))
        tp.output("gw", tp.grad(loss, w))

    def reads(x: Any, w: Any, size: tuple[int, int]) -> list[torch.Tensor]:
        return [value(torch, x[: i + 1, : t + 1].sum(1)) * w[i, t] for i, t in np.ndindex(*size)]

    agree(program, SHAPES, reads, lambda size: (size, size))


def test_a_gradient_that_is_read_in_ways_that_compose_and_in_one_that_does_not() -> None:
    """The gradient by x is w backwards: a point of it is a point of w, a range of it is no range of w."""

    def program() -> None:
        t, T = tp.dim("t")
        x, w = (tp.input(name, tp.f64[()], over=t) for name in "xw")
        gradient = tp.grad(x[T - 1 - t] * w, x)
        tp.output("point", gradient * 2)
        tp.output("rows", tp.cumsum(gradient[0:T]))

    for target in TARGETS:
        executable = tp.compile(tp.program(program)(), target)
        for size in SIZES:
            w = np.random.default_rng(size).normal(size=size)
            out = executable(x=np.ones(size), w=w)
            np.testing.assert_allclose(out["point"], w[::-1] * 2, rtol=1e-12)
            np.testing.assert_allclose(out["rows"], np.cumsum(w[::-1]), rtol=1e-12)
