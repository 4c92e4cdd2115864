"""The CPU target: kernels and host program as one native function."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.engine import Assembler, Library, host_target, load_objects, process_triple
from tempo_ir.lowering.llvm.host import HOST, Site
from tempo_ir.lowering.llvm.module import ModuleLowering
from tempo_ir.lowering.llvm.parallel import scratch_pitch
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.reference.calls import Outputs
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.calls import BRIEF, Request, Workspace, Workspaces
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.frames import Callee, Frame
from tempo_ir.runtime.packed import Packed, packed_calls, unpacked_calls
from tempo_ir.runtime.threads import MOST_THREADS, borrowed_team, thread_count

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

    def execute(self, frame: Frame, request: Request, workspaces: Workspaces, clocks: Array | None = None) -> Outputs:
        """The outputs of a call of the bounds of a frame, in memory of `workspaces`; `clocks` are the numbers of a
        program that is clocked. Raises CallError where the user's number of threads is none, and what Python code in
        the call raises."""
        threads = min(thread_count(), MOST_THREADS) if self.is_shared else 1
        work = workspaces.take(self.callee, frame, self.sites, threads * scratch_pitch(self.scratch_bytes))
        try:
            if clocks is not None:
                work.set_clocks(clocks)
            if threads == 1:
                self._run(work, request, 0)
            else:
                with borrowed_team(threads) as team:
                    self._run(work, request, team)
            return work.results(request)
        finally:
            workspaces.give(work)

    def _run(self, work: Workspace, request: Request, team: int) -> None:
        """Where calls were so short that Python hears of Ctrl-C soon enough, nothing is done for it."""
        work.fill(request, team)
        frame = work.frame
        if frame.seconds < BRIEF:
            self._function(*work.tables)
            return
        begin = time.perf_counter()
        with work.interruptible():
            self._function(*work.tables)
        if not self.sites:
            frame.seconds = min(frame.seconds, time.perf_counter() - begin)

    @cached_property
    def _function(self) -> Callable[[int, int, int], int]:
        return _HOST(self.library.address(HOST))


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
    """Raises CompileError for code of another architecture or operating system, or that needs what this processor has
    not: `what` says which code."""
    system = packed.header.get("system", "another system")
    if system != process_triple():
        raise CompileError(f"{what} for {system}, this is {process_triple()}: compile the program here")
    made_for, here = target_of(packed), host_target()
    if missing := sorted(made_for.enabled - here.enabled):
        shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
        raise CompileError(
            f"{what} for a processor {made_for.cpu}; this one, {here.cpu}, has no {shown}: compile the program here"
        )
