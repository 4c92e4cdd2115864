"""Programs compiled for the CPU against the reference interpreter: recurrences, windows, cases, hosts, random
numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

import tempo_ir
import tempo_ir as tp
from examples import llama
from tempo_ir.dialects import types
from tempo_ir.dialects.sdg import Sdg
from tempo_ir.reference import sdg as reference
from tempo_ir.reference.dtypes import numpy_dtype

SIZES = [0, 1, 2, 3, 5, 8, 17]


def module(text: str):
    """The module of a text of IR."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sdg)
    return Parser(context, text).parse_module()


def agrees(text: str, arguments: Mapping[str, np.ndarray], bounds: Mapping[str, int], seed: int = 0) -> dict:
    """Run the compiled program and the interpreter; they must agree. Returns the outputs."""
    parsed = module(text)
    executable = tempo_ir.compile(parsed)
    parameters = executable.signature.parameters
    state = {name: array for name, array in arguments.items() if name in parameters}
    given = {name: array for name, array in arguments.items() if name not in parameters}
    outputs = executable(**given, **bounds, state=state, seed=seed)
    (program,) = parsed.ops
    expected = reference.run(program, arguments, bounds, seed)
    for name, array in expected.items():
        actual = outputs[name] if name in outputs else outputs.state[name]
        assert actual.dtype == array.dtype
        assert actual.shape == array.shape
        if array.dtype.kind in "iub":
            assert np.array_equal(actual, array), (name, actual, array)
        else:
            assert np.allclose(actual, array, rtol=1e-5, atol=1e-5, equal_nan=True), (name, actual, array)
    return outputs


def normal(*shape: int) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("T", SIZES)
def test_running_sum(T: int) -> None:
    outputs = agrees(
        """
        sdg.program @p dims(t: T) {
          %x = sdg.input "x" in (t) : tensor<16xf32>
          %h = sdg.merge {t = 0 : %x[t], t > 0 : %s[t]} in (t) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
          %s = sdg.add %h[t - 1], %x[t] in (t: 1 to T) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
          sdg.output "h" %h[t] in (t) : tensor<16xf32>
        }
        """,
        {"x": (x := normal(T, 16))},
        {"T": T},
    )
    assert np.allclose(outputs["h"], np.cumsum(x, 0), atol=1e-5)


@pytest.mark.parametrize("T", [1, 2, 7, 70])
def test_causal_attention(T: int) -> None:
    agrees(
        """
        sdg.program @p dims(t: T) {
          %q = sdg.input "q" in (t) : tensor<2x3x8xf32>
          %k = sdg.input "k" in (t) : tensor<2x8xf32>
          %s = sdg.contract "hgd,nhd->hgn" %q[t], %k[0:t + 1] in (t) :
               (tensor<2x3x8xf32>, tensor<2x8xf32>) -> tensor<2x3x?xf32, #sdg.size<t + 1>>
          %p = sdg.softmax %s[t] axis 2 in (t) :
               (tensor<2x3x?xf32, #sdg.size<t + 1>>) -> tensor<2x3x?xf32, #sdg.size<t + 1>>
          %o = sdg.contract "hgn,nhd->hgd" %p[t], %k[0:t + 1] in (t) :
               (tensor<2x3x?xf32, #sdg.size<t + 1>>, tensor<2x8xf32>) -> tensor<2x3x8xf32>
          sdg.output "o" %o[t] in (t) : tensor<2x3x8xf32>
        }
        """,
        {"q": normal(T, 2, 3, 8), "k": normal(T, 2, 8)},
        {"T": T},
    )


@pytest.mark.parametrize("T", SIZES)
@pytest.mark.parametrize(
    "window", ["0:t + 1", "t:T", "max(0, t - 2):t + 1", "t:min(t + 3, T)", "t:t", "0:T:3", "t:t + 1"]
)
def test_windows(T: int, window: str) -> None:
    agrees(
        f"""
        sdg.program @p dims(t: T) {{
          %x = sdg.input "x" in (t) : tensor<3xf32>
          %s = sdg.sum %x[{window}] axes [0] in (t) : (tensor<3xf32>) -> tensor<3xf32>
          sdg.output "s" %s[t] in (t) : tensor<3xf32>
        }}
        """,
        {"x": normal(T, 3)},
        {"T": T},
    )


@pytest.mark.parametrize("T", [1, 2, 7])
@pytest.mark.parametrize("index", ["t mod 2", "t floordiv 2", "T - 1 - t", "min(t + 3, T - 1)", "0"])
def test_points(T: int, index: str) -> None:
    where = "where T >= 2" if "mod" in index else "where T >= 1"
    T = max(T, 2)
    agrees(
        f"""
        sdg.program @p dims(t: T) {where} {{
          %x = sdg.input "x" in (t) : tensor<f32>
          %y = sdg.exp %x[{index}] in (t) : (tensor<f32>) -> tensor<f32>
          sdg.output "y" %y[t] in (t) : tensor<f32>
        }}
        """,
        {"x": normal(T)},
        {"T": T},
    )


@pytest.mark.parametrize(("I", "T"), [(0, 3), (1, 1), (3, 4), (2, 0)])
def test_two_dims_and_slices_of_both(I: int, T: int) -> None:
    agrees(
        """
        sdg.program @p dims(i: I, t: T) {
          %x = sdg.input "x" in (i, t) : tensor<2xf32>
          %a = sdg.sum %x[i, 0:T] axes [0] in (i) : (tensor<2xf32>) -> tensor<2xf32>
          %b = sdg.sum %x[0:I, 0:T] axes [0, 1] : (tensor<2xf32>) -> tensor<2xf32>
          %c = sdg.sum %x[0:I, t] axes [0] in (t) : (tensor<2xf32>) -> tensor<2xf32>
          sdg.output "a" %a[i] in (i) : tensor<2xf32>
          sdg.output "b" %b : tensor<2xf32>
          sdg.output "c" %c[t] in (t) : tensor<2xf32>
        }
        """,
        {"x": normal(I, T, 2)},
        {"I": I, "T": T},
    )


@pytest.mark.parametrize("T", [1, 2, 9])
def test_backwards_in_time_and_a_state(T: int) -> None:
    agrees(
        """
        sdg.program @p dims(i: I, t: T) where T >= 1 {
          %r = sdg.input "r" in (t) : tensor<f32>
          %half = sdg.constant 0.5 : tensor<f32>
          %g = sdg.merge {t = T - 1 : %r[t], t < T - 1 : %s[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %m = sdg.mul %g[t + 1], %half in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %s = sdg.add %r[t], %m[t] in (t: 0 to T - 1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %w0 = sdg.parameter "w" : tensor<f32>
          %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %w1 = sdg.mul %w[i], %g[0] in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
          sdg.output "w" %wI : tensor<f32>
          sdg.output "g" %g[t] in (t) : tensor<f32>
        }
        """,
        {"r": normal(T), "w": np.float32(1.5)},
        {"T": T, "I": 3},
    )


def test_random_numbers_are_those_of_the_reference() -> None:
    text = """
        sdg.program @p dims(i: I, t: T) {
          %u = sdg.random uniform id 3 in (i, t) : tensor<5xf32>
          %b = sdg.random bits id 4 in (t) : tensor<2x3xi64>
          %n = sdg.random normal id 5 : tensor<7xf32>
          %k = sdg.index 2 * t + i in (i, t) : tensor<i64>
          sdg.output "u" %u[i, t] in (i, t) : tensor<5xf32>
          sdg.output "b" %b[t] in (t) : tensor<2x3xi64>
          sdg.output "n" %n : tensor<7xf32>
          sdg.output "k" %k[i, t] in (i, t) : tensor<i64>
        }
        """
    outputs = agrees(text, {}, {"I": 2, "T": 3}, seed=4000000000)
    executable = tempo_ir.compile(module(text))
    late = executable(I=2, T=1, seed=4000000000, start={"t": 2})
    assert np.array_equal(late["u"], outputs["u"][:, 2:])
    assert np.array_equal(late["b"], outputs["b"][2:])
    assert np.array_equal(late["k"], outputs["k"][:, 2:])
    assert not np.array_equal(executable(I=2, T=3, seed=1)["u"], outputs["u"])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64"])
def test_what_has_no_tile_form_runs_in_the_library(dtype: str) -> None:
    text = """
        sdg.program @p dims(t: T) {
          %x = sdg.input "x" in (t) : tensor<7xf32>
          %s = sdg.sort %x[t] axis 0 descending in (t) : (tensor<7xf32>) -> tensor<7xf32>
          %o = sdg.argsort %x[t] axis 0 in (t) : (tensor<7xf32>) -> tensor<7xi64>
          %c = sdg.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<7xf32>
          %y = sdg.mul %s[t], %c in (t) : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
          sdg.output "y" %y[t] in (t) : tensor<7xf32>
          sdg.output "o" %o[t] in (t) : tensor<7xi64>
        }
        """.replace("f32", dtype)
    agrees(text, {"x": normal(4, 7).astype(numpy_dtype(types.dtype(dtype)))}, {"T": 4})
    assert tempo_ir.compile(module(text)).stats.host_sites == 3


def test_memory_of_temporaries_that_are_not_live_together_is_shared() -> None:
    lines = [f"%a{n + 1} = sdg.exp %a{n} : (tensor<1024xf32>) -> tensor<1024xf32>" for n in range(9)]
    text = f"""
        sdg.program @p {{
          %a0 = sdg.input "x" : tensor<1024xf32>
          {chr(10).join(lines)}
          sdg.output "y" %a9 : tensor<1024xf32>
        }}
        """
    executable = tempo_ir.compile(module(text))
    executable(x=normal(1024) * 0 - 3)
    assert executable.stats.peak_bytes <= 2 * (4096 + 64)
    assert executable.stats.kernels == 1


def test_a_compile_does_not_depend_on_those_before_it(tmp_path: Path) -> None:
    """Questions to isl have limits, which count what is remembered of earlier ones."""
    program = llama.decode(model=str(tmp_path / "model"), window=64)
    first, second = (tp.compile(program, cache=False).ir("loop") for _ in range(2))
    assert first == second
