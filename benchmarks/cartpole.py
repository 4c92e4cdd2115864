"""The environments of the REINFORCE benchmark, with a clock inside: all systems step the same objects."""

from __future__ import annotations

import time

import gymnasium
import numpy as np


class TimedCartPoles:
    """gymnasium's CartPole-v1, `n` of them in turn; `seconds` is the time spent inside, making them included."""

    def __init__(self, n: int):
        start = time.perf_counter()
        self.environments = gymnasium.make_vec("CartPole-v1", n, vectorization_mode="sync")
        self.seconds = time.perf_counter() - start

    def reset(self, seed: int) -> np.ndarray:
        start = time.perf_counter()
        observation = self.environments.reset(seed=int(seed))[0]
        self.seconds += time.perf_counter() - start
        return observation

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        start = time.perf_counter()
        observation, reward, terminated, truncated, _ = self.environments.step(action)
        self.seconds += time.perf_counter() - start
        return observation, reward, terminated, truncated
