"""A hash that is kept is that of the fields, and stays with the process."""

from __future__ import annotations

import copy
import pickle

import pytest

from tempo_ir.index import Domain, Space
from tempo_ir.index.expr import And, Binary, Compare, Const, Expr, MinMax, Or, Slice, Sym
from tempo_ir.index.hashing import HashedOnce

T, P = Sym("T"), Sym("P")


def values() -> list[HashedOnce]:
    """One of each class, made anew."""
    less: Compare = Compare("<", T, P)
    equal = Compare("=", Binary("%", T, Const(3)), Const(1))
    end: Expr = MinMax("min", (Binary("+", T, Const(1)), P))
    return [
        end,
        less,
        And((less, equal)),
        Or((less, equal)),
        Slice(Const(0), end, 2),
        Domain(("t",), (("t", Const(1), end),), less),
        Space((("t", T),), less),
    ]


@pytest.mark.parametrize("number", range(len(values())))
def test_equal_values_have_equal_hashes(number: int) -> None:
    first, second = values()[number], values()[number]
    assert first is not second
    kept = hash(first)
    assert hash(first) == kept == hash(second)
    assert first == second
    assert len({first, second, *values()}) == len(values())


@pytest.mark.parametrize("number", range(len(values())))
def test_a_copy_does_not_hold_the_hash(number: int) -> None:
    value = values()[number]
    hash(value)
    for made in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert made == value
        assert not hasattr(made, "_hash")
