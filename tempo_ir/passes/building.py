"""Building sdg ops inside a pass: short to write, over the smallest domain that serves, with the source location kept.

Values are `Access`es throughout: a value and the index that reads it, over the dims of the domain for which ops are
built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeAlias, cast

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation

from tempo_ir.dialects.sdg import (
    Access,
    AddOp,
    AndOp,
    BinaryOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    ContractOp,
    DivOp,
    IndexOp,
    MulOp,
    NegOp,
    ReduceOp,
    ReshapeOp,
    SdgOp,
    SelectOp,
    SliceOp,
    SubOp,
    SumOp,
    UnaryOp,
    domain_of,
)
from tempo_ir.dialects.sdg.base import space_of
from tempo_ir.dialects.sdg.reads import holds, read_problem
from tempo_ir.dialects.sdg.symbols import position
from tempo_ir.dialects.types import Extent, Shape, element, shape_of, tensor
from tempo_ir.index import And, Cond, Const, Domain, Expr, Index, Slice, Space, Sym, as_expr, conj, free_symbols

ConstantKey: TypeAlias = tuple[str, Attribute]


class Constructor(Protocol):
    """What every op class is, seen as a function of its operands, its domain and its properties."""

    def __call__(self, *operands: Access, domain: Domain, **properties: object) -> SdgOp: ...


def narrowed(domain: Domain, accesses: Sequence[Access], symbols: frozenset[str] = frozenset()) -> Domain:
    """The part of `domain` over which an op with these operands varies.

    Dims that no operand reads at its current point, and no property uses (`symbols`), are dropped: `%w[i]` alone, in
    `(i, t)`, needs `(i)`. Every dim stays where an operand is read elsewhere than at the current point, or where a
    range or condition ties a dim that would go to one that stays, since then a read might leave its source.
    """
    dims = set(domain.dims)
    used = dims & symbols
    for access in accesses:
        for entry in access.index:
            if not isinstance(entry, Sym) or entry.name not in dims:
                return domain
            used.add(entry.name)
    if used == dims:
        return domain
    for name, first, end in domain.ranges:
        tied = (free_symbols(first) | free_symbols(end)) & dims
        if tied and (name in used or tied & used):
            return domain
    kept: list[Cond] = []
    for part in domain.where.args if isinstance(domain.where, And) else (domain.where,):
        tied = free_symbols(part) & dims
        if tied & used and not tied <= used:
            return domain
        if not tied - used:
            kept.append(part)
    ranges = tuple(r for r in domain.ranges if r[0] in used)
    return Domain(tuple(dim for dim in domain.dims if dim in used), ranges, conj(*kept))


def normal_form(domain: Domain, space: Space) -> Domain:
    """The same points, as ranges where they are ranges."""
    from tempo_ir.index import isl

    try:
        return isl.set_to_domain(isl.domain_set(space, domain), domain.dims, space)
    except isl.Inexact:
        return domain


def number_of(access: Access) -> bool | int | float | None:
    """The number that an access reads at every element, where its source is a constant that says so."""
    owner = access.value.owner
    return owner.number if isinstance(owner, ConstantOp) else None


def static_product(extents: Sequence[Extent]) -> Expr:
    """The product of extents."""
    product: Expr = Const(1)
    for extent in extents:
        product = product * as_expr(extent)
    return product


def full(extent: Extent) -> Slice:
    """The range of a whole axis."""
    return Slice(Const(0), as_expr(extent))


def _is_valid(op: SdgOp) -> bool:
    """Whether all reads of an op, and what else it needs, hold at every point of its domain."""
    space, domain = op.space, op.domain
    for access in op.accesses:
        if read_problem(space, domain, access.index, domain_of(access.value)) is not None:
            return False
    return holds(op, space, domain)


@dataclass(frozen=True)
class GraphBuilder:
    """Inserts ops before `anchor`, for the points of `domain`, as if the user had written them at `location`."""

    anchor: Operation
    domain: Domain
    location: LocationAttr
    constants: dict[ConstantKey, Access] = field(default_factory=dict[ConstantKey, Access])

    def at(self, domain: Domain, location: LocationAttr | None = None) -> GraphBuilder:
        """The same builder for other points."""
        return replace(self, domain=domain, location=location or self.location)

    def insert(self, op: SdgOp, name: str | None = None) -> Access:
        """Put `op` into the program; its result read at the current point."""
        op.location = self.location
        block = self.anchor.parent
        if block is None:
            raise ValueError(f"{self.anchor.name} stands in no program, so nothing can be built before it")
        block.insert_op_before(op, self.anchor)
        if name is not None:
            op.results[0].name_hint = name
        return Access(op.results[0], tuple(Sym(dim) for dim in op.domain.dims))

    def build(
        self,
        kind: type[SdgOp] | Callable[..., SdgOp],
        *operands: Access,
        symbols: frozenset[str] = frozenset(),
        **properties: object,
    ) -> Access:
        """An op of a class, over the dims that its operands and `symbols` (what its properties use) vary over.

        Over all dims where it reads or claims what only a point of them makes true: that there is an element `T - 1`,
        if `t < T`.
        """
        domain = narrowed(self.domain, operands, symbols)
        op = cast(Constructor, kind)(*operands, domain=domain, **properties)
        access = self.insert(op)
        if domain == self.domain or _is_valid(op):
            return access
        op.domain = self.domain
        return Access(access.value, tuple(Sym(dim) for dim in self.domain.dims))

    # Numbers

    def number(self, value: float, element_type: Attribute) -> Access:
        """A scalar constant; the same number is made once."""
        return self.constant(value, element_type, ())

    def constant(self, value: float, element_type: Attribute, shape: Shape) -> Access:
        """A number at every element of a shape over the bounds alone; the same constant is made once."""
        key = (repr(value), tensor(element_type, shape))
        if key not in self.constants:
            self.constants[key] = self.insert(ConstantOp(value, tensor(element_type, shape)))
        return self.constants[key]

    def number_like(self, value: float, other: Access) -> Access:
        """A scalar constant with the element type of `other`."""
        return self.number(value, element(other.type))

    def count(self, extents: Sequence[Extent], element_type: Attribute) -> Access:
        """How many elements axes of these extents have, as a scalar of `element_type`."""
        product = static_product(extents)
        if isinstance(product, Const):
            return self.number(product.value, element_type)
        count = position(product, self.domain.dims)
        index = self.build(IndexOp, expression=count, symbols=free_symbols(count))
        return self.build(CastOp, index, element_type=element_type)

    # Elementwise

    def add(self, lhs: Access, rhs: Access) -> Access:
        """`lhs + rhs`."""
        return self.build(AddOp, lhs, rhs)

    def sub(self, lhs: Access, rhs: Access) -> Access:
        """`lhs - rhs`."""
        return self.build(SubOp, lhs, rhs)

    def mul(self, lhs: Access, rhs: Access) -> Access:
        """`lhs * rhs`; numbers are multiplied at once, and a factor 1 vanishes."""
        return self._scaled(MulOp, lhs, rhs, lambda x, y: x * y, commutes=True)

    def div(self, lhs: Access, rhs: Access) -> Access:
        """`lhs / rhs`; numbers are divided at once, and a divisor 1 vanishes."""
        return self._scaled(DivOp, lhs, rhs, lambda x, y: x / y, commutes=False)

    def _scaled(
        self,
        kind: type[BinaryOp],
        lhs: Access,
        rhs: Access,
        compute: Callable[[float, float], float],
        *,
        commutes: bool,
    ) -> Access:
        left, right = _scalar(lhs), _scalar(rhs)
        if right == 1:
            return lhs
        if commutes and left == 1:
            return rhs
        if left is not None and right:
            return self.number(compute(left, right), element(lhs.type))
        return self.build(kind, lhs, rhs)

    def neg(self, operand: Access) -> Access:
        """`-operand`."""
        value = _scalar(operand)
        return self.build(NegOp, operand) if value is None else self.number(-value, element(operand.type))

    def scaled(self, factor: float, operand: Access) -> Access:
        """`operand` times a number."""
        return self.mul(operand, self.number_like(factor, operand))

    def logical_and(self, lhs: Access, rhs: Access) -> Access:
        """Both of two conditions."""
        return lhs if lhs == rhs else self.build(AndOp, lhs, rhs)

    def select(self, condition: Access, lhs: Access, rhs: Access) -> Access:
        """`condition ? lhs : rhs`."""
        return self.build(SelectOp, condition, lhs, rhs)

    def where(self, condition: Access, operand: Access) -> Access:
        """`operand` where the condition holds, 0 elsewhere."""
        return self.select(condition, operand, self.number_like(0.0, operand))

    def unary(self, kind: type[UnaryOp], operand: Access) -> Access:
        """An elementwise function."""
        return self.build(kind, operand)

    def cast(self, operand: Access, element_type: Attribute) -> Access:
        """`operand` with another element type; itself where it has it."""
        if element(operand.type) == element_type:
            return operand
        value = _scalar(operand)
        if value is not None and not isinstance(value, bool):
            return self.number(value, element_type)
        return self.build(CastOp, operand, element_type=element_type)

    # Shapes

    def shape(self, operand: Access) -> Shape:
        """The extents of what an access reads."""
        return shape_of(operand.tensor)

    def is_equal(self, left: Extent, right: Extent) -> bool:
        """Whether two extents are proved equal wherever the dims that they mention have a point: who reads the type
        later may know no more."""
        if left == right:
            return True
        from tempo_ir.index import isl

        mentioned = symbols_of((left, right))
        dims = tuple(dim for dim in self.domain.dims if dim in mentioned)
        space = space_of(self.anchor)
        return space is not None and isl.equal(as_expr(left), as_expr(right), space, Domain(dims))

    def reshape(self, operand: Access, shape: Sequence[Extent]) -> Access:
        """The same elements in `shape`."""
        if self.shape(operand) == tuple(shape):
            return operand
        return self.build(ReshapeOp, operand, shape=tuple(shape), symbols=symbols_of(shape))

    def broadcast(self, operand: Access, shape: Sequence[Extent]) -> Access:
        """`operand` repeated to `shape`, as numpy does; itself where it has that shape."""
        if self.shape(operand) == tuple(shape):
            return operand
        return self.build(BroadcastOp, operand, shape=tuple(shape), symbols=symbols_of(shape))

    def copy(self, operand: Access) -> Access:
        """The operand at every point of the domain, as a value of its own."""
        shape = self.shape(operand)
        return self.insert(BroadcastOp(operand, shape, domain=self.domain))

    def reduce(self, kind: type[ReduceOp], operand: Access, axes: Sequence[int]) -> Access:
        """A reduction; the operand where there is no axis."""
        return self.build(kind, operand, axes=tuple(axes)) if axes else operand

    def sum(self, operand: Access, axes: Sequence[int]) -> Access:
        """The sum over axes."""
        return self.reduce(SumOp, operand, axes)

    def slice(self, operand: Access, take: Index) -> Access:
        """Part of each axis."""
        return self.build(SliceOp, operand, take=take, symbols=free_symbols(take))

    def contract(self, spec: str, *operands: Access) -> Access:
        """An einsum."""
        return self.build(partial(ContractOp, spec), *operands)


def _scalar(access: Access) -> bool | int | float | None:
    """The number of a constant without axes."""
    value = number_of(access)
    return value if value is not None and not shape_of(access.tensor) else None


def symbols_of(shape: Sequence[Extent]) -> frozenset[str]:
    """The dims and bounds that a shape mentions."""
    return frozenset[str]().union(*(free_symbols(extent) for extent in shape if not isinstance(extent, int)))
