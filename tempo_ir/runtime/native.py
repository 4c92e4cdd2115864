"""The CPU target: kernels and host program as one native function."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.engine import Assembler, Library, host_target, load_objects
from tempo_ir.lowering.llvm.host import HOST, Site
from tempo_ir.lowering.llvm.module import ModuleLowering
from tempo_ir.lowering.llvm.parallel import scratch_pitch
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.reference.calls import Outputs
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.calls import Arenas, Call, Request, address_of
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.frames import Callee, Frame
from tempo_ir.runtime.packed import Packed, packed_calls, unpacked_calls
from tempo_ir.runtime.threads import MOST_THREADS, borrowed_team, thread_count

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
_HOST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class NativeProgram:
    """A compiled loop program."""

    callee: Callee
    sites: tuple[Site, ...]
    scratch_bytes: int
    is_shared: bool
    """Whether launches may be cut over threads: without any no team is made."""
    objects: tuple[bytes, ...]
    target: Target
    library: Library

    @staticmethod
    def compile(module: ModuleOp) -> NativeProgram:
        """Machine code of a module of one loop program and its kernels."""
        with NativeCompiler() as compiler:
            return compiler.program(module)

    def packed(self) -> Packed:
        """The program to be written to a file."""
        header = {
            "target": asdict(self.target),
            "scratch_bytes": self.scratch_bytes,
            "is_shared": self.is_shared,
            **packed_calls(self.callee.program, self.callee.buffers, self.sites),
        }
        return Packed(header, self.objects)

    @staticmethod
    def unpacked(packed: Packed) -> NativeProgram:
        """The program that was written, for a machine that it runs on."""
        target = target_of(packed)
        library = load_objects(packed.objects, target)
        program, buffers, sites = unpacked_calls(packed.header)
        scratch, is_shared = packed.header["scratch_bytes"], packed.header["is_shared"]
        return NativeProgram(Callee.of(program, buffers), sites, scratch, is_shared, packed.objects, target, library)

    def execute(self, frame: Frame, request: Request, arenas: Arenas, clocks: Array | None = None) -> Outputs:
        """The outputs of a call of the bounds of a frame, in memory of `arenas`; `clocks` are the numbers of a program
        that is clocked. Raises CallError where the user's number of threads is none, and what Python code in the call
        raises."""
        placed, threads = frame.placement, min(thread_count(), MOST_THREADS if self.is_shared else 1)
        scratch_size = threads * scratch_pitch(self.scratch_bytes)
        with arenas.borrow(placed.size, placed.host_size, scratch_size) as (device, host, scratch):
            call = Call.of(self.callee, frame, device, host, request)
            self._run(call, scratch, threads, clocks)
        return call.results()

    def _run(self, call: Call, scratch: Array, threads: int, clocks: Array | None) -> None:
        call.make_objects()
        numbers, callbacks = call.scalars, self._callbacks(call)
        scalars = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        pointers = [ctypes.cast(callback, ctypes.c_void_p).value for callback in callbacks]
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        begin = time.perf_counter()
        with borrowed_team(threads) as team, call.interruptible():
            addresses = [*call.addresses, address_of(scratch), team]
            if clocks is not None:
                addresses.append(address_of(clocks))
            buffers = (ctypes.c_void_p * len(addresses))(*addresses)
            self._function(ctypes.addressof(buffers), ctypes.addressof(scalars), ctypes.addressof(table))
        if not self.sites:
            call.frame.seconds = min(call.frame.seconds, time.perf_counter() - begin)
        call.finish()

    @cached_property
    def _function(self) -> Callable[[int, int, int], int]:
        return _HOST(self.library.address(HOST))

    def _callbacks(self, call: Call) -> Sequence[Any]:
        def ask(symbols: Any) -> int:
            return call.ask()

        def site(number: int) -> Callable[[Any], int]:
            where = self.sites[number]
            count = len(where.iterators)
            return lambda symbols: call.run_site(where, symbols[:count])

        return [_CALLBACK(ask), *(_CALLBACK(site(number)) for number in range(len(self.sites)))]


class NativeCompiler:
    """Makes machine code: of kernels as they come, beside the thread that brings them, then of the whole program."""

    def __init__(self, *, clocked: bool = False) -> None:
        self._target = host_target()
        self._assembler = Assembler(self._target)
        self._lowering = ModuleLowering(self._target, self._assembler.add, clocked=clocked)

    def __enter__(self) -> Self:
        self._assembler.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._assembler.__exit__(kind, error, trace)

    def kernel(self, kernel: KernelOp) -> None:
        """A kernel that the module of the program is going to hold."""
        self._lowering.kernel(kernel)

    def program(self, module: ModuleOp) -> NativeProgram:
        """The program of a module of one loop program and its kernels."""
        lowered = self._lowering.module(module)
        objects = self._assembler.objects()
        library = load_objects(objects, self._target)
        callee, sites = Callee.of(lowered.program), lowered.host.sites
        return NativeProgram(
            callee, sites, lowered.scratch_bytes, bool(lowered.parallel), objects, self._target, library
        )


def target_of(packed: Packed) -> Target:
    """The machine that code was made for."""
    return Target(**packed.header["target"])


def check_runs_here(packed: Packed, what: str) -> None:
    """Raises CompileError for code that needs what this machine has not: `what` says which code."""
    made_for, here = target_of(packed), host_target()
    if missing := sorted(made_for.enabled - here.enabled):
        shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
        raise CompileError(
            f"{what} for a processor {made_for.cpu}; this one, {here.cpu}, has no {shown}: compile the program here"
        )
