"""What all ops have in common."""

from __future__ import annotations

import pytest

from tempo_ir.dialects.loop import Loop
from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.sdg import NegOp, Sdg
from tempo_ir.dialects.tile import Tile


@pytest.mark.parametrize("dialect", [Sdg, Loop, Tile], ids=lambda dialect: dialect.name)
def test_all_ops_are_nominal(dialect) -> None:
    """Their kind and their identity are Python's own."""
    for op in dialect.operations:
        assert issubclass(op, NominalOperation), op.name
        assert op.__hash__ is object.__hash__, op.name


def test_kinds_are_those_of_the_bases() -> None:
    assert issubclass(NegOp, NominalOperation)
    assert not issubclass(int, NominalOperation)
    assert not isinstance(3, NegOp)
