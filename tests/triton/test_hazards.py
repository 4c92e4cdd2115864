"""Barriers: wherever a program touches again what it has written, or writes what it has read, it waits in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from tempo_ir.dialects.tile import memory, structure
from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.lowering.tiles.tile_forward_stores import forward_stores
from tempo_ir.lowering.triton.hazards import barriers
from tempo_ir.reference import tile as reference
from tests.tiles.test_tile_forward_stores import Recurrence

Addresses = set[tuple[int, int]]


@dataclass
class Traced(reference._Program):  # pyright: ignore[reportPrivateUsage]
    """A program that notes what it touches since the last barrier, and what it touches again without one."""

    waits: frozenset[Operation] = frozenset()
    reads: Addresses = field(default_factory=set[tuple[int, int]])
    writes: dict[tuple[int, int], Operation] = field(default_factory=dict[tuple[int, int], Operation])
    faults: list[Operation] = field(default_factory=list[Operation])

    def touched(self, op: memory.AccessOp) -> Addresses:
        if op in self.waits:
            self.reads.clear()
            self.writes.clear()
        view, address, inside = self.addresses(op)
        return {(id(view.memory), int(each)) for each in address[inside]}

    def read(self, op: Any) -> Any:
        touched = self.touched(op)
        if touched & self.writes.keys():
            self.faults.append(op)
        self.reads |= touched
        return super().read(op)

    def write(self, op: Any) -> None:
        touched = self.touched(op)
        # one store of the same lanes again is made by the same threads
        if touched & self.reads or any(self.writes.get(each, op) is not op for each in touched):
            self.faults.append(op)
        self.writes |= dict.fromkeys(touched, op)
        super().write(op)


def faults(kernel: structure.KernelOp, arguments: list[Any], programs: int) -> list[Operation]:
    """What the programs of a kernel touch again without a barrier in between."""
    found: list[Operation] = []
    for program in range(programs):
        values: dict[Any, Any] = {}
        for argument, value in zip(kernel.body.block.args, arguments, strict=True):
            values[argument] = value.reshape(-1) if isinstance(value, np.ndarray) else np.int64(value)
        traced = Traced(values, (program,), barriers(kernel))
        with np.errstate(all="ignore"):
            traced.run(kernel.body.block)
        found += traced.faults
    return found


@pytest.mark.parametrize("seed", range(20))
def test_no_hazard_without_a_barrier(seed):
    recurrence = Recurrence(seed)
    kernel = recurrence.build()
    after = kernel.clone()
    forward_stores(after)
    for each in (kernel, after):
        assert not faults(each, recurrence.arguments(4), recurrence.grid)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_no_hazard_in_more_recurrences(seed):
    test_no_hazard_without_a_barrier(seed)


def columns(apart: bool) -> structure.KernelOp:
    """Four columns of each row are written, then a row that was read before the loop, or one behind those."""
    k = KernelBuilder("columns", {"x": PointerType(f32), "T": INDEX}, grid=[])
    first = k.load(k.view(k["x"], [4], [4]), (0, 4))
    with k.loop(1, k["T"]) as loop:
        row = loop.index * 16
        for number in range(4):
            k.store(first, k.view(k["x"], [4], [4], row + number), (0, 4))
        if not apart:
            k.store(first, k.view(k["x"], [k["T"] + 1, 4], [16, 1]), loop.index, (0, 4))
    return k.finish()


def test_rows_and_columns_that_are_proved_apart_need_no_barrier():
    assert not barriers(columns(apart=True))
    assert len(barriers(columns(apart=False))) == 1


def test_the_iteration_before_may_have_touched_it_in_another_branch():
    """What the loop stores in one branch it stores in the other one in the next iteration, at the same place."""
    k = KernelBuilder("kernel", {"x": PointerType(f32), "T": INDEX}, grid=[])
    view, none = k.view(k["x"], [8]), k.const(0.0, f32, [8])
    with k.loop(0, k["T"]) as loop:
        with k.when((loop.index % 2).eq(0)):
            k.store(none, view, (0, 8))
        with k.otherwise():
            k.store(none + 1.0, view, (0, 8))
    assert len(barriers(k.finish())) == 2
