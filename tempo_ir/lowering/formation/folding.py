"""Loops that become folds: a recurrence of which only the last values are needed runs inside one kernel.

Before:

    loop.for m = 0 to t floordiv 64 + 1 {
      loop.if m = 0 { loop.compute ins(%a = %first[t]) outs(%total[t, m]) { loop.yield %a } }
      else { loop.compute ins(%a = %next[t, m - 1]) outs(%total[t, m]) { loop.yield %a } }
      loop.if t > 64 * m + 63 {
        loop.compute ins(%a = %x[64 * m:64 * m + 64]) outs(%tile[t, m]) { sdg.max ... }
        loop.compute ins(%a = %total[t, m], %b = %tile[t, m]) outs(%next[t, m]) { sdg.maximum ... }
      }
    }

After:

    loop.compute ins(%a = %first[t], %b = %x[0:64 * (t floordiv 64)]) outs(%total[t, t floordiv 64]) {
      %r = loop.fold m = 0 to t floordiv 64 carry(%c = %a) reads(%d = %b) {
        %e = sdg.slice %d take [64 * m:64 * m + 64] ...
        %f = sdg.max %e ...
        %g = sdg.maximum %c, %f ...
        loop.yield %g
      }
      loop.yield %r
    }

The loop counts up from 0 by ones. Its leaves are merges (`%total`: one value at 0, that of the iteration before
otherwise) and leaves that run in all iterations before the one whose merges are read after the loop; nothing outside
of the loop reads anything else. What an iteration reads of a buffer moves steadily, without gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferAccess,
    ComputeOp,
    FoldOp,
    ForOp,
    IfOp,
    ProgramOp,
    YieldOp,
    enclosing_loops,
)
from tempo_ir.dialects.types import Extent, Tensor, shape_of
from tempo_ir.index import (
    And,
    Compare,
    Cond,
    Const,
    Entry,
    Expr,
    Index,
    Slice,
    Sym,
    as_expr,
    compare,
    conj,
    disj,
    free_symbols,
    negate,
    simplify,
    substitute,
)
from tempo_ir.lowering.formation.rows import Scope, are_there

_OTHER = (
    sdg.RandomOp,
    sdg.ScanOp,
    sdg.ScatterAddOp,
    sdg.SortOp,
    sdg.ArgsortOp,
    sdg.GatherOp,
    sdg.FloordivOp,
    sdg.ModOp,
)
"""What has a kernel of its own, draws numbers, or fails at a point that is to be told."""


class _NoFold(Exception):
    """The loop is no fold; the message says why."""


@dataclass(frozen=True)
class _Merge:
    """A value that an iteration gets from the one before: where it is first from, and from what after."""

    buffer: SSAValue
    index: Index
    first: BufferAccess
    following: SSAValue
    when: Cond
    """In which iterations it is made."""


@dataclass
class _Loop:
    """What is known of a loop while it is looked at."""

    op: ForOp
    program: ProgramOp
    count: Expr
    """The number of iterations of the steps, which is where the last values are read."""
    merges: dict[SSAValue, _Merge] = field(default_factory=dict[SSAValue, _Merge])
    steps: list[ComputeOp] = field(default_factory=list[ComputeOp])

    def holds(self, cond: Cond, *ranges: tuple[str, Expr, Expr]) -> bool:
        """Whether a condition is proved wherever the loop runs, for all of the iterations in some ranges."""
        return Scope.of(self.op, self.program.space).inside(*ranges).holds(cond)


def fold_of(op: ForOp, program: ProgramOp) -> ComputeOp | None:
    """The leaf that does what a loop does; None where it is no fold."""
    if op.down or op.step != 1 or op.until is not None or op.lower != Const(0):
        return None
    try:
        leaves = list(_leaves(op.body.block, ()))
        loop = _Loop(op, program, _last(op, leaves))
        _sort(loop, leaves)
        return _built(loop)
    except _NoFold:
        return None


def _last(op: ForOp, leaves: Sequence[tuple[ComputeOp, tuple[Cond, ...]]]) -> Expr:
    """The iteration whose values are read after the loop."""
    inside: set[Operation] = {leaf for leaf, _ in leaves}
    for leaf, _ in leaves:
        (buffer,) = leaf.outs
        users = [user for use in buffer.uses if (user := use.operation) not in inside]
        if not users:
            continue
        (write,) = leaf.writes
        places = [number for number, entry in enumerate(write.index) if entry == Sym(op.iterator)]
        for user in users:
            if not isinstance(user, BodyOperation) or len(places) != 1:
                continue
            for access in user.reads:
                entry = access.index[places[0]] if access.buffer is write.buffer else None
                if entry is not None and not isinstance(entry, Slice):
                    return entry
    raise _NoFold("nothing is read after the loop")


def _leaves(block: Block, conds: tuple[Cond, ...]) -> Iterator[tuple[ComputeOp, tuple[Cond, ...]]]:
    """The leaves of a loop, with the parts of the condition under which each runs."""
    for op in block.ops:
        if isinstance(op, ComputeOp) and len(op.outs) == 1:
            yield op, conds
        elif isinstance(op, IfOp):
            yield from _leaves(op.then.block, (*conds, *_parts(op.condition)))
            if op.otherwise is not None:
                yield from _leaves(op.otherwise.block, (*conds, *_parts(negate(op.condition))))
        else:
            raise _NoFold("it holds more than leaves")


def _parts(cond: Cond) -> tuple[Cond, ...]:
    return cond.args if isinstance(cond, And) else (cond,)


def _sort(loop: _Loop, leaves: Sequence[tuple[ComputeOp, tuple[Cond, ...]]]) -> None:
    """Tell merges from steps."""
    by_buffer: dict[SSAValue, list[tuple[ComputeOp, tuple[Cond, ...]]]] = {}
    for leaf, conds in leaves:
        by_buffer.setdefault(leaf.outs[0], []).append((leaf, conds))
    name = loop.op.iterator
    at_start = Compare("=", Sym(name), Const(0))
    later = {negate(at_start), Compare(">", Sym(name), Const(0)), Compare(">=", Sym(name), Const(1))}
    outer = {each.iterator for each in enclosing_loops(loop.op)}
    if not free_symbols(loop.count) <= outer | set(loop.program.space.params):
        raise _NoFold("what is read after the loop is read in another loop")
    runs = (name, Const(0), loop.count)
    if not loop.holds(conj(Compare(">=", loop.count, Const(0)), Compare("<", loop.count, loop.op.upper))):
        raise _NoFold("what is read after the loop is of no iteration")
    for buffer, written in by_buffer.items():
        if len(written) == 1:
            ((leaf, conds),) = written
            if not loop.holds(conj(*conds), runs):
                raise _NoFold("a leaf does not run in all iterations")
            loop.steps.append(leaf)
            continue
        first = [pair for pair in written if at_start in pair[1]]
        following = [pair for pair in written if later & set(pair[1])]
        if len(written) != 2 or len(first) != 1 or len(following) != 1:
            raise _NoFold("a value has other cases than the first iteration and those after")
        rest = conj(*(cond for _, conds in written for cond in conds if cond != at_start and cond not in later))
        if not loop.holds(rest, runs):
            raise _NoFold("a merge does not run in all iterations")
        loop.merges[buffer] = _merge(name, first[0][0], following[0][0], rest)


def _merge(name: str, first: ComputeOp, following: ComputeOp, when: Cond) -> _Merge:
    for leaf in (first, following):
        if len(leaf.reads) != 1 or leaf.yielded != tuple(leaf.body.block.args):
            raise _NoFold("a merge is no copy")
    (write,), (start,), (before,) = first.writes, first.reads, following.reads
    if name in free_symbols(start.index) or following.writes[0].index != write.index:
        raise _NoFold("a merge starts with another value in each iteration")
    if before.index != substitute(write.index, {name: Sym(name) - 1}):
        raise _NoFold("a merge reads another iteration than the one before")
    if any(access.type != BufferAccess.of(access.buffer, access.index).type for access in (write, start, before)):
        raise _NoFold("a merge takes a part of rows")
    return _Merge(write.buffer, write.index, start, before.buffer, when)


def _built(loop: _Loop) -> ComputeOp:
    """The leaf with the fold."""
    made = {leaf.outs[0]: leaf for leaf in loop.steps}
    if not loop.merges or any(merge.following not in made for merge in loop.merges.values()):
        raise _NoFold("what is carried is not made in the loop")
    finals = _finals(loop, made)
    merges = list(loop.merges.values())
    for merge in merges:
        if all(merge.buffer is not final.buffer for final in finals):
            _check_there(loop, merge.first)
    reads: dict[BufferAccess, tuple[BufferAccess, Index]] = {}
    for leaf in loop.steps:
        if any(isinstance(op, _OTHER) for op in leaf.body.block.ops):
            raise _NoFold("an op cannot be in the loop of a kernel")
        for access in leaf.reads:
            if access.buffer not in made and access.buffer not in loop.merges:
                reads[access] = _whole(loop, access)
    outside = list(dict.fromkeys([merge.first for merge in merges] + [whole for whole, _ in reads.values()]))
    body = Block(arg_types=[access.type for access in outside])
    arguments = dict(zip(outside, body.args, strict=True))
    for access, argument in arguments.items():
        argument.name_hint = access.buffer.name_hint
    read = list(dict.fromkeys(whole for whole, _ in reads.values()))
    carried = [arguments[merge.first] for merge in merges]
    inner = _inner(loop, merges, reads, read)
    fold = FoldOp(loop.op.iterator, loop.count, carried, [arguments[access] for access in read], inner)
    fold.location = loop.steps[-1].location
    for merge, final in zip(merges, fold.finals, strict=True):
        final.name_hint = merge.buffer.name_hint
    results = dict(zip(loop.merges, fold.finals, strict=True))
    body.add_ops([fold, YieldOp([results[access.buffer] for access in finals])])
    point = [(name, value) for name, value in loop.steps[-1].point if loop.op.iterator not in free_symbols(value)]
    leaf = ComputeOp(outside, finals, Region(body), point)
    leaf.location = fold.location
    return leaf


def _finals(loop: _Loop, made: dict[SSAValue, ComputeOp]) -> list[BufferAccess]:
    """The rows of merges that are read after the loop: those of the last iteration, in which only they have values."""
    name = loop.op.iterator
    inside = {op for op in loop.op.walk() if isinstance(op, BodyOperation)}
    found: list[BufferAccess] = []
    for buffer in (*loop.merges, *made):
        if not isinstance(buffer.owner, AllocOp):
            raise _NoFold("the caller sees the rows")
        users = dict.fromkeys(use.operation for use in buffer.uses if use.operation not in inside)
        if users and buffer in made:
            raise _NoFold("a value of an iteration is read after the loop")
        if not users:
            continue
        merge = loop.merges[buffer]
        if not loop.holds(merge.when, (name, Const(0), loop.count + 1)):
            raise _NoFold("what is read after the loop is not always made")
        for user in users:
            if not isinstance(user, BodyOperation) or any(buffer is out for out in user.outs):
                raise _NoFold("the values are used otherwise")
            for access in user.reads:
                if access.buffer is buffer and not _is_last(loop, merge.index, access.index, user):
                    raise _NoFold("a value of another iteration is read after the loop")
        last = BufferAccess.of(buffer, substitute(merge.index, {name: loop.count}))
        if last.type != merge.first.type:
            raise _NoFold("what is carried has another shape in the last iteration")
        found.append(last)
    if not found:
        raise _NoFold("nothing is read after the loop")
    return found


def _is_last(loop: _Loop, written: Index, read: Index, reader: Operation) -> bool:
    """Whether a row is that of the last iteration, wherever the reader runs: in which iterations of the loops round the
    loop it was written, the row itself says, since nobody else writes it."""
    outer = {each.iterator for each in enclosing_loops(loop.op)}
    moving = {*outer, loop.op.iterator}
    at: dict[str, Expr] = {}
    for place, entry in zip(written, read, strict=True):
        if isinstance(entry, Slice) or isinstance(place, Slice):
            return False
        for name in sorted(free_symbols(place) & moving):
            forwards, backwards = simplify(place - Sym(name)), simplify(place + Sym(name))
            if not free_symbols(forwards) & moving:
                at.setdefault(name, entry - forwards)
            elif not free_symbols(backwards) & moving:
                at.setdefault(name, backwards - entry)
    if loop.op.iterator not in at or not free_symbols(loop.count) & outer <= at.keys():
        return False
    last = substitute(loop.count, {name: at[name] for name in sorted(outer & at.keys())})
    return Scope.of(reader, loop.program.space).holds(compare("=", at[loop.op.iterator], last))


def _whole(loop: _Loop, access: BufferAccess) -> tuple[BufferAccess, Index]:
    """What all iterations read of a buffer, and what one of them takes of that."""
    name = loop.op.iterator
    whole = BufferAccess.of(access.buffer, access.index)
    if whole.type != access.type or name in _type_symbols(access):
        raise _NoFold("a part of rows is read")
    places = [number for number, entry in enumerate(access.index) if name in free_symbols(entry)]
    if not places:
        _check_there(loop, access)
        return access, ()
    if len(places) > 1:
        raise _NoFold("two entries of a read move")
    (place,) = places
    entry = access.index[place]
    taken = entry if isinstance(entry, Slice) else Slice(entry, entry + 1)
    axis = sum(isinstance(other, Slice) for other in access.index[:place])
    extent = shape_of(access.type)[axis] if isinstance(entry, Slice) else 1
    step = _step(loop, taken, extent)
    ends = [substitute(taken, {name: Const(0)}), substitute(taken, {name: loop.count - 1})]
    low, high = ends if step > 0 else ends[::-1]
    if not loop.holds(disj(Compare(">=", loop.count, Const(1)), compare("<=", high.stop, low.start))):
        raise _NoFold("all of no iterations would have rows")
    index = (*access.index[:place], Slice(low.start, high.stop, taken.step), *access.index[place + 1 :])
    every = BufferAccess.of(access.buffer, index)
    own = simplify(step // taken.step * Sym(name) if step > 0 else -step // taken.step * (loop.count - 1 - Sym(name)))
    take: list[Entry] = [Slice(Const(0), as_expr(extent)) for extent in shape_of(every.type)]
    take[axis] = Slice(own, own + extent) if isinstance(entry, Slice) else own
    return every, tuple(take)


def _step(loop: _Loop, taken: Slice, extent: Extent) -> int:
    """How far a range moves from an iteration to the next: by no more than its own length, so that nothing between is
    left out, and by all of it where there are rows between its own."""
    if not isinstance(extent, int):
        raise _NoFold("a read changes its length")
    name = loop.op.iterator
    following = substitute(taken.start, {name: Sym(name) + 1})
    difference = simplify(following - taken.start)
    candidates = [difference.value] if isinstance(difference, Const) else [extent * taken.step, -extent * taken.step]
    runs = (name, Const(0), loop.count - 1)
    for step in candidates:
        overlaps = taken.step == 1 and 0 < abs(step) < extent
        if (overlaps or abs(step) == extent * taken.step) and loop.holds(
            Compare("=", following, taken.start + step), runs
        ):
            return step
    raise _NoFold("a read does not move steadily, or leaves gaps")


def _check_there(loop: _Loop, access: BufferAccess) -> None:
    """A row that iterations read is there where there is none too."""
    has_iterations = Compare(">=", loop.count, Const(1))
    if not loop.holds(has_iterations) and not are_there(access, loop.op, loop.program.space):
        raise _NoFold("where there are no iterations, a row is not there that they read")


def _type_symbols(access: BufferAccess) -> set[str]:
    return {name for extent in shape_of(access.type) if not isinstance(extent, int) for name in free_symbols(extent)}


def _inner(
    loop: _Loop,
    merges: Sequence[_Merge],
    reads: dict[BufferAccess, tuple[BufferAccess, Index]],
    read: Sequence[BufferAccess],
) -> Region:
    """The body of the fold: the ops of the steps, in order, over what is carried and read."""
    starts = [merge.first.type for merge in merges]
    block = Block(arg_types=[*starts, *(access.type for access in read)])
    current = dict(zip(loop.merges, block.args, strict=False))
    wholes = dict(zip(read, block.args[len(merges) :], strict=True))
    for argument, access in zip(block.args, [*(merge.first for merge in merges), *read], strict=True):
        argument.name_hint = access.buffer.name_hint
    parts: dict[BufferAccess, SSAValue] = {}
    rows: dict[SSAValue, tuple[Index, SSAValue]] = {
        buffer: (loop.merges[buffer].index, argument) for buffer, argument in current.items()
    }
    for leaf in loop.steps:
        values: dict[SSAValue, SSAValue] = {}
        for argument, access in zip(leaf.body.block.args, leaf.reads, strict=True):
            if access in reads:
                if access not in parts:
                    parts[access] = _part(block, wholes[reads[access][0]], reads[access][1], access.type, leaf)
                values[argument] = parts[access]
                continue
            index, value = rows.get(access.buffer, ((), None))
            if value is None or index != access.index or access.type != value.type:
                raise _NoFold("a value of another iteration is read")
            values[argument] = value
        for op in leaf.body.block.ops:
            if isinstance(op, YieldOp):
                continue
            clone = op.clone(values)
            clone.location = op.location
            block.add_op(clone)
        (write,), (result,) = leaf.writes, leaf.yielded
        rows[write.buffer] = write.index, values[result]
    block.add_op(YieldOp([rows[merge.following][1] for merge in merges]))
    if any(rows[merge.following][0] != merge.index for merge in merges):
        raise _NoFold("what is carried is made at another point")
    if [value.type for value in block.args[: len(merges)]] != [rows[m.following][1].type for m in merges]:
        raise _NoFold("what is carried changes its type")
    return Region(block)


def _part(block: Block, whole: SSAValue, take: Index, kind: Tensor, leaf: ComputeOp) -> SSAValue:
    """What a step takes of what is read, of the type that it reads: extents may be equal and spelled otherwise."""
    if not take:
        return whole
    part = sdg.SliceOp(whole, take, domain=sdg.NO_DIMS, result_type=kind)
    part.location = leaf.location
    part.result.name_hint = whole.name_hint
    block.add_op(part)
    return part.result
