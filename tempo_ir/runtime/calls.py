"""One call of a program: its memory, its host objects, and what Python runs in it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import CFUNCTYPE, addressof, c_int32, c_int64, c_void_p, cast
from dataclasses import dataclass

import numpy as np

from tempo_ir.lowering.llvm.host import Site
from tempo_ir.reference.calls import HostFactories, Outputs
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.frames import Callee, Frame, Slot
from tempo_ir.runtime.memory import address_of, aligned_bytes
from tempo_ir.runtime.outputs import output_memory
from tempo_ir.runtime.sites import Course, Sites

BRIEF = 0.02
"""Seconds that nobody notices who has pressed Ctrl-C."""
MOST_WORKSPACES = 4
"""How many calls at a time find the memory of calls before."""

_CALLBACK = CFUNCTYPE(c_int32)


@dataclass(slots=True)
class Request:
    """What a call was asked for, checked. `donate`: states may be written into the arrays that were given for them;
    `in_torch`: results are tensors."""

    arrays: Mapping[str, Array]
    bounds: Mapping[str, int]
    seed: int
    start: Mapping[str, int]
    hosts: HostFactories
    donate: bool = False
    in_torch: bool = False


@dataclass(frozen=True, slots=True)
class Arenas:
    """The memory of calls that is no array of the caller: of the device, of the host, of kernels' scratch."""

    device: Array
    host: Array
    scratch: Array

    @staticmethod
    def of(sizes: tuple[int, int, int]) -> Arenas:
        """Pieces of such sizes in bytes. Raises NotEnoughMemoryError."""
        return Arenas(*map(aligned_bytes, sizes))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes in bytes."""
        return len(self.device), len(self.host), len(self.scratch)

    def have(self, sizes: tuple[int, int, int]) -> bool:
        """Whether they are at least so large."""
        return all(have >= want for have, want in zip(self.sizes, sizes, strict=True))


class Workspace:
    """
    What the calls of a program with the same bounds run in, one at a time: memory, and the tables that tell native code
    where everything is. It is made once; `fill` adds what differs from call to call, `clear` forgets it.

    `tables` are the addresses of what the native function takes: buffers, scalars, call-backs.
    """

    def __init__(self, callee: Callee, frame: Frame, sites: Sequence[Site], covered: Collection[str], arenas: Arenas):
        self.frame, self.arenas, self.course = frame, arenas, Course()
        self.scratch = len(arenas.scratch)
        self._callee = callee
        slots = list(enumerate(frame.slots))
        self._given = [(n, slot.buffer.key) for n, slot in slots if slot.buffer.owner not in ("", "output")]
        made = [(n, slot) for n, slot in slots if slot.buffer.owner == "output"]
        memory = output_memory([slot for _, slot in made], covered)
        self._made = [(n, slot.buffer.key, slot.buffer.donated, m) for (n, slot), m in zip(made, memory, strict=True)]
        self._sites = Sites(callee, frame, sites, self.course) if sites else None
        self._buffers = (c_int64 * (len(slots) + 3))()
        self._zeroed: list[Array] = []
        for number, slot in slots:
            if not slot.buffer.owner:
                self._lay_out(number, slot)
        self._buffers[len(slots)] = address_of(arenas.scratch)
        count, depth = len(frame.scalars), max([1, *(len(site.iterators) for site in sites)])
        self._scalars = (c_int64 * (count + depth))(*frame.scalars)
        functions = [self.course.ask]
        if self._sites is not None:
            functions += [self._sites.function(number, self._scalars, count) for number in range(len(sites))]
        self._callbacks = [_CALLBACK(function) for function in functions]
        pointers = [cast(callback, c_void_p).value for callback in self._callbacks]
        self._pointers = (c_void_p * len(pointers))(*pointers)
        self.tables = addressof(self._buffers), addressof(self._scalars), addressof(self._pointers)
        self._outputs = Outputs()
        self._copies: list[Array] = []
        self.course.begin(frame.bounds)

    def _lay_out(self, number: int, slot: Slot) -> None:
        """A buffer of the program's own lies in an arena."""
        assert slot.offset is not None
        arena = self.arenas.host if slot.buffer.host else self.arenas.device
        piece = arena[slot.offset : slot.offset + slot.bytes]
        self._buffers[number] = address_of(piece)
        if slot.buffer.zeroed:
            self._zeroed.append(piece)
        if self._sites is not None:
            self._sites.place(number, piece)

    def set_clocks(self, clocks: Array) -> None:
        """Where a program that is clocked counts."""
        self._buffers[len(self.frame.slots) + 2] = address_of(clocks)

    def fill(self, request: Request, team: int) -> None:
        """Make ready for a call on a team of threads: the caller's arrays where they are, outputs in memory that nobody
        has."""
        frame, buffers, scalars, arrays, sites = self.frame, self._buffers, self._scalars, request.arrays, self._sites
        self._outputs = outputs = Outputs()
        for number, key in self._given:
            array = arrays[key]
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                array = np.require(array, requirements=["C", "A"])
                self._copies.append(array)
            buffers[number] = address_of(array)
            if sites is not None:
                sites.place(number, array)
        donated = donatable(arrays) if request.donate else ()
        for number, key, may_donate, memory in self._made:
            if may_donate and key in donated:
                array = arrays[key]
                address = address_of(array)
            else:
                array, address = memory.array()
            outputs[key], buffers[number] = array, address
            if sites is not None:
                sites.place(number, array)
        buffers[len(frame.slots) + 1] = team
        for piece in self._zeroed:
            piece[...] = 0
        scalars[frame.seed_at] = request.seed
        for number, dim in frame.starts_at:
            scalars[number] = request.start.get(dim, 0)
        if sites is not None:
            sites.begin(request)

    def results(self, request: Request) -> Outputs:
        """The outputs, with the rows of the steps that ran. Raises what was raised in the call."""
        self.course.finish()
        outputs = self._outputs
        outputs.bounds = request.bounds
        if self._callee.most:
            ran = self.course.bounds
            bounds = self._callee.laid_out(ran)
            shapes = {slot.buffer.key: slot.buffer.shape(bounds) for slot in self.frame.slots if slot.buffer.owner}
            outputs = Outputs({key: _cut(array, shapes[key]) for key, array in outputs.items()})
            outputs.bounds = {name: ran[name] for name in request.bounds}
        return outputs

    def clear(self) -> None:
        """Forget a call, whose arrays are the caller's."""
        self._outputs = Outputs()
        self._copies.clear()
        self.course.begin(self.frame.bounds)
        if self._sites is not None:
            self._sites.end()

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Ctrl-C during native code ends the call at the next question; other handlers of the user's stay in place.
        Of a call within another, by a method of a host object, it ends both."""
        before = signal.getsignal(signal.SIGINT)
        ours = before is signal.default_int_handler or getattr(before, "__func__", None) is Course.interrupt
        if not ours or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGINT, self.course.interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @property
    def unused(self) -> int:
        """The bytes that the next call finds."""
        return sum(self.arenas.sizes) + sum(memory.unused for *_, memory in self._made)


class Workspaces:
    """The workspaces that calls have left for the next ones; calls at the same time get others. `covered` are the
    outputs of which the program writes each element."""

    def __init__(self, covered: Collection[str] = ()) -> None:
        self._covered = covered
        self._free: list[Workspace] = []

    @property
    def unused(self) -> int:
        """The bytes that the next call finds."""
        return sum(workspace.unused for workspace in list(self._free))

    def take(self, callee: Callee, frame: Frame, sites: Sequence[Site], scratch: int) -> Workspace:
        """A workspace for a call of the bounds of a frame. Raises NotEnoughMemoryError."""
        try:
            workspace = self._free.pop()
            if workspace.frame is frame and workspace.scratch >= scratch:
                return workspace
        except IndexError:
            workspace = None
        sizes = (frame.placement.size, frame.placement.host_size, scratch)
        arenas = None if workspace is None or not workspace.arenas.have(sizes) else workspace.arenas
        del workspace  # what is too small goes before more is taken
        return Workspace(callee, frame, sites, self._covered, Arenas.of(sizes) if arenas is None else arenas)

    def give(self, workspace: Workspace) -> None:
        """A call is over."""
        workspace.clear()
        self._free.append(workspace)
        del self._free[:-MOST_WORKSPACES]  # at once: other calls take theirs meanwhile


def needs(callee: Callee, frame: Frame, request: Request) -> dict[str, int]:
    """The bytes that a call takes beside the arrays that it is given, by what they are for; of rows of a dim that data
    ends there is no saying how many are ever touched, and nothing is asked."""
    if callee.most:
        return {}
    outputs = copies = 0
    for slot in [slot for slot in frame.slots if slot.buffer.owner]:
        if slot.buffer.owner != "output":
            copies += 0 if is_contiguous(array := request.arrays[slot.buffer.key]) else array.nbytes
        elif not (slot.buffer.donated and request.donate):
            outputs += slot.bytes
    program, host = frame.placement.size, frame.placement.host_size
    return {"the program": program, "rows with the host": host, "outputs": outputs, "copies of arguments": copies}


def donatable(arrays: Mapping[str, Array]) -> frozenset[str]:
    """The names of the arrays that a call may write into: writeable, row by row in memory, apart from all others."""
    return frozenset(name for name in apart(arrays) if arrays[name].flags.writeable and is_contiguous(arrays[name]))


def apart(arrays: Mapping[str, Array]) -> frozenset[str]:
    """The names of the arrays that share no memory with another of them."""
    spans = sorted((*_span(array), name) for name, array in arrays.items() if array.size)
    sharing: set[str] = set()
    last, reached = "", 0
    for begin, end, name in spans:
        if begin < reached:
            sharing |= {name, last}
        if end > reached:
            last, reached = name, end
    return frozenset(arrays) - sharing


def _span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte and of that after the last."""
    if array.flags.c_contiguous:
        begin = address_of(array)
        return begin, begin + array.nbytes
    begin, end = np.lib.array_utils.byte_bounds(array)
    return int(begin), int(end)


def is_contiguous(array: Array) -> bool:
    """Whether an array is in row-major order, aligned to its elements."""
    return array.flags.c_contiguous and array.flags.aligned


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """The first rows of an array, which may be all."""
    if array.shape == shape:
        return array
    return np.ascontiguousarray(array[tuple(slice(0, extent) for extent in shape)])
