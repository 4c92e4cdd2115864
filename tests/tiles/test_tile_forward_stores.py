"""tile-forward-stores: random recurrences and random tile programs give what they gave, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.dialects.tile import structure
from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.lowering.tiles.launches import Launched
from tempo_ir.lowering.tiles.tile_forward_stores import forward_stores
from tempo_ir.reference.tile import run_kernel
from tempo_ir.runtime.compiler import lower, module_of
from tests.llvm.test_random_programs import Program
from tests.tile.programs import Array

BUFFERS = ("a", "b", "c")
LEAST_STEPS, MORE = 3, 2
"""Rows of a buffer: one for each step, at least so many, and some that others are read and written from: what a wrong
load would reach is not there."""


def assert_same(
    kernel: structure.KernelOp, arguments: Sequence[Array | int | float], grid: Sequence[int], room: int = 0
) -> None:
    """The kernel writes the same with and without the pass, which knows of `room` behind its pointers."""
    changed = kernel.clone()
    arguments_of = changed.body.block.args
    names = {argument.name_hint: argument for argument in arguments_of}
    given = {names["last"]: (names["T"], -1)} if "last" in names else {}
    forward_stores(changed, told=Launched(dict.fromkeys(arguments_of, room), given))
    changed.verify()
    results: list[list[Array | int | float]] = []
    for each in (kernel, changed):
        results.append([x.copy() if isinstance(x, np.ndarray) else x for x in arguments])
        run_kernel(each, results[-1], grid)
    for before, after in zip(*results, strict=True):
        np.testing.assert_array_equal(before, after)


class Recurrence:
    """A random kernel over blocks of rows, whose loops over steps read and write rows of a few buffers."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.batch, self.width = self.random.choice([1, 3, 4, 5, 8]), self.random.choice([1, 3, 4])
        self.block = self.random.choice([2, 4, 8])
        self.size: Value | int = self.batch
        self.grid = -(-self.batch // self.block)
        names = {name: PointerType(f32) for name in (*BUFFERS, "x")}
        extent = self.random.choice([None, self.grid])
        self.k = KernelBuilder("kernel", {**names, "T": INDEX, "n": INDEX, "last": INDEX}, grid=[extent])
        self.tiles: list[Value] = []
        self.highs: dict[Value, Value | int] = {}

    def build(self) -> structure.KernelOp:
        self.size = self.random.choice([self.batch, self.k["n"]])
        self.row = self.k.program_id(0) * self.block
        self.tiles.append(self.load("x", 0))
        self.statements([], 2)
        for _ in range(self.random.choice([1, 1, 2])):
            self.loop([])
            self.statements([], 2)
        return self.k.finish()

    def access(self, name: str, step: Value | int) -> tuple[Value, tuple[Value | int | tuple[Value | int, int], ...]]:
        """A view and the places of this program's rows at a step."""
        size = self.random.choice([*[self.size] * 9, self.batch])
        columns = self.random.choice([*[(0, self.width)] * 9, (0, 4)])
        if self.random.random() < 0.1:
            view = self.k.view(self.k[name], [64, size, self.width], [self.batch * self.width, self.width, 1])
            return view, (step, (self.row, self.block), columns)
        offset = step * (self.batch * self.width)
        return self.k.view(self.k[name], [size, self.width], [self.width, 1], offset), (
            (self.row, self.block),
            columns,
        )

    def column(self, name: str, step: Value | int) -> tuple[Value, tuple[Value | int | tuple[Value | int, int], ...]]:
        """A view and the places of one column of this program's rows, with an axis for it or without."""
        view = self.k.view(self.k[name], [self.size, self.width], [self.width, 1], step * (self.batch * self.width))
        number = self.random.randrange(self.width)
        return view, ((self.row, self.block), self.random.choice([number, (number, 1)]))

    def load(self, name: str, step: Value | int) -> Value:
        if self.random.random() < 0.2:
            view, places = self.column(name, step)
            tile = self.k.load(view, *places)
            return (tile if len(tile.shape) == 2 else tile[:, None]).broadcast(*self.shape)
        view, places = self.access(name, step)
        tile = self.k.load(view, *places, other=self.random.choice([None, None, 1.0]))
        return tile if tile.shape[1] == self.width else self.k.reduce("sum", tile, 1)[:, None].broadcast(*self.shape)

    def store(self, name: str, step: Value | int) -> None:
        if self.random.random() < 0.2:
            return self.store_columns(name, step)
        view, places = self.access(name, step)
        value = self.random.choice(self.tiles)
        extent = places[-1]
        if isinstance(extent, tuple) and extent[1] != self.width:
            value = self.k.reduce("max", value, 1)[:, None].broadcast(self.block, extent[1])
        self.k.store(value, view, *places)

    def store_columns(self, name: str, step: Value | int) -> None:
        """One column, or all of them one after the other."""
        if self.random.random() < 0.3:
            view, places = self.column(name, step)
            value = self.k.reduce("max", self.random.choice(self.tiles), 1)
            self.k.store(value[:, None] if isinstance(places[1], tuple) else value, view, *places)
            return
        view = self.k.view(self.k[name], [self.size, self.width], [self.width, 1], step * (self.batch * self.width))
        for number in range(self.width):
            value = self.k.reduce("max", self.random.choice(self.tiles), 1)
            self.k.store(value, view, (self.row, self.block), number)

    @property
    def shape(self) -> tuple[int, int]:
        return self.block, self.width

    def step(self, counters: Sequence[Value]) -> Value | int:
        """A step that there is a row of, whatever the counters are; that of the same text may come again."""
        if not counters or self.random.random() < 0.2:
            return self.random.choice([0, 0, 1])
        t = self.random.choice(counters)
        match self.random.randint(0, 6):
            case 0 | 1:
                return t
            case 2 | 3:
                return t + 1
            case 4:
                return (t + self.random.choice([0, 1])) % 2
            case 5:
                return (t + self.random.choice([0, 1, 2])) % 3
            case _:
                return self.highs[t] - t + 1

    def statements(self, counters: list[Value], count: int) -> None:
        for _ in range(count):
            choice = self.random.random()
            if choice < 0.35:
                self.tiles.append(self.load(self.random.choice([*BUFFERS, "x"]), self.step(counters)))
            elif choice < 0.65:
                self.store(self.random.choice(BUFFERS), self.step(counters))
            elif choice < 0.8:
                self.branch(counters)
            elif choice < 0.85 and len(counters) in (0, 1):
                self.loop(counters)
            else:
                lhs, rhs = self.random.choice(self.tiles), self.random.choice(self.tiles)
                self.tiles.append(lhs * 0.5 + rhs * 0.25 + 0.125)

    def branch(self, counters: list[Value]) -> None:
        t = self.random.choice(counters) if counters else self.k["n"]
        condition = self.random.choice([t.ne(0), t >= 1, t < self.k["last"], t.eq(0), self.k["T"] > 2])
        before = list(self.tiles)
        with self.k.when(condition):
            if counters and self.random.random() < 0.5 and condition.ssa.name_hint is None:
                guarded = self.random.choice(BUFFERS)
                with self.k.when(t >= 1):
                    self.tiles.append(self.load(guarded, t - 1))
                    self.store(self.random.choice(BUFFERS), self.step(counters))
                self.tiles = list(before)
            self.statements(counters, 2)
        self.tiles = list(before)
        if self.random.random() < 0.3:
            with self.k.otherwise():
                self.statements(counters, 2)
            self.tiles = before

    def loop(self, counters: list[Value]) -> None:
        high = (
            self.random.choice([self.k["T"], self.k["T"], 3]) if not counters else self.random.choice([2, self.k["T"]])
        )
        carried = [self.random.choice(self.tiles)] if self.random.random() < 0.3 else []
        before = list(self.tiles)
        with self.k.loop(self.random.choice([0, 0, 1]), high, self.random.choice([1, 1, 1, 2]), carried) as loop:
            self.highs[loop.index] = high
            self.tiles += loop.carried
            name, t = self.random.choice(BUFFERS), loop.index
            here, there = self.random.choice([(t, t + 1), (0, 0), (t % 2, (t + 1) % 2), (t + 1, t)])
            is_recurrence = self.random.random() < 0.8
            if is_recurrence and self.random.random() < 0.2:
                with self.k.when(self.random.choice([t.ne(0), t >= 1, t < self.k["last"]])):
                    self.step_of(name, here, there, [*counters, t])
                self.tiles = [*before, *loop.carried]
            elif is_recurrence:
                self.step_of(name, here, there, [*counters, t])
            else:
                self.statements([*counters, t], self.random.randint(1, 5))
            loop.carry(*(self.random.choice(self.tiles) for _ in carried))
        self.tiles = before + loop.results

    def step_of(self, name: str, here: Value | int, there: Value | int, counters: list[Value]) -> None:
        """A step of a recurrence: it reads one row and writes the next, which the last step may leave out."""
        self.tiles.append(self.load(name, here))
        self.statements(counters, self.random.randint(1, 5))
        if self.random.random() < 0.7:
            self.store(name, there)
        else:
            with self.k.when(counters[-1] < self.k["last"]):
                self.store(name, there)

    def arguments(self, steps: int) -> list[Array | int | float]:
        rng = np.random.default_rng(3)
        rows = (max(steps, LEAST_STEPS) + MORE) * self.batch * self.width
        return [*(rng.standard_normal(rows).astype(np.float32) for _ in range(4)), steps, self.batch, steps - 1]


def run(seed: int) -> None:
    recurrence = Recurrence(seed)
    kernel = recurrence.build()
    for steps in (0, 1, 2, 5):
        arguments = recurrence.arguments(steps)
        least = (LEAST_STEPS + MORE) * recurrence.batch * recurrence.width
        assert_same(kernel, arguments, (recurrence.grid,), room=recurrence.random.choice([0, least]))


@pytest.mark.parametrize("seed", range(24))
def test_random_recurrences(seed):
    run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_more_random_recurrences(seed):
    run(seed)


def carried(kernel: structure.KernelOp) -> int:
    """How many values the loops of a kernel carry."""
    return sum(len(op.carried) for op in kernel.walk() if isinstance(op, structure.ForOp))


def test_random_recurrences_are_carried():
    """The generator makes what the pass is for."""
    more = 0
    for seed in range(24):
        kernel = Recurrence(seed).build()
        before = carried(kernel)
        forward_stores(kernel)
        more += carried(kernel) > before
    assert more > 4


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    program = Program(seed)
    kernel = program.build()
    assert_same(kernel, program.arguments(), (2,) if program.dynamic else tuple(kernel.grid.data))


def test_what_ends_a_loop_is_read():
    """A loop round a launch reads its condition after the launch."""

    @tp.program
    def ended():
        t, _ = tp.dim("t", until=lambda: done)
        x = tp.input("x", tp.f32[4], over=t)
        done = x.sum() > 3.0
        tp.output("y", x + 1.0)

    lowered = lower(module_of(ended()), "sm_90").lowered
    assert lowered is not None
    (made,) = [op for op in lowered.walk() if isinstance(op, loop.ForOp) and op.done is not None]
    writers = [op for op in made.walk() if isinstance(op, loop.LaunchOp) and made.done in op.buffers]
    assert len(writers) == 1
