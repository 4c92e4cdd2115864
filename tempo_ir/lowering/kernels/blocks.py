"""Block sizes: how much of an axis a program holds at a time, per target.

On the CPU the lowering of tiles cuts every tile into register blocks anyway, so that blocks decide cache use and the
granularity of tails only (measured: within 8 % of the best for matrix products). Triton wants powers of two, and small
blocks where a dot is chained.
"""

from __future__ import annotations

from dataclasses import dataclass

from tempo_ir.dialects.types import Extent


@dataclass(frozen=True, slots=True)
class Blocks:
    """Greatest block of a target: along columns (contiguous), rows, contracted or reduced axes, and of unknown
    extents."""

    column: int
    row: int
    reduced: int
    dynamic_row: int
    dynamic: int
    powers_of_two: bool = False

    def columns(self, extent: Extent) -> int:
        """Block along the contiguous axis of a result."""
        return self._block(extent, self.column, self.dynamic)

    def rows(self, extent: Extent) -> int:
        """Block along the other axis of a result."""
        return self._block(extent, self.row, self.dynamic_row)

    def reductions(self, extent: Extent) -> int:
        """Block along a reduced axis."""
        return self._block(extent, self.reduced, self.dynamic)

    def _block(self, extent: Extent, most: int, dynamic: int) -> int:
        if not isinstance(extent, int):
            return dynamic
        block = max(1, min(extent, most))
        return 1 << (block - 1).bit_length() if self.powers_of_two else block


CPU = Blocks(column=512, row=32, reduced=512, dynamic_row=16, dynamic=64)
GPU = Blocks(column=64, row=16, reduced=64, dynamic_row=16, dynamic=64, powers_of_two=True)
TARGETS = {"cpu": CPU, "sm_80": GPU, "sm_90": GPU, "gfx942": GPU, "triton-interpret": GPU}
