"""What a simplification rule is, and the rewrites that it may make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from xdsl.pattern_rewriter import PatternRewriter

from tempo_ir.dialects.sdg import Access, ConstantOp, SdgOp
from tempo_ir.dialects.types import as_tensor, shape_of
from tempo_ir.index import Sym, compose
from tempo_ir.passes.building import number_of, symbols_of
from tempo_ir.passes.utilities import is_readable, point_entries, replace_proved, replace_with_access

Kind = TypeVar("Kind", bound=SdgOp)


@dataclass(slots=True, unsafe_hash=True)  # never changed; one is made for each op that is looked at
class Rewriting:
    """The rewrites of one rule at one op; each answers whether it was made."""

    rewriter: PatternRewriter
    fast_math: bool = False
    """Whether numbers may be taken to be finite, and sums and products of floats grouped otherwise."""

    def read(self, op: SdgOp, access: Access) -> bool:
        """Whoever reads `op` reads `access`, one of its operands, instead."""
        return replace_with_access(op, access, self.rewriter)

    def read_proved(self, op: SdgOp, access: Access) -> bool:
        """Whoever reads `op` reads `access` instead, which is known to be in the domain of its source."""
        return replace_proved(op, access, self.rewriter)

    def become(self, op: SdgOp, other: SdgOp, *before: SdgOp) -> bool:
        """`op` becomes another op over the same domain, with the same result type, which may read new ops `before` it.

        Where the types differ nothing is inserted.
        """
        result, new = op.results[0], other.results[0]
        if new.type != result.type or other.domain != op.domain:
            for unused in (other, *reversed(before)):
                unused.erase()  # else it would count as a user of what it reads
            return False
        new.name_hint = result.name_hint
        for inserted in before:
            self.rewriter.insert(inserted)
        self.rewriter.replace(op, other)
        return True

    def constant(self, op: SdgOp, number: bool | float) -> bool:
        """`op` becomes a constant, one for the whole call, if its shape is and no use reads a range of points."""
        result_type = as_tensor(op.results[0].type)
        if symbols_of(shape_of(result_type)) & set(op.domain.dims) or not is_readable(op, ()):
            return False
        constant = self.rewriter.insert(ConstantOp(number, result_type))
        return replace_proved(op, Access(constant.result), self.rewriter)


Rule: TypeAlias = Callable[[Any, Rewriting], bool]
"""An op of the class it is listed for, and the rewrites it may make, to whether it made one."""

Rules: TypeAlias = Mapping[type[SdgOp], Sequence[Rule]]


def made_by(access: Access, kind: type[Kind]) -> Kind | None:
    """The op of a class that made the value read."""
    owner = access.value.owner
    return owner if isinstance(owner, kind) else None


def read_through(access: Access, inner: Access, producer: SdgOp) -> Access | None:
    """What `access`, a read of `producer`, reads of an operand of it; None where no single index does.

    For ops that work element by element: a slice of `access` stays a leading axis.
    """
    index = compose(inner.index, producer.domain.dims, access.index)
    return None if index is None else Access(inner.value, index)


def read_point_through(access: Access, inner: Access, producer: SdgOp) -> Access | None:
    """`read_through`, for ops that name axes: only where `access` reads one point, so that axes keep their numbers."""
    return read_through(access, inner, producer) if point_entries(access.index) else None


def through(*kinds: type[Kind]) -> Callable[[Callable[[Any, Rewriting, Kind, Access], bool]], Rule]:
    """A rule for ops whose operand another op, of one of the classes, made and which read it at a point.

    What is decorated gets that op, and what the op reads through it: of `slice (transpose %x)` the transpose and `%x`.
    """

    def decorated(rewrite: Callable[[Any, Rewriting, Kind, Access], bool]) -> Rule:
        @wraps(rewrite)
        def rule(op: SdgOp, rewriting: Rewriting) -> bool:
            access = op.accesses[0]
            inner = access.value.owner
            if not isinstance(inner, kinds) or inner is op:
                return False
            source = read_point_through(access, inner.accesses[0], inner)
            return source is not None and rewrite(op, rewriting, inner, source)

        return rule

    return decorated


def bindings(access: Access, producer: SdgOp) -> dict[str, Any]:
    """The dims of a producer as the expressions at which a read of one point reads them."""
    return dict(zip(producer.domain.dims, access.index, strict=True))


def is_number(access: Access, value: float) -> bool:
    """Whether an access reads one number, of the given value, at every element."""
    number = number_of(access)
    return number is not None and number == value


def reads_itself(op: SdgOp) -> bool:
    """Whether an op is its own operand."""
    return any(operand in op.results for operand in op.operands)


def only_use(access: Access) -> bool:
    """Whether nobody else uses the value read."""
    return access.value.has_one_use()


def current_point(op: SdgOp) -> tuple[Sym, ...]:
    """The index of the current point of an op."""
    return tuple(Sym(dim) for dim in op.domain.dims)
