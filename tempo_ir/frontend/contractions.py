"""Contractions: einsum, and matmul as one of its spellings. Both record sdg.contract, whose spec names the axes."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import partial

from tempo_ir.dialects import sdg
from tempo_ir.frontend import elementwise, shapes
from tempo_ir.frontend.dtypes import i64
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.tensor import Tensor, Value, record

_LETTERS = "b" + string.ascii_letters.replace("b", "")


def contract(spec: str, *operands: Tensor) -> Tensor:
    """One sdg.contract of operands of one type."""
    return record(partial(sdg.ContractOp, spec), *operands)


def einsum(spec: str, *values: Value) -> Tensor:
    """A contraction in Einstein's notation: `tp.einsum("bk,kn->bn", x, w)`. Without `->`, the letters that stand
    once are kept."""
    operands = elementwise.unified(values, i64)
    inputs, arrow, output = spec.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ProgramError(f'einsum "{spec}" names {len(terms)} operands, got {len(operands)}')
    terms, spread = _without_ellipsis(spec, terms, operands)
    for number, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        if len(term) != operand.ndim:
            raise ProgramError(
                f'einsum "{spec}": operand {number} has the shape {shapes.shape_text(operand.extents)}, '
                f'"{term}" names {len(term)} axes'
            )
        if not all(letter in string.ascii_letters for letter in term):
            raise ProgramError(f'einsum "{spec}": axes are named by letters')
        if len(set(term)) != len(term):
            raise ProgramError(f'einsum "{spec}": operand {number} names an axis twice; take the diagonal first')
    if not arrow:
        letters = sorted(set("".join(terms)) - set(spread))
        output = "..." + "".join(letter for letter in letters if "".join(terms).count(letter) == 1)
    output = output.replace("...", spread)
    if unknown := set(output) - set("".join(terms)):
        raise ProgramError(f'einsum "{spec}": no operand has the axis "{min(unknown)}" of the result')
    return contract(f"{','.join(terms)}->{output}", *operands)


def _without_ellipsis(spec: str, terms: Sequence[str], operands: Sequence[Tensor]) -> tuple[list[str], str]:
    """The terms with `...` spelt out in free letters, aligned right, and all these letters."""
    if "..." not in spec:
        return list(terms), ""
    free = [letter for letter in _LETTERS if letter not in spec]
    ranks = [operand.ndim - len(term.replace("...", "")) for term, operand in zip(terms, operands, strict=True)]
    spread = "".join(free[: max((rank for rank, term in zip(ranks, terms, strict=True) if "..." in term), default=0)])
    return [
        term.replace("...", spread[len(spread) - max(rank, 0) :] if rank > 0 else "")
        for term, rank in zip(terms, ranks, strict=True)
    ], spread


def matmul(a: Value, b: Value) -> Tensor:
    """`a @ b` as in numpy: vectors, matrices, and stacks of matrices whose leading axes broadcast."""
    left, right = elementwise.unified([a, b], i64)
    if left.ndim == 0 or right.ndim == 0:
        raise ProgramError("@ needs operands with axes: multiply by a scalar with *")
    inner = left.extents[-1], right.extents[-2] if right.ndim > 1 else right.extents[-1]
    if all(isinstance(extent, int) for extent in inner) and inner[0] != inner[1]:
        raise ProgramError(
            f"@ of {shapes.shape_text(left.extents)} and {shapes.shape_text(right.extents)}: "
            f"the inner extents {inner[0]} and {inner[1]} differ"
        )
    rank = max(left.ndim - 2, right.ndim - 2, 0)
    batch = _free_letters(rank)
    left, left_batch = _batched(left, right, batch)
    right, right_batch = _batched(right, left, batch)
    rows = "b" if left.ndim - len(left_batch) > 1 else ""
    columns = "n" if right.ndim - len(right_batch) > 1 else ""
    kept = "".join(letter for letter in batch if letter in left_batch or letter in right_batch)
    return contract(f"{left_batch}{rows}k,{right_batch}k{columns}->{kept}{rows}{columns}", left, right)


def _free_letters(count: int) -> str:
    return "".join(letter for letter in _LETTERS if letter not in "bkn")[:count]


def _batched(operand: Tensor, other: Tensor, letters: str) -> tuple[Tensor, str]:
    """The operand and the letters of its leading axes; an axis of extent 1 that the other stretches is dropped."""
    count = max(operand.ndim - 2, 0)
    names = letters[len(letters) - count :]
    others = dict(zip(reversed(letters), reversed(other.extents[: max(other.ndim - 2, 0)]), strict=False))
    dropped = [axis for axis, name in enumerate(names) if operand.extents[axis] == 1 and others.get(name, 1) != 1]
    if not dropped:
        return operand, names
    extents = [extent for axis, extent in enumerate(operand.extents) if axis not in dropped]
    return shapes.reshape_to(operand, extents), "".join(name for axis, name in enumerate(names) if axis not in dropped)
