"""Gradients summed as they are made: over micro-batches, over sequences, over tiles of a batch, layer by layer.

    python examples/accumulate.py                 256 rows at a time, width 256

Each program says what its gradients are, and nothing of what is kept for them. Where activations are much, those of one
micro-batch or sequence are kept at a time, since its share of the gradients is added to them at once (sdg-accumulate,
left out for the column "all at once"). A batch that is an axis is cut in tiles first (sdg-tile). Of the last program,
whose layers are a dim, each layer is updated in the loop that goes back through them, as soon as its gradient is there:
beside the activations, one of each layer, the gradient of one layer is kept.

`options={"sdg-accumulate": {"dims": ("b",)}}` sums over b as it runs whatever it costs, and
`tp.compile(program, memory_budget=..., sizes=...)` where the memory asks for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tempo_ir as tp
from tempo_ir import nn


def gradients(loss: tp.Tensor, **parameters: tp.Tensor) -> None:
    """The gradients of a loss, as outputs."""
    for name, parameter in parameters.items():
        tp.output(f"gradient of {name}", tp.grad(loss, parameter))


def two_layers(x: tp.Tensor, width: int) -> None:
    """The loss of a network of two layers, a mean over the rows of x, and its gradients."""
    w = tp.parameter("w", tp.f32[width, width], init=nn.orthogonal())
    v = tp.parameter("v", tp.f32[width, width], init=nn.orthogonal())
    loss = tp.mean(tp.tanh(tp.tanh(x @ w) @ v) ** 2)
    gradients(loss, w=w, v=v)


@tp.program
def micro_batches(rows=256, width=256):
    """B micro-batches of some rows."""
    b, _ = tp.dim("b")
    two_layers(tp.input("x", tp.f32[rows, width], over=b), width)


@tp.program
def one_batch(rows=256, width=256):
    """All rows as one axis."""
    two_layers(tp.input("x", tp.f32[rows, width]), width)


@tp.program
def sequences(rows=256, width=256):
    """Back-propagation through T steps of B batches of sequences."""
    (t, _), (b, _) = tp.dims("t", "b")
    x = tp.input("x", tp.f32[rows, width], over=(t, b))
    w = tp.parameter("w", tp.f32[width, width], init=nn.orthogonal())
    h = tp.tensor("h", tp.f32[rows, width], over=(t, b))
    h[0, b] = tp.tanh(x[0])
    h[t, b] = tp.tanh(h[t - 1, b] @ w + x)
    gradients(tp.mean(h**2), w=w)


@tp.program
def layers(rows=256, width=256, rate=0.1):
    """L layers, each updated by its gradient."""
    l, L = tp.dim("l", at_least=1)
    first = tp.input("first", tp.f32[rows, width])
    w = tp.input("w", tp.f32[width, width], over=l)
    x = tp.tensor("x", tp.f32[rows, width], over=l)
    x[0] = first
    y = tp.tanh(x @ w)
    x[l + 1] = y
    tp.output("w", w - rate * tp.grad(tp.mean(y[L - 1] ** 2), w))


def peak_and_results(executable: tp.Executable, **arguments: Any) -> tuple[int, Mapping[str, np.ndarray]]:
    """The greatest number of bytes of a call, and what it gives."""
    out = executable(**arguments, state=executable.init(seed=0))
    return executable.stats.peak_bytes, out


def difference(out: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """The greatest difference of a result, relative to the greatest element of it."""
    return max(float(np.abs(out[key] - expected[key]).max() / np.abs(expected[key]).max()) for key in expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    rows, width = options.rows, options.width
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    tile = max(rows, width)
    sizes = {"rows": rows, "width": width}
    runs = [
        ("micro-batches", lambda n: micro_batches(**sizes), lambda n: {"x": draw(n, rows, width)}),
        ("sequences", lambda n: sequences(**sizes), lambda n: {"x": draw(4, n, rows, width)}),
        ("tiles", lambda n: one_batch(rows=n * tile, width=width), lambda n: {"x": draw(n * tile, width)}),
        ("layers", lambda n: layers(**sizes), lambda n: {"first": draw(rows, width), "w": draw(n, width, width)}),
    ]
    table = Table("", "", "peak bytes", "all at once", "results differ by")
    worst = 0.0
    for what, program, arguments in runs:
        for count in (4, 16):
            made, given = program(count), arguments(count)
            less = {"sdg-tile": {"static": True, "tile": tile}} if what == "tiles" else {}
            compiles = (tp.compile(made, without=("sdg-accumulate",)), tp.compile(made, options=less))
            (whole, expected), (peak, out) = (peak_and_results(each, **given) for each in compiles)
            worst = max(worst, difference(out, expected))
            table.add_row(what, str(count), f"{peak:,}", f"{whole:,}", f"{difference(out, expected):.0e}")
    Console(width=100).print(table)
    if worst > 1e-4:
        raise SystemExit(f"gradients that differ by {worst:.1e}")


if __name__ == "__main__":
    main()
