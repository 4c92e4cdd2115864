"""Programs whose loop over steps is one launch on a GPU, for tests of numbers, launches and compiled code."""

from __future__ import annotations

import tempo_ir as tp
from tempo_ir import nn


@tp.program
def rnn(batch=40, width=24, dtype=tp.f32):
    """Hidden states of a plain recurrent network."""
    t, _T = tp.dim("t")
    x = tp.input("x", dtype[batch, width], over=t)
    w = tp.parameter("w", dtype[width, width])
    h = tp.tensor("h", dtype[batch, width], over=t)
    after = tp.tanh(x + h @ w)
    h[0], h[t + 1] = 0.0, after
    tp.output("h", after)


@tp.program
def gru(batch=40, inputs=8, width=16):
    """Hidden states of gated recurrent units."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, inputs], over=t)
    h = tp.tensor("h", tp.f32[batch, width], over=t)
    after = nn.GRUCell(inputs, width)(x, h)
    h[0], h[t + 1] = 0.0, after
    tp.output("h", after)


@tp.program
def lstm(batch=40, inputs=8, width=16):
    """Hidden states of long short-term memory, of which the cell is kept for a step alone."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, inputs], over=t)
    h = tp.tensor("h", tp.f32[batch, width], over=t)
    c = tp.tensor("c", tp.f32[batch, width], over=t)
    after, cell = nn.LSTMCell(inputs, width)(x, (h, c))
    h[0], h[t + 1] = 0.0, after
    c[0], c[t + 1] = 0.0, cell
    tp.output("h", after)


@tp.program
def back_through_time(batch=40, width=24):
    """A recurrence that runs backwards: gradients of a sum of hidden states, along rows."""
    t, T = tp.dim("t")
    h = tp.input("h", tp.f32[batch, width], over=t)
    w = tp.parameter("w", tp.f32[width, width])
    g = tp.tensor("g", tp.f32[batch, width], over=t)
    g[T - 1] = 1.0 - h[T - 1] ** 2
    g[t] = (1.0 + tp.einsum("bn,kn->bk", g[t + 1], w)) * (1.0 - h**2)
    tp.output("g", g)


@tp.program
def windows(batch=150):
    """Rows of three steps before, in a ring, and draws at points of two dims."""
    (i, _I), (t, T) = tp.dims("i", "t")
    x = tp.input("x", tp.f32[batch], over=(i, t))
    h = tp.tensor("h", tp.f32[batch], over=(i, t))
    h[i, 0] = x[i, 0]
    noise = tp.random.normal(spec=tp.f32[batch], over=(i, t))
    h[i, t] = 0.5 * tp.sum(h[i, tp.maximum(0, t - 3) : t], axis=0) + x + noise
    tp.output("last", h[i, T - 1])


@tp.program
def of_all_rows(batch=40):
    """Each row is made of all rows, and of running sums of them: one program has everything."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, 8], over=t)
    h = tp.tensor("h", tp.f32[batch, 8], over=t)
    after = 0.5 * h - tp.mean(h, axis=0) / (t + 1) + tp.cumsum(x, axis=0)
    h[0], h[t + 1] = 0.0, after
    tp.output("h", after)


@tp.program
def heads(batch=20, count=3, width=8):
    """States with two axes beside the rows, and a product of each head."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, count, width], over=t)
    w = tp.parameter("w", tp.f32[count, width, width])
    h = tp.tensor("h", tp.f32[batch, count, width], over=t)
    after = tp.softmax(tp.einsum("bhk,hkn->bhn", h, w) + x, axis=-1)
    h[0], h[t + 1] = 0.0, after
    tp.output("h", after)


PROGRAMS = {
    "rnn": rnn,
    "gru": gru,
    "lstm": lstm,
    "back through time": back_through_time,
    "windows": windows,
    "of all rows": of_all_rows,
    "heads": heads,
}
