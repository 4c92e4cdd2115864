"""A recurrence that is read through its own window keeps a slot for each row of the window, and no more."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.lowering.instances import instances
from tempo_ir.lowering.storage.in_place import may_be_overwritten
from tempo_ir.lowering.storage.pointwise import reads_in_place
from tempo_ir.lowering.storage.uses import program_uses
from tempo_ir.reference.sdg import run
from tests.schedule.schedule_support import parse
from tests.storage.test_bounds import program as loop_program

READERS = {
    "last": 'sdg.output "y" %h[T - 1] : {row}',
    "each": """%m = sdg.tanh %h[t] in (t) : ({row}) -> {row}
  sdg.output "y" %m[t] in (t) : {row}""",
    "window": """%m = sdg.sum %h[max(0, t - {before}):t + 1] axes [0] in (t) : ({row}) -> {row}
  sdg.output "y" %m[t] in (t) : {row}""",
}


def recurrence(kind: str, width: int, row: str, readers: str) -> str:
    """`h[t] = sin(x[t] + reduce(x[t] * h[t - width:t]))`, a reduction over nothing at t = 0 being 0."""
    window = row.replace("tensor<", "tensor<?x").replace(">", f", #sdg.size<min(t, {width})>>")
    return f"""
sdg.program @p dims(t: T) where T >= 1 {{
  %x = sdg.input "x" in (t) : {row}
  %z = sdg.constant 0.0 : {row}
  %q = sdg.mul %h[max(0, t - {width}):t], %x[t] in (t) : ({row}, {row}) -> {window}
  %r0 = sdg.{kind} %q[t] axes [0] in (t: 1 to T) : ({window}) -> {row}
  %r = sdg.merge {{t = 0 : %z, t > 0 : %r0[t]}} in (t) : ({row}, {row}) -> {row}
  %s = sdg.add %r[t], %x[t] in (t) : ({row}, {row}) -> {row}
  %h = sdg.sin %s[t] in (t) : ({row}) -> {row}
  {READERS[readers].format(row=row, before=width - 1)}
}}"""


def rings(executable: tp.Executable) -> list[str]:
    program = executable.levels.loop
    buffers = [op.buffer_type for op in program.walk() if isinstance(op, loop.AllocOp)]
    return [str(dim) for buffer in buffers for dim in buffer.dims]


@pytest.mark.parametrize("readers", READERS)
@pytest.mark.parametrize(("kind", "width", "row"), [
    ("sum", 1, "tensor<f32>"), ("sum", 4, "tensor<f32>"), ("max", 3, "tensor<20xf32>"), ("mean", 2, "tensor<3x40xf32>"),
])  # fmt: skip
def test_exactly_as_many_slots_as_the_window_has_rows(kind: str, width: int, row: str, readers: str) -> None:
    program = parse(recurrence(kind, width, row, readers))
    executable = tp.compile(program)
    assert rings(executable) == [f"t: ring {width}"]
    generator = np.random.default_rng(3)
    shape = [int(extent) for extent in row[len("tensor<") :].split("x")[:-1]]
    for steps in (1, 2, 3, 5, 7, 8, 9, 17):
        x = generator.standard_normal((steps, *shape)).astype(np.float32)
        expected = run(program, {"x": x}, {"T": steps})["y"]
        np.testing.assert_allclose(executable(x=x)["y"], expected, rtol=1e-5, atol=1e-5)


ATTENTION = """
sdg.program @p dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %score = sdg.contract "d,nd->n" %x[t], %h[max(0, t - 3):t] in (t)
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32, #sdg.size<min(t, 3)>>
  %read = sdg.contract "n,nd->d" %score[t], %h[max(0, t - 3):t] in (t)
      : (tensor<?xf32, #sdg.size<min(t, 3)>>, tensor<4xf32>) -> tensor<4xf32>
  %h = sdg.add %read[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %h[T - 1] : tensor<4xf32>
}"""


def test_what_mixes_the_elements_of_rows_may_not_overwrite_them() -> None:
    program = parse(ATTENTION)
    executable = tp.compile(program)
    x = np.random.default_rng(3).standard_normal((17, 4)).astype(np.float32)
    expected = run(program, {"x": x}, {"T": 17})["y"]
    np.testing.assert_allclose(executable(x=x)["y"], expected, rtol=1e-4, atol=1e-5)


BODIES: Mapping[str, bool] = {
    "%r = sdg.sum %a axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>": True,
    """%n = sdg.neg %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
       %m = sdg.max %n axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
       %r = sdg.add %m, %m : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>""": True,
    """%m = sdg.max %a axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
       %n = sdg.sub %a, %m : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
       %r = sdg.sum %n axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>""": True,
    """%m = sdg.sum %a axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
       %r = sdg.broadcast %m : (tensor<f32>) -> tensor<4xf32>""": False,
    """%m = sdg.sum %a axes [1] : (tensor<3x4xf32>) -> tensor<3xf32>
       %r = sdg.contract "n,nd->d" %m, %a : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>""": False,
    """%c = sdg.cumsum %a axis 1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
       %r = sdg.sum %c axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>""": False,
    """%m = sdg.sum %a axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
       %r = sdg.reverse %m axis 0 : (tensor<4xf32>) -> tensor<4xf32>""": False,
}


@pytest.mark.parametrize(("body", "expected"), BODIES.items())
def test_planner_and_checker_agree_on_what_a_kernel_may_overwrite(body: str, expected: bool) -> None:
    program = loop_program(f"""
  %h = loop.alloc : !loop.buffer<(t: ring 3) 4xf32>
  loop.for t = 3 to T {{
    loop.kernel at (t = t) ins(%a = %h[t - 3:t]) outs(%h[t]) {{
      {body}
      loop.yield %r : tensor<4xf32>
    }}
  }}""")
    (instance,) = instances(program)
    found, _ = program_uses(program)
    (read,) = [use for uses in found.values() for use in uses if not use.writes]
    assert reads_in_place(instance, 0) == may_be_overwritten(read) == expected


@pytest.mark.parametrize(("steps", "storage"), [(3, "ring"), (70, "full")])
def test_a_ring_of_nearly_all_rows_is_none(steps: int, storage: str) -> None:
    """Of `g`, the rows from 1 on are needed: one less than the program declares."""

    @tp.program
    def program():
        t, T = tp.dim("t", steps)
        x = tp.input("x", tp.f32[4], over=t)
        g = tp.tensor("g", tp.f32[4], over=t)
        g[T - 1] = x
        g[t] = tp.tanh(g[t + 1]) + x
        tp.output("y", tp.sum(g[1:T] * x[0 : T - 1], axis=0))

    executable = tp.compile(program())
    dims = [op.buffer_type.dims for op in executable.program.body.walk() if isinstance(op, loop.AllocOp)]
    assert [dim.storage for (dim,) in filter(None, dims)] == [storage]
    x = np.random.default_rng(0).standard_normal((steps, 4), dtype=np.float32)
    expected = tp.compile(program(), target="reference")(x=x)["y"]
    np.testing.assert_allclose(executable(x=x)["y"], expected, rtol=1e-5, atol=1e-5)
