"""Parsing, arguments and bounds for the tests of scheduling."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index import evaluate
from tempo_ir.reference.dtypes import numpy_dtype
from tempo_ir.tools.parsing import parse_module

SIZES = (0, 1, 2, 3, 5, 8)


def parse(text: str, *, verify: bool = True) -> sdg.ProgramOp:
    """The one program of a text, without its module."""
    context = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        context.load_dialect(dialect)
    module = parse_module(context, text, "program.mlir")
    if verify:
        module.verify()
    (program,) = module.ops
    assert isinstance(program, sdg.ProgramOp)
    program.detach()
    return program


def arguments(program: sdg.ProgramOp, bounds: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random inputs and parameters, always the same."""
    generator = np.random.default_rng(7)
    found = {}
    for op in program.body.block.ops:
        if isinstance(op, sdg.SourceOp):
            points = [evaluate(program.space.bound(dim), bounds) for dim in op.domain.dims]
            row = [extent for extent in shape_of(op.result.type) if isinstance(extent, int)]
            values = generator.standard_normal((*points, *row))
            found[op.key.data] = values.astype(numpy_dtype(element(op.result.type)))
    return found


def admitted_bounds(program: sdg.ProgramOp) -> list[dict[str, int]]:
    """Small bounds: every size of the last one, with 0, 1 and 3 of the others."""
    params = program.space.params
    choices = [SIZES if position == len(params) - 1 else (0, 1, 3) for position in range(len(params))]
    every = (dict(zip(params, values, strict=True)) for values in itertools.product(*choices))
    return [bounds for bounds in every if evaluate(program.space.where, bounds)]
