"""One call of a program: its memory, its host objects, and what Python runs in it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.lowering.kernels.draws import SEED, start_of
from tempo_ir.lowering.kernels.layout import Most, most_of
from tempo_ir.lowering.llvm.host import Site, scalar_names
from tempo_ir.reference.calls import HostFactories, Outputs, check_end, make_host
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.memory import Buffer, Placement, aligned_bytes, aligned_zeros, program_buffers, with_most
from tempo_ir.runtime.rows import Rows


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

    def needs(self, placement: Placement, request: Request) -> dict[str, int]:
        """The bytes that a call takes beside the arrays that it is given, by what they are for; of rows of a dim that
        data ends there is no saying how many are ever touched, and nothing is asked."""
        if self.most:
            return {}
        outputs = copies = 0
        for buffer in [buffer for buffer in self.buffers if buffer.owner]:
            if buffer.owner != "output":
                copies += 0 if is_contiguous(array := request.arrays[buffer.key]) else array.nbytes
            elif not (buffer.donated and request.donate):
                outputs += buffer.bytes(request.bounds)
        program, host = placement.size, placement.host_size
        return {"the program": program, "rows with the host": host, "outputs": outputs, "copies of arguments": copies}

    def laid_out(self, bounds: Mapping[str, int]) -> dict[str, int]:
        """The bounds of a call as memory is laid out for them."""
        return with_most(self.most, bounds)


@dataclass
class Call:
    """The memory of one call: a flat array per buffer. `outputs` are the caller's, with room for as many steps as it
    allows; `bounds` are those that hold now."""

    callee: Callee
    request: Request
    bounds: dict[str, int]
    flat: dict[SSAValue, Array]
    outputs: dict[str, Array]
    rows: Rows
    objects: dict[str, Any] = field(default_factory=dict[str, Any])
    error: BaseException | None = None
    interrupted: bool = False

    @staticmethod
    def of(callee: Callee, placement: Placement, device: Array, host: Array, request: Request) -> Call:
        """Lay the buffers out: the caller's arrays where they are, outputs fresh, the others in the arenas of the
        device and of the host."""
        flat: dict[SSAValue, Array] = {}
        outputs: dict[str, Array] = {}
        donated = apart(request.arrays) if request.donate else frozenset[str]()
        bounds = callee.laid_out(request.bounds)
        for buffer, offset in zip(callee.buffers, placement.offsets, strict=True):
            if buffer.owner == "output":
                outputs[buffer.key] = output_array(buffer, request, bounds, donated)
                flat[buffer.value] = outputs[buffer.key].reshape(-1)
            elif buffer.owner:
                flat[buffer.value] = contiguous(request.arrays[buffer.key]).reshape(-1)
            else:
                assert offset is not None
                size, arena = buffer.bytes(bounds), host if buffer.host else device
                flat[buffer.value] = arena[offset : offset + size].view(buffer.dtype)
                if buffer.zeroed:
                    flat[buffer.value][...] = 0
        layouts = {buffer.value: buffer.layout for buffer in callee.buffers}
        return Call(callee, request, bounds, flat, outputs, Rows(flat, layouts, request.seed, request.start, bounds))

    def make_objects(self) -> None:
        """Make the host objects, anew for each call."""
        self.objects = {name: make_host(name, self.request.hosts, op) for name, op in self.callee.hosts.items()}

    @property
    def scalars(self) -> list[int]:
        """The scalars of the host program, in order."""
        values = {**self.bounds, str(SEED): self.request.seed}
        for name in self.callee.program.space.names:
            values[str(start_of(name))] = self.request.start.get(name, 0)
        return [values[name] for name in self.callee.scalars]

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
        self.rows.forget()
        check_end(self.callee.program.space, {name: self.bounds[name] for name in self.request.bounds}, op.gives)

    def results(self) -> Outputs:
        """The outputs, with the rows of the steps that ran."""
        bounds = self.callee.laid_out(self.bounds)
        cut = {
            buffer.key: _cut(self.outputs[buffer.key], buffer.shape(bounds))
            for buffer in self.callee.buffers
            if buffer.key in self.outputs
        }
        return Outputs.of(cut, {name: self.bounds[name] for name in self.request.bounds})

    def finish(self) -> None:
        """Raise what was raised in the call."""
        if self.error is not None:
            raise self.error
        if self.interrupted:
            raise KeyboardInterrupt

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Ctrl-C during native code ends the call at the next question; other handlers of the user's stay in place."""
        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.interrupted = True

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def output_array(buffer: Buffer, request: Request, bounds: Mapping[str, int], donated: Collection[str]) -> Array:
    """The array of an output: that of the parameter of its key where it may be and was donated, else zeros."""
    given = request.arrays.get(buffer.key)
    if buffer.donated and given is not None and buffer.key in donated:
        if given.flags.writeable and is_contiguous(given):
            return given
    return aligned_zeros(buffer.shape(bounds), buffer.dtype)


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
    """Memory kept for the next call of the same size; calls at the same time get one each."""

    def __init__(self) -> None:
        self._free: list[Array] = []
        self._lock = threading.Lock()

    @property
    def kept(self) -> int:
        """The bytes that are kept."""
        with self._lock:
            return sum(len(arena) for arena in self._free)

    @contextmanager
    def borrow(self, size: int) -> Generator[Array]:
        """Memory of at least `size` bytes. Raises NotEnoughMemoryError."""
        with self._lock:
            found = next((arena for arena in self._free if len(arena) >= size), None)
            if found is not None:
                self._free = [arena for arena in self._free if arena is not found]
            else:
                self._free = []
        arena = aligned_bytes(size) if found is None else found
        try:
            yield arena
        finally:
            with self._lock:
                self._free = [arena]


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """The first rows of an array, which may be all."""
    if array.shape == shape:
        return array
    return np.ascontiguousarray(array[tuple(slice(0, extent) for extent in shape)])
