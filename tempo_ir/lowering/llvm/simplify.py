"""Before lowering: loops of one trip become their bodies, so that a block that spans a whole axis costs nothing, and
what a kernel computes twice it computes once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile.memory import GatherOp, LoadOp
from tempo_ir.dialects.tile.shape import ConstOp
from tempo_ir.dialects.tile.structure import ForOp, KernelOp
from tempo_ir.lowering.llvm.written import writes_of


def constant_index(value: SSAValue) -> int | None:
    """The number, if the `index` scalar is a constant."""
    op = value.owner
    if isinstance(op, ConstOp) and isinstance(op.number, IntegerAttr):
        return int(op.number.value.data)
    return None


def inline_single_trips(kernel: KernelOp) -> KernelOp:
    """
    A copy of the kernel in which

        %r = tile.for %k = 0 to 64 step 64 init(%a0 = %a) { ... tile.yield %b }

    is the body once, with %k = 0, %a0 = %a, %r = %b.
    """
    kernel = kernel.clone()
    for op in list(kernel.walk()):
        if isinstance(op, ForOp):
            low, high = constant_index(op.low), constant_index(op.high)
            if low is not None and high is not None and low < high <= low + op.step_size:
                _inline(op)
    return kernel


def _inline(op: ForOp) -> None:
    block, outside = op.body.block, op.parent
    assert outside is not None
    assert block.last_op is not None
    for argument, value in zip(block.args, (op.low, *op.init), strict=True):
        argument.replace_all_uses_with(value)
    results = list(op.yielded)
    _remove(block.last_op)
    for inner in list(block.ops):
        inner.detach()
        outside.insert_op_before(inner, op)
    for result, value in zip(op.carried, results, strict=True):
        result.replace_all_uses_with(value)
    _remove(op)


def _remove(op: Operation) -> None:
    """Take an op out, which then uses nothing: what is kept follows from the uses of values."""
    op.detach()
    op.erase()


def merge_equal(kernel: KernelOp) -> None:
    """Ops that compute the same become one, as the rows that two products of a kernel each normalise; loads too, of
    memory that the kernel does not write."""
    _merge_equal(kernel.body.block, {}, writes_of(kernel).keys())


def _merge_equal(block: Block, outside: Mapping[Hashable, Operation], written: AbstractSet[SSAValue]) -> None:
    known = dict(outside)
    for op in ops_of(block):
        if op.regions:
            for region in op.regions:
                for inner in region.blocks:
                    _merge_equal(inner, known, written)
            continue
        if not op.results or (isinstance(op, LoadOp | GatherOp) and op.view_op.pointer in written):
            continue
        named = tuple(sorted((op.properties | op.attributes).items()))
        types = tuple(result.type for result in op.results)
        first = known.setdefault((type(op), tuple(op.operands), named, types), op)
        if first is not op:
            for old, new in zip(op.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            _remove(op)
