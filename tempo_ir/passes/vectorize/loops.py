"""Products whose rows a loop takes one point after the other."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable

from tempo_ir.dialects.sdg import AccessOp, ContractOp, SdgOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.graphs import reachable
from tempo_ir.index import free_symbols
from tempo_ir.passes.utilities import is_slice


def rows_of_a_point(op: ContractOp, dim: str) -> int:
    """How many rows a product has at each point of a dim, of which each is multiplied with all of what is the same at
    every point; 0 where nothing is."""
    inputs, output = op.letters
    shared = [
        letters for letters, access in zip(inputs, op.accesses, strict=True) if dim not in free_symbols(access.index)
    ]
    extents = zip(output, shape_of(op.result.type), strict=True)
    rows = [extent for letter, extent in extents if not any(letter in letters for letters in shared)]
    return math.prod(extent for extent in rows if isinstance(extent, int)) if shared else 0


def is_taken_by_loops(op: SdgOp, dim: str, able: Container[SdgOp], recurrent: Container[SdgOp]) -> bool:
    """Whether all that is made of an op by those that could be vectorised along a dim with it is read by ops that recur
    along the dim, each row by itself."""

    def readers(producer: SdgOp) -> Iterable[SdgOp]:
        users = [use.operation for result in producer.results for use in result.uses]
        return [user for user in users if isinstance(user, SdgOp) and user in able]

    taken = False
    for producer in reachable([op], readers):
        for use in [use for result in producer.results for use in result.uses]:
            user = use.operation
            if not isinstance(user, AccessOp):
                return False
            if user in able:
                continue
            entry = user.accesses[use.index].index[producer.domain.dims.index(dim)]
            if user not in recurrent or is_slice(entry):
                return False
            taken = True
    return taken
