"""Helpers of passes on cyclic graphs: replacement through indices, the rewrite budget, structural comparison."""

from __future__ import annotations

from dataclasses import fields

import pytest
from passes_support import apply, parse, program_of
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.exceptions import PassFailedException

from tempo_ir import lowering
from tempo_ir.dialects.sdg import Access, AddOp, NegOp, SdgOp, SubOp
from tempo_ir.index import Sym, index
from tempo_ir.passes import get_all_passes
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE, default_pipeline
from tempo_ir.passes.utilities import (
    current,
    equivalent,
    erase,
    replace_proved,
    replace_with_access,
    run_patterns,
    structural_key,
)

S = "tensor<f32>"

CYCLE = f"""
sdg.program @p dims(t: T) {{
  %x = sdg.input "x" in (t) : {S}
  %zero = sdg.constant 0.0 : {S}
  %s = sdg.merge {{t = 0 : %zero, t > 0 : %h[t - 1]}} in (t) : ({S}, {S}) -> {S}
  %h = sdg.add %s[t], %x[t] in (t) : ({S}, {S}) -> {S}
  sdg.output "h" %h[t] in (t) : {S}
}}"""

READS = f"""
sdg.program @p dims(t: T) {{
  %x = sdg.input "x" in (t) : {S}
  %zero = sdg.constant 0.0 : {S}
  %a = sdg.add %x[t - 1], %zero in (t: 1 to T) : ({S}, {S}) -> {S}
  USE
}}"""


def named(module, name: str) -> SdgOp:
    ops = program_of(module).body.block.ops
    return next(op for op in ops if op.results and op.results[0].name_hint == name and isinstance(op, SdgOp))


def test_replacement_composes_indices():
    module = parse(
        READS.replace(
            "USE",
            f"""%b = sdg.neg %a[t + 3] in (t: 0 to T - 3) : ({S}) -> {S}
  %c = sdg.sum %a[1:t + 1] axes [0] in (t) : ({S}) -> {S}
  sdg.output "b" %b[t] in (t: 0 to T - 3) : {S}
  sdg.output "c" %c[t] in (t) : {S}""",
        )
    )
    op = named(module, "a")
    assert replace_with_access(op, op.accesses[0])
    module.verify()
    assert "sdg.neg %x[t + 2]" in str(module)
    assert "sdg.sum %x[0:t]" in str(module)


@pytest.mark.parametrize(
    "use",
    [
        f'%g = sdg.grad %a wrt %a in (t) : ({S}, {S}) -> {S}\n  sdg.output "g" %g[t] in (t: 1 to T) : {S}',
    ],
)
def test_replacement_refuses_whole_uses(use):
    module = parse(READS.replace("USE", use))
    before = str(module)
    op = named(module, "a")
    assert not replace_with_access(op, op.accesses[0])
    assert str(module) == before


def test_replacement_refuses_what_does_not_compose():
    text = READS.replace("%x[t - 1]", "%x[t floordiv 2]").replace(
        "USE", f'%c = sdg.sum %a[1:T] axes [0] : ({S}) -> {S}\n  sdg.output "c" %c : {S}'
    )
    module = parse(text)
    op = named(module, "a")
    assert not replace_with_access(op, op.accesses[0])


def test_replacement_refuses_reads_that_the_op_does_not_make():
    module = parse(CYCLE)
    merge = named(module, "s")
    assert not replace_with_access(merge, merge.accesses[1])
    add = named(module, "h")
    assert not replace_with_access(add, Access(add.operands[1], index("[0]")))
    assert not replace_proved(add, current(add))


def test_cycles_are_erased_together():
    module = parse(CYCLE.replace('sdg.output "h" %h[t] in (t) : tensor<f32>', ""))
    erase([named(module, "s"), named(module, "h")])
    module.verify()
    assert "merge" not in str(module)


class Exchange(RewritePattern):
    """Never content: a sum becomes a difference, and a difference a sum."""

    def match_and_rewrite(self, op, rewriter: PatternRewriter) -> None:
        if isinstance(op, AddOp):
            rewriter.replace(op, SubOp(*op.accesses, domain=op.domain))
        elif isinstance(op, SubOp):
            rewriter.replace(op, AddOp(*op.accesses, domain=op.domain))


def test_the_rewrite_budget_names_the_op():
    module = parse(CYCLE)
    with pytest.raises(PassFailedException, match="the rewrite budget is used up at sdg"):
        run_patterns(program_of(module).body, Exchange(), budget=20)


class Negate(RewritePattern):
    """A sum becomes the negation of its first operand."""

    def match_and_rewrite(self, op, rewriter: PatternRewriter) -> None:
        if isinstance(op, AddOp):
            rewriter.replace(op, NegOp(op.accesses[0], domain=op.domain))


def test_new_ops_keep_the_location():
    module = parse(CYCLE)
    place = FileLineColLoc(StringAttr("model.py"), IntAttr(7), IntAttr(1))
    named(module, "h").location = place
    assert run_patterns(program_of(module).body, Negate())
    (negation,) = (op for op in module.walk() if isinstance(op, NegOp))
    assert negation.location == place
    assert not run_patterns(program_of(module).body, Negate())


def test_structural_comparison():
    first, second = parse(CYCLE), parse(CYCLE.replace("%h", "%renamed"))
    assert equivalent(first.body, second.body)
    assert equivalent(first.body, first.clone().body)
    assert structural_key(first.body) == structural_key(second.body)
    assert not equivalent(first.body, parse(CYCLE.replace("0.0", "1.0")).body)
    assert not equivalent(first.body, parse(CYCLE.replace("%s[t], %x[t]", "%x[t], %s[t]")).body)


def test_current_reads_the_op_itself():
    op = named(parse(CYCLE), "h")
    assert current(op) == Access(op.results[0], (Sym("t"),))


PASSES = {**get_all_passes(), **lowering.get_all_passes()}
NUMBERS = [
    (name, option.name)
    for name, factory in PASSES.items()
    for option in fields(factory())
    if str(option.type).split(" ")[0] == "int"
]


@pytest.mark.parametrize(("name", "option"), NUMBERS)
@pytest.mark.parametrize("value", [-1, 2**62, 10**30])
def test_options_that_count_are_checked(name: str, option: str, value: int):
    with pytest.raises(PassFailedException, match=rf"{name}: .*{value}|{name}: .*{option}"):
        PASSES[name]()(**{option: value}).apply(Context(), parse(CYCLE))


def test_options_that_count_are_found():
    assert {("sdg-remat", "block"), ("sdg-tile", "tile"), ("sdg-schedule", "max_candidates")} <= set(NUMBERS)


def test_default_pipeline():
    assert set(DEFAULT_PIPELINE) <= set(get_all_passes())
    assert "sdg-cse" not in default_pipeline(without=("sdg-cse",))
    assert "sdg-autodiff" in default_pipeline(without=("sdg-autodiff",))
    assert list(get_all_passes()) == sorted(get_all_passes())
    apply(parse(CYCLE), *default_pipeline())
