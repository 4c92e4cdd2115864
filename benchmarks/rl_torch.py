"""PPO, A2C and REINFORCE on CartPole in torch eager, as CleanRL writes them; the same work as `rl_programs`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.rl_programs import Settings
from examples.rollout import LIMIT


class TorchCartPoles:
    """CartPole-v1 on tensors; one that ended begins anew at once."""

    def __init__(self, envs: int, draws: Mapping[str, Any] | None = None):
        self.draws, self.age = draws, torch.zeros(envs, dtype=torch.int64)
        self.state = self.uniform(envs) if draws is None else torch.from_numpy(draws["first"])
        self.begins = torch.zeros(envs, dtype=torch.bool)  # no step is spent on that

    def uniform(self, envs: int) -> torch.Tensor:
        return torch.rand(envs, 4) * 0.1 - 0.05

    def reset(self) -> torch.Tensor:
        return self.state

    def step(self, action: torch.Tensor, point: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What is seen next, the reward, and which ended."""
        x, v, angle, spin = self.state.unbind(-1)
        force, cos, sin = torch.where(action == 1, 10.0, -10.0), angle.cos(), angle.sin()
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x, v = x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cos / 1.1)
        angle, spin = angle + 0.02 * spin, spin + 0.02 * turn
        self.age += 1
        ended = (x.abs() > 2.4) | (angle.abs() > 12 * 2 * torch.pi / 360) | (self.age >= LIMIT)
        fresh = self.uniform(len(x)) if self.draws is None else torch.from_numpy(self.draws["fresh"][point])
        self.state = torch.where(ended[:, None], fresh, torch.stack([x, v, angle, spin], -1))
        self.age = torch.where(ended, 0, self.age)
        return self.state, torch.ones(len(x)), ended


class Outside:
    """gymnasium's environments behind the same two methods; `begins`: where the next step only begins an episode."""

    def __init__(self, environments: Any):
        self.environments = environments
        self.obs = torch.from_numpy(environments.reset().copy())
        self.begins = torch.zeros(len(self.obs), dtype=torch.bool)

    def reset(self) -> torch.Tensor:
        return self.obs

    def step(self, action: torch.Tensor, point: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        after, reward, terminated, truncated = self.environments.step(action.numpy())
        return (
            torch.from_numpy(after.copy()),
            torch.from_numpy(reward).float(),
            torch.from_numpy(terminated | truncated),
        )


def mlp(state: Mapping[str, np.ndarray], name: str) -> nn.Sequential:
    """One of tempo_ir's networks with its weights."""
    weights = [state[f"{name}.{n}.weight"] for n in range(3)]
    widths = [weights[0].shape[1], *(len(weight) for weight in weights)]
    layers = [nn.Linear(*pair) for pair in pairwise(widths)]
    with torch.no_grad():
        for n, layer in enumerate(layers):
            layer.weight.copy_(torch.from_numpy(weights[n]))
            layer.bias.copy_(torch.from_numpy(state[f"{name}.{n}.bias"]))
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


class TorchAgent:
    """One algorithm at fixed sizes; environments go on from iteration to iteration."""

    def __init__(
        self, settings: Settings, steps: int, state: Mapping[str, np.ndarray], draws: Mapping[str, Any] | None = None
    ):
        self.settings, self.steps, self.draws, self.iteration = settings, steps, draws, 0
        self.policy = mlp(state, "policy")
        self.critic = mlp(state, "critic") if settings.algorithm != "reinforce" else None
        self.parameters = [p for net in (self.policy, self.critic) if net is not None for p in net.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=settings.lr)

    def iterate(self, environments: TorchCartPoles | Outside) -> float:
        """One iteration; how many episodes ended in it."""
        s, obs = self.settings, environments.reset()
        rows: list[tuple[torch.Tensor, ...]] = []
        with torch.no_grad():
            for t in range(self.steps):
                logits = self.policy(obs)
                every = torch.log_softmax(logits, -1)
                if self.draws is None:
                    action = torch.distributions.Categorical(logits=logits).sample()
                else:
                    action = (logits + torch.from_numpy(self.draws["noise"][self.iteration, t])).argmax(-1)
                logp = every.gather(-1, action[:, None])[:, 0]
                counts = 1.0 - environments.begins.float()
                after, reward, ended = environments.step(action, (self.iteration, t))
                rows.append((obs, action, logp, reward, ended, counts))
                obs = after
            names = ("obs", "action", "logp", "reward", "ended", "counts")
            record: dict[str, torch.Tensor] = dict(
                zip(names, (torch.stack(column) for column in zip(*rows, strict=True)), strict=True)
            )
            self.advantages(record, obs)
        flat = {name: value.flatten(0, 1) for name, value in record.items()}
        for epoch in range(s.epochs):
            for chosen in self.orders(epoch, s.envs * self.steps):
                self.update(flat if chosen is None else {name: value[chosen] for name, value in flat.items()})
        self.iteration += 1
        return float(record["ended"].sum())

    def orders(self, epoch: int, rows: int) -> list[torch.Tensor | None]:
        """The rows of each minibatch of an epoch."""
        if self.settings.minibatch is None:
            return [None]
        drawn = (
            torch.randperm(rows) if self.draws is None else torch.from_numpy(self.draws["order"][self.iteration, epoch])
        )
        return list(drawn.split(self.settings.minibatch))

    def advantages(self, record: dict[str, torch.Tensor], last: torch.Tensor) -> None:
        """Add what each step was worth."""
        s, found = self.settings, []
        reward, ended = record["reward"], record["ended"]
        later = torch.zeros(s.envs)
        if self.critic is None:
            for t in reversed(range(self.steps)):
                later = reward[t] + s.gamma * torch.where(ended[t], 0.0, later)
                found.append(later)
            gain = torch.stack(found[::-1])
            record["advantage"] = (gain - gain.mean()) / (gain.std(correction=0) + 1e-8)
            return
        value = self.critic(record["obs"])[..., 0]
        following = torch.cat([value[1:], self.critic(last)[None, :, 0]])
        delta = reward + s.gamma * torch.where(ended, 0.0, following) - value
        for t in reversed(range(self.steps)):
            later = delta[t] + s.gamma * s.lam * torch.where(ended[t], 0.0, later)
            found.append(later)
        record["advantage"] = torch.stack(found[::-1])
        record["target"] = record["advantage"] + value

    def update(self, batch: Mapping[str, torch.Tensor]) -> None:
        """One step of Adam on a batch."""
        s = self.settings
        every = torch.log_softmax(self.policy(batch["obs"]), -1)
        logp = every.gather(-1, batch["action"][:, None])[:, 0]
        if self.critic is None:
            terms = -logp * batch["advantage"]
        else:
            gain = logp * batch["advantage"]
            if s.algorithm == "ppo":
                ratio = (logp - batch["logp"]).exp()
                clipped = ratio.clip(1 - s.clip, 1 + s.clip)
                gain = torch.minimum(ratio * batch["advantage"], clipped * batch["advantage"])
            entropy = -(every.exp() * every).sum(-1)
            terms = 0.5 * (self.critic(batch["obs"])[:, 0] - batch["target"]) ** 2 - gain - 0.01 * entropy
        loss = (terms * batch["counts"]).sum() / batch["counts"].sum()
        self.optimizer.zero_grad()
        loss.backward()
        if self.critic is not None:
            nn.utils.clip_grad_norm_(self.parameters, 0.5)
        self.optimizer.step()
