# pyright: basic
"""
LLVM through llvmlite: the only module that imports it. Text becomes an object (`compile_object`), an object becomes
callable functions (`load_object`); the two are separate so that objects can be cached on disk.

Code generation runs without Python's lock, so that an `Assembler` has objects made while Python writes more text. All
of llvmlite is behind one lock of its own: one thread is as good as several.

Two traps of llvmlite's MCJIT are dealt with here: an engine owns its TargetMachine, so each gets its own; function
pointers die with their engine, so `Library` keeps it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import RLock
from types import TracebackType
from typing import Self

import llvmlite.binding as llvm

from tempo_ir.lowering.llvm.target import OPTIMISED, PLAIN, Target


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _initialize_others() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def host_target() -> Target:
    """The machine this process runs on."""
    _initialize()
    features = llvm.get_host_cpu_features()
    wide = features.get("avx512f", False)
    lanes = 16 if wide else 8 if features.get("avx2", False) else 4
    registers = 32 if wide or "aarch64" in llvm.get_process_triple() else 16
    flat = features.flatten() + (",-prefer-256-bit" if wide else "")
    return Target(llvm.get_host_cpu_name(), flat, lanes, registers)


def relax_instruction(triple: str = "") -> str:
    """The intrinsic by which a busy loop tells the processor, by default of this machine; "" where there is none."""
    architecture = (triple or llvm.get_process_triple()).partition("-")[0]
    hint = "@llvm.aarch64.hint(i32 1)"
    return {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": hint, "arm64": hint}.get(architecture, "")


def llvm_version() -> str:
    """For cache keys: objects of another LLVM are not to be trusted."""
    return ".".join(map(str, llvm.llvm_version_info))


def process_triple() -> str:
    """Architecture, vendor and operating system of this process: how its objects are written."""
    return llvm.get_process_triple()


def _target_machine(target: Target, level: int = OPTIMISED):
    _initialize()
    if target.triple:
        _initialize_others()
    machine = llvm.Target.from_triple(target.triple) if target.triple else llvm.Target.from_default_triple()
    return machine.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, jit=True, codemodel="jitdefault"
    )


@lru_cache(maxsize=8)
def _assembling_machine(target: Target, level: int):
    """A machine to make objects with, one after the other: a new one takes as long as a short module."""
    return _target_machine(target, level)


_SETTINGS = RLock()
"""Held by who has changed LLVM's settings, which are those of the process."""


def _before_fork() -> None:
    """A fork waits for code that another thread is making: the child has not that thread, and would wait for ever for
    the locks that it holds, llvmlite's own too."""
    _SETTINGS.acquire()
    llvm.ffi.lib._lock.__enter__()


def _after_fork() -> None:
    """Of parent and child."""
    llvm.ffi.lib._lock.__exit__(None, None, None)
    _SETTINGS.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@contextmanager
def _addresses_as_written() -> Generator[None]:
    """Code generation without loop strength reduction. Addresses are written so that what a loop does not change
    stands before it: no kernel of the benchmarks runs slower without, and it was a third of the time to compile them.
    Who else generates code by LLVM in this process has it as before."""
    with _SETTINGS:
        llvm.set_option("tempo_ir", "-disable-lsr=true")
        try:
            yield
        finally:
            llvm.set_option("tempo_ir", "-disable-lsr=false")


def _optimised(ir: str, machine, level: int) -> llvm.ModuleRef:
    """Parse and verify; `sroa` is all that explicit-vector code needs before code generation."""
    module = llvm.parse_assembly(ir)
    module.triple = machine.triple
    module.verify()
    if level > PLAIN:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return module


def compile_object(ir: str, target: Target, level: int = OPTIMISED) -> bytes:
    """Machine code of a module of LLVM IR, as an object file. Raises RuntimeError where the text is no valid IR."""
    machine = _assembling_machine(target, level)
    module = _optimised(ir, machine, level)
    with _addresses_as_written():
        return machine.emit_object(module)


def compile_assembly(ir: str, target: Target, level: int = OPTIMISED) -> str:
    """The same as text, to read."""
    machine = _target_machine(target, level)
    module = _optimised(ir, machine, level)
    with _addresses_as_written():
        return machine.emit_assembly(module)


class Assembler:
    """Makes objects of modules in the order given, beside the thread that gives them.

    `with Assembler(target) as assembler: assembler.add(text); ...; assembler.objects()`
    """

    def __init__(self, target: Target):
        self._target = target
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tempo-assembler")
        self._objects: list[Future[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._pool.shutdown(cancel_futures=error is not None)

    def add(self, ir: str, level: int = OPTIMISED) -> None:
        """Have the object of a module made."""
        self._objects.append(self._pool.submit(compile_object, ir, self._target, level))

    def objects(self) -> tuple[bytes, ...]:
        """The objects of all modules, once they are made. Raises what `compile_object` does."""
        return tuple(made.result() for made in self._objects)


@dataclass(frozen=True)
class Library:
    """Loaded machine code. Addresses are valid as long as this object lives."""

    engine: llvm.ExecutionEngine

    def address(self, name: str) -> int:
        """Where a function is. Raises KeyError if there is none of that name."""
        address = self.engine.get_function_address(name)
        if not address:
            raise KeyError(f"no function {name} in the object")
        return address

    def function(self, name: str, *argument_types: type) -> Callable[..., None]:
        """A function without result, callable with ctypes values; the GIL is released while it runs."""
        function = ctypes.CFUNCTYPE(None, *argument_types)(self.address(name))
        # the machine code stays as long as the function
        function.library = self  # pyright: ignore[reportAttributeAccessIssue]
        return function


def load_object(code: bytes, target: Target, symbols: Mapping[str, int] | None = None) -> Library:
    """Link an object into this process; `symbols` are addresses of functions it calls beside those of the C library."""
    return load_objects([code], target, symbols)


def load_objects(codes: Sequence[bytes], target: Target, symbols: Mapping[str, int] | None = None) -> Library:
    """Link objects that may call each other."""
    for name, address in (symbols or {}).items():
        llvm.add_symbol(name, address)
    machine = _target_machine(target)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for code in codes:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Library(engine)
