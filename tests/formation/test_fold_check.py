"""The proof of folds finds every fault that is put into one, whatever formation took for granted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.attributes import CondAttr, EntryAttr, IndexAttr
from tempo_ir.index import cond, index
from tempo_ir.lowering.bounds import OutOfBoundsError
from tempo_ir.lowering.formation import folding
from tempo_ir.lowering.formation.before import Before, IllegalKernelError, noted
from tempo_ir.lowering.formation.check import check_kernels
from tempo_ir.lowering.formation.fold_check import check_folds
from tempo_ir.lowering.formation.loop_form_kernels import fold_blocks, form_program
from tempo_ir.lowering.schedule.driver import schedule_program
from tests.formation.test_folds import ATTENTION, FOLDED, tiled

Loops = dict[Operation, loop.ForOp]
Fault = Callable[[loop.ProgramOp, loop.ComputeOp, loop.FoldOp], None]


def folded(text: str, tile: int = 3) -> tuple[loop.ProgramOp, Before, Loops]:
    (graph,) = tiled(text, tile, hoist=True).ops
    return folded_loops(schedule_program(graph))


def folded_loops(program: loop.ProgramOp) -> tuple[loop.ProgramOp, Before, Loops]:
    before = noted(program)
    return program, before, {leaf: each for folds in fold_blocks(program) for leaf, each in folds.loops.items()}


@pytest.mark.parametrize("name", FOLDED)
@pytest.mark.parametrize("tile", [1, 2, 5])
def test_right_folds_pass(name: str, tile: int) -> None:
    program, before, loops = folded(FOLDED[name], tile)
    check_folds(program, before, loops)


UNTIL = """
sdg.program @until dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %limit = sdg.constant 1.5 : tensor<f32>
  %n = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %d = sdg.gt %n[t], %limit in (t) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  sdg.until %d[t] in (t) : tensor<i1>
  %u = sdg.sum %n[0:t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "u" %u[t] in (t) : tensor<f32>
}
"""


def test_rows_of_a_loop_that_data_ends_are_there_after_it() -> None:
    program, before, loops = folded(UNTIL)
    assert loops
    check_folds(program, before, loops)


def of_type(op: Operation, kind: type) -> list:
    return [inner for inner in op.walk() if isinstance(inner, kind)]


def operands_swapped(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    op = of_type(fold, sdg.SubOp)[0]
    op.operands = op.operands[::-1]


def another_op(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    op = of_type(fold, sdg.MaximumOp)[0]
    other = sdg.MinimumOp.create(operands=op.operands, result_types=op.result_types, properties=op.properties)
    op.parent.insert_op_before(other, op)
    op.results[0].replace_all_uses_with(other.results[0])
    op.detach()


def iteration_more(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    fold.count_attr = EntryAttr(fold.count + 1)


def iteration_less(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    fold.count_attr = EntryAttr(fold.count - 1)


def part_moved(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    op = of_type(fold, sdg.SliceOp)[0]
    op.properties["take"] = IndexAttr((index("[3 * m + 1:3 * m + 4]")[0], *op.take[1:]))


def part_of_rows(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    op = of_type(fold, sdg.SliceOp)[0]
    op.properties["take"] = IndexAttr((*op.take[:-1], index("[1:9]")[0]))


def parts_backwards(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    op = of_type(fold, sdg.SliceOp)[0]
    back = index("[3 * (t floordiv 3) - 3 * m - 3:3 * (t floordiv 3) - 3 * m]")[0]
    op.properties["take"] = IndexAttr((back, *op.take[1:]))


def another_row_read(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    """The query of the first step."""
    rows = [index("[0]") if access.buffer.name_hint == "q" else access.index for access in leaf.reads]
    leaf.in_indices = ArrayAttr([IndexAttr(row) for row in rows])


def rows_outside(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    """Rows from the first on are read, but the array ends before."""
    more = IndexAttr(index("[T:T + 3 * (t floordiv 3)]"))
    leaf.in_indices = ArrayAttr(
        [more if len(attr.data) == 1 and ":" in str(attr) else attr for attr in leaf.in_indices]
    )


def another_row_written(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    leaf.out_indices = ArrayAttr([IndexAttr(index("[t, 0]")) for _ in leaf.outs])


def starts_swapped(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    fold.operands = [fold.operands[1], fold.operands[0], *fold.operands[2:]]


def carried_swapped(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    last = fold.body.block.last_op
    last.operands = [last.operands[1], last.operands[0], *last.operands[2:]]


def another_result(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    """The greatest score in the place of the total."""
    last = leaf.body.block.last_op
    last.operands = [fold.finals[0], *last.operands[1:]]


def too_early(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    block = leaf.parent
    leaf.detach()
    block.insert_op_before(leaf, block.first_op)


def under_a_guard(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    """The readers find nothing where the guard fails."""
    guard = loop.IfOp(cond("t > 3"))
    leaf.parent.insert_op_before(guard, leaf)
    leaf.detach()
    guard.then.block.add_op(leaf)


def other_work_lost(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    leaf.prev_op.detach()


def other_work_changed(program: loop.ProgramOp, leaf: loop.ComputeOp, fold: loop.FoldOp) -> None:
    leaf.prev_op.in_indices = ArrayAttr([IndexAttr(index("[0]")) for _ in leaf.prev_op.ins])


FAULTS: list[tuple[Fault, str]] = [
    (operands_swapped, "has another type"),
    (another_op, "does not compute what"),
    (iteration_more, "is not made in each iteration"),
    (iteration_less, "a number of iterations is negative"),
    (part_moved, "is not what it takes"),
    (part_of_rows, "is not what it takes"),
    (parts_backwards, "is not what it takes"),
    (another_row_read, "is not what it takes"),
    (rows_outside, "outside of the rows of its buffer"),
    (another_row_written, "is not of the last iteration"),
    (starts_swapped, "does not start with"),
    (carried_swapped, "does not compute what"),
    (another_result, "does not start with"),
    (too_early, "does not stand where it did"),
    (under_a_guard, "which is not written before"),
    (other_work_lost, "does not stand where it did"),
    (other_work_changed, "is not what it was"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_faults_are_found(fault: Fault, message: str) -> None:
    program, before, loops = folded(ATTENTION)
    (leaf,) = loops
    (fold,) = of_type(leaf, loop.FoldOp)
    fault(program, leaf, fold)
    with pytest.raises((IllegalKernelError, OutOfBoundsError), match=message):
        check_folds(program, before, loops)


@pytest.mark.parametrize("fault", [operands_swapped, another_op, iteration_more, part_moved, carried_swapped])
def test_a_kernel_holds_the_fold_as_it_was(fault: Fault) -> None:
    (graph,) = tiled(ATTENTION, 3, hoist=True).ops
    program = schedule_program(graph)
    folds = fold_blocks(program)
    before = noted(program)
    kernels = form_program(program, folds)
    check_kernels(program, before, kernels)
    (fold,) = of_type(program, loop.FoldOp)
    fault(program, fold.parent_op(), fold)
    with pytest.raises(IllegalKernelError, match=r"does not compute loop\.fold"):
        check_kernels(program, before, kernels)


UNSOUND = {
    "the last iteration does not run": (
        """
sdg.program @left_out dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %s = sdg.sum %x[0:t] axes [0] in (t where t ne 1) : (tensor<f32>) -> tensor<f32>
  sdg.output "s" %s[t] in (t where t ne 1) : tensor<f32>
}
""",
        "is not made in each iteration",
    ),
    "a row is outside where there is no iteration": (
        """
sdg.program @short dims(t: T) where T >= 2 {
  %x = sdg.input "x" in (t) : tensor<f16>
  %y = sdg.input "y" in (t) : tensor<f16>
  %s = sdg.contract "b,->" %x[0:T - t], %y[t] in (t) : (tensor<f16>, tensor<f16>) -> tensor<f16>
  sdg.output "s" %s[t] in (t) : tensor<f16>
}
""",
        "outside of the rows of its buffer",
    ),
    "a row is not made where there is no iteration": (
        """
sdg.program @iterated dims(t: T, m: T + 1) {
  %x = sdg.input "x" in (t) : tensor<3xf64>
  %y = sdg.input "y" in (t) : tensor<3xf64>
  %e = sdg.exp %y[t] in (t: 1 to T) : (tensor<3xf64>) -> tensor<3xf64>
  %s = sdg.merge {m = 0 : %x[t], m > 0 : %h[t, m - 1]} in (t, m: 0 to t + 1)
      : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %h = sdg.div %s[t, m], %e[t] in (t, m: 0 to t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "s" %s[t, t] in (t) : tensor<3xf64>
}
""",
        r"reads %e\[t\], which is not written before: t = 0",
    ),
    "another row is read elsewhere": (
        """
sdg.program @elsewhere dims(t: T, m: T + 1) {
  %x = sdg.input "x" in (t) : tensor<3xf64>
  %p = sdg.merge {t = 0 : %x[0], t > 0 : %l[t - 1]} in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %s = sdg.merge {m = 0 : %p[t], m > 0 : %h[t, m - 1]} in (t, m: 0 to t + 1)
      : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %h = sdg.tanh %s[t, m] in (t, m: 0 to t) : (tensor<3xf64>) -> tensor<3xf64>
  %l = sdg.tanh %s[t, t] in (t) : (tensor<3xf64>) -> tensor<3xf64>
  %o = sdg.neg %s[T - 1, t] in (t) : (tensor<3xf64>) -> tensor<3xf64>
  sdg.output "l" %l[t] in (t) : tensor<3xf64>
  sdg.output "o" %o[t] in (t) : tensor<3xf64>
}
""",
        "which is not written before",
    ),
}


@pytest.fixture
def believing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that formation asks is answered with yes."""
    monkeypatch.setattr(folding, "are_there", lambda *_: True)
    monkeypatch.setattr(folding._Loop, "holds", lambda *_: True)
    monkeypatch.setattr(folding, "_is_last", lambda *_: True)


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("name", UNSOUND)
def test_what_formation_takes_for_granted_is_proved(name: str) -> None:
    text, message = UNSOUND[name]
    program, before, loops = folded(text)
    assert loops
    with pytest.raises((IllegalKernelError, OutOfBoundsError), match=message):
        check_folds(program, before, loops)


@pytest.mark.usefixtures("believing")
def test_leaves_that_did_not_run_are_no_iterations() -> None:
    (graph,) = tiled(FOLDED["a sum"], 3, hoist=False).ops
    program = schedule_program(graph)
    guard = next(op for op in of_type(program, loop.IfOp) if op.condition == cond("t > 3 * m + 2"))
    guard.condition_attr = CondAttr(cond("t > 3 * m + 5"))
    program, before, loops = folded_loops(program)
    with pytest.raises(IllegalKernelError, match=r"did not run: .*t = 3"):
        check_folds(program, before, loops)


@pytest.mark.parametrize("name", UNSOUND)
def test_formation_leaves_it_alone(name: str) -> None:
    program, _, loops = folded(UNSOUND[name][0])
    assert not loops
    assert of_type(program, loop.ForOp)
