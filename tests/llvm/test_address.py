"""Address algebra and what is proved from the bounds of registers."""

from __future__ import annotations

import pytest

from tempo_ir.lowering.llvm.address import ZERO, Bounds, Linear, linear, materialize, product
from tempo_ir.lowering.llvm.text import Register, Text


@pytest.fixture
def text() -> Text:
    return Text(16)


def register(text: Text, name: str, level: int = 0) -> Register:
    return Register(f"%{name}", "i64", 0, level, text)


def test_sums(text: Text):
    a, b = (linear(register(text, name)) for name in "ab")
    assert a + b - a == b
    assert (a + 3).times(2) == a.times(2) + 6
    assert a - a == ZERO
    assert hash(a + b) == hash(b + a)
    assert product(text, a, Linear(4)) == a.times(4) == product(text, Linear(4), a)


def test_terms_of_outer_loops_are_added_first(text: Text):
    text.open()
    text.open()
    outer, inner = register(text, "outer", 1), register(text, "inner", 2)
    materialize(text, linear(inner) + linear(outer).times(8) + 5)
    assert text.close() == ["  %v2 = add i64 %v1, %inner", "  %v3 = add i64 %v2, 5"]
    assert text.close() == ["  %v1 = mul i64 %outer, 8"]


def test_a_counter_within_its_loop(text: Text):
    n, t = register(text, "n"), register(text, "t", 3)
    bounds = Bounds(assume=False, entry_level=0)
    bounds.learn(t, lower=[ZERO], upper=[linear(n) - 64])
    assert bounds.prove(linear(n) - linear(t) - 64)
    assert bounds.prove(linear(t))
    assert not bounds.prove(linear(n) - linear(t) - 65)


def test_one_of_two_upper_bounds(text: Text):
    n, m, high, t = (register(text, name, level) for name, level in (("n", 0), ("m", 0), ("high", 1), ("t", 3)))
    bounds = Bounds(assume=False, entry_level=0)
    bounds.learn(high, upper=[linear(n), linear(m)])
    bounds.learn(t, lower=[ZERO], upper=[linear(high) - 1])
    assert bounds.prove(linear(n) - linear(t) - 1)
    assert bounds.prove(linear(m) - linear(t) - 1)
    assert not bounds.prove(linear(n) - linear(t) - 2)


def test_what_is_known_at_entry_is_assumed(text: Text):
    rows, program, loaded = (register(text, name, level) for name, level in (("rows", 0), ("program", 1), ("x", 2)))
    bounds = Bounds(assume=True, entry_level=1)
    bounds.learn(program, lower=[ZERO], upper=[Linear(3)])
    room = linear(rows) - linear(program).times(16) - 16
    assert bounds.prove(room)
    assert list(bounds.conditions) == [room]
    assert not bounds.prove(linear(loaded) - linear(program))
    assert list(bounds.conditions) == [room]
    assert not bounds.known(room)
