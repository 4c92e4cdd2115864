"""Scheduled programs compute what their graphs mean, at odd sizes, and are ordered as a person would order them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from programs import IMPOSSIBLE, NEEDS_ISL, SCHEDULABLE, TURNING
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import evaluate
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tempo_ir.tools.parsing import parse_module

SIZES = (0, 1, 2, 3, 5, 8)


def parse(text: str, *, verify: bool = True) -> sdg.ProgramOp:
    context = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        context.load_dialect(dialect)
    module = parse_module(context, text, "program.mlir")
    if verify:
        module.verify()
    (program,) = module.ops
    assert isinstance(program, sdg.ProgramOp)
    program.detach()
    return program


def arguments(program: sdg.ProgramOp, bounds: Mapping[str, int]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    found = {}
    for op in program.body.block.ops:
        if isinstance(op, sdg.SourceOp):
            points = [evaluate(program.space.bound(dim), bounds) for dim in op.domain.dims]
            row = [extent for extent in shape_of(op.result.type) if isinstance(extent, int)]
            found[op.key.data] = generator.standard_normal((*points, *row)).astype(np.float32)
    return found


def admitted_bounds(program: sdg.ProgramOp, sizes: tuple[int, ...] = SIZES) -> list[dict[str, int]]:
    """Small bounds: every size of one, with 0, 1 and 3 of the others."""
    params = program.space.params
    choices = [sizes if position == len(params) - 1 else (0, 1, 3) for position in range(len(params))]
    every = (dict(zip(params, values, strict=True)) for values in itertools.product(*choices))
    return [bounds for bounds in every if evaluate(program.space.where, bounds)]


def assert_same_results(program: sdg.ProgramOp, scheduled: loop.ProgramOp) -> None:
    scheduled.verify()
    for bounds in admitted_bounds(program):
        given = arguments(program, bounds)
        expected, computed = run(program, given, bounds, seed=3), run_loop(scheduled, given, bounds, seed=3)
        assert expected.keys() == computed.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(computed[key], value, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("name", [*SCHEDULABLE, *NEEDS_ISL])
def test_computes_what_the_graph_means(name: str) -> None:
    program = parse({**SCHEDULABLE, **NEEDS_ISL}[name])
    assert_same_results(program, schedule_program(program))


def outline(program: loop.ProgramOp) -> list[str]:
    """The loops with their directions and the values written, one per line."""
    lines: list[str] = []

    def visit(block, indent: str) -> None:
        for op in block.ops:
            if isinstance(op, loop.ForOp):
                lines.append(f"{indent}{op.iterator} {'down' if op.down else 'up'}")
                visit(op.body.block, indent + "  ")
            elif isinstance(op, loop.IfOp):
                for region in op.regions:
                    for inner in region.blocks:
                        visit(inner, indent)
            elif isinstance(op, loop.AccessOperation):
                written = indent + " ".join(str(access.buffer.name_hint) for access in op.writes)
                if written not in lines[-1:]:
                    lines.append(written)

    visit(program.body.block, "")
    return lines


def test_reinforce_acts_upwards_and_learns_downwards() -> None:
    assert outline(schedule_program(parse(SCHEDULABLE["reinforce"]))) == [
        "i up", "  theta",
        "  t up", "    noise", "    obs", "    logit", "    act", "    sum", "    env",
        "  t down", "    r", "    later", "    G", "    g0", "    g",
        "  gs", "  small", "  next", "last",
    ]  # fmt: skip


def test_n_step_returns_interleave_with_acting() -> None:
    lines = outline(schedule_program(parse(SCHEDULABLE["n_step"])))
    assert [line.strip() for line in lines if line.endswith(("up", "down"))] == ["i up", "t up"]


def test_equal_layers_stay_equal() -> None:
    lines = [line.strip() for line in outline(schedule_program(parse(SCHEDULABLE["layers"])))]
    first = lines.index("n0")
    for layer in range(3):
        start = first + 7 * layer
        expected = [f"{name}{layer + (name == 'x')}" for name in "nqkswox"]
        assert lines[start : start + 7] == expected


def test_compile_time_does_not_depend_on_the_number_of_layers_per_layer() -> None:
    program = schedule_program(parse(SCHEDULABLE["layers"]))
    assert sum(isinstance(op, loop.ForOp) for op in program.walk()) == 1


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_programs_show_their_cycle(name: str) -> None:
    with pytest.raises(PassFailedException, match=r"needs itself: .*program.mlir:\d+.*needs") as error:
        schedule_program(parse(IMPOSSIBLE[name], verify=False))
    assert isinstance(error.value.op, sdg.SdgOp)


def test_what_no_loop_orders_is_refused_by_name() -> None:
    with pytest.raises(PassFailedException, match=r"no loops found that order sdg.merge %s .*no value needs itself"):
        schedule_program(parse(TURNING))
