"""The CPU target: kernels and host program as one native function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.lowering.llvm.engine import Library, compile_object, host_target, load_object
from tempo_ir.lowering.llvm.host import HOST, HostProgram
from tempo_ir.lowering.llvm.module import lower_module
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

    program: loop.ProgramOp
    host: HostProgram
    text: str
    library: Library
    scratch_bytes: int

    @staticmethod
    def compile(module: ModuleOp) -> NativeProgram:
        """Machine code of a module of one loop program and its kernels."""
        target = host_target()
        lowered = lower_module(module, target)
        library = load_object(compile_object(lowered.text, target), target)
        return NativeProgram(lowered.program, lowered.host, lowered.text, library, lowered.scratch_bytes)

    def run(self, call: Call) -> None:
        """Run the host program of a call. Raises what Python code in it raised."""
        call.make_objects()
        threads = thread_count()
        scratch = aligned_bytes(threads * scratch_pitch(self.scratch_bytes))
        addresses = [*(_address(call.flat[buffer]) for buffer in self.host.buffers), _address(scratch), 0]
        buffers = (ctypes.c_void_p * len(addresses))(*addresses)
        scalars = (ctypes.c_int64 * max(1, len(self.host.scalars)))(*call.scalars)
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
            where = self.host.sites[number]
            count = len(where.iterators)
            return lambda symbols: call.run_site(where, symbols[:count])

        return [_CALLBACK(ask), *(_CALLBACK(site(number)) for number in range(len(self.host.sites)))]


def _address(array: Array) -> int:
    return array.ctypes.data
