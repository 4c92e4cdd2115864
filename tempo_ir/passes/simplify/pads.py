"""Rules for tensors that are put round with zeros and added: gradients of the parts of one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tempo_ir.dialects.sdg import Access, AddOp, ConcatOp, PadOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Expr, as_expr, substitute
from tempo_ir.passes.simplify.rule import (
    Rewriting,
    Rules,
    bindings,
    current_point,
    made_by,
    only_use,
    read_point_through,
)


@dataclass(frozen=True)
class Padded:
    """A tensor with zeros round it."""

    source: Access
    low: tuple[Expr, ...]
    high: tuple[Expr, ...]

    def end(self, axis: int) -> Expr:
        """Where the tensor ends along an axis."""
        return self.low[axis] + shape_of(self.source.tensor)[axis]

    def fits(self, other: Padded, axis: int) -> bool:
        """Whether both have the same zeros but along an axis."""
        places = range(len(self.low))
        return all((self.low[n], self.high[n]) == (other.low[n], other.high[n]) for n in places if n != axis)


def sum_of_pads(op: AddOp, rewriting: Rewriting) -> bool:
    """Tensors in zeros that lie side by side, added -> put together: `pad(x, 0, 4) + pad(y, 2, 0)` -> `concat(x, y)`.

    Exact for floats too: `x + 0` is `x`.
    """
    terms = [term for access in op.accesses for term in _terms(op, access)]
    parts = [part for term in terms if (part := _padded(op, term)) is not None]
    if len(parts) < len(terms):
        return False
    for axis in range(len(shape_of(op.result.type))):
        if (row := _row(parts, axis)) is not None:
            break
    else:
        return False
    whole = ConcatOp(*(part.source for part in row), axis=axis, domain=op.domain)
    low, high = row[0].low, _replaced(row[0].high, axis, row[-1].high[axis])
    if all(amount == as_expr(0) for amount in (*low, *high)):
        return rewriting.become(op, whole)
    read = Access(whole.result, current_point(whole))
    return rewriting.become(op, PadOp(read, low, high, 0.0, domain=op.domain), whole)


def _terms(op: AddOp, access: Access) -> list[Access]:
    """What is added in the end, where sums that nobody else reads are taken apart."""
    inner = made_by(access, AddOp)
    if inner is None or inner is op or not only_use(access):
        return [access]
    sources = [read_point_through(access, operand, inner) for operand in inner.accesses]
    found = [source for source in sources if source is not None and source.type == access.type]
    if len(found) < len(sources):
        return [access]
    return [term for source in found for term in _terms(inner, source)]


def _padded(op: AddOp, access: Access) -> Padded | None:
    """A term of a sum as a tensor with zeros round it; None where it is none, or is stretched."""
    inner = made_by(access, PadOp)
    if inner is None or inner.value != 0 or shape_of(access.tensor) != shape_of(op.result.type):
        return None
    source = read_point_through(access, inner.accesses[0], inner)
    if source is None:
        return None
    where = bindings(access, inner)
    low, high = (tuple(substitute(amount, where) for amount in side) for side in (inner.low, inner.high))
    return Padded(source, low, high)


def _row(parts: Sequence[Padded], axis: int) -> list[Padded] | None:
    """The tensors in their order along an axis, where each begins where another one ends."""
    if not all(part.fits(parts[0], axis) for part in parts):
        return None
    ends = {part.end(axis): part for part in parts}
    begins = {part.low[axis]: part for part in parts}
    first = [part for part in parts if part.low[axis] not in ends]
    if len(first) != 1 or len(begins) != len(parts):
        return None
    row = first
    while (after := begins.get(row[-1].end(axis))) is not None and len(row) < len(parts):
        row.append(after)
    return row if len(row) == len(parts) else None


def _replaced(amounts: tuple[Expr, ...], axis: int, amount: Expr) -> tuple[Expr, ...]:
    return (*amounts[:axis], amount, *amounts[axis + 1 :])


RULES: Rules = MappingProxyType({AddOp: (sum_of_pads,)})
