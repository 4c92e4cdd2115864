"""What rounding may do to the outputs of a program: the reference with other roundings (Monte Carlo arithmetic, D. S.
Parker, 1997). Arguments are moved a little, and what each op computes by up to half a unit in its last place: moved
arguments alone do not show what is lost behind a function that is flat there, `1 - tanh(x) ** 2` of a great x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.reference.calls import HostFactories
from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.sdg import Instance, Run

ROUNDED = (
    *(sdg.ExpOp, sdg.LogOp, sdg.Log1pOp, sdg.SqrtOp, sdg.RsqrtOp, sdg.TanhOp, sdg.SigmoidOp, sdg.ErfOp, sdg.SinOp),
    *(sdg.CosOp, sdg.CastOp, sdg.AddOp, sdg.SubOp, sdg.MulOp, sdg.DivOp, sdg.PowOp, sdg.ModOp, sdg.ContractOp),
    *(sdg.SumOp, sdg.ProdOp, sdg.MeanOp, sdg.SoftmaxOp, sdg.CumsumOp, sdg.CumprodOp, sdg.ScatterAddOp),
)
"""The ops whose results are rounded; all others move, select or count."""


@dataclass
class Rounded(Run):
    """A call in which the results of ops are rounded otherwise."""

    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def _execute(self, instance: Instance) -> Sequence[Array | None]:
        results = super()._execute(instance)
        if not isinstance(instance[0], ROUNDED):
            return results
        return [result if result is None else self._moved(result) for result in results]

    def _moved(self, array: Array) -> Array:
        return moved(array, float(ml_dtypes.finfo(array.dtype).eps) / 2, self.generator) if is_float(array) else array


def moved(array: Array, amount: float, generator: np.random.Generator) -> Array:
    """Each number more or less by a part of itself."""
    with np.errstate(all="ignore"):
        return (array.astype(np.float64) * (1 + amount * generator.choice([-1, 1], array.shape))).astype(array.dtype)


def is_float(array: Array) -> bool:
    """Whether an array is of floats, bf16 too, which numpy itself does not know as such."""
    return array.dtype.kind not in "biu"


def rounded_otherwise(
    program: ProgramOp,
    arguments: Mapping[str, Array],
    bounds: Mapping[str, int],
    seed: int,
    hosts: HostFactories,
    amount: float,
) -> Mapping[str, Array]:
    """The outputs of a program whose float arguments are moved by `amount`, and results by rounding."""
    generator = np.random.default_rng(1)
    given = {key: moved(array, amount, generator) if is_float(array) else array for key, array in arguments.items()}
    starts = dict.fromkeys(program.space.names, 0)
    return Rounded(program, given, bounds, seed, hosts, starts, generator=generator).outputs()
