"""The CPU target: kernels and host program as one native function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.engine import Assembler, Library, host_target, load_objects
from tempo_ir.lowering.llvm.host import HOST
from tempo_ir.lowering.llvm.module import LoweredModule, ModuleLowering
from tempo_ir.lowering.llvm.parallel import scratch_pitch
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.calls import Call
from tempo_ir.runtime.memory import aligned_bytes
from tempo_ir.runtime.threads import borrowed_team, thread_count

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
_HOST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class NativeProgram:
    """A compiled loop program."""

    lowered: LoweredModule
    library: Library

    @property
    def program(self) -> loop.ProgramOp:
        """The loop program."""
        return self.lowered.program

    @property
    def text(self) -> str:
        """The LLVM text."""
        return self.lowered.text

    @staticmethod
    def compile(module: ModuleOp) -> NativeProgram:
        """Machine code of a module of one loop program and its kernels."""
        with NativeCompiler() as compiler:
            return compiler.program(module)

    def run(self, call: Call) -> None:
        """Run the host program of a call. Raises what Python code in it raised."""
        call.make_objects()
        threads = thread_count()
        scratch = aligned_bytes(threads * scratch_pitch(self.lowered.scratch_bytes))
        addresses = [*(_address(call.flat[buffer]) for buffer in self.lowered.host.buffers), _address(scratch), 0]
        buffers = (ctypes.c_void_p * len(addresses))(*addresses)
        scalars = (ctypes.c_int64 * max(1, len(self.lowered.host.scalars)))(*call.scalars)
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
            where = self.lowered.host.sites[number]
            count = len(where.iterators)
            return lambda symbols: call.run_site(where, symbols[:count])

        return [_CALLBACK(ask), *(_CALLBACK(site(number)) for number in range(len(self.lowered.host.sites)))]


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
        return NativeProgram(lowered, load_objects(self._assembler.objects(), self._target))


def _address(array: Array) -> int:
    return array.ctypes.data
