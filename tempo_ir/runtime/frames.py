"""What the calls of a program have in common: those of all bounds (Callee), and those of the same bounds (Frame).

A small program runs for a few microseconds. Whatever follows from the program or from the bounds alone is therefore
worked out once, and a call only fills in addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tempo_ir.dialects import loop
from tempo_ir.lowering.kernels.draws import SEED, start_of
from tempo_ir.lowering.kernels.layout import Most, most_of
from tempo_ir.lowering.llvm.host import scalar_names
from tempo_ir.runtime.memory import Buffer, Placement, place, program_buffers, with_most
from tempo_ir.runtime.rows import Meanings


@dataclass(frozen=True)
class Callee:
    """What all calls of a program have in common: its buffers, the most that a bound may be that a loop gives, the
    scalars of the host program and the first call of each host object."""

    program: loop.ProgramOp
    buffers: tuple[Buffer, ...]
    most: Most
    scalars: tuple[str, ...]
    hosts: Mapping[str, loop.HostOp]

    @staticmethod
    def of(program: loop.ProgramOp, buffers: tuple[Buffer, ...] | None = None) -> Callee:
        """Walk a program, once; `buffers` are its, where they are known."""
        hosts: dict[str, loop.HostOp] = {}
        for op in program.body.walk():
            if isinstance(op, loop.HostOp):
                hosts.setdefault(op.method.root_reference.data, op)
        buffers = program_buffers(program) if buffers is None else buffers
        return Callee(program, buffers, most_of(program), scalar_names(program), hosts)

    @cached_property
    def params(self) -> tuple[str, ...]:
        """The bounds by name, in order."""
        return self.program.space.params

    def frame(self, bounds: Mapping[str, int]) -> Frame:
        """What the calls with some bounds have in common."""
        laid_out = self.laid_out(bounds)
        placement = place(self.buffers, laid_out)
        slots = [Slot.of(b, o, laid_out) for b, o in zip(self.buffers, placement.offsets, strict=True)]
        starts = {str(start_of(name)): name for name in self.program.space.names}
        return Frame(
            laid_out,
            placement,
            tuple(slots),
            tuple(laid_out.get(name, 0) for name in self.scalars),
            self.scalars.index(str(SEED)),
            tuple((number, starts[name]) for number, name in enumerate(self.scalars) if name in starts),
            Meanings({buffer.value: buffer.layout for buffer in self.buffers}, laid_out),
        )

    def laid_out(self, bounds: Mapping[str, int]) -> dict[str, int]:
        """The bounds of a call as memory is laid out for them."""
        return with_most(self.most, bounds)


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer at given bounds: its bytes, the shape of the array where that is the caller's, else its place."""

    buffer: Buffer
    bytes: int
    shape: tuple[int, ...]
    offset: int | None

    @staticmethod
    def of(buffer: Buffer, offset: int | None, bounds: Mapping[str, int]) -> Slot:
        """A buffer that is placed at an offset, or is the caller's."""
        return Slot(buffer, buffer.bytes(bounds), buffer.shape(bounds) if buffer.owner else (), offset)


@dataclass
class Frame:
    """
    What the calls of a program with the same bounds have in common. `scalars` are those of the host program, but for
    the seed and the starts of dims, whose places `seed_at` and `starts_at` tell. `seconds` is how long native code
    took in the shortest call so far, infinity where it calls Python.
    """

    bounds: Mapping[str, int]
    placement: Placement
    slots: Sequence[Slot]
    scalars: Sequence[int]
    seed_at: int
    starts_at: Sequence[tuple[int, str]]
    meanings: Meanings
    seconds: float = float("inf")

    @cached_property
    def most_bytes(self) -> int:
        """What a call takes at most: all of the program's memory, and all arrays of the caller made anew."""
        placed = self.placement.size + self.placement.host_size
        return placed + sum(slot.bytes for slot in self.slots if slot.buffer.owner)

    def scalars_of(self, seed: int, start: Mapping[str, int]) -> list[int]:
        """The scalars of a call, in order."""
        numbers = list(self.scalars)
        numbers[self.seed_at] = seed
        for number, dim in self.starts_at if start else ():
            numbers[number] = start.get(dim, 0)
        return numbers
