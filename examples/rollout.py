"""A rollout with its environment compiled: many CartPoles and the policy that acts in them, one program.

    python examples/rollout.py                                      500 steps of 1024: episodes and their length
    tempo-run examples/rollout.py --set envs=8 --set T=100 --check  against the reference interpreter
    tempo-run examples/rollout.py --emit-triton build/rollout       the Triton package: the rollout is one kernel

Nothing leaves the device between steps: dynamics, resets and draws are tensors, so on a GPU one launch runs all steps,
each program with environments of its own.
"""

from __future__ import annotations

import time

import numpy as np

import tempo_ir as tp
from tempo_ir import nn

LIMIT = 500
"""Steps after which an episode is cut."""


def cartpole(state: tp.Tensor, action: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    """gymnasium's CartPole-v1: states (..., 4) and actions (...) -> next states, and whether the pole fell or left."""
    x, speed, angle, spin = (state[..., k] for k in range(4))
    force, cos, sin = tp.where(action == 1, 10.0, -10.0), tp.cos(angle), tp.sin(angle)
    push = (force + 0.05 * spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    x, speed = x + 0.02 * speed, speed + 0.02 * (push - 0.05 * turn * cos / 1.1)
    angle, spin = angle + 0.02 * spin, spin + 0.02 * turn
    return tp.stack([x, speed, angle, spin], -1), (tp.abs(x) > 2.4) | (tp.abs(angle) > 12 * 2 * tp.pi / 360)


@tp.program
def rollout(envs=1024, hidden=64):
    t, T = tp.dim("t")
    policy = nn.MLP(4, hidden, 2, name="policy")
    obs = tp.tensor("obs", tp.f32[envs, 4], over=t)
    age = tp.tensor("age", tp.i64[envs], over=t)  # steps of the episode so far
    action = tp.random.categorical(policy(obs))
    moved, fell = cartpole(obs, action)
    ended = fell | (age + 1 >= LIMIT)
    begin = tp.random.uniform(-0.05, 0.05, tp.f32[envs, 4], over=t)  # where the next episode begins, if one does
    obs[0], obs[t + 1] = tp.random.uniform(-0.05, 0.05, tp.f32[envs, 4]), tp.where(ended[..., None], begin, moved)
    age[0], age[t + 1] = 0, tp.where(ended, 0, age + 1)
    for name, value in {"obs": obs, "action": action, "ended": ended}.items():
        tp.output(name, value)


def main() -> None:
    steps = 500
    exe = tp.compile(rollout())
    state = exe.init(seed=0)
    begin = time.perf_counter()
    out = exe(T=steps, state=state, seed=0)
    seconds, ended = time.perf_counter() - begin, out["ended"]
    print(f"{ended.size} steps in {seconds:.3f} s: {ended.size / seconds / 1e6:.1f} million a second")
    print(f"{np.sum(ended)} episodes ended, of {ended.size / max(1, np.sum(ended)):.1f} steps on average")


if __name__ == "__main__":
    main()
