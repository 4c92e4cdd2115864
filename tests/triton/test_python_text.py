"""Index expressions and conditions as Python source mean what they mean."""

from __future__ import annotations

import random

import pytest

from tempo_ir.index import And, Binary, Compare, Cond, Const, Expr, MinMax, Or, Sym, evaluate
from tempo_ir.lowering.triton.python_text import condition_text, expression_text, extent_text

NAMES = {"a": "a", "b": "b", "call.start.t": "start_t"}


def expression(draw: random.Random, depth: int) -> Expr:
    """A tree as it is built, simplified by nothing."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([Const(draw.randint(-4, 9)), *map(Sym, NAMES)])
    lhs, rhs = expression(draw, depth - 1), expression(draw, depth - 1)
    operator = draw.choice(["+", "-", "*", "//", "%", "min", "max"])
    if operator in ("min", "max"):
        return MinMax(operator, (lhs, rhs))
    if operator in ("//", "%"):
        rhs = Const(draw.choice([1, 2, 3, 7]))
    return Binary(operator, lhs, rhs)


def condition(draw: random.Random, depth: int) -> Cond:
    if depth == 0:
        return Compare(draw.choice(["<", "<=", ">", ">=", "=", "!="]), expression(draw, 2), expression(draw, 2))
    kind = draw.choice([And, Or])
    return kind((condition(draw, depth - 1), condition(draw, depth - 1)))


@pytest.mark.parametrize("seed", range(200))
def test_text_evaluates_to_the_same(seed):
    draw = random.Random(seed)
    values = {"a": draw.randint(-9, 9), "b": draw.randint(0, 9), "call.start.t": 3}
    local = {NAMES[name]: value for name, value in values.items()}
    tree, guard = expression(draw, 4), condition(draw, 2)
    assert eval(expression_text(tree, NAMES), {}, dict(local)) == evaluate(tree, values)
    assert eval(condition_text(guard, NAMES), {}, dict(local)) == evaluate(guard, values)
    assert eval(extent_text(tree, NAMES), {}, dict(local)) in (evaluate(tree, values), max(0, evaluate(tree, values)))


def test_parentheses_stand_where_they_must_only():
    a, b = Sym("a"), Sym("b")
    texts = {
        Binary("-", Binary("-", a, b), Const(1)): "a - b - 1",
        Binary("-", a, Binary("-", b, Const(1))): "a - (b - 1)",
        Binary("+", a, Binary("-", b, Const(1))): "a + b - 1",
        Binary("*", Binary("*", a, b), Const(2)): "a * b * 2",
        Binary("*", Const(4), Binary("%", a, b)): "4 * (a % b)",
        Binary("//", Binary("+", a, Const(3)), Const(4)): "(a + 3) // 4",
        Binary("+", a, Const(-1)): "a + (-1)",
    }
    assert {tree: expression_text(tree, NAMES) for tree in texts} == texts
