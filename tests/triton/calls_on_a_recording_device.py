"""Tests of target "triton" for a process of their own, on a device that computes nothing and records what it is asked
for, of compute capability 9.0. `test_on_device.py` runs them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton

import tempo_ir as tp
from tempo_ir.kept import DIRECTORY
from tempo_ir.lowering.triton import device as device_module
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


# ---- measured choices ----


@pytest.fixture
def timed(monkeypatch):
    """A timer that says what it is told to, by warps; the launches that it was asked about."""
    asked, faster = [], {"warps": 2}

    def measured(launch, on_gpu):
        bound = launch.__defaults__[0]
        asked.append((bound.kernel.__name__, bound.options["num_warps"], bound.options["num_stages"]))
        return 1.0 if bound.options["num_warps"] == faster["warps"] else 2.0

    monkeypatch.setattr(device_module, "measured", measured)
    return asked


def tuned(tmp_path, monkeypatch):
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    return tp.compile(walk(), "triton", without=("loop-persist",), autotune=True)


def warps_of_launches(executable) -> dict[str, set[int]]:
    """By kernel the warps of the compiled kernels that were launched for good."""
    package = executable._imported
    found = {}
    for kernel in executable.package.kernels:
        bound = getattr(package.driver, kernel.name)
        if isinstance(bound, device_module.Tuned):
            found[kernel.name] = {chosen.options["num_warps"] for chosen in bound.chosen.values()}
    return found


def test_the_fastest_choice_is_taken_and_kept(timed, tmp_path, monkeypatch):
    plain = launches(tp.compile(walk(), "triton", without=("loop-persist",)), x=X)
    executable = tuned(tmp_path, monkeypatch)
    first = launches(executable, x=X)
    measuring = len(first) - len(plain)
    assert measuring == len(timed) > 0  # each was launched once, to be compiled, on copies
    kernels = {kernel.name: kernel for kernel in executable.package.kernels if len(kernel.choices) > 1}
    assert {name for name, *_ in timed} == kernels.keys()
    for name, kernel in kernels.items():
        assert set(timed) >= {(name, *choice) for choice in kernel.choices}
    assert warps_of_launches(executable) == {name: {2} for name in kernels}
    assert launches(executable, x=X) == plain  # with nothing left to measure
    told = {path: path.read_text() for path in tmp_path.glob("*.tuned")}
    assert len(told) == len(kernels)
    count = len(timed)
    another = tuned(tmp_path, monkeypatch)  # as another process finds it
    assert another.stats.cached
    assert launches(another, x=X) == plain
    assert warps_of_launches(another) == {name: {2} for name in kernels}
    assert len(timed) == count
    assert {path: path.read_text() for path in tmp_path.glob("*.tuned")} == told


def test_what_is_measured_runs_on_copies(timed, tmp_path, monkeypatch):
    x, seen = torch.from_numpy(X.copy()), []
    for executable in (tp.compile(walk(), "triton", without=("loop-persist",)), tuned(tmp_path, monkeypatch)):
        EVENTS.clear()
        outputs = executable(x=x)
        mine = {x.data_ptr(), *(tensor.data_ptr() for tensor in outputs.values())}
        seen.append([name for _, name, _, given, *_ in EVENTS if mine & set(given)])
    assert timed
    assert seen[0] == seen[1] != []  # only the launches for good touch what was given and what is returned


def test_damaged_choices_are_measured_again(timed, tmp_path, monkeypatch):
    launches(tuned(tmp_path, monkeypatch), x=X)
    count = len(timed)
    paths = sorted(tmp_path.glob("*.tuned"))
    told = [path.read_text() for path in paths]
    for text in ("", "{}", '{"choices": 3}', '{"choices": {"1": [64, 1]}}', told[0].replace("2", "3")):
        timed.clear()
        for path in paths:
            path.write_text(text)
        launches(tuned(tmp_path, monkeypatch), x=X)
        assert len(timed) == count
        assert [path.read_text() for path in paths] == told


def test_sizes_of_another_power_of_two_are_measured_anew(timed, tmp_path, monkeypatch):
    executable = tp.compile(walk(), "triton", autotune=True)  # all steps are one launch, which is told their number
    launches(executable, x=np.ones((6, 4), np.float32))
    count = len(timed)
    launches(executable, x=np.ones((7, 4), np.float32))
    assert len(timed) == count
    launches(executable, x=np.ones((9, 4), np.float32))
    assert len(timed) > count


def test_a_choice_that_does_not_fit_is_none(timed, tmp_path, monkeypatch):
    from triton.runtime.errors import OutOfResources

    executable = tuned(tmp_path, monkeypatch)
    whole = device_module._bound_with

    def bound_with(bound, warps, stages):
        made = whole(bound, warps, stages)
        if warps == 2:

            class Full(type(made)):
                def launch(self, grid, *arguments):
                    raise OutOfResources(1, 0, "shared memory")

            made.__class__ = Full
        return made

    monkeypatch.setattr(device_module, "_bound_with", bound_with)
    launches(executable, x=X)
    assert timed
    assert all(2 not in warps for warps in warps_of_launches(executable).values())
