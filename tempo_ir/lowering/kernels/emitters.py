"""Every op that has a tile form."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Operation

from tempo_ir.lowering.kernels import attend, draws, elementwise, reductions, shapes, softmax, weighted_sums
from tempo_ir.lowering.kernels.translator import Emitter

EMITTERS: Mapping[type[Operation], Emitter] = MappingProxyType(
    {
        **elementwise.EMITTERS,
        **reductions.EMITTERS,
        **softmax.EMITTERS,
        **weighted_sums.EMITTERS,
        **attend.EMITTERS,
        **shapes.EMITTERS,
        **draws.EMITTERS,
    }
)
