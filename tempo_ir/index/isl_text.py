"""Index expressions and conditions as text in isl's notation.

Names of dims and bounds that isl's lexer would not take (`t.x`, `floor`) are encoded, and decoded on the way back.
Products and quotients *of bounds* (`T * E`), which are not affine, stand as one unknown each, so that what is proved
holds whatever their value; a product that involves a dim is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from tempo_ir.index import parser
from tempo_ir.index.expr import (
    And,
    Binary,
    Compare,
    Cond,
    Const,
    Entry,
    Expr,
    IndexExpressionError,
    MinMax,
    Or,
    Slice,
    Sym,
    Truth,
    free_symbols,
)
from tempo_ir.index.rules import PROGRAM_FACTS, Monomial, at_least_zero, from_terms, terms

LARGEST_NUMBER = 1 << 40
"""Numbers of index expressions are at most this, so that times a dim they stay within 64 bits."""


class NotAffine(IndexExpressionError):
    """An expression multiplies or divides by a dim, which isl cannot represent, or its numbers are too great."""


_ISL_WORDS = frozenset(
    "exists and or not mod floord ceild implies infty infinity NaN rat true false min max floor ceil card sum".split()
)


@lru_cache(maxsize=4096)
def encode(name: str) -> str:
    """The isl identifier of a symbol, or of the text of a product of bounds: `t.x` is `t_x2ex`."""
    escaped = re.sub(r"_(?=x[0-9a-f]{2})|[^A-Za-z0-9_]", lambda match: f"_x{ord(match.group()):02x}", name)
    return escaped[0] + "_x00" + escaped[1:] if escaped in _ISL_WORDS else escaped


@lru_cache(maxsize=4096)
def decode(identifier: str) -> Expr:
    """The symbol or product of bounds that an isl identifier stands for."""
    name = re.sub(r"_x([0-9a-f]{2})", lambda match: chr(int(match.group(1), 16)), identifier).replace("\0", "")
    return Sym(name) if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$.]*", name) else parser.expr(name)


def _check(number: int, whole: Expr) -> None:
    if number > LARGEST_NUMBER:
        raise NotAffine(f"`{whole}` has the number {number}: those of an index are at most 2**40")


class Writer:
    """Writes expressions and conditions as isl text, and collects the parameters that they use."""

    def __init__(self, dims: Iterable[str], params: Iterable[str]) -> None:
        self.dims = frozenset(dims)
        self.params: dict[str, Expr] = {encode(name): Sym(name) for name in params}

    def expr(self, value: Expr) -> str:
        """`2*t + floor((T)/4)` for `2 * t + T floordiv 4`. Raises NotAffine."""
        text = ""
        for monomial, coefficient in terms(value).items():
            _check(abs(coefficient), value)
            sign = ("-" if coefficient < 0 else "+") if text else ("-" if coefficient < 0 else "")
            text += f" {sign} {self._term(monomial, abs(coefficient), value)}"
        return text.strip() or "0"

    def _term(self, monomial: Monomial, coefficient: int, whole: Expr) -> str:
        if not monomial:
            return str(coefficient)
        text = self._atom(monomial[0], whole) if len(monomial) == 1 else self._unknown(from_terms({monomial: 1}), whole)
        return text if coefficient == 1 else f"{coefficient}*{text}"

    def _atom(self, atom: Expr, whole: Expr) -> str:
        match atom:
            case Sym(name):
                if name not in self.dims:
                    self.params.setdefault(encode(name), atom)
                return encode(name)
            case Binary("//", dividend, Const(divisor)) if divisor > 0:
                _check(divisor, whole)
                return f"floor(({self.expr(dividend)})/{divisor})"
            case Binary("%", dividend, Const(divisor)) if divisor > 0:
                _check(divisor, whole)
                return f"(({self.expr(dividend)}) mod {divisor})"
            case MinMax(op, args):
                return f"{op}({', '.join(self.expr(arg) for arg in args)})"
            case _:
                return self._unknown(atom, whole)

    def _unknown(self, product: Expr, whole: Expr) -> str:
        if dims := free_symbols(product) & self.dims:
            raise NotAffine(
                f"`{whole}` is not affine: `{product}` multiplies or divides the dim `{min(dims)}` by what is no "
                "number; an index may use sums, multiples, quotients and remainders by numbers, min and max"
            )
        name = encode(str(product))
        self.params[name] = product
        return name

    def cond(self, value: Cond) -> str:
        """`0 <= t and t < T`. Raises NotAffine."""
        match value:
            case Truth(truth):
                return "true" if truth else "false"
            case Compare(op, lhs, rhs):
                return f"{self.expr(lhs)} {op} {self.expr(rhs)}"
            case And(args):
                return " and ".join(f"({self.cond(arg)})" for arg in args)
            case Or(args):
                return " or ".join(f"({self.cond(arg)})" for arg in args)

    def declared(self, body: str) -> str:
        """`[T] -> { body }`, the parameters first."""
        return f"[{', '.join(sorted(self.params))}] -> {{ {body} }}"

    def natural(self) -> str:
        """That the parameters are not negative."""
        held = [name for name, value in self.params.items() if at_least_zero(value, PROGRAM_FACTS)]
        return " and ".join(f"{name} >= 0" for name in sorted(held)) or "true"


def tuple_text(name: str, dims: Iterable[str]) -> str:
    return f"{name}[{', '.join(dims)}]"


def entry_text(writer: Writer, entry: Entry, output: str) -> str:
    if not isinstance(entry, Slice):
        return f"{output} = {writer.expr(entry)}"
    start, stop = writer.expr(entry.start), writer.expr(entry.stop)
    text = f"{output} >= {start} and {output} < {stop}"
    return text if entry.step == 1 else f"{text} and ({output} - ({start})) mod {entry.step} = 0"
