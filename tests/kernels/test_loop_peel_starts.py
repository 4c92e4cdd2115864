"""Loops whose first iteration reads what the caller gave: the numbers of the reference, and the arrays as given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir import optim
from tempo_ir.dialects.loop import IfOp, LaunchOp
from tempo_ir.lowering.kernels.loop_peel_starts import LEAST

SIZE = LEAST // 4 + 3


def ones(_: object, shape: tuple[int, ...]) -> np.ndarray:
    return np.linspace(1, 2, shape[0]).astype(np.float32)


def adam() -> None:
    i, _ = tp.dim("i")
    gradient = tp.input("x", tp.f32[SIZE])
    optim.Adam(1e-2).update([tp.state("w", tp.f32[SIZE], ones, steps=i)], [gradient])


def exchanged() -> None:
    i, _ = tp.dim("i")
    x = tp.input("x", tp.f32[SIZE])
    a, b = (tp.state(name, tp.f32[SIZE], ones, steps=i) for name in "ab")
    a.next = b * 0.5 + x
    b.next = a * 2.0


def shown() -> None:
    """What a step starts with is read by two operations."""
    i, _ = tp.dim("i")
    x = tp.input("x", tp.f32[SIZE])
    w = tp.state("w", tp.f32[SIZE], ones, steps=i)
    tp.output("sum", w.sum())
    w.next = w - x


def nested() -> None:
    """Updated in an inner loop, that may have no iteration where the outer one has some."""
    (i, _), (j, _) = tp.dims("i", "j")
    x = tp.input("x", tp.f32[SIZE])
    w = tp.state("w", tp.f32[SIZE], ones, steps=(i, j))
    w.next = w * 0.5 + x


PROGRAMS = (adam, exchanged, shown, nested)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_the_numbers_of_the_reference(program: Callable[[], None], steps: int) -> None:
    recorded = tp.program(program)()
    cpu, reference = tp.compile(recorded), tp.compile(recorded, target="reference")
    x = np.linspace(-1, 1, SIZE).astype(np.float32)
    given = cpu.init(seed=0)
    kept = {name: array.copy() for name, array in given.items()}
    for others in (0, 2) if program is nested else (None,):
        bounds = {"I": steps} if others is None else {"I": steps, "J": others}
        expected = reference(x=x, **bounds, state=given)
        for _ in range(2):  # what an earlier call has left in memory makes no difference
            agree(cpu(x=x, **bounds, state=given), expected)
        for name, array in kept.items():
            np.testing.assert_array_equal(given[name], array)
        mine = {name: array.copy() for name, array in given.items()}
        agree(cpu(x=x, **bounds, state=mine, donate=True), expected)


def agree(actual: tp.Result, expected: tp.Result) -> None:
    for name, value in {**expected, **expected.state}.items():
        found = actual[name] if name in actual else actual.state[name]
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_no_state_of_an_optimiser_is_copied() -> None:
    lowered = tp.compile(tp.program(adam)()).levels.lowered
    launches = [op for op in lowered.walk() if isinstance(op, LaunchOp)]
    copies = [op for op in launches if "copy" in op.kernel.root_reference.data]
    assert len(copies) == 3
    guards = {op.parent_op() for op in copies}
    assert all(isinstance(guard, IfOp) and str(guard.condition) == "0 >= I" for guard in guards)
    assert len(launches) == 5


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_it_can_be_left_out(steps: int) -> None:
    recorded = tp.program(adam)()
    with_it, without = tp.compile(recorded), tp.compile(recorded, without=("loop-peel-starts",))
    assert not any(isinstance(op, IfOp) for op in without.levels.lowered.walk())
    x = np.linspace(-1, 1, SIZE).astype(np.float32)
    agree(without(x=x, I=steps), with_it(x=x, I=steps))
    copied, read = (tp.profile(each, x=x, I=steps).kernels for each in (without, with_it))
    assert sum("copy" in kernel.kernel for kernel in copied) >= (steps > 0)
    assert not any("copy" in kernel.kernel for kernel in read) or steps == 0
