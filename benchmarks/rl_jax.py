"""PPO, A2C and REINFORCE on CartPole in jax, as PureJaxRL writes them: iterations are one `scan` under one jit.

The same work as `rl_programs`. With gymnasium, acting is jitted per step and learning is one jit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.rl_programs import Settings
from examples.rollout import LIMIT


def cartpole(state: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
    """States (..., 4) and actions (...) -> next states, and whether the pole fell or left."""
    x, v, angle, spin = (state[..., k] for k in range(4))
    force, cos, sin = jnp.where(action == 1, 10.0, -10.0), jnp.cos(angle), jnp.sin(angle)
    push = (force + 0.05 * spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    x, v = x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cos / 1.1)
    angle, spin = angle + 0.02 * spin, spin + 0.02 * turn
    return jnp.stack([x, v, angle, spin], -1), (jnp.abs(x) > 2.4) | (jnp.abs(angle) > 12 * 2 * jnp.pi / 360)


def mlp(layers: list[Any], x: jax.Array) -> jax.Array:
    for w, b in layers[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


def stacked(state: Mapping[str, np.ndarray], name: str) -> list[tuple[jax.Array, jax.Array]]:
    """The layers of one of tempo_ir's networks, weights as (in, out)."""
    return [
        (jnp.array(state[f"{name}.{n}.weight"].T), jnp.array(state[f"{name}.{n}.bias"]))
        for n in range(3)
        if f"{name}.{n}.weight" in state
    ]


class JaxAgent:
    """One algorithm at fixed sizes; `carry` goes from call to call.

    Draws come of jax's generator, or of the arrays `draws` (those of tempo_ir, to compare results).
    """

    def __init__(
        self, settings: Settings, steps: int, state: Mapping[str, np.ndarray], draws: Mapping[str, Any] | None = None
    ):
        self.settings, self.steps, self.envs = settings, steps, settings.envs
        self.draws = None if draws is None else jax.tree.map(jnp.asarray, dict(draws))
        networks = {name: stacked(state, name) for name in ("policy", "critic") if f"{name}.0.weight" in state}
        key = jax.random.key(0)
        moments = (jax.tree.map(jnp.zeros_like, networks), jax.tree.map(jnp.zeros_like, networks), jnp.zeros(()))
        first = self.uniform(key) if self.draws is None else self.draws["first"]
        self.carry = ((networks, moments), jnp.array(first), jnp.zeros(self.envs, jnp.int32), jax.random.key(1))

    def uniform(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (self.envs, 4), minval=-0.05, maxval=0.05)

    def jit(self, iterations: int) -> Any:
        """`carry -> (carry, ends)` of so many iterations; it takes over the memory of `carry`."""
        index = jnp.arange(iterations)
        return jax.jit(lambda carry: lax.scan(self.iterate, carry, index), donate_argnums=0)

    def iterate(self, carry: Any, index: jax.Array) -> Any:
        """One iteration, and how many episodes ended in it."""
        learner, obs, age, key = carry
        key, acting, learning = jax.random.split(key, 3)
        if self.draws is None:
            each = jax.random.split(acting, self.steps)
        else:
            each = (self.draws["noise"][index], self.draws["fresh"][index])
        (obs, age), record = lax.scan(partial(self.act, learner[0]["policy"]), (obs, age), each)
        record["counts"] = jnp.ones_like(record["reward"])
        orders = self.orders(learning, index)
        learner = self.learn(learner, record, obs, orders)
        return (learner, obs, age, key), record["ended"].sum()

    def orders(self, key: jax.Array, index: jax.Array) -> jax.Array | None:
        """The rows of each minibatch: (epochs, minibatches, rows)."""
        s = self.settings
        if s.minibatch is None:
            return None
        if self.draws is not None:
            return self.draws["order"][index].reshape(s.epochs, -1, s.minibatch)
        permuted = jax.vmap(lambda k: jax.random.permutation(k, self.steps * self.envs))(
            jax.random.split(key, s.epochs)
        )
        return permuted.reshape(s.epochs, -1, s.minibatch)

    def act(self, policy: Any, carry: Any, draw: Any) -> Any:
        """One step of all environments."""
        obs, age = carry
        logits = mlp(policy, obs)
        if isinstance(draw, tuple):
            noise, fresh = draw
            action = jnp.argmax(logits + noise, -1)
        else:
            choosing, beginning = jax.random.split(draw)
            action, fresh = jax.random.categorical(choosing, logits), self.uniform(beginning)
        moved, fell = cartpole(obs, action)
        ended = fell | (age + 1 >= LIMIT)
        after, age = jnp.where(ended[:, None], fresh, moved), jnp.where(ended, 0, age + 1)
        logp = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], -1)[:, 0]
        record = {"obs": obs, "action": action, "logp": logp, "ended": ended, "reward": jnp.ones(self.envs)}
        return (after, age), record

    def learn(self, learner: Any, record: Any, last: jax.Array, orders: jax.Array | None) -> Any:
        """The updates of one iteration, from the record of its steps (T, envs, ...)."""
        s, networks = self.settings, learner[0]
        if s.algorithm == "reinforce":

            def back(later: jax.Array, step: Any) -> Any:
                gain = step[0] + s.gamma * jnp.where(step[1], 0.0, later)
                return gain, gain

            zeros = jnp.zeros(self.envs)
            _, gain = lax.scan(back, zeros, (record["reward"], record["ended"]), reverse=True)
            batch = {**record, "advantage": (gain - gain.mean()) / (gain.std() + 1e-8)}
        else:
            value = mlp(networks["critic"], record["obs"])[..., 0]
            following = jnp.concatenate([value[1:], mlp(networks["critic"], last)[None, :, 0]])
            delta = record["reward"] + s.gamma * jnp.where(record["ended"], 0.0, following) - value

            def back(later: jax.Array, step: Any) -> Any:
                advantage = step[0] + s.gamma * s.lam * jnp.where(step[1], 0.0, later)
                return advantage, advantage

            _, advantage = lax.scan(back, jnp.zeros(self.envs), (delta, record["ended"]), reverse=True)
            batch = {**record, "advantage": advantage, "target": advantage + value}
        flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), batch)

        def update(learner: Any, rows: Any) -> Any:
            chosen = flat if rows is None else jax.tree.map(lambda a: a[rows], flat)
            return self.step(learner, jax.grad(self.loss)(learner[0], chosen)), None

        if orders is None:
            return lax.scan(lambda carry, _: update(carry, None), learner, None, length=s.epochs)[0]
        return lax.scan(lambda carry, rows: lax.scan(update, carry, rows), learner, orders)[0]

    def loss(self, networks: Any, batch: Any) -> jax.Array:
        """The loss of a batch, by algorithm."""
        s = self.settings
        every = jax.nn.log_softmax(mlp(networks["policy"], batch["obs"]))
        logp = jnp.take_along_axis(every, batch["action"][..., None], -1)[..., 0]
        if s.algorithm == "reinforce":
            terms = -logp * batch["advantage"]
        else:
            value = mlp(networks["critic"], batch["obs"])[..., 0]
            entropy = -(jnp.exp(every) * every).sum(-1)
            if s.algorithm == "a2c":
                gain = logp * batch["advantage"]
            else:
                ratio = jnp.exp(logp - batch["logp"])
                clipped = jnp.clip(ratio, 1 - s.clip, 1 + s.clip)
                gain = jnp.minimum(ratio * batch["advantage"], clipped * batch["advantage"])
            terms = 0.5 * (value - batch["target"]) ** 2 - gain - 0.01 * entropy
        return (terms * batch["counts"]).sum() / batch["counts"].sum()

    def step(self, learner: Any, gradient: Any) -> Any:
        """Adam, after a clip by the common norm where there is a critic."""
        networks, (first, second, count) = learner
        if self.settings.algorithm != "reinforce":
            norm = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(gradient)))
            gradient = jax.tree.map(lambda g: g * jnp.minimum(0.5 / (norm + 1e-6), 1.0), gradient)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)

        def moved(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            return p - self.settings.lr * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return jax.tree.map(moved, networks, first, second), (first, second, count)


class JaxOutside:
    """The same with gymnasium's environments: a jit per step, and one that learns."""

    def __init__(self, settings: Settings, steps: int, state: Mapping[str, np.ndarray]):
        self.agent = JaxAgent(settings, steps, state)
        self.learner, self.key = self.agent.carry[0], jax.random.key(2)
        self.choose, self.learn = jax.jit(self.chosen), jax.jit(self.agent.learn, donate_argnums=0)

    def chosen(self, policy: Any, obs: jax.Array, key: jax.Array) -> Any:
        key, draw = jax.random.split(key)
        logits = mlp(policy, obs)
        action = jax.random.categorical(draw, logits)
        return action, jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], -1)[:, 0], key

    def iterate(self, environments: Any, count: int) -> None:
        """Reset, then act and learn so many times."""
        obs, begins = environments.reset(), np.zeros(self.agent.envs, bool)
        for _ in range(count):
            rows: list[dict[str, Any]] = []
            for _ in range(self.agent.steps):
                action, logp, self.key = self.choose(self.learner[0]["policy"], obs, self.key)
                after, reward, terminated, truncated = environments.step(np.asarray(action))
                ended = terminated | truncated
                rows.append(
                    {"obs": obs, "action": action, "logp": logp, "reward": reward.astype(np.float32), "ended": ended,
                     "counts": (~begins).astype(np.float32)}
                )  # fmt: skip
                obs, begins = after, ended
            record = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
            key, self.key = jax.random.split(self.key)
            self.learner = self.learn(self.learner, record, obs, self.agent.orders(key, jnp.zeros((), jnp.int32)))
        jax.block_until_ready(self.learner)
