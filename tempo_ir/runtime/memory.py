"""Where the buffers of a call lie: sizes and places for concrete bounds, and the arrays themselves.

What the caller gave is used where it lies; outputs are made anew; everything else is placed in one arena, but for rows
that are swapped out, which lie in a second one, that of the host. Buffers that are not live together
(`lowering.storage.intervals`) share memory: first fit, greatest first.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir.dialects import loop
from tempo_ir.index import evaluate
from tempo_ir.lowering.kernels.layout import Layout, Most, most_of
from tempo_ir.lowering.storage.intervals import Interval, buffer_intervals
from tempo_ir.reference.dtypes import Array, DType, numpy_dtype
from tempo_ir.runtime.errors import NotEnoughMemoryError

LARGE_PAGE, LARGE_PAGES = 1 << 21, 2
"""Bytes of a large page, and of how many memory is laid out for them."""

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector. Vectors that straddle lines cost half of the speed."""
DATA_FIELD: int | None = object.__basicsize__ if sys.implementation.name == "cpython" else None
"""Where in the object of an array numpy's C interface has its address (`PyArray_DATA`: the first field). To ask the
array itself takes eight times as long, a microsecond."""
_INTEGER_AT = ctypes.c_int64.from_address


def address_of(array: Array) -> int:
    """Where the first element of an array is."""
    assert isinstance(array, np.ndarray), "numbers of numpy's have no such field"
    if DATA_FIELD is None:
        return array.ctypes.data
    return _INTEGER_AT(id(array) + DATA_FIELD).value


def aligned_bytes(size: int) -> Array:
    """Fresh memory of `size` bytes at an aligned address, not initialised. Raises NotEnoughMemoryError."""
    return _aligned(np.empty, size)


def aligned_zeros(shape: Sequence[int], dtype: DType) -> Array:
    """An array of zeros at an aligned address. Raises NotEnoughMemoryError."""
    return _aligned(np.zeros, math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _aligned(make: Callable[[int, type[np.uint8]], Array], size: int) -> Array:
    message = f"the call needs {size} bytes in one piece, which the machine has not: compile with memory_budget= or "
    message += "remat=, or give smaller bounds"
    if size > sys.maxsize - ALIGNMENT:
        raise NotEnoughMemoryError(message)
    try:
        raw = make(size + ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise NotEnoughMemoryError(message) from error
    start = -address_of(raw) % ALIGNMENT
    return raw[start : start + size]


def aligned_copies(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays in row-major order at aligned addresses, all in one piece of memory: of a large one the system makes
    large pages (numpy asks for them), which weights are read from 1.2 to 1.5 times as fast (measured, 12 and 19 MB)."""
    sizes = [_rounded(array.size * array.dtype.itemsize) for array in arrays.values()]
    large = sum(sizes) >= LARGE_PAGES * LARGE_PAGE
    memory = aligned_bytes(sum(sizes) + (2 * LARGE_PAGE if large else 0))  # the ends lie in such pages too
    start = -memory.__array_interface__["data"][0] % LARGE_PAGE if large else 0
    copies = dict[str, Array]()
    for (name, array), size in zip(arrays.items(), sizes, strict=True):
        piece = memory[start : start + array.size * array.dtype.itemsize]
        copies[name] = piece.view(array.dtype).reshape(array.shape)
        copies[name][...] = array
        start += size
    return copies


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of a program: how it lies in memory, who owns it, and when it is live.

    `owner` is "input", "parameter", "output" or "" (the call); `zeroed` says that it must be zero when the program
    starts, `donated` that an output may lie in the array of the parameter of its key, `host` that it lies with the
    host.
    """

    value: SSAValue
    layout: Layout
    dtype: DType
    owner: str
    key: str
    live: Interval
    zeroed: bool
    donated: bool = False
    host: bool = False

    def bytes(self, bounds: Mapping[str, int]) -> int:
        """The size for given bounds."""
        return max(0, evaluate(self.layout.size, bounds)) * self.dtype.itemsize

    def shape(self, bounds: Mapping[str, int]) -> tuple[int, ...]:
        """The extents of an array of the caller."""
        extents = (*self.layout.rows, *self.layout.room)
        return tuple(e if isinstance(e, int) else max(0, evaluate(e, bounds)) for e in extents)


@dataclass(frozen=True, slots=True)
class Placement:
    """Offsets in the arena of the memory in which each buffer lies, in order (None for what lies in neither); the sizes
    of the device's and of the host's; who has how much."""

    offsets: tuple[int | None, ...]
    size: int
    by_class: Mapping[str, int]
    host_size: int = 0


def with_most(most: Most, bounds: Mapping[str, int]) -> dict[str, int]:
    """The bounds of a call as memory is laid out for them: also the most that a bound may be that a loop gives."""
    return {**bounds, **{str(symbol): bounds[bound] for bound, symbol in most}}


def program_buffers(program: loop.ProgramOp) -> tuple[Buffer, ...]:
    """The buffers of a program, in order."""
    live, most = buffer_intervals(program), most_of(program)
    return tuple(
        _buffer(op, Layout.of(op.buffer_type, program.space, most), live[op.buffer])
        for op in program.body.walk()
        if isinstance(op, loop.BufferOperation)
    )


def _buffer(op: loop.BufferOperation, layout: Layout, live: Interval) -> Buffer:
    owner = "" if isinstance(op, loop.AllocOp) else op.name.partition(".")[2]
    key = op.key.data if isinstance(op, loop.NamedBufferOperation) else ""
    zeroed = any(isinstance(use.operation, loop.CheckOp) for use in op.buffer.uses)
    donated, host = loop.DONATES in op.attributes, loop.is_host(op.buffer)
    return Buffer(op.buffer, layout, numpy_dtype(layout.element), owner, key, live, zeroed, donated, host)


def place(buffers: Sequence[Buffer], bounds: Mapping[str, int]) -> Placement:
    """Places in the arenas for concrete bounds, greatest buffers first, each at the lowest address that is free."""
    sizes = [_rounded(buffer.bytes(bounds)) for buffer in buffers]
    mine = {number: buffer for number, buffer in enumerate(buffers) if not buffer.owner}
    device, size = _packed({n: (sizes[n], buffer.live) for n, buffer in mine.items() if not buffer.host})
    host, host_size = _packed({n: (sizes[n], buffer.live) for n, buffer in mine.items() if buffer.host})
    by_class: dict[str, int] = {}
    for buffer, taken in zip(buffers, sizes, strict=True):
        name = "host" if buffer.host else buffer.owner or storage_class(buffer.layout)
        by_class[name] = by_class.get(name, 0) + taken
    offsets = {**device, **host}
    return Placement(tuple(offsets.get(number) for number in range(len(buffers))), size, by_class, host_size)


def _packed(pieces: Mapping[int, tuple[int, Interval]]) -> tuple[dict[int, int], int]:
    """Offsets of pieces of memory, given by number with size and when they are live, and the size of the whole."""
    offsets: dict[int, int] = {}
    for number in sorted(pieces, key=lambda n: -pieces[n][0]):
        size, live = pieces[number]
        busy = [(offset, offset + pieces[n][0]) for n, offset in offsets.items() if pieces[n][1].meets(live)]
        offsets[number] = _lowest(sorted(busy), size)
    return offsets, max((offset + pieces[number][0] for number, offset in offsets.items()), default=0)


def storage_class(layout: Layout) -> str:
    """`slot`, or how the dims are stored: `full`, `ring`, `growing`."""
    classes = dict.fromkeys(dim.storage for dim in layout.type.dims)
    return " x ".join(classes) if classes else "slot"


def _rounded(size: int) -> int:
    """Whole lines, and one more: a vector may start in the last element."""
    return -(-size // ALIGNMENT) * ALIGNMENT + ALIGNMENT


def _lowest(busy: Sequence[tuple[int, int]], size: int) -> int:
    """The lowest offset from which `size` bytes are free."""
    offset = 0
    for low, high in busy:
        if offset + size <= low:
            break
        offset = max(offset, high)
    return offset
