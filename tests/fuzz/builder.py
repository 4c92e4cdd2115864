"""The program under construction: its space, its values, and reads of them through random indices."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access, SdgOp, as_access
from tempo_ir.dialects.types import Shape, Tensor, dtype, dtype_name, shape_of, tensor
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, And, Compare, Cond, Entry, Expr, Slice, Sym, conj, free_symbols
from tests.fuzz import indices
from tests.fuzz.values import BOOLEANS, LARGEST, ROUNDINGS, WILD, Numbers, Value, union


class NotHere(Exception):
    """A step that cannot be made of the values there are."""


@dataclass
class Builder:
    """Adds ops to a block; `random` decides."""

    random: random.Random
    space: Space
    block: Block = field(default_factory=Block)
    values: list[Value] = field(default_factory=list[Value])
    constants: dict[str, Value] = field(default_factory=dict[str, Value])

    # ---- ops ----

    def add(self, op: SdgOp, numbers: Numbers) -> Value:
        """Place an op and note its value. Floats that grew large are squashed."""
        value = self.place(op, numbers)
        if value.is_float and value.numbers.magnitude > LARGEST:
            squashed = sdg.TanhOp(self.at(value), domain=Domain(value.dims))
            value = self.place(squashed, numbers.rounded(-1, 1))
        self.values.append(value)
        return value

    def place(self, op: SdgOp, numbers: Numbers) -> Value:
        """Place an op that later steps do not read on their own."""
        self.block.add_op(op)
        value = Value(op.results[0], numbers)
        return Value(value.ssa, numbers.settled(value.dtype)) if value.is_float else value

    def constant(self, number: float, type_: Tensor) -> Value:
        """A splat; equal ones are one op."""
        key = f"{number} {type_}"
        if key not in self.constants:
            grid = 4 if number * 16 == int(number * 16) else None
            self.constants[key] = self.place(sdg.ConstantOp(number, type_), Numbers(number, number, grid))
        return self.constants[key]

    @staticmethod
    def at(value: Value, *entries: Entry) -> Access:
        """The value at the current point, or through the entries."""
        return Access(value.ssa, tuple(entries) or tuple(Sym(dim) for dim in value.dims))

    # ---- choice ----

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, fits: Callable[[Value], bool]) -> Value:
        """A value, the later ones likelier. Raises NotHere."""
        found = [value for value in self.values if fits(value)]
        if not found:
            raise NotHere
        position = max(self.random.randrange(len(found)), self.random.randrange(len(found)))
        return found[position]

    def dims_of(self, *operands: Access | SSAValue, also: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The dims that an op with these operands varies over."""
        used = set(also)
        for operand in map(as_access, operands):
            used |= free_symbols(operand.index)
        return self.space.order(used)

    def domain(self, *operands: Access | SSAValue, also: frozenset[str] = frozenset()) -> Domain:
        return Domain(self.dims_of(*operands, also=also))

    def some_dims(self) -> tuple[str, ...]:
        """Some dims of the program, mostly all."""
        names = self.space.names
        return names if self.chance(0.6) else self.space.order({n for n in names if self.chance(0.5)})

    def extent(self) -> int:
        return self.random.choice([1, 2, 3, 3, 4, 5])

    # ---- reads ----

    def params_below(self, bound: Expr) -> tuple[str, ...]:
        """The bounds that the program declares not to exceed `bound`."""
        where = self.space.where.args if isinstance(self.space.where, And) else (self.space.where,)
        return tuple(
            c.lhs.name
            for c in where
            if isinstance(c, Compare) and c.op == "<=" and c.rhs == bound and isinstance(c.lhs, Sym)
        )

    def read(self, value: Value, *, points_only: bool = False, steady: bool = False) -> Access:
        """The value through a random index; where that may lie outside, a merge with another case is read instead.

        `steady` asks for extents that do not vary with dims.
        """
        for _ in range(8):
            access, inside = self._indexed(value, self.dims_around(value), points_only)
            try:
                accessed = access.tensor
            except VerifyException:  # rows of different extents
                continue
            shape = shape_of(accessed)
            varies = any(isinstance(extent, Expr) and free_symbols(extent) & set(self.space.names) for extent in shape)
            if (steady or inside != TRUE) and varies:
                continue
            if inside == TRUE:
                return access
            return self.at(self.guarded(access, inside, value.numbers))
        return self.at(value)

    def dims_around(self, value: Value) -> tuple[str, ...]:
        """The dims of a consumer: those of the value, perhaps without some, perhaps with more."""
        names = set(value.dims)
        for name in self.space.names:
            if self.chance(0.2):
                names ^= {name}
        return self.space.order(names)

    def _indexed(self, value: Value, dims: tuple[str, ...], points_only: bool) -> tuple[Access, Cond]:
        entries: list[Entry] = []
        inside: list[Cond] = []
        for dim in value.dims:
            bound = self.space.bound(dim)
            others = tuple(name for name in dims if name != dim)
            place = indices.Place(dim, bound, others, self.params_below(bound), self.random)
            sliced = sum(isinstance(entry, Slice) for entry in entries) >= 2
            made = indices.read(place, dim in dims, points_only=points_only or sliced)
            entries.append(made.entry)
            inside.append(made.inside)
        return Access(value.ssa, tuple(entries)), conj(*inside)

    def guarded(self, access: Access, inside: Cond, numbers: Numbers) -> Value:
        """`merge {inside : access, true : another value}`."""
        type_ = access.tensor
        dims = self.dims_of(access, also=free_symbols(inside) & frozenset(self.space.names))
        others = [v for v in self.values if v.type == type_ and set(v.dims) <= set(dims)]
        other = self.random.choice(others) if others and self.chance(0.5) else self.constant(*self.number_of(type_))
        cases: list[tuple[Cond, Access]] = [(inside, access), (TRUE, self.at(other))]
        merge = sdg.MergeOp(*cases, domain=Domain(dims))
        return self.add(merge, union([numbers, other.numbers]))

    def number_of(self, type_: Tensor) -> tuple[float, Tensor]:
        """A number of the element type for a constant."""
        name = next(n for n in (*ROUNDINGS, "i64", "i32", "bool") if dtype(n) == type_.element_type)
        if name == "bool":
            return self.random.choice([0, 1]), type_
        if name.startswith("i"):
            return self.random.randint(-3, 3), type_
        return self.random.choice([0.0, 1.0, -1.0, 0.5, 0.25, -2.5]), type_

    def squashed(self, value: Value) -> Value:
        """The value if it is small, else its tanh."""
        if value.numbers.magnitude <= 2:
            return value
        return self.place(sdg.TanhOp(self.at(value), domain=Domain(value.dims)), value.numbers.rounded(-1, 1))

    def flat(self, access: Access, numbers: Numbers) -> tuple[Access, Numbers]:
        """The access with the axes reduced whose extents vary with dims, so that it may be joined with others."""
        shape = shape_of(access.type)
        names = set(self.space.names)
        axes = [n for n, e in enumerate(shape) if isinstance(e, Expr) and free_symbols(e) & names]
        if not axes:
            return access, numbers
        also = frozenset[str]().union(*(free_symbols(e) for e in shape if isinstance(e, Expr))) & names
        domain = self.domain(access, also=also)
        op, made = self.reduction(access, axes, numbers, domain)
        value = self.place(op, made)
        return self.at(value), value.numbers

    def reduction(self, access: Access, axes: Sequence[int], numbers: Numbers, domain: Domain) -> tuple[SdgOp, Numbers]:
        """A reduction that has a value over nothing too."""
        is_bool = access.tensor.element_type == dtype("bool")
        if not is_bool and not self.chance(0.2):
            return sdg.SumOp(access, axes, domain=domain), scaled(numbers, 8 ** len(axes))
        op = self.random.choice([sdg.MaxOp, sdg.MinOp])(access, axes, domain=domain)
        return (op, BOOLEANS) if is_bool else self.finite(op, numbers)

    def finite(self, op: SdgOp, numbers: Numbers) -> tuple[SdgOp, Numbers]:
        """The extreme of perhaps nothing, which is infinite, brought back between the bounds of its elements."""
        if not is_of_floats(op):
            return op, WILD
        self.block.add_op(op)
        scalar = tensor(as_access(op.results[0]).tensor.element_type)
        top = self.constant(float(round(min(numbers.high, 30.0))), scalar)
        bottom = self.constant(float(round(max(numbers.low, -30.0))), scalar)
        upper = sdg.MinimumOp(_whole(op), self.at(top), domain=op.domain)
        self.block.add_op(upper)
        bounds = Numbers(bottom.numbers.low, top.numbers.high, numbers.grid, numbers.rounding)
        return sdg.MaximumOp(_whole(upper), self.at(bottom), domain=op.domain), bounds


def _whole(op: SdgOp) -> Access:
    return Access(op.results[0], tuple(Sym(dim) for dim in op.domain.dims))


def is_of_floats(op: SdgOp) -> bool:
    return dtype_name(as_access(op.results[0]).tensor.element_type) in ROUNDINGS


def scaled(numbers: Numbers, factor: float) -> Numbers:
    """Sums of up to `factor` such numbers."""
    return Numbers(min(numbers.low * factor, 0.0), max(numbers.high * factor, 0.0), numbers.grid, numbers.rounding)


def matching(shape: Shape, other: Shape) -> bool:
    """Whether shapes broadcast, by structure."""
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return all(a == b or a == 1 or b == 1 for a, b in pairs)
