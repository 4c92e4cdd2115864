"""--check-each: the sizes that are tried, the call that shows a difference, what hosts raise."""

from __future__ import annotations

import pytest

from tempo_ir.tools import tempo_opt
from tempo_ir.tools.checking import choose_sizes
from tempo_ir.tools.diagnostics import UserError
from tempo_ir.tools.programs import load_text

WRONG = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from tempo_ir.dialects import loop, sdg
from tempo_ir.index import Sym

@dataclass(frozen=True)
class Wrong(ModulePass):
    """Reads one step later than it should, from the third step on: at the level of loops or of the graph."""
    name = "wrong"

    def apply(self, ctx, op):
        for inner in op.walk():
            if isinstance(inner, sdg.SumOp) and inner.accesses and inner.accesses[0].index:
                access = inner.accesses[0]
                inner.with_access(0, access.value, (access.index[0].__class__(Sym("t") * 0, access.index[0].stop),))

UNIVERSE = Universe(all_passes={"wrong": lambda: Wrong})
'''
WINDOW = """
sdg.program @window dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %e = sdg.exp %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  %y = sdg.sum %e[max(0, t - 2):t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}
"""
RAISING = """
import numpy as np
import tempo_ir as tp

class Env:
    def step(self, t):
        if t == 3:
            raise KeyError("broken")
        return np.float32(t)

@tp.program
def program():
    t, T = tp.dim("t")
    tp.output("y", tp.host(Env).step(t, returns=tp.f32[()]))
"""


def sizes(where: str, **given: int) -> list[dict[str, int]]:
    program = load_text(
        f"sdg.program @p dims(i: I, t: T) {where} {{\n %n = sdg.constant 1 : tensor<i64>\n}}", "p.mlir"
    ).op
    return choose_sizes(program, given)


def test_nothing_single_steps_and_odd_sizes_are_tried() -> None:
    assert sizes("") == [{"I": 0, "T": 0}, {"I": 1, "T": 1}, {"I": 3, "T": 5}]
    assert sizes("", T=4) == [{"I": 0, "T": 4}, {"I": 1, "T": 4}, {"I": 3, "T": 4}]
    assert sizes("where T >= 1") == [{"I": 1, "T": 1}, {"I": 3, "T": 5}]
    assert sizes("where T >= 12 and I <= T") == [{"I": 2, "T": 12}]
    with pytest.raises(UserError, match="no small sizes for `T >= 1000`: give them by --check-set"):
        sizes("where T >= 1000")
    assert sizes("where T >= 1000", T=1000)[0] == {"I": 0, "T": 1000}


def run(folder, *arguments: str) -> int:
    (folder / "wrong.py").write_text(WRONG)
    (folder / "window.mlir").write_text(WINDOW)
    return tempo_opt.main([str(folder / "window.mlir"), f"--load-pass-plugin={folder / 'wrong.py'}", *arguments])


def test_the_first_pass_that_changes_a_number_is_named(tmp_path, capsys) -> None:
    assert run(tmp_path, "--check-each", "-p", "sdg-cse,sdg-dce,wrong,sdg-simplify,sdg-reduce-domain") == 1
    errors = capsys.readouterr().err
    assert "window.mlir:6:3: error: pass 'wrong' changed what @window computes: output \"y\": " in errors
    assert "2 of 5 values, first at [3]: " in errors
    assert "note: seen by --set T=5 --seed 0\nnote: x: float32[5] [" in errors


def test_sizes_at_which_it_does_not_show_say_nothing(tmp_path, capsys) -> None:
    assert run(tmp_path, "--check-each", "--check-set", "T=3", "-p", "wrong") == 0
    assert run(tmp_path, "--check-each", "--check-set", "T=4", "-p", "wrong") == 1
    assert "seen by --set T=4" in capsys.readouterr().err


def test_what_a_host_raises_is_a_message(tmp_path, capsys) -> None:
    (tmp_path / "program.py").write_text(RAISING)
    assert tempo_opt.main([str(tmp_path / "program.py"), "--check-each", "-p", "sdg-cse"]) == 1
    errors = capsys.readouterr().err
    assert "program.py:8:" in errors
    assert "error: KeyError: 'broken'" in errors
    assert "t = 3" in errors
