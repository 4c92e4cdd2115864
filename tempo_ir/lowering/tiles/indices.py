"""The `index` values of a tile kernel as index expressions, so that offsets can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import Pure

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import shape, structure
from tempo_ir.dialects.tile.attributes import DYNAMIC, INDEX
from tempo_ir.index import (
    Cond,
    Const,
    Expr,
    Facts,
    Sym,
    Truth,
    as_expr,
    compare,
    conj,
    disj,
    free_symbols,
    maximum,
    minimum,
    negate,
    simplify,
    substitute,
)
from tempo_ir.index.expr import Relation
from tempo_ir.index.rules import at_least_zero

_ARITHMETIC: Mapping[type[Operation], Callable[[Expr, Expr], Expr]] = {
    ew.AddOp: lambda a, b: a + b,
    ew.SubOp: lambda a, b: a - b,
    ew.MulOp: lambda a, b: a * b,
    ew.MinOp: lambda a, b: minimum(a, b),
    ew.MaxOp: lambda a, b: maximum(a, b),
}
_DIVISIONS: Mapping[type[Operation], Callable[[Expr, Expr], Expr]] = {
    ew.FloorDivOp: lambda a, b: a // b,
    ew.ModOp: lambda a, b: a % b,
}
_RELATIONS: Mapping[type[Operation], Relation] = {
    ew.LtOp: "<",
    ew.LeOp: "<=",
    ew.GtOp: ">",
    ew.GeOp: ">=",
    ew.EqOp: "=",
    ew.NeOp: "!=",
}


@dataclass
class Indices:
    """
    What each `index` value of a kernel is. Arguments, program ids, counters, and whatever is no arithmetic, are
    symbols; of counters and program ids the range is known (`facts`). Of an argument nothing is, it may be negative.
    """

    kernel: structure.KernelOp
    given: Mapping[SSAValue, tuple[SSAValue, int]] = field(default_factory=dict[SSAValue, tuple[SSAValue, int]])
    """Arguments that are another one and a number."""
    known: dict[SSAValue, Expr] = field(default_factory=dict[SSAValue, Expr])
    symbols: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    programs: dict[int, Expr] = field(default_factory=dict[int, Expr])
    ranges: list[tuple[str, Expr, Expr]] = field(default_factory=list[tuple[str, Expr, Expr]])

    @property
    def facts(self) -> Facts:
        """The ranges of counters and program ids, as far as asked for by now."""
        return Facts(tuple(self.ranges))

    def of(self, value: SSAValue) -> Expr:
        """The expression of an `index` value."""
        if value not in self.known:
            self.known[value] = self._expression(value)
        return self.known[value]

    def extent(self, size: int | SSAValue) -> Expr:
        """A size or stride of a view."""
        return as_expr(size) if isinstance(size, int) else self.of(size)

    def _expression(self, value: SSAValue) -> Expr:
        op = value.owner
        if isinstance(op, Block):
            return self._argument(value, op)
        if isinstance(op, shape.ConstOp) and isinstance(op.value, IntegerAttr):
            return Const(op.value.value.data)
        if isinstance(op, structure.ProgramIdOp):
            return self._program(op)
        if isinstance(op, ew.BinaryOp) and value.type == INDEX:
            lhs, rhs = self.of(op.lhs), self.of(op.rhs)
            if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](lhs, rhs)
            if type(op) in _DIVISIONS and isinstance(rhs, Const) and rhs.value > 0:
                return _DIVISIONS[type(op)](lhs, rhs)
        if isinstance(op, ew.NegOp) and value.type == INDEX:
            return -self.of(op.value)
        return self._symbol("v", value)

    def _symbol(self, letter: str, value: SSAValue) -> Sym:
        symbol = Sym(f"{letter}{len(self.symbols)}")
        self.symbols[symbol.name] = value
        return symbol

    def _argument(self, value: SSAValue, block: Block) -> Expr:
        loop = block.parent_op()
        if value in self.given:
            other, number = self.given[value]
            return self.of(other) + number
        if not isinstance(loop, structure.ForOp) or value is not block.args[0]:
            return self._symbol("v", value)
        low, high = self.of(loop.low), self.of(loop.high)
        symbol = self._symbol("t", value)
        self.ranges.append((symbol.name, low, high - 1))
        return symbol

    def _program(self, op: structure.ProgramIdOp) -> Expr:
        axis = op.axis.value.data
        if axis not in self.programs:
            symbol = self._symbol("p", op.result)
            count = self.kernel.grid.data[axis]
            last = Sym(f"last_{symbol.name}") if count == DYNAMIC else Const(count - 1)
            self.ranges.insert(0, (symbol.name, Const(0), last))
            self.programs[axis] = symbol
        return self.programs[axis]

    def at_least_zero(self, value: Expr) -> bool:
        """Whether an expression is proved to be at least 0."""
        return at_least_zero(value, self.facts)

    def varies_in(self, value: Expr, loop: structure.ForOp) -> bool:
        """Whether an expression uses a value that the body of a loop makes, the counter included."""
        return any(self.is_inside(self.symbols[name], loop) for name in free_symbols(value) if name in self.symbols)

    def is_inside(self, value: SSAValue, loop: structure.ForOp) -> bool:
        """Whether the body of a loop makes a value; a program id is the same wherever it is asked for."""
        if isinstance(value.owner, structure.ProgramIdOp):
            return False
        return is_within(value, loop.body.block)

    def counter(self, loop: structure.ForOp) -> Sym:
        """The symbol that counts a loop."""
        counter = self.of(loop.body.block.args[0])
        assert isinstance(counter, Sym)
        return counter

    def at_first(self, value: SSAValue, loop: structure.ForOp) -> Expr:
        """An `index` value in the first iteration of a loop."""
        return substitute(self.of(value), {self.counter(loop).name: self.of(loop.low)})

    def trips(self, loop: structure.ForOp) -> bool:
        """Whether a loop is proved to run at least once, where it stands."""
        low, high = self.of(loop.low), self.of(loop.high)
        region = loop.parent_region()
        while region is not None:
            around = region.parent_op()
            if isinstance(around, structure.IfOp) and region is around.then:
                if self.condition(around.condition) == compare("<", low, high):
                    return True
            region = None if around is None else around.parent_region()
        return self.at_least_zero(high - low - 1)

    def condition(self, value: SSAValue) -> Cond | None:
        """A boolean scalar as a condition on indices, None where it is none."""
        op = value.owner
        match op:
            case ew.ComparisonOp() if op.lhs.type == INDEX:
                return compare(_RELATIONS[type(op)], self.of(op.lhs), self.of(op.rhs))
            case ew.AndOp() | ew.OrOp():
                lhs, rhs = self.condition(op.lhs), self.condition(op.rhs)
                if lhs is None or rhs is None:
                    return None
                return conj(lhs, rhs) if isinstance(op, ew.AndOp) else disj(lhs, rhs)
            case ew.NotOp():
                inner = self.condition(op.value)
                return None if inner is None else negate(inner)
            case shape.ConstOp() if isinstance(op.value, IntegerAttr):
                return Truth(op.value.value.data != 0)
            case _:
                return None

    def decide_at(self, condition: Cond, counter: Sym, value: Expr) -> bool | None:
        """Whether a condition holds for certain at a value of a counter, or fails; None where neither is proved."""
        decided = simplify(substitute(condition, {counter.name: value}), self.facts)
        return decided.value if isinstance(decided, Truth) else None


def is_within(value: SSAValue, block: Block) -> bool:
    """Whether a block, or one inside of it, makes a value."""
    around = value.owner if isinstance(value, BlockArgument) else value.owner.parent_block()
    while isinstance(around, Block):
        if around is block:
            return True
        around = around.parent_block()
    return False


def can_precede(value: SSAValue, loop: structure.ForOp) -> bool:
    """Whether what a loop makes a value of can be made before it as well, for its first iteration."""
    if not is_within(value, loop.body.block) or value is loop.body.block.args[0]:
        return True
    op = value.owner
    if isinstance(op, Block) or not op.has_trait(Pure):
        return False
    return all(can_precede(operand, loop) for operand in op.operands)
