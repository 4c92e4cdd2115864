"""Mistakes in a call of a program: one message that names the argument, whatever the target."""

from __future__ import annotations

import numpy as np
import pytest

import tempo_ir as tp


@tp.program
def scan():
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    total = tp.tensor("total", tp.f32[4], over=t)
    total[0] = 0.0
    total[t + 1] = total + x
    tp.output("total", total)


@pytest.fixture(scope="module", params=["reference", "cpu"])
def executable(request):
    return tp.compile(scan(), target=request.param)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"T": 3}, "input 'x' is missing: 'scan' takes the inputs x"),
        ({}, "input 'x' is missing: 'scan' takes the inputs x"),
        ({"x": np.zeros((3, 5), np.float32)}, r"input 'x' is f32\[T, 4\], got an array of shape \(3, 5\)"),
        ({"x": np.zeros((3, 4), np.float64)}, r"input 'x' is f32\[T, 4\], got an array of float64: convert it"),
        ({"x": np.zeros((3, 4), np.float32), "T": -1}, "the bound T .* -1"),
        ({"x": np.zeros((3, 4), np.float32), "T": 2}, "T = 3.*T = 2"),
        ({"x": np.zeros((3, 4), np.float32), "y": 1}, "'y' is neither an input nor a bound"),
    ],
)
def test_message(executable, arguments, message):
    with pytest.raises(Exception, match=message) as caught:
        executable(**arguments)
    assert type(caught.value).__module__.startswith("tempo_ir.")
