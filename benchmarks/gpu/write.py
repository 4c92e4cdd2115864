"""Packages, inputs and expected outputs for a GPU: `python -m benchmarks.gpu.write DIR [NAME...]`.

It runs in the CPU environment; without names all programs are written.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tempo_ir as tp
from benchmarks.gpu.programs import CASES, Case
from tempo_ir.dialects.sdg import InputOp, ParameterOp
from tempo_ir.dialects.sdg.base import space_of
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.reference.dtypes import numpy_dtype
from tempo_ir.tools import programs

LLAMA = "llama, 2 layers"
GIVEN = (InputOp, ParameterOp)


def main() -> int:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    names = sys.argv[2:] or (*CASES, LLAMA)
    listed = [write_case(directory, name, CASES[name] if name in CASES else llama()) for name in names]
    (directory / "cases.json").write_text(json.dumps(listed, indent=1))
    return 0


def llama() -> Case:
    """The example."""
    example, _ = programs.load_python(Path("examples/llama.py"), None, {"layers": 2})
    return Case(lambda: example.source, {"T": 12, "P": 3})


def write_case(directory: Path, name: str, case: Case) -> dict[str, object]:
    """One package with its arrays; what `cases.json` says of it."""
    package = "".join(letter if letter.isalnum() else "_" for letter in name)
    executable = tp.compile(case.make())
    executable.write_triton(directory / package)
    loaded = programs.LoadedProgram(executable.graph, executable.module)  # of IR all arrays are drawn, parameters too
    if case.small:
        inputs = programs.complete_inputs(loaded, {}, case.small, 0)
        state = loaded.initial(0)
        outputs = executable(**inputs, **case.small, state=state, seed=0)
        write_arrays(directory / f"{package}.inputs.npz", {**inputs, **state})
        write_arrays(directory / f"{package}.outputs.npz", outputs)
    return {
        "name": name,
        "package": package,
        "function": executable.graph.sym_name.data,
        "arrays": {op.key.data: described(op) for op in executable.graph.body.block.ops if isinstance(op, GIVEN)},
        "small": case.small,
        "large": case.large,
        "longer": case.longer,
        "tolerance": case.tolerance,
        "beside": case.beside,
        "settings": case.settings,
    }


def described(op: InputOp | ParameterOp) -> dict[str, object]:
    """An array: its element type, and its extents, numbers or bounds."""
    space, shape = space_of(op), shape_of(op.result.type)
    assert space is not None
    extents = [str(space.bound(dim)) for dim in op.domain.dims]
    kind = numpy_dtype(element(op.result.type)).name
    return {
        "type": kind,
        "shape": [*extents, *(extent if isinstance(extent, int) else str(extent) for extent in shape)],
    }


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """A file of arrays by name; bf16, which numpy's files have not, as f32."""
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array.astype(np.float32) if array.dtype.name == "bfloat16" else array)


if __name__ == "__main__":
    sys.exit(main())
