"""`tile` kernels as Triton source, one file per kernel.

The same kernel prints 1:1: a tile op is a `tl` operation, a view's implied bounds become masks, offsets that may pass 2**31 are
computed in 64 bits. Nothing here imports triton but `library.py`, and the printer only reads its text.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.triton.printer import KernelPrinter

HEADER = "import triton\nimport triton.language as tl\n\n\n"


def kernel_source(kernel: KernelOp, precision: str = "ieee", wide_dots: bool = False) -> str:
    """The file of one kernel: imports, the kernel, then the helpers that it calls. See `KernelPrinter` for the options."""
    printer = KernelPrinter(kernel, precision, wide_dots)
    source = printer.source()
    return "\n\n".join([HEADER.rstrip("\n") + "\n", source, *library_sources(printer.library)])


def library_sources(names: Sequence[str]) -> list[str]:
    """The text of functions of `library.py`, in the order that they stand there."""
    text = Path(__file__).with_name("library.py").read_text()
    lines = text.splitlines()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name in names]
    return ["\n".join(lines[f.decorator_list[0].lineno - 1 : f.end_lineno]) + "\n" for f in functions]


def print_module(module: ModuleOp, stream: IO[str]) -> None:
    """Print every kernel of a module, each under a line that names its file."""
    for op in module.ops:
        if isinstance(op, KernelOp):
            print(f"# ---- {op.sym_name.data}.py", file=stream)
            print(kernel_source(op), file=stream)
