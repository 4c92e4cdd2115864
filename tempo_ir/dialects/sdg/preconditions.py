"""Preconditions: what a program needs of its bounds, found from the reads that fail below some size.

`k[T - 1]` fails only at T = 0, `a[0:4].sum()` only at T < 4, a mean over t only where there is no t. Such a read does
not refuse the program: the smallest admissible size is stated in its declaration, with the op that needs it, and the
call checks it. Whatever fails for large bounds too stays an error of the verifier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation

from tempo_ir.dialects.sdg.alike import Alike
from tempo_ir.dialects.sdg.attributes import CondAttr, PreconditionAttr
from tempo_ir.dialects.sdg.base import SdgOp
from tempo_ir.dialects.sdg.locations import op_text
from tempo_ir.dialects.sdg.needed import narrow
from tempo_ir.dialects.sdg.reads import (
    claim_problem,
    gap_problem,
    negative_extents,
    program_ops,
    read_domain,
    read_problem,
)
from tempo_ir.dialects.sdg.structure import MergeOp, ProgramOp
from tempo_ir.index import isl
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Compare, Cond, Const, IndexExpressionError, Sym, conj, disj, negate


@dataclass(frozen=True, slots=True)
class Precondition:
    """A least size of a bound, the op that needs it, and what the op does with it."""

    cond: Cond
    op: Operation
    text: str


def settle(program: ProgramOp) -> list[Precondition]:
    """Narrow the domains to the needed points, then state the preconditions, in place; what was stated."""
    narrow(program)
    found = state_preconditions(program)
    if found:
        narrow(program)
    return found


def state_preconditions(program: ProgramOp) -> list[Precondition]:
    """Find the preconditions and add them to the declaration of the program, in place.

    ```mlir
    sdg.program @p dims(t: T) {        ->   sdg.program @p dims(t: T) where T >= 4 attributes {preconditions = [...]} {
    ```
    """
    found = preconditions(program)
    if not found:
        return found
    space = program.space
    program.space = Space(space.dims, conj(space.where, *(precondition.cond for precondition in found)))
    stated = [PreconditionAttr(CondAttr(it.cond), StringAttr(it.text)) for it in found]
    known = program.preconditions.data if program.preconditions is not None else ()
    program.preconditions = ArrayAttr([*known, *stated])
    return found


def preconditions(program: ProgramOp) -> list[Precondition]:
    """For each bound the least size below which some read, case or claim fails; the program is left as it is."""
    declared = space = program.space
    least: dict[str, tuple[int, Precondition]] = {}
    alike = Alike()
    for op in program_ops(program):
        if not alike.is_new(op):
            continue
        known = len(least), sum(bound for bound, _ in least.values())
        for failing, text in failures(op, space):
            size = least_size(failing, space)
            if size is None:
                continue
            name, bound = size
            cond = Compare(">=", Sym(name), Const(bound))
            if name not in least or least[name][0] < bound:
                least[name] = (bound, Precondition(cond, op, f"{op_text(op)} {text}"))
        if known != (len(least), sum(bound for bound, _ in least.values())):  # bounds only rise
            space = Space(declared.dims, conj(declared.where, *(found.cond for _, found in least.values())))
            alike = Alike()
    return [precondition for _, precondition in least.values()]


def failures(op: SdgOp, space: Space) -> Iterator[tuple[isl.Set, str]]:
    """What fails about an op: the bounds, or points and bounds, at which it does, and what to call it."""
    for number, access in enumerate(op.accesses):
        producer = access.value.owner
        if not isinstance(producer, SdgOp):
            continue
        consumer = read_domain(op, number)
        if read_problem(space, consumer, access.index, producer.domain) is None:
            continue
        try:
            relation = isl.access_map(space, consumer, access.index, producer.domain)
            outside = relation.subtract(relation.intersect_range(isl.domain_set(space, producer.domain)))
        except IndexExpressionError:
            continue
        yield outside.domain(), f"reads {access}"
    if isinstance(op, MergeOp) and gap_problem(space, op.domain, op.conds) is not None:
        yield from _points(op.case_domain(len(op.conds)), space, "has no case otherwise")
    for extent, claim, _ in negative_extents(op, space, op.domain):
        yield from _failing(op, claim, space, f"has the extent {extent}")
    for claim, what in op.claims():
        if claim_problem(claim, space, op.domain) is not None:
            yield from _failing(op, claim, space, f"needs {claim}: {what}")


def _failing(op: SdgOp, claim: Cond, space: Space, text: str) -> Iterator[tuple[isl.Set, str]]:
    yield from _points(Domain(op.domain.dims, op.domain.ranges, conj(op.domain.where, negate(claim))), space, text)


def _points(domain: Domain, space: Space, text: str) -> Iterator[tuple[isl.Set, str]]:
    try:
        yield isl.domain_set(space, domain), text
    except IndexExpressionError:
        return


def least_size(failing: isl.Set, space: Space) -> tuple[str, int] | None:
    """The bound that is small whenever something fails, and the least size that excludes it all; None if none is.

    Of several bounds the one that excludes fewest sizes: where `P <= T`, `T >= 4` rather than `P >= 4`, which would
    exclude `P = 0, T = 9` too. Where neither excludes less, the one of the smaller size, then the one declared first.
    """
    bounds = failing.params().from_params()
    sizes: list[tuple[str, int]] = []
    for position in range(bounds.dim(isl.DIM.param)):
        name = str(isl.decode(bounds.get_dim_name(isl.DIM.param, position) or ""))
        if name not in space.params:
            continue
        values = bounds.move_dims(isl.DIM.set, 0, isl.DIM.param, position, 1)
        values = values.project_out(isl.DIM.param, 0, values.dim(isl.DIM.param))
        greatest = values.dim_max_val(0)
        if greatest.is_int():
            sizes.append((name, greatest.to_python() + 1))
    if not sizes:
        return None
    sizes.sort(key=lambda found: (found[1], space.params.index(found[0])))
    fewest = (one for one in sizes if all(excludes_no_more(one, other, space) for other in sizes))
    return next(fewest, sizes[0])


def excludes_no_more(one: tuple[str, int], other: tuple[str, int], space: Space) -> bool:
    """Whether a bound is below its least size only where another is below its own."""
    (name, size), (other_name, other_size) = one, other
    claim = disj(Compare(">=", Sym(name), Const(size)), Compare("<", Sym(other_name), Const(other_size)))
    return isl.prove(claim, space, Domain())
