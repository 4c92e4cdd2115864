"""Sums over all steps, kept block by block: in a loop over blocks no more rows are there than those of one.

Before:

    %s = sdg.sum %g[1:T] axes [0] : (!w) -> !w

After, with blocks of 100 steps, where the rows come from the last to the first:

    %part = sdg.sum %g[b, max(0, 1 - 100 * b):min(100, T - 100 * b)] axes [0] in (b) : (!w) -> !w
    %before = sdg.merge {b = B - 1 : %0, b < B - 1 : %s[b + 1]} in (b) : (!w, !w) -> !w
    %s = sdg.add %before[b], %part[b] in (b) : (!w, !w) -> !w       // read at the first block
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg import Access, ContractOp, MeanOp, ReduceOp, SumOp, domain_of
from tempo_ir.dialects.types import element
from tempo_ir.index import Domain, Entry, Slice, Sym, simplify
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.recompute.blocks import Blocks
from tempo_ir.passes.recurrences.reductions import accumulator
from tempo_ir.passes.sdg_accumulate import Whole, accumulate_one, averaged, kind_of
from tempo_ir.passes.utilities import erase, identity


def total_by_blocks(whole: Whole, blocks: Blocks, values: Mapping[SSAValue, SSAValue], *, backwards: bool) -> None:
    """Put a sum over blocks in the place of a sum over all steps; `values` says what is read in blocks, and as what."""
    op = whole.op
    numbers = simplify(blocks.numbers(whole.points))
    dims = blocks.space.order({*op.domain.dims, blocks.block})
    ranges = (*op.domain.ranges, (blocks.block, numbers.start, numbers.stop))
    domain = normal_form(Domain(dims, ranges, op.domain.where), blocks.space)
    outside = GraphBuilder(op, op.domain, op.location)
    inside = outside.at(domain)
    wide = accumulator(type(op), element(op.results[0].type))
    rows = [inside.cast(part_of(access, whole, blocks, domain, values), wide) for access in op.accesses]
    kind = type(op) if isinstance(op, ReduceOp) and not isinstance(op, MeanOp) else SumOp
    if isinstance(op, ContractOp):
        part = inside.contract(op.spec.data, *rows)
    else:
        part = inside.reduce(kind, rows[0], op.axes)
    taken = tuple(numbers if entry == Sym(blocks.block) else entry for entry in part.index)
    total = outside.reduce(kind, Access(part.value, taken), (0,))
    result = outside.cast(averaged(whole, outside, total), kind_of(op))
    if result.index != identity(op) or domain_of(result.value) != op.domain:
        result = outside.copy(result)
    result.value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(result.value)
    erase([op])
    reduction = total.value.owner
    assert isinstance(reduction, ReduceOp)
    accumulate_one(Whole(reduction, blocks.block, numbers, axis=0), backwards=backwards)


def part_of(
    access: Access, whole: Whole, blocks: Blocks, domain: Domain, values: Mapping[SSAValue, SSAValue]
) -> Access:
    """What a sum reads, of its rows those of one block."""
    dims = domain_of(access.value).dims
    entries: dict[str, Entry] = dict(zip(dims, access.index, strict=True))
    if entries.get(whole.dim) != whole.points:
        return access
    part = domain.simplify(blocks.part(whole.points), blocks.space)
    if access.value not in values:
        first = blocks.size * Sym(blocks.block)
        entries[whole.dim] = Slice(simplify(part.start + first), simplify(part.stop + first))
        return Access(access.value, tuple(entries[dim] for dim in dims))
    del entries[whole.dim]
    entries |= {blocks.block: Sym(blocks.block), blocks.step: part}
    return Access(values[access.value], tuple(entries[dim] for dim in blocks.space.names if dim in entries))
