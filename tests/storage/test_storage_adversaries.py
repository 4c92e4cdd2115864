"""
Programs made to break storage: rings that cross updates, several windows of one tensor, buffers of inner loops, states
that are read later, several outputs of one value. The planned program gives the numbers of the interpreter at every
size, also where the call may overwrite its states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.runtime.errors import CallError

V = tp.f64[3]
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)


def over_t(*names: str) -> Any:
    """A dim with its bound, an input over it, and tensors over it that are yet to be defined."""
    t, T = tp.dim("t")
    return t, T, tp.input("x", V, over=t), *(tp.tensor(name, V, over=t) for name in names)


def over_i_and_t() -> Any:
    """Two dims with their bounds, an input over the inner one, and a tensor over both that is yet to be defined."""
    (i, I), (t, T) = tp.dims("i", "t")
    return i, I, t, T, tp.input("x", V, over=t), tp.tensor("h", V, over=(i, t))


def two_windows() -> None:
    t, T, x, h = over_t("h")
    h[0] = x[0]
    h[t + 1] = tp.sin(h[t] + x[tp.minimum(t + 1, T - 1)])
    a = h[tp.maximum(0, t - 2) : t + 1].sum(0)
    b = h[tp.maximum(0, t - 5) : t + 1].sum(0)
    tp.output("y", a * b)


def both_sides() -> None:
    t, T, x = over_t()
    h = tp.tanh(x)
    tp.output("y", h[tp.maximum(0, t - 2) : tp.minimum(t + 3, T)].sum(0) + h)


def prefix_and_window() -> None:
    t, T, x, h = over_t("h")
    h[0] = x[0]
    h[t + 1] = tp.sin(h[t] + h[0 : t + 1].sum(0) + h[tp.maximum(0, t - 1) : t + 1].sum(0))
    tp.output("y", h)


def prefix_window_no_output() -> None:
    t, T, x, h = over_t("h")
    h[0] = 0.5
    h[t + 1] = tp.sin(h[t] + x[t])
    s = h[0 : t + 1].sum(0) - h[tp.maximum(0, t - 3) : t + 1].sum(0)
    tp.output("y", s)
    tp.output("z", s[tp.maximum(t - 2, 0)])


def lagged_pair() -> None:
    t, T, x, a, b = over_t("a", "b")
    a[0] = x[0]
    b[0] = 1.0
    a[t + 1] = tp.sin(b[t] + x[t])
    b[t + 1] = a[t] * 0.5
    tp.output("y", a + b)


def swap_pair() -> None:
    t, T, x, a, b = over_t("a", "b")
    a[0] = x[0]
    b[0] = 1.0
    a[t + 1] = b[t]
    b[t + 1] = a[t]
    tp.output("y", a * x - b)


def fib() -> None:
    t, T, x, a = over_t("a")
    a[0] = x[0]
    a[1] = x[0] * 2.0
    a[t + 2] = tp.sin(a[t + 1] + a[t])
    tp.output("y", a)


def strided() -> None:
    t, T, x, a = over_t("a")
    a[t < 3] = x
    a[t + 3] = tp.sin(a[t] + x[t])
    tp.output("y", a[tp.maximum(0, t - 4)] + a[t])


def reverse_window() -> None:
    t, T, x, g = over_t("g")
    g[T - 1] = x[T - 1]
    g[t - 1] = tp.sin(g[t] + x[tp.maximum(t - 1, 0)])
    tp.output("y", g[t : tp.minimum(t + 3, T)].sum(0))


def suffix_and_prefix() -> None:
    t, T, x = over_t()
    h = tp.tanh(x)
    tp.output("y", h[t:T].sum(0) * h[0 : t + 1].sum(0))
    tp.output("z", h[T - 1 - t])


def inner_buffers() -> None:
    (i, I), (t, T) = tp.dims("i", "t")
    x = tp.input("x", V, over=t)
    w = tp.tensor("w", V, over=i)
    h = tp.tensor("h", V, over=(i, t))
    w[0] = x[0]
    h[i, 0] = w[i]
    h[i, t + 1] = tp.sin(h[i, t] + x[t] * w[i])
    w[i + 1] = w[i] + h[i, 0:T].sum(0) * 0.1
    tp.output("y", w)
    tp.output("z", h[i, T - 1])


def window_in_inner() -> None:
    i, I, t, T, x, h = over_i_and_t()
    h[i, 0] = x[0] + i * 1.0
    h[i, t + 1] = tp.sin(h[i, t] + x[t])
    tp.output("y", h[i, tp.maximum(0, t - 2) : t + 1].sum(0) + h[tp.maximum(i - 1, 0), t])


def outer_window() -> None:
    i, I, t, T, x, h = over_i_and_t()
    h[0, t] = x
    h[i + 1, t] = tp.sin(h[i, t] + h[tp.maximum(0, i - 2) : i + 1, t].sum(0) + x[T - 1 - t])
    tp.output("y", h[I - 1, t])


def last_of_previous() -> None:
    i, I, t, T, x, h = over_i_and_t()
    h[0, 0] = x[0]
    h[i + 1, 0] = h[i, T - 1]
    h[i, t + 1] = tp.sin(h[i, t]) + x[t]
    tp.output("y", h[i, t])


def last_prev_only() -> None:
    i, I, t, T, x, h = over_i_and_t()
    h[0, 0] = x[0]
    h[i + 1, 0] = h[i, T - 1]
    h[i, t + 1] = tp.sin(h[i, t]) + x[t]
    tp.output("y", h[tp.maximum(i - 1, 0), T - 1])
    tp.output("z", h[i, 0])


def guards_second() -> None:
    i, I, t, T, x, h = over_i_and_t()
    h[t < i] = x
    h[i, 0] = x[0] * 2.0
    h[i, t + 1] = tp.sin(h[i, t])
    tp.output("y", h)


def several_outputs() -> None:
    t, T, x = over_t()
    h = tp.tanh(x)
    tp.output("a", h)
    tp.output("b", h)
    tp.output("c", h[T - 1 - t])
    tp.output("d", h[0:T].sum(0))


def output_prefix_of_recurrence() -> None:
    t, T, x, h = over_t("h")
    h[0] = x[0]
    h[t + 1] = tp.sin(h[t] + x[t])
    tp.output("a", h)
    tp.output("b", h[tp.maximum(t - 1, 0)])
    tp.output("c", h[T - 1])


def state_read_later() -> None:
    (i, I), (t, T) = tp.dims("i", "t")
    x = tp.input("x", V, over=t)
    w = tp.state("w", V, init=1.0, steps=(i,))
    g = tp.sin(x)[0:T].sum(0) * w[i]
    w.next = w[i] - g * 0.01
    tp.output("late", w[0])
    tp.output("each", w[i] + w[I - 1])


def state_two_steps() -> None:
    (i, I), (t, T) = tp.dims("i", "t")
    x = tp.input("x", V, over=t)
    w = tp.state("w", V, init=1.0, steps=(i, t))
    m = tp.state("m", V, init=0.0, steps=(i, t))
    g = tp.sin(w[i, t] + x[t])
    m.next = m[i, t] * 0.9 + g
    w.next = w[i, t] - m[i, t] * 0.1
    tp.output("y", g)


def state_window() -> None:
    i, I = tp.dim("i")
    w = tp.state("w", V, init=1.0, steps=(i,))
    w.next = tp.sin(w[tp.maximum(0, i - 2) : i + 1].sum(0))
    tp.output("y", w[tp.maximum(0, i - 3)])


def ring_crossing_update() -> None:
    (i, I), (t, T) = tp.dims("i", "t")
    x = tp.input("x", V, over=t)
    w = tp.state("w", V, init=0.3, steps=(i,))
    h = tp.tensor("h", V, over=(i, t))
    h[i, 0] = w[i]
    h[i, t + 1] = tp.sin(h[i, t] * w[i] + x[t])
    f = h[i, tp.maximum(0, t - 2) : t + 1].sum(0)
    w.next = w[i] + f[i, 0:T].mean(0) * w[tp.maximum(i - 1, 0)]
    tp.output("y", f)


def shared_tail() -> None:
    t, T, x, h = over_t("h")
    h[0] = x[0]
    h[t + 1] = tp.where(x[t] > 0.0, h[t], h[tp.maximum(0, t - 3)])
    k = tp.tensor("k", V, over=t)
    k[0] = h[0]
    k[t + 1] = k[t] + h[tp.maximum(t - 1, 0)]
    tp.output("y", k)


def backwards_two() -> None:
    t, T, x, h = over_t("h")
    h[0] = x[0]
    h[t + 1] = tp.sin(h[t] + x[t])
    g = tp.tensor("g", V, over=t)
    g[T - 1] = h[T - 1]
    g[t - 1] = g[t] * h[tp.maximum(t - 1, 0)] + h[tp.minimum(t + 1, T - 1)]
    tp.output("y", g)


PROGRAMS: list[Callable[[], None]] = [
    two_windows,
    both_sides,
    prefix_and_window,
    prefix_window_no_output,
    lagged_pair,
    swap_pair,
    fib,
    strided,
    reverse_window,
    suffix_and_prefix,
    inner_buffers,
    window_in_inner,
    outer_window,
    last_of_previous,
    last_prev_only,
    guards_second,
    several_outputs,
    output_prefix_of_recurrence,
    state_read_later,
    state_two_steps,
    state_window,
    ring_crossing_update,
    shared_tail,
    backwards_two,
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_planned_storage_keeps_the_numbers(function: Callable[[], None]) -> None:
    program = tp.program(function)()
    reference, executable = tp.compile(program, "reference"), tp.compile(program)
    params = executable.signature.space.params
    generator = np.random.default_rng(0)
    for steps in SIZES:
        for outer in (1, 4) if "I" in params else (None,):
            arguments: dict[str, Any] = {} if outer is None else {"I": outer}
            if "T" in params:
                arguments |= {"x": generator.standard_normal((steps, 3)), "T": steps}
            try:
                expected = reference(**arguments)
            except CallError:
                with pytest.raises(CallError):
                    executable(**arguments)
                continue
            for donate in (False, True):
                found = executable(donate=donate, **arguments)
                for key, value in {**expected, **expected.state}.items():
                    result = found[key] if key in found else found.state[key]
                    np.testing.assert_allclose(result, value, atol=1e-7, err_msg=f"{key} {arguments} {donate}")
