"""Backpropagation through 10000 steps of a recurrent network, in a twentieth of the memory.

    python examples/bptt.py                       T = 10000, batch 16, width 64
    python examples/bptt.py --steps 1000          shorter

The program says what the gradient is, and nothing of what is kept for it. The first line is of the compile as it is,
which keeps the activations of all steps, the second of one that may keep a twentieth of them: it keeps those of one
step in so many, and computes the others anew, block by block, in the loop that goes backwards (sdg-remat).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tempo_ir as tp
from tempo_ir import nn

SHARE = 20
"""One part in so many of the memory is the budget."""


@tp.program
def bptt(batch=16, inputs=4, width=64):
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, inputs], over=t)
    wanted = tp.input("wanted", tp.f32[batch], over=t)
    w = tp.parameter("w", tp.f32[width, width], init=nn.orthogonal())
    u = tp.parameter("u", tp.f32[inputs, width], init=nn.orthogonal())
    v = tp.parameter("v", tp.f32[width], init=nn.normal(0.1))
    h = tp.tensor("h", tp.f32[batch, width], over=t)
    h[0] = tp.tanh(x[0] @ u)
    h[t] = tp.tanh(h[t - 1] @ w + x @ u)
    loss = tp.mean((h @ v - wanted) ** 2)
    tp.output("loss", loss[0:T].sum())
    for name, parameter in {"w": w, "u": u, "v": v}.items():
        tp.output(f"gradient of {name}", tp.grad(loss, parameter))


def run(executable: tp.Executable, arguments: Mapping[str, np.ndarray], repeats: int) -> tuple[Any, float]:
    """What a compile gives, and the seconds of its quickest run."""
    state = executable.init(seed=0)
    seconds: list[float] = []
    out = None
    for _ in range(repeats):
        start = time.perf_counter()
        out = executable(**arguments, state=state)
        seconds.append(time.perf_counter() - start)
    return out, min(seconds)


def difference(out: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """The greatest difference of a result, relative to the greatest element of it."""
    return max(float(np.abs(out[key] - expected[key]).max() / np.abs(expected[key]).max()) for key in expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    program = bptt(batch=options.batch, width=options.width)
    rng = np.random.default_rng(0)
    arguments = {
        "x": rng.normal(size=(options.steps, options.batch, 4)).astype(np.float32),
        "wanted": rng.normal(size=(options.steps, options.batch)).astype(np.float32),
    }
    table = Table("", "peak bytes", "less", "seconds", "times", "results differ by")
    whole = tp.compile(program)
    expected, whole_seconds = run(whole, arguments, options.repeats)
    full = whole.stats.peak_bytes
    table.add_row("all is kept", f"{full:,}", "", f"{whole_seconds:.2f}", "", "")
    budget = full // SHARE
    less = tp.compile(program, remat={"budget": budget, "steps": options.steps})
    out, seconds = run(less, arguments, options.repeats)
    peak, differs = less.stats.peak_bytes, difference(out, expected)
    table.add_row(
        f"within {budget:,}",
        f"{peak:,}",
        f"{full / peak:.1f}x",
        f"{seconds:.2f}",
        f"{seconds / whole_seconds:.2f}x",
        f"{differs:.0e}",
    )
    Console(width=120).print(table)
    if peak > budget or differs > 1e-3:
        raise SystemExit(f"{peak:,} bytes, gradients that differ by {differs:.1e}")


if __name__ == "__main__":
    main()
