"""Which gradients are expanded next, and through which others nothing flows.

A gradient whose loss depends on another gradient is expanded after it: a gradient penalty, an inner loop. Two that need
each other are those of two losses under training, as of a generator and a discriminator: each loss depends on what the
other has updated. The update of an earlier step is a constant for a later one, so each is taken with the other held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.sdg import AccessOp, GradOp, domain_of, value_text
from tempo_ir.graphs import is_cyclic, reachable, strongly_connected
from tempo_ir.index import Sym
from tempo_ir.passes.gradients.activity import Problem, is_smooth, path_text, pending_gradients
from tempo_ir.passes.remarks import remark
from tempo_ir.passes.utilities import refuse


@dataclass(frozen=True)
class ReversePass:
    """Gradients of one loss that are found together."""

    gradients: tuple[GradOp, ...]
    problem: Problem


def next_passes(gradients: Sequence[GradOp]) -> list[ReversePass]:
    """The reverse passes to make next, all before any gradient is put in place.

    Raises PassFailedException where gradients of several losses need each other within one step.
    """
    groups: dict[SSAValue, list[GradOp]] = {}
    for gradient in gradients:
        groups.setdefault(gradient.loss, []).append(gradient)
    plans = {loss: passes_of(group) for loss, group in groups.items()}

    def needed(loss: SSAValue) -> Iterator[SSAValue]:
        return (op.loss for one in plans[loss] for op in pending_gradients(one.problem))

    component = strongly_connected(groups, needed)[0]
    if not is_cyclic(component, needed):
        return plans[component[0]]
    held = {loss: _held(plans[loss]) for loss in component}
    loosened = {loss: passes_of(groups[loss], held[loss]) for loss in component}
    for loss in component:
        together = _together(loss, held)
        if not any(pending_gradients(one.problem) for other in together for one in loosened[other]):
            for other in together:
                _report(other, groups[other][0], held[other])
            return [one for other in together for one in loosened[other]]
    _refuse_mutual(plans[component[0]])


def passes_of(group: Sequence[GradOp], held: frozenset[Operation] = frozenset()) -> list[ReversePass]:
    """The reverse passes that a loss needs: one for all values whose gradients can share it, one for each other.

    A value that depends on itself (a parameter under training, the state of a recurrence) is a leaf: its definition is
    ignored. It can share a pass with values whose gradients do not flow through that definition.
    """
    problem = _problem(group, frozenset(), held)
    recurrent = frozenset(v for c in problem.components() if problem.is_recurrent(c) for v in c)
    leaves = recurrent & set(problem.wrt)
    entangled = _entangled(_problem(group, leaves, held))
    alone = [op for op in group if op.wrt in entangled]
    passes = [ReversePass((op,), _problem([op], leaves & {op.wrt}, held)) for op in alone]
    shared = tuple(op for op in group if op.wrt not in entangled)
    if shared:
        passes.insert(0, ReversePass(shared, _problem(shared, leaves - entangled, held)))
    return passes


def _problem(group: Sequence[GradOp], leaves: frozenset[SSAValue], held: frozenset[Operation]) -> Problem:
    loss = group[0].loss
    same_loss = frozenset(use.operation for use in loss.uses if isinstance(use.operation, GradOp))
    problem = Problem(loss, tuple(dict.fromkeys(op.wrt for op in group)), same_loss | held, leaves)
    problem.find_active()
    return problem


def _entangled(problem: Problem) -> set[SSAValue]:
    """The values on which the definition of another leaf depends, so that their gradients flow through it."""
    found: set[SSAValue] = set()
    for leaf in problem.leaves:
        op = leaf.owner
        if not isinstance(op, AccessOp):
            continue
        before = reachable((v for v in op.operands if is_smooth(op, v)), problem.dependencies)
        found.update(value for value in problem.wrt if value in before and value != leaf)
    return found


def _held(passes: Iterable[ReversePass]) -> frozenset[Operation]:
    """The pending gradients that reach the loss from other steps only, by what they have updated there."""
    return frozenset(
        op
        for one in passes
        for op in pending_gradients(one.problem)
        if not any(_within_step(one.problem, wrt, op) for wrt in one.problem.wrt)
    )


def _within_step(problem: Problem, wrt: SSAValue, gradient: GradOp) -> bool:
    """Whether the loss depends on `wrt` by way of `gradient` at one and the same point of the dims of `wrt`."""
    dims = frozenset(domain_of(wrt).dims)

    def before(value: SSAValue) -> Iterator[SSAValue]:
        op = value.owner
        if isinstance(op, Operation) and value not in problem.leaves and op not in problem.cut:
            for number, operand in enumerate(op.operands):
                if operand in problem.active and is_smooth(op, operand) and _stays(op, number, dims):
                    yield operand

    return gradient.result in reachable([problem.loss], before) and wrt in reachable([gradient.result], before)


def _stays(op: Operation, number: int, dims: frozenset[str]) -> bool:
    """Whether an operand is read at the current point of all of `dims` that it varies over."""
    if not isinstance(op, AccessOp):
        return True
    access = op.accesses[number]
    entries = zip(domain_of(access.value).dims, access.index, strict=True)
    return all(entry == Sym(dim) for dim, entry in entries if dim in dims)


def _together(loss: SSAValue, held: Mapping[SSAValue, frozenset[Operation]]) -> list[SSAValue]:
    """A loss, and all that hold its gradients or those of another of them: they need the ops as they are."""
    found = [loss]
    for one in found:
        found += [
            other
            for other, ops in held.items()
            if other not in found and any(isinstance(op, GradOp) and op.loss == one for op in ops)
        ]
    return found


def _report(loss: SSAValue, gradient: GradOp, held: frozenset[Operation]) -> None:
    others = sorted({value_text(op.loss) for op in held if isinstance(op, GradOp)})
    if others:
        remark(
            gradient,
            f"the gradients of {value_text(loss)} and of {', '.join(others)} need each other by what is updated in "
            "other steps: each is taken with the updates of the other held constant",
        )


def _refuse_mutual(passes: Sequence[ReversePass]) -> NoReturn:
    problem, first, other = next(
        (one.problem, one.gradients[0], pending[0]) for one in passes if (pending := pending_gradients(one.problem))
    )
    start = next(value for value in problem.wrt if problem.path(value, other.result) is not None)
    path = [*(problem.path(start, other.result) or ()), *(problem.path(other.result, problem.loss) or (problem.loss,))]
    refuse(
        first,
        f"the gradients of {value_text(problem.loss)} and of {value_text(other.loss)} need each other: "
        f"{path_text(dict.fromkeys(path))}; put stop_gradient on that path, round the update that uses a gradient",
    )
