"""`first`: Llama decode and REINFORCE on the CPU beside torch eager and jax.

decode: seconds per token of greedy decoding, 4 layers x 256 wide, f32, causal; all tokens are compared first.
reinforce: seconds per iteration (8 environments, T = 500) without the time inside `env.step` and `env.reset`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file

import tempo_ir as tp
from benchmarks.cartpole import TimedCartPoles
from benchmarks.harness import Report, System, compare, finish, jax_compiled, read_bandwidth
from benchmarks.llama_jax import JaxLlama
from benchmarks.llama_torch import TorchLlama
from benchmarks.reinforce_jax import JaxReinforce
from benchmarks.reinforce_torch import TorchReinforce
from examples import llama, reinforce

MODEL = Path("build/tiny-llama")
PROMPT = 8


def run(report: Report, quick: bool = False) -> None:
    """Add the rows of both benchmarks to the report."""
    rounds = 3 if quick else 7
    decode(report, lengths=(64, 256) if quick else (64, 256, 1024), batches=(1, 4), rounds=rounds)
    train(report, iterations=1 if quick else 3, steps=100 if quick else 500, rounds=rounds)


def decode(report: Report, lengths: Sequence[int], batches: Sequence[int], rounds: int) -> None:
    checkpoint = llama.checkpoint(str(MODEL))
    weights = load_file(checkpoint / "model.safetensors")
    config = json.loads((checkpoint / "config.json").read_text())
    eager, static = TorchLlama(weights, config), JaxLlama(weights, config)
    draw = np.random.default_rng(0)

    def case(executable: tp.Executable, compile_seconds: float, prompt: np.ndarray, length: int) -> list[System]:
        """The three systems on one prompt (P, batch), after a comparison of their tokens."""
        arguments: dict[str, Any] = {"prompt": prompt, "T": length, "state": executable.init()}
        rows = prompt.T.astype(np.int32)
        jitted, jax_seconds, scratch = jax_compiled(static.jit(length), static.parameters, rows)
        tokens = executable(**arguments)["token"]
        check_tokens("torch", tokens, eager.generate(prompt.T, length).T)
        check_tokens("jax", tokens, np.asarray(jitted(static.parameters, rows)).T)
        return [
            System("tempo_ir", lambda: finish(executable(**arguments)), compile_seconds, executable.stats.peak_bytes),
            System("torch", lambda: finish(eager.generate(prompt.T, length)), 0.0),
            System("jax", lambda: finish(jax.block_until_ready(jitted(static.parameters, rows))), jax_seconds, scratch),
        ]

    for batch in batches:
        start = time.perf_counter()
        executable = tp.compile(llama.decode(model=str(checkpoint), batch=batch))
        compile_seconds = time.perf_counter() - start  # once for all lengths
        for length in lengths:
            prompt = draw.integers(0, config["vocab_size"], (PROMPT, batch))
            systems = case(executable, compile_seconds, prompt, length)
            what = {"layers": 4, "hidden": 256, "T": length, "batch": batch}
            compare(report, "decode", what, systems, length, rounds, decode_bound(weights, config, length, batch))


def check_tokens(system: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    if not np.array_equal(ours, theirs):
        first = int(np.argwhere((ours != theirs).any(axis=1))[0, 0])
        raise SystemExit(f"decode: tempo_ir and {system} disagree from token {first} on")


def decode_bound(weights: dict[str, np.ndarray], config: dict[str, Any], length: int, batch: int) -> float:
    """Seconds to read once what a token needs: all weights but the embedding, and half the final cache on average."""
    embedding = "model.embed_tokens.weight"
    size = sum(value.nbytes for name, value in weights.items() if name != embedding or "lm_head.weight" not in weights)
    width = config["hidden_size"] // config["num_attention_heads"]
    cache = 2 * config["num_hidden_layers"] * batch * config["num_key_value_heads"] * width * 4 * length // 2
    return (size + cache) / read_bandwidth(size + cache)


def train(report: Report, iterations: int, steps: int, rounds: int, envs: int = 8) -> None:
    """All systems keep learning from run to run; an iteration is the same work however well it does."""
    start = time.perf_counter()
    clocks: list[TimedCartPoles] = []

    def environments() -> TimedCartPoles:
        clocks.append(TimedCartPoles(envs))
        return clocks[-1]

    executable = tp.compile(reinforce.reinforce(envs=envs, make=environments, monitor=Silent))
    compile_seconds = time.perf_counter() - start
    state = executable.init(seed=0)

    def ours() -> float:
        executable(I=iterations, T=steps, state=state, seed=0)
        return clocks[-1].seconds

    def alone(system: TorchReinforce | JaxReinforce) -> float:
        clock = TimedCartPoles(envs)
        for iteration in range(iterations):
            system.iterate(clock, iteration)
        return clock.seconds

    eager, static = TorchReinforce(envs, steps), JaxReinforce(envs, steps)
    start = time.perf_counter()
    alone(static)
    jax_seconds = time.perf_counter() - start
    ours()
    systems = [
        System("tempo_ir", ours, compile_seconds, executable.stats.peak_bytes),
        System("torch", lambda: alone(eager), 0.0),
        System("jax", lambda: alone(static), jax_seconds),
    ]
    compare(report, "reinforce", {"envs": envs, "T": steps, "hidden": 64}, systems, iterations, rounds)


class Silent:
    """A monitor that shows nothing."""

    def show(self, iteration: np.ndarray, score: np.ndarray) -> None:
        pass
