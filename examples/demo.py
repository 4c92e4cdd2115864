"""The three programs on the CPU, each beside an independent system: `make demo`, or `python -m examples.demo`.

    rnn         trains by back-propagation through time      against torch autograd and torch.optim.Adam
    llama       greedy decoding, all and a window of steps   against transformers' generate
    reinforce   learns CartPole-v1, seeds 0, 1 and 2         mean score of the last 10 of 100 iterations

The IR of every level is written to build/demo.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

import tempo_ir as tp
from examples import llama, reinforce, rnn

SUFFIXES = {"sdg": "mlir", "loop": "mlir", "tile": "mlir", "llvm": "ll", "triton": "py"}
CONSOLE = Console(width=150)


@dataclass
class Row:
    """A line of the closing table."""

    program: str
    reference: str
    agreement: str
    compile_seconds: float
    step: str
    peak_bytes: int


def compiled(program: Any) -> tuple[tp.Executable, float]:
    """An executable for the CPU and the seconds that compiling took."""
    start = time.perf_counter()
    executable = tp.compile(program)
    return executable, time.perf_counter() - start


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of the second of two calls, and its seconds."""
    call()
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def write_ir(executable: tp.Executable, directory: Path) -> None:
    """One file per level."""
    directory.mkdir(parents=True, exist_ok=True)
    for level, suffix in SUFFIXES.items():
        (directory / f"{level}.{suffix}").write_text(executable.ir(level))


def train_rnn(out: Path) -> Row:
    import torch

    iterations, steps, batch, width, lr = 20, 16, 16, 64, 1e-2
    x, y = rnn.waves(iterations, steps, batch, width)
    executable, seconds = compiled(rnn.rnn(batch=batch, width=width, lr=lr))
    state = executable.init(seed=0)
    result, elapsed = timed(lambda: executable(x=x, y=y, state=state))
    weight = torch.tensor(state["w"].copy(), requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=lr)
    losses = []
    for inputs, targets in zip(torch.tensor(x), torch.tensor(y), strict=True):
        hidden, loss = torch.zeros(batch, width), torch.zeros(())
        for t in range(steps):
            hidden = torch.tanh(inputs[t] + hidden @ weight)
            loss = loss + ((hidden - targets[t]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()  # the loss of the program is the sum over t
        optimizer.step()
        losses.append(loss.item() / steps)
    difference = max(np.abs(result["loss"] - losses).max(), np.abs(result.state["w"] - weight.detach().numpy()).max())
    write_ir(executable, out / "rnn")
    return Row(
        "rnn: BPTT and Adam, 20 iterations", "torch autograd", f"losses and weights within {difference:.1e}", seconds,
        f"{elapsed / iterations / steps * 1e6:.1f} us/step", executable.stats.peak_bytes,
    )  # fmt: skip


def decode_llama(out: Path, window: int | None) -> Row:
    import torch
    import transformers

    new, model = 64, llama.checkpoint("build/tiny-llama")
    executable, seconds = compiled(llama.decode(model=str(model), window=window))
    state = executable.init()
    prompt = np.array([[1], [17], [29], [5]])
    result, elapsed = timed(lambda: executable(prompt=prompt, T=len(prompt) + new, state=state))
    write_ir(executable, out / ("llama" if window is None else f"llama_window_{window}"))
    step = f"{elapsed / (len(prompt) + new) * 1e6:.0f} us/token"
    if window is not None:
        rings = executable.ir("loop").count(f"ring {window}")
        return Row(f"llama: window {window}", "", f"{rings} caches of {window} slots", seconds, step,
                   executable.stats.peak_bytes)  # fmt: skip
    transformers.logging.set_verbosity_error()
    network: Any = transformers.LlamaForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    tokens = torch.tensor(prompt.T)
    with torch.inference_mode():
        expected: Any = network.generate(tokens, max_new_tokens=new, do_sample=False, eos_token_id=None, pad_token_id=0)
    equal = int((result["token"][:, 0] == expected[0].numpy()).sum()) - len(prompt)
    agreement = f"{equal} of {new} tokens equal"
    return Row("llama: 4 layers x 256", "transformers generate", agreement, seconds, step, executable.stats.peak_bytes)


class Monitor:
    """Shows the score while the program trains: a host object like any other."""

    def __init__(self, progress: Progress, seed: int, iterations: int):
        self.progress = progress
        self.task = progress.add_task(f"reinforce, seed {seed}", total=iterations, score=0.0)

    def show(self, iteration: np.ndarray, score: np.ndarray) -> None:
        self.progress.update(self.task, completed=int(iteration) + 1, score=float(score))


def learn_cartpole(out: Path, iterations: int) -> Row:
    steps, seeds = 500, (0, 1, 2)
    means = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:>3}/{task.total}"),
        TextColumn("score {task.fields[score]:.1f}"), console=CONSOLE,
    ) as progress:  # fmt: skip
        monitors = iter([Monitor(progress, seed, iterations) for seed in seeds])
        executable, seconds = compiled(reinforce.reinforce(monitor=lambda: next(monitors)))
        start = time.perf_counter()
        for seed in seeds:
            result = executable(I=iterations, T=steps, state=executable.init(seed), seed=seed)
            means.append(float(result["score"][-10:].mean()))
        elapsed = time.perf_counter() - start
    write_ir(executable, out / "reinforce")
    scores = ", ".join(f"{mean:.0f}" for mean in means)
    return Row(
        f"reinforce: {iterations} iterations x 3 seeds", "above 300", f"last 10 iterations: {scores}", seconds,
        f"{elapsed / iterations / steps / len(seeds) * 1e6:.0f} us/step", executable.stats.peak_bytes,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="The three example programs beside independent systems.")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="where the IR goes")
    parser.add_argument("--iterations", type=int, default=100, help="of REINFORCE, per seed")
    arguments = parser.parse_args()
    table = Table(title=f"CPU target; the IR of every level is in {arguments.out}")
    for heading in ("program", "reference", "result", "compile", "time", "peak memory"):
        table.add_column(heading, justify="right" if heading in ("compile", "time", "peak memory") else "left")
    steps: list[tuple[str, Callable[[], Row]]] = [
        ("training an RNN", lambda: train_rnn(arguments.out)),
        ("decoding", lambda: decode_llama(arguments.out, None)),
        ("decoding over a window", lambda: decode_llama(arguments.out, 16)),
        ("learning CartPole", lambda: learn_cartpole(arguments.out, arguments.iterations)),
    ]
    for what, step in steps:
        CONSOLE.print(f"[bold]{what}[/bold] ...")
        row = step()
        table.add_row(row.program, row.reference, row.agreement, f"{row.compile_seconds:.1f} s", row.step,
                      size(row.peak_bytes))  # fmt: skip
    CONSOLE.print(table)


def size(count: int) -> str:
    """`65536` as `64 KiB`."""
    if count < 1024:
        return f"{count} B"
    power = min(int(math.log(count, 1024)), 3)
    return f"{count / 1024**power:.1f} {('B', 'KiB', 'MiB', 'GiB')[power]}"


if __name__ == "__main__":
    main()
