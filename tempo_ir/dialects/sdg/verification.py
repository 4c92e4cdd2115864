"""The part of the sdg verifier that looks at whole programs and sets of points; imported when a program is verified.

Asks, in this order: are names used once; does each read stay inside its producer's domain; do the cases of each merge
cover its domain, and can each be reached; is no extent below 0; do the claims of single ops (a mean is never over
nothing) hold; does no value need itself; are the calls of host objects in one order; is the end of a dim known in time.
Errors are `OpError`s of the op at fault, with the offending point and how to mend it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.sdg.alike import firsts
from tempo_ir.dialects.sdg.base import OpError, SdgOp
from tempo_ir.dialects.sdg.causality import check_causality
from tempo_ir.dialects.sdg.inference import Obligation
from tempo_ir.dialects.sdg.locations import op_text
from tempo_ir.dialects.sdg.reads import (
    claim_problem,
    gap_problem,
    negative_extents,
    program_ops,
    read_domain,
    read_problem,
    unreached_problem,
)
from tempo_ir.dialects.sdg.sources import ParameterOp, SourceOp
from tempo_ir.dialects.sdg.structure import MergeOp, OutputOp
from tempo_ir.dialects.sdg.tokens import check_tokens
from tempo_ir.dialects.sdg.until import check_until
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import compare, maximum

if TYPE_CHECKING:
    from tempo_ir.dialects.sdg.structure import ProgramOp


def prove_extents(obligations: Sequence[Obligation], space: Space, domain: Domain) -> None:
    """Each pair of extents is equal at every point of the domain; raises VerifyException otherwise."""
    for first, second, what in obligations:
        problem = claim_problem(compare("=", first, second), space, domain)
        if problem is not None:
            raise VerifyException(
                f"{what}: extents {first} and {second} differ, {problem}; slice or pad to one extent, "
                "or declare how the bounds relate with `where`"
            )


def verify_program(program: ProgramOp) -> None:
    """Names, reads, cases and claims of all ops; raises OpError for the first that is wrong."""
    space = program.space
    ops = program_ops(program)
    check_names(ops, space)
    for op in firsts(ops):
        check_reads(op, space)
        if isinstance(op, MergeOp):
            check_cases(op, space)
        check_claims(op, space)
    check_tokens(ops, space)
    check_causality(program)
    check_until(program)


def check_names(ops: Iterable[SdgOp], space: Space) -> None:
    """One output per key, no array named like a bound, equal types where an array is brought in twice."""
    sources: dict[str, SourceOp] = {}
    outputs: dict[str, OutputOp] = {}
    for op in ops:
        if not isinstance(op, SourceOp | OutputOp):
            continue
        key = op.key.data
        if key in space.params:
            raise OpError(f'"{key}" names an array and a bound: a call could not tell them apart, rename one', op)
        if isinstance(op, OutputOp):
            if (other := outputs.setdefault(key, op)) is not op:
                raise OpError(f'output "{key}" is written twice, here and by {op_text(other)}: rename one', op)
            continue
        other = sources.setdefault(key, op)
        if type(other) is not type(op) or other.result.type != op.result.type:
            raise OpError(f'"{key}" is also {op_text(other)} : {other.result.type}: rename one', op)
    for key, op in outputs.items():
        if op.donates is not None and not isinstance(sources.get(key), ParameterOp):
            raise OpError(f'output "{key}" donates the array of a parameter "{key}", which there is not', op)


def check_reads(op: SdgOp, space: Space) -> None:
    """Every read stays inside the domain of what it reads; raises OpError otherwise."""
    for number, access in enumerate(op.accesses):
        producer = access.value.owner
        if not isinstance(producer, SdgOp):
            continue
        problem = read_problem(space, read_domain(op, number), access.index, producer.domain)
        if problem is not None:
            raise OpError(f"operand #{number} {access} {problem}", op)


def check_cases(merge: MergeOp, space: Space) -> None:
    """The cases cover the domain and each can be reached; raises OpError otherwise."""
    conds = merge.conds
    if (problem := gap_problem(space, merge.domain, conds)) is not None:
        raise OpError(problem, merge)
    for number in range(len(conds)):
        if (problem := unreached_problem(space, merge.domain.dims, conds, number)) is not None:
            raise OpError(problem, merge)


def check_claims(op: SdgOp, space: Space) -> None:
    """No extent falls below 0, and what the op claims of its operands holds; raises OpError otherwise."""
    for extent, _, where in negative_extents(op, space, op.domain):
        raise OpError(f"the extent {extent} falls below 0 {where}: write {maximum(0, extent)}", op)
    for claim, what in op.claims():
        if (problem := claim_problem(claim, space, op.domain)) is not None:
            raise OpError(f"{what}, which needs {claim}: it fails {problem}", op)
