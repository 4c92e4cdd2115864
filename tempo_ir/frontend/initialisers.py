"""First values of parameters and states: functions of a numpy generator and a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tempo_ir.frontend.description import Array, Initialiser


def zeros() -> Initialiser:
    """Zeros."""
    return constant(0.0)


def ones() -> Initialiser:
    """Ones."""
    return constant(1.0)


def constant(value: float) -> Initialiser:
    """One number everywhere."""
    return lambda generator, shape: np.full(shape, value)


def uniform(bound: float) -> Initialiser:
    """Uniform between `-bound` and `bound`."""
    return lambda generator, shape: generator.uniform(-bound, bound, shape)


def normal(std: float = 1.0) -> Initialiser:
    """Normal with mean 0."""
    return lambda generator, shape: generator.normal(0.0, std, shape)


def fan_in_uniform(fan_in: int) -> Initialiser:
    """Uniform within one over the root of the number of inputs: torch's default for linear layers."""
    return uniform(1.0 / math.sqrt(max(fan_in, 1)))


def orthogonal(gain: float = 1.0) -> Initialiser:
    """Orthonormal rows or columns, whichever are fewer, times `gain` (Saxe et al. 2013)."""

    def make(generator: np.random.Generator, shape: Sequence[int]) -> Array:
        rows, columns = shape[0], math.prod(shape[1:])
        square = generator.normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(square)
        q = q * np.sign(np.diagonal(r))
        return gain * (q if rows >= columns else q.T).reshape(shape)

    return make
