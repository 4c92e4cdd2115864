"""Loop programs with planned storage, compiled for the CPU, against the interpreter of loops: rings, guards, loops
that end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from tempo_ir.dialects.loop import Loop, ProgramOp
from tempo_ir.dialects.sdg import Sdg
from tempo_ir.lowering.kernels.loop_lower_kernels import LoopLowerKernelsPass
from tempo_ir.reference.loop import run_loop
from tempo_ir.runtime.calls import Request, Workspaces
from tempo_ir.runtime.native import NativeProgram


def parsed(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Sdg, Loop):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


@cache
def compiled(text: str) -> tuple[ProgramOp, NativeProgram]:
    """The program as it is written, for the interpreter, and its native code."""
    (program,) = [op for op in parsed(text).ops if isinstance(op, ProgramOp)]
    module = parsed(text)
    LoopLowerKernelsPass().apply(Context(), module)
    module.verify()
    return program, NativeProgram.compile(module)


def agrees(text: str, arrays: Mapping[str, np.ndarray], bounds: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Native code and the interpreter give the same outputs."""
    program, native = compiled(text)
    expected = run_loop(program, arrays, bounds)
    outputs = native.execute(native.callee.frame(bounds), Request(arrays, bounds, 0, {}, {}), Workspaces())
    for name, array in expected.items():
        assert np.allclose(outputs[name], array, rtol=1e-5, atol=1e-5), (name, outputs[name], array)
    return outputs


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


WINDOW = """
loop.program @window dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 3xf32>
  %k = loop.alloc : !loop.buffer<(t: ring SLOTS) 3xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) RESULTf32>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[t]) outs(%k[t]) { loop.yield %a : tensor<3xf32> }
    loop.compute at (t = t) ins(%a = %k[max(0, t - 3):t + 1], %q = %x[t]) outs(%y[t]) {
      BODY
    }
  }
}
"""
ROWS = "tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>"
BODIES = {
    "sum": ("3x", f"%r = sdg.sum %a axes [0] : ({ROWS}) -> tensor<3xf32> loop.yield %r : tensor<3xf32>"),
    "scores": (
        "",
        f"""%s = sdg.contract "d,nd->n" %q, %a : (tensor<3xf32>, {ROWS}) -> tensor<?xf32, #sdg.size<min(t + 1,
        4)>> %p = sdg.softmax %s axis 0 : (tensor<?xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<?xf32, #sdg.size<min(t +
        1, 4)>> %c = sdg.arange [0:min(t + 1, 4)] : tensor<?xi64, #sdg.size<min(t + 1, 4)>> %f = sdg.cast %c :
        (tensor<?xi64, #sdg.size<min(t + 1, 4)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 4)>> %r = sdg.contract "n,n->"
        %p, %f :
             (tensor<?xf32, #sdg.size<min(t + 1, 4)>>, tensor<?xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<f32>
        loop.yield %r : tensor<f32>""",
    ),
    "first": ("3x", f"%r = sdg.slice %a take [0, 0:3] : ({ROWS}) -> tensor<3xf32> loop.yield %r : tensor<3xf32>"),
}


@pytest.mark.parametrize("slots", [4, 5, 7])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("T", [0, 1, 3, 4, 5, 18])
def test_a_window_in_a_ring(T: int, body: str, slots: int) -> None:
    shape, text = BODIES[body]
    program = WINDOW.replace("SLOTS", str(slots)).replace("RESULT", shape).replace("BODY", text)
    agrees(program, {"x": normal(T, 3)}, {"T": T})


@pytest.mark.parametrize("slots", [4, 5, 7])
@pytest.mark.parametrize("T", [0, 1, 3, 4, 5, 18])
def test_every_other_row_of_a_window_in_a_ring(T: int, slots: int) -> None:
    body = BODIES["sum"][1].replace("min(t + 1, 4)", "(min(t + 1, 4) + 1) floordiv 2")
    program = WINDOW.replace("SLOTS", str(slots)).replace("RESULT", "3x").replace("BODY", body)
    agrees(program.replace(":t + 1], %q", ":t + 1:2], %q"), {"x": normal(T, 3)}, {"T": T})


@pytest.mark.parametrize("T", [0, 1, 5, 18])
def test_a_window_in_a_ring_keeps_its_order(T: int) -> None:
    agrees(
        """
        loop.program @window dims(t: T) {
          %x = loop.input "x" : !loop.buffer<(t: full) 3xf32>
          %k = loop.alloc : !loop.buffer<(t: ring 4) 3xf32>
          %s = loop.alloc : !loop.buffer<?x3xf32, [4]>
          %y = loop.output "y" : !loop.buffer<(t: full) 3xf32>
          loop.for t = 0 to T {
            loop.compute at (t = t) ins(%a = %x[t]) outs(%k[t]) { loop.yield %a : tensor<3xf32> }
            loop.compute at (t = t) ins(%a = %k[max(0, t - 3):t + 1])
                outs(%s : tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>) {
              %r = sdg.cumsum %a axis 0 :
                   (tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>
              loop.yield %r : tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>
            }
            loop.compute at (t = t) ins(%a = %s : tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>) outs(%y[t]) {
              %r = sdg.slice %a take [0, 0:3] : (tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>) -> tensor<3xf32>
              loop.yield %r : tensor<3xf32>
            }
          }
        }
        """,
        {"x": normal(T, 3)},
        {"T": T},
    )


@pytest.mark.parametrize("T", [0, 1, 2, 5])
def test_rows_with_the_host(T: int) -> None:
    """Two buffers of the host at a time, of rows of three bytes and of six floats."""
    agrees(
        """
        loop.program @swapped dims(t: T) {
          %x = loop.input "x" : !loop.buffer<(t: full) 2x3xf32>
          %y = loop.output "y" : !loop.buffer<(t: full) 2x3xf32>
          %z = loop.output "z" : !loop.buffer<(t: full) 3xi1>
          %h = loop.alloc : !loop.buffer<2x3xf32>
          %p = loop.alloc : !loop.buffer<(t: ring 2) 3xi1>
          %h_host = loop.alloc {host} : !loop.buffer<(t: full) 2x3xf32>
          %p_host = loop.alloc {host} : !loop.buffer<(t: full) 3xi1>
          %h_back = loop.alloc : !loop.buffer<(t: ring 3) 2x3xf32>
          %p_back = loop.alloc : !loop.buffer<3xi1>
          loop.for t = 0 to T {
            loop.compute at (t = t) ins(%a = %x[t]) outs(%h) { loop.yield %a : tensor<2x3xf32> }
            loop.compute at (t = t) ins(%a = %x[t]) outs(%p[t]) {
              %s = sdg.sum %a axes [0] : (tensor<2x3xf32>) -> tensor<3xf32>
              %0 = sdg.constant 0.0 : tensor<3xf32>
              %q = sdg.gt %s, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
              loop.yield %q : tensor<3xi1>
            }
            loop.offload %p[t] to %p_host[t]
            loop.offload %h to %h_host[t]
          }
          loop.for t = T - 1 down to 0 {
            loop.fetch %h_host[t] to %h_back[t]
            loop.fetch %p_host[t] to %p_back
            loop.compute at (t = t) ins(%a = %h_back[t]) outs(%y[t]) { loop.yield %a : tensor<2x3xf32> }
            loop.compute at (t = t) ins(%a = %p_back) outs(%z[t]) { loop.yield %a : tensor<3xi1> }
          }
        }
        """,
        {"x": normal(T, 2, 3)},
        {"T": T},
    )


@pytest.mark.parametrize("T", [0, 2, 3, 9])
def test_downwards_with_steps_and_guards(T: int) -> None:
    agrees(
        """
        loop.program @guards dims(t: T) {
          %x = loop.input "x" : !loop.buffer<(t: full) f32>
          %y = loop.output "y" : !loop.buffer<(t: full) f32>
          %z = loop.output "z" : !loop.buffer<(t: full) f32>
          loop.for t = T - 1 down to 0 {
            loop.if t > 1 and t < T - 1 or t = 0 {
              loop.compute at (t = t) ins(%a = %x[t]) outs(%y[t]) { loop.yield %a : tensor<f32> }
            } else {
              loop.compute at (t = t) ins(%a = %x[(t + 1) mod 2]) outs(%y[t]) {
                %r = sdg.neg %a : (tensor<f32>) -> tensor<f32>
                loop.yield %r : tensor<f32>
              }
            }
          }
          loop.for t = T - 1 down to 0 step 3 {
            loop.compute at (t = t) ins(%a = %x[t]) outs(%z[t]) { loop.yield %a : tensor<f32> }
          }
        }
        """,
        {"x": normal(T)},
        {"T": T},
    )


@pytest.mark.parametrize("stop", [0, 3, 8, 20])
def test_a_loop_that_ends_by_its_data(stop: int) -> None:
    outputs = agrees(
        """
        loop.program @until dims(t: T) {
          %x = loop.input "x" : !loop.buffer<(t: full) f32>
          %limit = loop.input "limit" : !loop.buffer<f32>
          %done = loop.alloc : !loop.buffer<i1>
          %y = loop.output "y" : !loop.buffer<(t: full) f32>
          loop.for t = 0 to T until %done {
            loop.compute at (t = t) ins(%a = %x[t]) outs(%y[t]) { loop.yield %a : tensor<f32> }
            loop.compute at (t = t) ins(%a = %x[t], %b = %limit) outs(%done) {
              %r = sdg.ge %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
              loop.yield %r : tensor<i1>
            }
          }
        }
        """,
        {"x": np.arange(1, 10, dtype=np.float32), "limit": np.array(stop + 1, np.float32)},
        {"T": 9},
    )
    assert np.count_nonzero(outputs["y"]) == min(stop + 1, 9)


RINGS = """
loop.program @rings dims(t: T) {
  %x = loop.input "x" : !loop.buffer<(t: full) 3xf32>
  %k = loop.alloc : !loop.buffer<(t: ring 4) 3xf32>
  %v = loop.alloc : !loop.buffer<(t: ring 4) 3xf32>
  %y = loop.output "y" : !loop.buffer<(t: full) RESULT>
  loop.for t = 0 to T {
    loop.compute at (t = t) ins(%a = %x[t]) outs(%k[t]) { loop.yield %a : tensor<3xf32> }
    loop.compute at (t = t) ins(%a = %x[t]) outs(%v[t]) {
      %r = sdg.exp %a : (tensor<3xf32>) -> tensor<3xf32>
      loop.yield %r : tensor<3xf32>
    }
    loop.kernel at (t = t) ins(%a = %k[max(0, t - 3):t + 1], %b = %v[max(0, t - 3):t + 1],
        %c = %x[max(0, t - 3):t + 1]) outs(%y[t]) {
      BODY
      loop.yield %r : tensor<RESULT>
    }
  }
}
"""
WINDOWED = "tensor<?x3xf32, #sdg.size<min(t + 1, 4)>>"
WEIGHTS = "tensor<?xf32, #sdg.size<min(t + 1, 4)>>"
READ_TOGETHER = {
    "both": ("3xf32", f'%r = sdg.contract "nd,nd->d" %a, %b : ({WINDOWED}, {WINDOWED}) -> tensor<3xf32>'),
    "memory": ("3xf32", f'%r = sdg.contract "nd,nd->d" %a, %c : ({WINDOWED}, {WINDOWED}) -> tensor<3xf32>'),
    "attention": (
        "3xf32",
        f"""%q = sdg.constant 1.0 : tensor<3xf32>
      %s = sdg.contract "d,nd->n" %q, %a : (tensor<3xf32>, {WINDOWED}) -> {WEIGHTS}
      %p = sdg.softmax %s axis 0 : ({WEIGHTS}) -> {WEIGHTS}
      %r = sdg.contract "n,nd->d" %p, %b : ({WEIGHTS}, {WINDOWED}) -> tensor<3xf32>""",
    ),
    "positions": (
        "3xf32",
        f"""%i = sdg.arange [0:min(t + 1, 4)] : tensor<?xi64, #sdg.size<min(t + 1, 4)>>
      %f = sdg.cast %i : (tensor<?xi64, #sdg.size<min(t + 1, 4)>>) -> {WEIGHTS}
      %r = sdg.contract "n,nd->d" %f, %b : ({WEIGHTS}, {WINDOWED}) -> tensor<3xf32>""",
    ),
    "reversed": (
        "3xf32",
        f"""%z = sdg.reverse %a axis 0 : ({WINDOWED}) -> {WINDOWED}
      %m = sdg.mul %z, %b : ({WINDOWED}, {WINDOWED}) -> {WINDOWED}
      %r = sdg.sum %m axes [0] : ({WINDOWED}) -> tensor<3xf32>""",
    ),
    "first": ("3xi64", f"%r = sdg.argmax %a axis 0 : ({WINDOWED}) -> tensor<3xi64>"),
}


@pytest.mark.parametrize("body", READ_TOGETHER)
@pytest.mark.parametrize("T", [0, 1, 3, 4, 5, 18])
def test_windows_of_rings_in_one_kernel(T: int, body: str) -> None:
    shape, text = READ_TOGETHER[body]
    agrees(RINGS.replace("RESULT", shape).replace("BODY", text), {"x": normal(T, 3)}, {"T": T})
