"""A module of one loop program and its tile kernels as one LLVM module."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.lowering.llvm.host import DECLARATIONS, HostProgram, kernels_of, lower_host
from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
from tempo_ir.lowering.llvm.parallel import can_split, parallel_text
from tempo_ir.lowering.llvm.target import Target


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The text of a module, its program, and the scratch that its kernels need, each thread of its own."""

    program: loop.ProgramOp
    host: HostProgram
    text: str
    scratch_bytes: int


def lower_module(module: ModuleOp, target: Target) -> LoweredModule:
    """The LLVM module of the one loop program in a module."""
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    kernels = kernels_of(list(module.ops))
    split = {name for name, kernel in kernels.items() if can_split(kernel)}
    host = lower_host(program, kernels, split, target)
    codes = {name: lower_kernel(kernel, target) for name, kernel in kernels.items()}
    parallel = [parallel_text(kernels[name], codes[name], target) for name in kernels if name in split]
    kernel_text = module_text(codes.values(), target, parallel)
    declarations = [line for line in DECLARATIONS if line.split("@")[1].split("(")[0] not in kernel_text]
    text = "\n".join([kernel_text, *declarations, host.text])
    return LoweredModule(program, host, text, max((code.scratch_bytes for code in codes.values()), default=0))
