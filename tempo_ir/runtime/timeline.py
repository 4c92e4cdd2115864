"""Memory over time: which bytes are live at each step of a call, and which copies go on meanwhile, as data.

The loops of the formed program are walked for concrete bounds, without computing anything. A row is live from the
operation that writes it to the last that reads what was written; a buffer takes its whole room from its first use to
its last, whatever is live in it. A loop that ends by its data is walked to its bound.

Rows that are swapped are live in the memory of the host from their copy there to the copy back. A copy is issued early:
until the operation comes that needs it done, others run that do not wait for it. This interval is what a target has to
hide the copy in; the CPU target copies a row when it is issued, in the thread that computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.sdg.locations import location_text
from tempo_ir.index import Index, Space, evaluate
from tempo_ir.lowering.kernels.layout import Layout
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.memory import storage_class

MOST_STEPS = 2_000_000
"""Operations of a call that are walked at most."""


@dataclass(frozen=True)
class Transfer:
    """A row of `bytes` bytes that is copied to `row` of a buffer of the host (`offload`) or back from there (`fetch`).

    It is issued at `step`, and done by `needed`, the first step that cannot run before: of a row that comes back the
    first that reads it, of one that goes the first that overwrites it or takes it back (-1: none does). In between run
    `overlap` kernels, leaves and host methods. `iterations` is the distance in iterations of the loop that issues it,
    or, where that does not come to another one, of the loop that needs it.
    """

    kind: str
    row: str
    step: int
    bytes: int
    needed: int = -1
    overlap: int = 0
    iterations: int = 0


@dataclass(frozen=True)
class Timeline:
    """Bytes after each step of a call; a step is one run of a kernel, leaf or host method, or one copy of a row.

    `live` holds, by storage class, the bytes of rows that are still to be read, `(steps,)` i64 each; `reserved` the
    bytes of the buffers in use. `marks` are the steps at which the outermost loops and operations begin, with a name.
    All of that is of the device; `host_live` and `host_reserved` are the same of the memory of the host, all classes
    together, and `transfers` the copies between the two, in order. `operations` says which operation runs at each step,
    a number into `names`, `(steps,)` i64.
    """

    name: str
    bounds: Mapping[str, int]
    live: Mapping[str, Array]
    reserved: Array
    marks: tuple[tuple[int, str], ...]
    host_live: Array
    host_reserved: Array
    operations: Array
    names: tuple[str, ...]
    transfers: tuple[Transfer, ...] = ()

    @property
    def fetches(self) -> tuple[Transfer, ...]:
        """The copies back."""
        return tuple(transfer for transfer in self.transfers if transfer.kind == "fetch")

    def between(self, transfer: Transfer) -> tuple[str, ...]:
        """The operations that run while a row is copied, from its issue to what needs it, but for other copies."""
        copies = {each.step for each in self.transfers}
        steps = range(transfer.step + 1, max(transfer.step + 1, transfer.needed))
        return tuple(self.name_of(step) for step in steps if step not in copies)

    def name_of(self, step: int) -> str:
        """What runs at a step."""
        return self.names[int(self.operations[step])]

    @property
    def steps(self) -> int:
        """How many operations run."""
        return len(self.reserved)

    @property
    def total(self) -> Array:
        """The live bytes of all classes, `(steps,)` i64."""
        return np.sum([np.zeros(self.steps, np.int64), *self.live.values()], axis=0)

    @property
    def peak(self) -> int:
        """The most bytes that are live at once."""
        return int(self.total.max(initial=0))

    @property
    def host_peak(self) -> int:
        """The most bytes that are live at once in the memory of the host."""
        return int(self.host_live.max(initial=0))

    def svg(self, width: int = 900, height: int = 360) -> str:
        """The picture: live bytes by class on top of each other, the reserved ones and those of the host as lines.
        Where rows are swapped, a second part below shows some steps one by one: what runs, and the
        copies as bars from their issue to what needs them."""
        from tempo_ir.runtime.picture import picture_text

        return picture_text(self, width, height)

    def write(self, path: str | Path) -> None:
        """Write the picture to a file `*.svg`."""
        Path(path).write_text(self.svg(), encoding="utf-8")


def timeline(program: loop.ProgramOp, bounds: Mapping[str, int]) -> Timeline:
    """
    The memory of a formed program over a call with these bounds.

    Raises CallError where a bound is missing or the call has more than `MOST_STEPS` operations.
    """
    if missing := [name for name in program.space.params if name not in bounds]:
        raise CallError(f"a timeline is of one size: give {', '.join(missing)}")
    walk = _Walk(program.space, dict(bounds))
    walk.block(program.body.block, dict(bounds), outermost=True)
    return walk.result(program)


@dataclass(eq=False)
class _Rows:
    """The rows of a buffer: when what lies in each place was written and last read, and the number of the copy that it
    came by and of that by which it goes; -1 where there is none."""

    storage: str
    host: bool
    row_bytes: int
    extents: tuple[int, ...]
    rings: tuple[int, ...]
    written: Array
    read: Array
    arriving: Array
    leaving: Array
    first: int = -1
    last: int = -1
    spans: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])

    def places(self, ranges: Sequence[range]) -> Any:
        """The places of rows, to index an array with."""
        whole = [np.arange(r.start, r.stop, r.step, dtype=np.int64) for r in ranges]
        return np.ix_(*[rows % slots if slots else rows for rows, slots in zip(whole, self.rings, strict=True)])

    def use(self, step: int) -> None:
        self.first = step if self.first < 0 else self.first
        self.last = step

    def end(self, where: Any) -> None:
        """What lies in these places is overwritten, or the call is over."""
        written, read = np.ravel(self.written[where]), np.ravel(self.read[where])
        known = (written >= 0) & (read >= written)
        self.spans.append((written[known], read[known]))


@dataclass(eq=False)
class _Run:
    """A loop that runs: how many iterations are over."""

    over: int = 0


@dataclass
class _Copy:
    """A copy that is under way: the loops that ran and how many operations had when it was issued."""

    kind: str
    row: str
    step: int
    bytes: int
    runs: tuple[_Run, ...]
    over: int
    operations: int
    done: Transfer | None = None

    def need(self, step: int, runs: Sequence[_Run], operations: int) -> None:
        """An operation needs it done; the first one counts."""
        if self.done is not None:
            return
        common = sum(1 for one, other in zip(self.runs, runs, strict=False) if one is other)
        iterations = self.runs[-1].over - self.over if self.runs and common == len(self.runs) else 0
        if not iterations and common < len(runs):
            iterations = runs[common].over
        overlap = operations - self.operations
        self.done = Transfer(self.kind, self.row, self.step, self.bytes, step, overlap, iterations)

    @property
    def transfer(self) -> Transfer:
        """What became of it."""
        return self.done or Transfer(self.kind, self.row, self.step, self.bytes)


@dataclass
class _Walk:
    space: Space
    bounds: dict[str, int]
    rows: dict[SSAValue, _Rows] = field(default_factory=dict[SSAValue, _Rows])
    marks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    copies: list[_Copy] = field(default_factory=list[_Copy])
    runs: list[_Run] = field(default_factory=list[_Run])
    operations: list[int] = field(default_factory=list[int])
    numbers: dict[loop.AccessOperation, int] = field(default_factory=dict[loop.AccessOperation, int])

    @property
    def step(self) -> int:
        """How many operations have run."""
        return len(self.operations)

    @property
    def computed(self) -> int:
        """How many of them were no copies."""
        return len(self.operations) - len(self.copies)

    def block(self, block: Block, symbols: dict[str, int], outermost: bool = False) -> None:
        for op in block.ops:
            begin = self.step
            match op:
                case loop.ForOp():
                    self._loop(op, symbols)
                case loop.IfOp():
                    taken = op.then if evaluate(op.condition, symbols) else op.otherwise
                    if taken is not None:
                        self.block(taken.block, symbols)
                case loop.BufferOperation():
                    self._define(op)
                case loop.AccessOperation():
                    self._run(op, symbols)
                case _:
                    continue
            if outermost and self.step > begin:
                self.marks.append((begin, _label(op)))

    def _loop(self, op: loop.ForOp, symbols: dict[str, int]) -> None:
        values = evaluate(op.range, symbols)
        self.runs.append(_Run())
        for value in reversed(values) if op.down else values:
            self.block(op.body.block, {**symbols, op.iterator: value})
            self.runs[-1].over += 1
        self.runs.pop()

    def _define(self, op: loop.BufferOperation) -> None:
        if op.buffer in self.rows or not isinstance(op, loop.AllocOp):
            return
        layout = Layout.of(op.buffer_type, self.space)
        extents = tuple(max(0, evaluate(rows, self.bounds)) for rows in layout.rows)
        rings = tuple(dim.slots if dim.storage == "ring" else 0 for dim in op.buffer_type.dims)
        row_bytes = max(0, evaluate(layout.pitch, self.bounds)) * numpy_dtype(layout.element).itemsize
        written, read, arriving, leaving = (np.full(extents, -1, np.int64) for _ in range(4))
        kind, host = storage_class(layout), loop.is_host(op.buffer)
        self.rows[op.buffer] = _Rows(kind, host, row_bytes, extents, rings, written, read, arriving, leaving)

    def _run(self, op: loop.AccessOperation, symbols: Mapping[str, int]) -> None:
        if self.step >= MOST_STEPS:
            raise CallError(f"a timeline of more than {MOST_STEPS} operations: give smaller bounds")
        copy = self._issued(op, symbols) if isinstance(op, loop.TransferOp) else None
        for access in op.reads:
            if (rows := self.rows.get(access.buffer)) is not None:
                rows.use(self.step)
                where = rows.places(_ranges(access.index, symbols))
                rows.read[where] = self.step
                self._need(rows.arriving, where)
                if copy is not None:
                    rows.leaving[where] = len(self.copies)
        for access in op.writes:
            if (rows := self.rows.get(access.buffer)) is not None:
                rows.use(self.step)
                where = rows.places(_ranges(access.index, symbols))
                rows.end(where)
                rows.written[where] = rows.read[where] = self.step
                self._need(rows.leaving, where)
                rows.arriving[where] = -1 if copy is None else len(self.copies)
        if copy is not None:
            self.copies.append(copy)
        self.operations.append(self.numbers.setdefault(op, len(self.numbers)))

    def _issued(self, op: loop.TransferOp, symbols: Mapping[str, int]) -> _Copy:
        there = op.target if op.TO_HOST else op.source
        index = ", ".join(str(evaluate(entry, symbols)) for entry in there.index)
        row, size = f"%{_hint(there.buffer)}[{index}]", self.rows[there.buffer].row_bytes
        over = self.runs[-1].over if self.runs else 0
        kind = op.name.partition(".")[2]
        return _Copy(kind, row, self.step, size, tuple(self.runs), over, self.computed)

    def _need(self, copied: Array, where: Any) -> None:
        """Places are read into which rows have been copied, or overwritten from which they are."""
        numbers: list[int] = np.ravel(copied[where]).tolist()
        for number in numbers:
            if number >= 0:
                self.copies[number].need(self.step, self.runs, self.computed)
        copied[where] = -1

    def result(self, program: loop.ProgramOp) -> Timeline:
        changes: dict[str, Array] = {}
        host, reserved = np.zeros(self.step + 1, np.int64), np.zeros((2, self.step + 1), np.int64)
        for rows in self.rows.values():
            rows.end(...)
            change = host if rows.host else changes.setdefault(rows.storage, np.zeros(self.step + 1, np.int64))
            for written, read in rows.spans:
                np.add.at(change, written, rows.row_bytes)
                np.add.at(change, read + 1, -rows.row_bytes)
            if rows.first >= 0:
                size = int(np.prod(rows.extents, dtype=np.int64)) * rows.row_bytes
                reserved[int(rows.host), rows.first] += size
                reserved[int(rows.host), rows.last + 1] -= size
        live = {name: np.cumsum(change)[: self.step] for name, change in sorted(changes.items())}
        whole, with_host = np.cumsum(reserved, axis=1)[:, : self.step]
        return Timeline(
            program.sym_name.data,
            self.bounds,
            live,
            whole,
            tuple(self.marks),
            np.cumsum(host)[: self.step],
            with_host,
            np.array(self.operations, np.int64),
            tuple(map(_title, self.numbers)),
            tuple(copy.transfer for copy in self.copies),
        )


def _ranges(index: Index, symbols: Mapping[str, int]) -> list[range]:
    values = [evaluate(entry, symbols) for entry in index]
    return [value if isinstance(value, range) else range(value, value + 1) for value in values]


def _label(op: Any) -> str:
    if isinstance(op, loop.ForOp):
        return f"for {op.iterator}" + (" down" if op.down else "")
    return op.name.partition(".")[2]


def _title(op: loop.AccessOperation) -> str:
    """An operation: its kind, what it makes, and the line of the user's program."""
    made = ", ".join(dict.fromkeys(f"%{_hint(access.buffer)}" for access in op.writes))
    text = f"{op.name.partition('.')[2]} {made}".strip()
    place = location_text(op.location)
    return f"{text} ({Path(place).name})" if place else text


def _hint(buffer: SSAValue) -> str:
    return buffer.name_hint or "_"
