"""Larger programs in the style of the documents: PPO, a compiled environment with n-step returns."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium
import numpy as np
from frontend_support import record

import tempo_ir as tp
from tempo_ir import nn, optim, rl


class CartPoles:
    def __init__(self, count: int):
        self.env = gymnasium.make_vec("CartPole-v1", count, vectorization_mode="sync")

    def reset(self, seed):
        return self.env.reset(seed=int(seed))[0]

    def step(self, action):
        return self.env.step(action)[:4]


def rollout(env, net: Callable, envs: int, i: tp.Dim, t: tp.Dim):
    """Act with `net` over (i, t)."""
    obs = tp.tensor("obs", tp.f32[envs, 4], over=(i, t))
    logits, value = net(obs)
    action = tp.random.categorical(logits)
    obs[i, 0] = env.reset(i, returns=tp.f32[envs, 4])
    flags = tp.bool[envs]
    after, reward, terminated, truncated = env.step(action, returns=(tp.f32[envs, 4], tp.f64[envs], flags, flags))
    obs[i, t + 1] = after
    return tp.record(
        obs=obs,
        action=action,
        value=value,
        next_value=net(after)[1],
        log_prob=tp.log_prob(logits, action),
        reward=reward.cast(tp.f32),
        terminated=terminated,
        truncated=truncated,
    )


def ppo(envs=2, epochs=2, minibatch=4, gamma=0.99, lam=0.95, clip=0.2, lr=3e-3):
    (i, I), (t, T) = tp.dims("i", "t")
    (e, _), (m, _) = tp.dim("e", epochs), tp.dim("m", T * envs // minibatch)
    net = nn.ActorCritic(4, 8, 8, 2, steps=(i, e, m))
    roll = rollout(tp.host(lambda: CartPoles(envs)), net[i, 0, 0], envs, i, t)
    delta = roll.reward + gamma * tp.where(roll.terminated, 0, roll.next_value) - roll.value
    ends = roll.terminated | roll.truncated
    adv = rl.generalised_advantages("adv", delta, gamma * lam, (i, t), ends)
    old = tp.stop_gradient(
        tp.record(obs=roll.obs, action=roll.action, logp=roll.log_prob, adv=adv, target=adv + roll.value)
    )
    order = tp.random.permutation(T * envs, over=(i, e))
    chosen = order[..., minibatch * m : minibatch * (m + 1)]
    mb = old.map(lambda a: a[i, 0:T].flatten(0, 1).take(chosen))  # over (i, e, m)
    logits, value = net[i, e, m](mb.obs)
    ratio = tp.exp(tp.log_prob(logits, mb.action) - mb.logp)
    surrogate = tp.minimum(ratio * mb.adv, tp.clip(ratio, 1 - clip, 1 + clip) * mb.adv)
    loss = tp.mean(0.5 * (value - mb.target) ** 2 - surrogate - 0.01 * tp.entropy(logits))
    optim.Adam(lr, max_norm=0.5).minimize(loss, net)
    tp.output("loss", loss)
    tp.output("ratio", ratio)


def test_ppo_updates_its_network_in_every_minibatch() -> None:
    program = record(ppo)
    assert "dims(i: I, t: T, e: 2, m: " in str(program)
    state = program.init(0)
    out = program.run(I=2, T=8, state=state, seed=0)
    assert out["loss"].shape == (2, 2, 4)
    assert np.isfinite(out["loss"]).all()
    np.testing.assert_allclose(out["ratio"][:, 0, 0], 1, rtol=1e-5)  # the first minibatch sees the network that acted
    assert not np.allclose(out["ratio"][:, -1, -1], 1, rtol=1e-5)
    moved = [name for name in state if not np.array_equal(state[name], out.state[name])]
    assert sorted(moved) == sorted(state)


def cartpole(s: tp.Tensor, action: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
    x, v, angle, spin = tp.unstack(s)
    force, cos, sin = tp.where(action == 1, 10.0, -10.0), tp.cos(angle), tp.sin(angle)
    push = (force + 0.05 * spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    moves = [x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cos / 1.1), angle + 0.02 * spin, spin + 0.02 * turn]
    nxt = tp.stack(moves)
    return nxt, (tp.abs(nxt[..., 0]) > 2.4) | (tp.abs(nxt[..., 2]) > 12 * 2 * tp.pi / 360)


def n_step_gradient(n=3, gamma=0.9):
    (e, E), (t, T) = tp.dims("e", "t")
    policy, s = nn.MLP(4, 8, 2, name="policy"), tp.tensor("s", tp.f32[4], over=(e, t))
    logits = policy(s)
    action = tp.random.categorical(logits)
    nxt, done = cartpole(s, action)
    fresh = tp.random.uniform(-0.05, 0.05, tp.f32[4], over=(e, t))
    s[e, 0] = fresh[e, 0]
    s[e, t + 1] = tp.where(done, fresh[e, t + 1], nxt)
    going = tp.cumprod(1.0 - done.cast(tp.f32)[e, t : tp.minimum(t + n - 1, T - 1)])  # empty at t = T - 1
    ret = 1 + tp.sum(gamma ** tp.arange(1, 1 + going.shape[0]) * going)
    tp.output("ret", ret)
    tp.output("s", s)
    tp.output("gradient", tp.grad(-tp.log_prob(logits, action) * ret, policy))


def test_n_step_returns_of_a_compiled_environment() -> None:
    program = record(n_step_gradient)
    out = program.run(E=2, T=9, seed=0)
    expected = [1 + sum(0.9**k for k in range(1, min(3, 9 - t))) for t in range(9)]  # nobody falls within nine steps
    np.testing.assert_allclose(out["ret"], [expected] * 2, rtol=1e-6)
    gradient = [out[name] for name in out if name.startswith("gradient.")]
    assert [array.shape for array in gradient] == [(8, 4), (8,), (2, 8), (2,)]
    assert all(np.isfinite(array).all() and np.abs(array).max() > 0 for array in gradient)


def test_the_compiled_environment_is_gymnasiums() -> None:
    def program():
        t, T = tp.dim("t")
        action = tp.input("action", tp.i64[()], over=t)
        first = tp.input("first", tp.f32[4])
        s = tp.tensor("s", tp.f32[4], over=t)
        s[0], s[t + 1] = first, cartpole(s, action)[0]
        tp.output("s", s)

    environment = gymnasium.make("CartPole-v1")
    first, _ = environment.reset(seed=3)
    actions = np.array([0, 1, 1, 0, 1, 0, 0])
    expected = [first, *(environment.step(int(action))[0] for action in actions[:-1])]
    np.testing.assert_allclose(record(program).run(action=actions, first=first)["s"], expected, rtol=1e-4, atol=1e-6)
