"""Loops that data ends: what runs before, in and after them, and faults that are put into right ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from schedule_support import parse
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import loop
from tempo_ir.dialects.sdg import IndexAttr
from tempo_ir.dialects.sdg.until import BEFORE, Arrival, arrival
from tempo_ir.index import Sym, domain, evaluate, space
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.driver import ordered
from tempo_ir.lowering.schedule.emit import Emitted, loop_program
from tempo_ir.lowering.schedule.isl_tree import loop_nest
from tempo_ir.lowering.schedule.legality import Claim, IllegalScheduleError, check_schedule
from tempo_ir.lowering.schedule.statements import Statements

PROGRAM = """
sdg.program @p dims(t: T, p: P) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.input "y" in (p) : tensor<f32>
  %limit = sdg.input "limit" : tensor<f32>
  %scale = sdg.exp %limit : (tensor<f32>) -> tensor<f32>
  %total = sdg.sum %y[0:P] axes [0] : (tensor<f32>) -> tensor<f32>
  %s = sdg.merge {t = 0 : %scale, t > 0 : %next[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %next = sdg.add %s[t], %x[t] in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %done = sdg.ge %s[t], %limit in (t) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %beside = sdg.neg %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  %back = sdg.neg %s[T - 1 - t] in (t) : (tensor<f32>) -> tensor<f32>
  %all = sdg.sum %s[0:T] axes [0] : (tensor<f32>) -> tensor<f32>
  %after = sdg.mul %beside[t], %all in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %first = sdg.exp %s[0] in (where T >= 1) : (tensor<f32>) -> tensor<f32>
  sdg.until %done[t] in (t) : tensor<i1>
  sdg.output "beside" %beside[t] in (t) : tensor<f32>
  sdg.output "back" %back[t] in (t) : tensor<f32>
  sdg.output "after" %after[t] in (t) : tensor<f32>
  sdg.output "total" %total : tensor<f32>
  sdg.output "first" %first in (t) : tensor<f32>
}
"""


def test_what_comes_with_a_step_is_in_the_loop() -> None:
    graph = Statements.of(parse(PROGRAM)).graph
    ending = graph.ending
    assert ending is not None
    names = [statement.name.partition(" ")[0] for statement in graph.statements]
    assert (ending.dim, ending.bound) == ("t", "T")
    assert {names[n] for n in ending.before} == {"scale", "total"}
    moving = {names[n]: shift for n, shift in ending.shifts.items() if n not in ending.still}
    assert moving == {"s": 0, "next": 1, "done": 0, "beside": 0, "sdg.until": 0, "sdg.output": 0}
    assert {names[n]: ending.shifts[n] for n in ending.still} == {"first": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(t)", Arrival(0, True)),
        ("(t: 0 to T - 1)", Arrival(1, True)),
        ("(t: 2 to T - 3)", Arrival(3, True)),
        ("(i, t)", Arrival(0, True)),
        ("(i, t: i to T where t < P)", Arrival(0, True)),
        ("(t where t = 2)", Arrival(0, True)),
        ("(t: 0 to min(P, T - 1))", Arrival(1, True)),
        ("()", BEFORE),
        ("(i)", BEFORE),
        ("(where P >= 2)", BEFORE),
        ("(where T >= 1)", Arrival(0, False)),
        ("(i where T > 3)", Arrival(3, False)),
        ("(t where t = T - 1)", None),
        ("(t: T - 2 to T)", None),
        ("(i where i < T)", None),
        ("(t: 0 to T floordiv 2)", None),
        ("(t where T <= 4)", None),
    ],
)
def test_with_which_step_points_come(text: str, expected: Arrival | None) -> None:
    over, points = space("dims(i: I, t: T, p: P)"), domain(text)
    found = arrival(over, points, "t")
    assert found == expected
    if found is None:
        return
    for bounds in [{"I": 2, "P": P, "T": T} for P in range(5) for T in range(8)]:
        most = points.points(over, {**bounds, "T": 8})
        there = [point for point in most if evaluate(found.step("t"), point) < bounds["T"]]
        assert list(points.points(over, bounds)) == there, bounds


def scheduled() -> tuple[Emitted, Claim]:
    source = parse(PROGRAM)
    statements, order = ordered(Statements.of(source), Distances(source.space))
    emitted = loop_program(statements, loop_nest(statements.graph, order))
    return emitted, Claim(source, emitted.origins, emitted.memory)


def ending(emitted: Emitted) -> loop.ForOp:
    found = emitted.program.ending
    assert found is not None
    return found


def leaf_of(emitted: Emitted, name: str) -> Operation:
    """The leaf that computes a value, with the guard round it."""
    found = next(op for op, source in emitted.origins.items() if source.results and source.results[0].name_hint == name)
    parent = found.parent_op()
    return parent if isinstance(parent, loop.IfOp) else found


def move(op: Operation, block: Block) -> None:
    op.detach()
    block.add_op(op)


def another_row(emitted: Emitted) -> None:
    ending(emitted).done_index = IndexAttr((Sym("t") - 1,))


def another_buffer(emitted: Emitted) -> None:
    made = loop.AllocOp(ending(emitted).operands[0].type)  # pyright: ignore
    emitted.program.body.block.insert_op_before(made, ending(emitted))
    ending(emitted).operands = [made.buffer]


def another_bound(emitted: Emitted) -> None:
    ending(emitted).gives_attr = StringAttr("P")


def no_bound(emitted: Emitted) -> None:
    ending(emitted).gives_attr = None


def the_condition_after_the_loop(emitted: Emitted) -> None:
    following = next(op for op in emitted.program.body.block.ops if isinstance(op, loop.ForOp) and op.gives is None)
    move(leaf_of(emitted, "done"), following.body.block)


def what_needs_the_bound_before_the_loop(emitted: Emitted) -> None:
    leaf = leaf_of(emitted, "all")
    leaf.detach()
    emitted.program.body.block.insert_op_before(leaf, ending(emitted))


def what_needs_the_bound_in_the_loop(emitted: Emitted) -> None:
    move(leaf_of(emitted, "back"), ending(emitted).body.block)


def the_next_step_too_early(emitted: Emitted) -> None:
    guard = leaf_of(emitted, "next")
    assert isinstance(guard, loop.IfOp)
    (leaf,) = guard.then.block.ops
    assert isinstance(leaf, loop.ComputeOp)
    leaf.in_indices = leaf.in_indices.__class__([IndexAttr((Sym("t"),))] * 2)
    leaf.out_indices = leaf.out_indices.__class__([IndexAttr((Sym("t"),))])
    leaf.point_attr = loop.PointAttr((("t", Sym("t")),))


@pytest.mark.parametrize(
    "fault",
    [
        another_row,
        another_buffer,
        another_bound,
        no_bound,
        the_condition_after_the_loop,
        what_needs_the_bound_before_the_loop,
        what_needs_the_bound_in_the_loop,
        the_next_step_too_early,
    ],
)
def test_a_fault_is_found(fault: Callable[[Emitted], None]) -> None:
    emitted, claim = scheduled()
    check_schedule(emitted.program, claim)
    fault(emitted)
    with pytest.raises((IllegalScheduleError, VerifyException)):
        check_schedule(emitted.program, claim)
