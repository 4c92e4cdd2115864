"""Compiled programs with planned storage and without: the same numbers, in less memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tempo_ir
from tempo_ir.dialects import loop
from tempo_ir.index import evaluate
from tempo_ir.reference.sdg import run
from tempo_ir.runtime.executable import Executable
from tests.schedule.schedule_programs import SCHEDULABLE
from tests.schedule.schedule_support import arguments, parse

SIZES = (0, 1, 2, 3, 5, 8, 17)


@cache
def compiled(text: str, *without: str) -> Executable:
    """The executable of a program; cached, for one compile serves every size."""
    return tempo_ir.compile(ModuleOp([parse(text)]), without=without)


def call(exe: Executable, given: Mapping[str, np.ndarray], bounds: Mapping[str, int]) -> dict[str, np.ndarray]:
    """All results by name, states too."""
    state = {name: array for name, array in given.items() if name in exe.signature.parameters}
    inputs = {name: array for name, array in given.items() if name not in state}
    result = exe(**inputs, **bounds, state=state)
    return {**result, **{name: result.state[name] for name in exe.signature.states}}


def agrees(text: str, bounds: Mapping[str, int], tolerance: float = 2e-6) -> tuple[int, int]:
    """Peak bytes with and without planned storage, of calls that give the numbers of the reference."""
    program = parse(text)
    given = arguments(program, bounds)
    expected = run(program, given, bounds)
    peaks: list[int] = []
    for exe in (compiled(text), compiled(text, "loop-plan-storage")):
        for _ in range(2):  # what an earlier call has left in memory makes no difference
            actual = call(exe, given, bounds)
            for key, value in expected.items():
                np.testing.assert_allclose(
                    actual[key], value, rtol=tolerance, atol=tolerance, err_msg=f"{key} {bounds}"
                )
        peaks.append(exe.stats.peak_bytes)
    return peaks[0], peaks[1]


@pytest.mark.parametrize("name", SCHEDULABLE)
def test_the_same_numbers(name: str) -> None:
    program = parse(SCHEDULABLE[name])
    for size in (1, 4, 8):
        bounds = dict.fromkeys(program.space.params, size)
        if not evaluate(program.space.where, bounds):
            continue
        planned, plain = agrees(SCHEDULABLE[name], bounds)
        assert planned <= plain


WINDOW = """
sdg.program @window dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %k = sdg.exp %x[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %last = sdg.pad %k[max(0, t - 3):t + 1] low [0, 0] high [4 - min(t + 1, 4), 0] value 0.0 in (t) :
          (tensor<3xf32>) -> tensor<4x3xf32>
  %q = sdg.sum %k[max(0, t - 3):t + 1] axes [0] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "last" %last[t] in (t) : tensor<4x3xf32>
  sdg.output "q" %q[t] in (t) : tensor<3xf32>
}
"""


def attention(window: int) -> str:
    """Attention of each step over the last keys and values."""
    scores = f"tensor<2x?xf32, #sdg.size<min(t + 1, {window})>>"
    past = f"max(0, t - {window - 1}):t + 1"
    return f"""
sdg.program @attention dims(t: T) {{
  %x = sdg.input "x" in (t) : tensor<2x8xf32>
  %k = sdg.sin %x[t] in (t) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %v = sdg.tanh %x[t] in (t) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %score = sdg.contract "hd,nhd->hn" %x[t], %k[{past}] in (t) : (tensor<2x8xf32>, tensor<2x8xf32>) -> {scores}
  %p = sdg.softmax %score[t] axis 1 in (t) : ({scores}) -> {scores}
  %o = sdg.contract "hn,nhd->hd" %p[t], %v[{past}] in (t) : ({scores}, tensor<2x8xf32>) -> tensor<2x8xf32>
  sdg.output "o" %o[t] in (t) : tensor<2x8xf32>
}}
"""


@pytest.mark.parametrize("T", [*SIZES, 4, 18])
@pytest.mark.parametrize("window", [1, 3, 4, 8, 17])
def test_attention_over_a_window(window: int, T: int) -> None:
    agrees(attention(window), {"T": T}, 2e-5)


def ring_slots(exe: Executable) -> list[int]:
    """The slots of the rings of a compiled program."""
    (program,) = [op for op in exe.lowered.ops if isinstance(op, loop.ProgramOp)]  # pyright: ignore
    dims = [dim for op in program.walk() if isinstance(op, loop.AllocOp) for dim in op.buffer_type.dims]
    return [dim.slots for dim in dims if dim.storage == "ring"]


@pytest.mark.parametrize("T", [0, 1, 3, 4, 5, 18])
def test_rows_of_a_ring_are_read_in_order(T: int) -> None:
    agrees(WINDOW, {"T": T})
    assert ring_slots(compiled(WINDOW)) == [4]


SGD = """
sdg.program @sgd dims(i: I) {
  %x = sdg.input "x" in (i) : tensor<4xf32>
  %w0 = sdg.parameter "w" : tensor<4xf32>
  %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = sdg.sub %w[i], %x[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "w" %wI : tensor<4xf32>
}
"""
FAR = SGD.replace("%x[i] in (i) : (tensor<4xf32>, tensor<4xf32>)", "%w0 in (i) : (tensor<4xf32>, tensor<4xf32>)")


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("text", [SGD, FAR])
def test_donation(text: str, size: int) -> None:
    """A state that is donated is overwritten; one that the program reads later is not."""
    exe = compiled(text)
    inputs = {"x": np.random.default_rng(0).standard_normal((size, 4)).astype(np.float32), "I": size}
    first = np.arange(4, dtype=np.float32)
    expected = exe(**inputs, state={"w": first}).state["w"]
    assert np.array_equal(first, np.arange(4))
    given = first.copy()
    result = exe(**inputs, state={"w": given}, donate=True)
    assert np.array_equal(result.state["w"], expected)
    assert (result.state["w"] is given) == (text is SGD)
    given = first.copy()
    given.flags.writeable = False
    assert np.array_equal(exe(**inputs, state={"w": given}, donate=True).state["w"], expected)
    assert np.array_equal(given, first)


CROSSED = """
sdg.program @crossed dims(i: I) {
  %v0 = sdg.parameter "v" : tensor<4xf32>
  %w0 = sdg.parameter "w" : tensor<4xf32>
  %v = sdg.merge {i = 0 : %v0, true : %v1[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w = sdg.merge {i = 0 : %w0, true : %w1[i - 1]} in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v1 = sdg.add %v[i], %w[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = sdg.sub %v[i], %w[i] in (i) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %vI = sdg.merge {I = 0 : %v0, true : %w1[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %wI = sdg.merge {I = 0 : %w0, true : %v1[I - 1]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "v" %vI : tensor<4xf32>
  sdg.output "w" %wI : tensor<4xf32>
}
"""


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_donation_of_states_that_change_places(size: int) -> None:
    """What each becomes lies in the array of the other one, which is copied from there before it is overwritten."""
    exe, first = compiled(CROSSED), {"v": np.arange(4, dtype=np.float32), "w": np.ones(4, np.float32)}
    v, w = first.values()
    for _ in range(size):
        v, w = v + w, v - w
    for donate in (False, True):
        found = exe(I=size, state={key: array.copy() for key, array in first.items()}, donate=donate).state
        for key, expected in {"v": w if size else v, "w": v if size else w}.items():
            assert np.array_equal(found[key], expected), (key, donate)
