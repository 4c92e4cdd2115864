"""sdg-simplify: small algebraic rewrites until none applies.

Before:

    %xt = sdg.transpose %x[t] permutation [1, 0] in (t) : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %p = sdg.contract "kb,kn->bn" %xt[t], %w in (t) : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %s = sdg.sum %p[t] axes [0] in (t) : (tensor<4x2xf32>) -> tensor<2xf32>
    %y = sdg.mul %s[t - 1], %one in (t: 1 to T) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    sdg.output "y" %y[t] in (t: 1 to T) : tensor<2xf32>

After:

    %y = sdg.contract "bk,kn->n" %x[t], %w in (t) : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<2xf32>
    sdg.output "y" %y[t - 1] in (t: 1 to T) : tensor<2xf32>

The rules are tables: `simplify.identities` (neutral and absorbing elements, ops of one operand twice, ops that undo
each other), `elementwise`, `reassociation`, `shape`, `chains`, `contraction`, `structure`. They keep NaN and infinity,
so `0 * x` stays, and group no sums of floats, unless `fast-math=true` asks for it; sums of equal numbers may round
differently. `sdg.stop_gradient` goes once no gradient is left, and so do dims of one point (`simplify.unit_dims`). A
rule does not apply where a use cannot read through the new index, where a gradient is taken by the value, or where a
shape would change by broadcasting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from tempo_ir.dialects.sdg import GradOp, HostOp, ProgramOp, SdgOp, SourceOp, StopGradientOp
from tempo_ir.passes.remarks import count
from tempo_ir.passes.sdg_dce import remove_dead_ops
from tempo_ir.passes.simplify import chains, contraction, elementwise, identities, pads, reassociation, shape, structure
from tempo_ir.passes.simplify.rule import Rewriting, Rule, Rules
from tempo_ir.passes.simplify.unit_dims import drop_unit_dims
from tempo_ir.passes.utilities import programs, replace_with_access, run_patterns


def joined(*tables: Rules) -> Rules:
    """One table of several."""
    rules: dict[type[SdgOp], tuple[Rule, ...]] = {}
    for table in tables:
        for kind, some in table.items():
            rules[kind] = (*rules.get(kind, ()), *some)
    return MappingProxyType(rules)


RULES: Mapping[type[SdgOp], Sequence[Rule]] = joined(
    identities.RULES,
    elementwise.RULES,
    reassociation.RULES,
    shape.RULES,
    chains.RULES,
    pads.RULES,
    contraction.RULES,
    structure.RULES,
)
RULES_OF: Mapping[type[SdgOp], Sequence[Rule]] = MappingProxyType(
    {kind: (*structure.ALL, *rules) for kind, rules in RULES.items()}
)
"""Those that are tried at an op: what is so of all ops first."""


@dataclass(frozen=True)
class Simplify(RewritePattern):
    """Erases what became unused, and applies the first rule that does anything."""

    fast_math: bool = False

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, SdgOp):
            return
        if is_unused(op):
            rewriter.erase(op)
            return
        rewriting = Rewriting(rewriter, self.fast_math)
        for rule in RULES_OF.get(type(op), structure.ALL):
            if rule(op, rewriting):
                return


class DropStopGradient(RewritePattern):
    """`sdg.stop_gradient %x[t]` -> `%x[t]`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, StopGradientOp):
            replace_with_access(op, op.accesses[0], rewriter)


def is_unused(op: SdgOp) -> bool:
    """Whether an op has results that nobody uses, and does nothing else."""
    kept = isinstance(op, HostOp | SourceOp) or not op.results
    return not kept and all(result.first_use is None for result in op.results)


def has_gradients(program: ProgramOp) -> bool:
    """Whether a gradient is left to expand."""
    return any(isinstance(op, GradOp) for op in program.body.block.ops)


@dataclass(frozen=True)
class SdgSimplifyPass(ModulePass):
    """Small algebraic rewrites until none applies."""

    name = "sdg-simplify"

    fast_math: bool = False
    """Take numbers to be finite, and group sums and products of floats as is cheapest: `0 * x` is 0."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            remove_dead_ops(program)
            simplify = Simplify(self.fast_math)
            differentiated = not has_gradients(program)
            patterns = [simplify, DropStopGradient()] if differentiated else [simplify]
            dropped = differentiated and drop_unit_dims(program)
            if run_patterns(program.body, *patterns) or dropped:
                count(self, "changed")
                remove_dead_ops(program)
