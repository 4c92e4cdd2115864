"""Launches over several threads: the team itself, and that results do not depend on it."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import tempo_ir as tp
from examples import llama, n_step, rnn
from tempo_ir.lowering.llvm import engine, parallel
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.threads import VARIABLE, borrowed_team, processors, team, thread_count
from tests.fuzz.arguments import draw, sizes
from tests.fuzz.check import program_of
from tests.fuzz.effects import Hosts
from tests.fuzz.generator import generate

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
FORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def small(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return generator.normal(0, 0.1, shape).astype(np.float32)


@tp.program
def attention(width=32, heads=4):
    """Products of all sizes, a softmax over a growing range, scratch memory of kernels, a gradient."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[8, heads * width], over=t)
    w = tp.parameter("w", tp.f32[heads * width, heads * width], init=small)
    q = tp.matmul(x, w).reshape(8, heads, width)
    score = tp.einsum("bhd,nbhd->bhn", q, q[0 : t + 1])
    mixed = tp.einsum("bhn,nbhd->bhd", tp.softmax(score), q[0 : t + 1])
    loss = (mixed * mixed).sum()
    tp.output("mixed", mixed)
    tp.output("dw", tp.grad(loss, w))


@pytest.fixture
def every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little work a launch is, it is cut."""
    monkeypatch.setattr(parallel, "WORTH_FORKING", 0)


def outputs(
    executable: tp.Executable, threads: int, monkeypatch: pytest.MonkeyPatch, **arguments: object
) -> dict[str, Array]:
    """What a call with so many threads gives."""
    monkeypatch.setenv(VARIABLE, str(threads))
    return dict(executable(**arguments))


def forks(count: int) -> int:
    """How many launches the team of so many threads has shared so far."""
    return team(count).tasks


def same(one: dict[str, Array], other: dict[str, Array]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert np.array_equal(np.asarray(value), np.asarray(other[name]), equal_nan=True), name


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_results_are_those_of_one_thread(threads: int, every_launch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tp.compile(attention())
    for steps in (0, 1, 7):
        x = np.random.default_rng(steps).standard_normal((steps, 8, 128)).astype(np.float32)
        before = forks(threads)
        same(outputs(executable, 1, monkeypatch, x=x), outputs(executable, threads, monkeypatch, x=x))
        assert forks(threads) > before or steps == 0


def test_examples(every_launch: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    decode = tp.compile(llama.decode(model=str(tmp_path / "model"), batch=3))
    prompt = np.random.default_rng(0).integers(0, 99, (2, 3))
    for executable, arguments in (
        (decode, {"prompt": prompt, "T": 9, "state": decode.init()}),
        (tp.compile(n_step.n_step(n=2, envs=8, side=4, hidden=16)), {"T": 6}),
        (tp.compile(rnn.rnn(batch=80, width=16)), dict(zip("xy", rnn.waves(2, 5, 80, 16), strict=True))),
    ):
        before = forks(3)
        same(outputs(executable, 1, monkeypatch, **arguments), outputs(executable, 3, monkeypatch, **arguments))
        assert forks(3) > before


def test_random_programs(every_launch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = forks(3)
    for seed in range(12):
        module = generate(f"threads {seed}", 6)
        program = program_of(module)
        executable = tp.compile(module)
        for bounds in sizes(program, 3):
            inputs = draw(program, bounds, seed)
            parameters = {name: inputs.pop(name) for name in executable.signature.parameters}
            given = {"state": parameters, "hosts": Hosts(program).factories(), **inputs, **bounds}
            one = outputs(executable, 1, monkeypatch, **given)
            same(one, outputs(executable, 3, monkeypatch, **{**given, "hosts": Hosts(program).factories()}))
    assert forks(3) > before


def test_no_team_is_made_for_a_program_of_small_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    @tp.program
    def program():
        t, _ = tp.dim("t")
        tp.output("y", tp.input("x", tp.f32[4], over=t) + 1)

    made = team.cache_info().misses
    outputs(tp.compile(program(), cache=False), 7, monkeypatch, x=np.ones((2, 4), np.float32))
    assert team.cache_info().misses == made


def test_little_work_stays_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tp.compile(attention(width=8, heads=2))
    before = forks(2)
    outputs(executable, 2, monkeypatch, x=np.ones((3, 8, 16), np.float32))
    assert forks(2) == before


@pytest.mark.parametrize("count", [2, 4])
def test_each_chunk_once(count: int) -> None:
    own = team(count)
    ran: list[tuple[int, int]] = []

    def work(frame: int | None, chunk: int, worker: int) -> None:
        ran.append((chunk, worker))

    task = TASK(work)
    address = ctypes.cast(task, ctypes.c_void_p).value
    with borrowed_team(count) as team_address:
        fork = FORK(ctypes.c_void_p.from_address(team_address).value or 0)
        for round_, chunks in enumerate([0, 1, 2, 3, 50, 7] * 20):
            ran.clear()
            fork(team_address, address, None, chunks)
            assert sorted(chunk for chunk, _ in ran) == list(range(chunks))
            assert all(0 <= worker < count for _, worker in ran)
            if round_ % 30 == 0:
                time.sleep(0.05)  # the workers have gone to sleep by then
    assert own.tasks >= 120


def test_sleeping_workers_wake() -> None:
    """A chunk that waits for another thread to run one ends, although all workers slept before."""
    met = threading.Barrier(2, timeout=20)

    def work(frame: int | None, chunk: int, worker: int) -> None:
        met.wait()

    task = TASK(work)
    with borrowed_team(2) as address:
        fork = FORK(ctypes.c_void_p.from_address(address).value or 0)
        for _ in range(3):
            time.sleep(0.2)
            fork(address, ctypes.cast(task, ctypes.c_void_p).value, None, 2)
    assert not met.broken


def test_a_busy_team_is_not_waited_for() -> None:
    with borrowed_team(2) as first, borrowed_team(2) as second:
        assert first
        assert not second
    with borrowed_team(1) as none:
        assert not none


def test_calls_at_the_same_time(every_launch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tp.compile(attention())
    x = np.random.default_rng(1).standard_normal((20, 8, 128)).astype(np.float32)
    expected = outputs(executable, 1, monkeypatch, x=x)
    monkeypatch.setenv(VARIABLE, "2")
    found: list[dict[str, Array]] = []
    callers = [threading.Thread(target=lambda: found.append(dict(executable(x=x)))) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 3
    for each in found:
        same(expected, each)


def test_a_child_process_makes_its_own_team(every_launch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tp.compile(attention())
    x = np.ones((4, 8, 128), np.float32)
    expected = outputs(executable, 2, monkeypatch, x=x)
    child = os.fork()
    if not child:
        code = 1
        try:
            same(expected, outputs(executable, 2, monkeypatch, x=x))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_a_child_process_makes_code_though_another_thread_was_making_some() -> None:
    begun = threading.Event()

    def makes() -> None:
        with engine._addresses_as_written(), llvm.ffi.lib._lock:
            begun.set()
            time.sleep(0.3)

    thread = threading.Thread(target=makes)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends a child that waits for ever
        code = 1
        try:
            made = engine.compile_object("define void @f() { ret void }", engine.host_target())
            code = 0 if made else 1
        finally:
            os._exit(code)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert thread_count() == processors()
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count() == 3
    for wrong in ("0", "-1", "two", "1e3", "99999999"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(CallError, match=f"{VARIABLE} is '{wrong}': give a number of threads"):
            thread_count()
