"""`ablation`: what each pass is worth: the same program with all passes and with each one left out.

decode: seconds per token of greedy decoding, 4 layers x 256 wide, T = 256, batch 1 and 4.
reinforce: seconds per iteration (8 environments) without the time inside `env.step` and `env.reset`.

Every variant gives the same numbers (the suite checks it, and here tokens are compared once more); time, peak bytes and
the launches in the program are what differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

import tempo_ir as tp
from benchmarks.cartpole import TimedCartPoles
from benchmarks.first import MODEL, PROMPT, Silent
from benchmarks.harness import Report, System, compare, finish
from examples import llama, reinforce
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE
from tempo_ir.runtime.compiler import OPTIONAL


def variants() -> list[tuple[str, tuple[str, ...]]]:
    """Names of the systems, with the passes that each leaves out; the first leaves out none."""
    passes = [name for name in dict.fromkeys((*DEFAULT_PIPELINE, "loop-plan-storage")) if name in OPTIONAL]
    return [("tempo_ir", ()), *((f"without {name}", (name,)) for name in passes)]


def run(report: Report, quick: bool = False) -> None:
    """Add the rows of both programs to the report."""
    rounds = 3 if quick else 7
    for batch in (1,) if quick else (1, 4):
        decode(report, length=64 if quick else 256, batch=batch, rounds=rounds)
    train(report, iterations=1, steps=50 if quick else 200, rounds=rounds)


def compiled(
    program: tp.Program, without: Sequence[str], calls: Callable[[tp.Executable], Callable[[], float]], name: str
) -> System:
    """A variant of a program, which has run once, so that its peak is known."""
    start = time.perf_counter()
    executable = tp.compile(program, without=without)
    seconds = time.perf_counter() - start
    call = calls(executable)
    call()
    return System(name, call, seconds, executable.stats.peak_bytes, executable.stats.launches)


def decode(report: Report, length: int, batch: int, rounds: int) -> None:
    program = llama.decode(model=str(llama.checkpoint(str(MODEL))), batch=batch)
    prompt = np.random.default_rng(0).integers(0, 1000, (PROMPT, batch))
    tokens: list[np.ndarray] = []

    def calls(executable: tp.Executable) -> Callable[[], float]:
        state = executable.init()
        tokens.append(executable(prompt=prompt, T=length, state=state)["token"])
        return lambda: finish(executable(prompt=prompt, T=length, state=state))

    systems = [compiled(program, without, calls, name) for name, without in variants()]
    for system, found in zip(systems, tokens, strict=True):
        if not np.array_equal(found, tokens[0]):
            raise SystemExit(f"decode: {system.name} gives other tokens")
    compare(report, "decode", {"T": length, "batch": batch}, systems, length, rounds)


def train(report: Report, iterations: int, steps: int, rounds: int, envs: int = 8) -> None:
    """All variants keep learning from run to run; an iteration is the same work however well it does."""

    def system(name: str, without: Sequence[str]) -> System:
        clocks: list[TimedCartPoles] = []

        def environments() -> TimedCartPoles:
            clocks.append(TimedCartPoles(envs))
            return clocks[-1]

        def calls(executable: tp.Executable) -> Callable[[], float]:
            state = executable.init(seed=0)

            def call() -> float:
                executable(I=iterations, T=steps, state=state, seed=0)
                return clocks[-1].seconds

            return call

        return compiled(reinforce.reinforce(envs=envs, make=environments, monitor=Silent), without, calls, name)

    systems = [system(name, without) for name, without in variants()]
    compare(report, "reinforce", {"envs": envs, "T": steps}, systems, iterations, rounds)
