"""Conditions in the form that people write: the innermost iterator alone on the left, `t >= 3` for `t - 3 >= 0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tempo_ir.index.expr import And, Compare, Cond, Const, Or, Relation, Sym, Truth, conj, disj
from tempo_ir.index.rules import from_terms, terms

FLIPPED: Mapping[Relation, Relation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def solved(condition: Cond, names: Sequence[str]) -> Cond:
    """The same condition, each comparison solved for the last of the names that stands in it alone."""
    match condition:
        case Truth():
            return condition
        case Compare():
            return _solved_comparison(condition, names)
        case And(args):
            return conj(*(solved(arg, names) for arg in args))
        case Or(args):
            return disj(*(solved(arg, names) for arg in args))


def _solved_comparison(comparison: Compare, names: Sequence[str]) -> Cond:
    polynomial = terms(comparison.lhs - comparison.rhs)
    for name in reversed(names):
        coefficient = polynomial.get((Sym(name),), 0)
        if abs(coefficient) != 1:
            continue
        others = {monomial: value for monomial, value in polynomial.items() if monomial != (Sym(name),)}
        limit = from_terms({monomial: -coefficient * value for monomial, value in others.items()})
        relation = comparison.op if coefficient == 1 else FLIPPED[comparison.op]
        added = 0 if isinstance(limit, Const) else terms(limit).get((), 0)
        if relation == "<=" and added < 0:
            return Compare("<", Sym(name), limit + 1)
        if relation == ">=" and added > 0:
            return Compare(">", Sym(name), limit - 1)
        return Compare(relation, Sym(name), limit)
    return comparison
