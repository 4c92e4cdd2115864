# pyright: basic
"""
LLVM through llvmlite: the only module that imports it. Text becomes an object (`compile_object`), an object becomes
callable functions (`load_object`); the two are separate so that objects can be cached on disk.

Two traps of llvmlite's MCJIT are dealt with here: an engine owns its TargetMachine, so each gets its own; function
pointers die with their engine, so `Library` keeps it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from tempo_ir.lowering.llvm.target import Target


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def host_target() -> Target:
    """The machine this process runs on."""
    _initialize()
    features = llvm.get_host_cpu_features()
    wide = features.get("avx512f", False)
    lanes = 16 if wide else 8 if features.get("avx2", False) else 4
    registers = 32 if wide or "aarch64" in llvm.get_process_triple() else 16
    flat = features.flatten() + (",-prefer-256-bit" if wide else "")
    return Target(llvm.get_host_cpu_name(), flat, lanes, registers)


def relax_instruction() -> str:
    """The intrinsic by which a busy loop tells the processor of this machine; "" where there is none."""
    architecture = llvm.get_process_triple().partition("-")[0]
    hint = "@llvm.aarch64.hint(i32 1)"
    return {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": hint, "arm64": hint}.get(architecture, "")


def llvm_version() -> str:
    """For cache keys: objects of another LLVM are not to be trusted."""
    return ".".join(map(str, llvm.llvm_version_info))


def _target_machine(target: Target):
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, jit=True, codemodel="jitdefault"
    )


def _optimised(ir: str, machine) -> llvm.ModuleRef:
    """Parse and verify; `sroa` is all that explicit-vector code needs before code generation."""
    module = llvm.parse_assembly(ir)
    module.triple = machine.triple
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return module


def compile_object(ir: str, target: Target) -> bytes:
    """Machine code of a module of LLVM IR, as an object file. Raises RuntimeError where the text is no valid IR."""
    machine = _target_machine(target)
    return machine.emit_object(_optimised(ir, machine))


def compile_assembly(ir: str, target: Target) -> str:
    """The same as text, to read."""
    machine = _target_machine(target)
    return machine.emit_assembly(_optimised(ir, machine))


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
    for name, address in (symbols or {}).items():
        llvm.add_symbol(name, address)
    machine = _target_machine(target)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Library(engine)
