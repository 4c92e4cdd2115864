"""The interpreter of sdg programs on programs whose answers are arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from reference_support import interpret

from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.errors import ExecutionError

equal = np.testing.assert_array_equal
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)


def counting(size: int) -> Array:
    """`a[t] = t`."""
    return np.arange(size, dtype=np.float32)


def reading(entry: str, where: str = "") -> str:
    """A program that sums `a` over a slice, or copies a point, at each t."""
    if ":" not in entry:
        return f"""
        sdg.program @p dims(t: T) {where} {{
          %a = sdg.input "a" in (t) : tensor<f32>
          sdg.output "y" %a[{entry}] in (t) : tensor<f32>
        }}"""
    return f"""
    sdg.program @p dims(t: T) {where} {{
      %a = sdg.input "a" in (t) : tensor<f32>
      %y = sdg.sum %a[{entry}] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
      sdg.output "y" %y[t] in (t) : tensor<f32>
    }}"""


READS: dict[str, Callable[[Array, int, int], float]] = {
    "0:t + 1": lambda a, t, T: a[0 : t + 1].sum(),
    "t:T": lambda a, t, T: a[t:T].sum(),
    "max(0, t - 2):t + 1": lambda a, t, T: a[max(0, t - 2) : t + 1].sum(),
    "t:min(t + 3, T)": lambda a, t, T: a[t : min(t + 3, T)].sum(),
    "0:T:3": lambda a, t, T: a[0:T:3].sum(),
    "t:t + 1": lambda a, t, T: a[t],
    "t:t": lambda a, t, T: 0,
    "t mod 2": lambda a, t, T: a[t % 2],
    "t floordiv 2": lambda a, t, T: a[t // 2],
    "T - 1 - t": lambda a, t, T: a[T - 1 - t],
    "T - 1": lambda a, t, T: a[-1],
    "min(t + 3, T - 1)": lambda a, t, T: a[min(t + 3, T - 1)],
    "0": lambda a, t, T: a[0],
}


@pytest.mark.parametrize("entry", READS)
def test_reads(entry: str):
    needs_two = entry == "t mod 2"
    for size in SIZES:
        if needs_two and size < 2:
            continue
        a = counting(size)
        where = "where T >= 2" if needs_two else ""
        result = interpret(reading(entry, where), {"T": size}, {"a": a})["y"]
        equal(result, np.array([READS[entry](a, t, size) for t in range(size)], np.float32))


def test_indexing_over_two_dims():
    x = np.arange(2 * 6 * 3, dtype=np.float32).reshape(6, 2, 3)
    outputs = interpret(
        """
        sdg.program @p dims(a: A, b: B) where A >= 5 and B >= 2 {
          %x = sdg.input "x" in (a, b) : tensor<3xf32>
          sdg.output "row" %x[0, b] in (b) : tensor<3xf32>
          sdg.output "one" %x[0, 1] : tensor<3xf32>
          sdg.output "first" %x[0:5, b] in (b) : tensor<3xf32>
          sdg.output "both" %x[0:A, 0:B] : tensor<3xf32>
          %sum = sdg.sum %x[0:a + 1, b] axes [0] in (a, b) : (tensor<3xf32>) -> tensor<3xf32>
          sdg.output "sum" %sum[a, b] in (a, b) : tensor<3xf32>
        }""",
        {"A": 6, "B": 2},
        {"x": x},
    )
    equal(outputs["row"], x[0])
    equal(outputs["one"], x[0, 1])
    equal(outputs["first"], x[0:5].swapaxes(0, 1))
    equal(outputs["both"], x)
    equal(outputs["sum"], np.cumsum(x, axis=0))


RECURRENCES = """
sdg.program @p dims(t: T) {
  %zero = sdg.constant 0.0 : tensor<f32>
  %one = sdg.constant 1.0 : tensor<f32>
  %two = sdg.constant 2.0 : tensor<f32>
  %half = sdg.constant 0.5 : tensor<f32>
  %x = sdg.merge {t = 0 : %zero, t > 0 : %n[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %d = sdg.mul %x[t], %two in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %n = sdg.add %d[t], %one in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %f = sdg.merge {t = 0 : %zero, t = 1 : %one, t > 1 : %s[t]} in (t) :
      (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %s = sdg.add %f[t - 1], %f[t - 2] in (t: 2 to T) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %c = sdg.merge {t < 3 : %one, t < 5 : %two, t >= 5 : %c1[t - 1]} in (t) :
      (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %c1 = sdg.add %c[t], %one in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %r = sdg.input "r" in (t) : tensor<f32>
  %g = sdg.merge {t = T - 1 : %r[t], t < T - 1 : %g1[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %gh = sdg.mul %half, %g[t + 1] in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g1 = sdg.add %r[t], %gh[t] in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "double" %x[t] in (t) : tensor<f32>
  sdg.output "fibonacci" %f[t] in (t) : tensor<f32>
  sdg.output "cases" %c[t] in (t) : tensor<f32>
  sdg.output "backwards" %g[t] in (t) : tensor<f32>
}"""


def test_recurrences():
    outputs = interpret(RECURRENCES, {"T": 10}, {"r": np.arange(1, 11, dtype=np.float32)})
    equal(outputs["double"], [0, 1, 3, 7, 15, 31, 63, 127, 255, 511])
    equal(outputs["fibonacci"], [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
    equal(outputs["cases"], [1, 1, 1, 2, 2, 3, 4, 5, 6, 7])
    four = interpret(RECURRENCES, {"T": 4}, {"r": np.arange(1, 5, dtype=np.float32)})
    equal(four["backwards"], [3.25, 4.5, 5, 4])
    assert interpret(RECURRENCES, {"T": 0}, {"r": counting(0)})["double"].shape == (0,)


def test_a_recurrence_needs_no_deep_recursion():
    size = 1200  # beyond the depth to which Python recurses
    outputs = interpret(RECURRENCES, {"T": size}, {"r": counting(size) * 0})
    assert outputs["backwards"].shape == (size,)


def test_an_odometer_over_two_dims():
    text = """
    sdg.program @p dims(i: I, t: T) where T >= 1 {
      %one = sdg.constant 1.0 : tensor<f32>
      %x = sdg.merge {i = 0 and t = 0 : %one, t > 0 : %n[i, t - 1], i > 0 : %n[i - 1, T - 1]} in (i, t) :
          (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %n = sdg.add %x[i, t], %one in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      sdg.output "x" %x[i, t] in (i, t) : tensor<f32>
    }"""
    equal(interpret(text, {"I": 3, "T": 3})["x"], np.arange(1, 10).reshape(3, 3))


def test_a_state_is_carried_and_returned():
    text = """
    sdg.program @p dims(i: I) {
      %w0 = sdg.parameter "w" : tensor<f64>
      %rate = sdg.constant 0.5 : tensor<f64>
      %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %step = sdg.mul %w[i], %rate in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %w1 = sdg.sub %w[i], %step[i] in (i) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %last = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<f64>, tensor<f64>) -> tensor<f64>
      sdg.output "w" %last : tensor<f64>
      sdg.output "trace" %w[i] in (i) : tensor<f64>
    }"""
    outputs = interpret(text, {"I": 4}, {"w": 1.0})
    equal(outputs["trace"], [1, 0.5, 0.25, 0.125])
    assert outputs["w"] == 0.0625
    assert interpret(text, {"I": 0}, {"w": 1.0})["w"] == 1.0


HOSTS = """
sdg.program @p dims(t: T) {
  %state = sdg.host_state @env : !sdg.token
  %before = sdg.merge {t = 0 : %state, t > 0 : %after[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %i = sdg.index t in (t) : tensor<i64>
  %v, %w, %after = sdg.host @env::@step(%i[t]) after %before[t] in (t) :
      (tensor<i64>, !sdg.token) -> (tensor<f32>, tensor<2xi1>, !sdg.token)
  %u = sdg.add %v[t], %v[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "u" %u[T - 1 - t] in (t) : tensor<f32>
}"""


class Environment:
    """Counts its calls; `fail` is the step at which it raises, `result` replaces what it returns."""

    def __init__(self, fail: int = -1, result: object = None):
        self.calls: list[int] = []
        self.fail, self.result = fail, result

    def step(self, i: Array) -> object:
        self.calls.append(int(i))
        assert not i.flags.writeable
        if int(i) == self.fail:
            raise KeyError("broken")
        return self.result or (np.float32(10 * i), [True, False])


def test_host_calls_run_once_in_order():
    made: list[Environment] = []

    def make() -> Environment:
        made.append(Environment())
        return made[-1]

    equal(interpret(HOSTS, {"T": 4}, hosts={"env": make})["u"], [60, 40, 20, 0])
    equal(interpret(HOSTS, {"T": 0}, hosts={"env": make})["u"], [])
    assert [it.calls for it in made] == [[0, 1, 2, 3], []]


def test_an_exception_of_a_host_passes_with_op_and_point():
    with pytest.raises(KeyError, match="broken") as raised:
        interpret(HOSTS, {"T": 4}, hosts={"env": lambda: Environment(fail=2)})
    assert "raised by @env::@step, in sdg.host at t = 2" in raised.value.__notes__[0]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((1.0,), "returned 1 values, expected 2"),
        (3, "returned int, expected a tuple of 2"),
        ((np.zeros(3), [True, True]), r"returned float64 of shape \(3,\) as result #0, expected float32 of shape \(\)"),
        ((1.0, [1.5, 2.5]), "as result #1, expected bool"),
    ],
)
def test_results_of_a_host_are_checked(result: object, message: str):
    with pytest.raises(ExecutionError, match=message):
        interpret(HOSTS, {"T": 1}, hosts={"env": lambda: Environment(result=result)})


def test_a_host_that_is_missing():
    with pytest.raises(ExecutionError, match="there is no host object @env; given are @other"):
        interpret(HOSTS, {"T": 1}, hosts={"other": Environment})
    with pytest.raises(ExecutionError, match="has no method step"):
        interpret(HOSTS, {"T": 1}, hosts={"env": object})


def test_readers_of_one_random_op_agree_and_dims_count_on():
    text = """
    sdg.program @p dims(t: T) {
      %r = sdg.random uniform id 1 in (t) : tensor<3xf32>
      %s = sdg.random uniform id 2 in (t) : tensor<3xf32>
      %i = sdg.index 2 * t in (t) : tensor<i64>
      sdg.output "r" %r[t] in (t) : tensor<3xf32>
      sdg.output "again" %r[T - 1 - t] in (t) : tensor<3xf32>
      sdg.output "s" %s[t] in (t) : tensor<3xf32>
      sdg.output "i" %i[t] in (t) : tensor<i64>
    }"""
    whole = interpret(text, {"T": 6}, seed=3)
    equal(whole["r"], whole["again"][::-1])
    assert not np.any(whole["r"] == whole["s"])
    rest = interpret(text, {"T": 4}, seed=3, start={"t": 2})
    equal(rest["r"], whole["r"][2:])
    equal(rest["i"], whole["i"][2:])
    assert not np.any(interpret(text, {"T": 6}, seed=4)["r"] == whole["r"])


@pytest.mark.parametrize(
    ("bounds", "arguments", "message"),
    [
        ({}, {"a": counting(3)}, "the bound T has no value"),
        ({"T": -1}, {"a": counting(3)}, "the bound T is -1: a bound is at least 0"),
        ({"T": 3}, {}, 'input "a" is missing; given are none'),
        ({"T": 3}, {"a": counting(4)}, r'input "a" has shape \(4,\), expected \(3,\)'),
        ({"T": 3}, {"a": np.array(["x"] * 3)}, 'input "a" is of dtype <U1'),
        ({"T": 1}, {"a": counting(1)}, "the program is declared for `T >= 2`, which fails for T = 1"),
    ],
)
def test_what_the_caller_gives_is_checked(bounds: dict[str, int], arguments: dict[str, Array], message: str):
    with pytest.raises(ExecutionError, match=message):
        interpret(reading("t mod 2", "where T >= 2"), bounds, arguments)


def test_a_slice_may_be_empty():
    text = """
    sdg.program @p dims(t: T) {
      %a = sdg.input "a" in (t) : tensor<2xf32>
      %b = sdg.neg %a[t] in (t) : (tensor<2xf32>) -> tensor<2xf32>
      %m = sdg.max %b[0:t] axes [0] in (t) : (tensor<2xf32>) -> tensor<2xf32>
      sdg.output "m" %m[t] in (t) : tensor<2xf32>
    }"""
    a = np.arange(6, dtype=np.float32).reshape(3, 2)
    equal(interpret(text, {"T": 3}, {"a": a})["m"], [[-np.inf, -np.inf], [0, -1], [0, -1]])


def test_no_rows_have_the_shape_of_the_point_read():
    text = """
    sdg.program @p dims(b: B, t: T) {
      %a = sdg.input "a" in (t) : tensor<f32>
      %b = sdg.index b in (b) : tensor<i64>
      %f = sdg.cast %b[b] in (b) : (tensor<i64>) -> tensor<f32>
      %x = sdg.add %a[0:t + 1], %f[b] in (b, t) : (tensor<f32>, tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
      %s = sdg.slice %x[0:B, T - t - 1] take [0:B, 0:T - t] in (t) :
          (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<?x?xf32, #sdg.size<B, max(0, T - t)>>
      %y = sdg.sum %s[t] axes [0, 1] in (t) : (tensor<?x?xf32, #sdg.size<B, max(0, T - t)>>) -> tensor<f32>
      sdg.output "y" %y[t] in (t) : tensor<f32>
    }"""
    for rows in (0, 2):
        found = interpret(text, {"B": rows, "T": 3}, {"a": counting(3)})["y"]
        equal(
            found, [rows * 3 + rows * (rows - 1) / 2 * 3, rows * 1 + rows * (rows - 1) / 2 * 2, rows * (rows - 1) / 2]
        )
