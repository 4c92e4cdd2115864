"""The interpreter of loop programs: what it computes, and that it refuses wrong orders and wrong storage."""

from __future__ import annotations

import numpy as np
import pytest
from reference_support import interpret

from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.errors import ExecutionError

equal = np.testing.assert_array_equal

WINDOW = """
loop.program @p dims(t: T) {{
  %x = loop.input "x" : !loop.buffer<(t: full) 2xf32>
  %k = loop.alloc : !loop.buffer<(t: {storage}) 2xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) 2xf32>
  loop.for t = 0 to T {{
    loop.compute at (t = t) ins(%a = %x[t]) outs(%k[t]) {{
      %r = sdg.neg %a : (tensor<2xf32>) -> tensor<2xf32>
      loop.yield %r : tensor<2xf32>
    }}
    loop.kernel at (t = t) ins(%a = %k[max(0, t - 2):t + 1]) outs(%y[t]) {{
      %s = sdg.sum %a axes [0] : (tensor<?x2xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<2xf32>
      %r = sdg.neg %s : (tensor<2xf32>) -> tensor<2xf32>
      loop.yield %r : tensor<2xf32>
    }}
    {after}
  }}
}}"""


def window(size: int, storage: str = "full", after: str = "") -> Array:
    x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    return interpret(WINDOW.format(storage=storage, after=after), {"T": size}, {"x": x})["y"]


FREE = "loop.if t >= 2 { loop.free %k[t - 2] }"


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 18])
def test_a_window_in_every_storage(size: int):
    x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    expected = [x[max(0, t - 2) : t + 1].sum(0) for t in range(size)]
    for storage in ("full", "growing", "ring 3", "ring 4", "full to T + 1"):
        for after in ("", FREE):
            equal(window(size, storage, after), np.array(expected, np.float32).reshape(size, 2))


def test_a_ring_that_is_too_small():
    with pytest.raises(
        ExecutionError, match=r"%k\[0\] is read, its place in the ring holds %k\[2\], in loop.kernel at t = 2"
    ):
        window(5, "ring 2")


def test_a_read_after_the_free():
    with pytest.raises(ExecutionError, match=r"%k\[0\] is read after it was freed, in loop.kernel at t = 2"):
        window(5, "full", "loop.if t >= 1 { loop.free %k[t - 1] }")
    with pytest.raises(ExecutionError, match=r"%k\[0\] is freed after it was freed"):
        window(5, "full", FREE + FREE)
    with pytest.raises(ExecutionError, match=r"%k\[1\] is freed before it is written"):
        window(5, "full", "loop.free %k[t + 1]")


def test_a_read_before_the_write():
    text = """
    loop.program @p dims(t: T) {
      %h = loop.alloc : !loop.buffer<(t: full) f32>
      %y = loop.output "y" : !loop.buffer<(t: full) f32>
      loop.for t = 0 to T {
        loop.compute at (t = t) ins(%a = %h[t]) outs(%y[t]) { loop.yield %a : tensor<f32> }
        loop.compute at (t = t) outs(%h[t]) { %c = sdg.constant 1.0 : tensor<f32> loop.yield %c : tensor<f32> }
      }
    }"""
    with pytest.raises(ExecutionError, match=r"%h\[0\] is read before it is written, in loop.compute at t = 0"):
        interpret(text, {"T": 2})


def test_a_row_outside_of_the_buffer():
    with pytest.raises(ExecutionError, match=r"%k\[4\] is outside of the 4 rows"):
        window(5, "full to T - 1")


BACKWARDS = """
loop.program @p dims(i: I, t: T) where T >= 1 {
  %r = loop.input "r" : !loop.buffer<(t: full) f32>
  %g = loop.output "g" : !loop.buffer<(i: full, t: full) f32>
  loop.for i = 0 to I {
    loop.for t = T - 1 down to 0 {
      loop.if t = T - 1 {
        loop.compute at (i = i, t = t) ins(%a = %r[t]) outs(%g[i, t]) { loop.yield %a : tensor<f32> }
      } else {
        loop.compute at (i = i, t = t) ins(%a = %r[t], %b = %g[i, t + 1]) outs(%g[i, t]) {
          %h = sdg.constant 0.5 : tensor<f32>
          %m = sdg.mul %h, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %s = sdg.add %a, %m : (tensor<f32>, tensor<f32>) -> tensor<f32>
          loop.yield %s : tensor<f32>
        }
      }
    }
  }
}"""


def test_loops_down_and_guards():
    outputs = interpret(BACKWARDS, {"I": 2, "T": 4}, {"r": np.arange(1, 5, dtype=np.float32)})
    equal(outputs["g"], [[3.25, 4.5, 5, 4]] * 2)


HOSTS = """
loop.program @p dims(t: T) {
  %done = loop.alloc : !loop.buffer<(t: full) i1>
  %y = loop.output "y" : !loop.buffer<(t: full) i64>
  %i = loop.alloc : !loop.buffer<i64>
  loop.for t = 0 to T until %done[t] {
    loop.compute at (t = t) outs(%i) { %c = sdg.index t : tensor<i64> loop.yield %c : tensor<i64> }
    loop.host @env::@step at (t = t) ins(%i) outs(%y[t], %done[t])
  }
}"""


class Counter:
    """Doubles its argument, and says at 3 that it is done."""

    def step(self, i: Array) -> tuple[int, bool]:
        return 2 * int(i), int(i) == 3


def test_a_loop_ends_by_its_data():
    equal(interpret(HOSTS, {"T": 6}, hosts={"env": Counter})["y"], [0, 2, 4, 6, 0, 0])
    equal(interpret(HOSTS, {"T": 2}, hosts={"env": Counter})["y"], [0, 2])
    with pytest.raises(ExecutionError, match="there is no host object @env"):
        interpret(HOSTS, {"T": 2})


def test_random_numbers_count_by_the_point_of_the_op():
    leaf = "{ %r = sdg.random bits id 1 : tensor<2xi64> loop.yield %r : tensor<2xi64> }"
    text = """
    loop.program @p dims(t: T) {
      %y = loop.output "y" : !loop.buffer<(t: full) 2xi64>
      loop.for LOOP { loop.compute at (t = POINT) outs(%y[POINT]) LEAF }
    }""".replace("LEAF", leaf)
    upwards = interpret(text.replace("LOOP", "t = 0 to T").replace("POINT", "t"), {"T": 4}, seed=9)["y"]
    shifted = interpret(text.replace("LOOP", "t = 1 to T + 1").replace("POINT", "t - 1"), {"T": 4}, seed=9)["y"]
    later = interpret(text.replace("LOOP", "t = 0 to T").replace("POINT", "t"), {"T": 2}, seed=9, start={"t": 2})["y"]
    equal(upwards, shifted)
    equal(upwards[2:], later)


def test_a_row_with_an_extent_of_its_own():
    text = """
    loop.program @p dims(t: T) {
      %s = loop.alloc : !loop.buffer<?xi64, [T]>
      %y = loop.output "y" : !loop.buffer<(t: full) i64>
      loop.for t = 0 to T {
        loop.compute at (t = t) outs(%s : tensor<?xi64, #sdg.size<t + 1>>) {
          %r = sdg.arange [0:t + 1] : tensor<?xi64, #sdg.size<t + 1>>
          loop.yield %r : tensor<?xi64, #sdg.size<t + 1>>
        }
        loop.compute at (t = t) ins(%a = %s : tensor<?xi64, #sdg.size<t + 1>>) outs(%y[t]) {
          %r = sdg.sum %a axes [0] : (tensor<?xi64, #sdg.size<t + 1>>) -> tensor<i64>
          loop.yield %r : tensor<i64>
        }
      }
    }"""
    equal(interpret(text, {"T": 5})["y"], [0, 1, 3, 6, 10])


def test_compiled_kernels_are_not_interpreted():
    text = """
    loop.program @p dims(t: T) {
      %y = loop.output "y" : !loop.buffer<(t: full) f32>
      loop.launch @k(%y)[T]
    }"""
    with pytest.raises(ExecutionError, match="only the target runs compiled kernels"):
        interpret(text, {"T": 1})
