"""sdg-autodiff: gradients become ops of the program.

Before:

    %h = sdg.tanh %a[i, t] in (i, t) : (!h) -> !h          // %a = %x + %s @ %w, %s[t] = %h[t - 1]
    %loss = sdg.mean %d2[i, t] axes [0, 1] in (i, t) : (!h) -> !s
    %dw = sdg.grad %loss wrt %w in (i) : (!s, !w) -> !w

After:

    %gn = sdg.merge {t < T - 1 : %gs[i, t + 1], t >= T - 1 : %zero} in (i, t) : (!h, !h) -> !h
    %gh = sdg.add %gd[i, t], %gn[i, t] in (i, t) : (!h, !h) -> !h
    %ga = sdg.mul %gh[i, t], %u[i, t] in (i, t) : (!h, !h) -> !h
    %gs = sdg.contract "bn,kn->bk" %ga[i, t], %w[i] in (i, t) : (!h, !w) -> !h
    %gw = sdg.contract "bk,bn->kn" %s[i, t], %ga[i, t] in (i, t) : (!h, !h) -> !w
    %dw = sdg.sum %gw[i, 0:T] axes [0] in (i) : (!w) -> !w

The loss is summed over its domain. A read contributes at every point that it reads, found by inverting the access with
isl; a merge carries gradients case by case, which is backpropagation through time. Nothing flows through the
definition of what is differentiated by, through `sdg.stop_gradient`, through integers, or through other gradients of
the same loss. Gradients of gradients: the inner one is expanded first. Two losses under training, each of which depends
on what the gradient of the other has updated in earlier steps, are each taken with those updates held constant.

It does not apply, with an error by name, where the loss does not depend on `wrt`, where a host function lies between,
where the readers of a point are no ranges, and where two gradients need each other.

The reverse pass over an op graph is Griewank and Walther, Evaluating Derivatives (2008), chapter 3; the adjoint of an
access by the inverse of its map is Silvestre et al., Tempo (2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import GradOp, ProgramOp, value_text
from tempo_ir.dialects.types import element
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.gradients.activity import Problem, refuse_hosts
from tempo_ir.passes.gradients.adjoints import Adjoint, completed
from tempo_ir.passes.gradients.custom import drop_custom_gradients
from tempo_ir.passes.gradients.expansion import Expansion, read_for_all, substitute_read
from tempo_ir.passes.gradients.ordering import ReversePass, next_passes
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import programs, refuse


@dataclass(frozen=True)
class SdgAutodiffPass(ModulePass):
    """Expand every `sdg.grad` into ops of the program."""

    name = "sdg-autodiff"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            while gradients := [op for op in program.body.block.ops if isinstance(op, GradOp)]:
                passes = next_passes(gradients)
                _expand(program, passes)
                count(self, "gradients", sum(len(one.gradients) for one in passes))
            drop_custom_gradients(program)


def _expand(program: ProgramOp, passes: Sequence[ReversePass]) -> None:
    """Make some reverse passes, all on the program as it is, then put their gradients in place."""
    for one in passes:
        refuse_hosts(one.problem)
    expansions = [(one.gradients, _expansion(program, one.gradients, one.problem)) for one in passes]
    for gradients, expansion in expansions:
        for gradient in gradients:
            _replace(gradient, expansion)


def _expansion(program: ProgramOp, group: Sequence[GradOp], problem: Problem) -> Expansion:
    for gradient in group:
        _check_reached(gradient, problem)
    build = GraphBuilder(group[0], group[0].domain, group[0].location)
    expansion = Expansion(problem, build, program.space)
    expansion.run()
    return expansion


def _check_reached(gradient: GradOp, problem: Problem) -> None:
    if gradient.wrt in problem.active or gradient.allow_unused:
        return
    refuse(
        gradient,
        f"{value_text(gradient.loss)} does not depend on {value_text(gradient.wrt)} by "
        "floating-point operations, so it has no gradient; differentiate by something that it uses, or say "
        "allow_unused for zeros",
    )


def _replace(gradient: GradOp, expansion: Expansion) -> None:
    """Put the adjoint of `wrt`, at every point and in its full shape, where the gradient is used."""
    wrt, domain = gradient.wrt, gradient.domain
    build = replace(expansion.build, anchor=gradient, domain=domain, location=gradient.location)
    adjoint = expansion.adjoints.get(wrt)
    if adjoint is None:
        adjoint = Adjoint(build.number(0.0, element(wrt.type)), domain)
    access = completed(build, expansion.space, adjoint, wrt.type, domain)
    access = read_for_all(gradient, access, build)
    name = gradient.result.name_hint
    if name is not None and access.value.owner is not wrt.owner:
        access.value.name_hint = name
    substitute_read(gradient, access)
