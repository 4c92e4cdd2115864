"""The rules that simplify index expressions.

Sums and products are kept in one normal form, a polynomial over *atoms* (symbols, quotients, remainders, extremes):
positive terms first, then negative ones, each by its text, then the constant: `T - t - 1`. Quotients, remainders and
extremes go through tables of rules, each with its law; tests/index/test_rules.py proves every rule by brute force.

Simplification knows nothing of the symbols, or is given `Facts` (ranges), under which `max(0, t + 1)` is `t + 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import TypeAlias, overload

from tempo_ir.index.expr import (
    And,
    AnyIndex,
    Binary,
    Compare,
    Cond,
    Const,
    Expr,
    Extreme,
    Index,
    IndexExpressionError,
    MinMax,
    Operator,
    Or,
    Slice,
    Sym,
    Truth,
    compare,
    conj,
    disj,
    free_symbols,
)

Monomial: TypeAlias = tuple[Expr, ...]
"""A product of atoms, in order of their text, extremes last; `()` is the constant."""
Terms: TypeAlias = dict[Monomial, int]
"""A polynomial: the coefficient of each monomial, none of them zero."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of symbols: least and greatest value of each, inner dims after the outer ones they depend on.

    `nonnegative`: symbols without a range are dims or bounds, hence at least 0.
    """

    ranges: tuple[tuple[str, Expr, Expr], ...] = ()
    nonnegative: bool = False


NO_FACTS = Facts()
PROGRAM_FACTS = Facts(nonnegative=True)
"""Dims and bounds are never negative."""


# Sums and products


def terms(value: Expr) -> Terms:
    """The polynomial of an expression."""
    match value:
        case Const(number):
            return {(): number} if number else {}
        case Binary("+", lhs, rhs):
            return _added(terms(lhs), terms(rhs), 1)
        case Binary("-", lhs, rhs):
            return _added(terms(lhs), terms(rhs), -1)
        case Binary("*", lhs, rhs):
            return _multiplied(terms(lhs), terms(rhs))
        case _:
            return {(value,): 1}


def _added(left: Terms, right: Terms, sign: int) -> Terms:
    result = dict(left)
    for monomial, coefficient in right.items():
        result[monomial] = result.get(monomial, 0) + sign * coefficient
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


def _multiplied(left: Terms, right: Terms) -> Terms:
    result: Terms = {}
    for first, first_coefficient in left.items():
        for second, second_coefficient in right.items():
            monomial = tuple(sorted(first + second, key=lambda atom: (isinstance(atom, MinMax), str(atom))))
            result[monomial] = result.get(monomial, 0) + first_coefficient * second_coefficient
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


def from_terms(polynomial: Terms) -> Expr:
    """The expression of a polynomial; what is added to extremes moves into the first: `1 + min(a, b)` is
    `min(a + 1, b + 1)`."""
    polynomial = _with_remainders(polynomial)
    extremes = [monomial for monomial in polynomial if len(monomial) == 1 and isinstance(monomial[0], MinMax)]
    settled = len(extremes) == len(polynomial) and all(k == 1 for k in polynomial.values())
    if not extremes or settled:
        return _sum(polynomial)
    added = _sum({monomial: k for monomial, k in polynomial.items() if monomial not in extremes})
    total: Terms = {}
    for monomial in sorted(extremes, key=_text):
        total = _added(total, terms(_moved_into_extreme(monomial[0], polynomial[monomial], added)), 1)
        added = Const(0)
    return from_terms(total)


def _moved_into_extreme(atom: Expr, coefficient: int, added: Expr) -> Expr:
    assert isinstance(atom, MinMax)
    flipped: Extreme = "max" if atom.op == "min" else "min"
    return extreme(atom.op if coefficient > 0 else flipped, tuple(arg * coefficient + added for arg in atom.args))


def _text(monomial: Monomial) -> list[str]:
    return [str(atom) for atom in monomial]


def _with_remainders(polynomial: Terms) -> Terms:
    """`x - c*(x // c)` as `x % c`, and `x % c + c*(x // c)` as `x`, wherever that leaves fewer terms."""
    for monomial, coefficient in polynomial.items():
        match monomial:
            case (Binary("//" | "%" as op, dividend, Const(divisor) as by),) if divisor > 0:
                whole = _scaled(terms(combine("//", dividend, by)), divisor)
                parts = _added(whole, terms(combine("%", dividend, by)), 1)
                times = coefficient // divisor if op == "//" else coefficient
                shorter = _added(polynomial, _scaled(_added(parts, terms(dividend), -1), times), -1)
                if len(shorter) < len(polynomial):
                    return _with_remainders(shorter)
            case _:
                pass
    return polynomial


def _scaled(polynomial: Terms, factor: int) -> Terms:
    return {monomial: k * factor for monomial, k in polynomial.items() if factor}


def _sum(polynomial: Terms) -> Expr:
    constant = polynomial.get((), 0)
    products = sorted(((m, k) for m, k in polynomial.items() if m), key=lambda term: (term[1] < 0, _text(term[0])))
    if not products:
        return Const(constant)
    constant_first = constant > 0 and products[0][1] < 0
    result: Expr | None = Const(constant) if constant_first else None
    for monomial, coefficient in products:
        if result is None:
            result = _product(coefficient, monomial)
        else:
            result = Binary("+" if coefficient > 0 else "-", result, _product(abs(coefficient), monomial))
    assert result is not None
    if constant and not constant_first:
        result = Binary("+" if constant > 0 else "-", result, Const(abs(constant)))
    return result


def _product(coefficient: int, monomial: Monomial) -> Expr:
    # A number before an extreme would move into it when the text is read, so that it goes behind a product of extremes.
    first, *others = monomial
    number_last = bool(others) and isinstance(first, MinMax)
    result = first if coefficient == 1 or number_last else Binary("*", Const(coefficient), first)
    for atom in others:
        result = Binary("*", result, atom)
    return Binary("*", result, Const(coefficient)) if number_last and coefficient != 1 else result


# Quotients, remainders and extremes


@dataclass(frozen=True, slots=True)
class DivisionRule:
    """A law of `//` or `%` by a constant; `apply(dividend, divisor)` is the simplified value, or None."""

    op: Operator
    law: str
    apply: Callable[[Expr, int], Expr | None]


def _fold_quotient(dividend: Expr, divisor: int) -> Expr | None:
    return Const(dividend.value // divisor) if isinstance(dividend, Const) else None


def _fold_remainder(dividend: Expr, divisor: int) -> Expr | None:
    return Const(dividend.value % divisor) if isinstance(dividend, Const) else None


def _quotient_by_one(dividend: Expr, divisor: int) -> Expr | None:
    return dividend if divisor == 1 else None


def _remainder_by_one(dividend: Expr, divisor: int) -> Expr | None:
    return Const(0) if divisor == 1 else None


def _quotient_by_negative(dividend: Expr, divisor: int) -> Expr | None:
    return -dividend // -divisor if divisor < 0 else None


def _remainder_by_negative(dividend: Expr, divisor: int) -> Expr | None:
    return -(-dividend % -divisor) if divisor < 0 else None


def _quotient_takes_multiples_out(dividend: Expr, divisor: int) -> Expr | None:
    if divisor <= 1:
        return None
    polynomial = terms(dividend)
    kept = {m: _centred(k, divisor) if m else k % divisor for m, k in polynomial.items()}
    whole = {m: (k - kept[m]) // divisor for m, k in polynomial.items() if k != kept[m]}
    if not whole:
        return None
    outside = from_terms(whole)
    return outside + (dividend - outside * divisor) // divisor


def _quotient_by_common_factor(dividend: Expr, divisor: int) -> Expr | None:
    polynomial = terms(dividend)
    factor = gcd(divisor, *(k for m, k in polynomial.items() if m))
    if divisor <= 1 or factor <= 1:
        return None
    return from_terms({m: k // factor for m, k in polynomial.items() if k // factor}) // (divisor // factor)


def _quotient_of_quotient(dividend: Expr, divisor: int) -> Expr | None:
    if divisor <= 0:
        return None
    match dividend:
        case Binary("//", inner, Const(first)) if first > 0:
            return inner // (first * divisor)
        case _:
            return None


def _quotient_of_remainder(dividend: Expr, divisor: int) -> Expr | None:
    match dividend:
        case Binary("%", _, Const(first)) if 0 < first <= divisor:
            return Const(0)
        case _:
            return None


def _remainder_drops_multiples(dividend: Expr, divisor: int) -> Expr | None:
    if divisor <= 1:
        return None
    polynomial = terms(dividend)
    reduced = {m: _centred(k, divisor) for m, k in polynomial.items() if _centred(k, divisor)}
    return None if reduced == polynomial else from_terms(reduced) % divisor


def _centred(value: int, divisor: int) -> int:
    """The representative of `value` modulo `divisor` nearest to 0, the positive one of two."""
    residue = value % divisor
    return residue if 2 * residue <= divisor else residue - divisor


def _remainder_of_remainder(dividend: Expr, divisor: int) -> Expr | None:
    match dividend:
        case Binary("%", inner, Const(first)) if divisor > 0 and first > 0 and first % divisor == 0:
            return inner % divisor
        case Binary("%", _, Const(first)) if 0 < first <= divisor:
            return dividend
        case _:
            return None


def _remainder_by_common_factor(dividend: Expr, divisor: int) -> Expr | None:
    polynomial = terms(dividend)
    factor = gcd(divisor, *polynomial.values())
    if divisor <= 1 or factor <= 1:
        return None
    return from_terms({m: k // factor for m, k in polynomial.items()}) % (divisor // factor) * factor


DIVISION_RULES: tuple[DivisionRule, ...] = (
    DivisionRule("//", "fold constants", _fold_quotient),
    DivisionRule("//", "x // 1 = x", _quotient_by_one),
    DivisionRule("//", "x // -c = -x // c", _quotient_by_negative),
    DivisionRule("//", "(c*q + r) // c = q + r // c", _quotient_takes_multiples_out),
    DivisionRule("//", "(g*x + r) // (g*c) = (x + r // g) // c", _quotient_by_common_factor),
    DivisionRule("//", "(x // a) // b = x // (a*b)", _quotient_of_quotient),
    DivisionRule("//", "(x % a) // b = 0 where a <= b", _quotient_of_remainder),
    DivisionRule("%", "fold constants", _fold_remainder),
    DivisionRule("%", "x % 1 = 0", _remainder_by_one),
    DivisionRule("%", "x % -c = -(-x % c)", _remainder_by_negative),
    DivisionRule("%", "(c*q + r) % c = r % c", _remainder_drops_multiples),
    DivisionRule("%", "(x % a) % b = x % b where b divides a, x % a where a <= b", _remainder_of_remainder),
    DivisionRule("%", "(g*x) % (g*c) = g*(x % c)", _remainder_by_common_factor),
)


@dataclass(frozen=True, slots=True)
class ExtremeRule:
    """A law of `min` and `max`; `apply(op, args, facts)` is the simplified argument list."""

    law: str
    apply: Callable[[Extreme, tuple[Expr, ...], Facts], tuple[Expr, ...]]


def _flatten(op: Extreme, args: tuple[Expr, ...], facts: Facts) -> tuple[Expr, ...]:
    flat: dict[Expr, None] = {}
    for arg in args:
        flat.update(dict.fromkeys(arg.args if isinstance(arg, MinMax) and arg.op == op else (arg,)))
    return tuple(flat)


def _fold_extreme(op: Extreme, args: tuple[Expr, ...], facts: Facts) -> tuple[Expr, ...]:
    constants = [arg.value for arg in args if isinstance(arg, Const)]
    if len(constants) < 2:
        return args
    kept = Const(min(constants) if op == "min" else max(constants))
    return (*(arg for arg in args if not isinstance(arg, Const)), kept)


def _drop_dominated(op: Extreme, args: tuple[Expr, ...], facts: Facts) -> tuple[Expr, ...]:
    kept = list(args)
    for candidate in args:
        others = [arg for arg in kept if arg != candidate]
        if any(_dominates(op, arg, candidate, facts) for arg in others):
            kept = others
    return tuple(kept)


def _dominates(op: Extreme, winner: Expr, loser: Expr, facts: Facts) -> bool:
    low, high = (winner, loser) if op == "min" else (loser, winner)
    if isinstance(high, MinMax) and high.op == "max" and low in high.args:
        return True
    if isinstance(low, MinMax) and low.op == "min" and high in low.args:
        return True
    return at_least_zero(high - low, facts)


def _order(op: Extreme, args: tuple[Expr, ...], facts: Facts) -> tuple[Expr, ...]:
    constant_last = op == "min"
    return tuple(sorted(args, key=lambda arg: (isinstance(arg, Const) == constant_last, str(arg))))


EXTREME_RULES: tuple[ExtremeRule, ...] = (
    ExtremeRule("min(a, min(b, c)) = min(a, b, c), min(a, a) = min(a)", _flatten),
    ExtremeRule("fold constants", _fold_extreme),
    ExtremeRule("min(a, b) = min(a) where a <= b", _drop_dominated),
    ExtremeRule("arguments in order of their text, the constant last in min and first in max", _order),
)


# The engine


@lru_cache(maxsize=16384)
def combine(op: Operator, lhs: Expr, rhs: Expr) -> Expr:
    """The simplified value of one operation on simplified operands.

    Raises:
        IndexExpressionError: a division by the constant zero.
    """
    if op in ("+", "-", "*"):
        return from_terms(terms(Binary(op, lhs, rhs)))
    if not isinstance(rhs, Const):
        return Binary(op, lhs, rhs)
    if rhs.value == 0:
        raise IndexExpressionError(f"`{Binary(op, lhs, rhs)}` divides by zero")
    for rule in DIVISION_RULES:
        simplified = rule.apply(lhs, rhs.value) if rule.op == op else None
        if simplified is not None:
            return simplified
    return Binary(op, lhs, rhs)


def extreme(op: Extreme, args: tuple[Expr, ...], facts: Facts = NO_FACTS) -> Expr:
    """The simplified `min` or `max` of simplified arguments.

    Raises:
        IndexExpressionError: there are no arguments.
    """
    if not args:
        raise IndexExpressionError(f"{op} of no arguments has no value")
    for rule in EXTREME_RULES:
        args = rule.apply(op, args, facts)
    return args[0] if len(args) == 1 else MinMax(op, args)


@overload
def simplify(value: Expr, facts: Facts = NO_FACTS) -> Expr: ...
@overload
def simplify(value: Slice, facts: Facts = NO_FACTS) -> Slice: ...
@overload
def simplify(value: Cond, facts: Facts = NO_FACTS) -> Cond: ...
@overload
def simplify(value: Index, facts: Facts = NO_FACTS) -> Index: ...


def simplify(value: AnyIndex, facts: Facts = NO_FACTS) -> AnyIndex:
    """`value` in normal form, equal to it wherever `facts` hold."""
    match value:
        case Const() | Sym() | Truth():
            return value
        case Binary(op, lhs, rhs):
            return _decided(combine(op, simplify(lhs, facts), simplify(rhs, facts)), facts)
        case MinMax(op, args):
            return extreme(op, tuple(simplify(arg, facts) for arg in args), facts)
        case Slice(start, stop, step):
            return Slice(simplify(start, facts), simplify(stop, facts), step)
        case Compare(op, lhs, rhs):
            return _decided_comparison(compare(op, simplify(lhs, facts), simplify(rhs, facts)), facts)
        case And(args):
            return conj(*(simplify(arg, facts) for arg in args))
        case Or(args):
            return disj(*(simplify(arg, facts) for arg in args))
        case tuple():
            return tuple(simplify(entry, facts) for entry in value)


def _decided(value: Expr, facts: Facts) -> Expr:
    """`x // c` is 0 and `x % c` is x where the facts put x into [0, c); extremes that a sum made lose arguments."""
    match value:
        case Binary("//" | "%" as op, lhs, Const(divisor)) if facts != NO_FACTS and divisor > 0:
            inside = at_least_zero(lhs, facts) and at_least_zero(divisor - 1 - lhs, facts)
            return value if not inside else Const(0) if op == "//" else lhs
        case MinMax(op, args):
            return extreme(op, args, facts)
        case _:
            return value


def _decided_comparison(cond: Cond, facts: Facts) -> Cond:
    if not isinstance(cond, Compare) or facts == NO_FACTS:
        return cond
    difference = cond.rhs - cond.lhs
    less, greater = at_least_zero(difference - 1, facts), at_least_zero(-difference - 1, facts)
    less_equal, greater_equal = at_least_zero(difference, facts), at_least_zero(-difference, facts)
    holds = {"<": less, "<=": less_equal, ">": greater, ">=": greater_equal, "!=": less or greater}
    fails = {"<": greater_equal, "<=": greater, ">": less_equal, ">=": less, "=": less or greater}
    if holds.get(cond.op, less_equal and greater_equal):
        return Truth(True)
    return Truth(False) if fails.get(cond.op, less_equal and greater_equal) else cond


@lru_cache(maxsize=4096)
def nonnegative_extent(taken: Slice) -> Expr:
    """How many points a slice has, for symbols that are dims and bounds."""
    length = (_distance(taken.start, taken.stop) + (taken.step - 1)) // taken.step
    return extreme("max", (Const(0), simplify(length, PROGRAM_FACTS)), PROGRAM_FACTS)


def _distance(start: Expr, stop: Expr) -> Expr:
    """`stop - start`; a number where an extreme is moved by one: of `max(a, b):max(a + 4, b + 4)` it is 4."""
    match start, stop:
        case MinMax(op, before), MinMax(other, after) if op == other and len(before) == len(after):
            moved = {simplify(b - a) for a, b in zip(before, after, strict=True)}
            if len(moved) == 1 and isinstance(distance := moved.pop(), Const):
                return distance
        case _:
            pass
    return stop - start


# What facts imply


def at_least_zero(value: Expr, facts: Facts) -> bool:
    """Whether `value >= 0` follows from the facts by bounding one symbol after the other; False if not found."""
    match value:
        case Const(number):
            return number >= 0
        case MinMax("min", args):
            return all(at_least_zero(arg, facts) for arg in args)
        case MinMax("max", args):
            return any(at_least_zero(arg, facts) for arg in args)
        case _:
            polynomial = terms(value)
    for name, least, greatest in reversed(facts.ranges):
        coefficient = polynomial.get((Sym(name),), 0)
        if coefficient:
            bound = least if coefficient > 0 else greatest
            outer = Facts(facts.ranges[: _position(facts, name)], facts.nonnegative)
            rest = {monomial: k for monomial, k in polynomial.items() if monomial != (Sym(name),)}
            if name in free_symbols(_sum(rest)):
                return False
            return at_least_zero(from_terms(rest) + bound * coefficient, outer)
    least_sum = sum(_least(monomial, k, facts) for monomial, k in polynomial.items())
    return least_sum >= 0


def rises(value: Expr, name: str) -> bool:
    """Whether a value grows, or stays, as a symbol grows, all symbols being at least 0; False if not seen to."""
    if name not in free_symbols(value):
        return True
    match value:
        case MinMax(_, args):
            return all(rises(arg, name) for arg in args)
        case Binary("//", dividend, Const(divisor)):
            return divisor > 0 and rises(dividend, name)
        case Sym():
            return True
        case Binary("//" | "%", _, _):
            return False
        case _:
            return all(_rises(monomial, coefficient, name) for monomial, coefficient in terms(value).items())


def _rises(monomial: Monomial, coefficient: int, name: str) -> bool:
    if all(name not in free_symbols(atom) for atom in monomial):
        return True
    natural = len(monomial) == 1 or all(_is_natural(atom, PROGRAM_FACTS) for atom in monomial)
    return coefficient > 0 and natural and all(rises(atom, name) for atom in monomial)


def _position(facts: Facts, name: str) -> int:
    return next(position for position, entry in enumerate(facts.ranges) if entry[0] == name)


def _least(monomial: Monomial, coefficient: int, facts: Facts) -> float:
    """A lower bound of one term, -inf if none is known."""
    if not monomial:
        return coefficient
    if coefficient > 0:
        return 0 if all(_is_natural(atom, facts) for atom in monomial) else -float("inf")
    match monomial:
        case (Binary("%", _, Const(divisor)),) if divisor > 0:
            return coefficient * (divisor - 1)
        case _:
            return -float("inf")


def _is_natural(atom: Expr, facts: Facts) -> bool:
    match atom:
        case Sym(name):
            known: Mapping[str, Expr] = {symbol: least for symbol, least, _ in facts.ranges}
            return at_least_zero(known[name], facts) if name in known else facts.nonnegative
        case Binary("%", _, Const(divisor)):
            return divisor > 0
        case Binary("//", dividend, Const(divisor)):
            return divisor > 0 and at_least_zero(dividend, facts)
        case Binary("//", dividend, Sym() as divisor):
            return at_least_zero(dividend, facts) and _is_natural(divisor, facts)
        case MinMax():
            return at_least_zero(atom, facts)
        case _:
            return False
