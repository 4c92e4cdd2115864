"""The CPU target: kernels and host program as one native function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.engine import Assembler, Library, host_target, load_objects
from tempo_ir.lowering.llvm.host import HOST, Site
from tempo_ir.lowering.llvm.module import ModuleLowering
from tempo_ir.lowering.llvm.parallel import scratch_pitch
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.calls import Call, Callee
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.memory import aligned_bytes
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

    def run(self, call: Call) -> None:
        """Run the host program of a call. Raises what Python code in it raised."""
        call.make_objects()
        threads = min(thread_count(), MOST_THREADS if self.is_shared else 1)
        scratch = aligned_bytes(threads * scratch_pitch(self.scratch_bytes))
        addresses = [*(_address(call.flat[buffer.value]) for buffer in self.callee.buffers), _address(scratch), 0]
        buffers = (ctypes.c_void_p * len(addresses))(*addresses)
        numbers = call.scalars
        scalars = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        callbacks = self._callbacks(call)
        pointers = [ctypes.cast(callback, ctypes.c_void_p).value for callback in callbacks]
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        function = _HOST(self.library.address(HOST))
        with call.interruptible(), borrowed_team(threads) as buffers[len(addresses) - 1]:
            function(ctypes.addressof(buffers), ctypes.addressof(scalars), ctypes.addressof(table))
        call.finish()

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

    def __init__(self) -> None:
        self._target = host_target()
        self._assembler = Assembler(self._target)
        self._lowering = ModuleLowering(self._target, self._assembler.add)

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


def _address(array: Array) -> int:
    return array.ctypes.data
