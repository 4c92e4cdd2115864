# pyright: basic
"""
Swaps: rows that only a later loop reads again lie in host memory until then, and the device keeps a few of them.

```mlir
%h = loop.alloc {swap = 4 : i64}                  %h, %back = loop.alloc          %host = loop.alloc {host}
loop.for t = 0 to T {                             loop.for t = 0 to T {
  loop.compute ... outs(%h[t]) {...}                loop.compute ... outs(%h[t]) {...}
}                                                   loop.offload %h[t] to %host[t]
loop.for t = T - 1 down to 0 {             ->     }
  loop.compute ins(%h[t]) ... {...}               loop.for n = 0 to 4 {
}                                                   loop.if n < T { loop.fetch %host[T - n - 1] to %back[T - n - 1] }
                                                  }
                                                  loop.for t = T - 1 down to 0 {
                                                    loop.if t >= 4 { loop.fetch %host[t - 4] to %back[t - 4] }
                                                    loop.compute ins(%back[t]) ... {...}
                                                  }
```

All buffers keep every row here; storage is planned anew for these, which makes rings of `%h` and `%back`.

A loop is served in this way if it comes after the writes and its reads take one row at an iteration, its neighbour at
the next; rows that it reads in several orders, or far from each other, come back once for each. Of a buffer with rows
along several dims, `%h[i, t]`, the other entries stay the same while the loop runs, and rows come back for each run of
it. A row that is read later on in all iterations of a loop, or once, comes back before, but for the last that is
written, which stays. All else goes on to read `%h`; where that needs all rows, swapping saves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tempo_ir.dialects.loop import (
    HOST,
    AllocOp,
    BufferAccess,
    BufferDim,
    BufferOperation,
    BufferType,
    FetchOp,
    ForOp,
    FreeOp,
    IfOp,
    OffloadOp,
    ProgramOp,
)
from tempo_ir.dialects.sdg.locations import location_text, value_text
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import (
    FALSE,
    TRUE,
    Cond,
    Const,
    Expr,
    Index,
    Slice,
    Sym,
    compare,
    conj,
    free_symbols,
    substitute,
)
from tempo_ir.index.isl import DIM, Inexact, Set, Writer, condition, encode, params_set, read_set, tuple_text
from tempo_ir.index.rules import PROGRAM_FACTS, simplify
from tempo_ir.lowering.storage.rewrite import remove, set_accesses
from tempo_ir.lowering.storage.starts import frame_of
from tempo_ir.lowering.storage.uses import Frame, Use, iterations, program_uses

FARTHEST = 64
"""How many rows may lie between those that one iteration reads."""


class NotSwappedError(Exception):
    """Why the rows of a buffer stay on the device."""


@dataclass(frozen=True)
class Sweep:
    """
    A loop whose iterations read rows `sign * iterator + offset` along one dim, the one at `position`, each offset a
    number away from the others, and `index` at the other dims.

    `first` is the offset by which a row is read first as the loop runs, `last` that by which it is read last; `span`
    is how many iterations lie between.
    """

    loop: ForOp
    reads: tuple[tuple[Use, Expr], ...]
    index: Index
    position: int
    sign: int
    first: Expr
    last: Expr
    span: int

    @property
    def direction(self) -> int:
        """1 if later iterations read greater rows, else -1."""
        return -self.sign if self.loop.down else self.sign

    def at(self, row: Expr) -> Index:
        """The index of a row."""
        return (*self.index[: self.position], row, *self.index[self.position + 1 :])

    def row(self, ahead: int) -> Expr:
        """The row that is read first `ahead` iterations later."""
        return simplify(self._moved(Sym(self.loop.iterator)) + self.direction * ahead + self.first, PROGRAM_FACTS)

    def early_row(self, number: Expr) -> Expr:
        """The rows that are to be there before the loop begins, in the order in which they are read."""
        moved = number if self.direction > 0 else -number
        return simplify(self._moved(self.loop.first) + self.last + moved, PROGRAM_FACTS)

    def _moved(self, iterator: Expr) -> Expr:
        return iterator if self.sign > 0 else -iterator

    def readers(self, row: Expr) -> Iterator[tuple[Cond, tuple[str, ...]]]:
        """For each read: when some iteration reads a row by it, with the names of the inner loops that this is said
        of."""
        for use, offset in self.reads:
            iteration = simplify(self._moved(row - offset), PROGRAM_FACTS)
            loops = use.frame.loops[use.frame.loops.index(self.loop) + 1 :]
            inner = {loop.iterator: f"{loop.iterator}.{number}" for number, loop in enumerate(loops)}
            here = {self.loop.iterator: iteration, **{name: Sym(own) for name, own in inner.items()}}
            held = conj(use.frame.guard, *(each for loop in loops for each in iterations(loop)))
            inside = compare("<=", self.loop.lower, iteration), compare("<", iteration, self.loop.upper)
            yield conj(*inside, substitute(held, here)), tuple(inner.values())


@dataclass(frozen=True)
class Single:
    """One row that an operation reads, or all iterations of a loop do: it comes back before."""

    reader: Operation
    index: Index
    reads: tuple[Use, ...]

    def readers(self, depth: int) -> Iterator[tuple[Cond, tuple[str, ...]]]:
        """For each read: when it runs, with the names of the loops inside that this is said of."""
        for use in self.reads:
            loops = use.frame.loops[depth:]
            held = conj(use.frame.guard, *(each for loop in loops for each in iterations(loop)))
            yield held, tuple(loop.iterator for loop in loops)


@dataclass(frozen=True)
class Swap:
    """What is to become of a buffer: the loops that it stands in, the uses that stay as they are, the others."""

    alloc: AllocOp
    ahead: int
    outer: tuple[ForOp, ...]
    kept: tuple[Use, ...]
    sweeps: tuple[Sweep, ...]
    singles: tuple[Single, ...]

    @property
    def still_read(self) -> str:
        """Where rows are still read on the device."""
        return _read_in_another_way(self.alloc, self.kept, len(self.outer))


@dataclass(frozen=True)
class Swapped:
    """The buffers that one has become. All have the loops round it, `outer`, as leading dims."""

    device: SSAValue
    host: SSAValue
    back: tuple[SSAValue, ...]
    outer: tuple[str, ...]

    @property
    def buffers(self) -> tuple[SSAValue, ...]:
        """All of them."""
        return self.device, self.host, *self.back


def find_swap(program: ProgramOp, alloc: AllocOp, ahead: int) -> Swap:
    """How a buffer may be swapped, each row back `ahead` iterations before it is read. Raises NotSwappedError."""
    uses, block = program_uses(program)[0].get(alloc.buffer, []), alloc.parent
    assert block is not None
    outer = frame_of(block).loops
    _check_buffer(alloc, outer, uses)
    sweeps = tuple(_sweeps(uses, len(outer)))
    if not sweeps:
        other = _read_in_another_way(alloc, uses, len(outer))
        raise NotSwappedError(f"no loop after those that write it reads its rows one by one{other}")
    served = {id(use) for sweep in sweeps for use, _ in sweep.reads}
    left = [use for use in uses if id(use) not in served]
    singles = tuple(_singles(left, len(outer)))
    served = {id(use) for single in singles for use in single.reads}
    return Swap(alloc, ahead, outer, tuple(use for use in left if id(use) not in served), sweeps, singles)


def _check_buffer(alloc: AllocOp, outer: Sequence[ForOp], uses: Sequence[Use]) -> None:
    """Raise NotSwappedError where a buffer has no rows to swap, or rows of different sizes."""
    dims = alloc.buffer_type.dims
    if all(dim.storage == "ring" for dim in dims):
        raise NotSwappedError("no more rows live at once than a few")
    varying = {*alloc.buffer_type.dim_names, *(loop.iterator for loop in outer)}
    if any(
        not isinstance(extent, int) and free_symbols(extent) & varying for extent in shape_of(alloc.buffer_type.row)
    ):
        raise NotSwappedError("its rows are of different sizes")
    if any(loop.step != 1 or loop.until is not None or free_symbols(loop.range) & varying for loop in outer):
        raise NotSwappedError("it stands in a loop whose range is another in each iteration of the loops round it")
    if any(isinstance(use.op, ForOp) or (use.writes and use.slices) for use in uses):
        raise NotSwappedError("several of its rows are written at once, or one ends a loop")


def _read_in_another_way(alloc: AllocOp, uses: Sequence[Use], depth: int) -> str:
    """`: %h[0:T] is read at once (model.py:12)`: the first of some reads in a loop, at some depth, that writes no row;
    else the first of all."""
    writing = {_part(use, depth) for use in uses if use.writes}
    reads = sorted((use for use in uses if not use.writes), key=lambda use: _part(use, depth) in writing)
    if not reads:
        return ""
    read = reads[0]
    how = "read at once" if read.slices else "not read row by row"
    place = location_text(read.op.location)
    index = ", ".join(map(str, read.index))
    return f": {value_text(alloc.buffer)}[{index}] is {how}" + (f" ({place})" if place else "")


def _part(use: Use, depth: int) -> Operation:
    """The loop at a depth that a use stands in, or itself."""
    return use.frame.loops[depth] if len(use.frame.loops) > depth else use.op


# -- loops that take rows one by one


def _sweeps(uses: Sequence[Use], depth: int) -> Iterator[Sweep]:
    """The loops, below a depth, that take rows one by one, in program order."""
    writes = [use for use in uses if use.writes]
    moving: dict[ForOp, list[Use]] = {}
    for use in [use for use in uses if not use.writes and not use.slices]:
        loops = [loop for loop in use.frame.loops[depth:] if loop.iterator in free_symbols(use.index)]
        if loops and loops[-1].step == 1 and loops[-1].until is None and _is_later(use, loops[-1], writes, depth):
            moving.setdefault(loops[-1], []).append(use)
    for loop, some in moving.items():
        still = [use for use in uses if loop in use.frame.loops and not use.writes and use not in some]
        for group in _groups(loop, some):
            yield _sweep(loop, group, still)


def _is_later(use: Use, reader: ForOp, writes: Sequence[Use], depth: int) -> bool:
    """Whether what a use reads has been written before the loop that reads it: by earlier loops, of the same iteration
    of those that are round both."""
    for write in writes:
        common = [loop for loop, other in zip(use.frame.loops, write.frame.loops, strict=False) if loop is other]
        if use.order < write.order or reader in common:
            return False
        for loop in common[depth:]:
            places = [n for n, entry in enumerate(write.index) if loop.iterator in free_symbols(entry)]
            if not places or any(use.index[n] != write.index[n] for n in places):
                return False
    return True


Reads: TypeAlias = list[tuple[Use, Expr]]
"""Reads of a sweep, each with its offset."""
Place: TypeAlias = tuple[int, int, Index]
"""Along which dim rows move, in which direction, and the index at the other dims."""


def _groups(loop: ForOp, uses: Sequence[Use]) -> Iterator[tuple[Place, Reads]]:
    """The reads of a loop, those together that take rows near each other in the same order."""
    found: list[tuple[Place, Reads]] = []
    for use in uses:
        if (placed := _place(use, loop)) is None:
            continue
        place, offset = placed
        near = [reads for other, reads in found if other == place and _distance(offset, reads[0][1]) is not None]
        if near:
            near[0].append((use, offset))
        else:
            found.append((place, [(use, offset)]))
    yield from found


def _place(use: Use, loop: ForOp) -> tuple[Place, Expr] | None:
    """How a read moves with a loop, and its offset, which is the same in all iterations; None if it does not move by a
    row from one to the next."""
    positions = [n for n, entry in enumerate(use.index) if loop.iterator in free_symbols(entry)]
    if len(positions) != 1 or loop.step != 1:
        return None
    (position,) = positions
    entry, iterator = use.index[position], Sym(loop.iterator)
    assert not isinstance(entry, Slice)
    for sign, offset in ((1, entry - iterator), (-1, entry + iterator)):
        simple = simplify(offset, PROGRAM_FACTS)
        if loop.iterator not in free_symbols(simple):
            return (position, sign, (*use.index[:position], Const(0), *use.index[position + 1 :])), simple
    return None


def _distance(offset: Expr, base: Expr) -> int | None:
    """How many rows lie between; None if that is no number, or a great one."""
    distance = simplify(offset - base, PROGRAM_FACTS)
    return distance.value if isinstance(distance, Const) and abs(distance.value) <= FARTHEST else None


def _sweep(loop: ForOp, group: tuple[Place, Reads], still: Sequence[Use]) -> Sweep:
    """The loop as one that takes rows one by one, also those that it reads in one iteration only."""
    (position, sign, index), reads = group
    base = reads[0][1]
    reads = [*reads, *filter(None, (_pinned(use, loop, group[0], base) for use in still))]
    values = [value for _, offset in reads if (value := _distance(offset, base)) is not None]
    least, most = (simplify(base + extreme, PROGRAM_FACTS) for extreme in (min(values), max(values)))
    rising = (sign > 0) != loop.down
    first, last = (most, least) if rising else (least, most)
    return Sweep(loop, tuple(reads), index, position, sign, first, last, max(values) - min(values))


def _pinned(use: Use, loop: ForOp, place: Place, base: Expr) -> tuple[Use, Expr] | None:
    """A read of one row in the one iteration that its guard lets run, `%h[0]` where `t = 0`, with its offset; None if
    it is none, or of a row that no iteration near that one reads."""
    position, sign, index = place
    value, entry = use.frame.only_values().get(loop.iterator), use.index[position]
    same = all(mine == other for n, (mine, other) in enumerate(zip(use.index, index, strict=True)) if n != position)
    inner = {each.iterator for each in use.frame.loops[use.frame.loops.index(loop) :]}
    if value is None or isinstance(entry, Slice) or not same or free_symbols(use.index) & inner:
        return None
    offset = simplify(entry - value if sign > 0 else entry + value, PROGRAM_FACTS)
    return (use, offset) if _distance(offset, base) is not None else None


# -- rows that are read by themselves


def _singles(uses: Sequence[Use], depth: int) -> Iterator[Single]:
    """The rows that operations after all writes, or all iterations of a loop after them, read, but for the last that is
    written."""
    writes = [use for use in uses if use.writes]
    end = max(write.order[depth] for write in writes)
    last = {_last_row(write, depth) for write in writes if write.order[depth] == end}
    found: dict[tuple[Operation, Index], list[Use]] = {}
    for use in [use for use in uses if not use.writes and not use.slices and use.order[depth] > end]:
        inside = {loop.iterator for loop in use.frame.loops[depth:]}
        if not free_symbols(use.index) & inside and _simple(use.index) not in last:
            found.setdefault((_part(use, depth), use.index), []).append(use)
    for (reader, index), reads in found.items():
        yield Single(reader, index, tuple(reads))


def _last_row(write: Use, depth: int) -> Index:
    """The row that is written in the last iteration of each loop."""
    ends = {loop.iterator: loop.last for loop in write.frame.loops[depth:]}
    return _simple(substitute(write.index, ends))


def _simple(index: Index) -> Index:
    return tuple(entry if isinstance(entry, Slice) else simplify(entry, PROGRAM_FACTS) for entry in index)


# -- writing


def apply_swap(program: ProgramOp, swap: Swap) -> Swapped:
    """Write a swap into a program; the buffers that it makes keep every row."""
    made = _buffers(program, swap)
    prefix = tuple(Sym(loop.iterator) for loop in swap.outer)
    for op in [use.operation for use in swap.alloc.buffer.uses if isinstance(use.operation, FreeOp)]:
        remove(op)
    moved: dict[Operation, dict[tuple[bool, int], tuple[SSAValue, Index]]] = {}
    for use in swap.kept:
        moved.setdefault(use.op, {})[use.writes, use.number] = made.device, (*prefix, *use.index)
    backs = dict(zip((*swap.sweeps, *swap.singles), made.back, strict=True))
    served = [(use, backs[sweep]) for sweep in swap.sweeps for use, _ in sweep.reads]
    served += [(use, backs[single]) for single in swap.singles for use in single.reads]
    for use, back in served:
        moved.setdefault(use.op, {})[use.writes, use.number] = back, (*prefix, *use.index)
    for op, found in moved.items():
        set_accesses(op, found)
    for use in [use for use in swap.kept if use.writes]:
        index = (*prefix, *use.index)
        offload = OffloadOp(BufferAccess.of(made.device, index), BufferAccess.of(made.host, index))
        _insert_after(use.op, offload)
    for sweep in swap.sweeps:
        _insert_fetches(program, sweep, swap.ahead, made.host, backs[sweep], prefix)
    for single in swap.singles:
        _insert_fetch(program, single, made.host, backs[single], prefix)
    swap.alloc.detach()
    swap.alloc.erase()
    return made


def _buffers(program: ProgramOp, swap: Swap) -> Swapped:
    """The new buffers, at the head of the program."""
    old = swap.alloc.buffer_type
    type = BufferType.of((*_outer_dims(program.space, swap), *map(_whole, old.dims)), old.row)
    block, hint = program.body.block, swap.alloc.buffer.name_hint
    anchor = next(op for op in block.ops if not isinstance(op, BufferOperation))

    def make(suffix: str) -> AllocOp:
        alloc = AllocOp(type)
        alloc.location = swap.alloc.location
        alloc.buffer.name_hint = None if hint is None else hint + suffix
        block.insert_op_before(alloc, anchor)
        return alloc

    device, host = make(""), make("_host")
    host.attributes[HOST] = UnitAttr()
    back = tuple(make("_back").buffer for _ in (*swap.sweeps, *swap.singles))
    return Swapped(device.buffer, host.buffer, back, tuple(loop.iterator for loop in swap.outer))


def _outer_dims(space: Space, swap: Swap) -> Iterator[BufferDim]:
    declared, own = dict(space.dims), swap.alloc.buffer_type.dim_names
    for loop in swap.outer:
        name = loop.iterator if loop.iterator not in own else f"{loop.iterator}_round"
        yield BufferDim(name, extent=None if declared.get(name) == loop.upper else loop.upper)


def _whole(dim: BufferDim) -> BufferDim:
    return BufferDim(dim.name, "full", dim.extent)


def _insert_after(op: Operation, new: Operation) -> None:
    block = op.parent
    assert block is not None
    new.location = op.location
    block.insert_op_after(new, op)


def _insert_fetches(
    program: ProgramOp, sweep: Sweep, ahead: int, host: SSAValue, back: SSAValue, prefix: Index
) -> None:
    """Let rows come back: the first ones before the loop, then one in each iteration."""

    def fetch(row: Expr, frame: Frame) -> list[Operation]:
        held = _simplest(sweep.readers(row), program.space, frame)
        if held == FALSE:
            return []
        index = (*prefix, *sweep.at(row))
        op = FetchOp(BufferAccess.of(host, index), BufferAccess.of(back, index))
        op.location = sweep.loop.location
        return [op] if held == TRUE else [IfOp(held, Region(Block([op])))]

    block, count = sweep.loop.parent, ahead + sweep.span
    assert block is not None
    if count > 0:
        early = ForOp(_fresh(program, "n"), 0, count)
        block.insert_op_before(early, sweep.loop)
        fetches = fetch(sweep.early_row(Sym(early.iterator)), frame_of(early.body.block))
        early.body.block.add_ops(fetches)
        if not fetches:
            remove(early)
    body = sweep.loop.body.block
    first = next(op for op in body.ops if not isinstance(op, BufferOperation))
    body.insert_ops_before(fetch(sweep.row(ahead), frame_of(body)), first)


def _insert_fetch(program: ProgramOp, single: Single, host: SSAValue, back: SSAValue, prefix: Index) -> None:
    """Let a row come back before it is read, where it is."""
    block = single.reader.parent
    assert block is not None
    held = _simplest(single.readers(len(prefix)), program.space, frame_of(block))
    index = (*prefix, *single.index)
    fetch = FetchOp(BufferAccess.of(host, index), BufferAccess.of(back, index))
    fetch.location = single.reader.location
    block.insert_op_before(fetch if held == TRUE else IfOp(held, Region(Block([fetch]))), single.reader)


def _fresh(program: ProgramOp, name: str) -> str:
    """A name that no loop, dim or bound of a program has."""
    taken = {loop.iterator for loop in program.loops()}
    taken |= {*program.space.names, *program.space.params}
    return next(free for number in range(len(taken) + 1) if (free := f"{name}{number or ''}") not in taken)


def _simplest(readers: Iterable[tuple[Cond, Sequence[str]]], space: Space, frame: Frame) -> Cond:
    """When one of some readers reads, without what holds anyway at the iterations of a frame. Raises NotSwappedError
    where that is no condition of loop programs."""
    admitted = params_set(space)

    def points(condition: Cond, inner: Sequence[str] = ()):
        writer = Writer((*frame.iterators, *inner), space.params)
        names = [encode(name) for name in (*frame.iterators, *inner)]
        text = f"{tuple_text('', names)} : ({writer.cond(condition)}) and {writer.natural()}"
        found = read_set(writer.declared(text)).intersect_params(admitted)
        return found.project_out(DIM.set, len(frame.iterators), len(inner))

    within = points(frame.condition())
    read = reduce(Set.union, (points(condition, inner) for condition, inner in readers))
    try:
        return condition(read.intersect(within), within)
    except Inexact as error:
        raise NotSwappedError(f"when a row is to come back is no simple condition: {error}") from error
