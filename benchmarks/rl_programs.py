"""PPO, A2C and REINFORCE on CartPole as recurrent-tensor programs, with the environment compiled or gymnasium's.

One iteration is a rollout of T steps in `envs` environments and the learning from it. Policy and critic are two
networks 4-64-64-n; environments go on from one iteration to the next, and one that ended begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tempo_ir as tp
from examples.rollout import LIMIT, cartpole
from tempo_ir import nn, optim, rl


@dataclass(frozen=True)
class Settings:
    """An algorithm and its numbers, for the program and its twins in jax and torch alike."""

    algorithm: str
    envs: int
    hidden: int = 64
    epochs: int = 1
    minibatch: int | None = None
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    lr: float = 1e-3

    def program(self, make: Callable[[], Any] | None = None) -> tp.Program:
        """The program; `make` gives the host object of the environments, None compiles CartPole into it."""
        common = {"envs": self.envs, "hidden": self.hidden, "gamma": self.gamma, "lr": self.lr, "make": make}
        match self.algorithm:
            case "reinforce":
                return reinforce(**common)
            case "a2c":
                return a2c(lam=self.lam, **common)
            case _:
                return ppo(epochs=self.epochs, minibatch=self.minibatch, lam=self.lam, clip=self.clip, **common)


@dataclass(frozen=True)
class Rollout:
    """What was seen and done over (i, t), per environment; `counts` is 0 where a step only began an episode."""

    obs: tp.Tensor
    action: tp.Tensor
    logits: tp.Tensor
    reward: tp.Tensor
    ended: tp.Tensor
    counts: tp.Tensor | None
    last: tp.Tensor
    """The observation after the last step, over (i)."""


def rollout(policy: Any, i: tp.Dim, t: tp.Dim, T: tp.Dim, envs: int, make: Callable[[], Any] | None) -> Rollout:
    """Act with `policy` for T steps; `make` gives the host object of the environments, None compiles CartPole."""
    obs = tp.tensor("obs", tp.f32[envs, 4], over=(i, t))
    logits = policy(obs)
    action = tp.random.categorical(logits)
    if make is None:
        first = tp.random.uniform(-0.05, 0.05, tp.f32[envs, 4])
        fresh = tp.random.uniform(-0.05, 0.05, tp.f32[envs, 4], over=(i, t))
        age = tp.tensor("age", tp.i64[envs], over=(i, t))
        moved, fell = cartpole(obs, action)
        ended = fell | (age + 1 >= LIMIT)
        along(age, i, t, T, 0, tp.where(ended, 0, age + 1))
        after = tp.where(ended[..., None], fresh, moved)
        reward, counts = tp.ones([envs]), None
    else:
        world = tp.host(make)
        first = world.reset(returns=tp.f32[envs, 4])
        after, gain, terminated, truncated = world.step(
            action, returns=(tp.f32[envs, 4], tp.f64[envs], tp.bool[envs], tp.bool[envs])
        )
        ended, reward = terminated | truncated, gain.cast(tp.f32)
        begins = tp.tensor("begins", tp.bool[envs], over=(i, t))  # gymnasium resets in the step after an end
        along(begins, i, t, T, False, ended)
        counts = 1.0 - begins.cast(tp.f32)
    along(obs, i, t, T, first, after)
    return Rollout(obs, action, logits, reward, ended, counts, after[i, T - 1])


def along(x: tp.Tensor, i: tp.Dim, t: tp.Dim, T: tp.Dim, first: Any, after: tp.Tensor) -> None:
    """Define x as `first`, then what comes after each step, on through all iterations."""
    x[0, 0] = first
    x[i, 0] = after[i - 1, T - 1]
    x[i, t] = after[i, t - 1]


def average(x: tp.Tensor, roll: Rollout, i: tp.Dim, T: tp.Dim) -> tp.Tensor:
    """The terms over (i, t) whose sum over t is the mean of x over all steps that count."""
    if roll.counts is None:
        return tp.mean(x) / T
    return tp.sum(x * roll.counts) / tp.sum(roll.counts[i, 0:T])


def advantages(roll: Rollout, critic: Any, i: tp.Dim, t: tp.Dim, T: tp.Dim, gamma: float, lam: float):
    """Advantages of generalised estimation and the values they are beside, over (i, t); an end is worth 0."""
    value = critic(roll.obs)
    following = tp.tensor("following", value.spec, over=(i, t))
    following[i, T - 1] = critic(roll.last)
    following[i, t] = value[i, t + 1]
    delta = roll.reward + gamma * tp.where(roll.ended, 0.0, following) - value
    return rl.generalised_advantages("advantage", delta, gamma * lam, (i, t), roll.ended), value


def networks(steps: Any, hidden: int) -> tuple[nn.MLP, nn.MLP]:
    return (
        nn.MLP(4, hidden, hidden, 2, name="policy", steps=steps),
        nn.MLP(4, hidden, hidden, 1, name="critic", steps=steps),
    )


def report(roll: Rollout, i: tp.Dim, T: tp.Dim) -> None:
    """The outputs of every program: how many episodes ended, per iteration."""
    tp.output("ends", tp.sum(tp.sum(roll.ended[i, 0:T].cast(tp.f32), axis=0)))


@tp.program
def reinforce(envs=64, hidden=64, gamma=0.99, lr=1e-3, make=None):
    (i, I), (t, T) = tp.dims("i", "t")
    policy = nn.MLP(4, hidden, hidden, 2, name="policy", steps=i)
    roll = rollout(policy[i], i, t, T, envs, make)
    gain = rl.discounted_returns("later", roll.reward, gamma, (i, t), 0.0, roll.ended)
    every = tp.stop_gradient(gain)[i, 0:T]
    centred = (tp.stop_gradient(gain) - tp.mean(every)) / (tp.std(every) + 1e-8)
    loss = average(-tp.log_prob(roll.logits, roll.action) * centred, roll, i, T)
    optim.Adam(lr).minimize(loss, policy)
    report(roll, i, T)


@tp.program
def a2c(envs=64, hidden=64, gamma=0.99, lam=0.95, lr=1e-3, make=None):
    (i, I), (t, T) = tp.dims("i", "t")
    policy, critic = networks(i, hidden)
    roll = rollout(policy[i], i, t, T, envs, make)
    advantage, value = advantages(roll, lambda obs: critic[i](obs)[..., 0], i, t, T, gamma, lam)
    advantage, target = tp.stop_gradient(advantage), tp.stop_gradient(advantage + value)
    step = 0.5 * (value - target) ** 2 - tp.log_prob(roll.logits, roll.action) * advantage
    loss = average(step - 0.01 * tp.entropy(roll.logits), roll, i, T)
    optim.Adam(lr, max_norm=0.5).minimize(loss, (policy, critic))
    report(roll, i, T)


@tp.program
def ppo(envs=64, hidden=64, epochs=1, minibatch=None, gamma=0.99, lam=0.95, clip=0.2, lr=1e-3, make=None):
    (i, I), (t, T) = tp.dims("i", "t")
    e, _ = tp.dim("e", epochs)
    steps = (i, e) if minibatch is None else (i, e, tp.dim("m", T * envs // minibatch)[0])
    policy, critic = networks(steps, hidden)
    first = (i, *[0] * len(steps[1:]))  # acting is before all learning of an iteration
    roll = rollout(policy[first], i, t, T, envs, make)
    advantage, value = advantages(roll, lambda obs: critic[first](obs)[..., 0], i, t, T, gamma, lam)
    old = {
        "obs": roll.obs, "action": roll.action, "logp": tp.log_prob(roll.logits, roll.action),
        "advantage": advantage, "target": advantage + value,
    }  # fmt: skip
    if roll.counts is not None:
        old["counts"] = roll.counts
    old = {name: tp.stop_gradient(a)[i, 0:T].flatten(0, 1) for name, a in old.items()}
    if minibatch is not None:
        order, m = tp.random.permutation(T * envs, over=(i, e)), steps[-1]
        old = {name: a.take(order[i, e, minibatch * m : minibatch * (m + 1)]) for name, a in old.items()}
    batch = tp.record(**old)
    logits, now = policy[steps](batch.obs), critic[steps](batch.obs)[..., 0]
    ratio = tp.exp(tp.log_prob(logits, batch.action) - batch.logp)
    surrogate = tp.minimum(ratio * batch.advantage, tp.clip(ratio, 1 - clip, 1 + clip) * batch.advantage)
    step = 0.5 * (now - batch.target) ** 2 - surrogate - 0.01 * tp.entropy(logits)
    loss = tp.mean(step) if roll.counts is None else tp.sum(step * batch.counts) / tp.sum(batch.counts)
    optim.Adam(lr, max_norm=0.5).minimize(loss, (policy, critic))
    report(roll, i, T)
