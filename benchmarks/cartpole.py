"""gymnasium's environments of the reinforcement-learning benchmarks, with a clock inside: all systems step the same."""

from __future__ import annotations

import time

import gymnasium
import numpy as np


class TimedCartPoles:
    """gymnasium's CartPole-v1, `n` of them in turn; `seconds` is the time spent inside, making them included.

    `vectorised` takes gymnasium's CartPole in numpy, all environments in one step.
    """

    def __init__(self, n: int, vectorised: bool = False):
        start = time.perf_counter()
        mode = "vector_entry_point" if vectorised else "sync"
        self.environments = gymnasium.make_vec("CartPole-v1", n, vectorization_mode=mode)
        self.seconds = time.perf_counter() - start

    def reset(self, seed: int = 0) -> np.ndarray:
        start = time.perf_counter()
        observation = self.environments.reset(seed=int(seed))[0]
        self.seconds += time.perf_counter() - start
        return observation

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        start = time.perf_counter()
        observation, reward, terminated, truncated, _ = self.environments.step(action)
        self.seconds += time.perf_counter() - start
        return observation, reward, terminated, truncated
