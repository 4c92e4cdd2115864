"""Memory over time: which bytes are live at each step of a call, as numbers and as a picture.

The loops of the formed program are walked for concrete bounds, without computing anything. A row is live from the
operation that writes it to the last that reads what was written; a buffer takes its whole room from its first use to
its last, whatever is live in it. A loop that ends by its data is walked to its bound.

Rows that are swapped are live in the memory of the host from their copy there to the copy back, which is early: until
the reader comes, kernels run that do not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.index import Index, Space, evaluate
from tempo_ir.lowering.kernels.layout import Layout
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.memory import storage_class

MOST_STEPS = 2_000_000
"""Operations of a call that are walked at most."""


@dataclass
class Transfer:
    """A row that is copied to the memory of the host, or back: at which step, and how many bytes.

    Of one that comes back, `used` is the step at which it is first read (-1 if it never is), and `overlap` how many
    kernels, leaves and host methods run between.
    """

    kind: str
    step: int
    bytes: int
    used: int = -1
    overlap: int = 0


@dataclass(frozen=True)
class Timeline:
    """Bytes after each step of a call; a step is one run of a kernel, leaf or host method, or one copy of a row.

    `live` holds, by storage class, the bytes of rows that are still to be read, `(steps,)` i64 each; `reserved` the
    bytes of the buffers in use. `marks` are the steps at which the outermost loops and operations begin, with a name.
    All of that is of the device; `host_live` and `host_reserved` are the same of the memory of the host, all classes
    together, and `transfers` the copies between the two, in order.
    """

    name: str
    bounds: Mapping[str, int]
    live: Mapping[str, Array]
    reserved: Array
    marks: tuple[tuple[int, str], ...]
    host_live: Array
    host_reserved: Array
    transfers: tuple[Transfer, ...] = ()

    @property
    def fetches(self) -> tuple[Transfer, ...]:
        """The copies back."""
        return tuple(transfer for transfer in self.transfers if transfer.kind == "fetch")

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
        """The picture: live bytes by class on top of each other, the reserved ones and those of the host as lines, and
        below a bar for each row from its copy back to its first reader."""
        return _Picture(self, width, height).text()

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


@dataclass
class _Rows:
    """The rows of a buffer: when what lies in each place was written and last read; -1 where nothing lies."""

    storage: str
    host: bool
    row_bytes: int
    extents: tuple[int, ...]
    rings: tuple[int, ...]
    written: Array
    read: Array
    arrived: Array
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


@dataclass
class _Walk:
    space: Space
    bounds: dict[str, int]
    step: int = 0
    rows: dict[SSAValue, _Rows] = field(default_factory=dict[SSAValue, _Rows])
    marks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    kernels: int = 0

    def block(self, block: Block, symbols: dict[str, int], outermost: bool = False) -> None:
        for op in block.ops:
            begin = self.step
            match op:
                case loop.ForOp():
                    values = evaluate(op.range, symbols)
                    for value in reversed(values) if op.down else values:
                        self.block(op.body.block, {**symbols, op.iterator: value})
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

    def _define(self, op: loop.BufferOperation) -> None:
        if op.buffer in self.rows or not isinstance(op, loop.AllocOp):
            return
        layout = Layout.of(op.buffer_type, self.space)
        extents = tuple(max(0, evaluate(rows, self.bounds)) for rows in layout.rows)
        rings = tuple(dim.slots if dim.storage == "ring" else 0 for dim in op.buffer_type.dims)
        row_bytes = max(0, evaluate(layout.pitch, self.bounds)) * numpy_dtype(layout.element).itemsize
        empty = np.full(extents, -1, np.int64)
        kind, host, others = storage_class(layout), loop.is_host(op.buffer), (empty.copy(), empty.copy())
        self.rows[op.buffer] = _Rows(kind, host, row_bytes, extents, rings, empty, *others)

    def _run(self, op: loop.AccessOperation, symbols: Mapping[str, int]) -> None:
        if self.step >= MOST_STEPS:
            raise CallError(f"a timeline of more than {MOST_STEPS} operations: give smaller bounds")
        for access in op.reads:
            if (rows := self.rows.get(access.buffer)) is not None:
                rows.use(self.step)
                where = rows.places(_ranges(access.index, symbols))
                rows.read[where] = self.step
                self._meet(rows, where)
        for access in op.writes:
            if (rows := self.rows.get(access.buffer)) is not None:
                rows.use(self.step)
                where = rows.places(_ranges(access.index, symbols))
                rows.end(where)
                rows.written[where] = self.step
                rows.read[where] = self.step
                if isinstance(op, loop.TransferOp):
                    rows.arrived[where] = len(self.transfers)
                    kind = op.name.partition(".")[2]
                    self.transfers.append(Transfer(kind, self.step, rows.row_bytes, overlap=self.kernels))
        self.kernels += not isinstance(op, loop.TransferOp)
        self.step += 1

    def _meet(self, rows: _Rows, where: Any) -> None:
        """Rows are read: of those that have come back, for the first time."""
        numbers: list[int] = np.ravel(rows.arrived[where]).tolist()
        for number in numbers:
            if number >= 0:
                transfer = self.transfers[number]
                transfer.used, transfer.overlap = self.step, self.kernels - transfer.overlap
        rows.arrived[where] = -1

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
        name = program.sym_name.data
        whole, with_host = np.cumsum(reserved, axis=1)[:, : self.step]
        transfers = tuple(self.transfers)
        for transfer in transfers:
            transfer.overlap = transfer.overlap if transfer.used >= 0 and transfer.kind == "fetch" else 0
        marks = tuple(self.marks)
        return Timeline(name, self.bounds, live, whole, marks, np.cumsum(host)[: self.step], with_host, transfers)


def _ranges(index: Index, symbols: Mapping[str, int]) -> list[range]:
    values = [evaluate(entry, symbols) for entry in index]
    return [value if isinstance(value, range) else range(value, value + 1) for value in values]


def _label(op: Any) -> str:
    if isinstance(op, loop.ForOp):
        return f"for {op.iterator}" + (" down" if op.down else "")
    return op.name.partition(".")[2]


COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2")
"""Of the classes, in order; told apart with any sight."""
HOST_COLOUR = "#d62728"
FETCH_LANES = 4
"""How many bars of rows that come back lie below each other."""


@dataclass(frozen=True)
class _Picture:
    """An SVG of a timeline: as many columns as there are points, each the greatest of its steps."""

    timeline: Timeline
    width: int
    height: int
    left: int = 84
    top: int = 44
    bottom: int = 52

    def text(self) -> str:
        shown = [*self._axes(), *self._areas(), *self._reserved(), *self._marks(), *self._fetches(), *self._legend()]
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="sans-serif" font-size="12">'
        )
        return "\n".join(
            [head, f'<rect width="{self.width}" height="{self.height}" fill="white"/>', *shown, "</svg>\n"]
        )

    @property
    def _inside(self) -> tuple[int, int]:
        return self.width - self.left - 20, self.height - self.top - self.bottom

    @property
    def _most(self) -> int:
        lines = (self.timeline.reserved, self.timeline.host_live)
        return max(1, self.timeline.peak, *(int(line.max(initial=0)) for line in lines))

    def _columns(self, values: Array) -> Array:
        """One value per point of the width: the greatest of the steps that fall in it."""
        if not len(values):
            return values
        count = min(len(values), self._inside[0])
        edges = np.linspace(0, len(values), count + 1).astype(int)
        return np.maximum.reduceat(values, edges[:-1])

    def _x(self, number: int, count: int) -> float:
        return self.left + self._inside[0] * number / max(1, count)

    def _y(self, value: float) -> float:
        return self.top + self._inside[1] * (1 - value / self._most)

    def _path(self, values: Array) -> list[str]:
        """The corners of a staircase."""
        corners: list[str] = []
        for number, value in enumerate(values):
            y = self._y(float(value))
            corners += [f"{self._x(n, len(values)):.1f},{y:.1f}" for n in (number, number + 1)]
        return corners

    def _areas(self) -> Iterator[str]:
        below = np.zeros(self.timeline.steps, np.int64)
        for number, (_, bytes_) in enumerate(self.timeline.live.items()):
            above = below + bytes_
            corners = [*self._path(self._columns(above)), *reversed(self._path(self._columns(below)))]
            yield f'<polygon points="{" ".join(corners)}" fill="{COLOURS[number % len(COLOURS)]}" fill-opacity="0.85"/>'
            below = above

    def _reserved(self) -> Iterator[str]:
        corners = " ".join(self._path(self._columns(self.timeline.reserved)))
        yield f'<polyline points="{corners}" fill="none" stroke="#333" stroke-dasharray="4 3"/>'
        if self.timeline.transfers:
            corners = " ".join(self._path(self._columns(self.timeline.host_live)))
            yield f'<polyline points="{corners}" fill="none" stroke="{HOST_COLOUR}" stroke-width="2"/>'

    def _fetches(self) -> Iterator[str]:
        """A bar from each copy back to the first reader of the row, in a few lanes, so that neighbours are apart."""
        for number, transfer in enumerate(self.timeline.fetches):
            begin, end = (self._x(step, self.timeline.steps) for step in (transfer.step, transfer.used + 1))
            if transfer.used >= 0:
                y = self._y(0) + 2 + 3 * (number % FETCH_LANES)
                wide = f'x="{begin:.1f}" y="{y:.1f}" width="{max(0.5, end - begin):.1f}"'
                yield f'<rect {wide} height="2" fill="{HOST_COLOUR}"/>'

    def _marks(self) -> Iterator[str]:
        taken = float("-inf")
        for step, label in self.timeline.marks:
            x = self._x(step, self.timeline.steps)
            yield f'<line x1="{x:.1f}" y1="{self.top}" x2="{x:.1f}" y2="{self._y(0):.1f}" stroke="#bbb"/>'
            if label.startswith("for") and x > taken:
                yield f'<text x="{x + 3:.1f}" y="{self._y(0) + 15:.1f}" fill="#555">{escape(label)}</text>'
                taken = x + 9 * len(label)

    def _axes(self) -> Iterator[str]:
        bounds = ", ".join(f"{name} = {value}" for name, value in self.timeline.bounds.items())
        title = f"{self.timeline.name}, {bounds}: peak {bytes_text(self.timeline.peak)} live"
        if self.timeline.transfers:
            title += f", {bytes_text(self.timeline.host_peak)} with the host"
        yield f'<text x="{self.left}" y="16" font-size="14">{escape(title)}</text>'
        for part in range(5):
            value = self._most * part / 4
            y = self._y(value)
            yield f'<line x1="{self.left}" y1="{y:.1f}" x2="{self.width - 20}" y2="{y:.1f}" stroke="#eee"/>'
            yield f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{bytes_text(value)}</text>'
        yield f'<text x="{self.width - 20}" y="{self.height - 10}" text-anchor="end">{self.timeline.steps} steps</text>'

    def _legend(self) -> Iterator[str]:
        x = self.left
        for number, name in enumerate(self.timeline.live):
            yield f'<rect x="{x}" y="24" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>'
            yield f'<text x="{x + 14}" y="33">{escape(name)}</text>'
            x += 30 + 7 * len(name)
        yield f'<line x1="{x}" y1="29" x2="{x + 18}" y2="29" stroke="#333" stroke-dasharray="4 3"/>'
        yield f'<text x="{x + 22}" y="33">reserved</text>'
        if self.timeline.transfers:
            x += 36 + 7 * len("reserved")
            yield f'<line x1="{x}" y1="29" x2="{x + 18}" y2="29" stroke="{HOST_COLOUR}" stroke-width="2"/>'
            yield f'<text x="{x + 22}" y="33">host, and below: back until read</text>'


def bytes_text(count: float) -> str:
    """`1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
