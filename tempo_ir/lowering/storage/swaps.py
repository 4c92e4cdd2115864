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
the next. All else, and what reads one row in all iterations, goes on to read `%h`; where that needs all rows, swapping
saves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import (
    FALSE,
    TRUE,
    And,
    Cond,
    Const,
    Entry,
    Expr,
    Index,
    Slice,
    Sym,
    compare,
    conj,
    disj,
    free_symbols,
    substitute,
)
from tempo_ir.index.isl import Writer, condition, encode, params_set, read_set, tuple_text
from tempo_ir.index.rules import PROGRAM_FACTS, simplify
from tempo_ir.lowering.storage.rewrite import remove, set_accesses
from tempo_ir.lowering.storage.starts import frame_of
from tempo_ir.lowering.storage.uses import Frame, Use, program_uses

FARTHEST = 64
"""How many rows may lie between those that one iteration reads."""


class NotSwappedError(Exception):
    """Why the rows of a buffer stay on the device."""


@dataclass(frozen=True)
class Sweep:
    """
    A loop whose iterations read rows `sign * iterator + offset`, each offset a number away from the others.

    `first` is the offset by which a row is read first as the loop runs, `last` that by which it is read last; `span`
    is how many iterations lie between.
    """

    loop: ForOp
    reads: tuple[tuple[Use, Expr], ...]
    sign: int
    first: Expr
    last: Expr
    span: int

    @property
    def direction(self) -> int:
        """1 if later iterations read greater rows, else -1."""
        return -self.sign if self.loop.down else self.sign

    def row(self, ahead: int) -> Expr:
        """The row that is read first `ahead` iterations later."""
        return simplify(self._moved(Sym(self.loop.iterator)) + self.direction * ahead + self.first, PROGRAM_FACTS)

    def early_row(self, number: Expr) -> Expr:
        """The rows that are to be there before the loop begins, in the order in which they are read."""
        begin = self.loop.upper - 1 if self.loop.down else self.loop.lower
        moved = number if self.direction > 0 else -number
        return simplify(self._moved(begin) + self.last + moved, PROGRAM_FACTS)

    def _moved(self, iterator: Expr) -> Expr:
        return iterator if self.sign > 0 else -iterator

    def is_read(self, row: Expr) -> Cond:
        """When some iteration reads a row; also where what only an inner loop knows would keep it from that."""
        loop = self.loop
        found: list[Cond] = []
        for use, offset in self.reads:
            iteration = simplify(self._moved(row - offset), PROGRAM_FACTS)
            inner = set(_inside(use, loop)[1:])
            held = [part for part in _conjuncts(use.frame.guard) if not free_symbols(part) & inner]
            inside = compare("<=", loop.lower, iteration), compare("<", iteration, loop.upper)
            found.append(conj(*inside, *(substitute(part, {loop.iterator: iteration}) for part in held)))
        return disj(*found)


@dataclass(frozen=True)
class Swap:
    """What is to become of a buffer: the loops that it stands in, the uses that stay as they are, the others."""

    alloc: AllocOp
    ahead: int
    outer: tuple[ForOp, ...]
    kept: tuple[Use, ...]
    sweeps: tuple[Sweep, ...]


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
    all_uses, numbers = program_uses(program)
    uses, block = all_uses.get(alloc.buffer, []), alloc.parent
    assert block is not None
    outer = frame_of(block).loops
    _check_buffer(alloc, outer, uses)
    parts: dict[Operation, list[Use]] = {}
    for use in sorted(uses, key=lambda use: use.order[-1]):
        inner = use.frame.loops[len(outer) :]
        parts.setdefault(inner[0] if inner else use.op, []).append(use)
    written = max(numbers[part] for part, some in parts.items() if any(use.writes for use in some))
    kept: list[Use] = []
    sweeps: list[Sweep] = []
    for part, some in parts.items():
        sweep = _sweep(part, some) if numbers[part] > written and isinstance(part, ForOp) else None
        sweeps += [] if sweep is None else [sweep]
        served = [] if sweep is None else [use for use, _ in sweep.reads]
        kept += [use for use in some if use not in served]
    if not sweeps:
        raise NotSwappedError("no loop after those that write it reads its rows one by one")
    return Swap(alloc, ahead, outer, tuple(kept), tuple(sweeps))


def _check_buffer(alloc: AllocOp, outer: Sequence[ForOp], uses: Sequence[Use]) -> None:
    """Raise NotSwappedError where a buffer has no rows to swap, or rows of different sizes."""
    dims = alloc.buffer_type.dims
    if all(dim.storage == "ring" for dim in dims):
        raise NotSwappedError("no more rows live at once than a few")
    if len(dims) != 1:
        raise NotSwappedError(
            f"it keeps rows along {len(dims)} dims ({', '.join(alloc.buffer_type.dim_names)}), not one"
        )
    varying = {dims[0].name, *(loop.iterator for loop in outer)}
    if any(
        not isinstance(extent, int) and free_symbols(extent) & varying for extent in shape_of(alloc.buffer_type.row)
    ):
        raise NotSwappedError("its rows are of different sizes")
    if any(loop.step != 1 or loop.until is not None or free_symbols(loop.range) & varying for loop in outer):
        raise NotSwappedError("it stands in a loop whose range is another in each iteration of the loops round it")
    if any(isinstance(use.op, ForOp) or (use.writes and use.slices) for use in uses):
        raise NotSwappedError("several of its rows are written at once, or one ends a loop")


def _inside(use: Use, loop: ForOp) -> tuple[str, ...]:
    """The iterators of a loop and of the loops in it that are round a use."""
    loops = use.frame.loops
    return tuple(inside.iterator for inside in loops[loops.index(loop) :])


def _sweep(loop: ForOp, uses: Sequence[Use]) -> Sweep | None:
    """The loop as one that takes rows one by one; None if it does not."""
    moving = [use for use in uses if free_symbols(use.index) & set(_inside(use, loop))]
    if loop.step != 1 or loop.until is not None or not moving:
        return None
    found = [_offset(use.index[0], use, loop) for use in moving]
    known = [each for each in found if each is not None]
    if len(known) < len(found) or len({sign for sign, _ in known}) > 1:
        return None
    sign, base = known[0]
    reads = [(use, offset) for use, (_, offset) in zip(moving, known, strict=True)]
    reads += [read for use in uses if use not in moving and (read := _pinned(use, loop, sign, base)) is not None]
    distances = [simplify(offset - base, PROGRAM_FACTS) for _, offset in reads]
    values = [distance.value for distance in distances if isinstance(distance, Const)]
    if len(values) < len(distances):
        return None
    least, most = (simplify(base + extreme, PROGRAM_FACTS) for extreme in (min(values), max(values)))
    rising = (sign > 0) != loop.down
    first, last = (most, least) if rising else (least, most)
    return Sweep(loop, tuple(reads), sign, first, last, max(values) - min(values))


def _pinned(use: Use, loop: ForOp, sign: int, base: Expr) -> tuple[Use, Expr] | None:
    """A read of one row in the one iteration that its guard lets run, `%h[0]` where `t = 0`, with its offset; None if
    it is none, or of a row that no iteration near that one reads."""
    (entry,) = use.index
    value = use.frame.only_values().get(loop.iterator)
    if value is None or isinstance(entry, Slice):
        return None
    offset = simplify(entry - value if sign > 0 else entry + value, PROGRAM_FACTS)
    distance = simplify(offset - base, PROGRAM_FACTS)
    return (use, offset) if isinstance(distance, Const) and abs(distance.value) <= FARTHEST else None


def _offset(entry: Entry, use: Use, loop: ForOp) -> tuple[int, Expr] | None:
    """The sign of the iterator in an entry, and the rest, which is the same in all iterations."""
    if isinstance(entry, Slice):
        return None
    iterator, varying = Sym(loop.iterator), set(_inside(use, loop))
    for sign, offset in ((1, entry - iterator), (-1, entry + iterator)):
        simple = simplify(offset, PROGRAM_FACTS)
        if not free_symbols(simple) & varying:
            return sign, simple
    return None


def _conjuncts(condition: Cond) -> tuple[Cond, ...]:
    return condition.args if isinstance(condition, And) else (condition,)


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
    for sweep, back in zip(swap.sweeps, made.back, strict=True):
        for use, _ in sweep.reads:
            moved.setdefault(use.op, {})[use.writes, use.number] = back, (*prefix, *use.index)
    for op, found in moved.items():
        set_accesses(op, found)
    for use in [use for use in swap.kept if use.writes]:
        index = (*prefix, *use.index)
        offload = OffloadOp(BufferAccess.of(made.device, index), BufferAccess.of(made.host, index))
        _insert_after(use.op, offload)
    for sweep, back in zip(swap.sweeps, made.back, strict=True):
        _insert_fetches(program, sweep, swap.ahead, made.host, back, prefix)
    swap.alloc.detach()
    swap.alloc.erase()
    return made


def _buffers(program: ProgramOp, swap: Swap) -> Swapped:
    """The new buffers, at the head of the program."""
    type = BufferType.of(
        (*_outer_dims(program.space, swap), _whole(swap.alloc.buffer_type.dims[0])), swap.alloc.buffer_type.row
    )
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
    back = tuple(make("_back").buffer for _ in swap.sweeps)
    return Swapped(device.buffer, host.buffer, back, tuple(loop.iterator for loop in swap.outer))


def _outer_dims(space: Space, swap: Swap) -> Iterator[BufferDim]:
    declared, (own,) = dict(space.dims), swap.alloc.buffer_type.dims
    for loop in swap.outer:
        name = loop.iterator if loop.iterator != own.name else f"{own.name}_round"
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
        held = _simplest(sweep.is_read(row), program.space, frame)
        if held == FALSE:
            return []
        op = FetchOp(BufferAccess.of(host, (*prefix, row)), BufferAccess.of(back, (*prefix, row)))
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


def _fresh(program: ProgramOp, name: str) -> str:
    """A name that no loop, dim or bound of a program has."""
    taken = {loop.iterator for loop in program.loops()}
    taken |= {*program.space.names, *program.space.params}
    return next(free for number in range(len(taken) + 1) if (free := f"{name}{number or ''}") not in taken)


def _simplest(held: Cond, space: Space, frame: Frame) -> Cond:
    """A condition without what holds anyway at the iterations of a frame."""
    writer = Writer(frame.iterators, space.params)
    names = [encode(name) for name in frame.iterators]
    admitted = params_set(space)

    def points(condition: Cond):
        text = f"{tuple_text('', names)} : ({writer.cond(condition)}) and {writer.natural()}"
        return read_set(writer.declared(text)).intersect_params(admitted)

    within = points(frame.condition())
    return condition(points(held).intersect(within), within)
