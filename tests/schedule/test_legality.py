"""The checker finds every fault that is put into a right schedule, and nothing in right ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from schedule_programs import NEEDS_ISL, SCHEDULABLE
from schedule_support import admitted_bounds, arguments, parse
from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Block, Operation

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg import CondAttr, EntryAttr, IndexAttr
from tempo_ir.index import Slice, Sym, cond, expr, negate, substitute
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.driver import ordered
from tempo_ir.lowering.schedule.emit import Emitted, loop_program
from tempo_ir.lowering.schedule.isl_tree import loop_nest
from tempo_ir.lowering.schedule.legality import Claim, IllegalScheduleError, check_schedule
from tempo_ir.lowering.schedule.statements import Statements
from tempo_ir.reference.loop import run_loop


def scheduled(text: str) -> tuple[Emitted, Claim]:
    source = parse(text)
    statements, order = ordered(Statements.of(source), Distances(source.space))
    emitted = loop_program(statements, loop_nest(statements.graph, order))
    return emitted, Claim(source, emitted.origins, emitted.memory)


def of_type(program: Operation, kind: type) -> list:
    return [op for op in program.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("name", [*SCHEDULABLE, *NEEDS_ISL])
def test_right_schedules_pass(name: str) -> None:
    emitted, claim = scheduled({**SCHEDULABLE, **NEEDS_ISL}[name])
    check_schedule(emitted.program, claim)


def leaves(emitted: Emitted) -> list[loop.AccessOperation]:
    return of_type(emitted.program, loop.AccessOperation)


def stands_alone(leaf: Operation) -> Operation:
    """A leaf, or the outermost guard round it."""
    while isinstance(parent := leaf.parent_op(), loop.IfOp):
        leaf = parent
    return leaf


@pytest.mark.parametrize("name", ["rnn", "window", "two_returns", "diffusion"])
def test_a_leaf_moved_to_an_end_of_its_block_is_found_or_right(name: str) -> None:
    """Moving is right only where nothing in the block reads the leaf, or is read by it: the interpreter decides."""
    count = len(leaves(scheduled(SCHEDULABLE[name])[0]))
    found = 0
    for number in range(count):
        for to_start in (False, True):
            emitted, claim = scheduled(SCHEDULABLE[name])
            moved = stands_alone(leaves(emitted)[number])
            block = moved.parent
            assert isinstance(block, Block)
            moved.detach()
            anchor = block.first_op if to_start else None
            while isinstance(anchor, loop.BufferOperation):
                anchor = anchor.next_op
            if anchor is None:
                block.add_op(moved)
            else:
                block.insert_op_before(moved, anchor)
            try:
                check_schedule(emitted.program, claim)
            except IllegalScheduleError:
                found += 1
                continue
            emitted.program.verify()
            assert order_is_right(emitted, claim)
    assert found > 0


def order_is_right(emitted: Emitted, claim: Claim) -> bool:
    for bounds in admitted_bounds(claim.source):
        run_loop(emitted.program, arguments(claim.source, bounds), bounds)
    return True


def reverse_a_loop(emitted: Emitted) -> None:
    inner = of_type(emitted.program, loop.ForOp)[-1]
    inner.down_attr = None if inner.down else UnitAttr()


def shorten_a_loop(emitted: Emitted) -> None:
    inner = of_type(emitted.program, loop.ForOp)[-1]
    inner.range_attr = EntryAttr(Slice(inner.lower, inner.upper - 1))


def lengthen_a_loop(emitted: Emitted) -> None:
    inner = of_type(emitted.program, loop.ForOp)[-1]
    inner.range_attr = EntryAttr(Slice(inner.lower, inner.upper + 1))


def skip_odd_iterations(emitted: Emitted) -> None:
    inner = of_type(emitted.program, loop.ForOp)[-1]
    inner.range_attr = EntryAttr(Slice(inner.lower, inner.upper, 2))


def negate_a_guard(emitted: Emitted) -> None:
    guard = of_type(emitted.program, loop.IfOp)[-1]
    guard.condition_attr = CondAttr(negate(guard.condition))


def weaken_a_guard(emitted: Emitted) -> None:
    guard = of_type(emitted.program, loop.IfOp)[-1]
    guard.condition_attr = CondAttr(cond("T > 3"))


def read_another_row(emitted: Emitted) -> None:
    leaf = next(leaf for leaf in leaves(emitted)[::-1] if leaf.reads and leaf.reads[0].index)
    indices = list(leaf.in_indices.data)
    indices[0] = IndexAttr(substitute(indices[0].data, {"t": expr("t + 1")}))
    leaf.in_indices = ArrayAttr(indices)


def write_another_row(emitted: Emitted) -> None:
    leaf = leaves(emitted)[-1]
    indices = [IndexAttr(substitute(index.data, {"t": expr("T - 1 - t")})) for index in leaf.out_indices.data]
    leaf.out_indices = ArrayAttr(indices)


def drop_a_leaf(emitted: Emitted) -> None:
    stands_alone(leaves(emitted)[-1]).detach()


def run_a_leaf_twice(emitted: Emitted) -> None:
    leaf = leaves(emitted)[-1]
    again = leaf.clone()
    emitted.origins[again] = emitted.origins[leaf]  # pyright: ignore[reportIndexIssue]
    block = leaf.parent
    assert isinstance(block, Block)
    block.insert_op_after(again, leaf)


FAULTS: list[Callable[[Emitted], None]] = [
    reverse_a_loop,
    shorten_a_loop,
    lengthen_a_loop,
    skip_odd_iterations,
    negate_a_guard,
    weaken_a_guard,
    read_another_row,
    write_another_row,
    drop_a_leaf,
    run_a_leaf_twice,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: Callable[[Emitted], None]) -> None:
    emitted, claim = scheduled(SCHEDULABLE["rnn"])
    fault(emitted)
    with pytest.raises(IllegalScheduleError, match="illegal schedule: "):
        check_schedule(emitted.program, claim)


def test_the_message_names_op_and_point() -> None:
    emitted, claim = scheduled(SCHEDULABLE["rnn"])
    reverse_a_loop(emitted)
    with pytest.raises(
        IllegalScheduleError, match=r"%s \(program.mlir:5\) runs before .*%h .*t = 1 \(T = 2\)"
    ) as error:
        check_schedule(emitted.program, claim)
    assert error.value.op.name == "sdg.merge"


def test_another_constant_is_another_case() -> None:
    emitted, claim = scheduled(SCHEDULABLE["rnn"])
    constant = of_type(emitted.program, loop.ComputeOp)[0].body.block.first_op
    constant.properties["value"] = type(constant.properties["value"])(0.25)
    with pytest.raises(IllegalScheduleError, match=r"%s .* takes the wrong case"):
        check_schedule(emitted.program, claim)


def other_operands(emitted: Emitted) -> None:
    op = of_type(emitted.program, sdg.SubOp)[-1]
    op.operands = op.operands[::-1]


def another_op(emitted: Emitted) -> None:
    op = of_type(emitted.program, sdg.TanhOp)[-1]
    other = sdg.SinOp.create(operands=op.operands, result_types=op.result_types, properties=op.properties)
    op.parent.insert_op_before(other, op)
    op.results[0].replace_all_uses_with(other.results[0])
    op.detach()
    op.erase()


def another_axis(emitted: Emitted) -> None:
    op = of_type(emitted.program, sdg.SoftmaxOp)[0]
    op.properties["axis"] = type(op.properties["axis"])(1, op.properties["axis"].type)


def another_identity(emitted: Emitted) -> None:
    op = of_type(emitted.program, sdg.RandomOp)[0]
    op.properties["id"] = type(op.properties["id"])(2, op.properties["id"].type)


def another_formula(emitted: Emitted) -> None:
    op = next(op for op in of_type(emitted.program, sdg.IndexOp) if op.parent_op().name == "loop.compute")
    op.properties["expression"] = EntryAttr(expr("t + 2"))


def a_copy_that_computes(emitted: Emitted) -> None:
    leaf = next(leaf for leaf in leaves(emitted) if isinstance(emitted.origins[leaf], sdg.MergeOp) and leaf.ins)
    block = leaf.regions[0].block
    last = block.last_op
    more = sdg.NegOp.create(operands=[block.args[0]], result_types=[block.args[0].type])
    block.insert_op_before(more, last)
    last.operands = more.results


@pytest.mark.parametrize(("name", "fault"), [
    ("reinforce", other_operands), ("rnn", another_op), ("attention", another_axis), ("reinforce", another_identity),
    ("diffusion", another_formula), ("rnn", a_copy_that_computes),
])  # fmt: skip
def test_a_leaf_that_computes_something_else_is_found(name: str, fault: Callable[[Emitted], None]) -> None:
    emitted, claim = scheduled(SCHEDULABLE[name])
    fault(emitted)
    with pytest.raises(IllegalScheduleError, match=r"a leaf of sdg\..* at \(.*\) computes something else"):
        check_schedule(emitted.program, claim)


def test_a_loop_over_too_few_points_names_what_is_missing() -> None:
    emitted, claim = scheduled(SCHEDULABLE["rnn"])
    shorten_a_loop(emitted)
    with pytest.raises(IllegalScheduleError, match=r"does not run exactly once: t = 0 \(T = 1\)"):
        check_schedule(emitted.program, claim)


def test_bounds_of_loops_may_be_any_that_are_right() -> None:
    emitted, claim = scheduled(SCHEDULABLE["rnn"])
    inner = of_type(emitted.program, loop.ForOp)[-1]
    inner.range_attr = EntryAttr(Slice(Sym("T") - Sym("T"), expr("max(T, 0)")))
    check_schedule(emitted.program, claim)
