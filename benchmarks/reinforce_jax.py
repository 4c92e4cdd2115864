"""REINFORCE with a baseline in jax: acting jitted per step, learning in one jit, environments in Python."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.reinforce_torch import Environments


def initial(key: jax.Array, outputs: int) -> list[tuple[jax.Array, jax.Array]]:
    sizes = [(4, 64), (64, outputs)]
    keys = jax.random.split(key, len(sizes))
    return [
        (jax.random.uniform(k, size, minval=-1, maxval=1) / size[0] ** 0.5, jnp.zeros(size[1]))
        for k, size in zip(keys, sizes, strict=True)
    ]


def mlp(parameters: Any, x: jax.Array) -> jax.Array:
    for w, b in parameters[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = parameters[-1]
    return x @ w + b


class JaxReinforce:
    """The same work as `TorchReinforce`; `compile_seconds` is the time of the first compile of both functions."""

    def __init__(self, envs: int, steps: int, gamma: float = 0.99, lr: float = 1e-2, seed: int = 0):
        self.envs, self.steps, self.gamma, self.lr = envs, steps, gamma, lr
        self.key, policy, critic = jax.random.split(jax.random.key(seed), 3)
        self.parameters = {"policy": initial(policy, 2), "critic": initial(critic, 1)}
        zeros = jax.tree.map(jnp.zeros_like, self.parameters)
        self.moments = (zeros, zeros, jnp.zeros(()))
        self.act = jax.jit(self.choose)
        self.learn = jax.jit(self.update)

    def choose(self, policy: Any, observation: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        key, draw = jax.random.split(key)
        return jax.random.categorical(draw, mlp(policy, observation)), key

    def loss(self, parameters: Any, data: Any) -> jax.Array:
        observation, after, action, reward, alive, terminated, truncated = data
        bootstrap = mlp(parameters["critic"], after)[..., 0]

        def back(later: jax.Array, step: Any) -> Any:
            reward, terminated, truncated, bootstrap = step
            tail = jnp.where(terminated, 0.0, jnp.where(truncated, bootstrap, later))
            ret = reward + self.gamma * tail
            return ret, ret

        _, ret = lax.scan(back, bootstrap[-1], (reward, terminated, truncated, bootstrap), reverse=True)
        target = lax.stop_gradient(ret)
        value = mlp(parameters["critic"], observation)[..., 0]
        logp = jnp.take_along_axis(jax.nn.log_softmax(mlp(parameters["policy"], observation)), action[..., None], -1)[
            ..., 0
        ]
        weight = alive / alive.sum()
        return (weight * ((value - target) ** 2 - logp * lax.stop_gradient(target - value))).sum()

    def update(self, parameters: Any, moments: Any, data: Any) -> Any:
        gradient = jax.grad(self.loss)(parameters, data)
        first, second, count = moments
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)

        def step(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            return p - self.lr * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return jax.tree.map(step, parameters, first, second), (first, second, count)

    def iterate(self, environments: Environments, iteration: int) -> float:
        """One iteration; the mean return of its episodes."""
        observation = environments.reset(iteration)
        alive = np.ones(self.envs, bool)
        record: list[tuple[np.ndarray, ...]] = []
        for _ in range(self.steps):
            choice, self.key = self.act(self.parameters["policy"], observation, self.key)
            action = np.asarray(choice)
            after, reward, terminated, truncated = environments.step(action)
            masked = np.where(alive, reward, 0.0).astype(np.float32)
            record.append((observation, after, action, masked, alive.astype(np.float32), terminated, truncated))
            alive = alive & ~(terminated | truncated)
            observation = after
        data = tuple(np.stack(column) for column in zip(*record, strict=True))
        self.parameters, self.moments = self.learn(self.parameters, self.moments, data)
        jax.block_until_ready(self.parameters)
        return float(data[3].sum(0).mean())
