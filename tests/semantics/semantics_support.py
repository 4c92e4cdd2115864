"""Shared by the tests of meaning: a program on every way to run it, and all must agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

import tempo_ir as tp
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE, REQUIRED, default_pipeline
from tempo_ir.runtime.compiler import run_passes

SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)
"""The bounds that a case is run at where it allows: none, one, odd, even, around 8, past 16."""
TOLERANCE = {2: 2e-2, 4: 2e-5, 8: 1e-10}
"""Relative, and absolute near 0, by the bytes of an element."""


def optional_passes() -> list[tuple[str, ...]]:
    """Each pass on the graph that may be left out, and all of them."""
    names = sorted(set(DEFAULT_PIPELINE) - REQUIRED)
    return [*((name,) for name in names), tuple(names)]


class Everywhere:
    """A program under the interpreter, compiled for the CPU, with each pass left out, and without planned storage."""

    def __init__(self, function: Callable[..., None], **settings: Any):
        self.program = tp.program(function)(**settings)
        self.cpu = tp.compile(self.program)
        self.reference = tp.compile(self.program, target="reference")
        self.others = {"loop-plan-storage": tp.compile(self.program, without=("loop-plan-storage",))}
        seen = {self.optimised(())}
        for without in optional_passes():
            if (text := self.optimised(without)) not in seen:
                seen.add(text)
                self.others[" ".join(without)] = tp.compile(self.program, without=without)
        for executable in (self.cpu, *self.others.values()):
            executable.levels.loop.verify()
            executable.levels.lowered.verify()

    def optimised(self, without: tuple[str, ...]) -> str:
        """The graph that is scheduled; equal graphs need no second compile."""
        module = self.program.module.clone()
        run_passes(Context(), module, default_pipeline(without), {})
        return str(module)

    def __call__(self, **arguments: Any) -> tp.Result:
        """The outputs of the compiled program, once all ways of running it have given the same."""
        expected = self.reference(**arguments)
        outputs = self.cpu(**arguments)
        agree(outputs, expected, "cpu")
        for without, executable in self.others.items():
            agree(executable(**arguments), expected, f"without {without}")
        agree(self.cpu(**arguments), outputs, "the second call", exact=True)
        return outputs

    def gives(self, expected: Mapping[str, Any], **arguments: Any) -> None:
        """The outputs are these, on every way."""
        outputs = self(**arguments)
        for name, value in expected.items():
            same(outputs[name], value, name)

    def fails(self, error: type[BaseException], match: str, **arguments: Any) -> list[BaseException]:
        """Every way of running it raises this error; gives them."""
        raised: list[BaseException] = []
        for executable in (self.reference, self.cpu, *self.others.values()):
            with pytest.raises(error, match=match) as info:
                executable(**arguments)
            raised.append(info.value)
        return raised


def agree(outputs: tp.Result, expected: tp.Result, what: str, exact: bool = False) -> None:
    """The same names, types and values, states too."""
    assert outputs.keys() == expected.keys(), what
    assert outputs.state.keys() == expected.state.keys(), what
    for name, value in {**expected, **expected.state}.items():
        actual = outputs[name] if name in outputs else outputs.state[name]
        assert actual.dtype == value.dtype, (what, name)
        same(actual, value, f"{what}: {name}", exact)


def same(actual: Any, expected: Any, what: str, exact: bool = False) -> None:
    """Equal arrays; floats to rounding, unless `exact`; NaN equals NaN."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    tolerance = 0 if exact else TOLERANCE[actual.dtype.itemsize]
    wide = [array.astype(np.float64) for array in (actual, expected)]
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance, err_msg=what)


def ramp(steps: int, dtype: Any = np.float32) -> np.ndarray:
    """`a[t] = t`."""
    return np.arange(steps, dtype=dtype)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def per_step(steps: int, value: Callable[[int], Any], dtype: Any = np.float32) -> np.ndarray:
    """`value(t)` of every step."""
    return np.array([value(t) for t in range(steps)], dtype)


def refused(function: Callable[..., None], **settings: Any) -> str:
    """The text of the error that recording raises; it names a line."""
    with pytest.raises(tp.ProgramError) as raised:
        tp.program(function)(**settings)
    assert raised.value.place is not None
    return str(raised.value)
