"""sdg-simplify: each rule where it applies and where it must not, and the same values before and after."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import SIZES, apply, check_unchanged, outputs, parse, program_of

V, M, B = "tensor<3xf64>", "tensor<3x4xf64>", "tensor<3x4xi1>"
BOUNDS = [{"T": size} for size in SIZES]


def program(body: str, result: str = M) -> str:
    text = f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : {M}
      %z = sdg.input "z" : {M}
      %v = sdg.input "v" : tensor<4xf64>
      %zero = sdg.constant 0.0 : tensor<f64>
      %one = sdg.constant 1.0 : tensor<f64>
      %inf = sdg.constant inf : tensor<f64>
      %true = sdg.constant true : tensor<i1>
      %c = sdg.lt %x[t], %z in (t) : ({M}, {M}) -> {B}
      {body}
      sdg.output "y" %y[t] in (t) : {result}
    }}"""
    return text.replace("{M}", M).replace("{B}", B).replace("{Y}", result)


def ops(text: str, *passes: str) -> list[str]:
    module = apply(parse(text), *passes)
    signature = ("input", "output", "constant")
    names = [op.name.removeprefix("sdg.") for op in program_of(module).body.block.ops]
    return [name for name in names if name not in signature]


APPLIES = {
    "x + 0": ("%y = sdg.add %x[t], %zero in (t) : ({M}, tensor<f64>) -> {M}", M, []),
    "1 * x": ("%y = sdg.mul %one, %x[t] in (t) : (tensor<f64>, {M}) -> {M}", M, []),
    "x / 1": ("%y = sdg.div %x[t], %one in (t) : ({M}, tensor<f64>) -> {M}", M, []),
    "x / 8": (
        "%e = sdg.constant 8.0 : tensor<f64>\n%y = sdg.div %x[t], %e in (t) : ({M}, tensor<f64>) -> {M}",
        M,
        ["mul"],
    ),
    "x ** 2": (
        "%e = sdg.constant 2.0 : tensor<f64>\n%y = sdg.pow %x[t], %e in (t) : ({M}, tensor<f64>) -> {M}",
        M,
        ["mul"],
    ),
    "-(-x)": ("%a = sdg.neg %x[t] in (t) : ({M}) -> {M}\n%y = sdg.neg %a[t] in (t) : ({M}) -> {M}", M, []),
    "x + (-z)": (
        "%a = sdg.neg %z : ({M}) -> {M}\n%y = sdg.add %x[t], %a in (t) : ({M}, {M}) -> {M}",
        M,
        ["sub"],
    ),
    "(-z) + x": (
        "%a = sdg.neg %z : ({M}) -> {M}\n%y = sdg.add %a, %x[t] in (t) : ({M}, {M}) -> {M}",
        M,
        ["sub"],
    ),
    "x - (-z)": (
        "%a = sdg.neg %z : ({M}) -> {M}\n%y = sdg.sub %x[t], %a in (t) : ({M}, {M}) -> {M}",
        M,
        ["add"],
    ),
    "|-x|": ("%a = sdg.neg %x[t] in (t) : ({M}) -> {M}\n%y = sdg.abs %a[t] in (t) : ({M}) -> {M}", M, ["abs"]),
    "x * -1": (
        "%e = sdg.constant -1.0 : tensor<f64>\n%y = sdg.mul %x[t], %e in (t) : ({M}, tensor<f64>) -> {M}",
        M,
        ["neg"],
    ),
    "-1 * x": (
        "%e = sdg.constant -1.0 : tensor<f64>\n%y = sdg.mul %e, %x[t] in (t) : (tensor<f64>, {M}) -> {M}",
        M,
        ["neg"],
    ),
    "c and true": (
        "%d = sdg.and %c[t], %true in (t) : ({B}, tensor<i1>) -> {B}\n"
        "%y = sdg.select %d[t], %x[t], %z in (t) : ({B}, {M}, {M}) -> {M}",
        M,
        ["lt", "select"],
    ),
    "select by not": (
        "%d = sdg.not %c[t] in (t) : ({B}) -> {B}\n%y = sdg.select %d[t], %x[t], %z in (t) : ({B}, {M}, {M}) -> {M}",
        M,
        ["lt", "select"],
    ),
    "select of constant": ("%y = sdg.select %true, %x[t], %z in (t) : (tensor<i1>, {M}, {M}) -> {M}", M, []),
    "select of equals": ("%y = sdg.select %c[t], %x[t], %x[t] in (t) : ({B}, {M}, {M}) -> {M}", M, []),
    "widening casts": (
        "%a = sdg.cast %c[t] in (t) : ({B}) -> tensor<3x4xi64>\n%y = sdg.cast %a[t] in (t) : (tensor<3x4xi64>) -> {M}",
        M,
        ["lt", "cast"],
    ),
    "broadcast operand": (
        "%a = sdg.broadcast %v : (tensor<4xf64>) -> {M}\n%y = sdg.mul %x[t], %a in (t) : ({M}, {M}) -> {M}",
        M,
        ["mul"],
    ),
    "reshape of reshape": (
        "%a = sdg.reshape %x[t] in (t) : ({M}) -> tensor<12xf64>\n"
        "%y = sdg.reshape %a[t] in (t) : (tensor<12xf64>) -> tensor<2x6xf64>",
        "tensor<2x6xf64>",
        ["reshape"],
    ),
    "reshape there and back": (
        "%a = sdg.reshape %x[t] in (t) : ({M}) -> tensor<12xf64>\n"
        "%y = sdg.reshape %a[t] in (t) : (tensor<12xf64>) -> {M}",
        M,
        [],
    ),
    "transpose of transpose": (
        "%a = sdg.transpose %x[t] permutation [1, 0] in (t) : ({M}) -> tensor<4x3xf64>\n"
        "%y = sdg.transpose %a[t] permutation [1, 0] in (t) : (tensor<4x3xf64>) -> {M}",
        M,
        [],
    ),
    "slice of slice": (
        "%a = sdg.slice %x[t] take [1:3, 0:4:2] in (t) : ({M}) -> tensor<2x2xf64>\n"
        "%y = sdg.slice %a[t] take [1, 0:2] in (t) : (tensor<2x2xf64>) -> tensor<2xf64>",
        "tensor<2xf64>",
        ["slice"],
    ),
    "slice of a range": (
        "%y = sdg.slice %x[0:T] take [t, 0:3, 0:4] in (t) : ({M}) -> {M}",
        M,
        [],
    ),
    "transposed operand of a contraction": (
        "%a = sdg.transpose %x[t] permutation [1, 0] in (t) : ({M}) -> tensor<4x3xf64>\n"
        '%y = sdg.contract "ka,ak->a" %a[t], %z in (t) : (tensor<4x3xf64>, {M}) -> tensor<3xf64>',
        V,
        ["contract"],
    ),
    "sum of a contraction": (
        '%a = sdg.contract "ak,ak->ak" %x[t], %z in (t) : ({M}, {M}) -> {M}\n'
        "%y = sdg.sum %a[t] axes [1] in (t) : ({M}) -> tensor<3xf64>",
        V,
        ["contract"],
    ),
    "sum of a sum": (
        "%a = sdg.sum %x[t] axes [0] in (t) : ({M}) -> tensor<4xf64>\n"
        "%y = sdg.sum %a[t] axes [0] in (t) : (tensor<4xf64>) -> tensor<f64>",
        "tensor<f64>",
        ["sum"],
    ),
    "sum of a broadcast": (
        "%a = sdg.broadcast %x[t] in (t) : ({M}) -> tensor<5x3x4xf64>\n"
        "%y = sdg.sum %a[t] axes [0, 2] in (t) : (tensor<5x3x4xf64>) -> tensor<3xf64>",
        V,
        ["sum", "mul"],
    ),
    "greatest of a broadcast": (
        "%a = sdg.broadcast %x[t] in (t) : ({M}) -> tensor<5x3x4xf64>\n"
        "%y = sdg.max %a[t] axes [0] in (t) : (tensor<5x3x4xf64>) -> {M}",
        M,
        [],
    ),
    "sum past axes of extent 1": (
        "%a = sdg.reshape %x[t] in (t) : ({M}) -> tensor<3x1x4x1xf64>\n"
        "%b = sdg.sum %a[t] axes [0, 1] in (t) : (tensor<3x1x4x1xf64>) -> tensor<4x1xf64>\n"
        "%y = sdg.reshape %b[t] in (t) : (tensor<4x1xf64>) -> tensor<4xf64>",
        "tensor<4xf64>",
        ["sum"],
    ),
    "equal cases": (
        "%y = sdg.merge {t = 0 : %x[0], t > 0 : %x[t]} in (t) : ({M}, {M}) -> {M}",
        M,
        [],
    ),
    "index simplified": (
        "%y = sdg.neg %x[max(0, t)] in (t) : ({M}) -> {M}",
        M,
        ["neg"],
    ),
    "stop_gradient": ("%y = sdg.stop_gradient %x[t] in (t) : ({M}) -> {M}", M, []),
}


@pytest.mark.parametrize("name", APPLIES)
def test_applies(name):
    body, result, expected = APPLIES[name]
    text = program(body, result)
    assert ops(text, "sdg-simplify") == expected
    check_unchanged(text, "sdg-simplify", bounds=BOUNDS)


LEFT_ALONE = {
    "0 * x": "%y = sdg.mul %x[t], %zero in (t) : ({M}, tensor<f64>) -> {M}",
    "x - x": "%y = sdg.sub %x[t], %x[t] in (t) : ({M}, {M}) -> {M}",
    "x / x": "%y = sdg.div %x[t], %x[t] in (t) : ({M}, {M}) -> {M}",
    "scalar + zeros": "%y = sdg.mul %x[t], %inf in (t) : ({M}, tensor<f64>) -> {M}",
    "narrowing cast": "%a = sdg.cast %x[t] in (t) : ({M}) -> tensor<3x4xf32>\n"
    "%y = sdg.cast %a[t] in (t) : (tensor<3x4xf32>) -> {M}",
    "a state that is its own case": "%y = sdg.merge {t = 0 : %x[0], t > 0 : %y[t - 1]} in (t) : ({M}, {M}) -> {M}",
    "cases that differ": "%y = sdg.merge {t = 0 : %x[0], t > 0 : %x[t - 1]} in (t) : ({M}, {M}) -> {M}",
    "transpose of a contraction with two uses": '%a = sdg.contract "ak,ak->ka" %x[t], %z in (t) : ({M}, {M}) -> '
    "tensor<4x3xf64>\n%b = sdg.transpose %a[t] permutation [1, 0] in (t) : (tensor<4x3xf64>) -> {M}\n"
    'sdg.output "a" %a[t] in (t) : tensor<4x3xf64>\n%y = sdg.neg %b[t] in (t) : ({M}) -> {M}',
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    text = program(LEFT_ALONE[name])
    assert ops(text, "sdg-simplify") == ops(text, "sdg-dce")
    check_unchanged(text, "sdg-simplify", bounds=BOUNDS, exact=True)


def test_nothing_is_assumed_finite():
    text = program(LEFT_ALONE["0 * x"])
    module = apply(parse(text), "sdg-simplify")
    arrays = {"x": np.full((1, 3, 4), np.inf), "z": np.ones((3, 4)), "v": np.ones(4)}
    assert np.isnan(outputs(module, arrays, {"T": 1})["y"]).all()


def test_stop_gradient_stays_while_a_gradient_is_left():
    text = program(
        """%s = sdg.stop_gradient %x[t] in (t) : ({M}) -> {M}
      %p = sdg.mul %s[t], %x[t] in (t) : ({M}, {M}) -> {M}
      %l = sdg.sum %p[t] axes [0, 1] in (t) : ({M}) -> tensor<f64>
      %y = sdg.grad %l wrt %x in (t) : (tensor<f64>, {M}) -> {M}"""
    )
    assert ops(text, "sdg-simplify") == ["stop_gradient", "mul", "sum", "grad"]
    assert ops(text, "sdg-simplify", "sdg-autodiff", "sdg-simplify") == []


def test_gradients_are_those_of_the_plain_program():
    from test_sdg_autodiff import ATTENTION_OVER_STATES, CAUSAL_ATTENTION, RECURRENT
    from test_sdg_autodiff import program as gradient_program

    for body in (RECURRENT, CAUSAL_ATTENTION, ATTENTION_OVER_STATES):
        check_unchanged(
            gradient_program(body),
            "sdg-simplify",
            "sdg-fold-constants",
            "sdg-cse",
            "sdg-dce",
            before=["sdg-autodiff"],
            bounds=BOUNDS,
        )
