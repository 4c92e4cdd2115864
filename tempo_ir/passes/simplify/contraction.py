"""Rules for contractions and reductions: what only permutes, repeats or sums axes moves into the spec."""

from __future__ import annotations

import string
from collections.abc import Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from tempo_ir.dialects.sdg import (
    Access,
    BroadcastOp,
    CastOp,
    ConstantOp,
    ContractOp,
    IndexOp,
    MaxOp,
    MeanOp,
    MinOp,
    MulOp,
    ProdOp,
    ReduceOp,
    ReshapeOp,
    SumOp,
    TransposeOp,
)
from tempo_ir.dialects.sdg.symbols import position
from tempo_ir.dialects.types import Extent, element, is_float, shape_of, tensor
from tempo_ir.index import Const, Domain, Expr, Slice, free_symbols, maximum
from tempo_ir.passes.building import narrowed, number_of, static_product
from tempo_ir.passes.simplify.rule import (
    Rewriting,
    Rules,
    current_point,
    made_by,
    only_use,
    read_point_through,
    read_through,
    through,
)

LETTERS = string.ascii_letters
"""Names for axes of contractions."""


def transposed_operand(op: ContractOp, rewriting: Rewriting) -> bool:
    """An operand that was transposed -> its letters in another order."""
    inputs, output = op.letters
    for number, access in enumerate(op.accesses):
        inner = made_by(access, TransposeOp)
        source = None if inner is None else read_point_through(access, inner.accesses[0], inner)
        if inner is None or source is None:
            continue
        letters = [""] * len(inputs[number])
        for axis, origin in enumerate(inner.permutation):
            letters[origin] = inputs[number][axis]
        spec = f"{','.join((*inputs[:number], ''.join(letters), *inputs[number + 1 :]))}->{output}"
        operands = (*op.accesses[:number], source, *op.accesses[number + 1 :])
        return rewriting.become(op, ContractOp(spec, *operands, domain=op.domain))
    return False


def squeezed_operand(op: ContractOp, rewriting: Rewriting) -> bool:
    """An operand that lost axes of extent 1 -> letters for them, of another operand's where that has such, too."""
    inputs, output = op.letters
    for number, access in enumerate(op.accesses):
        inner = made_by(access, ReshapeOp)
        source = None if inner is None else read_point_through(access, inner.accesses[0], inner)
        if source is None or (dropped := dropped_axes(shape_of(source.tensor), shape_of(access.tensor))) is None:
            continue
        others = dict.fromkeys("".join((*inputs[:number], *inputs[number + 1 :])))
        alone = [letter for letter in others if letter not in output + inputs[number]]
        unit = [letter for letter in alone if _extent_of(op, letter) == 1]
        fresh = [letter for letter in LETTERS if letter not in "".join(inputs)]
        new = iter([*unit, *fresh])
        own = iter(inputs[number])
        letters = "".join(next(new if axis in dropped else own) for axis in range(len(shape_of(source.tensor))))
        spec = f"{','.join((*inputs[:number], letters, *inputs[number + 1 :]))}->{output}"
        operands = (*op.accesses[:number], source, *op.accesses[number + 1 :])
        return rewriting.become(op, ContractOp(spec, *operands, domain=op.domain))
    return False


def dropped_axes(shape: Sequence[Extent], left: Sequence[Extent]) -> list[int] | None:
    """The axes of extent 1 that a reshape dropped, all others being kept; None where it did anything else."""
    dropped: list[int] = []
    rest = list(left)
    for axis, extent in enumerate(shape):
        if rest and rest[0] == extent and (extent != 1 or len(rest) == len(shape) - axis):
            del rest[0]
        elif extent == 1:
            dropped.append(axis)
        else:
            return None
    return dropped if dropped and not rest else None


def _extent_of(op: ContractOp, letter: str) -> Extent:
    """The extent of an axis by its letter."""
    pairs = zip(op.letters[0], op.accesses, strict=True)
    return next(shape_of(access.tensor)[own.index(letter)] for own, access in pairs if letter in own)


def transpose_of_contract(op: TransposeOp, rewriting: Rewriting) -> bool:
    """A transpose of a contraction that nothing else uses -> the letters of the result in another order."""
    inner = _only_contract(op.accesses[0])
    if inner is None:
        return False
    inputs, output = inner.letters
    permuted = "".join(output[axis] for axis in op.permutation)
    return _become_contract(op, rewriting, inner, f"{','.join(inputs)}->{permuted}")


def sum_of_contract(op: SumOp, rewriting: Rewriting) -> bool:
    """A sum over axes of a contraction that nothing else uses -> a contraction without their letters."""
    inner = _only_contract(op.accesses[0])
    if inner is None:
        return False
    inputs, output = inner.letters
    kept = "".join(letter for axis, letter in enumerate(output) if axis not in op.axes)
    return _become_contract(op, rewriting, inner, f"{','.join(inputs)}->{kept}")


def _only_contract(access: Access) -> ContractOp | None:
    if any(isinstance(entry, Slice) for entry in access.index):  # the slice has an axis, and no letter
        return None
    inner = made_by(access, ContractOp)
    return inner if inner is not None and only_use(access) else None


def _become_contract(op: TransposeOp | SumOp, rewriting: Rewriting, inner: ContractOp, spec: str) -> bool:
    """`op` becomes `inner` with another spec, its operands read where `op` reads `inner`."""
    access = op.accesses[0]
    operands = [read_point_through(access, operand, inner) for operand in inner.accesses]
    found = [operand for operand in operands if operand is not None]
    if len(found) != len(operands):
        return False
    return rewriting.become(op, ContractOp(spec, *found, domain=op.domain))


def contract_of_one(op: ContractOp, rewriting: Rewriting) -> bool:
    """A contraction of one operand without repeated letters -> a transpose of a sum, or either alone."""
    (letters, *others), output = op.letters
    if others or len(set(letters)) != len(letters):
        return False
    access = op.accesses[0]
    summed = [axis for axis, letter in enumerate(letters) if letter not in output]
    kept = "".join(letter for letter in letters if letter in output)
    if summed and kept != output:
        return False
    if summed:
        return rewriting.become(op, SumOp(access, summed, domain=op.domain))
    if kept == output:
        return rewriting.read(op, access)
    return rewriting.become(op, TransposeOp(access, [letters.index(letter) for letter in output], domain=op.domain))


def operand_of_ones(op: ContractOp, rewriting: Rewriting) -> bool:
    """An operand of ones, whose letters others have -> without it; of another number, for integers, times that."""
    exact = rewriting.fast_math or not is_float(element(op.result.type))
    for number in range(len(op.operands)):
        factor = number_of(op.accesses[number])
        if factor is None or not _has_letters_elsewhere(op, number, op.letters[0][number]):
            continue
        if factor == 1:
            if rewriting.become(op, _without_operand(op, number)):
                return True
        elif exact and not isinstance(factor, bool):
            rest = _without_operand(op, number)
            scalar = ConstantOp(factor, tensor(element(op.result.type)))
            product = MulOp(Access(rest.result, current_point(rest)), Access(scalar.result), domain=op.domain)
            if rewriting.become(op, product, rest, scalar):
                return True
    return False


def identity_matrix(op: ContractOp, rewriting: Rewriting) -> bool:
    """A product with the identity matrix -> without it, one of its letters for the other: of integers, or under
    fast-math, for `0 * inf` is NaN."""
    inputs, output = op.letters
    if is_float(element(op.result.type)) and not rewriting.fast_math:
        return False
    for number, letters in enumerate(inputs):
        if len(set(letters)) != 2 or len(letters) != 2 or not _is_identity(op.accesses[number]):
            continue
        kept, gone = letters if letters[1] not in output else letters[::-1]
        others = "".join((*inputs[:number], *inputs[number + 1 :]))
        if gone in output or gone not in others or (kept in others and kept not in output):
            continue
        renamed = [own.replace(gone, kept) for own in inputs]
        spec = f"{','.join((*renamed[:number], *renamed[number + 1 :]))}->{output}"
        operands = (*op.accesses[:number], *op.accesses[number + 1 :])
        if rewriting.become(op, ContractOp(spec, *operands, domain=op.domain)):
            return True
    return False


def _is_identity(access: Access) -> bool:
    owner, shape = access.value.owner, shape_of(access.tensor)
    if not isinstance(owner, ConstantOp) or owner.number is not None or len(shape) != 2 or shape[0] != shape[1]:
        return False
    side = shape[0]
    assert isinstance(side, int)
    assert isinstance(owner.value, DenseIntOrFPElementsAttr)
    values = list(owner.value.get_values())
    return values == [row == column for row in range(side) for column in range(side)]


def broadcast_in_product(op: ContractOp, rewriting: Rewriting) -> bool:
    """An operand that was broadcast along axes whose letters others have -> what was broadcast."""
    inputs, output = op.letters
    for number, access in enumerate(op.accesses):
        inner = made_by(access, BroadcastOp)
        source = None if inner is None else read_point_through(access, inner.accesses[0], inner)
        if source is None:
            continue
        whole, own = shape_of(access.tensor), shape_of(source.tensor)
        added = len(whole) - len(own)
        if not added or own != whole[added:] or not _has_letters_elsewhere(op, number, inputs[number][:added]):
            continue
        spec = f"{','.join((*inputs[:number], inputs[number][added:], *inputs[number + 1 :]))}->{output}"
        operands = (*op.accesses[:number], source, *op.accesses[number + 1 :])
        if rewriting.become(op, ContractOp(spec, *operands, domain=op.domain)):
            return True
    return False


def _has_letters_elsewhere(op: ContractOp, number: int, letters: str) -> bool:
    """Whether each of some letters of an operand names an axis of another operand."""
    inputs = op.letters[0]
    return len(inputs) > 1 and set(letters) <= set("".join((*inputs[:number], *inputs[number + 1 :])))


def _without_operand(op: ContractOp, number: int) -> ContractOp:
    inputs, output = op.letters
    spec = f"{','.join((*inputs[:number], *inputs[number + 1 :]))}->{output}"
    return ContractOp(spec, *op.accesses[:number], *op.accesses[number + 1 :], domain=op.domain)


def contraction_of_nothing(op: ContractOp, rewriting: Rewriting) -> bool:
    """A contraction of two operands that sums nothing, and aligns axes as broadcasting does -> a product.

    Not where a sum or transpose of it may still become one contraction.
    """
    inputs, output = op.letters
    if len(inputs) != 2 or any(not output.endswith(letters) for letters in inputs):
        return False
    if any(isinstance(use.operation, SumOp | TransposeOp) for use in op.result.uses):
        return False
    if any(element(access.type) != element(op.result.type) for access in op.accesses):
        return False
    return rewriting.become(op, MulOp(*op.accesses, domain=op.domain))


def reduction_of_nothing(op: ReduceOp, rewriting: Rewriting) -> bool:
    """A reduction over no axis -> the operand; over axes of extent 1 -> a reshape."""
    access = op.accesses[0]
    shape = shape_of(access.tensor)
    if not op.axes:
        return rewriting.read(op, access)
    if any(shape[axis] != 1 for axis in op.axes):
        return False
    return rewriting.become(op, ReshapeOp(access, shape_of(op.result.type), domain=op.domain))


def reduction_of_reduction(op: ReduceOp, rewriting: Rewriting) -> bool:
    """A sum of a sum, a product of a product, a greatest of greatest that nothing else uses -> one reduction."""
    access = op.accesses[0]
    inner = made_by(access, type(op))
    if inner is None or inner is op or not only_use(access):
        return False
    source = read_point_through(access, inner.accesses[0], inner)
    if source is None:
        return False
    kept = [axis for axis in range(source.tensor.get_num_dims()) if axis not in inner.axes]
    axes = sorted((*inner.axes, *(kept[axis] for axis in op.axes)))
    return rewriting.become(op, type(op)(source, axes, domain=op.domain))


@through(ReshapeOp)
def reduction_past_unit_axes(op: ReduceOp, rewriting: Rewriting, inner: ReshapeOp, source: Access) -> bool:
    """A reduction of a reshape that only put in axes of extent 1 -> the reduction of what was reshaped.

    `(8) -> (8, 1)`, summed over axis 0, is the sum of `(8)`, reshaped.
    """
    shape = shape_of(op.accesses[0].tensor)
    kept = [axis for axis, extent in enumerate(shape) if extent != 1]
    if tuple(shape[axis] for axis in kept) != shape_of(source.tensor):
        return False
    axes = [number for number, axis in enumerate(kept) if axis in op.axes]
    if not axes:
        return False
    reduced = rewriting.rewriter.insert(type(op)(source, axes, domain=op.domain))
    read = Access(reduced.result, current_point(reduced))
    return rewriting.become(op, ReshapeOp(read, shape_of(op.result.type), domain=op.domain))


def sum_of_squeezed(op: SumOp, rewriting: Rewriting) -> bool:
    """A sum of what lost axes of extent 1 -> the sum over these too."""
    access = op.accesses[0]
    inner = made_by(access, ReshapeOp)
    source = None if inner is None else read_through(access, inner.accesses[0], inner)
    if source is None or (dropped := dropped_axes(shape_of(source.tensor), shape_of(access.tensor))) is None:
        return False
    kept = [axis for axis in range(len(shape_of(source.tensor))) if axis not in dropped]
    axes = sorted((*dropped, *(kept[axis] for axis in op.axes)))
    return bool(op.axes) and rewriting.become(op, SumOp(source, axes, domain=op.domain))


@through(BroadcastOp)
def reduction_of_broadcast(op: ReduceOp, rewriting: Rewriting, inner: BroadcastOp, source: Access) -> bool:
    """A reduction over axes that a broadcast added -> without them; a sum is then multiplied by how many there were."""
    shape = shape_of(op.accesses[0].tensor)
    added = len(shape) - source.tensor.get_num_dims()
    repeated = [axis for axis in op.axes if axis < added]
    if len(repeated) != added or not repeated:
        return False
    extents = [shape[axis] for axis in repeated]
    rest = [axis - added for axis in op.axes if axis >= added]
    if isinstance(op, SumOp):
        return _counted_sum(op, rewriting, source, rest, extents)
    if any(not isinstance(extent, int) or extent < 1 for extent in extents):
        return False
    if not rest:
        return source.type == op.result.type and rewriting.read_proved(op, source)
    return rewriting.become(op, type(op)(source, rest, domain=op.domain))


def _counted_sum(
    op: SumOp, rewriting: Rewriting, source: Access, axes: Sequence[int], extents: Sequence[Extent]
) -> bool:
    total = source
    if axes:
        total = _insert(rewriting, SumOp(source, axes, domain=op.domain))
    counts = [maximum(0, extent) for extent in extents]  # an extent below 0 is that of an axis of nothing
    count = op.domain.simplify(static_product(counts), op.space)
    factor = _count(rewriting, count, op.domain, op)
    return rewriting.become(op, MulOp(total, factor, domain=op.domain))


def _count(rewriting: Rewriting, count: Expr, domain: Domain, op: SumOp) -> Access:
    """A number of elements as a scalar of the element type of `op`."""
    element_type = element(op.result.type)
    if isinstance(count, Const):
        return Access(rewriting.rewriter.insert(ConstantOp(count.value, tensor(element_type))).result)
    expression = position(count, domain.dims)
    index = _insert(rewriting, IndexOp(expression, domain=narrowed(domain, (), free_symbols(expression))))
    return _insert(rewriting, CastOp(index, element_type, domain=narrowed(domain, (index,))))


def _insert(rewriting: Rewriting, op: SumOp | IndexOp | CastOp) -> Access:
    inserted = rewriting.rewriter.insert(op)
    return Access(inserted.result, current_point(inserted))


_MERGING = (reduction_of_nothing, reduction_of_reduction, reduction_of_broadcast, reduction_past_unit_axes)

RULES: Rules = MappingProxyType(
    {
        ContractOp: (
            contract_of_one,
            transposed_operand,
            squeezed_operand,
            broadcast_in_product,
            operand_of_ones,
            identity_matrix,
            contraction_of_nothing,
        ),
        TransposeOp: (transpose_of_contract,),
        SumOp: (*_MERGING, sum_of_squeezed, sum_of_contract),
        ProdOp: (reduction_of_nothing, reduction_of_reduction, reduction_past_unit_axes),
        MaxOp: _MERGING,
        MinOp: _MERGING,
        MeanOp: (reduction_of_nothing, reduction_of_broadcast, reduction_past_unit_axes),
    }
)
