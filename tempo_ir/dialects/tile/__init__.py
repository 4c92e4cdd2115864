"""
The `tile` dialect: kernels at Triton's level, the last IR before text for a target.

A kernel is a grid of programs over tiles: values of static shape and rank 1 or 2 (scalars are plain builtin types),
read from and written to views of memory. Invariants:

- An op's meaning does not depend on the target or on block sizes; those are chosen before, per target.
- Masks are implied by the sizes of views (`memory`), never written.
- Elements: i1, i8 to i64, ui8 to ui64, f16, bf16, f32, f64; `index` for addresses, as scalars only. f16 and bf16 may be
  computed in f32 within a kernel; a cast to them rounds.
- Integers wrap, never trap; max, min, argmax propagate NaN.

`builder.KernelBuilder` writes kernels in Python; `tempo_ir.reference.tile` runs them in numpy.
"""

from xdsl.ir import Dialect

from tempo_ir.dialects.tile.attributes import (
    IntegersAttr,
    PointerType,
    ReduceKindAttr,
    TileType,
    ViewType,
)
from tempo_ir.dialects.tile.elementwise import ELEMENTWISE
from tempo_ir.dialects.tile.memory import MEMORY
from tempo_ir.dialects.tile.shape import SHAPE
from tempo_ir.dialects.tile.structure import STRUCTURE

Tile = Dialect(
    "tile",
    [*STRUCTURE, *MEMORY, *SHAPE, *ELEMENTWISE],
    [TileType, PointerType, ViewType, IntegersAttr, ReduceKindAttr],
)

__all__ = ["Tile"]
