"""A module of tile kernels and a loop program as Triton source."""

from __future__ import annotations

from typing import IO

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.loop import ProgramOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.triton.hints import aligned_arguments
from tempo_ir.lowering.triton.library_text import library_file
from tempo_ir.lowering.triton.printer import print_kernel
from tempo_ir.lowering.triton.scalars import stepped_arguments
from tempo_ir.lowering.triton.steps import step_sources
from tempo_ir.lowering.triton.style import DEFAULT_STYLE, KernelSource, Style


def kernel_sources(module: ModuleOp, style: Style = DEFAULT_STYLE) -> list[KernelSource]:
    """Every kernel of a module, then those that compute the scalars of its program. Raises DiagnosticException for what
    Triton cannot say."""
    aligned, stepped = aligned_arguments(module), stepped_arguments(module)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    sources = [
        print_kernel(kernel, style, aligned.get(name, frozenset()), stepped.get(name, ()))
        for name, kernel in kernels.items()
    ]
    return [*sources, *(step_sources(module) if any(isinstance(op, ProgramOp) for op in module.ops) else [])]


def print_module(module: ModuleOp, stream: IO[str], style: Style = DEFAULT_STYLE) -> None:
    """Print every kernel of a module, and the driver of its loop program, each under a line that names its file."""
    from tempo_ir.lowering.triton.driver import driver_text

    sources = kernel_sources(module, style)
    for source in sources:
        print(f"# ---- {source.name}.py", file=stream)
        print(source.text, file=stream)
    if called := sorted({name for source in sources for name in source.calls}):
        print("# ---- library.py", file=stream)
        print(library_file(called), file=stream)
    if any(isinstance(op, ProgramOp) for op in module.ops):
        print("# ---- driver.py", file=stream)
        print(driver_text(module), file=stream)
