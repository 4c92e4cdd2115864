"""sdg-unflatten: what is done row by row to a reshape that put rows of steps together is done to the steps' own rows.

Before (`!flat` is `tensor<?x4xf32, #sdg.size<64 * T>>`):

    %f = sdg.reshape %x[i, 0:T] in (i) : (tensor<?x64x4xf32, #sdg.size<T>>) -> !flat
    %p = sdg.contract "bk,nk->bn" %f[i], %w[i] in (i) : (!flat, tensor<4x4xf32>) -> !flat
    %g = sdg.contract "bk,bn->kn" %f[i], %p[i] in (i) : (!flat, !flat) -> tensor<4x4xf32>

After (`!rows` is `tensor<?x64x4xf32, #sdg.size<T>>`):

    %p = sdg.contract "abk,nk->abn" %x[i, 0:T], %w[i] in (i) : (!rows, tensor<4x4xf32>) -> !rows
    %g = sdg.contract "abk,abn->kn" %x[i, 0:T], %p[i] in (i) : (!rows, !rows) -> tensor<4x4xf32>

so that the axis of the dim is there again: it may be seen to be what is computed at each step anyway (sdg-devectorize),
and no step waits for a copy of all. The reshape moves behind each op that treats the rows alike: elementwise ops,
products with that letter, reductions and moves of other axes; it vanishes in a reduction or product that sums the rows.

It starts at reshapes that merge the axis of a range of a dim with those behind it, and at no others: merged heads of
attention stay merged. It does not apply where an operand has as many rows of its own, which were never apart, nor to
what mixes rows (a scan or sort along them, a gather of rows) or cuts them anew; these read the reshape as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, AccessOp, ProgramOp, ReshapeOp, SdgOp, domain_of
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.types import Shape, shape_of
from tempo_ir.index import compose
from tempo_ir.passes.building import GraphBuilder, static_product, symbols_of
from tempo_ir.passes.remarks import count
from tempo_ir.passes.unflatten.rules import Reads, rule_of
from tempo_ir.passes.utilities import erase, is_slice, point_entries, programs


@dataclass(frozen=True)
class SdgUnflattenPass(ModulePass):
    """Work on the rows of steps where they were put together by a reshape."""

    name = "sdg-unflatten"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            count(self, "unflattened", Unflattening(program).run())


@dataclass(frozen=True)
class Apart:
    """A value with the axes that a reshape merged into its first one, as they were: how to read it, over the dims of
    the flat value, and the extents of those axes."""

    read: Access
    lead: Shape


@dataclass
class Unflattening:
    """The rewrite of one program; `apart` knows each flat value."""

    program: ProgramOp
    apart: dict[SSAValue, Apart] = field(default_factory=dict[SSAValue, Apart])
    flat: list[SdgOp] = field(default_factory=list[SdgOp])
    """The reshapes that flat values are made by now; nobody may read them any more."""

    def run(self) -> int:
        """Rewrite what can be; how many ops."""
        changed = sum(self.start(op) or self.move(op) for op in program_ops(self.program))
        for op in reversed(self.flat):
            if op.results[0].first_use is None:
                erase([op])
        return changed

    def start(self, op: SdgOp) -> bool:
        """Know a reshape that merges the axis of a range with those behind it. Nothing changes yet."""
        if not isinstance(op, ReshapeOp):
            return False
        access = op.accesses[0]
        if not access.index or not any(map(is_slice, access.index)):
            return False
        shape, result = shape_of(access.tensor), shape_of(op.result.type)
        merged = merged_axes(shape, result)
        if not merged or symbols_of(shape[:merged]) & set(op.domain.dims):
            return False
        lead = shape[:merged]
        build = GraphBuilder(op, op.domain, op.location)
        self.apart[op.result] = Apart(build.reshape(access, (*lead, *result[1:])), lead)
        self.flat.append(op)
        return False

    def move(self, op: SdgOp) -> bool:
        """Do an op on rows that are apart, where its operands are flat; whether that was done."""
        rule = rule_of(op)
        if rule is None or not isinstance(op, AccessOp) or len(op.results) != 1:
            return False
        if not any(value in self.apart for value in op.operands):
            return False
        reads = self.reads(op)
        if reads is None:
            return False
        build = GraphBuilder(op, op.domain, op.location)
        made = rule(build, op, reads)
        if made is None:
            return False
        made.value.name_hint = op.results[0].name_hint
        if shape_of(made.tensor) != shape_of(op.results[0].type):
            made = self.flattened(build, op, made, reads.lead)
        op.results[0].replace_all_uses_with(made.value)
        erase([op])
        return True

    def flattened(self, build: GraphBuilder, op: SdgOp, made: Access, lead: Shape) -> Access:
        """A result whose rows are apart, put together again for who cannot take it so."""
        flat = ReshapeOp(made, shape_of(op.results[0].type), domain=op.domain)
        self.apart[flat.result] = Apart(made, lead)
        self.flat.append(flat)
        return build.insert(flat)

    def reads(self, op: AccessOp) -> Reads | None:
        """What an op reads, flat operands apart; None where they cannot be read so, or are not alike."""
        found: list[Access | None] = []
        leads: list[Shape] = []
        for access in op.accesses:
            apart = self.apart.get(access.value)
            if apart is None:
                found.append(None)
                continue
            index = compose(apart.read.index, domain_of(access.value).dims, access.index)
            if index is None or not point_entries(access.index):
                return None
            found.append(Access(apart.read.value, index))
            leads.append(apart.lead)
        if any(lead != leads[0] for lead in leads):
            return None
        return Reads(op.accesses, found, leads[0])


def merged_axes(shape: Shape, result: Shape) -> int:
    """How many leading axes, two or more, the first axis of a reshape's result holds in row-major order; 0 for none.

    An axis of extent 1 beside another is not apart from it.
    """
    if not result:
        return 0
    wanted = static_product(result[:1])
    for number in range(2, len(shape) + 1):
        if shape[number - 1] == 1:
            return 0
        if static_product(shape[:number]) == wanted:
            return number
    return 0
