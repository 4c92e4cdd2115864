"""REINFORCE with a baseline on gymnasium's CartPole: acting, returns, gradients and Adam, one program.

    python examples/reinforce.py                                train 100 iterations, print the score of each

Needs gymnasium (`pip install tempo_ir[rl]`).
"""

from __future__ import annotations

import gymnasium
import numpy as np

import tempo_ir as tp
from tempo_ir import nn, optim


class CartPoles:
    """Several CartPole environments; one that ended is reset by the step after (gymnasium's NEXT_STEP autoreset)."""

    def __init__(self, count: int):
        self.env = gymnasium.make_vec("CartPole-v1", count, vectorization_mode="sync")

    def reset(self, seed: np.ndarray) -> np.ndarray:
        return self.env.reset(seed=int(seed))[0]

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return observation, reward, terminated, truncated


@tp.program
def reinforce(envs=8, gamma=0.99, lr=1e-2, make=None, monitor=None):
    (i, I), (t, T) = tp.dims("i", "t")
    policy = nn.MLP(4, 64, 2, name="policy", steps=i)
    critic = nn.MLP(4, 64, 1, name="critic", steps=i)
    env = tp.host(make or (lambda: CartPoles(envs)))
    obs = tp.tensor("obs", tp.f32[envs, 4], over=(i, t))
    alive = tp.tensor("alive", tp.bool[envs], over=(i, t))
    logits = policy[i](obs)
    action = tp.random.categorical(logits)  # integers: no gradient passes through the environment
    obs[i, 0] = env.reset(i, returns=tp.f32[envs, 4])  # a call per i; then a call per (i, t)
    after, reward, terminated, truncated = env.step(
        action, returns=(tp.f32[envs, 4], tp.f64[envs], tp.bool[envs], tp.bool[envs])
    )
    obs[i, t + 1] = after
    alive[i, 0] = True  # one episode a row, then masked: what an environment does after its end does not count
    alive[i, t + 1] = alive & ~(terminated | truncated)
    r = tp.where(alive, reward, 0).cast(tp.f32)
    value, bootstrap = critic[i](obs)[..., 0], critic[i](after)[..., 0]
    later = tp.tensor("later", tp.f32[envs], over=(i, t))  # what follows step t
    ret = r + gamma * tp.where(terminated, 0, tp.where(truncated, bootstrap, later))
    later[i, T - 1] = bootstrap
    later[i, t] = ret[i, t + 1]  # reads the future: the compiler runs this loop backwards
    target = tp.stop_gradient(ret)
    step_loss = (value - target) ** 2 - tp.log_prob(logits, action) * tp.stop_gradient(target - value)
    weight = alive.cast(tp.f32) / tp.sum(alive[i, 0:T].cast(tp.f32))
    optim.Adam(lr).minimize(tp.sum(weight * step_loss), (policy, critic))
    score = tp.mean(tp.sum(r[i, 0:T], axis=0))
    if monitor is None:
        tp.log(i, score=score)  # a host op: prints while the program runs
    else:
        tp.host(monitor).show(i, score)
    tp.output("score", score)


def main() -> None:
    exe = tp.compile(reinforce())
    out = exe(I=100, T=500, state=exe.init(seed=0), seed=0)
    print(f"mean score of the last 10 iterations: {out['score'][-10:].mean():.1f}")


if __name__ == "__main__":
    main()
