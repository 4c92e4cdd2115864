"""Whether what streams do with memory has one order: vector clocks, one number per stream (Mattern 1989)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Clock = dict[int, int]
"""By stream, how much of what it did is known to be done."""


@dataclass
class Memory:
    """What was done to a byte, an element or a row: by whom it was last written, and read since."""

    write: tuple[int, int, str] | None = None
    reads: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass
class Order:
    """Follows streams, and finds what has no order."""

    clocks: dict[int, Clock] = field(default_factory=dict)
    events: dict[int, Clock] = field(default_factory=dict)
    memory: dict[int, Memory] = field(default_factory=dict)
    races: list[str] = field(default_factory=list)

    def clock(self, stream: int) -> Clock:
        return self.clocks.setdefault(stream, {stream: 0})

    def record(self, event: int, stream: int) -> None:
        """An event is what a stream was asked for until now."""
        self.events[event] = dict(self.clock(stream))

    def wait(self, event: int, stream: int) -> None:
        """What a stream is asked for from now on comes after an event."""
        own = self.clock(stream)
        for other, done in self.events[event].items():
            own[other] = max(own.get(other, 0), done)

    def access(self, stream: int, what: str, reads: Iterable[int], writes: Iterable[int]) -> None:
        """A stream is asked to read and write places of memory."""
        own = self.clock(stream)
        own[stream] += 1
        reads, writes = [*reads], [*writes]
        for place in reads:
            self._after(own, what, self.memory.setdefault(place, Memory()).write)
        for place in writes:
            known = self.memory.setdefault(place, Memory())
            for other in (known.write, *known.reads):
                self._after(own, what, other)
        for place in reads:
            self.memory[place].reads.append((stream, own[stream], what))
        for place in writes:
            self.memory[place] = Memory((stream, own[stream], what))

    def _after(self, own: Clock, what: str, other: tuple[int, int, str] | None) -> None:
        if other is not None and own.get(other[0], 0) < other[1]:
            self.races.append(f"{what} does not wait for {other[2]}")

    def is_done(self, stream: int) -> bool:
        """Whether all that was asked for is done where a stream has come to."""
        own = self.clock(stream)
        return all(own.get(other, 0) >= clock[other] for other, clock in self.clocks.items())
