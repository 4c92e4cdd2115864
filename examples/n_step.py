"""REINFORCE with n-step returns: learning runs n - 1 steps behind acting, so that n observations are kept, not T.

    python examples/n_step.py                     n = 1, 8, 64 and Monte Carlo; T = 1000, 256 environments of 3x32x32
    python examples/n_step.py --steps 100         shorter

The program says what a return is, and nothing of when it is learnt from. Each line is of one compile as it is
(interleaved), beside the same program compiled without sdg-accumulate, which learns after the last step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tempo_ir as tp
from tempo_ir import nn, rl

ACTIONS = 4
RETURNS: tuple[int | None, ...] = (1, 8, 64, None)
"""How many rewards a return adds up; None: all to the end (Monte Carlo)."""


def environment(observation: tp.Tensor, action: tp.Tensor, t: tp.Dim) -> tuple[tp.Tensor, tp.Tensor]:
    """Images that fade into noise as bright as the action says: what is seen next, and the reward of the step."""
    brightness = action.cast(tp.f32) / (ACTIONS - 1)
    noise = tp.random.uniform(0.0, 1.0, observation.spec, over=t)
    after = 0.9 * observation + 0.1 * brightness[..., None, None, None] * noise
    reward = tp.mean(observation, axis=(1, 2, 3)) - 0.5 * tp.abs(brightness - 0.5)
    return after, reward


@tp.program
def n_step(n: int | None = 8, envs=256, side=32, hidden=16, gamma=0.99):
    t, T = tp.dim("t")
    image = tp.f32[envs, 3, side, side]
    policy = nn.MLP(3 * side * side, hidden, ACTIONS, name="policy")
    observation = tp.tensor("observation", image, over=t)
    logits = policy(observation.reshape(envs, -1))
    action = tp.random.categorical(logits)
    after, reward = environment(observation, action, t)
    observation[0] = tp.random.uniform(0.0, 1.0, image)
    observation[t + 1] = after
    ret = rl.discounted_sum(reward[t : T if n is None else tp.minimum(t + n, T)], gamma)
    loss = -tp.mean(tp.log_prob(logits, action) * tp.stop_gradient(ret))
    tp.output("gradient", tp.grad(loss, policy))  # of the loss summed over all steps


def run(n: int | None, envs: int, steps: int, without: Collection[str] = ()) -> tuple[tp.Executable, Any, float]:
    """The executable, what it gives, and the seconds that it runs."""
    executable = tp.compile(n_step(n=n, envs=envs), without=without)
    state = executable.init(seed=0)
    start = time.perf_counter()
    out = executable(T=steps, state=state, seed=0)
    return executable, out, time.perf_counter() - start


def difference(out: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """The greatest difference of a gradient, relative to the greatest element of it."""
    return max(float(np.abs(out[key] - expected[key]).max() / np.abs(expected[key]).max()) for key in expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--envs", type=int, default=256)
    options = parser.parse_args()
    table = Table("returns", "peak bytes", "in T", "seconds", "learning last", "seconds", "less", "gradients differ by")
    for n in RETURNS:
        executable, out, seconds = run(n, options.envs, options.steps)
        last, expected, last_seconds = run(n, options.envs, options.steps, without=("sdg-accumulate",))
        differs = difference(out, expected)
        peak, last_peak = executable.stats.peak_bytes, last.stats.peak_bytes
        table.add_row(
            "Monte Carlo" if n is None else f"{n} steps",
            f"{peak:,}",
            str(executable.costs.near({"T": options.steps}).peak_bytes),
            f"{seconds:.1f}",
            f"{last_peak:,}",
            f"{last_seconds:.1f}",
            f"{last_peak / peak:.1f}x",
            f"{differs:.0e}",
        )
        if differs > 1e-4:
            raise SystemExit(f"n = {n}: the gradients differ by {differs:.1e}")
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
