"""Compile one kernel and call it on numpy arrays: for tests, measurements and trying things out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.engine import Library, compile_object, host_target, load_object
from tempo_ir.lowering.llvm.kernel import KernelCode, lower_kernel, module_text
from tempo_ir.lowering.llvm.target import Target

ALIGNMENT = 64

C_TYPES = {
    "ptr": ctypes.c_void_p,
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel in machine code: `compiled(*arguments, grid=(4, 2))` runs every program of the grid in this thread."""

    code: KernelCode
    library: Library
    scratch: np.ndarray[Any, np.dtype[np.uint8]]

    def __call__(self, *arguments: np.ndarray[Any, Any] | float, grid: Sequence[int] = ()) -> None:
        """Arrays (contiguous) for pointers and numbers for scalars, in the order of the kernel's arguments."""
        function, values = self.prepare(*arguments, grid=grid)
        function(*values)

    def prepare(self, *arguments: np.ndarray[Any, Any] | float, grid: Sequence[int] = ()) -> tuple[Any, list[Any]]:
        """The C function and the values to call it with."""
        if len(grid) != self.code.grid_axes:
            raise ValueError(f"{self.code.name} has a grid of {self.code.grid_axes} axes, not {len(grid)}")
        values: list[Any] = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]
        values += [bound for extent in grid for bound in (0, extent)]
        values.append(aligned_address(self.scratch))
        kinds = [C_TYPES[kind] for _, kind in self.code.parameters]
        return self.library.function(self.code.name, *kinds), values


def compile_kernel(kernel: KernelOp, target: Target | None = None) -> CompiledKernel:
    """Compile a kernel for this machine, or for a lesser `target` that it can run."""
    target = host_target() if target is None else target
    code = lower_kernel(kernel, target)
    library = load_object(compile_object(module_text([code], target), target), target)
    return CompiledKernel(code, library, np.empty(code.scratch_bytes + ALIGNMENT, np.uint8))


def aligned_address(memory: np.ndarray[Any, Any]) -> int:
    """The first aligned address in the memory of an array."""
    return -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of an array that starts at a multiple of 64 bytes, as kernels want their buffers for speed."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = aligned_address(memory) - memory.ctypes.data
    result = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result
