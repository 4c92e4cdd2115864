"""`decode`: seconds per token of greedy decoding, Llama 4 layers x 256 wide and 12 x 768, in f32 but where it says so.

Causal and with a window of 64, T = 256, 1024 and 4096, batch 1, 4 and 16, a prompt of 8. Beside it jax with a padded
cache (and, with a window, one of 64 rows that is a ring), torch eager, and torch.compile where `COMPILED` says. jax
reads its whole cache for each token, so one takes as long as another: it decodes the first 512 of T. All tokens are
compared first; those of weights in bf16, or in i8 with a scale per row, and caches in bf16 are nearly the greatest
logits. The peak is what each needs beside weights and tokens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file

import tempo_ir as tp
from benchmarks.harness import Report, System, bound_of, compare, finish, jax_compiled
from benchmarks.llama_jax import JaxLlama
from benchmarks.llama_torch import CompiledLlama, TorchLlama
from examples import llama
from tempo_ir import llm

PROMPT = 8
WINDOW = 64
COMPILED = {"model": "4x256", "T": 1024, "batch": 1}
"""The case that torch.compile is measured in: it takes minutes to compile each."""
STORED: dict[str, dict[str, str]] = {
    "tempo_ir": {},
    "tempo_ir bf16": {"weights": "bf16", "cache": "bf16"},
    "tempo_ir i8": {"weights": "i8", "cache": "bf16"},
}
"""How each of our systems stores weights and caches, where not in f32."""
NEARLY = {"bf16": 0.05, "i8": 0.1}
"""How far below the greatest logit, as a part of the greatest of all, the logit of a token may be in f32, by the type
of the weights that chose it."""


JAX_STEPS = 512
"""How many tokens jax decodes at most, in a cache for all of them."""


@dataclass(frozen=True)
class Model:
    """The sizes of a random checkpoint."""

    name: str
    sizes: dict[str, int]

    def checkpoint(self) -> Path:
        """Its directory; it is written where it is missing."""
        path = Path("build/benchmarks") / self.name
        return path if (path / "config.json").exists() else llm.write_random_llama(path, seed=0, **self.sizes)


SMALL = Model("4x256", {})
LARGE = Model("12x768", {"layers": 12, "hidden": 768, "heads": 12, "kv_heads": 4, "feed_forward": 2048})


def run(report: Report, quick: bool = False) -> None:
    """Add the rows of all models, windows, lengths and batches."""
    for model in (SMALL,) if quick else (SMALL, LARGE):
        for window in (None, WINDOW):
            for batch in (1, 4) if quick else (1, 4, 16):
                lengths = (256,) if quick else (256, 1024, 4096)
                decode(report, model, window, batch, lengths, rounds=3 if quick else 7)


def decode(report: Report, model: Model, window: int | None, batch: int, lengths: tuple[int, ...], rounds: int) -> None:
    """The rows of one program, compiled once for all lengths."""
    cases = [{"model": model.name, "window": window, "T": length, "batch": batch} for length in lengths]
    if not (wanted := [case for case in cases if report.wants(case)]):
        return
    checkpoint = model.checkpoint()
    weights = load_file(checkpoint / "model.safetensors")
    config = json.loads((checkpoint / "config.json").read_text())
    compiled = {name: Decoder(checkpoint, batch, window, stored) for name, stored in STORED.items()}
    draw = np.random.default_rng(0)
    for case in wanted:
        prompt = draw.integers(0, config["vocab_size"], (PROMPT, batch))
        task = Task(weights, config, window, prompt, case["T"])
        step = all(case[key] == value for key, value in COMPILED.items())
        mine = [decoder.system(name, task) for name, decoder in compiled.items()]
        systems = [*mine, *task.systems(step)]
        compare(report, "decode", case, systems, case["T"], rounds, task.bound())


class Decoder:
    """The program of a model, compiled once for all lengths."""

    def __init__(self, checkpoint: Path, batch: int, window: int | None, stored: dict[str, str]):
        start = time.perf_counter()
        self.executable = tp.compile(llama.decode(model=str(checkpoint), batch=batch, window=window, **stored))
        self.seconds = time.perf_counter() - start
        self.state, self.weights = self.executable.init(), stored.get("weights")

    def system(self, name: str, task: Task) -> System:
        """tempo_ir on a task, after a run whose tokens are noted (f32), or are nearly the greatest logits."""
        arguments: dict[str, Any] = {"prompt": task.prompt, "T": task.length, "state": self.state}
        tokens = self.executable(**arguments)["token"]
        if self.weights is None:
            task.tokens = tokens
        else:
            eager = TorchLlama(task.weights, task.config, task.window)
            expected = tokens if task.tokens is None else task.tokens
            check_tokens(name, expected.T, tokens.T, eager, NEARLY[self.weights])
        peak = self.executable.stats.peak_bytes
        profile = None if self.weights else lambda: tp.profile(self.executable, **arguments)
        return System(name, lambda: finish(self.executable(**arguments)), self.seconds, peak, profile=profile)


@dataclass
class Task:
    """One prompt (P, batch) to be gone on with up to `length` tokens."""

    weights: dict[str, np.ndarray]
    config: dict[str, Any]
    window: int | None
    prompt: np.ndarray
    length: int
    tokens: np.ndarray | None = None

    def systems(self, compiled: bool) -> Iterator[System]:
        """The other systems, whose tokens have been compared."""
        eager = TorchLlama(self.weights, self.config, self.window)
        for name, ring in (("jax", False), ("jax ring", True)):
            if ring and self.window is None:
                continue
            yield self.jitted(name, JaxLlama(self.weights, self.config, self.window, ring), eager)
        rows = self.prompt.T
        yield self.checked("torch", eager, lambda: eager.generate(rows, self.length), 0.0)
        if compiled:
            static = CompiledLlama(self.weights, self.config, self.window)
            start = time.perf_counter()
            static.generate(rows, self.length)
            seconds = time.perf_counter() - start
            yield self.checked("torch.compile", eager, lambda: static.generate(rows, self.length), seconds)

    def jitted(self, name: str, static: JaxLlama, eager: TorchLlama) -> System:
        rows = self.prompt.T.astype(np.int32)
        steps = min(self.length, JAX_STEPS)
        jitted, seconds, scratch = jax_compiled(static.jit(self.length, steps), static.parameters, rows)
        run = lambda: jax.block_until_ready(jitted(static.parameters, rows))  # noqa: E731
        return self.checked(name, eager, run, seconds, scratch, steps)

    def checked(
        self,
        name: str,
        eager: TorchLlama,
        generate: Callable[[], Any],
        seconds: float,
        peak: int | None = None,
        steps: int | None = None,
    ) -> System:
        """A system, after a comparison of its tokens (batch, T), or of the first `steps` of them, with tempo_ir's."""
        assert self.tokens is not None
        check_tokens(name, self.tokens.T[:, :steps], np.asarray(generate())[:, :steps], eager)
        return System(name, lambda: finish(generate()), seconds, peak, units=steps)

    def bound(self) -> float:
        """Seconds to read once what a token needs (all weights but the embedding, the rows of the caches that it looks
        back on), or to do its operations."""
        embedding, config = "model.embed_tokens.weight", self.config
        used = [
            value for name, value in self.weights.items() if name != embedding or "lm_head.weight" not in self.weights
        ]
        batch, width = self.prompt.shape[1], config["head_dim"]
        past = np.minimum(np.arange(1, self.length + 1), self.window or self.length).mean()
        rows = config["num_hidden_layers"] * batch * past * width
        cache = 2 * 4 * rows * config["num_key_value_heads"]
        operations = 2 * batch * sum(value.size for value in used) + 4 * rows * config["num_attention_heads"]
        return bound_of(sum(value.nbytes for value in used) + cache, operations)


def check_tokens(system: str, ours: np.ndarray, theirs: np.ndarray, eager: TorchLlama, within: float = 1e-4) -> None:
    """Tokens (batch, T) are equal; where two logits are equal to rounding, either token may follow, and all after it.

    Raises SystemExit for tokens that are not the greatest logits to rounding (`within` of the greatest of all), as
    torch computes them.
    """
    for row, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if np.array_equal(mine, other):
            continue
        for tokens in (mine, other):
            logits = eager.scores(tokens[None])[0, PROMPT - 1 : -1]
            chosen = np.take_along_axis(logits, tokens[PROMPT:, None].astype(np.int64), -1)[:, 0]
            short = logits.max(-1) - chosen
            if (worst := short.max()) > within * np.abs(logits).max():
                first = PROMPT + int(short.argmax())
                raise SystemExit(f"decode: tempo_ir and {system} disagree: row {row}, token {first}, by {worst:.1e}")
