# pyright: basic
"""The bridge to sympy: closed forms of counts and sums over domains, as functions of the bounds.

What isl cannot hold, products of bounds, is what costs are made of: the `T * (T + 1) / 2` reads of a causal attention.
`count` and `total` give such formulas, exact for all bounds; `value` evaluates one.

Source of the summation: W. Pugh, "Counting Solutions to Presburger Formulas: How and Why", PLDI 1994.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import Any

import sympy

from tempo_ir.index import isl
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import (
    And,
    Binary,
    Compare,
    Cond,
    Const,
    Expr,
    IndexExpressionError,
    MinMax,
    Or,
    Sym,
    Truth,
    as_expr,
    compare,
    conj,
    free_symbols,
    maximum,
    minimum,
)
from tempo_ir.index.rules import from_terms, terms


def symbol(name: str) -> sympy.Symbol:
    """The sympy symbol of a dim or bound: an integer that is not negative."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


def to_sympy(value: Expr) -> sympy.Expr:
    """An index expression in sympy: `t floordiv 2` is `floor(t/2)`."""
    match value:
        case Const(number):
            return sympy.Integer(number)
        case Sym(name):
            return symbol(name)
        case MinMax(op, args):
            return (sympy.Min if op == "min" else sympy.Max)(*map(to_sympy, args))
        case Binary("+", lhs, rhs):
            return to_sympy(lhs) + to_sympy(rhs)
        case Binary("-", lhs, rhs):
            return to_sympy(lhs) - to_sympy(rhs)
        case Binary("*", lhs, rhs):
            return to_sympy(lhs) * to_sympy(rhs)
        case Binary("//", lhs, rhs):
            return sympy.floor(to_sympy(lhs) / to_sympy(rhs))
        case Binary(_, lhs, rhs):
            return sympy.Mod(to_sympy(lhs), to_sympy(rhs))


def from_sympy(value: Any) -> Expr:
    """The index expression of a sympy expression made of sums, products, floors, remainders, `Min` and `Max`.

    Raises:
        IndexExpressionError: it is made of something else, or of fractions outside of a floor.
    """
    if isinstance(value, sympy.Integer):
        return Const(int(value))
    if isinstance(value, sympy.Symbol):
        return Sym(value.name)
    if isinstance(value, sympy.floor):
        return _floor(value.args[0])
    if isinstance(value, sympy.ceiling):
        return -_floor(-value.args[0])
    args = [from_sympy(arg) for arg in value.args]
    if isinstance(value, sympy.Mod):
        return args[0] % args[1]
    if isinstance(value, sympy.Min):
        return minimum(*args)
    if isinstance(value, sympy.Max):
        return maximum(*args)
    if isinstance(value, sympy.Add):
        return sum(args[1:], start=args[0])
    if isinstance(value, sympy.Mul):
        product = args[0]
        for arg in args[1:]:
            product = product * arg
        return product
    if isinstance(value, sympy.Pow) and isinstance(value.exp, sympy.Integer) and 0 < value.exp <= 8:
        return from_sympy(sympy.Mul(*[value.base] * int(value.exp), evaluate=False))
    raise IndexExpressionError(f"`{value}` is no index expression: {type(value).__name__} has no place in one")


def _floor(inner: sympy.Expr) -> Expr:
    """`floor((2*t + 1)/4)` from its fractions brought over one denominator."""
    addends = sympy.Add.make_args(sympy.expand(inner))
    coefficients: list[Any] = [addend.as_coeff_Mul()[0] for addend in addends]
    if not all(isinstance(coefficient, sympy.Rational) for coefficient in coefficients):
        raise IndexExpressionError(f"`{inner}` in a floor is no fraction of integers")
    denominator = lcm(*(int(coefficient.q) for coefficient in coefficients))
    return from_sympy(sympy.expand(inner * denominator)) // denominator


def condition_to_sympy(cond: Cond) -> Any:
    """A condition in sympy."""
    match cond:
        case Truth(truth):
            return sympy.true if truth else sympy.false
        case And(args):
            return sympy.And(*map(condition_to_sympy, args))
        case Or(args):
            return sympy.Or(*map(condition_to_sympy, args))
        case Compare(op, lhs, rhs):
            relations = {"<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge, "=": sympy.Eq, "!=": sympy.Ne}
            return relations[op](to_sympy(lhs), to_sympy(rhs))


def count(space: Space, domain: Domain) -> sympy.Expr:
    """How many points a domain has: for `(i, t where t < i)` with `I <= T`, `I**2/2 - I/2`."""
    return total(Const(1), space, domain)


def total(value: Expr | int, space: Space, domain: Domain) -> sympy.Expr:
    """The sum of an expression over the points of a domain, a formula of the bounds with cases where it needs them.

    Raises:
        isl.Inexact: the domain or a case of the expression has strides, or a limit that rounds what varies.
        isl.NotAffine: the expression multiplies or divides dims.
    """
    points = isl.domain_set(space, domain)
    pieces = isl.pieces(isl.pw_aff(space, domain.dims, as_expr(value)).intersect_domain(points))
    return _total([(piece, to_sympy(summand)) for piece, summand in pieces], domain.dims, space)


def count_where(space: Space, dims: Sequence[str], cond: Cond) -> sympy.Expr:
    """How many points over `dims`, which need not be those of the program, satisfy a condition. Raises as `total`."""
    points = isl.condition_set(space, dims, cond).intersect_params(isl.params_set(space))
    return _total([(points, sympy.Integer(1))], dims, space)


def _total(pieces: Sequence[tuple[isl.Set, sympy.Expr]], dims: Sequence[str], space: Space) -> sympy.Expr:
    parts: list[tuple[Cond, sympy.Expr]] = []
    for piece, summand in pieces:
        for basic in piece.make_disjoint().remove_redundancies().get_basic_sets():
            parts += _sum(isl.Set.from_basic_set(basic), dims, summand, space)
    return _joined(parts)


def _joined(parts: Sequence[tuple[Cond, sympy.Expr]]) -> sympy.Expr:
    """The sum of terms that each count where their condition on the bounds holds."""
    by_condition: dict[Cond, sympy.Expr] = {}
    for cond, term in parts:
        by_condition[cond] = by_condition.get(cond, sympy.Integer(0)) + term
    result: sympy.Expr = sympy.Integer(0)
    for cond, term in by_condition.items():
        holds = condition_to_sympy(cond)
        result += sympy.Piecewise((sympy.expand(term), holds), (0, True)) if holds != sympy.true else sympy.expand(term)
    return result


def _sum(points: isl.Set, dims: Sequence[str], summand: sympy.Expr, space: Space) -> list[tuple[Cond, sympy.Expr]]:
    """The sum over a convex set, innermost dim first: between each pair of limits, where they are the tightest.

    The formula of a sum is 0 where the range just became empty, so that such bounds need no case of their own.
    """
    if points.is_empty():
        return []
    if not dims:
        return [(isl.condition(points, isl.domain_set(space, Domain())), summand)]
    *outer, dim = dims
    if not summand.is_polynomial(symbol(dim)):
        raise isl.Inexact(f"no closed form: `{summand}` is no polynomial in `{dim}`")
    lowers, uppers = _limits(points, dim)
    shadow = points.drop_constraints_involving_dims(isl.DIM.set, len(outer), 1).project_out(isl.DIM.set, len(outer), 1)
    parts: list[tuple[Cond, sympy.Expr]] = []
    for low_number, low in enumerate(lowers):
        for high_number, high in enumerate(uppers):
            tightest = conj(
                compare("<=", low, high + 1),
                *(
                    compare(">" if n < low_number else ">=", low, lowers[n])
                    for n in range(len(lowers))
                    if n != low_number
                ),
                *(
                    compare("<" if n < high_number else "<=", high, uppers[n])
                    for n in range(len(uppers))
                    if n != high_number
                ),
            )
            cell = shadow.intersect(isl.condition_set(space, outer, tightest))
            inner: Any = sympy.summation(sympy.expand(summand), (symbol(dim), to_sympy(low), to_sympy(high)))
            for basic in cell.make_disjoint().remove_redundancies().get_basic_sets():
                parts += _sum(isl.Set.from_basic_set(basic), outer, inner, space)
    return parts


def _limits(points: isl.Set, dim: str) -> tuple[list[Expr], list[Expr]]:
    """The least and greatest values of the innermost dim: every lower and upper limit, over the other symbols; of
    `8 * b <= T - 9` that is `(T - 9) floordiv 8`."""
    lowers: dict[Expr, None] = {}
    uppers: dict[Expr, None] = {}
    (basic,) = points.compute_divs().get_basic_sets()
    for constraint in basic.get_constraints():
        value = isl.affine(constraint.get_aff())
        polynomial = terms(value)
        rest = from_terms({monomial: k for monomial, k in polynomial.items() if monomial != (Sym(dim),)})
        coefficient = polynomial.get((Sym(dim),), 0)
        if dim in free_symbols(rest):
            raise isl.Inexact(f"no closed form: `{dim}` in {points} has strides")
        for factor, left in ((coefficient, rest), (-coefficient, rest * -1)):
            if factor > 0 and (factor == coefficient or constraint.is_equality()):
                lowers[-(left // factor)] = None
            if factor < 0 and (factor == coefficient or constraint.is_equality()):
                uppers[left // -factor] = None
    return list(lowers), list(uppers)


def value(closed: sympy.Expr, bounds: Mapping[str, int]) -> int:
    """A closed form for given bounds.

    Raises:
        IndexExpressionError: a bound is missing.
    """
    result = closed.subs({symbol(name): number for name, number in bounds.items()})
    if not isinstance(result, sympy.Integer):
        raise IndexExpressionError(f"`{closed}` needs {', '.join(sorted(map(str, result.free_symbols)))}")
    return int(result)
