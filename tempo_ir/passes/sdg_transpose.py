"""sdg-transpose: a matrix that all steps of a loop read along what they sum over is transposed once before the loop.

Before (%w is the same for all t; a vector of columns of the product takes one number of each of its rows):

    %y = sdg.contract "bk,nk->bn" %x[t], %w in (t) : (tensor<64x48xf32>, tensor<32x48xf32>) -> tensor<64x32xf32>

After:

    %0 = sdg.transpose %w permutation [1, 0] : (tensor<32x48xf32>) -> tensor<48x32xf32>
    %y = sdg.contract "bk,kn->bn" %x[t], %0 in (t) : (tensor<64x48xf32>, tensor<48x32xf32>) -> tensor<64x32xf32>

A kernel of many rows turns such a matrix round itself, in each launch: a tenth of the time of a policy's layer and of a
GRU of 64 rows, 64 wide.

It applies to products of two operands of f32 or f64, one a matrix that lacks a dim of the product and is read at the
current point. It does not where the other one has few rows, which are multiplied with what lies along the sum as it
is; where the matrix has more than `elements`, as one that is turned round in panels is then read faster (an LSTM 128
wide: 0.87 of the time); where the number of rows is not known; nor to vectors. sdg-simplify undoes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32, f64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, ContractOp, ProgramOp, TransposeOp
from tempo_ir.dialects.types import Extent, element, shape_of
from tempo_ir.index import Domain, Index
from tempo_ir.passes.building import GraphBuilder, narrowed
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import check_counts, programs, sdg_ops

ROWS, COLUMNS = 32, 16
"""Of fewer rows of the other operand, and of fewer columns, a product reads the matrix as it lies."""


@dataclass(frozen=True)
class SdgTransposePass(ModulePass):
    """Transpose what a loop reads along its sums, once before it."""

    name = "sdg-transpose"

    elements: int = 1 << 14
    """The most elements of a matrix."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        for program in programs(op):
            count(self, "transposed", transpose(program, self.elements))


def transpose(program: ProgramOp, elements: int) -> int:
    """Transpose what can be, in place; how many matrices."""
    made: dict[tuple[SSAValue, Index, Domain], Access] = {}
    for op in sdg_ops(program):
        if not isinstance(op, ContractOp) or (number := matrix_along_sum(op, elements)) is None:
            continue
        access = op.accesses[number]
        key = access.value, access.index, op.domain
        if key not in made:
            made[key] = GraphBuilder(op, op.domain, op.location).build(TransposeOp, access, permutation=(1, 0))
        inputs, output = op.letters
        letters = [side[::-1] if each == number else side for each, side in enumerate(inputs)]
        op.spec = StringAttr(f"{','.join(letters)}->{output}")
        op.with_access(number, made[key].value, made[key].index)
    return len(made)


def matrix_along_sum(op: ContractOp, elements: int) -> int | None:
    """The operand of a product that is a matrix, the same at several points, whose rows lie along what is summed over,
    while the other operand has many rows."""
    inputs, output = op.letters
    if len(inputs) != 2 or element(op.result.type) not in (f32, f64):
        return None
    for number, access in enumerate(op.accesses):
        letters, others = inputs[number], inputs[1 - number]
        if len(letters) != 2 or letters[0] in others or letters[1] not in others:
            continue
        if letters[1] in output or len(set(letters)) < 2 or output[-1:] != letters[0]:
            continue
        if element(access.type) != element(op.result.type) or narrowed(op.domain, [access]) == op.domain:
            continue
        shape, other = shape_of(access.type), shape_of(op.accesses[1 - number].type)
        rows = elements_of([extent for letter, extent in zip(others, other, strict=True) if letter in output])
        if rows >= ROWS and elements_of(shape[:1]) >= COLUMNS and 0 < elements_of(shape) <= elements:
            return number
    return None


def elements_of(extents: Sequence[Extent]) -> int:
    """How many elements axes of these extents have; 0 where a call says it."""
    return prod(extent if isinstance(extent, int) else 0 for extent in extents)
