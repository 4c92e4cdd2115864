"""What has no kernel on the CPU is run in numpy, whatever stands in it; and what once had none has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir import nn
from tempo_ir.dialects import loop
from tempo_ir.lowering.kernels import loop_lower_kernels
from tempo_ir.lowering.kernels.translation import Unsupported
from tempo_ir.passes.remarks import collecting


@tp.program
def normed(norm="RMSNorm", rows=8, width=16, size=4):
    """The gradient of what is normed of a product: sums over all rows, cut in parts."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[rows, width], over=t)
    first = np.random.default_rng(0).normal(size=(width, size)).astype(np.float32)
    w = tp.parameter("w", tp.f32[width, size], first)
    y = getattr(nn, norm)(size, eps=0.1, name="n")(x @ w)
    tp.output("g", tp.grad(tp.mean(tp.tanh(y) ** 2), w))


@tp.program
def attention(heads=2, width=8):
    """A row of scores at a time, whose number grows, and a query made of what the step before gave."""
    t, _ = tp.dim("t")
    x, k, v = (tp.input(name, tp.f32[heads, width], over=t) for name in "xkv")
    before = tp.tensor("before", tp.f32[heads, width], over=t)
    score = tp.einsum("hd,nhd->hn", x + before, k[0 : t + 1])
    mixed = tp.einsum("hn,nhd->hd", tp.softmax(score), v[0 : t + 1])
    before[0] = 0.0
    before[t + 1] = tp.tanh(mixed)
    tp.output("mixed", mixed)


@tp.program
def softmax(rows=3):
    """Weights of a row whose length is known at the call."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[rows], over=t)
    tp.output("y", tp.einsum("nr,nr->r", tp.softmax(x[0 : t + 1], axis=0), x[0 : t + 1]))


@tp.program
def gated(rows=3, width=4, size=8):
    """Rows of steps and of a batch, of which an op sees more axes: they are no rows of one kernel."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[rows, width], over=t)
    draw = np.random.default_rng(0)
    w = tp.parameter("w", tp.f32[width, size], draw.normal(size=(width, size)).astype(np.float32))
    v = tp.parameter("v", tp.f32[size, 2], draw.normal(size=(size, 2)).astype(np.float32))
    h = tp.tanh(x @ w).reshape(rows, 1, size)
    y = (h * tp.softmax(h, axis=1)).reshape(rows, size) @ v
    tp.output("g", tp.grad(tp.mean(y**2), w))


PROGRAMS: dict[str, tuple[tp.Program, tuple[int, ...]]] = {
    "RMSNorm": (normed(), (8, 16)),
    "LayerNorm": (normed(norm="LayerNorm", rows=64, size=16), (64, 16)),
    "attention": (attention(), (2, 8)),
    "softmax": (softmax(), (3,)),
    "gate": (gated(), (3, 4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("in_numpy", [True, False])
def test_the_same_as_the_reference(name: str, in_numpy: bool, monkeypatch: pytest.MonkeyPatch):
    if in_numpy:

        def refused(*_: object, **__: object):
            raise Unsupported("for a test")

        monkeypatch.setattr(loop_lower_kernels, "translate", refused)
    program, shape = PROGRAMS[name]
    with collecting() as collector:
        executable, reference = tp.compile(program, cache=False), tp.compile(program, "reference")
    left = [op for op in executable.lowered.walk() if isinstance(op, loop.BodyOperation)]
    said = [remark for remark in collector.remarks if "it has no kernel, and runs in numpy" in remark.message]
    assert bool(left) == bool(said) == in_numpy
    for steps in (0, 1, 5, 70):
        draw = np.random.default_rng(steps)
        given: dict[str, Any] = {key: draw.normal(size=(steps, *shape)).astype(np.float32) for key in program.inputs}
        given |= {"T": steps, "state": executable.init(0)}
        for key, expected in reference(**given).items():
            np.testing.assert_allclose(executable(**given)[key], expected, rtol=2e-5, atol=2e-6)
