"""What the generator knows of a value: where it stands, how large its elements are, whether they are exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from xdsl.ir import SSAValue

from tempo_ir.dialects.sdg import domain_of
from tempo_ir.dialects.types import Shape, Tensor, as_tensor, dtype_name, element, shape_of
from tempo_ir.index.expr import Expr, free_symbols

LARGEST = 40.0
"""Floats beyond it are squashed before they go on, so that rounding stays small and nothing overflows."""
EXACT_BITS: Mapping[str, int] = MappingProxyType({"f64": 20, "f32": 20, "f16": 9, "bf16": 6})
"""Of the 24 bits of an f32 (11 of an f16, 8 of a bf16): with no more, sums and products are exact in any order."""
ASSUMED_EXTENT = 8
"""How long an axis of dynamic extent is taken to be, in bounds on magnitudes."""


class Rounding(IntEnum):
    """The coarsest rounding that took part in a value."""

    DOUBLE = 0
    SINGLE = 1
    HALF = 2


ROUNDINGS: Mapping[str, Rounding] = MappingProxyType(
    {"f64": Rounding.DOUBLE, "f32": Rounding.SINGLE, "f16": Rounding.HALF, "bf16": Rounding.HALF}
)
"""That of an op on floats of each type."""


@dataclass(frozen=True)
class Numbers:
    """Bounds on every element, and how it was computed.

    `grid` is the number of fractional bits of values that are exact whatever the order of operations; None where
    rounding may differ.
    """

    low: float
    high: float
    grid: int | None = 0
    rounding: Rounding = Rounding.DOUBLE

    @property
    def magnitude(self) -> float:
        return max(abs(self.low), abs(self.high))

    def settled(self, dtype: str) -> Numbers:
        """These numbers as floats of a type: not called exact where its bits may not hold them."""
        if self.grid is not None and math.log2(max(self.magnitude, 1.0)) + self.grid <= EXACT_BITS[dtype]:
            return self
        return Numbers(self.low, self.high, None, max(self.rounding, ROUNDINGS[dtype]))

    def rounded(self, low: float, high: float) -> Numbers:
        """Other bounds, after a step that rounds."""
        return Numbers(low, high, None, self.rounding)

    def within(self, low: float, high: float) -> Numbers:
        """Other bounds, after a step that is exact on these numbers."""
        return Numbers(low, high, self.grid, self.rounding)


def union(numbers: Sequence[Numbers]) -> Numbers:
    """One of these."""
    return Numbers(min(n.low for n in numbers), max(n.high for n in numbers), finest(numbers), coarsest(numbers))


def finest(numbers: Sequence[Numbers]) -> int | None:
    """The grid that holds all of them; None where one is rounded."""
    grids = [n.grid for n in numbers if n.grid is not None]
    return max(grids) if len(grids) == len(numbers) else None


def coarsest(numbers: Sequence[Numbers]) -> Rounding:
    return max(n.rounding for n in numbers)


@dataclass(frozen=True)
class Value:
    """A value of the program that later ops may read."""

    ssa: SSAValue
    numbers: Numbers

    @property
    def dims(self) -> tuple[str, ...]:
        return domain_of(self.ssa).dims

    @property
    def type(self) -> Tensor:
        return as_tensor(self.ssa.type)

    @property
    def shape(self) -> Shape:
        return shape_of(self.ssa.type)

    @property
    def dtype(self) -> str:
        return dtype_name(element(self.ssa.type))

    @property
    def is_float(self) -> bool:
        return self.dtype in ROUNDINGS

    @property
    def is_exact(self) -> bool:
        return self.numbers.grid is not None

    @property
    def is_static(self) -> bool:
        return all(isinstance(extent, int) for extent in self.shape)

    @property
    def is_ragged(self) -> bool:
        """Whether an extent varies with a dim."""
        return any(isinstance(e, Expr) and free_symbols(e) & set(self.dims) for e in self.shape)


def length(extent: int | Expr) -> int:
    """An extent, or what a dynamic one is taken to be."""
    return extent if isinstance(extent, int) else ASSUMED_EXTENT


WILD = Numbers(-(2.0**63), 2.0**63)
"""Integers of which nothing is known; they wrap, so they are exact."""
BOOLEANS = Numbers(0, 1)
