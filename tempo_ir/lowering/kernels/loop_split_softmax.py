"""loop-split-softmax: attention over many keys is computed in shares of the keys, which a second kernel combines.

Before:
```mlir
loop.kernel at (t = t) ins(%q = %q[t], %k = %k[0:t + 1], %v = %v[0:t + 1]) outs(%o[t]) {
  %s = sdg.contract "hgd,nhd->hgn" %q, %k : ...
  %p = sdg.softmax %s axis 2 : ...
  %o = sdg.contract "hgn,nhd->hgd" %p, %v : ...
  loop.yield %o : ...
}
```
After:
```mlir
loop.kernel at (t = t) ins(%q = %q[t], %k = %k[0:t + 1], %v = %v[0:t + 1]) outs(%sums, %greatest, %totals) {
  %s = sdg.contract "hgd,nhd->hgn" %q, %k : ...
  %0, %1, %2 = loop.shares "hgn,nhd->hgd" %s, %v into 16 of 64 : ...
  loop.yield %0, %1, %2 : ...
}
loop.kernel at (t = t) ins(%a = %sums, %b = %greatest, %c = %totals) outs(%o[t]) {
  // the sums of the shares, each times exp(its greatest - the greatest of all), over the totals times the same
}
```
so that a grid of (16, heads) has work for all of a GPU where one of (heads) has not (Dao et al., "Flash-Decoding for
long-context inference", 2023). How many shares: as many as give each multiprocessor of the target two programs, rounded
down to a power of two, no more than 64, and where the greatest number of keys is known no more than leave a share four
blocks. Blocks of keys are dealt out to the shares in turn, so that few keys are computed side by side too: of 65 keys
two shares have some, and the other programs write three constants.

It does not apply on the cpu; where heads, batch and queries are programs enough, or of as many as a call has; where a
window, or an axis of a fixed length, has no two shares of four blocks; where one kernel has several such sums, or a
fold, or what comes after the sum needs a product of its own. It runs when storage is planned: its own three buffers
live as long as the program, and layers share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferAccess,
    BufferType,
    FoldOp,
    KernelOp,
    ProgramOp,
    SharesOp,
    StorageAttr,
    YieldOp,
)
from tempo_ir.dialects.types import as_tensor, element, shape_of, tensor
from tempo_ir.index import Const, Domain, Expr, MinMax
from tempo_ir.index.isl import Inexact, NotAffine, ceiling
from tempo_ir.lowering.formation.rules import is_weighted_sum
from tempo_ir.lowering.kernels.blocks import TARGETS, Blocks
from tempo_ir.lowering.kernels.nests import MANY_QUERIES, query_axes

EVERYWHERE = Domain()
NAMES = ("sums", "greatest", "totals")


@dataclass(frozen=True)
class LoopSplitSoftmaxPass(ModulePass):
    """Sums weighted by a softmax in shares, for a target."""

    name = "loop-split-softmax"
    target: str = "sm_90"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target not in TARGETS:
            raise PassFailedException(f"unknown target '{self.target}'; use one of {', '.join(sorted(TARGETS))}")
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            split_softmax(program, TARGETS[self.target])


def split_softmax(program: ProgramOp, blocks: Blocks) -> None:
    """Split the kernels of a program that gain by it, in place."""
    if not blocks.multiprocessors:
        return
    splitting = _Splitting(program, blocks)
    for leaf in [leaf for leaf in program.operations() if isinstance(leaf, BodyOperation)]:
        splitting.split(leaf)


@dataclass(frozen=True)
class WeightedSum:
    """A sum weighted by a softmax: the contraction, the softmax, and which operand it is."""

    product: sdg.ContractOp
    softmax: sdg.SoftmaxOp
    number: int

    @property
    def spec(self) -> str:
        """The letters, those of the weights first."""
        inputs, output = self.product.letters
        return f"{inputs[self.number]},{inputs[1 - self.number]}->{output}"

    @property
    def keys(self) -> int | Expr:
        """How many elements are summed."""
        return shape_of(self.softmax.operand.type)[self.softmax.axis]

    def block(self, blocks: Blocks) -> int:
        """How many elements a program has at a time."""
        inputs, output = self.product.letters
        extents = dict(zip(output, shape_of(self.product.result.type), strict=True))
        columns = next((extents[letter] for letter in output if letter not in inputs[self.number]), 1)
        width = blocks.fitted(columns) if isinstance(columns, int) else 1
        return blocks.keys(blocks.reductions(self.keys), (blocks.row, width), element(self.product.result.type))

    def programs(self, blocks: Blocks) -> int:
        """How many programs there are without shares."""
        inputs, output = self.product.letters
        columns = [letter for letter in output if letter not in inputs[self.number]]
        rows, _ = query_axes(blocks, self.product)
        held = {} if rows is None else {output[rows]: blocks.row}
        extents = dict(zip(output, shape_of(self.product.result.type), strict=True))
        return prod(
            -(-extent // held.get(letter, 1)) if isinstance(extent, int) else MANY_QUERIES
            for letter, extent in extents.items()
            if letter not in columns
        )


def sum_of(body: Block) -> WeightedSum | None:
    """The one such sum of a body."""
    found: list[WeightedSum] = []
    for op in body.ops:
        if isinstance(op, FoldOp | SharesOp):
            return None
        if not isinstance(op, sdg.ContractOp) or len(op.inputs) != 2:
            continue
        for number, value in enumerate(op.inputs):
            softmax = value.owner
            if isinstance(softmax, sdg.SoftmaxOp) and is_weighted_sum(op, value, softmax):
                found.append(WeightedSum(op, softmax, number))
    return found[0] if len(found) == 1 and len(list(found[0].softmax.result.uses)) == 1 else None


@dataclass
class _Splitting:
    """The kernels of a program while they are split; buffers of one type are one: only what follows reads them."""

    program: ProgramOp
    blocks: Blocks
    buffers: dict[tuple[str, Attribute], SSAValue] = field(default_factory=dict[tuple[str, Attribute], SSAValue])

    def split(self, leaf: BodyOperation) -> None:
        """Put two kernels in the place of one, where that gains."""
        found = sum_of(leaf.body.block)
        if found is None:
            return
        shares = self.blocks.key_shares(self._most(found.keys), found.programs(self.blocks))
        if shares < 2:
            return
        before = _cone([found.softmax.operand, found.product.inputs[1 - found.number]], stop=None)
        after = _cone(leaf.yielded, stop=found.product)
        if any(isinstance(op, sdg.ContractOp | sdg.SoftmaxOp) for op in after):
            return
        block = leaf.parent
        assert block is not None
        first, made = self._first(leaf, found, before, shares)
        for kernel in (first, self._second(leaf, found, after, made)):
            kernel.location = leaf.location
            block.insert_op_before(kernel, leaf)
        leaf.detach()
        leaf.erase()

    def _most(self, extent: int | Expr) -> int | None:
        """The greatest number of elements, None where a call decides."""
        if isinstance(extent, int):
            return extent
        try:
            return _number(ceiling(extent, self.program.space, Domain(self.program.space.names)))
        except (Inexact, NotAffine):
            return None

    def _first(
        self, leaf: BodyOperation, found: WeightedSum, ops: Sequence[Operation], shares: int
    ) -> tuple[KernelOp, list[BufferAccess]]:
        """The kernel of the shares, and where it writes."""
        scores, summed = found.softmax.operand, found.product.inputs[1 - found.number]
        reads, body, known = _begun(leaf, ops, [scores, summed])
        _clone(body, ops, known)
        op = SharesOp(found.spec, known[scores], known[summed], shares, found.block(self.blocks))
        op.location = found.product.location
        body.add_ops([op, YieldOp(op.results)])
        writes = [self._buffer(name, result.type) for name, result in zip(NAMES, op.results, strict=True)]
        return KernelOp(reads, writes, Region(body), leaf.point), writes

    def _second(
        self, leaf: BodyOperation, found: WeightedSum, ops: Sequence[Operation], parts: Sequence[BufferAccess]
    ) -> KernelOp:
        """The kernel that combines the shares, and computes what comes after the sum."""
        reads, body, known = _begun(leaf, ops, leaf.yielded)
        arguments = [body.insert_arg(part.type, len(body.args)) for part in parts]
        for argument, name in zip(arguments, NAMES, strict=True):
            argument.name_hint = name
        known[found.product.result] = combined(body, found.product, found.spec, arguments)
        known[found.product.result].name_hint = found.product.result.name_hint
        _clone(body, ops, known)
        body.add_op(YieldOp([known[value] for value in leaf.yielded]))
        return KernelOp([*reads, *parts], leaf.writes, Region(body), leaf.point)

    def _buffer(self, name: str, kind: Attribute) -> BufferAccess:
        """Memory for the results of shares."""
        known = self.buffers.get((name, kind))
        if known is None:
            alloc = AllocOp(BufferType(StorageAttr(()), as_tensor(kind)))
            alloc.buffer.name_hint = name
            block = self.program.body.block
            first = block.first_op
            assert first is not None
            block.insert_op_before(alloc, first)
            known = self.buffers[name, kind] = alloc.buffer
        return BufferAccess.of(known, ())


def _number(most: Expr) -> int | None:
    """A number that an expression over the bounds never exceeds, as `min(T, 8)` 8."""
    if isinstance(most, MinMax) and most.op == "min":
        return min((number for arg in most.args if (number := _number(arg)) is not None), default=None)
    return most.value if isinstance(most, Const) else None


def _cone(values: Sequence[SSAValue], stop: Operation | None) -> list[Operation]:
    """The ops that values are made of, without those beyond `stop`, in their order."""
    found: dict[Operation, None] = {}
    waiting = list(values)
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, Operation) and op is not stop and op not in found:
            found[op] = None
            waiting += op.operands
    block = next((op.parent for op in found), None)
    return [] if block is None else [op for op in block.ops if op in found]


def _begun(
    leaf: BodyOperation, ops: Sequence[Operation], values: Sequence[SSAValue]
) -> tuple[list[BufferAccess], Block, dict[SSAValue, SSAValue]]:
    """A body for some of a leaf's ops and values: what it reads, and the arguments that stand for the leaf's."""
    asked = {*values, *(operand for op in ops for operand in op.operands)}
    pairs = zip(leaf.body.block.args, leaf.reads, strict=True)
    needed = [(argument, access) for argument, access in pairs if argument in asked]
    body = Block(arg_types=[argument.type for argument, _ in needed])
    known: dict[SSAValue, SSAValue] = {}
    for (argument, _), fresh in zip(needed, body.args, strict=True):
        fresh.name_hint = argument.name_hint
        known[argument] = fresh
    return [access for _, access in needed], body, known


def _clone(body: Block, ops: Sequence[Operation], known: dict[SSAValue, SSAValue]) -> None:
    for op in ops:
        clone = op.clone(known)
        clone.location = op.location
        body.add_op(clone)
        known.update(zip(op.results, clone.results, strict=True))


def combined(body: Block, product: sdg.ContractOp, spec: str, parts: Sequence[SSAValue]) -> SSAValue:
    """The sum of all shares: each times `exp(its greatest - the greatest of all)`, over the totals times the same."""
    place = product.location

    def add(op: sdg.SdgOp) -> SSAValue:
        op.location = place
        body.add_op(op)
        return op.results[0]

    sums, greatest, totals = parts
    kind = element(sums.type)
    terms, output = spec.split("->")
    rows = "".join(letter for letter in output if letter in terms.split(",")[0])
    share = next(letter for letter in "szyxwvutr" if letter not in spec)
    zero, one, nothing = (add(sdg.ConstantOp(number, tensor(kind))) for number in (0.0, 1.0, float("-inf")))
    most = add(sdg.MaxOp(greatest, [0], domain=EVERYWHERE))
    empty = add(sdg.EqOp(most, nothing, domain=EVERYWHERE))
    shift = add(sdg.SelectOp(empty, zero, most, domain=EVERYWHERE))
    factor = add(sdg.ExpOp(add(sdg.SubOp(greatest, shift, domain=EVERYWHERE)), domain=EVERYWHERE))
    total = add(sdg.ContractOp(f"{share}{rows},{share}{rows}->{rows}", factor, totals, domain=EVERYWHERE))
    whole = add(sdg.ContractOp(f"{share}{rows},{share}{output}->{output}", factor, sums, domain=EVERYWHERE))
    none = add(sdg.EqOp(total, zero, domain=EVERYWHERE))
    divisor = add(sdg.SelectOp(none, one, total, domain=EVERYWHERE))
    extents = dict(zip(output, shape_of(product.result.type), strict=True))
    stretched = [extents[letter] if letter in rows else 1 for letter in output]
    if tuple(stretched) != shape_of(divisor.type):
        divisor = add(sdg.ReshapeOp(divisor, stretched, domain=EVERYWHERE))
    result = add(sdg.DivOp(whole, divisor, domain=EVERYWHERE))
    if element(result.type) != element(product.result.type):
        result = add(sdg.CastOp(result, element(product.result.type), domain=EVERYWHERE))
    return result
