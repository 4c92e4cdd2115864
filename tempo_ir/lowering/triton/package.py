"""A program for a GPU as a Python package that stands alone: Triton kernels, one file each, the driver, a README.

    package/__init__.py  driver.py  support.py  README.md  kernels/contract_add_tanh.py ...

It needs torch, triton and numpy, and nothing of tempo_ir.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.index import TRUE
from tempo_ir.lowering.triton import kernel_sources
from tempo_ir.lowering.triton.driver import driver_text, parameter_names, program_name
from tempo_ir.lowering.triton.printer import DEFAULT_STYLE, KernelSource, Style

SUPPORT = Path(__file__).with_name("package_support.py")


def package_files(module: ModuleOp, style: Style = DEFAULT_STYLE) -> dict[str, str]:
    """The text of each file, by its path in the package.

    `module` holds one loop program whose kernels are lowered for a GPU. Raises DiagnosticException for what the GPU
    target cannot say.
    """
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    name = program_name(program)
    sources = kernel_sources(module, style)
    files = {
        "__init__.py": f'"""The program @{program.sym_name.data}, written by tempo_ir; see README.md."""\n\n'
        f'from .driver import {name}\n\n__all__ = ["{name}"]\n',
        "driver.py": driver_text(module, style.precision),
        "support.py": SUPPORT.read_text(),
        "README.md": readme_text(program, parameter_names(module).values(), sources),
        "kernels/__init__.py": '"""The kernels that the driver launches, one file each."""\n',
    }
    return files | {f"kernels/{source.name}.py": source.text for source in sources}


def write_package(module: ModuleOp, directory: Path, style: Style = DEFAULT_STYLE) -> None:
    """Write the package into a directory, which is made. Raises as `package_files` does."""
    for path, text in package_files(module, style).items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def readme_text(program: loop.ProgramOp, parameters: Iterable[str], kernels: Iterable[KernelSource]) -> str:
    """How to run the package."""
    name = program_name(program)
    named = [op for op in program.body.block.ops if isinstance(op, loop.InputOp | loop.ParameterOp)]
    bounds = "".join(f", {bound}=..." for bound in parameters)
    arrays = ", ".join(f'"{op.key.data}": ...' for op in named[:2]) + (", ..." if len(named) > 2 else "")
    needs = f" The bounds satisfy `{program.space.where}`." if program.space.where != TRUE else ""
    listed = "".join(f"| `{kernel.name}` | {kernel.computes} | {kernel.warps} |\n" for kernel in kernels)
    return f"""# {name}

A program in Triton: `driver.py` has its loops, `kernels/` what they launch. It needs torch and triton. A kernel is
compiled when it is first launched, and bound: `Bound` in `support.py`. On a GPU the steps of a loop are repeated as
CUDA graphs (`Steps`); the kernels called `next_...` compute the scalars of a step, which the others read from memory.

```python
from PACKAGE import {name}          # PACKAGE: the name of this directory

outputs = {name}({{{arrays}}}{bounds})
```

The arrays are contiguous torch tensors on one GPU, of the shapes that the docstring of `{name}` lists; the outputs are
tensors by name.{needs}

Without a GPU the same files run in Triton's interpreter, slowly, with tensors on the CPU: set `TRITON_INTERPRET=1` in
the environment before Python starts. (Its products of bf16 are wrong.)

| kernel | computes | warps |
|---|---|---|
{listed}"""
