"""One call of a program: its memory, its host objects, and what Python runs in it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tempo_ir.dialects import loop
from tempo_ir.lowering.llvm.host import Site
from tempo_ir.reference.calls import HostFactories, Outputs, check_end, make_host
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.frames import Callee, Frame, Slot
from tempo_ir.runtime.memory import aligned_bytes, aligned_zeros
from tempo_ir.runtime.rows import Rows

BRIEF = 0.02
"""Seconds that nobody notices who has pressed Ctrl-C."""


@dataclass(frozen=True)
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


@dataclass
class Call:
    """The memory of one call. `outputs` are the caller's, with room for as many steps as it allows; `given` its arrays
    as they are read; `bounds` are those that hold now; `addresses` tells native code where each buffer is."""

    callee: Callee
    frame: Frame
    request: Request
    bounds: dict[str, int]
    given: dict[str, Array]
    outputs: dict[str, Array]
    device: Array
    host: Array
    addresses: list[int]
    objects: dict[str, Any] = field(default_factory=dict[str, Any])
    error: BaseException | None = None
    interrupted: bool = False

    @staticmethod
    def of(callee: Callee, frame: Frame, device: Array, host: Array, request: Request) -> Call:
        """Lay the buffers out: the caller's arrays where they are, outputs fresh, the others in the arenas of the
        device and of the host."""
        given: dict[str, Array] = {}
        outputs: dict[str, Array] = {}
        addresses: list[int] = []
        donated = apart(request.arrays) if request.donate else frozenset[str]()
        starts = {False: address_of(device), True: address_of(host)}
        for slot in frame.slots:
            buffer = slot.buffer
            if buffer.owner == "output":
                outputs[buffer.key] = array = output_array(slot, request, donated)
                addresses.append(address_of(array))
            elif buffer.owner:
                given[buffer.key] = array = contiguous(request.arrays[buffer.key])
                addresses.append(address_of(array))
            else:
                assert slot.offset is not None
                addresses.append(starts[buffer.host] + slot.offset)
                if buffer.zeroed:
                    (host if buffer.host else device)[slot.offset : slot.offset + slot.bytes] = 0
        return Call(callee, frame, request, dict(frame.bounds), given, outputs, device, host, addresses)

    @cached_property
    def rows(self) -> Rows:
        """The memory as Python reads it."""
        flat = {slot.buffer.value: self._flat(slot) for slot in self.frame.slots}
        return Rows(flat, self.frame.meanings, self.request.seed, self.request.start)

    def _flat(self, slot: Slot) -> Array:
        buffer = slot.buffer
        if buffer.owner:
            return (self.outputs if buffer.owner == "output" else self.given)[buffer.key].reshape(-1)
        assert slot.offset is not None
        arena = self.host if buffer.host else self.device
        return arena[slot.offset : slot.offset + slot.bytes].view(buffer.dtype)

    def make_objects(self) -> None:
        """Make the host objects, anew for each call."""
        self.objects = {name: make_host(name, self.request.hosts, op) for name, op in self.callee.hosts.items()}

    @property
    def scalars(self) -> list[int]:
        """The scalars of the host program, in order."""
        return self.frame.scalars_of(self.request.seed, self.request.start)

    def symbols(self, iterators: Sequence[str], values: Sequence[int]) -> dict[str, int]:
        """Iterators and bounds by name."""
        return {**self.bounds, **dict(zip(iterators, values, strict=True))}

    def run_site(self, site: Site, values: Sequence[int]) -> int:
        """Run an operation in Python; 1 if it raised, which is kept, or if the call is to stop."""
        try:
            self._run(site.op, self.symbols(site.iterators, values))
        except (
            BaseException
        ) as error:  # whatever the user's code raises goes through native code, to be raised after it
            self.error = error
        return self.ask()

    def ask(self) -> int:
        """1 if the call is to stop."""
        return 1 if self.error is not None or self.interrupted else 0

    def _run(self, op: Operation, symbols: Mapping[str, int]) -> None:
        match op:
            case loop.BodyOperation():
                self.rows.run_body(op, symbols)
            case loop.HostOp():
                self.rows.run_host(op, self.objects[op.method.root_reference.data], symbols)
            case loop.ForOp():
                self._end(op, symbols)
            case loop.CheckOp():
                raise self.rows.failure(op, symbols)
            case _:
                raise AssertionError(f"{op.name} is no operation that Python runs")

    def _end(self, op: loop.ForOp, symbols: Mapping[str, int]) -> None:
        """A loop has given a bound its value, which `symbols` holds."""
        assert op.gives is not None
        self.bounds[op.gives] = symbols[op.gives]
        self.rows.rebind(self.bounds)
        check_end(self.callee.program.space, {name: self.bounds[name] for name in self.request.bounds}, op.gives)

    def results(self) -> Outputs:
        """The outputs, with the rows of the steps that ran."""
        outputs = self.outputs
        if self.callee.most:
            bounds = self.callee.laid_out(self.bounds)
            shapes = {slot.buffer.key: slot.buffer.shape(bounds) for slot in self.frame.slots if slot.buffer.owner}
            outputs = {key: _cut(array, shapes[key]) for key, array in outputs.items()}
        return Outputs.of(outputs, {name: self.bounds[name] for name in self.request.bounds})

    def finish(self) -> None:
        """Raise what was raised in the call."""
        if self.error is not None:
            raise self.error
        if self.interrupted:
            raise KeyboardInterrupt

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Ctrl-C during native code ends the call at the next question; other handlers of the user's stay in place.

        Where calls were so short that Python hears of it soon enough, none is set: that takes longer than they do."""
        main = threading.current_thread() is threading.main_thread()
        if self.frame.seconds < BRIEF or not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.interrupted = True

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


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


def address_of(array: Array) -> int:
    """Where the first element of an array is."""
    return array.__array_interface__["data"][0]


def output_array(slot: Slot, request: Request, donated: Collection[str]) -> Array:
    """The array of an output: that of the parameter of its key where it may be and was donated, else zeros."""
    buffer = slot.buffer
    given = request.arrays.get(buffer.key)
    if buffer.donated and given is not None and buffer.key in donated:
        if given.flags.writeable and is_contiguous(given):
            return given
    return aligned_zeros(slot.shape, buffer.dtype)


def apart(arrays: Mapping[str, Array]) -> frozenset[str]:
    """The names of the arrays that share no memory with another of them."""
    spans = sorted((*np.lib.array_utils.byte_bounds(array), name) for name, array in arrays.items() if array.size)
    sharing: set[str] = set()
    last, reached = "", 0
    for begin, end, name in spans:
        if begin < reached:
            sharing |= {name, last}
        if end > reached:
            last, reached = name, end
    return frozenset(arrays) - sharing


def contiguous(array: Array) -> Array:
    """The array in row-major order, aligned to its elements: itself if it is."""
    return array if is_contiguous(array) else np.require(array, requirements=["C", "A"])


def is_contiguous(array: Array) -> bool:
    """Whether an array is in row-major order, aligned to its elements."""
    return array.flags.c_contiguous and array.flags.aligned


class Arenas:
    """Pieces of memory kept for the next call of the same sizes; calls at the same time get others."""

    def __init__(self) -> None:
        self._free: list[tuple[Array, ...]] = []
        self._lock = threading.Lock()

    @property
    def kept(self) -> int:
        """The bytes that are kept."""
        with self._lock:
            return sum(len(piece) for pieces in self._free for piece in pieces)

    @contextmanager
    def borrow(self, *sizes: int) -> Generator[tuple[Array, ...]]:
        """Pieces of at least such sizes in bytes. Raises NotEnoughMemoryError."""
        with self._lock:
            free = self._free.pop() if self._free else ()
        if len(free) != len(sizes) or any(len(piece) < size for piece, size in zip(free, sizes, strict=True)):
            del free
            free = tuple(map(aligned_bytes, sizes))
        try:
            yield free
        finally:
            self._free = [free]


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """The first rows of an array, which may be all."""
    if array.shape == shape:
        return array
    return np.ascontiguousarray(array[tuple(slice(0, extent) for extent in shape)])
