"""Temporal dims, their bounds, and conditions over them, as objects that Python's operators build index expressions
from.

`t, T = tp.dim("t")` gives two `Dim`s: `t - 1`, `T - 1 - t`, `t // 2` and `tp.minimum(t + n, T - 1)` are `Dim`s
again, `t < P` is a `Condition`. Where a tensor is expected, either becomes one (i64 or bool) over the dims it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, overload

from tempo_ir import index as ix
from tempo_ir.frontend import recording
from tempo_ir.frontend.errors import ProgramError, ValueUnknownError, here
from tempo_ir.index.expr import Cond, Expr, Relation

if TYPE_CHECKING:
    from tempo_ir.frontend.tensor import Tensor, Value

    Number = int | float


class Dim:
    """An integer expression over dims and bounds, known at every point while the program runs."""

    __slots__ = ("expr",)

    def __init__(self, expression: Expr):
        self.expr = expression

    def __str__(self) -> str:
        return str(self.expr)

    def __repr__(self) -> str:
        return str(self.expr)

    def __hash__(self) -> int:
        return hash(self.expr)

    def __bool__(self) -> bool:
        if isinstance(self.expr, ix.Const):
            return self.expr.value != 0
        raise ValueUnknownError(
            f"'{self}' has no value while the program is recorded: compare it, as in tp.where({self} > 0, ...)"
        )

    def __index__(self) -> int:
        """What range(), int(), float() and indices of Python's own lists ask for."""
        if isinstance(self.expr, ix.Const):
            return self.expr.value
        raise ValueUnknownError(
            f"'{self}' has no value while the program is recorded, so Python cannot count to it, convert it or index "
            'by it: a tensor over a dim (tp.dim("t")) has its points, and a number that is fixed while recording is a '
            "setting of the program (`def program(steps=4)`)"
        )

    def __iter__(self) -> NoReturn:
        raise ValueUnknownError(
            f"'{self}' cannot be iterated over: what a program computes over a dim is said once, for all its points"
        )

    @overload
    def __add__(self, other: int | Dim) -> Dim: ...
    @overload
    def __add__(self, other: float) -> Tensor: ...
    def __add__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: a + b, lambda a, b: a + b)

    @overload
    def __radd__(self, other: int | Dim) -> Dim: ...
    @overload
    def __radd__(self, other: float) -> Tensor: ...
    def __radd__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: b + a, lambda a, b: b + a)

    @overload
    def __sub__(self, other: int | Dim) -> Dim: ...
    @overload
    def __sub__(self, other: float) -> Tensor: ...
    def __sub__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: a - b, lambda a, b: a - b)

    @overload
    def __rsub__(self, other: int | Dim) -> Dim: ...
    @overload
    def __rsub__(self, other: float) -> Tensor: ...
    def __rsub__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: b - a, lambda a, b: b - a)

    @overload
    def __mul__(self, other: int | Dim) -> Dim: ...
    @overload
    def __mul__(self, other: float) -> Tensor: ...
    def __mul__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: a * b, lambda a, b: a * b)

    @overload
    def __rmul__(self, other: int | Dim) -> Dim: ...
    @overload
    def __rmul__(self, other: float) -> Tensor: ...
    def __rmul__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: b * a, lambda a, b: b * a)

    @overload
    def __floordiv__(self, other: int | Dim) -> Dim: ...
    @overload
    def __floordiv__(self, other: float) -> Tensor: ...
    def __floordiv__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: a // b, lambda a, b: a // b)

    @overload
    def __rfloordiv__(self, other: int | Dim) -> Dim: ...
    @overload
    def __rfloordiv__(self, other: float) -> Tensor: ...
    def __rfloordiv__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: b // a, lambda a, b: b // a)

    @overload
    def __mod__(self, other: int | Dim) -> Dim: ...
    @overload
    def __mod__(self, other: float) -> Tensor: ...
    def __mod__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: a % b, lambda a, b: a % b)

    @overload
    def __rmod__(self, other: int | Dim) -> Dim: ...
    @overload
    def __rmod__(self, other: float) -> Tensor: ...
    def __rmod__(self, other: Number | Dim) -> Dim | Tensor:
        return _arithmetic(self, other, lambda a, b: b % a, lambda a, b: b % a)

    def __neg__(self) -> Dim:
        return Dim(-self.expr)

    def __truediv__(self, other: Number | Dim) -> Tensor:
        return self.tensor() / other

    def __rtruediv__(self, other: Number | Dim) -> Tensor:
        return other / self.tensor()

    def __pow__(self, other: Number | Dim) -> Tensor:
        return self.tensor() ** other

    def __rpow__(self, other: Number | Dim) -> Tensor:
        return other ** self.tensor()

    def __lt__(self, other: int | Dim) -> Condition:
        return compare("<", self, other)

    def __le__(self, other: int | Dim) -> Condition:
        return compare("<=", self, other)

    def __gt__(self, other: int | Dim) -> Condition:
        return compare(">", self, other)

    def __ge__(self, other: int | Dim) -> Condition:
        return compare(">=", self, other)

    def __eq__(self, other: object) -> Condition:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare("=", self, other)

    def __ne__(self, other: object) -> Condition:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare("!=", self, other)

    def tensor(self) -> Tensor:
        """The value at the current point, as an i64 scalar."""
        from tempo_ir.frontend.elementwise import as_tensor

        return as_tensor(self)


class Condition:
    """A condition on dims and bounds: the case of a definition, or a boolean scalar. Combine with `&`, `|`, `~`."""

    __slots__ = ("cond",)

    def __init__(self, cond: Cond):
        self.cond = cond

    def __str__(self) -> str:
        return str(self.cond)

    def __repr__(self) -> str:
        return str(self.cond)

    def __hash__(self) -> int:
        return hash(self.cond)

    def __bool__(self) -> bool:
        if self.cond in (ix.TRUE, ix.FALSE):
            return self.cond == ix.TRUE
        raise ValueUnknownError(
            f"'{self}' is not known while the program is recorded: use it as a case (`x[{self}] = ...`) or in "
            "tp.where, "
            "and join conditions with & and |"
        )

    def __and__(self, other: Condition | Tensor) -> Condition | Tensor:
        if not isinstance(other, Condition):
            return self.tensor() & other
        return Condition(ix.conj(self.cond, other.cond))

    def __or__(self, other: Condition | Tensor) -> Condition | Tensor:
        if not isinstance(other, Condition):
            return self.tensor() | other
        return Condition(ix.disj(self.cond, other.cond))

    def __invert__(self) -> Condition:
        return Condition(ix.negate(self.cond))

    def tensor(self) -> Tensor:
        """The condition at the current point, as a boolean scalar."""
        from tempo_ir.frontend.elementwise import as_tensor

        return as_tensor(self)


def is_integer(value: object) -> TypeGuard[int | Dim]:
    """True for what can stand in an index expression: a Python or numpy integer, or a Dim; booleans are not numbers."""
    import numpy as np

    return isinstance(value, int | np.integer | Dim) and not isinstance(value, bool)


def expression(value: int | Dim) -> Expr:
    """The index expression of an integer or a Dim. Raises ProgramError for anything else: nothing is rounded."""
    if not is_integer(value):
        raise ProgramError(f"an integer or a dim is needed here, got {value!r}")
    return value.expr if isinstance(value, Dim) else ix.Const(int(value))


def dim_or_int(value: Expr | int) -> int | Dim:
    """A constant expression as a Python integer, any other as a Dim."""
    if isinstance(value, int):
        return value
    return value.value if isinstance(value, ix.Const) else Dim(value)


def compare(operator: Relation, first: Dim, second: object) -> Condition:
    """`first < second` and its like; anything that is no integer is left to the other operand's operators."""
    if not is_integer(second):
        return NotImplemented
    return Condition(ix.compare(operator, first.expr, expression(second)))


def _arithmetic(
    first: Dim, second: object, exact: Callable[[Expr, Expr], Expr], real: Callable[[Tensor, float], Tensor]
) -> Dim | Tensor:
    """Integers stay index expressions; a float makes the result a tensor; a tensor's own operators take over."""
    if isinstance(second, float):
        return real(first.tensor(), second)
    if not is_integer(second):
        return NotImplemented
    return Dim(exact(first.expr, expression(second)))


def dim(
    name: str,
    bound: int | Dim | None = None,
    *,
    at_least: int | Dim | None = None,
    at_most: int | Dim | None = None,
    until: Callable[[], Value] | None = None,
) -> tuple[Dim, Dim | int]:
    """Declare the next inner dim; gives the dim and its bound.

    Without `bound`, the bound is a symbol: the name in capitals, read off the inputs or given at the call. With it,
    the bound is a constant or follows from earlier ones (`tp.dim("m", T * 8 // 64)`). `at_least` and `at_most`
    declare relations between bounds that the call checks: `tp.dim("p", at_most=T)` is `where P <= T`.

    `until=lambda: done` ends the dim by data: its steps run up to the first at which `done`, a boolean scalar over the
    dim, is true, that one included, and the bound is then their number. What the call gives is the most that there may
    be. The function is called when the program is recorded, so that it may name what comes after the dim.
    Raises ProgramError for a name that is taken or no word, and for a bound below 0 or that varies over a dim.
    """
    record = recording.current()
    symbol = ix.Sym(name.upper()) if bound is None else expression(bound)
    if isinstance(symbol, ix.Const) and symbol.value < 0:
        raise ProgramError(f"dim '{name}' has the bound {symbol}: a bound is a number of steps, 0 or more")
    if varying := sorted(ix.free_symbols(symbol) & record.dims.keys()):
        raise ProgramError(
            f"the bound {symbol} of dim '{name}' varies over dim {varying[0]}: a bound is one number for a call"
        )
    record.declare_dim(name, symbol)
    if until is not None:
        end_by_data(name, bound, until)
    if at_least is not None:
        record.assume(ix.Compare("<=", expression(at_least), symbol))
    if at_most is not None:
        record.assume(ix.Compare("<=", symbol, expression(at_most)))
    return Dim(ix.Sym(name)), dim_or_int(symbol)


def end_by_data(name: str, bound: int | Dim | None, until: Callable[[], Value]) -> None:
    """Once the program is recorded, record what ends a dim."""
    from tempo_ir.dialects import sdg
    from tempo_ir.frontend.elementwise import as_tensor
    from tempo_ir.index.domain import Domain

    record, place = recording.current(), here()
    if bound is not None:
        raise ProgramError(f"dim '{name}' ends by data, so its bound is found by the program: leave out {bound}")
    if not callable(until):
        raise ProgramError(
            f"until= of dim '{name}' is a function, since the dim is there before what ends it: until=lambda: done"
        )

    def end() -> None:
        done = as_tensor(until())
        if done.dtype.name != "bool" or done.shape != ():
            raise ProgramError(
                f"until= of dim '{name}' gives {done.spec}, a bool at each step is needed: take tp.all or tp.any", place
            )
        if others := [other for other in done.dims if other != name]:
            raise ProgramError(
                f"until= of dim '{name}' varies over {', '.join(others)} too, and a dim has one end: let it run until "
                f"tp.all(...) over {others[0]}, or make {others[0]} an axis",
                place,
            )
        record.add(sdg.UntilOp(done.access, domain=Domain((name,))), place)

    record.endings.append(end)


def dims(*names: str) -> tuple[tuple[Dim, Dim], ...]:
    """Declare several dims, outer first: `(i, I), (t, T) = tp.dims("i", "t")`."""
    pairs = (dim(name) for name in names)
    return tuple((point, Dim(expression(bound))) for point, bound in pairs)


def dim_names(over: Dim | Sequence[Dim], what: str) -> tuple[str, ...]:
    """The names of the dims in `over=`, which stand in the order of their declaration."""
    entries: Sequence[Any] = over if isinstance(over, Sequence) else (over,)
    declared = recording.current().dims
    names: list[str] = []
    for entry in entries:
        if not isinstance(entry, Dim) or not isinstance(entry.expr, ix.Sym) or entry.expr.name not in declared:
            raise ProgramError(
                f"{what} varies over dims made by tp.dim, got '{entry}' (declared: {', '.join(declared) or 'none'})"
            )
        names.append(entry.expr.name)
    in_order = [name for name in declared if name in names]
    if names != in_order:
        raise ProgramError(
            f"{what} lists its dims as ({', '.join(names)}): list each once, in the order of their declaration, "
            f"({', '.join(in_order)})"
        )
    return tuple(names)
