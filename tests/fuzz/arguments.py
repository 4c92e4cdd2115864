"""Sizes and arguments for a random program."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import ContractOp, ProgramOp, SourceOp
from tempo_ir.dialects.types import element, is_bool, is_float, shape_of
from tempo_ir.index.expr import Expr, evaluate
from tempo_ir.reference.dtypes import Array, numpy_dtype

SIZES = (0, 1, 2, 3, 5, 8, 9)
MOST_POINTS = 120
"""Of the declared dims together; the interpreter visits each for every op."""


def admissible(program: ProgramOp, bounds: Mapping[str, int]) -> bool:
    """Whether the program may be called at these bounds."""
    conditions = [program.space.where, *(it.cond.data for it in program.preconditions or ())]
    return all(evaluate(condition, bounds) for condition in conditions)


def sizes(program: ProgramOp, most: int = 6) -> list[dict[str, int]]:
    """Small bounds that the program admits: nothing, one, then different ones, odd and even, around 8."""
    params = program.space.params
    found: list[dict[str, int]] = []
    for values in itertools.product(SIZES, repeat=len(params)):
        bounds = dict(zip(params, values, strict=True))
        points = 1
        for name in program.space.names:
            points *= max(0, evaluate(program.space.bound(name), bounds))
        if points <= MOST_POINTS and admissible(program, bounds):
            found.append(bounds)
    # equal smallest ones first, then those with different bounds, spread over all that there are
    plain = [b for b in found if len(set(b.values())) <= 1 and max(b.values(), default=0) <= 1]
    rest = [b for b in found if b not in plain]
    rest.sort(key=lambda b: (len(set(b.values())) < len(b), sum(b.values())))
    room = max(1, most - len(plain))
    step = max(1, len(rest) // room)
    return [*plain, *rest[step - 1 :: step][:room]]


def draw(program: ProgramOp, bounds: Mapping[str, int], seed: int = 0, *, special: bool = False) -> dict[str, Array]:
    """Inputs and parameters: floats in quarters up to 3, integers up to 4; with `special` also NaN and infinities."""
    arrays: dict[str, Array] = {}
    # sums of products may be joined in another order, which infinities show
    infinite = not any(isinstance(op, ContractOp) for op in program.walk())
    for op in program.body.block.ops:
        if not isinstance(op, SourceOp):
            continue
        generator = np.random.default_rng([seed, *op.key.data.encode()])
        extents = [*(program.space.bound(dim) for dim in op.domain.dims), *shape_of(op.result.type)]
        shape = [max(0, evaluate(e, bounds)) if isinstance(e, Expr) else e for e in extents]
        type_ = element(op.result.type)
        arrays[op.key.data] = _numbers(generator, shape, type_, special, infinite).astype(numpy_dtype(type_))
    return arrays


def _numbers(
    generator: np.random.Generator, shape: list[int], type_: Attribute, special: bool, infinite: bool
) -> Array:
    if is_bool(type_):
        return generator.integers(0, 2, shape)
    if not is_float(type_):
        return generator.integers(-4, 5, shape)
    plain = generator.integers(-12, 13, shape) / 4
    if not special:
        return plain
    odd = generator.choice([np.nan, -0.0, *([np.inf, -np.inf] if infinite else [])], shape)
    return np.where(generator.random(shape) < 0.15, odd, plain)
