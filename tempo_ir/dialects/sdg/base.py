"""The base of every sdg op: a domain, operands read through indices, inferred types, errors that know their op.

An op stands directly in the body of an `sdg.program`; there its domain says at which points it has a value. The same
ops stand in the bodies of `loop.compute` and `loop.kernel`, over no dims, where the free symbols are loop iterators.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import prop_def
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.sdg.attributes import DomainAttr, IndexAttr, SpaceAttr, TokenType
from tempo_ir.dialects.sdg.directives import DIRECTIVES, NO_INDEX
from tempo_ir.dialects.sdg.inference import Extents
from tempo_ir.dialects.sdg.locations import value_text
from tempo_ir.dialects.types import Tensor, accessed_type, as_tensor, dtype_name, element, shape_of
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Cond, Expr, Index, Slice, Sym, free_symbols, index_text

BODIES = frozenset({"sdg.program", "loop.compute", "loop.kernel", "loop.fold"})
"""The ops whose regions may hold sdg ops; the loop dialect is named, not imported, since it builds on this one."""

NO_DIMS = Domain()


class OpError(VerifyException):
    """A verification error of one op of a program, found while checking the whole; `op` is that op."""

    op: Operation

    def __init__(self, message: str, op: Operation):
        super().__init__(message)
        self.op = op


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Access:
    """A read `%value[index]`: one entry per dim of the value's producer."""

    value: SSAValue
    index: Index = ()

    @property
    def type(self) -> Attribute:
        """The accessed type: one leading axis per slice entry, then the axes at one point. Tokens stay tokens."""
        value_type = self.value.type
        if not self.index or type(value_type) is TokenType:
            return value_type
        return accessed_type(value_type, self.index, domain_of(self.value).dims)

    @property
    def tensor(self) -> Tensor:
        """The accessed type as a tensor; raises VerifyException for a token."""
        return as_tensor(self.type)

    def __str__(self) -> str:
        return value_text(self.value) + (index_text(self.index))


Operand: TypeAlias = Access | SSAValue
"""What constructors take: a bare value stands for an access without index entries."""


def as_access(operand: Operand) -> Access:
    """The operand as an access."""
    return operand if isinstance(operand, Access) else Access(operand)


def domain_of(value: SSAValue) -> Domain:
    """The domain of the op that made the value; block arguments and results of other dialects vary over no dim."""
    owner = value.owner
    return owner.domain if isinstance(owner, SdgOp) else NO_DIMS


@lru_cache(maxsize=256)
def current_point(dims: tuple[str, ...]) -> Index:
    """The index of the current point over some dims."""
    return tuple(map(Sym, dims))


def space_of(op: Operation) -> Space | None:
    """The dims declared by the program (of any level) that holds the op; None for an op outside of programs."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(space := parent.properties.get("space"), SpaceAttr):
            return space.data
        parent = parent.parent_op()
    return None


class SdgOp(NominalOperation, ABC):
    """An op with one value per point of its domain."""

    domain_attr = prop_def(DomainAttr, prop_name="domain")

    custom_directives = DIRECTIVES
    assembly_format = "custom<InDomain>($domain) attr-dict `:` type(results)"

    def setup(
        self,
        operands: Sequence[Operand],
        result_types: Sequence[Attribute],
        domain: Domain,
        properties: Mapping[str, Attribute],
        location: LocationAttr | None,
    ) -> None:
        """Initialise the op; constructors call this instead of xDSL's slower, reflective initialiser."""
        self.initialise(
            operands=[operand.value if isinstance(operand, Access) else operand for operand in operands],
            result_types=result_types,
            properties={"domain": _domain_attr(domain), **properties},
            location=location,
        )

    @property
    def domain(self) -> Domain:
        """The points at which the op has a value."""
        attribute: Any = self.properties["domain"]  # the one property that is asked for all the time
        return attribute.data

    @domain.setter
    def domain(self, domain: Domain) -> None:
        self.domain_attr = _domain_attr(domain)

    @property
    def space(self) -> Space:
        """The dims that the enclosing program declares; raises ValueError outside of a program."""
        if (space := space_of(self)) is None:
            raise ValueError(f"{self.name} stands outside of a program")
        return space

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The reads of the op, one per operand; none for a nullary op, nor for one that names whole values."""
        return ()

    def emit_error(self, message: str, underlying_error: Exception) -> NoReturn:
        """Raise the error with `op` set, so that whoever shows it can tell the line of the user."""
        raise_at(self, underlying_error)

    def inferred_types(self, extents: Extents) -> Sequence[Attribute] | None:
        """The result types that the operands and properties imply; None where any are right.

        Raises VerifyException if the operands do not fit the op.
        """
        return None

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is not None and parent.name not in BODIES:
            raise VerifyException(f"{self.name} stands in {parent.name}: it belongs in the body of an sdg.program")
        space = parent.properties.get("space") if parent is not None and parent.name == "sdg.program" else None
        if isinstance(space, SpaceAttr):
            self.verify_scope(space.data)
        self.verify_types(space.data if isinstance(space, SpaceAttr) else None)

    def verify_types(self, space: Space | None) -> None:
        """The result types are the inferred ones; dynamic extents that only differ in form are proved equal.

        Outside of a program, in the body of a leaf or kernel, structure alone decides: the proof was made on the graph.
        """
        extents = Extents()
        if (inferred := self.inferred_types(extents)) is not None:
            check_results(self, inferred, extents)
        self.verify_extents(extents, space, self.domain)

    def verify_extents(self, extents: Extents, space: Space | None, domain: Domain) -> None:
        """The extents left open are equal at every point of `domain`; raises VerifyException otherwise."""
        if extents.obligations and space is not None:
            from tempo_ir.dialects.sdg.verification import prove_extents

            prove_extents(extents.obligations, space, domain)

    def claims(self) -> Sequence[tuple[Cond, str]]:
        """What must hold at every point of the domain besides the reads, each with what to call it."""
        return ()

    def verify_scope(self, space: Space) -> None:
        """Domain and indices name declared dims and bounds only."""
        if (problem := domain_problem(self.domain, space)) is not None:
            raise VerifyException(problem)


class AccessOp(SdgOp, ABC):
    """An op that reads operands, each through an index."""

    indices = prop_def(ArrayAttr[IndexAttr])

    assembly_format = (
        "custom<Accesses>(operands, $indices) custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def setup(
        self,
        operands: Sequence[Operand],
        result_types: Sequence[Attribute],
        domain: Domain,
        properties: Mapping[str, Attribute],
        location: LocationAttr | None,
    ) -> None:
        """Initialise the op with the indices of its operands."""
        indices = _indices_attr(tuple([operand.index if type(operand) is Access else () for operand in operands]))
        super().setup(operands, result_types, domain, {"indices": indices, **properties}, location)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """They are made when they are asked for first, and again once operands or indices are others, which are never
        changed in place."""
        operands, indices = self._operands, self.properties["indices"]
        made: tuple[object, object, tuple[Access, ...]] | None = self.__dict__.get("_accesses")
        if made is not None and made[0] is operands and made[1] is indices:
            return made[2]
        accesses = tuple([Access(value, index.data) for value, index in zip(operands, self.indices.data, strict=False)])
        vars(self)["_accesses"] = (operands, indices, accesses)
        return accesses

    def with_access(self, number: int, value: SSAValue, index: Index) -> None:
        """Replace operand `number` by the read `%value[index]`, in place."""
        self.operands[number] = value
        indices = list(self.indices.data)
        indices[number] = _index_attr(index)
        self.indices = ArrayAttr(indices)

    def verify_(self) -> None:
        if len(self.indices.data) != len(self.operands):
            raise VerifyException(
                f"{len(self.operands)} operands need {len(self.operands)} indices, got {len(self.indices.data)}"
            )
        for number, (value, index) in enumerate(zip(self.operands, self.indices.data, strict=True)):
            check_arity(number, value, index.data)
        super().verify_()

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        domain = self.domain
        for number, index in enumerate(self.indices.data):
            if index.data and (problem := index_problem(index.data, domain, space)) is not None:
                raise VerifyException(f"operand #{number} {self.accesses[number]}: {problem}")


def index_attr(operand: Operand) -> IndexAttr:
    """The index of an operand as an attribute."""
    return _index_attr(operand.index) if isinstance(operand, Access) and operand.index else NO_INDEX


@lru_cache(maxsize=4096)
def _indices_attr(indices: tuple[Index, ...]) -> ArrayAttr[IndexAttr]:
    return ArrayAttr([_index_attr(index) if index else NO_INDEX for index in indices])


@lru_cache(maxsize=4096)
def _index_attr(index: Index) -> IndexAttr:
    return IndexAttr(index)


@lru_cache(maxsize=4096)
def _domain_attr(domain: Domain) -> DomainAttr:
    return DomainAttr(domain)


def raise_at(op: Operation, error: Exception) -> NoReturn:
    """Raise `error` about `op`, unless it already tells of another op inside."""
    if not hasattr(error, "op"):
        error.op = op  # pyright: ignore[reportAttributeAccessIssue]
    raise error


def check_arity(number: int, value: SSAValue, index: Index) -> None:
    """One index entry per dim of the producer; tokens are read at points. Raises VerifyException otherwise."""
    domain = domain_of(value)
    if len(index) != len(domain.dims):
        raise VerifyException(
            f"operand #{number} {value_text(value)} varies over {domain} and needs {len(domain.dims)} index "
            f"entries, one per dim, got {index_text(index) or 'none'}"
        )
    if isinstance(value.type, TokenType) and any(isinstance(entry, Slice) for entry in index):
        raise VerifyException(
            f"operand #{number} {value_text(value)} is a token, which has no rows: index it by points, not by a slice"
        )


def check_results(op: Operation, inferred: Sequence[Attribute], extents: Extents) -> None:
    """The declared result types are the inferred ones, extents proved later; raises VerifyException otherwise."""
    for result, expected in zip(op.results, inferred, strict=True):
        if result.type == expected:
            continue
        check_type(result.type, expected, f"{op.name} makes {expected}, its result says {result.type}", extents)


def check_type(declared: Attribute, expected: Attribute, what: str, extents: Extents) -> None:
    """The types agree up to extents that are equal by proof; raises VerifyException otherwise."""
    if declared == expected:
        return
    if isinstance(declared, TokenType) or isinstance(expected, TokenType):
        raise VerifyException(what)
    if element(declared) != element(expected):
        made, says = dtype_name(element(expected)), dtype_name(element(declared))
        raise VerifyException(f"{what}: dtypes {made} and {says} differ")
    extents.same_shape(shape_of(expected), shape_of(declared), what)


@lru_cache(maxsize=4096)
def domain_problem(domain: Domain, space: Space) -> str | None:
    """Why the domain cannot stand in a program over `space`; None if it can."""
    declared = [name for name, _ in space.dims]
    if unknown := [dim for dim in domain.dims if dim not in declared]:
        names = ", ".join(declared) or "none"
        return f"domain {domain} names the undeclared dim {unknown[0]}: the program declares {names}"
    if list(domain.dims) != [dim for dim in declared if dim in domain.dims]:
        return f"domain {domain} does not list its dims in the declared order {', '.join(declared)}, each once"
    used = free_symbols(domain.where).union(*(free_symbols(lo) | free_symbols(hi) for _, lo, hi in domain.ranges))
    return _unknown_symbols(used, domain, space, f"domain {domain}")


@lru_cache(maxsize=16384)
def index_problem(index: Index, domain: Domain, space: Space) -> str | None:
    """Why an index cannot be evaluated at the points of `domain`; None if it can."""
    return _unknown_symbols(free_symbols(index), domain, space, f"index {index_text(index)}")


def scope_problem(expression: Expr | Slice | Cond, domain: Domain, space: Space) -> str | None:
    """Why an expression cannot be evaluated at the points of `domain`; None if it can."""
    return _unknown_symbols(free_symbols(expression), domain, space, f"expression '{expression}'")


def _unknown_symbols(used: frozenset[str], domain: Domain, space: Space, what: str) -> str | None:
    unknown = sorted(used.difference(domain.dims, _parameters(space)))
    if not unknown:
        return None
    name = unknown[0]
    if any(name == dim for dim, _ in space.dims):
        return f"{what} uses dim {name}, over which the op, in {domain}, does not vary: add it to the domain"
    return f"{what} uses {name}, which is neither a dim nor a bound of the program"


@lru_cache(maxsize=256)
def _parameters(space: Space) -> frozenset[str]:
    return frozenset(space.params)
