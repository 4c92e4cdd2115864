"""sdg-transpose: a matrix that all steps of a loop read along what they sum over is transposed once before the loop.

Before (%w is the same for all t; a vector of columns of the product takes one number of each of its rows):

    %y = sdg.contract "bk,nk->bn" %x[t], %w in (t) : (tensor<64x48xf32>, tensor<32x48xf32>) -> tensor<64x32xf32>

After:

    %0 = sdg.transpose %w permutation [1, 0] : (tensor<32x48xf32>) -> tensor<48x32xf32>
    %y = sdg.contract "bk,kn->bn" %x[t], %0 in (t) : (tensor<64x48xf32>, tensor<48x32xf32>) -> tensor<64x32xf32>

A kernel of many rows turns such a matrix round itself, in each launch: a tenth of the time of a policy's layer and of a
GRU of 64 rows, 64 wide.

It applies to products of two operands of f32 or f64, one a matrix that is read at the same point for all of a dim of
the product, `%w[i]` or `%w[i, 0]` in (i, t). It does not where the other one has few rows, which are multiplied with
what lies along the sum as it is; where the matrix has more than `elements`, as one that is turned round in panels is
then read faster (an LSTM 128 wide: 0.87 of the time); where the number of rows is not known; nor to vectors.
sdg-simplify undoes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32, f64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, ContractOp, ProgramOp, TransposeOp, domain_of
from tempo_ir.dialects.sdg.reads import program_ops, read_problem
from tempo_ir.dialects.types import Extent, element, shape_of
from tempo_ir.index import Domain, Index, Sym, free_symbols
from tempo_ir.passes.building import GraphBuilder, narrowed
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import check_counts, programs

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
    for op in program_ops(program):
        if not isinstance(op, ContractOp) or (found := matrix_along_sum(op, elements)) is None:
            continue
        number, domain = found
        access = op.accesses[number]
        key = access.value, access.index, domain
        if key not in made:
            transposed = TransposeOp(access, (1, 0), domain=domain)
            made[key] = GraphBuilder(op, domain, op.location).insert(transposed)
        inputs, output = op.letters
        letters = [side[::-1] if each == number else side for each, side in enumerate(inputs)]
        op.spec = StringAttr(f"{','.join(letters)}->{output}")
        op.with_access(number, made[key].value, made[key].index)
    return len(made)


def matrix_along_sum(op: ContractOp, elements: int) -> tuple[int, Domain] | None:
    """Which operand of a product is a matrix whose rows lie along what is summed over, while the other one has many
    rows, and the points at which it is another one, of fewer dims than the product has."""
    inputs, output = op.letters
    if len(inputs) != 2 or element(op.result.type) not in (f32, f64):
        return None
    for number, access in enumerate(op.accesses):
        letters, others = inputs[number], inputs[1 - number]
        if len(letters) != 2 or letters[0] in others or letters[1] not in others:
            continue
        if letters[1] in output or len(set(letters)) < 2 or output[-1:] != letters[0]:
            continue
        shape, other = shape_of(access.type), shape_of(op.accesses[1 - number].type)
        rows = elements_of([extent for letter, extent in zip(others, other, strict=True) if letter in output])
        if rows < ROWS or elements_of(shape[:1]) < COLUMNS or not 0 < elements_of(shape) <= elements:
            continue
        if element(access.type) == element(op.result.type) and (domain := points_read(op, access)) is not None:
            return number, domain
    return None


def points_read(op: ContractOp, access: Access) -> Domain | None:
    """The points of the dims that a read names, where it names fewer than the op has; None where it names all, or where
    only a point of the others says that there is something to read."""
    named = {name for entry in access.index for name in free_symbols(entry)}
    here = Access(access.value, tuple(Sym(name) for name in op.domain.dims if name in named))
    domain = narrowed(op.domain, [here])
    if domain == op.domain or read_problem(op.space, domain, access.index, domain_of(access.value)) is not None:
        return None
    return domain


def elements_of(extents: Sequence[Extent]) -> int:
    """How many elements axes of these extents have; 0 where a call says it."""
    return prod(extent if isinstance(extent, int) else 0 for extent in extents)
