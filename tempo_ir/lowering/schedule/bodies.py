"""
What the checker of a schedule says of the body of a leaf: that it is its op at the point that the leaf states.

Nothing here is shared with what made the bodies (`leaf_bodies`).
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects.loop import BodyOperation, YieldOp, call_start
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

FORMULAS = (ConstantOp, IndexOp, ArangeOp)
PLACED = frozenset({"domain", "indices", "operandSegmentSizes"})
"""Properties that say where an op stands and reads, which in a body is said by the leaf."""

Bindings = Mapping[str, Expr]


def is_body_of(leaf: Instance, op: SdgOp, bindings: Bindings, memory: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether a leaf computes `op`, which is no merge, at a point, where it reads the rows that the op reads; `memory`
    holds the buffer of each value."""
    rows: dict[SSAValue, tuple[SSAValue, Index]] = {
        argument: (read.buffer, read.index) for argument, read in zip(leaf.arguments, leaf.reads, strict=True)
    }

    def reads(value: SSAValue, access: Access) -> bool:
        index = substitute(access.index, bindings)
        if value in rows:
            return rows[value] == (memory.get(access.value), index)
        producer, inner = access.value.owner, value.owner
        return isinstance(producer, FORMULAS) and isinstance(inner, Operation) and is_formula_at(inner, producer, index)

    inner = [one for one in leaf.op.regions[0].block.ops if not isinstance(one, YieldOp)]
    accesses = op.accesses
    if isinstance(op, KeepOp | OutputOp | StopGradientOp):
        (access,) = accesses
        return all(isinstance(one, FORMULAS) for one in inner) and all(reads(value, access) for value in leaf.results)
    (*formulas, work) = inner
    operands = tuple(work.operands)
    return (
        all(isinstance(one, FORMULAS) for one in formulas)
        and leaf.results == work.results
        and is_op_at(work, op, bindings)
        and len(operands) == len(accesses)
        and all(map(reads, operands, accesses))
    )


def is_copy(leaf: BodyOperation) -> bool:
    """Whether a leaf writes what it reads, or the formula that is all of its body."""
    inner = [one for one in leaf.body.block.ops if not isinstance(one, YieldOp)]
    if not inner:
        return list(leaf.yielded) == list(leaf.body.block.args)
    return len(inner) == 1 and isinstance(inner[0], FORMULAS) and list(leaf.yielded) == list(inner[0].results)


def is_formula_at(found: Operation, formula: SdgOp, index: Index) -> bool:
    """Whether an op of a body is a formula at a point given over the iterators, or along whole dims of its domain."""
    entries = zip(formula.domain.dims, index, strict=True)
    return is_op_at(found, formula, {dim: entry for dim, entry in entries if not isinstance(entry, Slice)})


def is_op_at(found: Operation, op: SdgOp, bindings: Bindings) -> bool:
    """Whether an op of a body is another one with its dims replaced."""
    values = _values(bindings, op.space.names) if isinstance(op, IndexOp | ArangeOp | RandomOp) else bindings
    expected = {name: _at(attribute, values) for name, attribute in op.properties.items() if name not in PLACED}
    return (
        found.name == op.name
        and {name: attribute for name, attribute in found.properties.items() if name not in PLACED} == expected
        and [_at(result.type, bindings) for result in op.results] == list(found.result_types)
    )


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
