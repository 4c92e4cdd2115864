"""sdg-sink: what is little work on an array of the caller is computed where it is read, not once before the loop.

Before:

    %a = sdg.mul %rate, %g : (tensor<f32>, tensor<4096xf32>) -> tensor<4096xf32>          // the same for all i
    %m = sdg.add %n[i], %a in (i) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>

After:

    %a = sdg.mul %rate, %g in (i) : (tensor<f32>, tensor<4096xf32>) -> tensor<4096xf32>
    %m = sdg.add %n[i], %a[i] in (i) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>

The kernel of %m then reads %g instead of %a: no kernel and no memory for %a, and one array where two values are made of
the same one, as the first and the second moments of Adam are of a gradient.

It applies to sums, products, comparisons and the like of one array and numbers, and to what they are made of in turn,
down to an input, a parameter or a state as it comes from the caller. It does not where several arrays would be read for
one; where several ops read the value, as a backward pass does, which is another loop, and would have all steps of it
kept; where its reader does not take it element by element, or has no more dims; nor to functions that take longer than
to read what they give. sdg-reduce-domain undoes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg.points import current_point, is_current
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Domain
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import programs

_CHEAP: tuple[type[sdg.AccessOp], ...] = (
    sdg.AddOp, sdg.SubOp, sdg.MulOp, sdg.NegOp, sdg.AbsOp, sdg.MinimumOp, sdg.MaximumOp, sdg.CompareOp, sdg.LogicOp,
    sdg.SelectOp,
)  # fmt: skip
_POINTWISE: tuple[type[sdg.AccessOp], ...] = (sdg.UnaryOp, sdg.BinaryOp, sdg.SelectOp, sdg.CastOp)


@dataclass(frozen=True)
class SdgSinkPass(ModulePass):
    """Compute cheap values of the caller's arrays where they are read."""

    name = "sdg-sink"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            for inner in reversed(program_ops(program)):
                if not isinstance(inner, sdg.AccessOp) or not isinstance(inner, _CHEAP):
                    continue
                if (domain := domain_of_reader(inner)) is not None:
                    sunk = sinking(inner)
                    for each in sunk:
                        give_domain(each, domain)
                    count(self, "sunk", len(sunk))


def domain_of_reader(op: sdg.AccessOp) -> Domain | None:
    """The domain, of more dims than its own, in which the only op that reads an op reads it element by element."""
    shape, uses = shape_of(op.results[0].type), list(op.results[0].uses)
    readers = {use.operation for use in uses}
    if not shape or len(readers) != 1:
        return None
    (reader,) = readers
    if not isinstance(reader, sdg.AccessOp) or not isinstance(reader, _POINTWISE):
        return None
    if shape_of(reader.results[0].type) != shape:
        return None
    if not all(is_current(reader.accesses[use.index].index, op.domain) for use in uses):
        return None
    return reader.domain if set(op.domain.dims) < set(reader.domain.dims) else None


def sinking(op: sdg.AccessOp) -> list[sdg.AccessOp]:
    """An op and those that it alone is made of, down to an array of the caller; nothing where it is made of anything
    else."""
    shape = shape_of(op.results[0].type)
    arrays = {(access.value, access.index) for access in op.accesses if shape_of(access.type)}
    if len(arrays) != 1:
        return []
    ((value, index),) = arrays
    maker = value.owner
    if shape_of(value.type) != shape:
        return []
    if isinstance(maker, sdg.SourceOp):
        return [op]
    if not isinstance(maker, sdg.AccessOp) or not isinstance(maker, _CHEAP) or maker.domain != op.domain:
        return []
    if any(use.operation is not op for use in value.uses) or not is_current(index, maker.domain):
        return []
    below = sinking(maker)
    return [op, *below] if below else []


def give_domain(op: sdg.AccessOp, domain: Domain) -> None:
    """Let an op run at the points of its readers."""
    op.domain = domain
    for use in list(op.results[0].uses):
        assert isinstance(use.operation, sdg.AccessOp)
        use.operation.with_access(use.index, op.results[0], current_point(domain.dims))
