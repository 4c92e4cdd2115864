"""The reverse pass over one loss: adjoints from the loss back to the values that it is differentiated by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    CustomGradientOp,
    HostOp,
    InputOp,
    MergeOp,
    SdgOp,
    SelectOp,
    domain_of,
)
from tempo_ir.dialects.types import as_tensor, element
from tempo_ir.index import TRUE, Cond, Domain, Space, Sym, compose, conj, negate
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.gradients import rules_elementwise, rules_reduction, rules_shape
from tempo_ir.passes.gradients.activity import Problem, carries_gradient
from tempo_ir.passes.gradients.adjoints import Adjoint, combined, completed
from tempo_ir.passes.gradients.custom import custom_gradients
from tempo_ir.passes.gradients.host_calls import HostGradient
from tempo_ir.passes.gradients.inverse_reads import Contribution, contributions
from tempo_ir.passes.gradients.step import Rule, Sent, Step
from tempo_ir.passes.gradients.unbounded import unbounded
from tempo_ir.passes.utilities import erase, refuse

RULES: Mapping[type[AccessOp], Rule] = MappingProxyType(
    {**rules_elementwise.RULES, **rules_reduction.RULES, **rules_shape.RULES}
)
"""The derivative of every op that has one; a merge has its own treatment, by cases."""


@dataclass
class Expansion:
    """Builds the adjoints of all active values of a problem."""

    problem: Problem
    build: GraphBuilder
    space: Space
    adjoints: dict[SSAValue, Adjoint] = field(default_factory=dict[SSAValue, Adjoint])
    terms: dict[SSAValue, list[Contribution]] = field(default_factory=dict[SSAValue, list[Contribution]])
    visited: set[SSAValue] = field(default_factory=set[SSAValue])

    @cached_property
    def unbounded(self) -> frozenset[SSAValue]:
        """The values that may be infinite though what they are made of is not."""
        return unbounded(self.problem.active)

    def run(self) -> None:
        """Fill `adjoints`; a value that the loss reaches through steps alone (floor, sign) gets none."""
        loss = self.problem.loss
        self._add(loss, Contribution(((TRUE, self.build.number(1.0, element(loss.type))),)))
        for component in self.problem.components():
            if self.problem.is_recurrent(component):
                self._recurrence(component)
            else:
                self._visit(component[0])

    def _recurrence(self, component: list[SSAValue]) -> None:
        """Values that depend on themselves at other points: the adjoints of some are named before they are known."""
        opened = self.problem.opened(component)
        promised = {value: self._promise(value) for value in opened}
        for value in opened:
            self._step(value)
        for value in self.problem.reverse_order(component, frozenset(opened)):
            if value not in promised:
                self._visit(value)
        for value in opened:
            self._keep_promise(value, promised[value])

    def _promise(self, value: SSAValue) -> InputOp:
        """A stand-in for the adjoint of a value, over its whole domain."""
        domain = domain_of(value)
        stand_in = InputOp("adjoint", as_tensor(value.type), domain=domain)
        selected = any(isinstance(active.owner, SelectOp) for active in self.problem.active)
        self.adjoints[value] = Adjoint(self.build.insert(stand_in), domain, selected=selected)
        return stand_in

    def _keep_promise(self, value: SSAValue, stand_in: InputOp) -> None:
        """Put the adjoint, now known, where the stand-in is used."""
        domain = domain_of(value)
        build = self._builder(value)
        adjoint = self._combined(value)
        if adjoint is None:
            zero = Access(build.number(0.0, element(value.type)).value)
            adjoint = Adjoint(zero, domain)
        access = completed(build, self.space, adjoint, value.type, domain)
        pending = [access for terms in self.terms.values() for term in terms for _, access in term.cases]
        pending += [known.access for known in self.adjoints.values()]
        access = read_for_all(stand_in, access, build.at(domain), [a for a in pending if a.value is stand_in.result])
        self._forget(stand_in, access)
        self.adjoints[value] = replace(self.adjoints[value], access=access)
        substitute_read(stand_in, access)

    def _forget(self, stand_in: InputOp, access: Access) -> None:
        """Read the adjoint itself wherever a term or an adjoint, not yet built into an op, reads its stand-in."""
        for terms in self.terms.values():
            terms[:] = [
                replace(term, cases=tuple((cond, through(stand_in, access, read)) for cond, read in term.cases))
                for term in terms
            ]
        for value, adjoint in self.adjoints.items():
            self.adjoints[value] = replace(adjoint, access=through(stand_in, access, adjoint.access))

    def _visit(self, value: SSAValue) -> None:
        adjoint = self._combined(value)
        if adjoint is not None:
            self.adjoints[value] = adjoint
        self._step(value)

    def _combined(self, value: SSAValue) -> Adjoint | None:
        terms = self.terms.get(value)
        if not terms:
            return None
        ends_here = value in self.problem.leaves or not isinstance(value.owner, AccessOp)
        adjoint = combined(self._builder(value), self.space, domain_of(value), terms, everywhere=ends_here)
        _name(adjoint.access, value)
        return adjoint

    def _builder(self, value: SSAValue) -> GraphBuilder:
        owner = value.owner
        location = owner.location if isinstance(owner, Operation) else self.build.location
        return self.build.at(domain_of(value), location)

    def _step(self, value: SSAValue) -> None:
        """From the adjoint of a value to contributions to the adjoints of what its op reads."""
        op = value.owner
        if not isinstance(op, AccessOp) or value in self.problem.leaves or op in self.problem.cut:
            return
        wanted = frozenset(number for number, operand in enumerate(op.operands) if operand in self.problem.active)
        if not wanted:
            return
        self.visited.add(value)
        if isinstance(op, HostOp):
            self._host(op, wanted)
            return
        adjoint = self.adjoints.get(value)
        if adjoint is None:
            return
        build = self.build.at(adjoint.domain, op.location)
        if isinstance(op, MergeOp):
            self._merge(op, adjoint, build, wanted)
            return
        if isinstance(op, CustomGradientOp):
            self._custom(op, adjoint)
            return
        rule = RULES.get(type(op))
        if rule is None:
            refuse(op, f"{op.name} has no derivative, and the loss depends on it: put stop_gradient round its operand")
        step = Step(op, build, adjoint.access, adjoint.mask, wanted, adjoint.selected, self.unbounded)
        rule(step)
        for sent in step.sent:
            self._receive(op, build, sent, adjoint)

    def _merge(self, op: MergeOp, adjoint: Adjoint, build: GraphBuilder, wanted: frozenset[int]) -> None:
        """Each case gets the gradient at the points where it is the first that holds."""
        earlier: list[Cond] = []
        for number, cond in enumerate(op.conds):
            if number in wanted:
                domain = adjoint.domain
                holds = conj(domain.where, cond, *earlier)
                narrower = build.at(Domain(domain.dims, domain.ranges, holds))
                self._receive(op, narrower, Sent(number, adjoint.access), adjoint)
            earlier.append(negate(cond))

    def _host(self, op: HostOp, wanted: frozenset[int]) -> None:
        """A call of a host function, once the gradients of all its results are known."""
        outputs = [value for value in op.outputs if carries_gradient(value)]
        active = [value for value in outputs if value in self.problem.active]
        if not self.visited.issuperset(active) or not any(value in self.adjoints for value in active):
            return
        build = self.build.at(op.domain, op.location)
        cotangents: list[Access] = []
        for value in outputs:
            zero = Adjoint(build.number(0.0, element(value.type)), op.domain)
            adjoint = self.adjoints.get(value, zero)
            cotangents.append(completed(build, self.space, adjoint, value.type, op.domain))
        steps = frozenset(dim for leaf in self.problem.leaves for dim in domain_of(leaf).dims)
        gradients = HostGradient(op, build, self.space, steps).call(cotangents)
        for number in sorted(wanted):
            self._receive(op, build, Sent(number, gradients[number]))

    def _custom(self, op: CustomGradientOp, adjoint: Adjoint) -> None:
        """A value that says its own gradient."""
        build = self.build.at(op.domain, op.location)
        domain = domain_of(op.operands[1])
        gradient = completed(build, self.space, adjoint, op.result.type, domain)
        for number, sent in custom_gradients(op, build, gradient).items():
            self._receive(op, build, Sent(number, sent), adjoint)

    def _receive(self, op: AccessOp, build: GraphBuilder, sent: Sent, adjoint: Adjoint | None = None) -> None:
        if sent.operand not in range(len(op.operands)) or op.operands[sent.operand] not in self.problem.active:
            return
        read = op.accesses[sent.operand]
        for term in contributions(op, build, self.space, read, sent.gradient, sent.mask):
            self._add(read.value, replace(term, selected=_is_selected(op, adjoint, term)))

    def _add(self, value: SSAValue, term: Contribution) -> None:
        self.terms.setdefault(value, []).append(term)


def _is_selected(op: AccessOp, adjoint: Adjoint | None, term: Contribution) -> bool:
    """Whether downstream of a term, from the adjoint of the result of `op`, lies a select whose mask it has not."""
    if adjoint is None:
        return False
    return adjoint.selected or (term.mask is None and (adjoint.mask is not None or isinstance(op, SelectOp)))


def read_for_all(op: SdgOp, access: Access, build: GraphBuilder, pending: Sequence[Access] = ()) -> Access:
    """`access` where every use of `op` can read through it, else a copy of what it reads, over the domain of `op`."""
    dims = op.domain.dims
    indices = [read.index for read in pending]
    for use in op.results[0].uses:
        user = use.operation
        indices.append(user.accesses[use.index].index if isinstance(user, AccessOp) else tuple(map(Sym, dims)))
        if not isinstance(user, AccessOp) and domain_of(access.value) != op.domain:
            return build.copy(access)
    if any(compose(access.index, dims, index) is None for index in indices):
        return build.copy(access)
    return access


def through(op: SdgOp, access: Access, read: Access) -> Access:
    """`read`, or where it reads `op` the same elements of `access`, which stands for `op` over its dims."""
    if read.value is not op.results[0]:
        return read
    index = compose(access.index, op.domain.dims, read.index)
    assert index is not None
    return Access(access.value, index)


def substitute_read(op: SdgOp, access: Access) -> None:
    """Replace the result of `op` by a read over its dims (see `read_for_all`), and erase it."""
    result = op.results[0]
    for use in list(result.uses):
        user = use.operation
        if isinstance(user, AccessOp):
            read = through(op, access, user.accesses[use.index])
            user.with_access(use.index, read.value, read.index)
        else:
            user.operands[use.index] = access.value
    erase([op])


def _name(adjoint: Access, value: SSAValue) -> None:
    """An adjoint without a name is called after its value: `gh` of `h`."""
    if adjoint.value.name_hint is None and value.name_hint is not None:
        adjoint.value.name_hint = f"g{value.name_hint}"
