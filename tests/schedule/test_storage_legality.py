"""The checker of storage: rings, slots, sharing, copies that are gone, and frees, right and wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from schedule_programs import SCHEDULABLE
from schedule_support import admitted_bounds, arguments, parse
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.loop import BufferDim, BufferType
from tempo_ir.dialects.sdg import IndexAttr
from tempo_ir.index import index
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.schedule.storage_legality import IllegalStorageError, StorageClaim, check_storage
from tempo_ir.reference.loop import run_loop


class Plan:
    """A program with other storage, edited step by step, and what belongs together."""

    def __init__(self, name: str) -> None:
        self.source = parse(SCHEDULABLE[name])
        self.before = schedule_program(self.source)
        self.after = self.before.clone()
        pairs = list(zip(self.before.walk(), self.after.walk(), strict=True))
        self.counterparts = {new: old for old, new in pairs if isinstance(new, loop.AccessOperation)}
        self.memory: dict[SSAValue, SSAValue] = {
            old.buffer: new.buffer
            for old, new in pairs
            if isinstance(old, loop.BufferOperation) and isinstance(new, loop.BufferOperation)
        }

    def now(self, name: str) -> SSAValue:
        """The buffer that holds a value."""
        return next(new for old, new in self.memory.items() if old.name_hint == name)

    def store(self, **dims: Mapping[str, int]) -> Plan:
        """Keep of each named value only the given dims, each with a ring of so many slots (0: full)."""
        for name, kept in dims.items():
            old = next(old for old in self.memory if old.name_hint == name)
            assert isinstance(old.type, BufferType)
            new = tuple(
                BufferDim(dim, "ring" if kept[dim] else "full", slots=kept[dim])
                for dim in old.type.dim_names
                if dim in kept
            )
            self._replace(self.memory[old], BufferType.of(new, old.type.row))
        self._reindex()
        return self

    def share(self, name: str, other: str) -> Plan:
        """Put a value into the buffer of another."""
        old = next(old for old in self.memory if old.name_hint == name)
        gone, kept = self.memory[old], self.now(other)
        gone.replace_all_uses_with(kept)
        self.memory[old] = kept
        gone.owner.detach()
        self._reindex()
        return self

    def drop(self, writes: str, reads: str) -> Plan:
        """Remove the copies from one value to another."""
        for op in list(self.counterparts):
            was = self.counterparts[op]
            assert isinstance(was, loop.AccessOperation)
            if [a.buffer.name_hint for a in (*was.writes, *was.reads)] == [writes, reads]:
                op.detach()
                del self.counterparts[op]
        return self

    def free(self, name: str, rows: str, after: str) -> Plan:
        """Free rows of a value after the op that writes another."""
        leaf = next(op for op in self.counterparts if op.writes and op.writes[0].buffer is self.now(after))
        place = leaf
        while isinstance(parent := place.parent_op(), loop.IfOp):
            place = parent
        place.parent.insert_op_after(loop.FreeOp(self.now(name), index(rows)), place)
        return self

    def check(self) -> None:
        """Ask the checker; where it agrees the interpreter must too."""
        check_storage(StorageClaim(self.before, self.after, self.counterparts, self.memory))
        self.after.verify()
        for bounds in admitted_bounds(self.source):
            run_loop(self.after, arguments(self.source, bounds), bounds)

    def _replace(self, buffer: SSAValue, type: BufferType) -> None:
        alloc = loop.AllocOp(type)
        buffer.owner.parent.insert_op_before(alloc, buffer.owner)
        buffer.replace_all_uses_with(alloc.buffer)
        alloc.buffer.name_hint = buffer.name_hint
        for old, new in self.memory.items():
            if new is buffer:
                self.memory[old] = alloc.buffer
        buffer.owner.detach()

    def _reindex(self) -> None:
        for op, was in self.counterparts.items():
            assert isinstance(was, loop.AccessOperation)
            op.in_indices = ArrayAttr([self._kept(access) for access in was.reads])
            op.out_indices = ArrayAttr([self._kept(access) for access in was.writes])

    def _kept(self, access: loop.BufferAccess) -> IndexAttr:
        kept = self.memory[access.buffer].type.dim_names
        dims = access.buffer.type.dim_names
        return IndexAttr(tuple(entry for dim, entry in zip(dims, access.index, strict=True) if dim in kept))


def refused(plan: Plan, message: str) -> None:
    with pytest.raises(IllegalStorageError, match=message):
        check_storage(StorageClaim(plan.before, plan.after, plan.counterparts, plan.memory))


def test_nothing_changed_is_right() -> None:
    Plan("rnn").check()
    Plan("ppo").check()


def test_values_of_one_step_need_one_slot() -> None:
    Plan("rnn").store(s={}, a={}, h={}).check()
    Plan("window").store(token={}, x={}, q={}).check()


def test_a_value_of_the_step_before_needs_one_slot_where_it_is_read_first() -> None:
    Plan("reinforce").store(obs={}, theta={}, logit={}, sum={}, later={}).check()


def test_a_window_needs_a_ring_of_its_length() -> None:
    Plan("window").store(k={"t": 3}, v={"t": 3}).check()
    Plan("window").store(k={"t": 4}).check()
    refused(Plan("window").store(k={"t": 2}), r"reads %k after .* overwrites it: t = 2 \(T = 3\)")
    refused(Plan("window").store(v={}), r"reads %v after .* overwrites it")
    refused(Plan("attention").store(k={"t": 64}), r"reads %k after .* overwrites it: t = 64 \(T = 65\)")


def test_values_that_a_later_loop_reads_are_kept_whole() -> None:
    refused(Plan("reinforce").store(act={"i": 0}), "reads %act after .* overwrites it")
    Plan("reinforce").store(act={"t": 0}).check()
    refused(Plan("reinforce").store(act={"t": 8}), "reads %act after .* overwrites it")


def test_n_step_values_need_a_ring_of_the_steps_looked_ahead() -> None:
    Plan("n_step").store(r={"t": 3}, rs={"t": 2}, val={"t": 4}).check()
    refused(Plan("n_step").store(r={"t": 2}), "overwrites it")
    refused(Plan("n_step").store(val={"t": 3}), "overwrites it")


def test_values_may_share_where_one_is_dead() -> None:
    Plan("rnn").store(s={}, a={}, h={}).share("a", "s").check()
    Plan("rnn").store(s={}, a={}, h={}).share("a", "s").share("h", "s").check()
    refused(Plan("reinforce").store(obs={"t": 0}, act={"t": 0}).share("act", "obs"), "overwrites it")


def test_a_shared_slot_may_not_be_overwritten_while_an_op_still_reads_it() -> None:
    plan = Plan("window").store(x={}, q={}, score={}, p={}, o={})
    refused(plan.share("p", "score"), "overwrites %score while it still reads it")


def test_a_state_is_updated_in_place_without_its_copy() -> None:
    Plan("reinforce").store(theta={}, next={}).share("next", "theta").drop("theta", "next").check()


def test_a_copy_between_two_places_may_not_go() -> None:
    refused(Plan("rnn").store(s={}, h={}).drop("s", "h"), "copies between two places, and is gone")


def test_only_copies_may_go() -> None:
    plan = Plan("rnn")
    leaf = next(op for op in plan.counterparts if op.writes[0].buffer is plan.now("h"))
    leaf.detach()
    del plan.counterparts[leaf]
    refused(plan, "is no copy, and gone")


def test_rows_are_freed_after_their_last_reader() -> None:
    Plan("rnn").free("s", "[t]", after="a").check()
    refused(Plan("rnn").free("h", "[t]", after="y"), r"reads %h after loop.free frees it: t = 1 \(T = 2\)")
    refused(Plan("rnn").free("h", "[t]", after="h"), "reads %h after loop.free frees it")
    refused(Plan("rnn").free("x", "[t + 1]", after="a"), r"reads %x after loop.free frees it")
    refused(Plan("rnn").free("y", "[t]", after="y"), r"loop.output %y .* reads %y after loop.free frees it")


def test_other_rows_are_not_accessed() -> None:
    plan = Plan("rnn")
    leaf = next(op for op in plan.counterparts if op.writes[0].buffer is plan.now("y"))
    leaf.in_indices = ArrayAttr([IndexAttr(index("[t - 1]"))])
    refused(plan, "does not access the rows of %h")
