"""A program as several LLVM modules: they give what one gives, however it is cut and the host program is compiled."""

from __future__ import annotations

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.lowering.llvm import module as lowering
from tempo_ir.lowering.llvm.engine import host_target
from tempo_ir.lowering.llvm.target import OPTIMISED, PLAIN


@tp.program
def walk():
    t, T = tp.dim("t")
    w = tp.input("w", tp.f32[6, 6])
    x = tp.tensor("x", tp.f32[6], over=t)
    x[0] = 1.0
    x[t + 1] = tp.tanh(tp.softmax(x) @ w)
    tp.output("y", tp.sum(x[0 : t + 1], axis=0))


def parts(executable: tp.Executable) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    lowering.ModuleLowering(host_target(), lambda *part: found.append(part)).module(executable.levels.lowered)
    return found


@pytest.mark.parametrize(("characters", "long"), [(1, 10**9), (10**9, 0), (1, 0)])
def test_parts_and_levels_change_no_number(monkeypatch: pytest.MonkeyPatch, characters: int, long: int):
    w = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    expected = tp.compile(walk())(w=w, T=9)["y"]
    monkeypatch.setattr(lowering, "PART_CHARACTERS", characters)
    monkeypatch.setattr(lowering, "LONG_HOST_CHARACTERS", long)
    executable = tp.compile(walk())
    np.testing.assert_array_equal(executable(w=w, T=9)["y"], expected)
    *kernels, (host, level) = parts(executable)
    assert len(kernels) == (executable.stats.kernels if characters == 1 else 1)
    assert "define i32 @host" in host
    assert level == (OPTIMISED if long else PLAIN)
    assert {level for _, level in kernels} == {OPTIMISED}


def test_the_text_of_all_is_one_module():
    executable = tp.compile(walk())
    text = executable.ir("llvm")
    for part, _ in parts(executable):
        for line in part.splitlines():
            assert not line.startswith("define") or line in text
