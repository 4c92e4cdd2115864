"""Index expressions and conditions as Python source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tempo_ir.index import And, Binary, Compare, Cond, Const, Expr, MinMax, Or, Sym, Truth
from tempo_ir.index.rules import terms

Spelling = Mapping[str, str]
"""The Python name of each symbol."""
Called = Callable[[Expr], str | None]
"""The text of an expression that is the call of a function; None for any other."""

_COMPARISONS: Mapping[str, str] = MappingProxyType({"=": "=="})


def _never(expression: Expr) -> str | None:
    return None


def expression_text(expression: Expr, names: Spelling, within: str = "", called: Called = _never) -> str:
    """An expression; `within` is the operator that it is an operand of, for parentheses; `called` writes what is a call
    of a function."""
    if (text := called(expression)) is not None:
        return text
    match expression:
        case Const(value):
            return str(value) if value >= 0 or not within else f"({value})"
        case Sym(name):
            return names[name]
        case MinMax(op, args):
            return f"{op}({', '.join(expression_text(arg, names, called=called) for arg in args)})"
        case Binary(op, lhs, rhs):
            left = expression_text(lhs, names, op, called)
            right = expression_text(rhs, names, _TIGHTER.get(op, op), called)
            text = f"{left} {op} {right}"
            return f"({text})" if _binds_looser(op, within) else text


_TIGHTER: Mapping[str, str] = MappingProxyType({"-": "right of -", "//": "right of //", "%": "right of %"})
"""Operators whose right operand needs parentheses even around an operator that binds the same."""


def _binds_looser(op: str, within: str) -> bool:
    """Whether an operator needs parentheses as an operand of another."""
    if not within or within == "+":
        return False
    additive = op in "+-"
    if within in ("-", "right of -"):
        return additive and within == "right of -"
    return additive or within.startswith("right of") or op != "*" or within != "*"


def condition_text(condition: Cond, names: Spelling, within: str = "") -> str:
    """A condition."""
    match condition:
        case Truth(value):
            return str(value)
        case Compare(op, lhs, rhs):
            return f"{expression_text(lhs, names)} {_COMPARISONS.get(op, op)} {expression_text(rhs, names)}"
        case And(args) | Or(args):
            word = "and" if isinstance(condition, And) else "or"
            text = f" {word} ".join(condition_text(arg, names, word) for arg in args)
            return f"({text})" if within and within != word else text


def extent_text(extent: Expr | int, names: Spelling) -> str:
    """A number of elements or programs: at least 0."""
    if isinstance(extent, int):
        return str(extent)
    text = expression_text(extent, names)
    return f"max(0, {text})" if any(coefficient < 0 for coefficient in terms(extent).values()) else text


def tuple_text(items: Sequence[str]) -> str:
    """A tuple."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
