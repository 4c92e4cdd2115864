"""A call that the machine has no memory for is refused before it begins: what is needed, what there is, the way out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.runtime import frames, memory, room
from tempo_ir.runtime.calls import Request, needs
from tempo_ir.runtime.errors import CallError, NotEnoughMemoryError
from tempo_ir.runtime.executable import Compiled
from tempo_ir.runtime.frames import Callee
from tempo_ir.tools.tempo_run import main

MIB = 1 << 20


@cache
def program() -> Compiled:
    """All states are kept: 4 KiB a step."""

    @tp.program
    def states():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[8], over=t)
        h = tp.tensor("h", tp.f32[1024], over=t)
        h[0] = 1.0
        h[t] = tp.sin(h[t - 1]) * x[t].sum()
        tp.output("y", tp.sort(h[0:T].max(0)))
        tp.output("h", h)

    exe = tp.compile(states())
    assert isinstance(exe, Compiled)
    return exe


def steps(count: int) -> np.ndarray:
    return np.ones((count, 8), np.float32)


def machine_with(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: size)


def test_a_call_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_with(monkeypatch, 3 * MIB)
    with pytest.raises(NotEnoughMemoryError) as caught:
        program()(x=steps(50_000))
    said = str(caught.value)
    assert said.startswith("a call with T = 50000 needs ")
    assert "for outputs" in said
    assert "and the machine has 3.0 MiB to give: compile with memory_budget= or remat=, give smaller bounds, or" in said
    assert said.endswith("set TEMPO_MEMORY_CHECK=off to try even so")
    assert isinstance(caught.value, CallError | MemoryError)
    program()(x=steps(50))


def test_it_needs_what_is_said() -> None:
    """The arena, the outputs that are made anew, and copies of arguments that do not lie row by row."""
    exe, x = program(), steps(1000)
    placement = needs(exe.callee, exe._framed((1000,)), Request({"x": x}, {"T": 1000}, 0, {}, {}))  # pyright: ignore
    assert placement["outputs"] == 4096 * 1000 + 4096
    assert placement["copies of arguments"] == 0
    exe(x=x)
    assert placement["the program"] == exe.stats.peak_bytes
    turned = np.asfortranarray(x)
    copied = needs(exe.callee, exe._framed((1000,)), Request({"x": turned}, {"T": 1000}, 0, {}, {}))  # pyright: ignore
    assert copied["copies of arguments"] == x.nbytes


@pytest.mark.parametrize("size", [None, 1 << 40])
def test_a_call_runs_where_there_is_room_or_nobody_knows(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    machine_with(monkeypatch, size)
    assert program()(x=steps(20_000))["y"].shape == (1024,)


def test_who_insists_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_with(monkeypatch, 0)
    monkeypatch.setenv("TEMPO_MEMORY_CHECK", "off")
    assert program()(x=steps(20_000))["y"].shape == (1024,)


def test_memory_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(size: int, dtype: object) -> np.ndarray:
        raise MemoryError

    monkeypatch.setattr(memory.np, "empty", none)
    with pytest.raises(
        NotEnoughMemoryError, match=r"the call needs 1000 bytes in one piece, which the machine has not"
    ):
        memory.aligned_bytes(1000)


def test_a_dim_that_data_ends_is_not_asked_about() -> None:
    """Rows are touched as steps run: of most of those that there is room for nobody knows whether they come."""

    @tp.program
    def ends():
        t, _ = tp.dim("t", until=lambda: done)
        h = tp.tensor("h", tp.f32[8], over=t)
        h[0], h[t] = 1.0, h[t - 1] + 1.0
        done = h.sum() > 30.0
        tp.output("h", h)

    exe = tp.compile(ends())
    assert isinstance(exe, Compiled)
    assert needs(exe.callee, exe._framed((10**9,)), Request({}, {"T": 10**9}, 0, {}, {})) == {}  # pyright: ignore


def test_what_the_machine_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, group = tmp_path / "meminfo", tmp_path / "group"
    monkeypatch.setattr(room, "MEMORY", facts)
    monkeypatch.setattr(room, "GROUP", group)
    assert room.available_bytes() is None
    facts.write_text("MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:   7000 kB\n")
    assert room.available_bytes() == 7000 * 1024
    group.mkdir()
    for name, text in {"memory.max": "max\n", "memory.current": "5000\n", "memory.stat": "inactive_file 100\n"}.items():
        (group / name).write_text(text)
    assert room.available_bytes() == 7000 * 1024
    (group / "memory.max").write_text("6000\n")
    assert room.available_bytes() == 1100


def test_inputs_that_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sums.mlir").write_text("""
sdg.program @sums dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<1024xf32>
  %y = sdg.sum %x[t] axes [0] in (t) : (tensor<1024xf32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}
""")
    machine_with(monkeypatch, 300 * MIB)
    assert main([str(tmp_path / "sums.mlir"), "--set", "T=100000"]) == 1
    said = capsys.readouterr().err
    assert "to draw 'x' of 100000x1024 numbers needs 1.1 GiB (390.6 MiB for the numbers, 781.2 MiB for drawing" in said
    assert "give smaller bounds, or the array as a file" in said


def test_calls_of_a_program_do_not_walk_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all calls have in common is found once, at the compile; what those of the same bounds have, at the first."""
    exe = program()
    exe(x=steps(3))
    exe(x=steps(4))
    monkeypatch.setattr(Callee, "of", lambda program: pytest.fail("found again"))
    monkeypatch.setattr(
        type(exe.program.body), "walk", lambda self: pytest.fail("the program is walked"), raising=False
    )
    monkeypatch.setattr(frames, "place", lambda buffers, bounds: pytest.fail("buffers are placed again"))
    exe(x=steps(4))
    exe(x=steps(3))
