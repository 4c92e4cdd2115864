"""Building a tile kernel from index expressions: what does not vary in a loop is placed before it, once.

Coordinates of tiles are index expressions (`tempo_ir.index`). Their symbols are of two kinds: those of the launch
(bounds, iterators of the loops round the launch), which reach the kernel as scalar arguments, a whole subexpression
at a time; and the kernel's own loop counters and program ids, whose names start with `$`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Attribute, Block, Operation

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import ALONG, DYNAMIC, INDEX, IntegersAttr
from tempo_ir.dialects.tile.builder import KernelBuilder, Loop, Value, number_attribute
from tempo_ir.dialects.tile.shape import ConstOp
from tempo_ir.index import (
    And,
    Binary,
    Compare,
    Cond,
    Const,
    Expr,
    Facts,
    MinMax,
    Or,
    Sym,
    Truth,
    as_expr,
    free_symbols,
    simplify,
)
from tempo_ir.index.rules import Terms, from_terms, terms

_OPERATIONS = {"+": ew.AddOp, "-": ew.SubOp, "*": ew.MulOp, "//": ew.FloorDivOp, "%": ew.ModOp}
_RELATIONS = {"<": ew.LtOp, "<=": ew.LeOp, ">": ew.GtOp, ">=": ew.GeOp, "=": ew.EqOp, "!=": ew.NeOp}


class ScopedBuilder(KernelBuilder):
    """A kernel builder that can place ops in any of the loop bodies that are open, and that evaluates index
    expressions."""

    def __init__(self, name: str, pointers: Mapping[str, Attribute], grid: Sequence[int | None]):
        super().__init__(name, pointers, grid)
        self._scopes: list[Block] = [self._block]
        self._depths: dict[str, int] = {}
        self._counters: dict[str, Value] = {}
        self._values: list[dict[Expr, Value]] = [{}]
        self._ranges: list[tuple[str, Expr, Expr]] = []
        self._firsts: dict[tuple[int, str], Value] = {}
        self.scalars: list[Expr] = []

    # -- the symbols of the kernel

    def counter(self, value: Value, low: Expr, high: Expr, name: str = "i") -> Sym:
        """A new symbol for a counter of the innermost open loop (or a program id) that runs in `[low, high)`."""
        symbol = Sym(f"${name}{len(self._depths)}")
        self._depths[symbol.name] = len(self._scopes) - 1
        self._counters[symbol.name] = value
        self._ranges.append((symbol.name, low, high - 1))
        return symbol

    @property
    def facts(self) -> Facts:
        """The ranges of the kernel's symbols."""
        return Facts(tuple(self._ranges), nonnegative=True)

    def simplify(self, expression: Expr) -> Expr:
        """The expression simplified under the ranges of the kernel's symbols."""
        return simplify(expression, self.facts) if _is_local(expression) else expression

    def is_local(self, expression: Expr) -> bool:
        """Whether the expression uses a symbol of the kernel."""
        return _is_local(expression)

    def depth(self, expression: Expr | int) -> int:
        """The number of open loops within which the expression varies."""
        if isinstance(expression, int):
            return 0
        return max((self._depths[name] for name in free_symbols(expression) if name in self._depths), default=0)

    # -- places

    @property
    def level(self) -> int:
        """How many loops and branches are open."""
        return len(self._scopes) - 1

    @contextmanager
    def at(self, depth: int) -> Generator[None]:
        """Place the ops that follow at the end (so far) of the loop body at `depth`."""
        block, scopes, constants = self._block, self._scopes, self._constants
        values = self._values
        self._block, self._scopes, self._constants = scopes[depth], scopes[: depth + 1], constants[: depth + 1]
        self._values = values[: depth + 1]
        yield
        self._block, self._scopes, self._constants, self._values = block, scopes, constants, values

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        scopes, values = self._scopes, self._values
        self._scopes, self._values = [*scopes, block], [*values, {}]
        with super()._inside(block):
            yield
        self._scopes, self._values = scopes, values

    # -- index expressions

    def index(self, expression: Expr | int) -> Value:
        """The value of an index expression, computed in the outermost scope that knows its symbols."""
        expression = as_expr(expression)
        if isinstance(expression, Const):
            return self.const(expression.value, INDEX)
        depth = self.depth(expression)
        known = self._values[depth].get(expression)
        if known is not None:
            return known
        with self.at(depth):
            value = self._values[depth][expression] = self._evaluate(expression)
        return value

    def condition(self, condition: Cond) -> Value:
        """Whether a condition on index expressions holds."""
        match condition:
            case Truth(value):
                return self.const(int(value), i1)
            case Compare(relation, lhs, rhs):
                return self.apply(_RELATIONS[relation], self.index(lhs), self.index(rhs))
            case And(args) | Or(args):
                operation = ew.AndOp if isinstance(condition, And) else ew.OrOp
                result, *others = map(self.condition, args)
                for other in others:
                    result = self.apply(operation, result, other)
                return result

    def first(self, expression: Expr, axis: str | None) -> Value:
        """The first index of a block along an axis; the op that gives it says what the axis is called."""
        if axis is None:
            return self.index(expression)
        if isinstance(expression, Const):
            known = self._firsts.get((expression.value, axis))
            if known is None:
                with self.at(0):
                    known = self.add(ConstOp(number_attribute(expression.value, INDEX)))
                self._firsts[expression.value, axis] = name_axis(known, axis)
            return known
        return name_axis(self.index(expression), axis)

    def cast_index(self, value: Value) -> Value:
        """An integer scalar as an index."""
        return value.to(INDEX)

    def extent(self, expression: Expr | int) -> Value | int:
        """A size or stride: a number where it is one."""
        expression = as_expr(expression)
        return expression.value if isinstance(expression, Const) else self.index(expression)

    def _evaluate(self, expression: Expr) -> Value:
        if not _is_local(expression):
            return self._scalar(expression)
        match expression:
            case Sym(name):
                return self._counters[name]
            case MinMax(op, args):
                values = [self.index(arg) for arg in args]
                combine = self.minimum if op == "min" else self.maximum
                result = values[0]
                for value in values[1:]:
                    result = combine(result, value)
                return result
            case Binary("//" | "%" as op, lhs, rhs):
                return self.apply(_OPERATIONS[op], self.index(lhs), self.index(rhs))
            case _:
                return self._sum(terms(expression))

    def _sum(self, polynomial: Terms) -> Value:
        """What varies most slowly is summed first, so that it stands outside of the inner loops."""
        inner = [monomial for monomial in polynomial if any(map(_is_local, monomial))]
        last = max(inner, key=lambda monomial: self.depth(from_terms({monomial: 1})))
        rest = from_terms({m: k for m, k in polynomial.items() if m != last})
        term = self._product(from_terms({last: 1}), polynomial[last])
        return term if rest == Const(0) else self.index(rest) + term

    def _product(self, monomial: Expr, coefficient: int) -> Value:
        value = self._monomial(monomial)
        return value if coefficient == 1 else value * coefficient

    def _monomial(self, monomial: Expr) -> Value:
        """A product: what the launch knows of it is one scalar."""
        if not (isinstance(monomial, Binary) and monomial.op == "*"):
            return self.index(monomial)
        factors = _factors(monomial)
        outside = [factor for factor in factors if not _is_local(factor)]
        values = [self.index(factor) for factor in factors if _is_local(factor)]
        if outside:
            product = outside[0]
            for factor in outside[1:]:
                product = product * factor
            values.append(self.index(product))
        result = values[0]
        for value in values[1:]:
            result = result * value
        return result

    def _scalar(self, expression: Expr) -> Value:
        """A scalar argument of the kernel: an expression that the launch evaluates."""
        block = self._kernel.body.block
        argument = block.insert_arg(INDEX, len(block.args))
        argument.name_hint = expression.name if isinstance(expression, Sym) else f"n{len(self.scalars)}"
        self.scalars.append(expression)
        return Value(self, argument)

    # -- finishing

    def set_grid(self, grid: Sequence[int | None]) -> None:
        """State the extents of the grid, None where only the launch knows."""
        self._kernel.grid = IntegersAttr(tuple(DYNAMIC if extent is None else extent for extent in grid))

    def rename(self, name: str) -> None:
        """Give the kernel another symbol name."""
        self._kernel.sym_name = StringAttr(name)


def name_axis(first: Value, axis: str) -> Value:
    """Let the op that gives the first index of a block say what axis it runs along; a loop has its counter's."""
    owner = first.ssa.owner
    if isinstance(owner, Operation):
        owner.attributes.setdefault(ALONG, StringAttr(axis))
    return first


def _is_local(expression: Expr) -> bool:
    """Whether an expression uses symbols of the kernel."""
    return any(name.startswith("$") for name in free_symbols(expression))


def _factors(monomial: Expr) -> list[Expr]:
    if isinstance(monomial, Binary) and monomial.op == "*":
        return _factors(monomial.lhs) + _factors(monomial.rhs)
    return [monomial]


__all__ = ["Loop", "ScopedBuilder", "Value"]
