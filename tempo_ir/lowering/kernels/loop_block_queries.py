"""loop-block-queries: attention of all steps at once, where nothing recurs along them.

Before:
```mlir
loop.for t = 0 to T {
  loop.kernel at (t = t) ins(%q = %q[t], %k = %k[0:t + 1], %v = %v[0:t + 1]) outs(%o[t]) {
    %s = sdg.contract "hd,nhd->hn" %q, %k : ...
    %p = sdg.softmax %s axis 1 : ...
    %o = sdg.contract "hn,nhd->hd" %p, %v : ...
    loop.yield %o : ...
  }
}
```
After:
```mlir
loop.kernel ins(%q = %q[0:T], %k = %k[0:T], %v = %v[0:T]) outs(%o[0:T]) {
  %s = sdg.contract "thd,nhd->thn" %q, %k : ...
  %o = loop.attend "thn,nhd->thd" %s, %v rows t to 1 : ...
  loop.yield %o : ...
}
```
so that a block of queries shares each block of keys: products of matrices in the place of products with vectors
(`kernels/attend.py`). Scores of all steps are a value of the kernel alone, of which it has a block at a time; that is
why this happens when kernels are formed and not on the graph, where the scores might come to lie in memory.

A window `max(0, t - 63):t + 1` is `rows t from -63 to 1`, what follows `t:T` is `rows t from 0`. It applies to a sum
weighted by a softmax in a loop of kernels, whose buffers hold a row for each step, of which it writes one a step and
reads none that it writes, and which other kernels of the loop leave alone: then its iterations are independent.
It does not apply, with a remark, to what is read in more ways than one row or one range of a step, to ops that have no
form for all steps at once, to draws of random numbers, and to what may fail at a step. The range that all steps read is
proved to lie inside of the buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    DONATES,
    AttendOp,
    BodyOperation,
    BufferAccess,
    BufferType,
    ForOp,
    KernelOp,
    OutputOp,
    ProgramOp,
    YieldOp,
)
from tempo_ir.dialects.sdg import Access, SdgOp
from tempo_ir.dialects.sdg.base import NO_DIMS
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.sdg.symbols import property_symbols
from tempo_ir.dialects.types import Extent, Shape, element, shape_of, tensor
from tempo_ir.index import (
    Const,
    Entry,
    Expr,
    Index,
    MinMax,
    Slice,
    Space,
    Sym,
    as_expr,
    compare,
    free_symbols,
    maximum,
    minimum,
    simplify,
    substitute,
)
from tempo_ir.lowering.bounds import OutOfBoundsError, check_bounds_of
from tempo_ir.lowering.instances import instances
from tempo_ir.lowering.kernels.loop_split_softmax import sum_of
from tempo_ir.lowering.kernels.step_parts import Stays, part_of, take_out
from tempo_ir.passes.building import GraphBuilder, symbols_of
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.vectorize.batching import (
    Batch,
    Operand,
    axis_problem,
    batching_of,
    elementwise,
    fresh_letter,
    shifts_only,
)


@dataclass(frozen=True)
class LoopBlockQueriesPass(ModulePass):
    """Attention of all steps of a loop as one kernel, where its iterations are independent."""

    name = "loop-block-queries"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            blocked = block_queries(program)
            count(self, "blocked", len(blocked))
            for loop in blocked.values():
                loop.erase()


def block_queries(program: ProgramOp) -> dict[BodyOperation, ForOp]:
    """Take attention out of loops, as kernels of all steps before them; each kernel with the loop that it stands for,
    which stands nowhere."""
    blocked: dict[BodyOperation, ForOp] = {}
    for loop in list(program.loops()):
        leaves = [op for op in loop.body.block.ops if isinstance(op, KernelOp)]
        for main in [leaf for leaf in leaves if sum_of(leaf.body.block) is not None]:
            try:
                kernel, steps = all_steps(program, loop, main)
            except Stays as reason:
                remark(main, f"its steps are computed one by one: {reason}")
                continue
            blocked[kernel] = steps
            if not take_out(loop, main):
                loop.detach()
                loop.erase()
    return blocked


def all_steps(program: ProgramOp, loop: ForOp, main: KernelOp) -> tuple[KernelOp, ForOp]:
    """The kernel of all steps of a leaf of a loop, before the loop, and a loop of this leaf alone. Raises Stays."""
    leaf = part_of(loop, main)
    kernel: KernelOp | None = None
    try:
        kernel = _Steps(program.space, loop, leaf).kernel()
        block = loop.parent
        assert block is not None
        block.insert_op_before(kernel, loop)
        if _leaves_its_buffers(program, kernel):
            raise Stays("what all of them read is not known to be there")
    except Stays:
        leaf.erase()
        if kernel is not None:
            kernel.detach()
            kernel.erase()
        raise
    steps = Region(Block([leaf]))
    return kernel, ForOp(loop.iterator, loop.lower, loop.upper, steps, down=loop.down_attr is not None)


def _leaves_its_buffers(program: ProgramOp, kernel: BodyOperation) -> bool:
    try:
        check_bounds_of([instance for instance in instances(program) if instance.op is kernel], program.space)
    except OutOfBoundsError:
        return True
    return False


@dataclass(frozen=True)
class _Keys:
    """What steps read of an axis: of all elements, row r those from `r + low` to below `r + high`."""

    read: Slice
    low: Expr | None
    high: Expr | None

    @property
    def extent(self) -> Extent:
        """How many elements any step reads."""
        extent = simplify(self.read.extent)
        return extent.value if isinstance(extent, Const) else extent


@dataclass(frozen=True)
class _Value:
    """A value for all steps: whether axis 0 is that of the steps, and which other one, at one step, is that of keys."""

    access: Access
    batched: bool = False
    keys: int | None = None

    @property
    def operand(self) -> Operand:
        """The value as what a batched op reads."""
        return Operand(self.access, self.batched)


@dataclass
class _Steps:
    """All steps of one loop as one kernel."""

    space: Space
    loop: ForOp
    leaf: BodyOperation
    known: dict[SSAValue, _Value] = field(default_factory=dict[SSAValue, _Value])
    keys: _Keys | None = None
    row_extent: Extent | None = None
    """The extent of the axis of keys at one step, as types of the leaf have it."""

    def kernel(self) -> KernelOp:
        """The kernel of all steps. Raises Stays."""
        self._check()
        reads = [self._read(access) for access in self.leaf.reads]
        body = Block(arg_types=[access.type for access, _, _ in reads])
        for old, new, (_, batched, keys) in zip(self.leaf.body.block.args, body.args, reads, strict=True):
            new.name_hint = old.name_hint
            self.known[old] = _Value(Access(new), batched, keys)
        end = YieldOp([])
        body.add_op(end)
        weighted = sum_of(self.leaf.body.block)
        assert weighted is not None
        for op in self.leaf.body.block.ops:
            if op is weighted.product:
                self._attend(end, weighted.product, weighted.softmax, weighted.number)
            elif isinstance(op, SdgOp) and op is not weighted.softmax:
                self._op(end, op)
        yielded = [self._yielded(end, value) for value in self.leaf.yielded]
        body.add_op(YieldOp(yielded))
        end.detach()
        end.erase()
        writes = [BufferAccess.of(access.buffer, self._index(access)[0]) for access in self.leaf.writes]
        for access, value in zip(writes, yielded, strict=True):
            if access.type != value.type:
                raise Stays(f"{access.type} is written as {value.type}")
        point = [(dim, value) for dim, value in self.leaf.point if self.dim not in free_symbols(value)]
        kernel = KernelOp([access for access, _, _ in reads], writes, Region(body), point)
        kernel.location = self.leaf.location
        return kernel

    # -- the loop

    @property
    def dim(self) -> str:
        """The iterator of the loop."""
        return self.loop.iterator

    @property
    def batch(self) -> Batch:
        """The steps."""
        return Batch(self.dim, self.loop.lower, self.loop.upper)

    def _check(self) -> None:
        """Raise Stays where iterations are not independent."""
        loop, leaf = self.loop, self.leaf
        if loop.until is not None or loop.range.step != 1:
            raise Stays("data ends them" if loop.until is not None else "some are left out")
        if any(may_fail(op) or isinstance(op, sdg.RandomOp) for op in leaf.body.walk()):
            raise Stays("a step may fail, or draws random numbers")
        written = {access.buffer for access in leaf.writes}
        if written & {access.buffer for access in leaf.reads} or len(written) < len(leaf.writes):
            raise Stays("a step reads what another one writes")
        if any(isinstance(buffer.owner, OutputOp) and DONATES in buffer.owner.attributes for buffer in written):
            raise Stays("a step writes the memory of a state")
        for access in leaf.writes:
            if not self._index(access)[1]:
                raise Stays("steps write one row")

    def _index(self, access: BufferAccess) -> tuple[Index, bool]:
        """The rows that all steps access where each has its own, and whether they have; ranges that do not vary stay.
        Raises Stays."""
        varying = [number for number, entry in enumerate(access.index) if self.dim in free_symbols(entry)]
        if not varying:
            return access.index, False
        (number, *others), entry = varying, access.index[varying[0]]
        assert isinstance(access.buffer.type, BufferType)
        stored = access.buffer.type.dims[number].storage
        if others or stored == "ring" or any(isinstance(before, Slice) for before in access.index[:number]):
            raise Stays(
                f"memory of {access.buffer.name_hint or 'a value'} does not hold all rows, or not in their order"
            )
        if not shifts_only(entry, self.dim):
            raise Stays(f"rows are read at {entry}")
        rows = self._all(entry)
        return (*access.index[:number], rows, *access.index[number + 1 :]), True

    def _all(self, entry: Entry) -> Slice:
        """The rows that all steps read at a shift of their own."""
        assert not isinstance(entry, Slice)
        shift = entry - Sym(self.dim)
        return Slice(simplify(self.loop.lower + shift), simplify(self.loop.upper + shift))

    def _read(self, access: BufferAccess) -> tuple[BufferAccess, bool, int | None]:
        """What all steps read, whether it has an axis of steps, and which is its axis of keys. Raises Stays."""
        index, batched, keys = access.index, False, None
        ranges = [entry for entry in index if isinstance(entry, Slice)]
        varying = [entry for entry in ranges if self.dim in free_symbols(entry)]
        if varying:
            if len(varying) > 1 or any(not isinstance(e, Slice) and self.dim in free_symbols(e) for e in index):
                raise Stays("several ranges vary from step to step")
            keys = ranges.index(varying[0])
            number = index.index(varying[0])
            assert isinstance(access.buffer.type, BufferType)
            if access.buffer.type.dims[number].storage == "ring":
                raise Stays("memory holds a window alone")
            read = self._range(varying[0], shape_of(access.type)[keys])
            index = (*index[:number], read, *index[number + 1 :])
        else:
            index, batched = self._index(access)
        shape = list(shape_of(access.type))
        if keys is not None:
            shape[keys] = self._keys_extent()
        if self.dim in symbols_of(shape):
            raise Stays("what is read changes its shape from step to step")
        rows = [as_plain(self.batch.count)] if batched else []
        return BufferAccess(access.buffer, index, tensor(element(access.type), [*rows, *shape])), batched, keys

    # -- keys

    def _range(self, entry: Slice, extent: Extent) -> Slice:
        """The elements that any step reads of its range; notes the range of a row. Raises Stays."""
        if entry.step != 1:
            raise Stays(f"elements of {entry} are left out")
        begin = {self.dim: self.loop.lower}
        first = simplify(substitute(entry.start, begin))
        last = simplify(substitute(entry.stop, {self.dim: self.loop.upper - 1}))
        read = Slice(first, last if first == Const(0) else simplify(maximum(first, last)))
        low, high = self._shift(entry.start, "max"), self._shift(entry.stop, "min")
        moved = [None if shift is None else simplify(shift + self.loop.lower - first) for shift in (low, high)]
        keys = _Keys(read, *moved)
        if self.keys is not None and (keys.low, keys.high, keys.extent) != (
            self.keys.low,
            self.keys.high,
            self.keys.extent,
        ):
            raise Stays(f"{entry} is another range than what else is read")
        if self.row_extent is not None and self.row_extent != extent:
            raise Stays(f"{entry} has not the extent of what else is read")
        self.keys, self.row_extent = self.keys or keys, extent
        return read

    def _shift(self, end: Expr, within: str) -> Expr | None:
        """What is added to the step in an end of a range; None where no end varies. Raises Stays."""
        parts = end.args if isinstance(end, MinMax) and end.op == within else (end,)
        varying = [part for part in parts if self.dim in free_symbols(part)]
        if not all(shifts_only(part, self.dim) for part in varying):
            raise Stays(f"{end} is no shift of the step")
        shifts = [simplify(part - Sym(self.dim)) for part in varying]
        if not shifts:
            return None
        return shifts[0] if len(shifts) == 1 else (maximum(*shifts) if within == "max" else minimum(*shifts))

    def _keys_extent(self) -> Extent:
        assert self.keys is not None
        return self.keys.extent

    # -- ops

    def _op(self, end: Operation, op: SdgOp) -> None:
        """An op for all steps, before `end`. Raises Stays."""
        operands = [self.known.get(operand) for operand in op.operands]
        if any(operand is None for operand in operands):
            raise Stays(f"{op.name} reads the weights of the sum")
        values = [operand for operand in operands if operand is not None]
        build = GraphBuilder(end, NO_DIMS, op.location)
        if isinstance(op, sdg.SliceOp):
            made = self._slice(build, op, values[0])
        elif isinstance(op, sdg.IndexOp) and self.dim in free_symbols(op.expression):
            if not shifts_only(op.expression, self.dim) or self.dim not in self.space.names:
                raise Stays(f"{op.expression} is no shift of a dim")
            made = _Value(batched_by(build, op, values, self.batch), batched=True)
        elif any(value.keys is not None for value in values):
            made = self._along_keys(build, op, values)
        elif self.dim in property_symbols(op):
            raise Stays(f"{op.name} has a shape that changes from step to step")
        elif any(value.batched for value in values):
            problem = axis_problem(op, [value.batched for value in values])
            if batching_of(op) is None or problem is not None:
                raise Stays(f"{op.name} has no form for all steps at once")
            made = _Value(batched_by(build, op, values, self.batch), batched=True)
        else:
            clone = op.clone({old: value.access.value for old, value in zip(op.operands, values, strict=True)})
            clone.location = op.location
            made = _Value(build.insert(clone))
        made.access.value.name_hint = op.results[0].name_hint
        self.known[op.results[0]] = made

    def _slice(self, build: GraphBuilder, op: sdg.SliceOp, value: _Value) -> _Value:
        """A slice; what it takes may vary. Raises Stays."""
        take = list(op.take)
        varying = [axis for axis, entry in enumerate(take) if self.dim in free_symbols(entry)]
        if value.keys is not None:
            if varying not in ([], [value.keys]) or take[value.keys] != Slice(Const(0), as_expr(self.row_extent or 0)):
                raise Stays("a part of a range that varies is taken")
            take[value.keys] = Slice(Const(0), as_expr(self._keys_extent()))
            varying, kept = [], value.keys - sum(not isinstance(e, Slice) for e in take[: value.keys])
        else:
            kept = None
        if not varying:
            rows = [Slice(Const(0), as_expr(self.batch.count))] if value.batched else []
            return _Value(build.slice(value.access, (*rows, *take)), value.batched, kept)
        (axis, *others), entry = varying, take[varying[0]]
        if others or value.batched:
            raise Stays("a slice varies along several axes")
        place = sum(isinstance(each, Slice) for each in take[:axis])
        extent = shape_of(value.access.type)[axis]
        if isinstance(entry, Slice):
            take[axis] = inside = self._range(entry, shape_of(op.result.type)[place])
            self._prove_inside(inside, extent)
            return _Value(build.slice(value.access, tuple(take)), keys=place)
        if not shifts_only(entry, self.dim):
            raise Stays(f"rows are read at {entry}")
        take[axis] = self._all(entry)
        taken = build.slice(value.access, tuple(take))
        if place:
            order = (place, *(number for number in range(len(shape_of(taken.type))) if number != place))
            taken = build.build(sdg.TransposeOp, taken, permutation=order)
        return _Value(taken, batched=True)

    def _prove_inside(self, entry: Slice, extent: Extent) -> None:
        """Raise Stays unless a range lies inside of an axis."""
        from tempo_ir.index import isl

        for condition in (compare(">=", entry.start, 0), compare("<=", entry.stop, extent)):
            if not isl.prove(condition, self.space):
                raise Stays("what all steps read of a value is not known to be there")

    def _along_keys(self, build: GraphBuilder, op: SdgOp, values: Sequence[_Value]) -> _Value:
        """An op on values along the keys. Raises Stays."""
        batched = any(value.batched for value in values)
        if isinstance(op, sdg.ContractOp):
            return self._contract(build, op, values)
        rank = len(shape_of(op.results[0].type))
        if isinstance(op, sdg.UnaryOp | sdg.BinaryOp | sdg.SelectOp | sdg.CastOp):
            places = {rank - _rank(value) + value.keys for value in values if value.keys is not None}
            if len(places) != 1:
                raise Stays(f"{op.name} pairs keys with keys")
            return _Value(elementwise(build, op, [v.operand for v in values], self.batch), batched, places.pop())
        (value, *_) = values
        assert value.keys is not None
        rows = [as_plain(self.batch.count)] if value.batched else []
        if isinstance(op, sdg.TransposeOp):
            permutation = op.permutation
            shifted = (0, *(axis + 1 for axis in permutation)) if value.batched else permutation
            made = build.build(sdg.TransposeOp, value.access, permutation=shifted)
            return _Value(made, value.batched, list(permutation).index(value.keys))
        if isinstance(op, sdg.ReshapeOp):
            old, new = shape_of(op.operand.type), shape_of(op.result.type)
            place = _same_axis(old, new, value.keys)
            if place is None or self.dim in symbols_of([*new[:place], *new[place + 1 :]]):
                raise Stays("a reshape cuts the keys")
            shape = [*new[:place], self._keys_extent(), *new[place + 1 :]]
            return _Value(build.reshape(value.access, [*rows, *shape]), value.batched, place)
        raise Stays(f"{op.name} along keys has no form for all steps at once")

    def _contract(self, build: GraphBuilder, op: sdg.ContractOp, values: Sequence[_Value]) -> _Value:
        """A contraction that keeps the keys."""
        inputs, output = op.letters
        keys = {letters[v.keys] for letters, v in zip(inputs, values, strict=True) if v.keys is not None}
        if len(keys) != 1 or not keys <= set(output):
            raise Stays("keys are summed")
        (key,) = keys
        if any(key in letters and v.keys is None for letters, v in zip(inputs, values, strict=True)):
            raise Stays("keys are paired with what does not vary")
        letter = fresh_letter(self.dim, "".join(inputs))
        batched = any(value.batched for value in values)
        terms = [letter + own if value.batched else own for own, value in zip(inputs, values, strict=True)]
        spec = f"{','.join(terms)}->{letter + output if batched else output}"
        return _Value(build.contract(spec, *(value.access for value in values)), batched, output.index(key))

    def _attend(self, end: Operation, op: sdg.ContractOp, softmax: sdg.SoftmaxOp, number: int) -> None:
        """The sum weighted by the softmax. Raises Stays."""
        scores, summed = self.known[softmax.operand], self.known[op.inputs[1 - number]]
        inputs, output = op.letters
        weights, other = inputs[number], inputs[1 - number]
        key = weights[softmax.axis]
        if summed.batched:
            raise Stays("what is summed varies from step to step")
        if (scores.keys is None) != (summed.keys is None):
            raise Stays("keys are paired with what does not vary")
        if scores.keys is not None and (scores.keys, summed.keys) != (softmax.axis, other.index(key)):
            raise Stays("the sum is along no range")
        access = scores.access
        build = GraphBuilder(end, NO_DIMS, op.location)
        if not scores.batched:
            access = build.broadcast(access, [as_plain(self.batch.count), *shape_of(access.type)])
        if element(softmax.operand.type) != element(softmax.result.type):
            raise Stays("weights are of another type than scores")
        letter = fresh_letter(self.dim, "".join(inputs))
        low, high = (None, None) if self.keys is None or scores.keys is None else (self.keys.low, self.keys.high)
        attend = AttendOp(
            f"{letter}{weights},{other}->{letter}{output}", access.value, summed.access.value, letter, low, high
        )
        if element(attend.result.type) != element(op.result.type):
            raise Stays("the sum is of another type than what is summed")
        attend.location = op.location
        block = end.parent
        assert block is not None
        block.insert_op_before(attend, end)
        attend.result.name_hint = op.result.name_hint
        self.known[op.result] = _Value(Access(attend.result), batched=True)

    def _yielded(self, end: Operation, value: SSAValue) -> SSAValue:
        """What is written of all steps. Raises Stays."""
        found = self.known.get(value)
        if found is None or found.keys is not None:
            raise Stays("weights or scores are written")
        if found.batched:
            return found.access.value
        build = GraphBuilder(end, NO_DIMS, self.leaf.location)
        return build.broadcast(found.access, [as_plain(self.batch.count), *shape_of(found.access.type)]).value


def batched_by(build: GraphBuilder, op: SdgOp, values: Sequence[_Value], batch: Batch) -> Access:
    """An op by its rule for all points of a dim, with the steps as axis 0."""
    batching = batching_of(op)
    assert batching is not None
    made = batching(build, op, [value.operand for value in values], batch)
    shape = (as_plain(batch.count), *shape_of(op.results[0].type))
    return made if shape_of(made.type) == shape else build.broadcast(made, shape)


def as_plain(extent: Extent) -> Extent:
    """A number where an extent is one."""
    return extent.value if isinstance(extent, Const) else extent


def _rank(value: _Value) -> int:
    """The axes of a value at one step."""
    return len(shape_of(value.access.type)) - value.batched


def _same_axis(old: Shape, new: Shape, axis: int) -> int | None:
    """Which axis of a reshaped value is an axis of the old one, with what stands before and after it as it was."""
    found = [number for number, extent in enumerate(new) if extent == old[axis]]
    if len(found) != 1 or list(old).count(old[axis]) != 1:
        return None
    (place,) = found

    def elements(shape: Shape) -> list[Extent]:
        return [extent for extent in shape if extent != 1]

    numbers = all(isinstance(extent, int) for extent in (*old[:axis], *new[:place]))
    if numbers:
        product, other = 1, 1
        for extent in old[:axis]:
            product *= extent if isinstance(extent, int) else 1
        for extent in new[:place]:
            other *= extent if isinstance(extent, int) else 1
        return place if product == other else None
    return place if elements(old[:axis]) == elements(new[:place]) else None
