"""REINFORCE with a baseline in torch eager: the twin of examples/reinforce.py, as its users would write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import nn


class Environments(Protocol):
    def reset(self, seed: int) -> np.ndarray: ...

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


class TorchReinforce:
    """Policy and critic 4-64-2 and 4-64-1; an iteration acts `steps` steps everywhere, then takes one Adam step.

    `choose(logits, i, t)` draws the actions (environments,); by default with torch's own generator.
    """

    def __init__(self, envs: int, steps: int, gamma: float = 0.99, lr: float = 1e-2, seed: int = 0):
        torch.manual_seed(seed)
        self.envs, self.steps, self.gamma = envs, steps, gamma
        self.policy, self.critic = mlp(4, 64, 2), mlp(4, 64, 1)
        self.optimizer = torch.optim.Adam([*self.policy.parameters(), *self.critic.parameters()], lr=lr)
        self.choose: Callable[[torch.Tensor, int, int], torch.Tensor] = lambda logits, i, t: (
            torch.distributions.Categorical(logits=logits).sample()
        )

    def iterate(self, environments: Environments, iteration: int) -> float:
        """One iteration; the mean return of its episodes (each row is one episode, masked after its end)."""
        observation = torch.from_numpy(environments.reset(iteration))
        alive = torch.ones(self.envs, dtype=torch.bool)
        observations, afters, actions, rewards, alives, ends, cuts = [], [], [], [], [], [], []
        with torch.no_grad():
            for t in range(self.steps):
                action = self.choose(self.policy(observation), iteration, t)
                after, reward, terminated, truncated = map(torch.from_numpy, environments.step(action.numpy()))
                observations.append(observation)
                afters.append(after)
                actions.append(action)
                rewards.append(torch.where(alive, reward, 0.0).float())
                alives.append(alive)
                ends.append(terminated)
                cuts.append(truncated)
                alive = alive & ~(terminated | truncated)
                observation = after
            bootstrap = self.critic(torch.stack(afters))[..., 0]
            later, returns = bootstrap[-1], []
            for t in reversed(range(self.steps)):
                tail = torch.where(ends[t], 0.0, torch.where(cuts[t], bootstrap[t], later))
                later = rewards[t] + self.gamma * tail
                returns.append(later)
            target = torch.stack(returns[::-1])
        batch, mask = torch.stack(observations), torch.stack(alives).float()
        value = self.critic(batch)[..., 0]
        logp = torch.log_softmax(self.policy(batch), -1).gather(-1, torch.stack(actions)[..., None])[..., 0]
        loss = (mask / mask.sum() * ((value - target) ** 2 - logp * (target - value).detach())).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(torch.stack(rewards).sum(0).mean())
