"""
Tile kernels and host programs as LLVM IR with explicit vectors: the default target.

The way of a kernel (`kernel.lower_kernel`): `simplify` inlines loops of one trip; `plan` decides which tiles are kept
in scratch and which are computed where they are used; `statements` walks the ops; every store and every kept tile is a
`sink`, a nest of loops over blocks of registers, for which `lanes` picks the axis of the vectors; the values of a block
are asked of `evaluate`, whose handlers are in `access`, `values`, `elementwise`, `contraction` and `random`. Addresses
are the sums of `address`; `text` prints. `engine` is the one module that touches llvmlite.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def print_module(module: ModuleOp, output: IO[str]) -> None:
    """Print a module as LLVM IR for a CPU with AVX-512 (`tempo-opt -t llvm`): kernels, and the host program if it has
    one."""
    from tempo_ir.dialects.loop import ProgramOp
    from tempo_ir.dialects.tile.structure import KernelOp
    from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
    from tempo_ir.lowering.llvm.module import lower_module
    from tempo_ir.lowering.llvm.target import AVX512

    if sum(isinstance(op, ProgramOp) for op in module.ops) == 1:
        output.write(lower_module(module, AVX512).text)
        return
    codes = [lower_kernel(op, AVX512) for op in module.walk() if isinstance(op, KernelOp)]
    output.write(module_text(codes, AVX512))
