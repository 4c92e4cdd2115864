"""A program for a GPU as a Python package that stands alone: Triton kernels, one file each, the driver, a README.

    package/__init__.py  driver.py  support.py  README.md  kernels/contract_add_tanh.py ...

It needs torch, triton and numpy, and nothing of tempo_ir.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.index import TRUE
from tempo_ir.lowering.triton.driver import driver_text, parameter_names, program_name
from tempo_ir.lowering.triton.library_text import library_file
from tempo_ir.lowering.triton.module import kernel_sources
from tempo_ir.lowering.triton.style import DEFAULT_STYLE, KernelSource, Style

SUPPORT = Path(__file__).with_name("package_support.py")


@dataclass(frozen=True, slots=True)
class Package:
    """A package as text, and how it is called.

    `files` by path; `function` is what the package exports, `parameters` names its arguments by bound; where data ends
    a dim (`ends`) it tells the number of steps. `kernels` are those of `files`.
    """

    files: Mapping[str, str]
    function: str
    parameters: Mapping[str, str]
    ends: bool
    kernels: tuple[KernelSource, ...]

    @staticmethod
    def of(module: ModuleOp, style: Style = DEFAULT_STYLE) -> Package:
        """The package of a module of one loop program whose kernels are lowered for a GPU. Raises DiagnosticException
        for what the GPU target cannot say."""
        (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
        name, parameters = program_name(program), parameter_names(module)
        sources = kernel_sources(module, style)
        files = {
            "__init__.py": f'"""The program @{program.sym_name.data}, written by tempo_ir; see README.md."""\n\n'
            f'from .driver import {name}\n\n__all__ = ["{name}"]\n',
            "driver.py": driver_text(module),
            "support.py": SUPPORT.read_text(),
            "README.md": readme_text(program, parameters.values(), sources),
            "kernels/__init__.py": '"""The kernels that the driver launches, one file each."""\n'
            + "".join(["\n", *(f"from . import {source.name} as {source.name}\n" for source in sources)]),
        }
        called = sorted({name for source in sources for name in source.calls})
        if called:
            files[kernel_file("library")] = library_file(called)
        files |= {kernel_file(source.name): source.text for source in sources}
        return Package(files, name, parameters, program.ending is not None, tuple(sources))

    @property
    def parts(self) -> dict[str, Any]:
        """All of it as JSON can have it."""
        kernels = [{**asdict(replace(kernel, text="")), "aligned": sorted(kernel.aligned)} for kernel in self.kernels]
        return {**asdict(replace(self, kernels=())), "kernels": kernels}

    @staticmethod
    def of_parts(parts: dict[str, Any]) -> Package:
        """The package of such parts."""
        kernels: list[KernelSource] = []
        for kernel in parts["kernels"]:
            parameters = tuple((name, kind) for name, kind in kernel["parameters"])
            text = parts["files"][kernel_file(kernel["name"])]
            typed: dict[str, Any] = {"parameters": parameters, "aligned": frozenset(kernel["aligned"]), "text": text}
            typed["calls"] = tuple(kernel["calls"])
            typed["choices"] = tuple((warps, stages) for warps, stages in kernel["choices"])
            typed["calls"] = tuple(kernel["calls"])
            typed["choices"] = tuple((warps, stages) for warps, stages in kernel["choices"])
            kernels.append(KernelSource(**(kernel | typed)))
        listed: dict[str, Any] = {"kernels": tuple(kernels)}
        return Package(**(parts | listed))

    def write(self, directory: Path) -> None:
        """Write the files into a directory, which is made. Raises OSError."""
        for path, text in self.files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def kernel_file(name: str) -> str:
    """The file of a kernel."""
    return f"kernels/{name}.py"


def write_package(module: ModuleOp, directory: Path, style: Style = DEFAULT_STYLE) -> None:
    """Write the package of a module into a directory, which is made. Raises as `Package.of` does."""
    Package.of(module, style).write(directory)


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
CUDA graphs (`Steps`); the kernels called `next_...` compute the scalars of a step, which the others read from memory:
`scalars_ptr` is the table, `at` where a launch's stand in it.

A kernel's file begins with the sizes of its blocks (`BLOCK_...`; the grids of `driver.py` go with them) and with
`num_warps` and `num_stages`, which may be changed. The comment above its function names the operations it comes from,
the lines of the program, and what the programs of its grid stand for: `8 (n by BLOCK_N)`, `4 (h)`. The functions in
`kernels/library.py` are those that Triton lacks, or means otherwise, such as a maximum that keeps NaN.

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
