"""What no pass can do is refused with the line of the user's program, whichever pass says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

import tempo_ir as tp
from tempo_ir.dialects.sdg import Sdg
from tempo_ir.runtime.errors import CompileError
from tempo_ir.tools.parsing import LocatedParser

HERE = Path(__file__).read_text().splitlines()


def line_of(text: str) -> int:
    """The number of the first line of this file that holds a text."""
    return next(number for number, line in enumerate(HERE, 1) if text in line)


def through_a_host() -> tp.Program:
    def asks():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        asked = tp.host(object, "env").ask(x, returns=tp.f32)
        tp.output("g", tp.grad(asked, x))

    return tp.program(asks)()


@pytest.mark.parametrize("target", ["cpu", "reference", "triton-interpret"])
def test_a_gradient_that_is_none(target):
    line = line_of("asked = tp.host")
    with pytest.raises(tp.ProgramError, match=rf"test_refusals.py:{line}: error: the gradient of .* flow through the"):
        tp.compile(through_a_host(), target)
    with pytest.raises(tp.ProgramError, match=rf"test_refusals.py:{line}: error: the gradient of .* flow through the"):
        through_a_host().run(x=[[1.0, 2.0, 3.0, 4.0]])


GRADIENT = """sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf64>
  %e0 = sdg.host_state @h : !sdg.token
  %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %z, %e1 = sdg.host @h::@f(%x[t]) after %e[t] in (t) : (tensor<3xf64>, !sdg.token) -> (tensor<f64>, !sdg.token)
  %g = sdg.grad %z wrt %x in (t) : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
  sdg.output "g" %g[t] in (t) : tensor<3xf64>
}"""
ORDER = """sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f64>
  %y = sdg.merge {t = 5 : %x[t], true : %z[t]} in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %z = sdg.neg %y[t] in (t) : (tensor<f64>) -> tensor<f64>
  sdg.output "z" %z[t] in (t) : tensor<f64>
}"""
TEXTS = {"sdg-autodiff": (GRADIENT, 5, "sdg.host %z, %e1"), "sdg-schedule": (ORDER, 3, "sdg.merge %y")}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", [Parser, LocatedParser])
def test_text(name, kind):
    """The line of the text where the parser noted it, else the op."""
    text, line, op = TEXTS[name]
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sdg)
    module = kind(context, text, "model.mlir").parse_module()
    assert isinstance(module, ModuleOp)
    with pytest.raises(tp.ProgramError) as refused:
        tp.compile(module)
    message = str(refused.value)
    if kind is LocatedParser:
        assert message.startswith(f"model.mlir:{line}: error: ")
    else:
        assert "test_refusals.py" in message
        assert f": error: {op}: " in message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"sdg-transpose": {"elements": "x"}}}, "option 'elements' of sdg-transpose takes int, got 'x'"),
        ({"options": {"sdg-transpose": {"elements": True}}}, "option 'elements' of sdg-transpose takes int, got True"),
        ({"options": {"sdg-transpose": {"elements": 1.5}}}, "option 'elements' of sdg-transpose takes int, got 1.5"),
        ({"options": {"sdg-tile": {"static": 3}}}, "option 'static' of sdg-tile takes bool, got 3"),
        ({"options": {"sdg-tile": None}}, "the options of sdg-tile are a mapping by name, got None"),
        ({"options": "sdg-tile"}, "options are a mapping by name, got 'sdg-tile'"),
        ({"remat": {"steps": None}}, "option 'steps' of remat takes int, got None"),
        ({"remat": 3}, "the options of remat are a mapping by name, got 3"),
        ({"without": "sdg-cse"}, "without is a collection of the names of passes, got 'sdg-cse'"),
        ({"without": 3}, "without is a collection of the names of passes, got 3"),
        ({"without": (3,)}, "the pass '3' cannot be left out"),
        ({"memory_budget": "1MB"}, "a memory budget is some bytes, got '1MB'"),
        ({"memory_budget": 1.5}, "a memory budget is some bytes, got 1.5"),
        ({"memory_budget": True}, "a memory budget is some bytes, got True"),
        ({"memory_budget": 10**6, "sizes": 3}, "sizes are numbers by bound, got 3"),
        ({"memory_budget": 10**6, "sizes": {"T": "x"}}, "sizes: T = 'x', a bound is an integer of 0 or more"),
    ],
)
def test_settings_of_another_type(settings: dict[str, Any], message: str):
    with pytest.raises(CompileError, match=re.escape(message)):
        tp.compile(through_a_host(), **settings)
