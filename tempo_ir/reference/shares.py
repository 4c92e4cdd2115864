"""The meaning in numpy of sums weighted by a softmax: share by share, and row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tempo_ir.dialects.loop import AttendOp, SharesOp
from tempo_ir.dialects.types import element
from tempo_ir.index.expr import evaluate as evaluate_index
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


def evaluate_attend(op: AttendOp, inputs: Sequence[Array], symbols: Mapping[str, int]) -> Array:
    """The sums of all rows, each over its own keys; of a row without keys that count 0."""
    result = element(op.result.type)
    dtype = np.promote_types(numpy_dtype(result), np.float32)
    scores, summed = (each.astype(dtype) for each in inputs)
    terms, output = op.letters
    (key,) = set(terms[0]) - set(output)
    scores = np.moveaxis(scores, (terms[0].index(op.row), terms[0].index(key)), (0, -1))
    summed = np.moveaxis(summed, terms[1].index(key), 0)
    own = "".join(letter for letter in terms[0] if letter not in (op.row, key)) + key
    spec = f"{own},{key}{terms[1].replace(key, '')}->{output.replace(op.row, '')}"
    keys: int = scores.shape[-1]
    rows: list[Array] = []
    for number, row in enumerate(scores):
        low = 0 if op.low is None else min(max(0, number + evaluate_index(op.low, symbols)), keys)
        high = keys if op.high is None else min(max(low, number + evaluate_index(op.high, symbols)), keys)
        some = row[..., low:high]
        greatest = some.max(axis=-1, initial=-np.inf, keepdims=True)
        with np.errstate(invalid="ignore"):
            weights = np.exp(some - np.where(greatest == -np.inf, 0, greatest))
            total = weights.sum(axis=-1, keepdims=True)
            rows.append(np.einsum(spec, weights / np.where(total == 0, 1, total), summed[low:high]))
    if not rows:
        extents = dict(zip(terms[0] + terms[1], inputs[0].shape + inputs[1].shape, strict=True))
        return np.zeros([extents[letter] for letter in output], numpy_dtype(result))
    return np.moveaxis(np.stack(rows), 0, output.index(op.row)).astype(numpy_dtype(result))
