"""Gradients through reads, cases and recurrences: known values, torch, and central differences at odd sizes."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from passes_support import SIZES, apply, check_gradients, outputs, parse, program_of
from xdsl.utils.exceptions import PassFailedException

S = "tensor<f64>"


def gradient_of_read(read: str, size: int) -> list[float]:
    """The gradient by `x` of the sum over t of `read`, which may use `%x` and `%w` (w[t] = t + 1)."""
    text = f"""
    sdg.program @p dims(t: T) where T >= {size} {{
      %x = sdg.input "x" in (t) : {S}
      %w = sdg.input "w" in (t) : {S}
      %three = sdg.constant 3.0 : {S}
      {read}
      %dx = sdg.grad %y wrt %x in (t) : ({S}, {S}) -> {S}
      sdg.output "dx" %dx[t] in (t) : {S}
    }}"""
    module = apply(parse(text), "sdg-autodiff")
    arrays = {"x": np.arange(size, dtype=float), "w": np.arange(1.0, size + 1)}
    return outputs(module, arrays, {"T": size})["dx"].tolist()


def total_of(read: str) -> str:
    return f"%s = sdg.sum {read} axes [0] in (t) : ({S}) -> {S}\n%y = sdg.mul %s[t], %w[t] in (t) : ({S}, {S}) -> {S}"


def tripled(index: str) -> str:
    return f"%y = sdg.mul %three, %x[{index}] in (t) : ({S}, {S}) -> {S}"


def weighted(index: str) -> str:
    return f"%y = sdg.mul %w[t], %x[{index}] in (t) : ({S}, {S}) -> {S}"


@pytest.mark.parametrize(
    ("read", "size", "expected"),
    [
        (f"%y = sdg.sum %x[0:T] axes [0] : ({S}) -> {S}", 4, [1, 1, 1, 1]),
        (total_of("%x[0:T]"), 4, [10, 10, 10, 10]),
        (total_of("%x[0:t + 1]"), 4, [10, 9, 7, 4]),
        (tripled("max(t - 1, 0)"), 4, [6, 3, 3, 0]),
        (tripled("min(t + 1, T - 1)"), 4, [0, 3, 3, 6]),
        (tripled("t mod 2"), 4, [6, 6, 0, 0]),
        (weighted("0"), 4, [10, 0, 0, 0]),
        (weighted("max(t - 2, 0)"), 5, [6, 4, 5, 0, 0]),
        (weighted("T - 1 - t"), 4, [4, 3, 2, 1]),
        (weighted("t floordiv 2"), 5, [3, 7, 5, 0, 0]),
        (weighted("max(t - 1, 0) mod 2"), 5, [7, 8, 0, 0, 0]),
        (total_of("%x[max(0, t - 1):t + 1]"), 4, [3, 5, 7, 4]),
        (total_of("%x[t:min(t + 3, T)]"), 5, [1, 3, 6, 9, 12]),
        (total_of("%x[0:T:3]"), 5, [15, 0, 0, 15, 0]),
        (total_of("%x[0:t + 1:2]"), 5, [15, 0, 12, 0, 5]),
        (total_of("%x[t:t]"), 3, [0, 0, 0]),
    ],
)
def test_gradient_of_a_read(read, size, expected):
    assert gradient_of_read(read, size) == expected


def program(body: str, wrt: str = "x", inputs: str = "") -> str:
    return f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : tensor<3xf64>
      %w = sdg.input "w" : tensor<3x3xf64>
      %zero = sdg.constant 0.0 : tensor<3xf64>
      {body}
      sdg.output "loss" %loss[t] in (t) : {S}
      %dx = sdg.grad %loss wrt %x in (t) : ({S}, tensor<3xf64>) -> tensor<3xf64>
      %dw = sdg.grad %loss wrt %w : ({S}, tensor<3x3xf64>) -> tensor<3x3xf64>
      sdg.output "dx" %dx[t] in (t) : tensor<3xf64>
      sdg.output "dw" %dw : tensor<3x3xf64>
    }}"""


RECURRENT = """
      %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %p = sdg.contract "a,ab->b" %s[t], %w in (t) : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
      %q = sdg.add %x[t], %p[t] in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %h = sdg.tanh %q[t] in (t) : (tensor<3xf64>) -> tensor<3xf64>
      %loss = sdg.sum %h[t] axes [0] in (t) : (tensor<3xf64>) -> tensor<f64>"""

BACKWARDS = """
      %s = sdg.merge {t = T - 1 : %zero, t < T - 1 : %h[t + 1]} in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %p = sdg.contract "a,ab->b" %s[t], %w in (t) : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
      %q = sdg.add %x[t], %p[t] in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %h = sdg.sin %q[t] in (t) : (tensor<3xf64>) -> tensor<3xf64>
      %loss = sdg.sum %h[t] axes [0] in (t) : (tensor<3xf64>) -> tensor<f64>"""

CAUSAL_ATTENTION = """
      %k = sdg.contract "a,ab->b" %x[t], %w in (t) : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
      %sc = sdg.contract "d,nd->n" %x[t], %k[0:t + 1] in (t) :
        (tensor<3xf64>, tensor<3xf64>) -> tensor<?xf64, #sdg.size<t + 1>>
      %pr = sdg.softmax %sc[t] axis 0 in (t) : (tensor<?xf64, #sdg.size<t + 1>>) -> tensor<?xf64, #sdg.size<t + 1>>
      %o = sdg.contract "n,nd->d" %pr[t], %k[0:t + 1] in (t) :
        (tensor<?xf64, #sdg.size<t + 1>>, tensor<3xf64>) -> tensor<3xf64>
      %o2 = sdg.mul %o[t], %o[t] in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %loss = sdg.sum %o2[t] axes [0] in (t) : (tensor<3xf64>) -> tensor<f64>"""

WINDOW_OF_STATES = """
      %s = sdg.merge {t = 0 : %zero, t > 0 : %m[t]} in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %m0 = sdg.sum %h[max(0, t - 2):t] axes [0] in (t: 1 to T) : (tensor<3xf64>) -> tensor<3xf64>
      %m = sdg.sin %m0[t] in (t: 1 to T) : (tensor<3xf64>) -> tensor<3xf64>
      %p = sdg.contract "a,ab->b" %s[t], %w in (t) : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
      %h = sdg.add %x[t], %p[t] in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %e = sdg.tanh %h[t] in (t) : (tensor<3xf64>) -> tensor<3xf64>
      %loss = sdg.sum %e[t] axes [0] in (t) : (tensor<3xf64>) -> tensor<f64>"""

ATTENTION_OVER_STATES = """
      %s = sdg.merge {t = 0 : %zero, t > 0 : %o[t]} in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %sc = sdg.contract "d,nd->n" %x[t], %h[0:t] in (t: 1 to T) :
        (tensor<3xf64>, tensor<3xf64>) -> tensor<?xf64, #sdg.size<t>>
      %pr = sdg.softmax %sc[t] axis 0 in (t: 1 to T) : (tensor<?xf64, #sdg.size<t>>) -> tensor<?xf64, #sdg.size<t>>
      %o = sdg.contract "n,nd->d" %pr[t], %h[0:t] in (t: 1 to T) :
        (tensor<?xf64, #sdg.size<t>>, tensor<3xf64>) -> tensor<3xf64>
      %p = sdg.contract "a,ab->b" %s[t], %w in (t) : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
      %q = sdg.add %x[t], %p[t] in (t) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %h = sdg.tanh %q[t] in (t) : (tensor<3xf64>) -> tensor<3xf64>
      %loss = sdg.sum %h[t] axes [0] in (t) : (tensor<3xf64>) -> tensor<f64>"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("body", [RECURRENT, BACKWARDS, CAUSAL_ATTENTION, WINDOW_OF_STATES, ATTENTION_OVER_STATES])
def test_through_time(body, size):
    check_gradients(program(body), {"T": size})


def test_bptt_of_a_product():
    """h[0] = w[0], h[t] = h[t - 1] * w[t], w = 2: the gradient of h[T - 1] is 8 each, of a shared w 32."""
    text = f"""
    sdg.program @p dims(t: T) where T >= 1 {{
      %w = sdg.input "w" in (t) : {S}
      %v = sdg.input "v" : {S}
      %u = sdg.mul %w[t], %v in (t) : ({S}, {S}) -> {S}
      %h = sdg.merge {{t = 0 : %u[0], t > 0 : %m[t]}} in (t) : ({S}, {S}) -> {S}
      %m = sdg.mul %h[t - 1], %u[t] in (t: 1 to T) : ({S}, {S}) -> {S}
      %last = sdg.reshape %h[T - 1] : ({S}) -> {S}
      %dw = sdg.grad %last wrt %w in (t) : ({S}, {S}) -> {S}
      %dv = sdg.grad %last wrt %v : ({S}, {S}) -> {S}
      sdg.output "dw" %dw[t] in (t) : {S}
      sdg.output "dv" %dv : {S}
    }}"""
    module = apply(parse(text), "sdg-autodiff")
    found = outputs(module, {"w": np.full(4, 2.0), "v": np.array(1.0)}, {"T": 4})
    assert found["dw"].tolist() == [8, 8, 8, 8]
    assert found["dv"] == 64


def test_by_the_merge_of_a_recurrence():
    """The state as a leaf: nothing flows through its own definition, so each step counts for itself."""
    text = f"""
    sdg.program @p dims(t: T) {{
      %zero = sdg.constant 1.0 : {S}
      %two = sdg.constant 2.0 : {S}
      %s = sdg.merge {{t = 0 : %zero, t > 0 : %h[t - 1]}} in (t) : ({S}, {S}) -> {S}
      %h = sdg.mul %s[t], %two in (t) : ({S}, {S}) -> {S}
      %ds = sdg.grad %h wrt %s in (t) : ({S}, {S}) -> {S}
      sdg.output "ds" %ds[t] in (t) : {S}
    }}"""
    module = apply(parse(text), "sdg-autodiff")
    assert outputs(module, {}, {"T": 3})["ds"].tolist() == [2, 2, 2]


def test_embedding_ids_accumulate():
    text = f"""
    sdg.program @p {{
      %table = sdg.input "table" : tensor<3x2xf64>
      %ids = sdg.constant dense<[0, 1, 1, 1, 2]> : tensor<5xi64>
      %rows = sdg.gather %table, %ids axis 0 : (tensor<3x2xf64>, tensor<5xi64>) -> tensor<5x2xf64>
      %loss = sdg.sum %rows axes [0, 1] : (tensor<5x2xf64>) -> {S}
      %dt = sdg.grad %loss wrt %table : ({S}, tensor<3x2xf64>) -> tensor<3x2xf64>
      sdg.output "dt" %dt : tensor<3x2xf64>
    }}"""
    module = apply(parse(text), "sdg-autodiff")
    found = outputs(module, {"table": np.ones((3, 2))}, {})
    assert found["dt"].tolist() == [[1, 1], [3, 3], [1, 1]]


def scalar_gradient(body: str, x: list[float], extent: int) -> list[float]:
    text = f"""
    sdg.program @p {{
      %x = sdg.input "x" : tensor<{extent}xf64>
      {body}
      %loss = sdg.sum %y axes [0] : (tensor<{extent}xf64>) -> {S}
      %dx = sdg.grad %loss wrt %x : ({S}, tensor<{extent}xf64>) -> tensor<{extent}xf64>
      sdg.output "dx" %dx : tensor<{extent}xf64>
    }}"""
    module = apply(parse(text.replace("{V}", f"tensor<{extent}xf64>")), "sdg-autodiff")
    return outputs(module, {"x": np.array(x)}, {})["dx"].tolist()


def test_sort_sends_weights_back():
    body = """%k = sdg.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf64>
      %s = sdg.sort %x axis 0 : ({V}) -> {V}
      %y = sdg.mul %s, %k : ({V}, {V}) -> {V}"""
    assert scalar_gradient(body, [3, 1, 2], 3) == [30, 10, 20]


def test_ties_of_maximum_are_shared():
    body = "%one = sdg.constant 1.0 : {V}\n%y = sdg.maximum %x, %one : ({V}, {V}) -> {V}"
    assert scalar_gradient(body, [0, 1, 2], 3) == [0, 0.5, 1]
    assert scalar_gradient("%y = sdg.maximum %x, %x : ({V}, {V}) -> {V}", [1], 1) == [1]


def test_ties_of_a_greatest_element_are_shared():
    body = f"%m = sdg.max %x axes [0] : ({{V}}) -> {S}\n%y = sdg.broadcast %m : ({S}) -> {{V}}"
    assert scalar_gradient(body, [2, 1, 2], 3) == [1.5, 0, 1.5]


def test_product_with_zeros():
    body = f"%m = sdg.prod %x axes [0] : ({{V}}) -> {S}\n%y = sdg.broadcast %m : ({S}) -> {{V}}"
    assert scalar_gradient(body, [2, 0, 3], 3) == [0, 18, 0]
    assert scalar_gradient(body, [0, 0, 3], 3) == [0, 0, 0]


def test_running_product_with_zeros():
    assert scalar_gradient("%y = sdg.cumprod %x axis 0 : ({V}) -> {V}", [2, 0, 3], 3) == [1, 8, 0]


def test_fully_masked_softmax_row():
    body = """%inf = sdg.constant -inf : {V}
      %masked = sdg.add %x, %inf : ({V}, {V}) -> {V}
      %y = sdg.softmax %masked axis 0 : ({V}) -> {V}"""
    assert scalar_gradient(body, [1, 2], 2) == [0, 0]


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [("log", [-1, 0, 2], [0, 0, 0.5]), ("sqrt", [-1, 0, 4], [0, 0, 0.25]), ("exp", [1000, -1000], None)],
)
def test_nothing_leaks_through_the_unselected_side(name, x, expected):
    condition = "%c = sdg.gt %x, %zero" if expected is not None else "%c = sdg.lt %x, %zero"
    extent = len(x)
    body = f"""%zero = sdg.constant 0.0 : {{V}}
      {condition} : ({{V}}, {{V}}) -> tensor<{extent}xi1>
      %f = sdg.{name} %x : ({{V}}) -> {{V}}
      %y = sdg.select %c, %f, %zero : (tensor<{extent}xi1>, {{V}}, {{V}}) -> {{V}}"""
    assert scalar_gradient(body, x, extent) == (expected or [0, 0])


def test_points_that_the_loss_does_not_use_contribute_nothing():
    """log(x[t]) is needed at t < 2 only; x[2] = 0 would give 0 * inf."""
    text = f"""
    sdg.program @p dims(t: T) where T >= 3 {{
      %x = sdg.input "x" in (t) : {S}
      %k = sdg.input "k" : {S}
      %y = sdg.mul %x[t], %k in (t) : ({S}, {S}) -> {S}
      %l = sdg.log %y[t] in (t) : ({S}) -> {S}
      %loss = sdg.sum %l[0:2] axes [0] : ({S}) -> {S}
      %dk = sdg.grad %loss wrt %k : ({S}, {S}) -> {S}
      sdg.output "dk" %dk : {S}
      sdg.output "l" %l[t] in (t) : {S}
    }}"""
    module = apply(parse(text), "sdg-autodiff")
    with np.errstate(divide="ignore"):
        found = outputs(module, {"x": np.array([1.0, 2.0, 0.0]), "k": np.array(4.0)}, {"T": 3})
    assert found["dk"] == 0.5


def test_second_derivative():
    """The gradient of the squared norm of a gradient, against torch."""
    v, s = "tensor<3xf64>", S
    text = f"""
    sdg.program @p {{
      %x = sdg.input "x" : {v}
      %t = sdg.tanh %x : ({v}) -> {v}
      %p = sdg.mul %t, %x : ({v}, {v}) -> {v}
      %inner = sdg.sum %p axes [0] : ({v}) -> {s}
      %g = sdg.grad %inner wrt %x : ({s}, {v}) -> {v}
      %g2 = sdg.mul %g, %g : ({v}, {v}) -> {v}
      %loss = sdg.sum %g2 axes [0] : ({v}) -> {s}
      sdg.output "loss" %loss : {s}
      %dx = sdg.grad %loss wrt %x : ({s}, {v}) -> {v}
      sdg.output "dx" %dx : {v}
    }}"""
    check_gradients(text, {})


def gru_text(hidden: int) -> str:
    v, m = f"tensor<{hidden}xf64>", f"tensor<{hidden}x{hidden}xf64>"

    def gate(name: str, state: str, number: int) -> str:
        return f"""
      %a{name} = sdg.contract "a,ba->b" %x[t], %wi{number} in (t) : ({v}, {m}) -> {v}
      %b{name} = sdg.contract "a,ba->b" {state}, %wh{number} in (t) : ({v}, {m}) -> {v}"""

    weights = "".join(f'\n      %w{kind}{n} = sdg.input "w{kind}{n}" : {m}' for kind in "ih" for n in range(3))
    gradients = "".join(
        f'\n      %d{key} = sdg.grad %loss wrt %{key} : ({S}, {m}) -> {m}\n      sdg.output "d{key}" %d{key} : {m}'
        for key in (f"w{kind}{n}" for kind in "ih" for n in range(3))
    )
    return f"""
    sdg.program @gru dims(t: T) {{
      %x = sdg.input "x" in (t) : {v}{weights}
      %zero = sdg.constant 0.0 : {v}
      %one = sdg.constant 1.0 : {S}
      %s = sdg.merge {{t = 0 : %zero, t > 0 : %h[t - 1]}} in (t) : ({v}, {v}) -> {v}{gate("r", "%s[t]", 0)}
      %r0 = sdg.add %ar[t], %br[t] in (t) : ({v}, {v}) -> {v}
      %r = sdg.sigmoid %r0[t] in (t) : ({v}) -> {v}{gate("z", "%s[t]", 1)}
      %z0 = sdg.add %az[t], %bz[t] in (t) : ({v}, {v}) -> {v}
      %z = sdg.sigmoid %z0[t] in (t) : ({v}) -> {v}{gate("n", "%s[t]", 2)}
      %rn = sdg.mul %r[t], %bn[t] in (t) : ({v}, {v}) -> {v}
      %n0 = sdg.add %an[t], %rn[t] in (t) : ({v}, {v}) -> {v}
      %n = sdg.tanh %n0[t] in (t) : ({v}) -> {v}
      %keep = sdg.mul %z[t], %s[t] in (t) : ({v}, {v}) -> {v}
      %take = sdg.sub %one, %z[t] in (t) : ({S}, {v}) -> {v}
      %new = sdg.mul %take[t], %n[t] in (t) : ({v}, {v}) -> {v}
      %h = sdg.add %new[t], %keep[t] in (t) : ({v}, {v}) -> {v}
      %h2 = sdg.mul %h[t], %h[t] in (t) : ({v}, {v}) -> {v}
      %loss = sdg.sum %h2[t] axes [0] in (t) : ({v}) -> {S}{gradients}
    }}"""


@pytest.mark.parametrize("size", [1, 2, 7])
def test_gru_against_torch(size):
    hidden = 4
    generator = np.random.default_rng(1)
    arrays = {f"w{kind}{n}": generator.normal(size=(hidden, hidden)) for kind in "ih" for n in range(3)}
    arrays["x"] = generator.normal(size=(size, hidden))
    module = apply(parse(gru_text(hidden)), "sdg-autodiff")
    found = outputs(module, arrays, {"T": size})
    cell = torch.nn.GRUCell(hidden, hidden, bias=False, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.tensor(np.concatenate([arrays[f"wi{n}"] for n in range(3)])))
        cell.weight_hh.copy_(torch.tensor(np.concatenate([arrays[f"wh{n}"] for n in range(3)])))
    state, loss = torch.zeros(hidden, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for row in torch.tensor(arrays["x"]):
        state = cell(row, state)
        loss = loss + (state**2).sum()
    loss.backward()
    for kind, weight in (("i", cell.weight_ih), ("h", cell.weight_hh)):
        assert weight.grad is not None
        expected = weight.grad.numpy().reshape(3, hidden, hidden)
        for n in range(3):
            np.testing.assert_allclose(found[f"dw{kind}{n}"], expected[n], rtol=1e-9, atol=1e-9)


TRAINING = f"""
    sdg.program @train dims(i: I) where I >= 1 {{
      %w0 = sdg.parameter "w" : {S}
      %b0 = sdg.parameter "b" : {S}
      %rate = sdg.constant 0.25 : {S}
      %w = sdg.merge {{i = 0 : %w0, i > 0 : %w1[i - 1]}} in (i) : ({S}, {S}) -> {S}
      %b = sdg.merge {{i = 0 : %b0, i > 0 : %b1[i - 1]}} in (i) : ({S}, {S}) -> {S}
      %y = sdg.add %w[i], %b[i] in (i) : ({S}, {S}) -> {S}
      %loss = sdg.mul %y[i], %y[i] in (i) : ({S}, {S}) -> {S}
      %dw = sdg.grad %loss wrt %w in (i) : ({S}, {S}) -> {S}
      %db = sdg.grad %loss wrt %b in (i) : ({S}, {S}) -> {S}
      %sw = sdg.mul %rate, %dw[i] in (i) : ({S}, {S}) -> {S}
      %sb = sdg.mul %rate, %db[i] in (i) : ({S}, {S}) -> {S}
      %w1 = sdg.sub %w[i], %sw[i] in (i) : ({S}, {S}) -> {S}
      %b1 = sdg.sub %b[i], %sb[i] in (i) : ({S}, {S}) -> {S}
      sdg.output "w" %w1[I - 1] : {S}
      sdg.output "loss" %loss[i] in (i) : {S}
    }}"""


def test_training_does_not_differentiate_its_own_updates():
    module = apply(parse(TRAINING), "sdg-autodiff")
    found = outputs(module, {"w": np.array(1.0), "b": np.array(0.5)}, {"I": 3})
    w, b, losses = 1.0, 0.5, []
    for _ in range(3):
        losses.append((w + b) ** 2)
        w, b = w - 0.25 * 2 * (w + b), b - 0.25 * 2 * (w + b)
    assert found["loss"].tolist() == losses
    assert found["w"] == w


def failing(body: str) -> str:
    return f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : {S}
      {body}
    }}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"""%y = sdg.input "y" in (t) : {S}
            %dx = sdg.grad %y wrt %x in (t) : ({S}, {S}) -> {S}
            sdg.output "dx" %dx[t] in (t) : {S}""",
            "%y does not depend on %x by floating-point operations",
        ),
        (
            f"""%y = sdg.stop_gradient %x[t] in (t) : ({S}) -> {S}
            %dx = sdg.grad %y wrt %x in (t) : ({S}, {S}) -> {S}
            sdg.output "dx" %dx[t] in (t) : {S}""",
            "%y does not depend on %x",
        ),
        (
            f"""%e0 = sdg.host_state @env : !sdg.token
            %e = sdg.merge {{t = 0 : %e0, t > 0 : %e1[t - 1]}} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
            %y, %e1 = sdg.host @env::@step(%x[t]) after %e[t] in (t) : ({S}, !sdg.token) -> ({S}, !sdg.token)
            %z = sdg.exp %y[t] in (t) : ({S}) -> {S}
            %dx = sdg.grad %z wrt %x in (t) : ({S}, {S}) -> {S}
            sdg.output "dx" %dx[t] in (t) : {S}""",
            "would flow through the host function @env::@step, by its argument %x",
        ),
        (
            f"""%y = sdg.mul %x[t], %d2[t] in (t) : ({S}, {S}) -> {S}
            %d1 = sdg.grad %y wrt %x in (t) : ({S}, {S}) -> {S}
            %z = sdg.mul %x[t], %d1[t] in (t) : ({S}, {S}) -> {S}
            %d2 = sdg.grad %z wrt %x in (t) : ({S}, {S}) -> {S}
            sdg.output "dx" %d1[t] in (t) : {S}""",
            "the gradients of %y and of %z need each other",
        ),
    ],
)
def test_refusals(body, message):
    module = parse(failing(body))
    with pytest.raises(PassFailedException) as caught:
        apply(module, "sdg-autodiff")
    assert message in str(caught.value)


def test_flat_ops_reach_with_the_gradient_zero():
    body = f"""%y = sdg.floor %x[t] in (t) : ({S}) -> {S}
      %dx = sdg.grad %y wrt %x in (t) : ({S}, {S}) -> {S}
      sdg.output "dx" %dx[t] in (t) : {S}"""
    module = apply(parse(failing(body)), "sdg-autodiff")
    assert outputs(module, {"x": np.ones(3)}, {"T": 3})["dx"].tolist() == [0, 0, 0]


def test_half_precision_keeps_its_type():
    h = "tensor<4xbf16>"
    text = f"""
    sdg.program @p {{
      %x = sdg.input "x" : {h}
      %f = sdg.cast %x : ({h}) -> tensor<4xf32>
      %e = sdg.tanh %f : (tensor<4xf32>) -> tensor<4xf32>
      %loss = sdg.sum %e axes [0] : (tensor<4xf32>) -> tensor<f32>
      %dx = sdg.grad %loss wrt %x : (tensor<f32>, {h}) -> {h}
      sdg.output "dx" %dx : {h}
    }}"""
    module = apply(parse(text), "sdg-autodiff")
    assert str(program_of(module).body.block.last_op.operands[0].type) == h


def test_readers_that_are_much_work_to_find_are_asked_one_by_one():
    """isl would look for minutes for what has no short form."""
    text = """sdg.program @p dims(i: I, t: T) where T >= 13 {
      %x = sdg.input "x" in (t) : tensor<f64>
      %y = sdg.exp %x[max(min(t * 3 mod 7, i * 5 mod 11), (t + i) mod 13)] in (i, t) : (tensor<f64>) -> tensor<f64>
      %g = sdg.grad %y wrt %x in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      sdg.output "loss" %y[i, t] in (i, t) : tensor<f64>
      sdg.output "dx" %g[t] in (t) : tensor<f64>
    }"""
    begin = time.process_time()
    check_gradients(text, {"I": 2, "T": 14})
    assert time.process_time() - begin < 20
