"""The checker finds every fault that is put into a planned program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ArrayAttr, f32
from xdsl.ir import Block, Operation, Region

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.attributes import CondAttr, IndexAttr
from tempo_ir.dialects.types import tensor
from tempo_ir.index import Expr, Slice, cond, expr, index
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.storage import driver
from tempo_ir.lowering.storage.check import Claim, IllegalStorageError, Memory, check_storage
from tempo_ir.lowering.storage.plan import Planner
from tests.formation.test_check import CALLS
from tests.schedule.schedule_programs import SCHEDULABLE
from tests.schedule.schedule_support import parse

WINDOW = SCHEDULABLE["window"]
STATE = """
sdg.program @state dims(i: I) {
  %x = sdg.input "x" in (i) : tensor<4x4xf32>
  %w0 = sdg.parameter "w" : tensor<4x4xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = sdg.contract "ij,jk->ik" %w[i], %x[i] in (i) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w1 = sdg.sub %w[i], %x[i] in (i) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  sdg.output "w" %wI : tensor<4x4xf32>
  sdg.output "y" %y[i] in (i) : tensor<4x4xf32>
}
"""
RNN = """
sdg.program @rnn dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<3xf32>
  %zero = sdg.constant 0.0 : tensor<3xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.add %s[i, t], %x[i, t] in (i, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %g = sdg.mul %h[i, t], %h[i, T - 1] in (i, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.sum %g[i, 0:T] axes [0] in (i) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[i] in (i) : tensor<3xf32>
}
"""

LEFT_OUT = """
sdg.program @left_out dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.tanh %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %y = sdg.sum %h[0:T] axes [0] : (tensor<4xf32>) -> tensor<4xf32>
  sdg.output "y" %y : tensor<4xf32>
  sdg.output "h" %h[t] in (t: 2 to T) : tensor<4xf32>
}
"""

PREFIX = """
sdg.program @prefix dims(t: T, p: P) where 1 <= P <= T {
  %a = sdg.input "a" in (p) : tensor<3xf32>
  %s = sdg.merge {t < P : %a[t], t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.sin %s[t] in (t: P - 1 to T - 1) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t] in (t) : tensor<3xf32>
}
"""
"""Rows that are copied at once before the loop, `%s[0:P]` from `%a[0:P]`."""


def planned(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[loop.ProgramOp, Claim]:
    """A planned program and what is claimed of it."""
    claims: list[Claim] = []

    def keep(program: loop.ProgramOp, claim: Claim, read: object) -> None:
        claims.append(claim)

    program = schedule_program(parse(text))
    with monkeypatch.context() as patch:
        patch.setattr(driver, "check_storage", keep)
        driver.plan_storage(program)
    check_storage(program, claims[0])
    return program, claims[0]


def of_type(program: Operation, kind: type) -> list:
    return [op for op in program.walk() if isinstance(op, kind)]


def buffer(program: loop.ProgramOp, name: str) -> loop.BufferOperation:
    return next(op for op in of_type(program, loop.BufferOperation) if op.buffer.name_hint == name)


def restore(program: loop.ProgramOp, name: str, **changes: object) -> None:
    """Store the dims of a buffer otherwise."""
    op = buffer(program, name)
    dims = tuple(replace(dim, **changes) for dim in op.buffer_type.dims)
    op.buffer._type = loop.BufferType.of(dims, op.buffer_type.row)  # pyright: ignore[reportPrivateUsage]


def fewer_slots(program: loop.ProgramOp) -> None:
    restore(program, "k", slots=2)


def one_slot(program: loop.ProgramOp) -> None:
    restore(program, "v", slots=1)


def other_row(program: loop.ProgramOp) -> None:
    op = next(op for op in of_type(program, loop.ComputeOp) if op.outs[0].name_hint == "k")
    op.out_indices = ArrayAttr([IndexAttr(index("[t + 1]"))])


def early_free(program: loop.ProgramOp) -> None:
    free = next(op for op in of_type(program, loop.FreeOp))
    guard = free.parent_op()
    guard.detach()
    first = next(op for op in of_type(program, loop.ComputeOp) if op.ins[-1] is free.buffer or free.buffer in op.ins)
    first.parent.insert_op_before(guard, first)


def free_too_much(program: loop.ProgramOp) -> None:
    guard = of_type(program, loop.FreeOp)[0].parent_op()
    guard.condition_attr = CondAttr(cond("t >= 1"))


def free_twice(program: loop.ProgramOp) -> None:
    free = of_type(program, loop.FreeOp)[0]
    free.parent.insert_op_after(free.clone(), free)


def swap_leaves(program: loop.ProgramOp) -> None:
    """The contraction reads the weights after they are updated."""
    update = next(op for op in of_type(program, loop.ComputeOp) if op.ins[0] is op.outs[0])
    update.detach()
    reader = next(op for op in of_type(program, loop.ComputeOp) if update.outs[0] in op.ins)
    reader.parent.insert_op_before(update, reader)


def start_late(program: loop.ProgramOp) -> None:
    """The first value of the weights is written after the loop."""
    start = next(op for op in of_type(program, loop.ComputeOp) if not op.point)
    start.detach()
    program.body.block.add_op(start)


def start_in_the_loop(program: loop.ProgramOp) -> None:
    """The first value of the weights is written in every iteration."""
    start = next(op for op in of_type(program, loop.ComputeOp) if not op.point)
    start.detach()
    body = of_type(program, loop.ForOp)[0].body.block
    body.insert_op_before(start, body.first_op)


def start_reads(rows: str) -> Callable[[loop.ProgramOp], None]:
    """The first rows are copied from others of the caller's array."""

    def fault(program: loop.ProgramOp) -> None:
        start = next(op for op in of_type(program, loop.ComputeOp) if not op.point)
        start.in_indices = ArrayAttr([IndexAttr(index(rows))])

    return fault


def start_under_a_guard(program: loop.ProgramOp) -> None:
    """The first rows are copied for some sizes only."""
    start = next(op for op in of_type(program, loop.ComputeOp) if not op.point)
    start.detach()
    program.body.block.insert_op_before(
        loop.IfOp(cond("P < T"), Region(Block([start]))), of_type(program, loop.ForOp)[0]
    )


def lose_an_operation(program: loop.ProgramOp) -> None:
    of_type(program, loop.ComputeOp)[-1].detach()


def other_guard(program: loop.ProgramOp) -> None:
    op = of_type(program, loop.ComputeOp)[-1]
    block = op.parent
    op.detach()
    block.add_op(loop.IfOp(cond("T > 5"), Region(Block([op]))))


def inner_buffer(program: loop.ProgramOp) -> None:
    """A buffer that carries rows from one step to the next is made anew in each."""
    op = buffer(program, "h")
    body = of_type(program, loop.ForOp)[1].body.block
    op.detach()
    body.insert_op_before(op, body.first_op)


def calls_swapped(program: loop.ProgramOp) -> None:
    first, second = of_type(program, loop.HostOp)
    second.detach()
    first.parent.insert_op_before(second, first)


FAULTS: list[tuple[str, str, Callable[[loop.ProgramOp], None], str]] = [
    ("fewer_slots", WINDOW, fewer_slots, "overwritten while it is still read"),
    ("one_slot", WINDOW, one_slot, "overwritten while it is still read"),
    ("other_row", WINDOW, other_row, "rows other than those planned"),
    ("early_free", WINDOW, early_free, "read after it is freed|freed before it is written"),
    ("free_too_much", WINDOW, free_too_much, "freed that is never written"),
    ("free_twice", WINDOW, free_twice, "other rows than those planned|freed twice"),
    ("swap_leaves", STATE, swap_leaves, "overwritten while it is still read|read before it is written"),
    ("start_late", STATE, start_late, "read before it is written"),
    ("start_in_the_loop", STATE, start_in_the_loop, "begins with another row"),
    ("start_reads_later_rows", PREFIX, start_reads("[1:P + 1]"), "begins with another row"),
    ("start_reads_fewer_rows", PREFIX, start_reads("[0:P - 1]"), "begins with another row"),
    ("start_reads_every_second", PREFIX, start_reads("[0:2 * P:2]"), "begins with another row"),
    ("start_reads_one_row", PREFIX, start_reads("[0]"), "begins with another row"),
    ("start_under_a_guard", PREFIX, start_under_a_guard, "begins with another row"),
    ("lose_an_operation", RNN, lose_an_operation, "a result is lost"),
    ("other_guard", RNN, other_guard, "runs at other points"),
    ("calls_swapped", CALLS, calls_swapped, "host calls run in another order"),
    ("inner_buffer", RNN, inner_buffer, "in another iteration"),
]


@pytest.mark.parametrize(("text", "fault", "message"), [fault[1:] for fault in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults(
    text: str, fault: Callable[[loop.ProgramOp], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, claim = planned(text, monkeypatch)
    fault(program)
    with pytest.raises(IllegalStorageError, match=message):
        check_storage(program, claim)


@pytest.mark.parametrize(("cells", "message"), [("[0:P - 1]", "another row"), ("[0:P + 1]", "written twice")])
def test_a_wrong_claim_of_a_start(cells: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first rows fewer are written before the loop than in it, or one that a step writes too."""
    program, claim = planned(PREFIX, monkeypatch)
    ((start, (_, replaced)),) = claim.starts.items()
    assert isinstance(start, loop.ComputeOp)
    start.in_indices = start.out_indices = ArrayAttr([IndexAttr(index(cells))])
    with pytest.raises(IllegalStorageError, match=message):
        check_storage(program, replace(claim, starts={start: (index(cells), replaced)}))


def test_a_wrong_claim_of_donation(monkeypatch: pytest.MonkeyPatch) -> None:
    text = STATE.replace("sdg.sub %w[i], %x[i]", "sdg.sub %w[i], %w0")
    program, claim = planned(text, monkeypatch)
    assert not claim.donated
    with pytest.raises(IllegalStorageError, match="read after its array is overwritten"):
        check_storage(program, replace(claim, donated=[(buffer(program, "w0").buffer, buffer(program, "wI").buffer)]))


def test_a_copy_that_is_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of two buffers are said to lie in cells where they do not coincide."""
    program, claim = planned(RNN, monkeypatch)
    shifted = dict(claim.memories)
    for source, memory in claim.memories.items():
        if source.name_hint == "s":
            shifted[source] = replace(memory, cells=tuple(_shifted(cell) for cell in memory.cells))
    with pytest.raises(IllegalStorageError):
        check_storage(program, replace(claim, memories=shifted))


def _shifted(cell: Expr) -> Expr:
    return cell + 1 if cell == expr("t") else cell


def test_rows_that_the_program_leaves_out_stay_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner is told that a value may lie in an output that shows only some of its rows."""
    monkeypatch.setattr(Planner, "_shows_no_more", lambda *_: True)
    program = schedule_program(parse(LEFT_OUT))
    with pytest.raises(IllegalStorageError, match=r"array is written that was left out: .* = 0 \(T = 1\)"):
        driver.plan_storage(program)


def test_a_row_that_is_read_and_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first value of a state is taken away from what was before and from what is now."""
    program, claim = planned(RNN, monkeypatch)
    start = next(op for op in of_type(program, loop.ComputeOp) if op in claim.starts)
    _, replaced = claim.starts[start]
    start.detach()
    before = [instance for instance in claim.before if instance.op not in replaced]
    with pytest.raises(IllegalStorageError, match=r"a row is read that is never written: .* = 0 .*T = 1"):
        check_storage(program, replace(claim, before=before))


def test_a_buffer_that_is_read_and_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    program, claim = planned(LEFT_OUT, monkeypatch)
    writer = next(op for op in of_type(program, loop.ComputeOp) if of_type(op, sdg.TanhOp))
    writer.detach()
    before = [instance for instance in claim.before if instance.op is not writer]
    with pytest.raises(IllegalStorageError, match="a row is read that is never written"):
        check_storage(program, replace(claim, before=before))


def test_slices_of_claims() -> None:
    alloc = loop.AllocOp(loop.BufferType.of((), tensor(f32)))
    memory = Memory(alloc.buffer, ("i", "t"), (expr("i"), expr("t + 1"), expr("T")), (0, 1, 2))
    assert memory.at(index("[2, 0:t]")) == (expr("2"), Slice(expr("1"), expr("t + 1")), expr("T"))
