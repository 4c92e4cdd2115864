"""Memory for tiles that are computed once and read several times; small ones become registers through `sroa`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempo_ir.lowering.llvm import memory
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear, materialize, offset_pointer
from tempo_ir.lowering.llvm.memory import Buffer
from tempo_ir.lowering.llvm.text import Register, Text

if TYPE_CHECKING:
    from tempo_ir.lowering.llvm.evaluate import Point

STACK_BYTES_EACH = 1 << 13
"""Larger tiles go to the arena."""

STACK_BYTES = 1 << 16
"""What one kernel takes of the stack at most; threads have small ones."""

ALIGNMENT = 64


@dataclass(frozen=True)
class Scratch:
    """
    A tile in memory. `lane` is its contiguous axis, padded to whole vectors where `padded`. With `panel` a tile of
    shape KxN is laid out [N / panel][K][panel]: a dot reads its right operand so in one stream.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    lane: int
    padded: bool
    panel: int | None = None

    def offset(self, point: Point) -> Linear:
        """Where a point is."""
        if self.panel is not None:
            row, column = point[0].position, point[1].position
            inside: Linear | int = column.constant % self.panel
            if not (column - inside).is_multiple(self.panel):
                inside = linear(materialize(self.buffer.pointer.text, column) & (self.panel - 1))
            return (column - inside).times(self.shape[0]) + row.times(self.panel) + inside
        total = ZERO
        for at, stride in zip(point, self.strides, strict=True):
            total = total + at.position.times(stride)
        return total

    def read(self, point: Point) -> Register:
        """The value at a point."""
        axis = next((axis for axis, at in enumerate(point) if at.lane), None)
        if axis is None:
            return memory.load(self.buffer, self.offset(point))
        if axis == self.lane:
            return memory.load_vector(self.buffer, self.offset(point))
        text = self.buffer.pointer.text
        at = point[axis]
        mask = None
        if at.position.is_constant and at.position.constant + text.lanes > self.shape[axis]:
            mask = text.tail_mask(self.shape[axis] - at.position.constant)
        offsets = memory.lane_offsets(text, self.strides[axis])
        return memory.gather(self.buffer, self.offset(point), offsets, mask)

    def write(self, point: Point, value: Register) -> None:
        """Set the value at a point; a vector runs along `lane`."""
        if any(at.lane for at in point):
            memory.store_vector(self.buffer, self.offset(point), value)
        else:
            memory.store(self.buffer, self.offset(point), value)


class Arena:
    """
    Where scratch comes from: the stack while it is little, then the arena whose pointer the kernel is given. `reset`
    starts over for the other version of a kernel, of which only one runs; what `keep` was told of stays.
    """

    def __init__(self, text: Text, pointer: Register):
        self.text = text
        self.pointer = pointer
        self.bytes = 0
        self._stack = 0
        self._used = 0
        self._kept = 0

    def keep(self) -> None:
        """What has been allocated is needed as long as the kernel runs."""
        self._kept = self._used

    def reset(self) -> None:
        """Reuse the arena from where it is not kept."""
        self._used = self._kept

    def allocate(self, kind: str, shape: Sequence[int], lane: int, padded: bool, panel: int | None = None) -> Scratch:
        """A tile of registers of `kind`, contiguous along `lane`."""
        lanes = self.text.lanes
        strides = [0] * len(shape)
        count = 1
        for axis in sorted(range(len(shape)), key=lambda axis: axis != lane):
            strides[axis] = count
            count *= -(-shape[axis] // lanes) * lanes if padded and axis == lane else shape[axis]
        if panel is not None:
            strides = [panel, 1]
        element = memory.register_layout(kind)
        # one vector more, for reads of the last row that reach past its end
        total = (-(-count // lanes) + (0 if padded else 1)) * lanes * element.size if shape else element.size
        buffer = Buffer(self._reserve(element.storage, total, element.size), element)
        return Scratch(buffer, tuple(shape), tuple(strides), lane, padded, panel)

    def _reserve(self, storage: str, size: int, element_size: int) -> Register:
        size = -(-size // ALIGNMENT) * ALIGNMENT
        if size <= STACK_BYTES_EACH and self._stack + size <= STACK_BYTES:
            self._stack += size
            return self.text.allocate(storage, size // element_size)
        offset = self._used
        self._used += size
        self.bytes = max(self.bytes, self._used)
        return offset_pointer(self.text, self.pointer, Linear(offset), "i8")
