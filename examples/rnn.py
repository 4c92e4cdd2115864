"""A recurrent network trained by back-propagation through time: one call runs I iterations of Adam.

python examples/rnn.py                                      train on a sine wave, print the loss
tempo-opt examples/rnn.py                                   the program as sdg text
tempo-run examples/rnn.py --set I=10 --set T=16 --check     against the reference interpreter, on drawn inputs
"""

from __future__ import annotations

import numpy as np

import tempo_ir as tp
from tempo_ir import nn, optim


@tp.program
def rnn(batch=16, width=64, lr=1e-3):
    (i, I), (t, T) = tp.dims("i", "t")
    x, y = (tp.input(name, tp.f32[batch, width], over=(i, t)) for name in "xy")
    w = tp.state("w", tp.f32[width, width], init=nn.orthogonal(), steps=i)
    s = tp.tensor("s", tp.f32[batch, width], over=(i, t))  # hidden state before step t
    h = tp.tanh(x + s @ w[i])
    s[i, 0], s[i, t + 1] = 0.0, h
    loss = tp.mean((h - y) ** 2)  # over (i, t): one number per step
    optim.Adam(lr).minimize(loss, w)  # w.next = Adam step on tp.grad(loss, w); BPTT follows from s
    tp.output("loss", tp.mean(loss[i, 0:T]))  # (I,)


def waves(iterations: int, steps: int, batch: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Sines of random phase, and the same sines one step later: two arrays (I, T, batch, width)."""
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, (iterations, 1, batch, width))
    wave = 0.5 * np.sin(phase + 0.3 * np.arange(steps + 1)[:, None, None])
    return wave[:, :-1].astype(np.float32), wave[:, 1:].astype(np.float32)


def main() -> None:
    iterations, steps, batch, width = 100, 16, 16, 64
    x, y = waves(iterations, steps, batch, width)
    exe = tp.compile(rnn(batch=batch, width=width, lr=1e-2))
    out = exe(x=x, y=y, state=exe.init(seed=0))  # I and T are read off x; other sizes need no second compile
    for i in range(0, iterations, 10):
        print(f"iteration {i:3d}  loss {out['loss'][i]:.5f}")
    print(f"iteration {iterations - 1:3d}  loss {out['loss'][-1]:.5f}")


if __name__ == "__main__":
    main()
