"""A timeline as a picture: an SVG of live bytes over the schedule, and of copies beside what runs meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.room import bytes_text
from tempo_ir.runtime.timeline import Timeline, Transfer

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2")
"""Of the classes, in order; told apart with any sight."""
WAY_COLOURS = {"offload": "#9467bd", "fetch": "#d62728"}
"""Of copies to the host, and back."""
HOST_COLOUR = WAY_COLOURS["fetch"]
LANES = 12
"""How many bars of copies lie below each other, at most."""
MOST_SHOWN = 160
"""Steps that the part shows which is drawn step by step, at most."""


def picture_text(timeline: Timeline, width: int, height: int) -> str:
    """The SVG of a timeline: its memory, and below, where rows are swapped, some steps one by one."""
    memory = Memory(timeline, width, height)
    parts, whole = list(memory.parts()), height
    if (steps := steps_of_interest(timeline)) is not None:
        overlap = Overlap(timeline, steps, width, height)
        parts += overlap.parts()
        whole += overlap.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" '
        f'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{width}" height="{whole}" fill="white"/>', *parts, "</svg>\n"])


@dataclass(frozen=True)
class Memory:
    """Live bytes over the schedule: as many columns as there are points, each the greatest of its steps."""

    timeline: Timeline
    width: int
    height: int
    left: int = 84
    top: int = 44
    bottom: int = 52

    def parts(self) -> Iterator[str]:
        """The elements."""
        yield from (*self._axes(), *self._areas(), *self._reserved(), *self._marks(), *self._legend())

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
            yield f'<text x="{x + 22}" y="33">host</text>'


def steps_of_interest(timeline: Timeline) -> range | None:
    """The steps round a copy in the middle of those that come back early: from one like it before to one after; None
    where there is none."""
    early = [each for each in timeline.fetches if each.needed >= 0 and each.overlap] or timeline.transfers
    if not early:
        return None
    middle = early[len(early) // 2]
    reach = max(8, 2 * (middle.needed - middle.step))
    first = max(0, middle.step - reach // 2)
    return range(first, min(timeline.steps, first + min(MOST_SHOWN, 2 * reach)))


@dataclass(frozen=True)
class Overlap:
    """Some steps one by one: above what runs, below a bar for each copy from its issue to what needs it done."""

    timeline: Timeline
    shown: range
    width: int
    top: int
    left: int = 84

    def parts(self) -> Iterator[str]:
        """The elements."""
        yield from (*self._head(), *self._operations(), *self._copies())

    @property
    def height(self) -> int:
        """How high it is."""
        return 90 + 14 * (1 + max((lane for lane, _ in lanes(self._seen())), default=0))

    def _x(self, step: int) -> float:
        return self.left + (self.width - 20 - self.left) * (step - self.shown.start) / max(1, len(self.shown))

    def _head(self) -> Iterator[str]:
        y = self.top + 16
        text = f"steps {self.shown.start} to {self.shown.stop}: what runs, and copies from issue to what needs them"
        yield f'<text x="{self.left}" y="{y}" font-size="14">{escape(text)}</text>'
        x = self.left
        for kind, colour in WAY_COLOURS.items():
            yield f'<rect x="{x}" y="{y + 8}" width="10" height="10" fill="{colour}"/>'
            yield f'<text x="{x + 14}" y="{y + 17}">{kind}</text>'
            x += 30 + 7 * len(kind)
        yield f'<text x="{self.left - 6}" y="{y + 44}" text-anchor="end">runs</text>'
        yield f'<text x="{self.left - 6}" y="{y + 72}" text-anchor="end">copies</text>'

    def _operations(self) -> Iterator[str]:
        """A box for each step; of a copy a line, since it is only issued."""
        copies = {each.step: each for each in self.timeline.transfers}
        for step in self.shown:
            name = self.timeline.name_of(step)
            x, wide = self._x(step), self._x(step + 1) - self._x(step)
            copy = copies.get(step)
            colour = COLOURS[0] if copy is None else WAY_COLOURS[copy.kind]
            drawn = 0.8 * wide if copy is None else 0.2 * wide
            yield (
                f'<rect x="{x:.1f}" y="{self.top + 48}" width="{drawn:.1f}" height="16" fill="{colour}">'
                f"<title>{escape(f'step {step}: {name}')}</title></rect>"
            )

    def _copies(self) -> Iterator[str]:
        for lane, copy in lanes(self._seen()):
            begin, end = max(copy.step, self.shown.start), min(copy.needed, self.shown.stop)
            said = (
                f"{copy.kind} {copy.row}: {copy.bytes} bytes, issued at step {copy.step}, needed at {copy.needed}, "
                f"{copy.iterations} iterations and {copy.overlap} operations later"
            )
            yield (
                f'<rect x="{self._x(begin):.1f}" y="{self.top + 76 + 14 * lane}" '
                f'width="{max(0.5, self._x(end) - self._x(begin)):.1f}" height="10" '
                f'fill="{WAY_COLOURS[copy.kind]}" fill-opacity="0.8"><title>{escape(said)}</title></rect>'
            )

    def _seen(self) -> list[Transfer]:
        """The copies that are under way at one of the steps."""
        return [
            copy
            for copy in self.timeline.transfers
            if copy.needed > self.shown.start and copy.step < self.shown.stop and copy.needed > copy.step
        ]


def lanes(copies: Sequence[Transfer]) -> Iterator[tuple[int, Transfer]]:
    """Copies, each with the first lane that is free from its issue on; what finds none is left out."""
    free: list[int] = []
    for copy in copies:
        lane = next((number for number, until in enumerate(free) if until <= copy.step), len(free))
        if lane >= LANES:
            continue
        free[lane : lane + 1] = [copy.needed]
        yield lane, copy
