"""Kernels compute what the leaves that they are made of computed, at every size."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.lowering.formation.block_graph import BlockGraph
from tempo_ir.lowering.formation.loop_form_kernels import LoopFormKernelsPass
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tests.schedule.schedule_programs import SCHEDULABLE
from tests.schedule.schedule_support import admitted_bounds, arguments, parse

NORMALISED = """
sdg.program @normalised dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<2x5xf32>
  %w = sdg.parameter "w" : tensor<5x5xf32>
  %square = sdg.mul %x[t], %x[t] in (t) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  %mean = sdg.mean %square[t] axes [1] in (t) : (tensor<2x5xf32>) -> tensor<2xf32>
  %root = sdg.rsqrt %mean[t] in (t) : (tensor<2xf32>) -> tensor<2xf32>
  %column = sdg.reshape %root[t] in (t) : (tensor<2xf32>) -> tensor<2x1xf32>
  %unit = sdg.mul %x[t], %column[t] in (t) : (tensor<2x5xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  %p = sdg.contract "bk,kn->bn" %unit[t], %w in (t) : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>
  %r = sdg.add %p[t], %x[t] in (t) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  %s = sdg.tanh %r[t] in (t) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  sdg.output "r" %r[t] in (t) : tensor<2x5xf32>
  sdg.output "s" %s[t] in (t) : tensor<2x5xf32>
}
"""
PROGRAMS = {**SCHEDULABLE, "normalised": NORMALISED}


def formed(text: str) -> loop.ProgramOp:
    program = schedule_program(parse(text))
    module = ModuleOp([program])
    LoopFormKernelsPass().apply(Context(), module)
    module.verify()
    (result,) = module.ops
    assert isinstance(result, loop.ProgramOp)
    return result


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_give_the_numbers_of_the_graph(name: str) -> None:
    program = parse(PROGRAMS[name])
    kernels = formed(PROGRAMS[name])
    for bounds in admitted_bounds(program):
        values = arguments(program, bounds)
        expected = run(program, values, bounds)
        found = run_loop(kernels, values, bounds)
        for key, array in expected.items():
            np.testing.assert_allclose(found[key], array, rtol=1e-6, atol=1e-6, err_msg=f"{name} {key} {bounds}")


def test_row_statistics_and_epilogues_are_part_of_a_kernel() -> None:
    kernels = [op for op in formed(NORMALISED).walk() if isinstance(op, loop.KernelOp)]
    names = [{op.name for op in kernel.body.block.ops} for kernel in kernels]
    assert any({"sdg.mean", "sdg.rsqrt"} <= found for found in names)
    assert any({"sdg.contract", "sdg.add", "sdg.tanh"} <= found for found in names)


def test_equal_layers_form_equal_kernels() -> None:
    layer = """
  %p{n} = sdg.contract "k,kn->n" %x{m}[t], %w{n} in (t) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %x{n} = sdg.add %p{n}[t], %x{m}[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"""
    layers = "".join(layer.format(n=n + 1, m=n) for n in range(4))
    parameters = "".join(f'\n  %w{n + 1} = sdg.parameter "w{n + 1}" : tensor<4x4xf32>' for n in range(4))
    text = f"""
sdg.program @layers dims(t: T) {{
  %x0 = sdg.input "x" in (t) : tensor<4xf32>{parameters}{layers}
  sdg.output "y" %x4[t] in (t) : tensor<4xf32>
}}
"""
    kernels = [op for op in formed(text).walk() if isinstance(op, loop.KernelOp)]
    assert [[op.name for op in kernel.body.block.ops] for kernel in kernels] == [
        ["sdg.contract", "sdg.add", "loop.yield"]
    ] * 4


def test_groups_that_would_wait_for_each_other_do_not_join() -> None:
    text = """
sdg.program @diamond dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %a = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.sum %a[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<f32>
  %b = sdg.div %a[t], %s[t] in (t) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  sdg.output "b" %b[t] in (t) : tensor<4xf32>
}
"""
    program = schedule_program(parse(text))
    (nest,) = [op for op in program.walk() if isinstance(op, loop.ForOp)]
    graph = BlockGraph(nest.body.block)
    first, between, last = range(3)
    assert graph.joins(first, between)
    assert graph.joins(between, last)
    assert not graph.joins(first, last)
    graph.join(first, between)
    assert graph.joins(between, last)
    assert graph.order() == [between, last]
