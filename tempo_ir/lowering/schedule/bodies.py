"""
What the checker of a schedule says of the body of a leaf: that it is its op at the point that the leaf states.

Nothing here is shared with what made the bodies (`leaf_bodies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects.loop import BodyOperation, YieldOp, call_start
from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.sdg import (
    Access,
    ArangeOp,
    CondAttr,
    ConstantOp,
    EntryAttr,
    IndexAttr,
    IndexOp,
    KeepOp,
    OutputOp,
    RandomOp,
    SdgOp,
    StopGradientOp,
)
from tempo_ir.dialects.types import SizeAttr, as_tensor, shape_of, tensor
from tempo_ir.index.expr import Expr, Index, Slice, Sym, substitute
from tempo_ir.lowering.instances import Instance

FORMULAS = frozenset((ConstantOp, IndexOp, ArangeOp))
COPIES = frozenset((KeepOp, OutputOp, StopGradientOp))
COUNTED = frozenset((IndexOp, ArangeOp, RandomOp))
PLACED = ("domain", "indices", "operandSegmentSizes")
"""Properties that say where an op stands and reads, which in a body is said by the leaf."""

Bindings = Mapping[str, Expr]
Row = tuple[SSAValue, Index]


class At:
    """A point over the iterators, by the dims of an op. `moves`: some dim is not what the iterator of its name is."""

    def __init__(self, bindings: Bindings):
        self.bindings = bindings
        self.moves = any(value != Sym(dim) for dim, value in bindings.items())
        self._rows: dict[Index, Index] = {}

    def rows(self, index: Index) -> Index:
        """The rows that an index over the dims names at the point."""
        if index not in self._rows:
            self._rows[index] = substitute(index, self.bindings)
        return self._rows[index]


def is_body_of(leaf: Instance, op: SdgOp, reads: Sequence[tuple[Access, Row | None]], there: At) -> bool:
    """Whether a leaf computes `op`, which is no merge, at a point; `reads` holds what the op reads, each with the row
    that it is then, None of a formula that the leaf computes itself."""
    rows = {argument: (read.buffer, read.index) for argument, read in zip(leaf.arguments, leaf.reads, strict=True)}

    def is_right(value: SSAValue, read: tuple[Access, Row | None]) -> bool:
        access, row = read
        if value in rows:
            return rows[value] == row
        producer, inner = access.value.owner, value.owner
        if type(producer) not in FORMULAS or not isinstance(inner, Operation):
            return False
        assert isinstance(producer, SdgOp)
        return is_formula_at(inner, producer, there.rows(access.index))

    inner = [one for one in ops_of(leaf.op.regions[0].block) if not isinstance(one, YieldOp)]
    if type(op) in COPIES:
        (read,) = reads
        return all(type(one) in FORMULAS for one in inner) and all(is_right(value, read) for value in leaf.results)
    (*formulas, work) = inner
    operands = tuple(work.operands)
    return (
        all(type(one) in FORMULAS for one in formulas)
        and leaf.results == work.results
        and is_op_at(work, op, there)
        and len(operands) == len(reads)
        and all(map(is_right, operands, reads))
    )


def is_copy(leaf: BodyOperation) -> bool:
    """Whether a leaf writes what it reads, or the formula that is all of its body."""
    inner = [one for one in leaf.body.block.ops if not isinstance(one, YieldOp)]
    if not inner:
        return list(leaf.yielded) == list(leaf.body.block.args)
    return len(inner) == 1 and type(inner[0]) in FORMULAS and list(leaf.yielded) == list(inner[0].results)


def is_formula_at(found: Operation, formula: SdgOp, index: Index) -> bool:
    """Whether an op of a body is a formula at a point given over the iterators, or along whole dims of its domain."""
    entries = zip(formula.domain.dims, index, strict=True)
    return is_op_at(found, formula, At({dim: entry for dim, entry in entries if not isinstance(entry, Slice)}))


def is_op_at(found: Operation, op: SdgOp, there: At) -> bool:
    """Whether an op of a body is another one with its dims replaced."""
    expected, properties = dict(op.properties), dict(found.properties)
    for name in PLACED:
        expected.pop(name, None)
        properties.pop(name, None)
    types = op.result_types
    if there.moves:
        values = _values(there.bindings, op.space.names) if type(op) in COUNTED else there.bindings
        expected = {name: _at(attribute, values) for name, attribute in expected.items()}
        types = tuple([_at(type, there.bindings) for type in types])
    return found.name == op.name and properties == expected and found.result_types == types


def _values(bindings: Bindings, names: tuple[str, ...]) -> Bindings:
    """Dims as data: they count on from where a call starts, as what is named like a dim in a body does by itself."""
    relative = {name: Sym(name) - Sym(call_start(name)) for name in names}
    return {dim: substitute(value, relative) + Sym(call_start(dim)) for dim, value in bindings.items()}


def _at(attribute: Attribute, bindings: Bindings) -> Attribute:
    match attribute:
        case EntryAttr():
            return EntryAttr(substitute(attribute.data, bindings))
        case IndexAttr():
            return IndexAttr(substitute(attribute.data, bindings))
        case CondAttr():
            return CondAttr(substitute(attribute.data, bindings))
        case _:
            pass
    if isinstance(getattr(attribute, "encoding", None), SizeAttr):
        whole = as_tensor(attribute)
        extents = [extent if isinstance(extent, int) else substitute(extent, bindings) for extent in shape_of(whole)]
        return tensor(whole.element_type, extents)
    return attribute
