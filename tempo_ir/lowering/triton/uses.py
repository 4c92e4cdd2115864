"""What the uses of a value allow: to write it where it is used, to change a name in place, to write nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import element_of, is_float, shape_of
from tempo_ir.lowering.triton.addresses import constant_of, static_bounds
from tempo_ir.lowering.triton.expressions import computed_type, is_narrow_float, scalar_number, triton_type
from tempo_ir.lowering.triton.tuning import is_written_out


def is_used_once(value: SSAValue) -> bool:
    """Whether an index is needed once alone, in its own block: for the indices along one axis, or for one op."""
    lanes: set[tuple[int, SSAValue | None]] = set()
    others: list[Operation] = []
    for use in value.uses:
        op = use.operation
        match op:
            case memory.AccessOp():
                for axis, index in enumerate(op.indices):
                    if index is not value:
                        continue
                    extent = op.block.data[axis]
                    if extent > 1 and not (isinstance(op, memory.IndexedAccessOp) and axis == op.axis_number):
                        lanes.add((extent, None))
                    else:
                        others.append(op)
            case shape.IotaOp() | shape.InRangeOp() if op.start is value:
                lanes.add((shape_of(op.result)[0], None))
            case memory.ViewOp():
                others += [use.operation for use in op.result.uses]
            case _:
                others.append(op)
    if lanes:
        return len(lanes) == 1 and not others
    return len(others) == 1 and others[0].parent is value.owner.parent


def is_updated_in_place(loop: structure.ForOp, argument: SSAValue, following: SSAValue) -> bool:
    """Whether the next value of what a loop carries may take the name of the present one: where it is made, nobody
    reads that any more."""
    owner = following.owner
    block = loop.body.block
    if not isinstance(owner, Operation) or owner.parent is not block or isinstance(following.type, IndexType):
        return False
    if isinstance(owner, (structure.ForOp, shape.ConstOp, shape.PhiloxOp, shape.ExpandOp, shape.TransOp)):
        return False
    if same_value(owner) is not None or list(loop.yielded).count(following) > 1:
        return False
    order = {op: number for number, op in enumerate(block.ops)}
    return all(order[_within(block, op)] <= order[owner] for op in _readers(argument))


def _readers(value: SSAValue) -> Iterator[Operation]:
    """The ops that read a value, also by way of ops that may be written where they are used."""
    for use in value.uses:
        op = use.operation
        yield op
        written = isinstance(op, (shape.ExpandOp, shape.TransOp)) or same_value(op) is not None
        if written or any(isinstance(result.type, IndexType) for result in op.results):
            for result in op.results:
                yield from _readers(result)


def _within(block: Block, op: Operation) -> Operation:
    """The op of a block in which another stands."""
    while op.parent is not block:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return op


@dataclass(frozen=True, slots=True)
class Section:
    """What programs do whose `place` is from `low` and below `high`, where there are such bounds."""

    place: SSAValue
    low: int | None
    high: int | None
    block: Block


def sections_of(op: structure.IfOp) -> list[Section]:
    """`if p < 1: a, else: if p < 5: b, else: c` as sections below 1, from 1 to 5, and from 5; none for another `if`."""
    found: list[Section] = []
    low: int | None = None
    branch: structure.IfOp | None = op
    while branch is not None:
        compare = branch.condition.owner
        high = constant_of(compare.rhs) if isinstance(compare, ew.LtOp) else None
        if not isinstance(compare, ew.LtOp) or high is None or branch.otherwise is None:
            return []
        if found and (compare.lhs is not found[0].place or low is None or high < low):
            return []
        found.append(Section(compare.lhs, low, high, branch.then.block))
        low, rest, branch = high, branch.otherwise.block, _alone_in(branch.otherwise.block)
        if branch is None:
            found.append(Section(compare.lhs, low, None, rest))
    return found


def _alone_in(block: Block) -> structure.IfOp | None:
    """The branch that is all there is in a block, with what it compares."""
    ops = [op for op in block.ops if not isinstance(op, (shape.ConstOp, structure.YieldOp))]
    match ops:
        case [ew.LtOp() as compare, structure.IfOp() as branch] if branch.condition is compare.result:
            return branch
        case _:
            return None


def same_value(op: Operation) -> SSAValue | None:
    """The operand that an op gives back as it is; None where it does something."""
    match op:
        case ew.AddOp(lhs=lhs, rhs=rhs):
            return next(
                (
                    one
                    for one, other in ((lhs, rhs), (rhs, lhs))
                    if _is_nothing(other) and _is_typed(one) and shape_of(one) == shape_of(op.result)
                ),
                None,
            )
        case ew.SelectOp(condition=mask, lhs=SSAValue(owner=ew.SelectOp(condition=inner, rhs=other)), rhs=rhs):
            number = scalar_number(rhs)
            known = number is not None and number == scalar_number(other) and _is_same_mask(mask, inner)
            return op.lhs if known else None
        case ew.CastOp(value=value):
            kept = computed_type(element_of(value)) == triton_type(element_of(op.result))
            return value if kept and _is_typed(value) else None
        case _:
            return None


def _is_nothing(value: SSAValue) -> bool:
    """Whether adding an integer changes nothing."""
    return scalar_number(value) == 0 and not is_float(element_of(value))


def is_kept_narrow(value: SSAValue) -> bool:
    """Whether a value of 16 bits is needed as that alone, by dots and by memory, so that it is not computed with."""
    if not is_narrow_float(element_of(value)):
        return False
    owner = value.owner
    if isinstance(owner, shape.TransOp):
        return is_kept_narrow(owner.value)
    return isinstance(owner, (memory.LoadOp, memory.GatherOp, ew.CastOp)) and _is_needed_narrow(value)


def _is_needed_narrow(value: SSAValue) -> bool:
    for use in value.uses:
        match use.operation:
            case shape.DotOp() as op if not is_written_out(op):
                pass
            case memory.WriteOp() | memory.IndexedWriteOp():
                pass
            case shape.TransOp() as op if _is_needed_narrow(op.result):
                pass
            case _:
                return False
    return True


def _is_same_mask(mask: SSAValue, other: SSAValue) -> bool:
    """Whether two masks are the same since they compare the same indices with the same limit."""
    if mask is other:
        return True
    match mask.owner, other.owner:
        case shape.ExpandOp() as one, shape.ExpandOp() as two:
            return one.axis_number == two.axis_number and _is_same_mask(one.value, two.value)
        case shape.InRangeOp() as one, shape.InRangeOp() as two:
            alike = [
                a is b or (constant_of(a) is not None and constant_of(a) == constant_of(b))
                for a, b in zip(one.operands, two.operands, strict=True)
            ]
            return all(alike) and shape_of(mask) == shape_of(other)
        case _:
            return False


def _is_typed(value: SSAValue) -> bool:
    """Whether a value has a type of its own in Triton, as a number has not."""
    return scalar_number(value) is None and (not isinstance(value.type, IndexType) or static_bounds(value) is None)
