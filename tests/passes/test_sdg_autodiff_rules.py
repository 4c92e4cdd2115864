"""The derivative of every op against central differences, plain, broadcast, and where many points share an operand."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import apply, check_gradients, outputs, parse

TEMPLATE = """
sdg.program @p dims(t: T) {{
  %x = sdg.input "x" in (t) : {x}
  %z = sdg.input "z" : {z}
  %ids = sdg.constant dense<[2, 0, 2]> : tensor<3xi64>
  %two = sdg.constant 2.0 : tensor<f64>
  %half = sdg.constant 0.5 : tensor<f64>
  %ax = sdg.abs %x[t] in (t) : ({x}) -> {x}
  %az = sdg.abs %z : ({z}) -> {z}
  {body}
  %k = sdg.input "k" in (t) : {y}
  %p = sdg.mul %y[t], %k[t] in (t) : ({y}, {y}) -> {y}
  %loss = sdg.sum %p[t] axes [{axes}] in (t) : ({y}) -> tensor<f64>
  sdg.output "loss" %loss[t] in (t) : tensor<f64>
  %dx = sdg.grad %loss wrt %x in (t) : (tensor<f64>, {x}) -> {x}
  sdg.output "dx" %dx[t] in (t) : {x}
  {dz}
}}
"""

X = "tensor<3x4xf64>"


def program(body: str, result: str = X, z: str = "tensor<4xf64>", x: str = X) -> str:
    """A weighted sum of `%y[t]`, of which `body` says how it follows from `%x[t]` and perhaps `%z`."""
    rank = len(result[len("tensor<") : -1].split("x")) - 1
    dz = ""
    if "%z" in body or "%az" in body:
        dz = f'%dz = sdg.grad %loss wrt %z : (tensor<f64>, {z}) -> {z}\n  sdg.output "dz" %dz : {z}'
    axes = ", ".join(map(str, range(rank)))
    return TEMPLATE.format(x=x, z=z, y=result, body=body, dz=dz, axes=axes)


UNARY = ("neg", "exp", "tanh", "sigmoid", "erf", "sin", "cos", "abs")
POSITIVE = ("log", "log1p", "sqrt", "rsqrt")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check_gradients(program(f"%y = sdg.{name} %x[t] in (t) : ({X}) -> {X}"), {"T": 2})


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive(name):
    check_gradients(program(f"%y = sdg.{name} %ax[t] in (t) : ({X}) -> {X}"), {"T": 2})


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("z", ["tensor<4xf64>", "tensor<3x1xf64>", "tensor<f64>", X])
def test_binary_broadcasts(name, z):
    check_gradients(program(f"%y = sdg.{name} %x[t], %z in (t) : ({X}, {z}) -> {X}", z=z), {"T": 2})


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts_the_left(name):
    x, z = "tensor<3x1xf64>", "tensor<2x1x4xf64>"
    result = "tensor<2x3x4xf64>"
    check_gradients(program(f"%y = sdg.{name} %x[t], %z in (t) : ({x}, {z}) -> {result}", result, z, x), {"T": 2})


@pytest.mark.parametrize(
    "body",
    [
        "%y = sdg.pow %ax[t], %z in (t) : ({X}, tensor<4xf64>) -> {X}",
        "%y = sdg.pow %x[t], %two in (t) : ({X}, tensor<f64>) -> {X}",
        "%y = sdg.pow %ax[t], %half in (t) : ({X}, tensor<f64>) -> {X}",
        "%y = sdg.mod %x[t], %two in (t) : ({X}, tensor<f64>) -> {X}",
        "%y = sdg.mul %x[t], %x[t] in (t) : ({X}, {X}) -> {X}",
        "%y = sdg.div %x[t], %x[t] in (t) : ({X}, {X}) -> {X}",
        "%c = sdg.lt %x[t], %z in (t) : ({X}, tensor<4xf64>) -> tensor<3x4xi1>\n"
        "%y = sdg.select %c[t], %x[t], %z in (t) : (tensor<3x4xi1>, {X}, tensor<4xf64>) -> {X}",
        "%s = sdg.softmax %x[t] axis 1 in (t) : ({X}) -> {X}\n"
        "%y = sdg.mul %s[t], %z in (t) : ({X}, tensor<4xf64>) -> {X}",
        "%y = sdg.cumsum %x[t] axis 0 in (t) : ({X}) -> {X}",
        "%y = sdg.cumsum %x[t] axis 1 reverse in (t) : ({X}) -> {X}",
        "%y = sdg.cumprod %x[t] axis 0 in (t) : ({X}) -> {X}",
        "%y = sdg.cumprod %x[t] axis 1 reverse in (t) : ({X}) -> {X}",
        "%y = sdg.sort %x[t] axis 1 in (t) : ({X}) -> {X}",
        "%y = sdg.sort %x[t] axis 0 descending in (t) : ({X}) -> {X}",
        "%y = sdg.reverse %x[t] axis 1 in (t) : ({X}) -> {X}",
        "%n = sdg.cast %x[t] in (t) : ({X}) -> tensor<3x4xf64>\n%y = sdg.exp %n[t] in (t) : ({X}) -> {X}",
    ],
)
def test_same_shape(body):
    check_gradients(program(body.replace("{X}", X)), {"T": 2})


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("%y = sdg.sum %x[t] axes [0] in (t) : ({X}) -> {Y}", "tensor<4xf64>"),
        ("%y = sdg.sum %x[t] axes [0, 1] in (t) : ({X}) -> {Y}", "tensor<f64>"),
        ("%y = sdg.mean %x[t] axes [1] in (t) : ({X}) -> {Y}", "tensor<3xf64>"),
        ("%y = sdg.max %x[t] axes [1] in (t) : ({X}) -> {Y}", "tensor<3xf64>"),
        ("%y = sdg.min %x[t] axes [0] in (t) : ({X}) -> {Y}", "tensor<4xf64>"),
        ("%y = sdg.prod %x[t] axes [1] in (t) : ({X}) -> {Y}", "tensor<3xf64>"),
        ("%y = sdg.prod %x[t] axes [0, 1] in (t) : ({X}) -> {Y}", "tensor<f64>"),
        ("%y = sdg.reshape %x[t] in (t) : ({X}) -> {Y}", "tensor<2x6xf64>"),
        ("%y = sdg.transpose %x[t] permutation [1, 0] in (t) : ({X}) -> {Y}", "tensor<4x3xf64>"),
        ("%y = sdg.broadcast %x[t] in (t) : ({X}) -> {Y}", "tensor<2x3x4xf64>"),
        ("%y = sdg.slice %x[t] take [1:3, 2] in (t) : ({X}) -> {Y}", "tensor<2xf64>"),
        ("%y = sdg.slice %x[t] take [0:3:2, 1:4:2] in (t) : ({X}) -> {Y}", "tensor<2x2xf64>"),
        ("%y = sdg.pad %x[t] low [1, 0] high [0, 2] value 7.0 in (t) : ({X}) -> {Y}", "tensor<4x6xf64>"),
        ("%y = sdg.concat %x[t], %x[t] axis 0 in (t) : ({X}, {X}) -> {Y}", "tensor<6x4xf64>"),
        ("%y = sdg.gather %x[t], %ids axis 0 in (t) : ({X}, tensor<3xi64>) -> {Y}", "tensor<3x4xf64>"),
        ("%y = sdg.gather %x[t], %ids axis 1 in (t) : ({X}, tensor<3xi64>) -> {Y}", "tensor<3x3xf64>"),
        ("%y = sdg.scatter_add %ids, %x[t] axis 0 in (t) : (tensor<3xi64>, {X}) -> {Y}", "tensor<5x4xf64>"),
    ],
)
def test_other_shape(body, result):
    check_gradients(program(body.replace("{X}", X).replace("{Y}", result), result), {"T": 2})


@pytest.mark.parametrize(
    ("spec", "z", "result"),
    [
        ("ab,b->a", "tensor<4xf64>", "tensor<3xf64>"),
        ("ab,b->ab", "tensor<4xf64>", X),
        ("ab,bc->ca", "tensor<4x2xf64>", "tensor<2x3xf64>"),
        ("ab,cd->a", "tensor<4x2xf64>", "tensor<3xf64>"),
        ("ab,cc->acb", "tensor<2x2xf64>", "tensor<3x2x4xf64>"),
        ("ab,->b", "tensor<f64>", "tensor<4xf64>"),
    ],
)
def test_contract(spec, z, result):
    body = f'%y = sdg.contract "{spec}" %x[t], %z in (t) : ({X}, {z}) -> {result}'
    check_gradients(program(body, result, z), {"T": 2})


@pytest.mark.parametrize(
    ("spec", "result"), [("ab->ba", "tensor<4x3xf64>"), ("ab->b", "tensor<4xf64>"), ("ab->", "tensor<f64>")]
)
def test_contract_of_one_operand(spec, result):
    check_gradients(program(f'%y = sdg.contract "{spec}" %x[t] in (t) : ({X}) -> {result}', result), {"T": 2})


def test_cases_of_which_several_hold():
    """A case takes part where it is the first that holds."""
    body = f"""%a = sdg.sin %x[t] in (t) : ({X}) -> {X}
      %b = sdg.exp %x[t] in (t) : ({X}) -> {X}
      %y = sdg.merge {{t < 2 : %a[t], t < 4 : %b[t], true : %x[t]}} in (t) : ({X}, {X}, {X}) -> {X}"""
    check_gradients(program(body), {"T": 5})


def test_contract_of_one_operand_three_times():
    body = f'%y = sdg.contract "ab,cb,cd->ad" %x[t], %x[t], %x[t] in (t) : ({X}, {X}, {X}) -> {X}'
    check_gradients(program(body), {"T": 2})


def test_contract_whose_gradient_is_one_number():
    body = f'%m = sdg.contract "ab,bc->ac" %x[t], %z in (t) : ({X}, tensor<4x2xf64>) -> tensor<3x2xf64>\n' + (
        "%y = sdg.sum %m[t] axes [0, 1] in (t) : (tensor<3x2xf64>) -> tensor<f64>"
    )
    check_gradients(program(body, "tensor<f64>", "tensor<4x2xf64>"), {"T": 2})


# ---- an unselected side far upstream: behind a sum, at another point, through a recurrence


def whole(values: str) -> str:
    """The gradient by `%x` of `%x` plus what `values` makes of it, in `%far` (a scalar), where it is never chosen."""
    return f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : tensor<3xf64>
      %zero = sdg.constant 0.0 : tensor<f64>
      %half = sdg.constant 0.5 : tensor<f64>
      %minus = sdg.constant -1.5 : tensor<f64>
      %never = sdg.constant 9.0 : tensor<f64>
      %s = sdg.sum %x[t] axes [0] in (t) : (tensor<3xf64>) -> tensor<f64>
      {values}
      %c = sdg.gt %s[t], %never in (t) : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %chosen = sdg.select %c[t], %far[t], %zero in (t) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %loss = sdg.add %s[t], %chosen[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %dx = sdg.grad %loss wrt %x in (t) : (tensor<f64>, tensor<3xf64>) -> tensor<3xf64>
      sdg.output "dx" %dx[t] in (t) : tensor<3xf64>
    }}"""


V, Q = "tensor<3xf64>", "tensor<f64>"
SUM_OF_U = f"%far = sdg.sum %u[t] axes [0] in (t) : ({V}) -> {Q}"
FAR = {
    "log": f"%u = sdg.log %x[t] in (t) : ({V}) -> {V}\n{SUM_OF_U}",
    "sqrt": f"%u = sdg.sqrt %x[t] in (t) : ({V}) -> {V}\n{SUM_OF_U}",
    "rsqrt": f"%u = sdg.rsqrt %x[t] in (t) : ({V}) -> {V}\n{SUM_OF_U}",
    "reciprocal": f"%u = sdg.div %half, %x[t] in (t) : ({Q}, {V}) -> {V}\n{SUM_OF_U}",
    "quotient": f"%u = sdg.div %x[t], %x[t] in (t) : ({V}, {V}) -> {V}\n{SUM_OF_U}",
    "power": f"%u = sdg.pow %x[t], %half in (t) : ({V}, {Q}) -> {V}\n{SUM_OF_U}",
    "power below 0": f"%u = sdg.pow %x[t], %minus in (t) : ({V}, {Q}) -> {V}\n{SUM_OF_U}",
    "x log x": f"""%l = sdg.log %x[t] in (t) : ({V}) -> {V}
      %u = sdg.mul %l[t], %x[t] in (t) : ({V}, {V}) -> {V}\n{SUM_OF_U}""",
    "square of a log": f"""%l = sdg.log %x[t] in (t) : ({V}) -> {V}
      %u = sdg.mul %l[t], %l[t] in (t) : ({V}, {V}) -> {V}\n{SUM_OF_U}""",
    "exp of a reciprocal": f"""%l = sdg.div %half, %x[t] in (t) : ({Q}, {V}) -> {V}
      %u = sdg.exp %l[t] in (t) : ({V}) -> {V}\n{SUM_OF_U}""",
    "norm": f"""%l = sdg.mul %x[t], %x[t] in (t) : ({V}, {V}) -> {V}
      %n = sdg.sum %l[t] axes [0] in (t) : ({V}) -> {Q}
      %far = sdg.sqrt %n[t] in (t) : ({Q}) -> {Q}""",
    "contraction": f"""%u = sdg.log %x[t] in (t) : ({V}) -> {V}
      %o = sdg.constant 2.0 : {V}
      %far = sdg.contract "a,a->" %u[t], %o in (t) : ({V}, {V}) -> {Q}""",
    "the past": f"""%u = sdg.log %x[t] in (t) : ({V}) -> {V}
      %far = sdg.sum %u[0:t + 1] axes [0, 1] in (t) : ({V}) -> {Q}""",
    "the step before": f"""%u = sdg.log %x[t] in (t) : ({V}) -> {V}
      %far = sdg.sum %u[max(t - 1, 0)] axes [0] in (t) : ({V}) -> {Q}""",
    "a recurrence": f"""%h = sdg.merge {{t = 0 : %s[t], t > 0 : %l[t - 1]}} in (t) : ({Q}, {Q}) -> {Q}
      %l = sdg.log %h[t] in (t) : ({Q}) -> {Q}
      %far = sdg.add %l[t], %h[t] in (t) : ({Q}, {Q}) -> {Q}""",
}


@pytest.mark.parametrize("name", FAR)
def test_no_nan_from_an_unselected_side_upstream(name):
    module = apply(parse(whole(FAR[name])), "sdg-autodiff")
    for steps in (1, 2, 5):
        with np.errstate(all="ignore"):
            found = outputs(module, {"x": np.zeros((steps, 3))}, {"T": steps})
        assert found["dx"].tolist() == [[1, 1, 1]] * steps
