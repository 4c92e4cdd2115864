"""Dims as numbers count on from where a call starts; what passes count, or compare points by, does not."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import tempo_ir as tp
from tempo_ir.dialects.sdg import Sdg
from tempo_ir.passes.sdg_vectorize import SdgVectorizePass

X = np.array([0.5, -2.0, 3.0, 1.25, -0.75])
ROWS = np.arange(5)


def parse(text: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sdg)
    return Parser(context, text).parse_module()


def program(body: str) -> ModuleOp:
    return parse(f"""sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : tensor<f64>
      {body}
      sdg.output "y" %y[t] in (t) : tensor<f64>
    }}""")


MEAN = """
      %m = sdg.mean %x[0:t + 1] axes [0] in (t) : (tensor<f64>) -> tensor<f64>
      %y = sdg.grad %m wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>"""
REPEATED = """
      %b = sdg.broadcast %x[t] in (t) : (tensor<f64>) -> tensor<?xf64, #sdg.size<t + 1>>
      %y = sdg.sum %b[t] axes [0] in (t) : (tensor<?xf64, #sdg.size<t + 1>>) -> tensor<f64>"""
REPEATED_GRADIENT = """
      %b = sdg.broadcast %x[t] in (t) : (tensor<f64>) -> tensor<?xf64, #sdg.size<t + 1>>
      %s = sdg.sum %b[t] axes [0] in (t) : (tensor<?xf64, #sdg.size<t + 1>>) -> tensor<f64>
      %y = sdg.grad %s wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>"""
SQUARES = """
      %s = sdg.mul %x[t * t mod T], %x[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %y = sdg.grad %s wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>"""
NUMBERED = """
      %n = sdg.index 2 * t + 1 - t in (t) : tensor<i64>
      %f = sdg.cast %n[t] in (t) : (tensor<i64>) -> tensor<f64>
      %y = sdg.contract ",->" %x[t], %f[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>"""
RANGE = """
      %n = sdg.arange [t:2 * t + 1] in (t) : tensor<?xi64, #sdg.size<t + 1>>
      %f = sdg.cast %n[t] in (t) : (tensor<?xi64, #sdg.size<t + 1>>) -> tensor<?xf64, #sdg.size<t + 1>>
      %y = sdg.sum %f[t] axes [0] in (t) : (tensor<?xf64, #sdg.size<t + 1>>) -> tensor<f64>"""


def squares() -> np.ndarray:
    """The gradient of the sum of `x[t * t % T] * x[t]`."""
    gradient = X[ROWS * ROWS % 5].copy()
    np.add.at(gradient, ROWS * ROWS % 5, X)
    return gradient


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (MEAN, lambda start: np.cumsum(1 / (ROWS + 1)[::-1])[::-1]),
        (REPEATED, lambda start: (ROWS + 1) * X),
        (REPEATED_GRADIENT, lambda start: ROWS + 1),
        (NUMBERED, lambda start: X * (ROWS + start + 1)),
        (RANGE, lambda start: (ROWS + 1) * (ROWS + start) + ROWS * (ROWS + 1) / 2),
    ],
    ids=["mean", "sum of equal rows", "gradient of equal rows", "number", "range"],
)
def test_numbers_and_counts(body, expected, start):
    for target in ("reference", "cpu"):
        for without in ((), ("sdg-vectorize",)):
            executable = tp.compile(program(body), target, without=without)
            found = executable(x=X, start={"t": start})["y"]
            np.testing.assert_allclose(found, expected(start), rtol=1e-12, err_msg=target)


@pytest.mark.parametrize("start", [0, 5])
def test_readers_that_are_no_ranges(start):
    found = tp.compile(program(SQUARES), "reference")(x=X, start={"t": start})["y"]
    np.testing.assert_allclose(found, squares(), rtol=1e-12)


def test_passes_print_what_can_be_read():
    module = program(NUMBERED)
    SdgVectorizePass(all=True).apply(Context(), module)
    assert "sdg.arange [call.start.t + 1:T + call.start.t + 1]" in str(module)
    again = parse(str(module))
    again.verify()
    assert str(again) == str(module)


def test_a_range_is_as_long_wherever_a_call_starts():
    module = parse("""sdg.program @p dims(t: T) {
      %n = sdg.arange [0:call.start.t] : tensor<?xi64, #sdg.size<max(0, call.start.t)>>
      sdg.output "n" %n : tensor<?xi64, #sdg.size<max(0, call.start.t)>>
    }""")
    with pytest.raises(VerifyException, match=r"does not depend on call\.start\.t"):
        module.verify()
