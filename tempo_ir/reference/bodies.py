"""The ops of the body of a leaf or a kernel in numpy, one after the other: the one home of what each of them means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import loop, sdg
from tempo_ir.index.expr import evaluate as evaluate_index
from tempo_ir.reference import operations
from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.shares import evaluate_attend, evaluate_shares


def evaluate_body(
    block: Block,
    values: dict[SSAValue, Array],
    symbols: Mapping[str, int],
    seed: int,
    point: Mapping[str, int],
    start: Mapping[str, int],
) -> None:
    """Put the results of all ops beside the `values` that are known: those of the block's arguments at first.

    `symbols` are the bounds and iterators, `point` is where the ops stand in their domain, `start` the steps that went
    before. Raises ExecutionError.
    """
    for op in block.ops:
        inputs = [values[operand] for operand in op.operands]
        if isinstance(op, loop.FoldOp):
            carried, reads = inputs[: len(op.carried)], inputs[len(op.carried) :]
            for step in range(evaluate_index(op.count, symbols)):
                inside: dict[SSAValue, Array] = dict(zip(op.body.block.args, [*carried, *reads], strict=True))
                evaluate_body(op.body.block, inside, {**symbols, op.iterator: step}, seed, point, start)
                carried = [inside[value] for value in op.next_values]
            values.update(zip(op.finals, carried, strict=True))
        elif isinstance(op, loop.SharesOp):
            values.update(zip(op.results, evaluate_shares(op, inputs), strict=True))
        elif isinstance(op, loop.AttendOp):
            values[op.result] = evaluate_attend(op, inputs, symbols)
        elif isinstance(op, loop.PartsOp):
            (whole,) = inputs
            values[op.result] = np.stack([whole, *[np.zeros_like(whole)] * (op.count - 1)])
        elif isinstance(op, sdg.SdgOp):
            results = operations.evaluate(op, inputs, symbols, seed, point, start)
            values.update(zip(op.results, results, strict=True))
