"""The memory of outputs: a call takes again what a call before gave away, once nobody has that array any more.

The pages of fresh memory cost more than most kernels: the system hands them over one by one, each set to zero. An array
that was given away, and each view of it, tensors and dlpack capsules too, holds the memory that it lies in; so Python's
own count of who holds that says when the last one is gone.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import numpy as np

from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.frames import Slot
from tempo_ir.runtime.memory import address_of, aligned_bytes, aligned_zeros

MOST_BLOCKS = 3
"""How often an output is kept in memory: while the next call runs the caller has the last result, and often the one
before."""
MOST_KEPT = 1 << 25
"""Bytes of all outputs of a program that are kept, once: what is larger is given away for good."""


class _Block:
    """Memory that is lent, and where in it an array begins."""

    __slots__ = ("address", "memory", "offset")

    def __init__(self, size: int):
        piece = aligned_bytes(size)
        assert piece.base is not None
        self.memory: Array = piece.base  # pyright: ignore[reportAttributeAccessIssue]
        self.address = address_of(piece)
        self.offset = self.address - address_of(self.memory)

    @property
    def holders(self) -> int:
        """How many hold the memory, this block among them."""
        return sys.getrefcount(self.memory)


ALONE = _Block(0).holders
"""The count of memory that only its block holds."""


class OutputMemory:
    """Makes the arrays of an output at given bounds. Of one that is `covered` the program writes each element; the
    others are zero where it does not."""

    def __init__(self, slot: Slot, *, covered: bool, kept: bool):
        self._shape, self._dtype, self._size = slot.shape, slot.buffer.dtype, slot.bytes
        self._covered, self._kept = covered, kept
        self._blocks: list[_Block] = []

    def array(self) -> tuple[Array, int]:
        """An array that nobody has, and its address. Raises NotEnoughMemoryError."""
        if not self._kept and not self._covered:
            array = aligned_zeros(self._shape, self._dtype)  # what nobody touches is never handed over
            return array, address_of(array)
        block = self._block()
        array: Array = np.ndarray(self._shape, self._dtype, block.memory, block.offset)
        if not self._covered:
            array.fill(0)
        return array, block.address

    def _block(self) -> _Block:
        for block in self._blocks:
            if block.holders == ALONE:
                return block
        block = _Block(self._size)
        if self._kept:
            self._blocks = [*self._blocks[1 - MOST_BLOCKS :], block]
        return block

    @property
    def unused(self) -> int:
        """The bytes that nobody has."""
        return sum(self._size for block in self._blocks if block.holders == ALONE)


def output_memory(slots: Sequence[Slot], covered: Collection[str]) -> list[OutputMemory]:
    """The memory of the outputs of a program at given bounds, in order; `covered` are the keys of those of which it
    writes each element."""
    left, kept = MOST_KEPT, set[int]()
    for number in sorted(range(len(slots)), key=lambda n: slots[n].bytes):
        left -= slots[number].bytes
        if left >= 0:
            kept.add(number)
    return [
        OutputMemory(slot, covered=slot.buffer.key in covered, kept=number in kept) for number, slot in enumerate(slots)
    ]
