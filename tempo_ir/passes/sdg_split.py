"""sdg-split: the first steps of a recurrence, which need none, are computed apart from the others.

Before (prefill and decoding of a language model as one recurrence):

    %token = sdg.merge {t < P : %prompt[t], t > 0 : %next[t - 1]} in (t) : ...
    %k = sdg.contract "d,kd->k" %token[t], %w in (t) : ...
    %o = ... %k[0:t + 1] in (t) : ...
    %next = ... %o[t] in (t) : ...

After:

    %k1 = sdg.contract "d,kd->k" %prompt[t], %w in (t: 0 to P) : ...
    %o1 = ... %k1[0:t + 1] in (t: 0 to P) : ...
    %next1 = ... %o1[t] in (t: P - 1 to P) : ...
    %token = sdg.merge {t < P : %prompt[t], t > 0 : %next[t - 1]} in (t: P to T) : ...
    %k2 = sdg.contract "d,kd->k" %token[t], %w in (t: P to T) : ...
    %k = sdg.merge {t < P : %k1[t], t >= P : %k2[t]} in (t) : ...
    %o2 = ... %k[0:t + 1] in (t: P to T) : ...

so that nothing recurs along t below P: sdg-vectorize makes products of matrices of the products of all P steps, and
attention to what comes before is one kernel (loop-block-queries). Who reads points of one part only reads that part.

It applies to a value by cases of which the first is a range from the beginning of a dim, does not depend on the value
itself, and some other does. What depends on the value, and it on them, is split. It does not apply where some of these
ops call the host, where the first steps read what later ones make, or where some op is of the first steps alone. Since
memory holds all rows of the first steps then, and each kernel is there twice, the pass is run by name:
`tempo_ir.compile(program, options={"sdg-split": {}})`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, AccessOp, HostOp, MergeOp, ProgramOp, SdgOp, TokenType
from tempo_ir.dialects.sdg.reads import program_ops, read_domain, read_problem
from tempo_ir.dialects.sdg.structure import case_domain
from tempo_ir.graphs import reachable, strongly_connected
from tempo_ir.index import Compare, Cond, Const, Domain, Sym, conj, free_symbols, negate
from tempo_ir.index.expr import TRUE
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.remarks import count, remark
from tempo_ir.passes.utilities import identity, programs


@dataclass(frozen=True)
class SdgSplitPass(ModulePass):
    """Compute the first steps of recurrences, whose values are given, apart from the others."""

    name = "sdg-split"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            merges = [inner for inner in program_ops(program) if isinstance(inner, MergeOp)]
            count(self, "split", sum(split(program, merge) for merge in merges if merge.parent is not None))


def split(program: ProgramOp, merge: MergeOp) -> bool:
    """Split the recurrence of a value by cases, in place; whether it was."""
    if isinstance(merge.result.type, TokenType):
        return False
    dim = prefix_dim(merge)
    if dim is None:
        return False
    members = recurrence_of(program, merge)
    if len(members) < 2 or merge.accesses[0].value.owner in members:
        return False
    problem = next((text for op in members if (text := _problem(op, dim)) is not None), None)
    if problem is not None:
        remark(merge, f"not split: {problem}")
        return False
    splitting = _Split(program, merge, dim, members)
    problem = splitting.problem()
    if problem is not None:
        remark(merge, f"not split: {problem}")
        return False
    splitting.run()
    return True


def prefix_dim(merge: MergeOp) -> str | None:
    """The dim of which the first case of a value holds up to a point that does not vary; None where it is another."""
    first = merge.conds[0]
    if not isinstance(first, Compare) or len(merge.conds) < 2 or not isinstance(first.lhs, Sym):
        return None
    dim = first.lhs.name
    varying = free_symbols(first.rhs) & set(merge.domain.dims)
    is_prefix = first.op in ("<", "<=") and dim in merge.domain.dims and not varying
    return dim if is_prefix and not isinstance(first.rhs, Const) else None


def recurrence_of(program: ProgramOp, merge: MergeOp) -> list[SdgOp]:
    """The ops that depend on a value and that it depends on, in the order of the program."""

    def readers(op: SdgOp) -> list[SdgOp]:
        users = [use.operation for result in op.results for use in result.uses]
        return [user for user in users if isinstance(user, SdgOp)]

    after = reachable([merge], readers)
    component = next(each for each in strongly_connected(after, readers) if merge in each)
    inside = set(component)
    return [op for op in program_ops(program) if op in inside]


def _problem(op: SdgOp, dim: str) -> str | None:
    """Why an op cannot be in two parts; None if it can."""
    if isinstance(op, HostOp) or not isinstance(op, AccessOp) or len(op.results) != 1:
        return f"{op.name} is part of it"
    if dim not in op.domain.dims:
        return f"{op.name} does not vary over {dim}"
    if any(not isinstance(use.operation, AccessOp) for use in op.results[0].uses):
        return "a gradient names it"
    return None


class _Split:
    """One recurrence in two parts."""

    def __init__(self, program: ProgramOp, merge: MergeOp, dim: str, members: list[SdgOp]):
        self.program = program
        self.merge = merge
        self.before: Cond = merge.conds[0]
        self.members = [op for op in members if isinstance(op, AccessOp)]
        self.domains = {op: (self._part(op, self.before), self._part(op, negate(self.before))) for op in self.members}
        self.late = {op for op in self.members if self._is_empty(self.domains[op][0])}
        """What is not made in the first steps."""

    def _part(self, op: SdgOp, cond: Cond) -> Domain:
        domain = op.domain
        where = cond if domain.where == TRUE else conj(domain.where, cond)
        return normal_form(Domain(domain.dims, domain.ranges, where), self.program.space)

    def _is_empty(self, domain: Domain) -> bool:
        from tempo_ir.index import isl

        return isl.domain_set(self.program.space, domain).is_empty()

    def problem(self) -> str | None:
        """Why the parts cannot be made apart; None if they can."""
        space = self.program.space
        if any(self._is_empty(self.domains[op][1]) for op in self.members):
            return "some of it is made in the first steps alone"
        for op in self.members:
            if op is self.merge or op in self.late:
                continue
            for number, access in enumerate(op.accesses):
                producer = access.value.owner
                if not isinstance(producer, AccessOp) or producer not in self.domains:
                    continue
                consumer = self._read_domain(op, number, self.domains[op][0])
                if read_problem(space, consumer, access.index, self.domains[producer][0]) is not None:
                    return "its first steps read what later ones make"
        return None

    def _read_domain(self, op: AccessOp, number: int, domain: Domain) -> Domain:
        """The points at which a part of an op reads an operand."""
        return case_domain(domain, op.conds, number) if isinstance(op, MergeOp) else domain

    def run(self) -> None:
        """Make both parts."""
        first: dict[SSAValue, AccessOp] = {op.results[0]: self._first(op) for op in self.members if op not in self.late}
        for made in first.values():
            for number, access in enumerate(made.accesses):
                if access.value in first and made is not first[self.merge.result]:
                    made.with_access(number, first[access.value].results[0], access.index)
        self.merge.set_cases(list(zip(self.merge.conds[1:], self.merge.accesses[1:], strict=True)))
        made = set(first.values())
        parted = [op for op in self.members if op not in self.late]
        uses = [(op, use.operation, use.index) for op in parted for use in op.results[0].uses]
        whole = {op: op.domain for op in self.members}
        for op in parted:
            op.domain = self.domains[op][1]
        both: dict[SSAValue, SSAValue] = {}
        for op, user, number in uses:
            if isinstance(user, AccessOp) and user not in made:
                self._redirect(user, number, op, first[op.results[0]].results[0], whole[op], both)

    def _first(self, op: AccessOp) -> AccessOp:
        """The part of an op for the first steps; it reads what the op reads yet."""
        build = GraphBuilder(op, self.domains[op][0], op.location)
        if op is self.merge:
            made = build.copy(op.accesses[0]).value.owner
        else:
            clone = op.clone()
            clone.domain = self.domains[op][0]
            made = build.insert(clone).value.owner
        assert isinstance(made, AccessOp)
        made.results[0].name_hint = op.results[0].name_hint
        return made

    def _redirect(
        self, user: AccessOp, number: int, op: AccessOp, first: SSAValue, whole: Domain, both: dict[SSAValue, SSAValue]
    ) -> None:
        """Let a reader read the part that has what it reads, or both."""
        space, result = self.program.space, op.results[0]
        index, consumer = user.accesses[number].index, read_domain(user, number)
        before, after = self.domains[op]
        if read_problem(space, consumer, index, after) is None:
            return
        if read_problem(space, consumer, index, before) is None:
            user.with_access(number, first, index)
            return
        if result not in both:
            build = GraphBuilder(op, whole, op.location)
            parts = (self.before, Access(first, identity(op))), (negate(self.before), Access(result, identity(op)))
            made = build.insert(MergeOp(*parts, domain=whole)).value
            made.name_hint = result.name_hint
            both[result] = made
        user.with_access(number, both[result], index)
