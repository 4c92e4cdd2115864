"""The memory of outputs: a call takes again what a call before gave away, once nobody has that array any more.

The pages of fresh memory cost more than most kernels: the system hands them over one by one, each set to zero. An array
that was given away, and each view of it, tensors and dlpack capsules too, holds the memory that it lies in; so Python's
own count of who holds that says when the last one is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np

from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.frames import Slot
from tempo_ir.runtime.memory import address_of, aligned_bytes, aligned_zeros

MOST_BLOCKS = 3
"""How often an output is kept in memory: while the next call runs the caller has the last result, and often the one
before."""
MOST_KEPT = 1 << 25
"""Bytes of all outputs of a program that are kept, once: what is larger is given away for good."""


_Block: TypeAlias = tuple[Array, int, int]
"""Memory that is lent, where in it an array begins, and the address of that."""


def _block(size: int) -> _Block:
    piece = aligned_bytes(size)
    memory: Any = piece.base
    address = address_of(piece)
    return memory, address - address_of(memory), address


def _alone() -> int:
    block = _block(0)
    return getrefcount(block[0])


ALONE = _alone()
"""How many hold the memory of a block that nobody else holds, as Python counts: the block, and who asks."""


class OutputMemory:
    """Makes the arrays of an output at given bounds. Of one that is `covered` the program writes each element; the
    others are zero where it does not."""

    __slots__ = ("_blocks", "_covered", "_dtype", "_kept", "_shape", "_size")

    def __init__(self, slot: Slot, *, covered: bool, kept: bool):
        self._shape, self._dtype, self._size = slot.shape, slot.buffer.dtype, slot.bytes
        self._covered, self._kept = covered, kept
        self._blocks: list[_Block] = []

    def array(self) -> tuple[Array, int]:
        """An array that nobody has, and its address. Raises NotEnoughMemoryError."""
        for block in self._blocks:
            if getrefcount(block[0]) == ALONE:
                break
        else:
            if not self._kept and not self._covered:
                array = aligned_zeros(self._shape, self._dtype)  # what nobody touches is never handed over
                return array, address_of(array)
            block = self._new()
        memory, offset, address = block
        array: Array = np.ndarray(self._shape, self._dtype, memory, offset)
        if not self._covered:
            array.fill(0)
        return array, address

    def _new(self) -> _Block:
        block = _block(self._size)
        if self._kept:
            self._blocks = [*self._blocks[1 - MOST_BLOCKS :], block]
        return block

    @property
    def unused(self) -> int:
        """The bytes that nobody has."""
        return sum(self._size for block in self._blocks if getrefcount(block[0]) == ALONE)


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
