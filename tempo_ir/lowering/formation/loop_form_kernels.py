"""loop-form-kernels: leaves that one kernel can compute together become one `loop.kernel`.

Before:
```mlir
loop.compute at (t = t) ins(%a = %s[t], %b = %w) outs(%1[t]) { sdg.contract "bk,kn->bn" ... }
loop.compute at (t = t) ins(%a = %x[t], %b = %1[t]) outs(%2[t]) { sdg.add ... }
loop.compute at (t = t) ins(%a = %2[t]) outs(%h[t]) { sdg.tanh ... }
```
After:
```mlir
loop.kernel at (t = t) ins(%a = %s[t], %b = %w, %c = %x[t]) outs(%h[t]) {
  %0 = sdg.contract "bk,kn->bn" %a, %b : ...
  %1 = sdg.add %c, %0 : ...
  %2 = sdg.tanh %1 : ...
  loop.yield %2 : ...
}
```
The buffers %1 and %2 are gone: what only one kernel uses is a value in it. Guards under one condition are joined first,
so that leaves of both meet. Loops of which only the last values are needed come first: they become loops inside of a
kernel (`folding`).

It does not apply across a loop, a guard or a host call that must run in between; where a value would be computed again
and again (`rules`); where the values written would differ in shape; to scans, scatters and sorts, whose kernels have a
form of their own. It runs before storage is planned, when every row is written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from tempo_ir.dialects.loop import AllocOp, BodyOperation, ForOp, IfOp, ProgramOp
from tempo_ir.dialects.operation import ops_of
from tempo_ir.lowering.formation.before import noted
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.check import check_kernels
from tempo_ir.lowering.formation.fold_check import check_folds
from tempo_ir.lowering.formation.fold_kernels import Folds, fold_loops
from tempo_ir.lowering.formation.fusion import Group, form_groups, ordered
from tempo_ir.lowering.formation.kernels import kernel_of
from tempo_ir.lowering.proofs import proving


@dataclass(frozen=True)
class LoopFormKernelsPass(ModulePass):
    """Group leaves into kernels, which are the same for all targets; but `sums_apart` leaves sums over all rows for
    loop-fuse-rows. `check` proves the result."""

    name = "loop-form-kernels"
    check: bool = True
    sums_apart: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            if not self.check:
                form_program(program, fold_blocks(program), sums_apart=self.sums_apart)
                continue
            with proving():
                before = noted(program)
            folds = fold_blocks(program)
            with proving():
                loops = {leaf: loop for each in folds for leaf, loop in each.loops.items()}
                before = check_folds(program, before, loops)
            kernels = form_program(program, folds, sums_apart=self.sums_apart)
            with proving():
                check_kernels(program, before, kernels)


def fold_blocks(program: ProgramOp) -> list[Folds]:
    """Put leaves with folds in the place of loops of all blocks."""
    looping = [block for block in blocks_of(program) if any(isinstance(op, ForOp) for op in block.ops)]
    return [folds for block in looping if (folds := fold_loops(block, program)) is not None]


def form_program(
    program: ProgramOp, folds: Sequence[Folds] = (), *, sums_apart: bool = False
) -> dict[Operation, Sequence[Operation]]:
    """Form the kernels of a program and of its folds; returns for each the leaves that it computes, in their order."""
    kernels: dict[Operation, Sequence[Operation]] = {}
    for each in folds:
        kernels.update(each.form_kernels())
    for block in blocks_of(program):
        join_guards(block)
    for block in blocks_of(program):
        kernels.update(form_kernels(block, sums_apart=sums_apart))
    for alloc in [op for op in program.operations() if isinstance(op, AllocOp)]:
        if alloc.results[0].first_use is None:
            alloc.detach()
            alloc.erase()
    return kernels


def blocks_of(program: ProgramOp) -> list[Block]:
    """The blocks of the program that hold operations of the loop dialect, outer ones first."""
    found = [program.body.block]
    for block in found:
        for op in ops_of(block):
            if op.regions and not isinstance(op, BodyOperation):
                found += [inner for region in op.regions for inner in region.blocks]
    return found


def join_guards(block: Block) -> None:
    """Make guards of a block that test the same condition one, where nothing has to run in between."""
    conditions = [op.condition for op in ops_of(block) if isinstance(op, IfOp)]
    if len(set(conditions)) == len(conditions):
        return
    graph = BlockGraph(block)
    guards: list[IfOp] = []
    for op in graph.items:
        if not isinstance(op, IfOp):
            continue
        earlier = next(
            (g for g in guards if g.condition == op.condition and graph.joins(graph.group(g), graph.group(op))), None
        )
        if earlier is None:
            guards.append(op)
            continue
        graph.join(graph.group(op), graph.group(earlier))
    if len(graph.members) == len(graph.items):
        return
    for group in graph.order():
        members = [graph.items[item] for item in graph.members[group]]
        for op in members:
            op.detach()
            block.add_op(op)
        first, *others = members
        for later in others:
            assert isinstance(first, IfOp)
            assert isinstance(later, IfOp)
            first = _absorb(first, later)


def _absorb(guard: IfOp, later: IfOp) -> IfOp:
    """Move the branches of a guard behind those of an earlier one under the same condition; gives the one that is
    left."""
    for target, source in ((guard.then, later.then), (guard.otherwise, later.otherwise)):
        if source is None or target is None:
            continue
        for op in list(source.block.ops):
            op.detach()
            target.block.add_op(op)
    if guard.otherwise is None and later.otherwise is not None:
        region = later.detach_region(later.otherwise)
        replacement = IfOp(guard.condition, guard.detach_region(guard.then), region)
        replacement.location = guard.location
        block = guard.parent
        assert block is not None
        block.insert_op_before(replacement, guard)
        guard.detach()
        guard.erase()
        guard = replacement
    later.detach()
    later.erase()
    return guard


def form_kernels(block: Block, *, sums_apart: bool = False) -> dict[Operation, Sequence[Operation]]:
    """
    Replace the groups of a block by kernels; the other operations keep the order that their buffers force.

    Returns for each kernel the leaves that it computes, in their order.
    """
    return rebuild(block, *form_groups(block, sums_apart=sums_apart))


def rebuild(block: Block, graph: BlockGraph, groups: Mapping[int, Group]) -> dict[Operation, Sequence[Operation]]:
    """The operations of a block anew, groups of several leaves as kernels; returns what `form_kernels` does."""
    kernels: dict[Operation, Sequence[Operation]] = {}
    if all(len(group.leaves) + len(group.copies) == 1 for group in groups.values()):
        return kernels
    made: dict[Operation, None] = {}
    for number in graph.order():
        group = groups.get(number)
        if group is None or len(group.leaves) + len(group.copies) == 1:
            made.update((graph.items[item], None) for item in graph.members[number])
        else:
            leaves = ordered(group)
            kernel = kernel_of(group, leaves, emptied=True)
            kernels[kernel] = [leaf.op for leaf in leaves]
            made[kernel] = None
    for op in graph.items:
        op.detach()
    block.add_ops(made)
    for op in graph.items:
        if op not in made:
            op.erase()
    return kernels
