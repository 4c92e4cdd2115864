"""The checker of kernels finds every fault that is put into a formed program, and nothing in right ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, Region

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.attributes import CondAttr, IndexAttr
from tempo_ir.index import cond, index
from tempo_ir.lowering.formation.before import Before, IllegalKernelError, noted
from tempo_ir.lowering.formation.check import check_kernels
from tempo_ir.lowering.formation.loop_form_kernels import form_program
from tempo_ir.lowering.schedule.driver import schedule_program
from tests.formation.test_form_kernels import PROGRAMS
from tests.schedule.schedule_programs import NEEDS_ISL
from tests.schedule.schedule_support import parse

CALLS = """
sdg.program @calls dims(t: T) {
  %begin = sdg.host_state @env : !sdg.token
  %state = sdg.merge {t = 0 : %begin, t > 0 : %second_token[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %noise = sdg.random uniform id 1 in (t) : tensor<4xf32>
  %sum = sdg.add %x[t], %noise[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %less = sdg.sub %sum[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %first, %first_token = sdg.host @env::@step(%less[t]) after %state[t] in (t)
      : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %second, %second_token = sdg.host @env::@step(%less[t]) after %first_token[t] in (t)
      : (tensor<4xf32>, !sdg.token) -> (tensor<4xf32>, !sdg.token)
  %scaled = sdg.mul %first[t], %second[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %total = sdg.sum %scaled[t] axes [0] in (t) : (tensor<4xf32>) -> tensor<f32>
  sdg.output "y" %total[t] in (t) : tensor<f32>
}
"""

Kernels = dict[Operation, Sequence[Operation]]
Fault = Callable[[loop.ProgramOp, Kernels], None]


def formed(text: str) -> tuple[loop.ProgramOp, Before, Kernels]:
    program = schedule_program(parse(text))
    before = noted(program)
    kernels = form_program(program)
    check_kernels(program, before, kernels)
    return program, before, kernels


@pytest.mark.parametrize("name", [*PROGRAMS, *NEEDS_ISL, "calls"])
def test_right_kernels_pass(name: str) -> None:
    formed({**PROGRAMS, **NEEDS_ISL, "calls": CALLS}[name])


def of_type(program: Operation, kind: type) -> list:
    return [op for op in program.walk() if isinstance(op, kind)]


def kernel_with(program: loop.ProgramOp, kind: type) -> loop.KernelOp:
    return next(kernel for kernel in of_type(program, loop.KernelOp) if of_type(kernel, kind))


def swapped_operands(program: loop.ProgramOp, kernels: Kernels) -> None:
    op = of_type(kernel_with(program, sdg.SubOp), sdg.SubOp)[0]
    op.operands = [op.operands[1], op.operands[0]]


def another_op(program: loop.ProgramOp, kernels: Kernels) -> None:
    op = of_type(kernel_with(program, sdg.SubOp), sdg.SubOp)[0]
    other = sdg.AddOp.create(operands=op.operands, result_types=op.result_types, properties=op.properties)
    op.parent.insert_op_before(other, op)
    op.results[0].replace_all_uses_with(other.results[0])
    op.detach()
    op.erase()


def another_property(program: loop.ProgramOp, kernels: Kernels) -> None:
    op = of_type(kernel_with(program, sdg.MeanOp), sdg.MeanOp)[0]
    op.properties["axes"] = type(op.properties["axes"]).from_list(op.properties["axes"].elt_type, [0])


def another_value(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = next(kernel for kernel in of_type(program, loop.KernelOp) if len(kernel.yielded) == 2)
    last = kernel.body.block.last_op
    last.operands = [last.operands[1], last.operands[0]]


def more_work(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    last = kernel.body.block.last_op
    more = of_type(kernel, sdg.SubOp)[0].clone()
    kernel.body.block.insert_op_before(more, last)


def another_row_written(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    kernel.out_indices = ArrayAttr([IndexAttr(index("[t + 1]")) for _ in kernel.outs])


def another_row_read(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    kernel.in_indices = ArrayAttr([IndexAttr(index("[T - 1 - t]")) for _ in kernel.ins])


def leaf_changed(program: loop.ProgramOp, kernels: Kernels) -> None:
    call = of_type(program, loop.HostOp)[0]
    call.in_indices = ArrayAttr([IndexAttr(index("[0]")) for _ in call.ins])


def work_lost(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel_with(program, sdg.SubOp).detach()


def work_twice(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    again = kernel.clone()
    kernels[again] = kernels[kernel]
    kernel.parent.insert_op_after(again, kernel)


def work_not_claimed(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    kernel.parent.insert_op_after(kernel.clone(), kernel)


def leaves_in_another_order(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    kernels[kernel] = [*kernels[kernel]][::-1]


def fewer_leaves(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    kernels[kernel] = kernels[kernel][:-1]


def under_a_guard(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.SubOp)
    guard = loop.IfOp(cond("t > 3"))
    kernel.parent.insert_op_after(guard, kernel)
    kernel.detach()
    guard.then.block.add_op(kernel)


def guard_negated(program: loop.ProgramOp, kernels: Kernels) -> None:
    of_type(program, loop.IfOp)[0].condition_attr = CondAttr(cond("t > 3"))


def loop_shortened(program: loop.ProgramOp, kernels: Kernels) -> None:
    nest = of_type(program, loop.ForOp)[-1]
    nest.range_attr = type(nest.range_attr)(index("[1:T]")[0])


def reader_first(program: loop.ProgramOp, kernels: Kernels) -> None:
    """The last kernel of a block, before all others in it."""
    kernel = of_type(program, loop.KernelOp)[-1]
    block = kernel.parent
    kernel.detach()
    block.insert_op_before(kernel, block.first_op)


def calls_swapped(program: loop.ProgramOp, kernels: Kernels) -> None:
    first, second = of_type(program, loop.HostOp)
    second.detach()
    first.parent.insert_op_before(second, first)


def result_kept_inside(program: loop.ProgramOp, kernels: Kernels) -> None:
    """Results that others read are not written any more."""
    kernel = kernel_with(program, sdg.SubOp)
    replace(kernel, [], kernels)


def output_kept_inside(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = next(kernel for kernel in of_type(program, loop.KernelOp) if len(kernel.yielded) == 2)
    replace(kernel, [0], kernels)


def replace(kernel: loop.KernelOp, kept: Sequence[int], kernels: Kernels) -> None:
    """A kernel with some of its results only."""
    writes = [kernel.writes[number] for number in kept]
    values = [kernel.yielded[number] for number in kept]
    block = kernel.body.block
    block.erase_op(block.last_op)
    block.add_op(loop.YieldOp(values))
    reads, point = kernel.reads, kernel.point
    kernel.body.detach_block(block)
    smaller = loop.KernelOp(reads, writes, Region(block), point)
    kernel.parent.insert_op_before(smaller, kernel)
    kernels[smaller] = kernels.pop(kernel)
    kernel.detach()


def at_another_point(program: loop.ProgramOp, kernels: Kernels) -> None:
    kernel = kernel_with(program, sdg.RandomOp)
    kernel.point_attr = loop.PointAttr((("t", index("[t + 1]")[0]),))


def buffer_changed(program: loop.ProgramOp, kernels: Kernels) -> None:
    op = of_type(program, loop.AllocOp)[0]
    dims = (loop.BufferDim("t", "ring", slots=2),)
    op.buffer._type = loop.BufferType.of(dims, op.buffer_type.row)  # pyright: ignore[reportPrivateUsage]


NORMALISED = PROGRAMS["normalised"]
FAULTS: list[tuple[str, Fault, str]] = [
    (CALLS, swapped_operands, r"%less\[t\] at \(t = t\) .* does not compute sdg.sub of %less\[t\] at \(t = t\)"),
    (CALLS, another_op, "does not compute sdg.sub"),
    (NORMALISED, another_property, "does not compute sdg.mean"),
    (NORMALISED, another_value, r"%[rs]\[t\] is written with another value"),
    (CALLS, more_work, "computes more than its leaves"),
    (CALLS, another_row_written, r"%less\[t \+ 1\] is written with another value"),
    (CALLS, another_row_read, r"does not read %x\[t\]"),
    (CALLS, leaf_changed, r"%first\[t\] at \(t = t\) .*is not what it was"),
    (CALLS, work_lost, "never runs"),
    (CALLS, work_twice, r"%less\[t\] .*is written twice"),
    (CALLS, work_not_claimed, "is new"),
    (CALLS, leaves_in_another_order, "does not compute|does not read"),
    (CALLS, fewer_leaves, "computes more than its leaves"),
    (CALLS, under_a_guard, "runs at other points"),
    (PROGRAMS["rnn"], guard_negated, "runs at other points"),
    (CALLS, loop_shortened, "runs at other points"),
    (CALLS, reader_first, r"runs before %first\[t\] .*, which it reads"),
    (CALLS, calls_swapped, "host calls run in another order"),
    (CALLS, result_kept_inside, r"reads %less\[t\] at \(t = t\) .*, which is kept inside of a kernel"),
    (NORMALISED, output_kept_inside, "is not written for the caller"),
    (CALLS, at_another_point, r"%noise\[t\] at \(t = t\) .*is computed as if at \(t = t \+ 1\)"),
    (CALLS, buffer_changed, "buffer %.* is not what it was"),
]


@pytest.mark.parametrize(("text", "fault", "message"), FAULTS, ids=[fault.__name__ for _, fault, _ in FAULTS])
def test_faults_are_found(text: str, fault: Fault, message: str) -> None:
    program, before, kernels = formed(text)
    fault(program, kernels)
    with pytest.raises(IllegalKernelError, match=message):
        check_kernels(program, before, kernels)
