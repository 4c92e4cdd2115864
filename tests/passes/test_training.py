"""Whole training programs of the front end, optimised by the default pipeline, against torch in f64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from passes_support import apply, outputs, program_of

import tempo_ir as tp
from tempo_ir import optim
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE


@tp.program
def lstm(width=3, inputs=2):
    t, T = tp.dim("t")
    x = tp.input("x", tp.f64[inputs], over=t)
    wi = tp.input("wi", tp.f64[4 * width, inputs], over=())
    wh = tp.input("wh", tp.f64[4 * width, width], over=())
    h0, c0 = (tp.tensor(name, tp.f64[width], over=t) for name in ("h0", "c0"))
    gates = wi @ x + wh @ h0
    i, f, g, o = (gates[..., width * n : width * (n + 1)] for n in range(4))
    c = tp.sigmoid(f) * c0 + tp.sigmoid(i) * tp.tanh(g)
    h = tp.sigmoid(o) * tp.tanh(c)
    h0[0], h0[t + 1] = 0.0, h
    c0[0], c0[t + 1] = 0.0, c
    loss = tp.sum(h * h)
    for name, gradient in zip(("dwi", "dwh"), tp.grad(loss, (wi, wh)), strict=True):
        tp.output(name, gradient)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_lstm(size):
    generator = np.random.default_rng(0)
    arrays = {"x": generator.normal(size=(size, 2)), "wi": generator.normal(size=(12, 2))}
    arrays["wh"] = generator.normal(size=(12, 3))
    module = apply(lstm().module.clone(), *DEFAULT_PIPELINE)
    found = outputs(module, arrays, {"T": size})
    cell = torch.nn.LSTMCell(2, 3, bias=False, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.tensor(arrays["wi"]))
        cell.weight_hh.copy_(torch.tensor(arrays["wh"]))
    state = (torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    loss = torch.zeros((), dtype=torch.float64)
    for row in torch.tensor(arrays["x"]):
        state = cell(row, state)
        loss = loss + (state[0] ** 2).sum()
    loss.backward()
    np.testing.assert_allclose(found["dwi"], cell.weight_ih.grad.numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["dwh"], cell.weight_hh.grad.numpy(), rtol=1e-9, atol=1e-12)


@tp.program
def regression(width=4):
    i, I = tp.dim("i")
    x = tp.input("x", tp.f64[8, 3], over=i)
    y = tp.input("y", tp.f64[8, 1], over=i)
    w1, w2 = (tp.state(name, tp.f64[shape], steps=i) for name, shape in (("w1", (3, width)), ("w2", (width, 1))))
    error = tp.tanh(x @ w1[i]) @ w2[i] - y
    optim.Adam(1e-2).minimize(tp.mean(error * error), (w1, w2))


def test_adam():
    generator = np.random.default_rng(1)
    steps = 5
    x, y = generator.normal(size=(steps, 8, 3)), generator.normal(size=(steps, 8, 1))
    w1, w2 = generator.normal(size=(3, 4)), generator.normal(size=(4, 1))
    module = apply(regression().module.clone(), *DEFAULT_PIPELINE)
    keys = {op.properties["key"].data for op in program_of(module).walk() if op.name == "sdg.parameter"}
    arrays = {key: np.zeros_like(w1 if key.endswith("w1") else w2) for key in keys}
    arrays.update({"x": x, "y": y, "w1": w1, "w2": w2})
    found = outputs(module, arrays, {"I": steps})
    parameters = [torch.tensor(w1, requires_grad=True), torch.tensor(w2, requires_grad=True)]
    optimiser = torch.optim.Adam(parameters, lr=1e-2)
    for row, target in zip(torch.tensor(x), torch.tensor(y), strict=True):
        optimiser.zero_grad()
        loss = ((torch.tanh(row @ parameters[0]) @ parameters[1] - target) ** 2).mean()
        loss.backward()
        optimiser.step()
    np.testing.assert_allclose(found["w1"], parameters[0].detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(found["w2"], parameters[1].detach().numpy(), rtol=1e-6)
