"""Tests of target "triton" for a process of their own, on a device that computes nothing and records what it is asked
for, of compute capability 9.0. `test_on_device.py` runs them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton

import tempo_ir as tp
from tests.triton.launch_recorder import EVENTS, STREAM, Driver
from tests.triton.support import walk

X = np.ones((5, 4), np.float32)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The device; it has heard nothing."""
    triton.runtime.driver.set_active(Driver())
    EVENTS.clear()


@pytest.fixture
def dispatched(monkeypatch):
    """The kernels that Triton's dispatch of arguments, and so its compiler, was asked for."""
    names, run = [], triton.runtime.jit.JITFunction.run

    def dispatch(self, *arguments, **options):
        names.append(self.__name__)
        return run(self, *arguments, **options)

    monkeypatch.setattr(triton.runtime.jit.JITFunction, "run", dispatch)
    return names


def launches(executable, *arguments, **named) -> list[tuple]:
    """What a call launches: kernels, grids, scalars, the stream."""
    EVENTS.clear()
    executable(*arguments, **named)
    return [
        (name, tuple(grid), tuple(v for v in given if abs(v) < 1 << 32), stream)
        for _, name, grid, given, stream, _graph, _table in EVENTS
    ]


def test_the_machine_is_that_of_the_device(dispatched):
    executable = tp.compile(walk(), "triton", without=("loop-persist",))
    first = launches(executable, x=X)
    assert len(first) >= 3 * len(X)
    assert {launch[-1] for launch in first} == {STREAM}
    kernels = {launch[0] for launch in first}
    assert sorted(dispatched) == sorted(kernels)  # once each: then they are bound
    assert launches(executable, x=torch.from_numpy(X), seed=0) == first
    assert len(dispatched) == len(kernels)
    assert len(launches(executable, x=np.ones((9, 4), np.float32))) > len(first)  # one compile serves every size
    assert len(dispatched) == len(kernels)
    named = tp.compile(walk(), "triton", machine="sm_90", without=("loop-persist",))
    assert executable.ir("triton") == named.ir("triton")


def test_all_steps_are_one_launch():
    executable = tp.compile(walk(), "triton")
    names = [[name for name, *_ in launches(executable, x=np.ones((steps, 4), np.float32))] for steps in (5, 9)]
    assert names[0] == names[1]
    assert [name.endswith("_over_t") for name in names[0]] == [False, True, True]
