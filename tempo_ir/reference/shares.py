"""The meaning in numpy of sums weighted by a softmax, share by share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tempo_ir.dialects.loop import SharesOp
from tempo_ir.dialects.types import element
from tempo_ir.reference.dtypes import Array, numpy_dtype


def evaluate_shares(op: SharesOp, inputs: Sequence[Array]) -> tuple[Array, Array, Array]:
    """The sums, the greatest scores and the totals of the shares; of one with nothing in it 0, -inf and 0."""
    dtype = numpy_dtype(element(op.result.type))
    scores, summed = (each.astype(dtype) for each in inputs)
    terms, output = op.letters
    rows = "".join(letter for letter in output if letter in terms[0])
    along = terms[0][op.axis]
    dealt = [place // op.block % op.shares for place in range(scores.shape[op.axis])]
    found: list[tuple[Array, Array, Array]] = []
    for share in range(op.shares):
        part = [place for place, taker in enumerate(dealt) if taker == share]
        some = np.einsum(f"{terms[0]}->{rows}{along}", scores)[..., part]
        values = np.moveaxis(np.moveaxis(summed, terms[1].index(along), 0)[part], 0, terms[1].index(along))
        greatest = some.max(axis=-1, initial=-np.inf)
        with np.errstate(invalid="ignore"):
            weights = np.exp(some - np.where(greatest == -np.inf, 0, greatest)[..., None])
        found.append(
            (np.einsum(f"{rows}{along},{terms[1]}->{output}", weights, values), greatest, weights.sum(axis=-1))
        )
    sums, greatest, totals = (np.stack([each[number] for each in found]).astype(dtype) for number in range(3))
    return sums, greatest, totals
