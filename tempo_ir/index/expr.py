"""Index expressions: where an op reads, how large an extent is, when a case holds.

Four small algebras, all immutable, hashable and compared by structure:

- `Expr`, an integer expression over dims and bounds: `t - 1`, `min(t + 3, T - 1)`, `t floordiv 2`, `(t + 1) mod 8`;
- `Slice`, a range of points: `0:t + 1`, `0:T:3`;
- `Index`, a tuple of entries (an `Expr` reads a point, a `Slice` adds a leading axis): `[i, 0:t + 1]`;
- `Cond`, a condition: `1 <= P <= T`, `t = 0`, `t < P and i > 0`.

Operators and the functions of this module build *simplified* values (the rules are in `rules.py`), the constructors
build what they are told. `str()` is the IR text; it parses back (`parser.py`). Operators that MLIR's lexer cannot read
(`//` opens a comment, `%` an SSA name, `!` a type) are the words `floordiv`, `mod` and `ne`. Division floors and the
remainder has the sign of the divisor, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, overload

from tempo_ir.index.hashing import HashedOnce

Operator: TypeAlias = Literal["+", "-", "*", "//", "%"]
Extreme: TypeAlias = Literal["min", "max"]
Relation: TypeAlias = Literal["<", "<=", ">", ">=", "=", "!="]

RESERVED_WORDS = frozenset(
    ("and", "or", "not", "true", "false", "min", "max", "floordiv", "mod", "ne", "to", "down", "where")
)


class IndexExpressionError(ValueError):
    """An index expression that has no meaning, or none that the operation asked for can give."""


class _Arithmetic(HashedOnce):
    """The operators that every expression has; their results are simplified."""

    __slots__ = ()

    def __add__(self, other: Expr | int) -> Expr:
        return _combine("+", self, other)

    def __radd__(self, other: int) -> Expr:
        return _combine("+", other, self)

    def __sub__(self, other: Expr | int) -> Expr:
        return _combine("-", self, other)

    def __rsub__(self, other: int) -> Expr:
        return _combine("-", other, self)

    def __mul__(self, other: Expr | int) -> Expr:
        return _combine("*", self, other)

    def __rmul__(self, other: int) -> Expr:
        return _combine("*", other, self)

    def __floordiv__(self, other: Expr | int) -> Expr:
        return _combine("//", self, other)

    def __rfloordiv__(self, other: int) -> Expr:
        return _combine("//", other, self)

    def __mod__(self, other: Expr | int) -> Expr:
        return _combine("%", self, other)

    def __rmod__(self, other: int) -> Expr:
        return _combine("%", other, self)

    def __neg__(self) -> Expr:
        return _combine("*", -1, self)


@dataclass(frozen=True, slots=True)
class Const(_Arithmetic):
    """An integer."""

    value: int

    def __hash__(self) -> int:
        return hash(self.value)  # a dataclass would make a tuple of it each time

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Sym(_Arithmetic):
    """A dim (`t`) or a bound (`T`). Both are never negative in a program."""

    name: str

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


_SPELLING: Mapping[Operator, str] = {"+": "+", "-": "-", "*": "*", "//": "floordiv", "%": "mod"}


@dataclass(frozen=True, slots=True)
class Binary(_Arithmetic):
    """Two operands and an operator; `//` floors."""

    op: Operator
    lhs: Expr
    rhs: Expr

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        if self.op in ("+", "-"):
            return f"{self.lhs} {self.op} {_grouped(self.rhs, ('*', '//', '%'))}"
        if self.op == "*" and self.lhs == Const(-1) and not isinstance(self.rhs, Const):
            return f"-{_grouped(self.rhs, ())}"
        if self.op == "*" and isinstance(self.lhs, Const):
            lhs = str(self.lhs)
        else:
            lhs = _grouped(self.lhs, ("*",) if self.op == "*" else ())
        return f"{lhs} {_SPELLING[self.op]} {_grouped(self.rhs, ())}"


@dataclass(frozen=True, slots=True)
class MinMax(_Arithmetic):
    """The least or greatest of its arguments, of which there are two or more."""

    op: Extreme
    args: tuple[Expr, ...]

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        return f"{self.op}({', '.join(str(arg) for arg in self.args)})"


Expr: TypeAlias = Const | Sym | Binary | MinMax


def _grouped(operand: Expr, bare: tuple[Operator, ...]) -> str:
    """The text of an operand, in parentheses unless it is no binary operation or its operator is in `bare`."""
    if isinstance(operand, Binary) and (operand.op not in bare or _is_negation(operand)):
        return f"({operand})"
    if isinstance(operand, Const) and operand.value < 0:
        return f"({operand})"
    return str(operand)


def _is_negation(operand: Binary) -> bool:
    """Whether the text of a product starts with a minus sign."""
    return operand.op == "*" and isinstance(operand.lhs, Const) and operand.lhs.value < 0


def _combine(op: Operator, lhs: object, rhs: object) -> Expr:
    # rules.py imports the classes above, so it can only be imported once they exist; from the package takes longer.
    from tempo_ir.index.rules import combine

    return combine(op, _operand(lhs), _operand(rhs))


def _operand(value: object) -> Expr:
    if isinstance(value, (Const, Sym, Binary, MinMax)):
        return value
    if isinstance(value, int):
        return Const(value)
    raise TypeError(f"an index expression is made of integers, dims and bounds, not of {type(value).__name__}")


def as_expr(value: int | str | Expr) -> Expr:
    """The expression that an integer, a text (`"t - 1"`) or an expression stands for."""
    if isinstance(value, str):
        from tempo_ir.index import parser

        return parser.expr(value)
    return _operand(value)


def minimum(*args: Expr | int) -> Expr:
    """The least of the arguments, simplified: `minimum(t, t + 1)` is `t`."""
    from tempo_ir.index.rules import extreme

    return extreme("min", tuple(_operand(arg) for arg in args))


def maximum(*args: Expr | int) -> Expr:
    """The greatest of the arguments, simplified: `maximum(0, 3)` is `3`."""
    from tempo_ir.index.rules import extreme

    return extreme("max", tuple(_operand(arg) for arg in args))


@dataclass(frozen=True, slots=True)
class Slice(HashedOnce):
    """The points `start`, `start + step`, ... below `stop`; reading through it adds a leading axis.

    Empty where `stop <= start`.

    Raises:
        IndexExpressionError: the step is not positive.
    """

    start: Expr
    stop: Expr
    step: int = 1

    __hash__ = HashedOnce.__hash__

    def __post_init__(self) -> None:
        if self.step < 1:
            raise IndexExpressionError(f"the step of the slice `{self}` is {self.step}: a step must be at least 1")

    @property
    def extent(self) -> Expr:
        """How many points there are, if no symbol is negative: `0:t + 1` has `t + 1`, `t:T` has `max(0, T - t)`."""
        from tempo_ir.index.rules import nonnegative_extent

        return nonnegative_extent(self)

    def __str__(self) -> str:
        text = f"{self.start}:{self.stop}"
        return text if self.step == 1 else f"{text}:{self.step}"


Entry: TypeAlias = Const | Sym | Binary | MinMax | Slice
Index: TypeAlias = tuple[Entry, ...]


def index_text(index: Index) -> str:
    """The IR text of an index: `[i, 0:t + 1]`; nothing for the empty index."""
    return f"[{', '.join(str(entry) for entry in index)}]" if index else ""


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition that always or never holds."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


TRUE = Truth(True)
FALSE = Truth(False)


@dataclass(frozen=True, slots=True)
class Compare(HashedOnce):
    """A comparison of two expressions."""

    op: Relation
    lhs: Expr
    rhs: Expr

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        return f"{self.lhs} {'ne' if self.op == '!=' else self.op} {self.rhs}"


@dataclass(frozen=True, slots=True)
class And(HashedOnce):
    """Holds where all of its two or more arguments do."""

    args: tuple[Cond, ...]

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        text = ""
        previous: Cond | None = None
        for arg in self.args:
            text += _conjunct(previous, arg)
            previous = arg
        return text


@dataclass(frozen=True, slots=True)
class Or(HashedOnce):
    """Holds where one of its two or more arguments does."""

    args: tuple[Cond, ...]

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        return " or ".join(str(arg) for arg in self.args)


Cond: TypeAlias = Truth | Compare | And | Or


def _conjunct(previous: Cond | None, arg: Cond) -> str:
    """What `arg` adds to the text of a conjunction: `1 <= P` then `P <= T` is written `1 <= P <= T`."""
    if previous is None:
        return f"({arg})" if isinstance(arg, Or) else str(arg)
    ascending = ("<", "<=")
    if (
        isinstance(previous, Compare)
        and isinstance(arg, Compare)
        and previous.op in ascending
        and arg.op in ascending
        and previous.rhs == arg.lhs
    ):
        return f" {arg.op} {arg.rhs}"
    return f" and ({arg})" if isinstance(arg, Or) else f" and {arg}"


def compare(op: Relation, lhs: Expr | int, rhs: Expr | int) -> Cond:
    """A comparison, decided at once where the two sides differ by a constant: `compare("<", t, t + 1)` is true."""
    difference = _operand(lhs) - rhs
    if isinstance(difference, Const):
        return Truth(_RELATIONS[op](difference.value, 0))
    return Compare(op, _operand(lhs), _operand(rhs))


def conj(*conds: Cond) -> Cond:
    """The conjunction, flattened, without repeats; `TRUE` of no arguments."""
    args: dict[Cond, None] = {}
    for cond in conds:
        if not isinstance(cond, Truth):
            args.update(dict.fromkeys(cond.args if isinstance(cond, And) else (cond,)))
        elif not cond.value:
            return FALSE
    flat = tuple(args)
    return And(flat) if len(flat) > 1 else flat[0] if flat else TRUE


def disj(*conds: Cond) -> Cond:
    """The disjunction, flattened, without repeats; `FALSE` of no arguments."""
    args: dict[Cond, None] = {}
    for cond in conds:
        if not isinstance(cond, Truth):
            args.update(dict.fromkeys(cond.args if isinstance(cond, Or) else (cond,)))
        elif cond.value:
            return TRUE
    flat = tuple(args)
    return Or(flat) if len(flat) > 1 else flat[0] if flat else FALSE


_NEGATION: Mapping[Relation, Relation] = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}


def negate(cond: Cond) -> Cond:
    """The condition that holds exactly where `cond` does not; there is no "not" node: it moves to the comparisons."""
    match cond:
        case Truth(value):
            return Truth(not value)
        case Compare(op, lhs, rhs):
            return Compare(_NEGATION[op], lhs, rhs)
        case And(args):
            return disj(*(negate(arg) for arg in args))
        case Or(args):
            return conj(*(negate(arg) for arg in args))


AnyIndex: TypeAlias = Expr | Slice | Cond | Index


def free_symbols(value: AnyIndex) -> frozenset[str]:
    """The names of the dims and bounds in it."""
    if isinstance(value, tuple):  # of which most are asked for
        return _symbols_of_index(value)
    match value:
        case Sym(name):
            return frozenset((name,))
        case Const() | Truth():
            return frozenset()
        case Binary(_, lhs, rhs) | Compare(_, lhs, rhs):
            return free_symbols(lhs) | free_symbols(rhs)
        case Slice(start, stop):
            return free_symbols(start) | free_symbols(stop)
        case MinMax(_, args) | And(args) | Or(args):
            return frozenset[str]().union(*(free_symbols(arg) for arg in args))


@lru_cache(maxsize=16384)
def _symbols_of_index(index: Index) -> frozenset[str]:
    return frozenset[str]().union(*[free_symbols(entry) for entry in index])


@overload
def substitute(value: Expr, bindings: Mapping[str, Expr]) -> Expr: ...
@overload
def substitute(value: Slice, bindings: Mapping[str, Expr]) -> Slice: ...
@overload
def substitute(value: Entry, bindings: Mapping[str, Expr]) -> Entry: ...
@overload
def substitute(value: Cond, bindings: Mapping[str, Expr]) -> Cond: ...
@overload
def substitute(value: Index, bindings: Mapping[str, Expr]) -> Index: ...


def substitute(value: AnyIndex, bindings: Mapping[str, Expr]) -> AnyIndex:
    """`value` with each bound symbol replaced, all at once, and simplified."""
    match value:
        case Sym(name):
            return bindings.get(name, value)
        case Const() | Truth():
            return value
        case Binary(op, lhs, rhs):
            return _combine(op, substitute(lhs, bindings), substitute(rhs, bindings))
        case MinMax(op, args):
            new = [substitute(arg, bindings) for arg in args]
            return minimum(*new) if op == "min" else maximum(*new)
        case Slice(start, stop, step):
            return Slice(substitute(start, bindings), substitute(stop, bindings), step)
        case Compare(op, lhs, rhs):
            return compare(op, substitute(lhs, bindings), substitute(rhs, bindings))
        case And(args):
            return conj(*(substitute(arg, bindings) for arg in args))
        case Or(args):
            return disj(*(substitute(arg, bindings) for arg in args))
        case tuple():
            return tuple(substitute(entry, bindings) for entry in value)


_OPERATORS: Mapping[Operator, Callable[[int, int], int]] = {
    "+": lambda lhs, rhs: lhs + rhs,
    "-": lambda lhs, rhs: lhs - rhs,
    "*": lambda lhs, rhs: lhs * rhs,
    "//": lambda lhs, rhs: lhs // rhs,
    "%": lambda lhs, rhs: lhs % rhs,
}
_RELATIONS: Mapping[Relation, Callable[[int, int], bool]] = {
    "<": lambda lhs, rhs: lhs < rhs,
    "<=": lambda lhs, rhs: lhs <= rhs,
    ">": lambda lhs, rhs: lhs > rhs,
    ">=": lambda lhs, rhs: lhs >= rhs,
    "=": lambda lhs, rhs: lhs == rhs,
    "!=": lambda lhs, rhs: lhs != rhs,
}


@overload
def evaluate(value: Expr, bindings: Mapping[str, int]) -> int: ...
@overload
def evaluate(value: Slice, bindings: Mapping[str, int]) -> range: ...
@overload
def evaluate(value: Cond, bindings: Mapping[str, int]) -> bool: ...
@overload
def evaluate(value: Entry, bindings: Mapping[str, int]) -> int | range: ...
@overload
def evaluate(value: Index, bindings: Mapping[str, int]) -> tuple[int | range, ...]: ...


def evaluate(value: AnyIndex, bindings: Mapping[str, int]) -> int | range | bool | tuple[int | range, ...]:
    """The value at one point: an integer, for a slice the `range` it covers, for a condition a truth.

    Raises:
        IndexExpressionError: a symbol has no binding, or a divisor is zero.
    """
    match value:
        case Const(number):
            return number
        case Truth(truth):
            return truth
        case Sym(name):
            if name not in bindings:
                raise IndexExpressionError(f"`{name}` has no value; known are {', '.join(sorted(bindings)) or 'none'}")
            return bindings[name]
        case Binary(op, lhs, rhs):
            divisor = evaluate(rhs, bindings)
            if divisor == 0 and op in ("//", "%"):
                raise IndexExpressionError(f"`{value}` divides by zero")
            return _OPERATORS[op](evaluate(lhs, bindings), divisor)
        case MinMax(op, args):
            values = [evaluate(arg, bindings) for arg in args]
            return min(values) if op == "min" else max(values)
        case Slice(start, stop, step):
            return range(evaluate(start, bindings), evaluate(stop, bindings), step)
        case Compare(op, lhs, rhs):
            return _RELATIONS[op](evaluate(lhs, bindings), evaluate(rhs, bindings))
        case And(args):
            return all(evaluate(arg, bindings) for arg in args)
        case Or(args):
            return any(evaluate(arg, bindings) for arg in args)
        case tuple():
            return tuple(evaluate(entry, bindings) for entry in value)


def compose(index: Index, dims: tuple[str, ...], use: Index) -> Index | None:
    """The index that reads through two accesses at once, or None where no single index does.

    A value over `dims` reads its source at `index`; somebody reads the value at `use` (one entry per dim). Before:
    `y = x[t - 1]` and `y[2 * s]`; after: `x[2 * s - 1]`. A slice of a dim passes through a shift of that dim only
    (`y[0:T]` reads `x[0 - 1:T - 1]`), each sliced dim once, in order and before the axes that `index` itself adds, so
    that the axes of the result are where the two accesses put them.
    """
    points = {dim: entry for dim, entry in zip(dims, use, strict=True) if not isinstance(entry, Slice)}
    slices = {dim: entry for dim, entry in zip(dims, use, strict=True) if isinstance(entry, Slice)}
    waiting = list(slices)
    result: list[Entry] = []
    for entry in index:
        sliced = free_symbols(entry) & slices.keys()
        if not sliced:
            if isinstance(entry, Slice) and waiting:
                return None
            result.append(substitute(entry, points))
            continue
        if not waiting or isinstance(entry, Slice):
            return None
        shifted = _shifted(entry, waiting.pop(0), slices, points)
        if shifted is None:
            return None
        result.append(shifted)
    return None if waiting else tuple(result)


def _shifted(entry: Expr, dim: str, slices: Mapping[str, Slice], points: Mapping[str, Expr]) -> Slice | None:
    """`slices[dim]` moved by what `entry` adds to `dim`; None where `entry` is no shift of it."""
    offset = entry - Sym(dim)
    if free_symbols(offset) & slices.keys():
        return None
    moved = substitute(offset, points)
    taken = slices[dim]
    return Slice(taken.start + moved, taken.stop + moved, taken.step)
