"""Reinforcement learning: returns and advantages, as recurrences that read the future."""

from __future__ import annotations

from tempo_ir.frontend import elementwise as el
from tempo_ir.frontend import reductions
from tempo_ir.frontend.cases import tensor
from tempo_ir.frontend.dims import Dim
from tempo_ir.frontend.dtypes import f32
from tempo_ir.frontend.shapes import arange
from tempo_ir.frontend.tensor import Tensor, Value


def discounted_sum(rewards: Tensor, gamma: float) -> Tensor:
    """The sum of `gamma ** k * rewards[k]` over the first axis, a float: (n, ...) -> (...)."""
    (source,) = el.unified([rewards], f32)
    wide = f32 if source.dtype.bits == 16 else source.dtype  # 16 bits do not count far
    weights = el.cast(el.power(gamma, el.cast(arange(source.shape[0]), wide)), source.dtype)
    return reductions.sum(source * weights[(..., *[None] * (source.ndim - 1))], 0)


def normalise(x: Value, eps: float = 1e-8) -> Tensor:
    """`x` shifted to mean 0 and scaled to standard deviation 1 over all axes; 0 for one sample."""
    (source,) = el.unified([x], None)
    centred = source - reductions.mean(source)
    return centred / (el.sqrt(reductions.mean(centred * centred)) + eps)


def discounted_returns(
    name: str, rewards: Tensor, gamma: float, over: tuple[Dim, Dim] | Dim, last: Value, ends: Value = False
) -> Tensor:
    """`G[t] = r[t] + gamma * G[t + 1]`, with `last` after the last step and 0 where an episode `ends`."""
    dims = (over,) if isinstance(over, Dim) else over
    *outer, t = dims
    later = tensor(name, rewards.spec, over)
    returns = rewards + gamma * el.where(ends, 0, later)
    bound = Dim(later.recording.dims[str(t)])
    later[(*outer, bound - 1)] = last
    later[(*outer, t)] = returns[(*outer, t + 1)]
    return returns


def generalised_advantages(
    name: str,
    delta: Tensor,
    decay: float,
    over: tuple[Dim, ...],
    ends: Value,
) -> Tensor:
    """`A[t] = delta[t] + decay * A[t + 1]`, 0 beyond the end of an episode or of the rollout (Schulman et al. 2016).

    `delta` is `reward + gamma * next_value - value`, with `next_value` 0 where the episode terminated; `decay` is
    `gamma * lambda`; `ends` is true where the episode terminated or was truncated.
    """
    *outer, t = over
    advantage = tensor(name, delta.spec, over)
    bound = Dim(advantage.recording.dims[str(t)])
    advantage[(*outer, bound - 1)] = delta
    advantage[(*outer, t)] = delta + decay * el.where(ends, 0, advantage[(*outer, t + 1)])
    return advantage
