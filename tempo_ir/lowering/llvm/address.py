"""Address algebra: sums of registers times numbers, and what is known about the range of those registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tempo_ir.lowering.llvm.text import Register, Text


class Linear:
    """`constant + sum of coefficient * register`, over i64. Immutable, compared and hashed by what it means."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, constant: int = 0, terms: Mapping[Register, int] | None = None):
        self.constant = constant
        self.terms = {register: n for register, n in terms.items() if n} if terms else {}
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.constant, self._named)) if self.terms else hash(self.constant)
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Linear) or self.constant != other.constant:
            return False
        return self.terms == other.terms or self._named == other._named

    @property
    def _named(self) -> frozenset[tuple[str, int]]:
        return frozenset((register.name, n) for register, n in self.terms.items())

    def __repr__(self) -> str:
        return " + ".join([str(self.constant), *(f"{n} * {register.name}" for register, n in self.terms.items())])

    @property
    def is_constant(self) -> bool:
        """Is it a number?"""
        return not self.terms

    def is_multiple(self, divisor: int) -> bool:
        """Is it known to be a multiple of a number?"""
        parts = [self.constant, *(n * register.multiple for register, n in self.terms.items())]
        return all(part % divisor == 0 for part in parts)

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.constant + other, self.terms)
        terms = dict(self.terms)
        for register, n in other.terms.items():
            terms[register] = terms.get(register, 0) + n
        return Linear(self.constant + other.constant, terms)

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (-other if isinstance(other, int) else other.times(-1))

    def times(self, factor: int) -> Linear:
        """Every part multiplied by a number."""
        return Linear(self.constant * factor, {register: n * factor for register, n in self.terms.items()})

    def substitute(self, register: Register, value: Linear) -> Linear:
        """The sum with `value` in the place of a register."""
        rest = Linear(self.constant, {r: n for r, n in self.terms.items() if r is not register})
        return rest + value.times(self.terms.get(register, 0))


ZERO = Linear()


def linear(x: Linear | Register | int) -> Linear:
    """A number or a register as a sum; literals become numbers."""
    if isinstance(x, Linear):
        return x
    if isinstance(x, int):
        return Linear(x)
    return Linear(int(x.name)) if x.is_constant else Linear(0, {x: 1})


def materialize(text: Text, x: Linear) -> Register:
    """The sum as a register; terms of outer loops are added first, so that they hoist."""
    total: Register | None = None
    for register, n in sorted(x.terms.items(), key=lambda term: term[0].level):
        term = register if n == 1 else register * n
        total = term if total is None else total + term
    if total is None:
        return text.constant(x.constant, "i64")
    return total + x.constant if x.constant else total


def product(text: Text, a: Linear, b: Linear | int) -> Linear:
    """a times b; a product of two registers is a register."""
    if isinstance(b, int):
        return a.times(b)
    if b.is_constant:
        return a.times(b.constant)
    if a.is_constant:
        return b.times(a.constant)
    return linear(materialize(text, a) * materialize(text, b))


def offset_pointer(text: Text, pointer: Register, x: Linear, llvm_type: str) -> Register:
    """`pointer` advanced by x elements: one step per loop level, the constant last (it becomes a displacement)."""
    by_level: dict[int, dict[Register, int]] = {}
    for register, n in x.terms.items():
        by_level.setdefault(register.level, {})[register] = n
    for level in sorted(by_level):
        step = materialize(text, Linear(0, by_level[level]))
        pointer = text.pure(
            f"getelementptr inbounds {llvm_type}, ptr {pointer.name}, i64 {step.name}", "ptr", 0, pointer, step
        )
    if x.constant:
        pointer = text.pure(
            f"getelementptr inbounds {llvm_type}, ptr {pointer.name}, i64 {x.constant}", "ptr", 0, pointer
        )
    return pointer


class Bounds:
    """
    What is known about registers: lower and upper bounds (inclusive), as sums of registers of outer levels. `prove`
    decides `x >= 0` from them. With `assume` set, what cannot be decided but depends only on registers of the entry
    (arguments, program ids: up to `entry_level`) is taken for true and put on `conditions`, to be tested once.
    """

    def __init__(self, assume: bool, entry_level: int):
        self.assume = assume
        self.entry_level = entry_level
        self.conditions: dict[Linear, None] = {}
        self._lower: dict[Register, list[Linear]] = {}
        self._upper: dict[Register, list[Linear]] = {}

    def learn(self, register: Register, lower: Iterable[Linear] = (), upper: Iterable[Linear] = ()) -> None:
        """Add bounds of a register."""
        self._lower.setdefault(register, []).extend(lower)
        self._upper.setdefault(register, []).extend(upper)

    def prove(self, x: Linear) -> bool:
        """Is `x >= 0` known, or assumed?"""
        assumable: list[Linear] = []
        if self._search(x, assumable, budget=[64]):
            return True
        if not self.assume or not assumable:
            return False
        self.conditions[assumable[0]] = None
        return True

    def known(self, x: Linear) -> bool:
        """Is `x >= 0` known, without assuming anything?"""
        return self._search(x, [], budget=[64])

    def _search(self, x: Linear, assumable: list[Linear], budget: list[int]) -> bool:
        """Replace registers, innermost first, by their bounds until a number is left; collect what could be assumed."""
        if x.is_constant:
            return x.constant >= 0
        if all(register.level <= self.entry_level for register in x.terms):
            assumable.append(x)
        budget[0] -= 1
        bounded = [register for register, n in x.terms.items() if self._bounds(register, n)]
        if budget[0] < 0 or not bounded:
            return False
        register = max(bounded, key=lambda register: register.level)
        bounds = self._bounds(register, x.terms[register])
        return any(self._search(x.substitute(register, bound), assumable, budget) for bound in bounds)

    def _bounds(self, register: Register, n: int) -> list[Linear]:
        return (self._lower if n > 0 else self._upper).get(register, [])
