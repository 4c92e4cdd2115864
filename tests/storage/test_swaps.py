"""Rows that lie with the host meanwhile: the same numbers, few rows on the device, a checker that finds each fault."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import pytest
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.attributes import CondAttr, EntryAttr, IndexAttr
from tempo_ir.index import cond, index
from tempo_ir.index.expr import Slice
from tempo_ir.lowering.proofs import IllegalError
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.schedule.statements import ScheduleError
from tempo_ir.lowering.storage import driver
from tempo_ir.lowering.storage.check import Claim, IllegalStorageError, check_storage
from tempo_ir.lowering.storage.swap_check import SwapClaim, check_swap
from tempo_ir.passes.remarks import collecting
from tempo_ir.runtime.timeline import timeline
from tests.schedule.schedule_programs import NEEDS_ISL, SCHEDULABLE
from tests.schedule.schedule_support import parse
from tests.storage.storage_programs import random_program
from tests.storage.storage_support import planned
from tests.storage.test_plan import agrees

ROW = "tensor<3xf32>"
BACK = """
sdg.program @back dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : !r
  %zero = sdg.constant 0.0 : !r
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[i, t - 1]} in (i, t) : (!r, !r) -> !r
  %h0 = sdg.add %s[i, t], %x[i, t] in (i, t) : (!r, !r) -> !r
  %h = sdg.tanh %h0[i, t] in (i, t) : (!r) -> !r
  %g = sdg.merge {t < T - 1 : %b[i, t + 1], t = T - 1 : %zero} in (i, t) : (!r, !r) -> !r
  %p = sdg.mul %h[i, t], %g[i, t] in (i, t) : (!r, !r) -> !r
  %b = sdg.add %s[i, t], %p[i, t] in (i, t) : (!r, !r) -> !r
  sdg.output "b" %b[i, t] in (i, t) : !r
}
"""
"""States are read again as the gradients go back, one row and its neighbour at a time."""
AGAIN = """
sdg.program @again dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : !r
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (!r, !r) -> !r
  %h = sdg.sin %s[t] in (t) : (!r) -> !r
  %far = sdg.mul %h[t], %h[T - 1] in (t) : (!r, !r) -> !r
  %o = sdg.merge {t < 2 : %far[t], t >= 2 : %v[t]} in (t) : (!r, !r) -> !r
  %u = sdg.merge {t = 0 : %far[t], t > 0 : %u1[t - 1]} in (t) : (!r, !r) -> !r
  %u1 = sdg.add %u[t], %far[t] in (t) : (!r, !r) -> !r
  %v = sdg.mul %h[t - 2], %u1[t] in (t: 2 to T) : (!r, !r) -> !r
  sdg.output "o" %o[t] in (t) : !r
}
"""
"""Read again upwards, from the last state on, which stays on the device."""
TWO_DIMS = """
sdg.program @two_dims dims(i: I, t: T) where I >= 1 and T >= 1 {
  %x = sdg.input "x" in (i, t) : !r
  %s = sdg.merge {i = 0 and t = 0 : %x[i, t], t > 0 : %h[i, t - 1], i > 0 : %h[i - 1, T - 1]} in (i, t)
      : (!r, !r, !r) -> !r
  %h0 = sdg.add %s[i, t], %x[i, t] in (i, t) : (!r, !r) -> !r
  %h = sdg.sin %h0[i, t] in (i, t) : (!r) -> !r
  %g = sdg.merge {t < T - 1 : %b[i, t + 1], i < I - 1 : %b[i + 1, 0], true : %h[i, t]} in (i, t) : (!r, !r, !r) -> !r
  %p = sdg.mul %h[i, t], %g[i, t] in (i, t) : (!r, !r) -> !r
  %b = sdg.add %s[i, t], %p[i, t] in (i, t) : (!r, !r) -> !r
  sdg.output "b" %b[i, t] in (i, t) : !r
}
"""
"""States of all rounds are read again, from the last to the first."""
SEVERAL = """
sdg.program @several dims(t: T) where T >= 1 {
  %x = sdg.input "x" in (t) : !r
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (!r, !r) -> !r
  %h = sdg.sin %s[t] in (t) : (!r) -> !r
  %g = sdg.merge {t < T - 1 : %b[t + 1], true : %h[T - 1]} in (t) : (!r, !r) -> !r
  %p = sdg.mul %h[t], %g[t] in (t) : (!r, !r) -> !r
  %b = sdg.add %h[T - 1 - t], %p[t] in (t) : (!r, !r) -> !r
  %c0 = sdg.merge {t = 0 : %b[0], t > 0 : %c[t - 1]} in (t) : (!r, !r) -> !r
  %c1 = sdg.mul %c0[t], %h[t] in (t) : (!r, !r) -> !r
  %c = sdg.add %c1[t], %h[0] in (t) : (!r, !r) -> !r
  sdg.output "b" %b[t] in (t) : !r
  sdg.output "c" %c[t] in (t) : !r
}
"""
"""A loop reads states from both ends, another one upwards, and the first state at all of its steps."""
INSIDE = """
sdg.program @inside dims(t: T, j: 3) where T >= 1 {
  %x = sdg.input "x" in (t) : !r
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (!r, !r) -> !r
  %h = sdg.sin %s[t] in (t) : (!r) -> !r
  %g = sdg.merge {t = T - 1 : %h[t], true : %b[t + 1, 2]} in (t) : (!r, !r) -> !r
  %n = sdg.merge {j >= 1 : %b[t, j - 1], 2 * t + j > 2 : %h[t - 1], true : %g[t]} in (t, j) : (!r, !r, !r) -> !r
  %b = sdg.cos %n[t, j] in (t, j) : (!r) -> !r
  sdg.output "b" %b[t, 2] in (t) : !r
}
"""
"""The guard of an inner loop says which rows are read: `%h[t - 1]` at j = 0, so that 2 * t > 2."""
AT_ONCE = """
sdg.program @at_once dims(t: T) {
  %x = sdg.input "x" in (t) : !r
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (!r, !r) -> !r
  %h = sdg.sin %s[t] in (t) : (!r) -> !r
  %y = sdg.reverse %h[0:T] axis 0 : (!r) -> tensor<?x3xf32, #sdg.size<T>>
  sdg.output "y" %y : tensor<?x3xf32, #sdg.size<T>>
}
"""


def text_of(program: str, *requests: str) -> str:
    """A program that asks for some swaps."""
    text = program.replace("!r", ROW).rstrip().removesuffix("}")
    return (
        text
        + "".join(f"  sdg.swap %{name} ahead {ahead} : {ROW}\n" for name, ahead in map(str.split, requests))
        + "}\n"
    )


def of_type(program: Operation, kind: type) -> list:
    return [op for op in program.walk() if isinstance(op, kind)]


def storage(program: loop.ProgramOp) -> dict[str, str]:
    """How each named buffer of the program is stored."""
    ops = of_type(program, loop.AllocOp)
    return {op.buffer.name_hint or "": ", ".join(str(dim) for dim in op.buffer_type.dims) for op in ops}


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("ahead", [0, 1, 3, 20])
def test_rows_are_back_before_they_are_read(ahead: int, form: bool) -> None:
    text = text_of(BACK, f"h {ahead}")
    program = planned(text, form=form)
    assert storage(program)["h_back"] == f"t: ring {ahead + 2} to T + 1"
    assert storage(program)["h"] == ""
    assert storage(program)["h_host"] == "t: full to T + 1"
    agrees(text, program)


@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_rows_that_are_read_again_upwards(ahead: int) -> None:
    text = text_of(AGAIN, f"h {ahead}")
    program = planned(text)
    assert {"h_host", "h_back"} <= storage(program).keys()
    assert "full" not in storage(program)["h"]
    agrees(text, program)


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("ahead", [0, 1, 2, 9])
def test_rows_along_two_dims(ahead: int, form: bool) -> None:
    """Rows of a round come back for its own loop: a ring of that loop is all that the device keeps."""
    text = text_of(TWO_DIMS, f"h {ahead}")
    program = planned(text, form=form)
    stored = storage(program)
    assert (stored["h"], stored["h_host"]) == ("", "i: full, t: full to T + 1")
    assert stored["h_back"] == f"t: ring {ahead + 2} to T + 1"
    agrees(text, program)


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_rows_that_are_read_in_several_places(ahead: int, form: bool) -> None:
    """A ring for each order in which rows come back, one row for that which comes back once."""
    text = text_of(SEVERAL, f"h {ahead}")
    program = planned(text, form=form)
    back = [op for op in of_type(program, loop.AllocOp) if (op.buffer.name_hint or "").startswith("h_back")]
    rings = sorted(dim.slots for op in back for dim in op.buffer_type.dims)
    assert len(back) == 4
    assert rings == [ahead + 1] * 3 * (ahead > 0)
    assert storage(program)["h"] == ""
    agrees(text, program)


@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_rows_that_an_inner_loop_reads(ahead: int) -> None:
    """Those come back that it reads, and no others: of 9 states, at cells 1 to 9, the first is not read again."""
    text = text_of(INSIDE, f"h {ahead}")
    program = planned(text, form=False)
    assert {"h_host", "h_back"} <= storage(program).keys()
    rows = {each.row for each in timeline(program, {"T": 9}).fetches}
    assert rows == {f"%h_host[{cell}]" for cell in range(2, 10)}
    agrees(text, program)


@pytest.mark.parametrize("ahead", [0, 1, 3, 20])
def test_copies_are_issued_so_many_iterations_ahead(ahead: int) -> None:
    """In the loop, each row comes back `ahead` iterations before it is read, and the leaves of these lie between.
    Before it come the last state, which the first iteration reads beside its own, and those of so many iterations."""
    steps = 40
    found = timeline(planned(text_of(BACK, f"h {ahead}"), form=False), {"I": 1, "T": steps})
    assert len(found.fetches) == steps + 1
    early, in_the_loop = found.fetches[1 : ahead + 1], found.fetches[ahead + 1 :]
    assert [each.iterations for each in early] == list(range(ahead))
    assert {each.iterations for each in in_the_loop} == {ahead}
    assert [each.overlap for each in in_the_loop] == [len(found.between(each)) for each in in_the_loop]
    leaves = sum(name.startswith("compute") for name in found.between(in_the_loop[-1]))
    assert leaves >= 3 * ahead


def test_what_is_read_at_once_stays() -> None:
    with collecting() as collector:
        program = planned(text_of(AT_ONCE, "h 2"))
    assert not of_type(program, loop.TransferOp)
    (said,) = [each.message for each in collector.remarks if "stay on the device" in each.message]
    assert said == (
        "its rows stay on the device: no loop after those that write it reads its rows one by one: "
        "%h[1:T + 1] is read at once (program.mlir:6)"
    )
    agrees(text_of(AT_ONCE), program)


def with_requests(text: str, ahead: int) -> str | None:
    """A program that asks for all that may be asked of its values; None where there is nothing."""
    program = parse(text)
    made = [
        result
        for op in program.body.block.ops
        if isinstance(op, sdg.SdgOp) and not isinstance(op, sdg.SourceOp)
        for result in op.results
        if not isinstance(result.type, sdg.TokenType)
    ]
    program.body.block.add_ops([sdg.SwapOp(value, ahead) for value in made])
    program.verify()
    return str(program) if made else None


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("name", [*SCHEDULABLE, *NEEDS_ISL])
def test_all_that_may_be_asked_of_a_program(name: str, ahead: int) -> None:
    text = with_requests({**SCHEDULABLE, **NEEDS_ISL}[name], ahead)
    if text is not None:
        program = planned(text)
        assert not [op for op in of_type(program, loop.AllocOp) if loop.SWAP in op.attributes]
        agrees(text, program, sizes=(0, 1, 2, 7))


@cache
def random_texts(count: int) -> Sequence[str]:
    found: list[str] = []
    seed = 0
    while len(found) < count:
        seed += 1
        text = random_program(seed)
        try:
            schedule_program(parse(text))
        except (PassFailedException, VerifyException, ScheduleError):
            continue
        found.append(text)
    return found


def test_random_programs() -> None:
    for number, text in enumerate(random_texts(16)):
        asked = with_requests(text, random.Random(number).choice((0, 1, 2, 5)))
        if asked is not None:
            program = planned(asked)
            agrees(asked, program, sizes=(1, 2, 3, 6))


# -- the checkers


def claims(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[loop.ProgramOp, Claim, SwapClaim]:
    """A program with a swap, and what is claimed of it: that it swaps, and how it is stored then."""
    stored: list[Claim] = []
    swapped: list[SwapClaim] = []
    program = schedule_program(parse(text))
    with monkeypatch.context() as patch:
        patch.setattr(driver, "check_storage", lambda program, claim, read: stored.append(claim))
        patch.setattr(driver, "check_swap", lambda program, claim: swapped.append(claim))
        driver.plan_storage(program)
    check_storage(program, stored[-1])
    return program, stored[-1], swapped[0]


def fetch_in_the_loop(program: loop.ProgramOp) -> loop.FetchOp:
    return of_type(program, loop.FetchOp)[-1]


def drop_a_fetch(program: loop.ProgramOp) -> None:
    fetch_in_the_loop(program).detach()


def drop_the_first_fetches(program: loop.ProgramOp) -> None:
    of_type(program, loop.FetchOp)[0].detach()


def drop_an_offload(program: loop.ProgramOp) -> None:
    of_type(program, loop.OffloadOp)[-1].detach()


def fetch_late(program: loop.ProgramOp) -> None:
    """The row comes back after the leaves that read it."""
    fetch = fetch_in_the_loop(program)
    fetch.in_indices = fetch.out_indices = ArrayAttr([IndexAttr(index("[i, t]"))])
    guard = fetch.parent_op()
    block = guard.parent
    guard.detach()
    block.add_op(guard)


def fetch_another_row(program: loop.ProgramOp) -> None:
    fetch = fetch_in_the_loop(program)
    fetch.in_indices = ArrayAttr([IndexAttr(index("[t + 1]"))])


def fetch_before_the_offload(program: loop.ProgramOp) -> None:
    """The rows that are there before the loop come back before they went."""
    early = of_type(program, loop.FetchOp)[0]
    while not (isinstance(early, loop.ForOp) and early.iterator == "n"):
        early = early.parent_op()
    block = early.parent
    early.detach()
    first = next(op for op in block.ops if not isinstance(op, loop.BufferOperation))
    block.insert_op_before(early, first)


def ring_too_short(program: loop.ProgramOp) -> None:
    op = next(op for op in of_type(program, loop.AllocOp) if op.buffer.name_hint == "h_back")
    (dim,) = op.buffer_type.dims
    shorter = loop.BufferDim(dim.name, "ring", slots=dim.slots - 1)
    op.buffer._type = loop.BufferType.of((shorter,), op.buffer_type.row)  # pyright: ignore[reportPrivateUsage]


def fewer_come_first(program: loop.ProgramOp) -> None:
    early = next(op for op in of_type(program, loop.ForOp) if op.iterator == "n")
    early.range_attr = EntryAttr(Slice(early.lower, early.upper - 1))


def guarded_away(program: loop.ProgramOp) -> None:
    fetch_in_the_loop(program).parent_op().condition_attr = CondAttr(cond("t >= 4"))


STORED: list[tuple[Callable[[loop.ProgramOp], None], str]] = [
    (drop_a_fetch, "a result is lost"),
    (drop_the_first_fetches, "a result is lost"),
    (drop_an_offload, "a result is lost"),
    (fetch_before_the_offload, "read before it is written"),
    (ring_too_short, "overwritten while it is still read"),
    (fewer_come_first, "at other points"),
    (guarded_away, "at other points"),
    (fetch_another_row, "rows other than those planned"),
]


@pytest.mark.parametrize(("fault", "message"), STORED, ids=[fault.__name__ for fault, _ in STORED])
def test_faults_of_storage(
    fault: Callable[[loop.ProgramOp], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, claim, _ = claims(text_of(BACK, "h 3"), monkeypatch)
    fault(program)
    with pytest.raises(IllegalStorageError, match=message):
        check_storage(program, claim)


def before_storage(monkeypatch: pytest.MonkeyPatch) -> tuple[loop.ProgramOp, SwapClaim]:
    """A program in which rows are swapped, and all buffers keep all rows, with the claim."""
    found: list[SwapClaim] = []

    def stop(program: loop.ProgramOp, claim: SwapClaim) -> None:
        found.append(claim)
        programs.append(program.clone())
        raise NotImplementedError

    programs: list[loop.ProgramOp] = []
    program = schedule_program(parse(text_of(BACK, "h 3")))
    with monkeypatch.context() as patch:
        patch.setattr(driver, "check_swap", stop)
        with pytest.raises(NotImplementedError):
            driver.plan_storage(program)
    check_swap(program, found[0])
    return program, found[0]


def lose_a_leaf(program: loop.ProgramOp) -> None:
    of_type(program, loop.ComputeOp)[-1].detach()


def read_another_row(program: loop.ProgramOp) -> None:
    reader = next(op for op in of_type(program, loop.ComputeOp) if any(b.name_hint == "h_back" for b in op.ins))
    number = next(n for n, b in enumerate(reader.ins) if b.name_hint == "h_back")
    indices = list(reader.in_indices.data)
    indices[number] = IndexAttr(index("[i, t + 2]"))
    reader.in_indices = ArrayAttr(indices)


def read_with_the_host(program: loop.ProgramOp) -> None:
    reader = next(op for op in of_type(program, loop.ComputeOp) if any(b.name_hint == "h_back" for b in op.ins))
    host = next(op for op in of_type(program, loop.AllocOp) if loop.HOST in op.attributes)
    reader.operands = [host.buffer if b.name_hint == "h_back" else b for b in reader.operands]


def copy_to_another_place(program: loop.ProgramOp) -> None:
    offload = of_type(program, loop.OffloadOp)[-1]
    offload.out_indices = ArrayAttr([IndexAttr(index("[i, t]"))])


def fetch_to_the_first_buffer(program: loop.ProgramOp) -> None:
    fetch = fetch_in_the_loop(program)
    fetch.operands = [fetch.operands[0], of_type(program, loop.OffloadOp)[0].operands[0]]


SWAPPED: list[tuple[Callable[[loop.ProgramOp], None], str]] = [
    (lose_a_leaf, "other operations run"),
    (read_another_row, "works on other rows"),
    (read_with_the_host, "works on other rows"),
    (copy_to_another_place, "the place of another"),
    (fetch_to_the_first_buffer, "none between a buffer and its rows"),
]


@pytest.mark.parametrize(("fault", "message"), SWAPPED, ids=[fault.__name__ for fault, _ in SWAPPED])
def test_faults_of_swaps(
    fault: Callable[[loop.ProgramOp], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, claim = before_storage(monkeypatch)
    fault(program)
    with pytest.raises(IllegalStorageError, match=message):
        check_swap(program, claim)


@pytest.mark.parametrize("checker", ["check_swap", "check_storage"])
def test_what_is_not_proved_is_dropped(checker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a proof of a swap fails, the program is what it was before, and a remark says so."""
    calls: list[str] = []

    def fails(program: loop.ProgramOp, claim: object, read: object = None) -> None:
        calls.append(checker)
        if checker == "check_swap" or len(calls) > 1:
            raise IllegalError("no proof", program)

    text, plain = text_of(BACK, "h 1"), str(planned(text_of(BACK)))
    monkeypatch.setattr(driver, checker, fails)
    with collecting() as collector:
        program = planned(text)
    assert "its rows stay on the device: no proof" in [each.message for each in collector.remarks]
    assert str(program) == plain
    agrees(text, program)
