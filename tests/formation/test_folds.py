"""Loops of which only the last values are needed run inside their kernels; others stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.index import index
from tempo_ir.lowering.formation.loop_form_kernels import LoopFormKernelsPass
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.passes.sdg_autodiff import SdgAutodiffPass
from tempo_ir.passes.sdg_reduce_domain import SdgReduceDomainPass
from tempo_ir.passes.sdg_tile import SdgTilePass
from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tests.schedule.schedule_support import arguments, parse

SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)

PREFIX = """
sdg.program @prefix dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<2x3xf32>
  %y = sdg.KIND %a[RANGE] axes [0] in (t) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  sdg.output "y" %y[t] in (t) : tensor<2x3xf32>
}
"""
POSITION = """
sdg.program @position dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %y = sdg.argmax %a[0:t + 1] axis 0 in (t) : (tensor<3xf32>) -> tensor<3xi64>
  sdg.output "y" %y[t] in (t) : tensor<3xi64>
}
"""
ATTENTION = """
sdg.program @attention dims(t: T) {
  %q = sdg.input "q" in (t) : tensor<2x3x8xf32>
  %k = sdg.input "k" in (t) : tensor<2x8xf32>
  %v = sdg.input "v" in (t) : tensor<2x4xf32>
  %now = sdg.index t in (t) : tensor<i64>
  %places = sdg.arange [0:t + 1] in (t) : tensor<?xi64, #sdg.size<t + 1>>
  %back = sdg.sub %places[t], %now[t] in (t) :
      (tensor<?xi64, #sdg.size<t + 1>>, tensor<i64>) -> tensor<?xi64, #sdg.size<t + 1>>
  %far = sdg.cast %back[t] in (t) : (tensor<?xi64, #sdg.size<t + 1>>) -> tensor<?xf32, #sdg.size<t + 1>>
  %s = sdg.contract "hgd,nhd->hgn" %q[t], %k[0:t + 1] in (t) :
      (tensor<2x3x8xf32>, tensor<2x8xf32>) -> tensor<2x3x?xf32, #sdg.size<t + 1>>
  %b = sdg.add %s[t], %far[t] in (t) : (tensor<2x3x?xf32, #sdg.size<t + 1>>, tensor<?xf32, #sdg.size<t + 1>>)
      -> tensor<2x3x?xf32, #sdg.size<t + 1>>
  %p = sdg.softmax %b[t] axis 2 in (t) :
      (tensor<2x3x?xf32, #sdg.size<t + 1>>) -> tensor<2x3x?xf32, #sdg.size<t + 1>>
  %o = sdg.contract "hgn,nhd->hgd" %p[t], %v[0:t + 1] in (t) :
      (tensor<2x3x?xf32, #sdg.size<t + 1>>, tensor<2x4xf32>) -> tensor<2x3x4xf32>
  sdg.output "o" %o[t] in (t) : tensor<2x3x4xf32>
}
"""
FOLDED = {
    "a sum": PREFIX.replace("KIND", "sum").replace("RANGE", "0:t + 1"),
    "a suffix": PREFIX.replace("KIND", "max").replace("RANGE", "t:T"),
    "a window": PREFIX.replace("KIND", "min").replace("RANGE", "max(0, t - 6):min(T, t + 3)"),
    "a mean": PREFIX.replace("KIND", "mean").replace("RANGE", "0:t + 1"),
    "every other row": PREFIX.replace("KIND", "prod").replace("RANGE", "0:t + 1:2"),
    "positions": POSITION,
    "attention": ATTENTION,
}
KEPT = {
    "every iteration is read": """
sdg.program @every dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %zero = sdg.constant 0.0 : tensor<3xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.add %s[t], %a[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "h" %h[t] in (t) : tensor<3xf32>
}
""",
    "what is carried is mixed": """
sdg.program @mixed dims(t: T, m: T + 1) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %w = sdg.parameter "w" : tensor<3x3xf32>
  %s = sdg.merge {m = 0 : %a[t], m > 0 : %h[t, m - 1]} in (t, m: 0 to t + 1)
      : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.contract "k,kn->n" %s[t, m], %w in (t, m: 0 to t) : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t, t] in (t) : tensor<3xf32>
}
""",
    "rows that overlap, of no iteration perhaps": """
sdg.program @overlap dims(t: T, m: T + 1) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %b = sdg.tanh %a[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %s = sdg.merge {m = 0 : %a[t], m > 0 : %h[t, m - 1]} in (t, m: 0 to max(1, t))
      : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %p = sdg.sum %b[m:m + 2] axes [0] in (t, m: 0 to t - 1) : (tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.add %s[t, m], %p[t, m] in (t, m: 0 to t - 1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t, max(0, t - 1)] in (t) : tensor<3xf32>
}
""",
    "rows between those that are read": """
sdg.program @gaps dims(t: T, m: T + 1) {
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %s = sdg.merge {m = 0 : %a[t], m > 0 : %h[t, m - 1]} in (t, m: 0 to t floordiv 2 + 1)
      : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.add %s[t, m], %a[2 * m] in (t, m: 0 to t floordiv 2)
      : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t, t floordiv 2] in (t) : tensor<3xf32>
}
""",
}


def tiled(text: str, tile: int, *, hoist: bool) -> ModuleOp:
    module = ModuleOp([parse(text)])
    SdgTilePass(tile=tile).apply(Context(), module)
    if hoist:
        SdgReduceDomainPass().apply(Context(), module)
    module.verify()
    return module


def formed(module: ModuleOp) -> loop.ProgramOp:
    (graph,) = module.ops
    program = schedule_program(graph)
    result = ModuleOp([program])
    LoopFormKernelsPass().apply(Context(), result)
    result.verify()
    return program


def all_of(program: loop.ProgramOp, kind: type) -> list:
    return [op for op in program.walk() if isinstance(op, kind)]


def check_numbers(text: str, program: loop.ProgramOp) -> None:
    graph = parse(text)
    for size in SIZES:
        values = arguments(graph, {"T": size})
        expected, found = run(graph, values, {"T": size}), run_loop(program, values, {"T": size})
        for key, array in expected.items():
            np.testing.assert_allclose(found[key], array, rtol=1e-5, atol=1e-6, err_msg=f"{key} at {size}")


CASES = [(name, hoist) for name in FOLDED for hoist in (False, True) if (name, hoist) != ("positions", True)]
"""The scheduler has the loops of hoisted positions the other way round: tiles outside, steps inside."""


@pytest.mark.parametrize(("name", "hoist"), CASES)
def test_a_tiled_reduction_is_one_kernel_per_step(name: str, *, hoist: bool) -> None:
    program = formed(tiled(FOLDED[name], 3, hoist=hoist))
    folds, loops = all_of(program, loop.FoldOp), all_of(program, loop.ForOp)
    assert len(folds) == 1
    steps = [op for op in loops if op.iterator == "t"]
    assert len(steps) == 1
    assert len([op for op in steps[0].body.block.ops if isinstance(op, loop.BodyOperation)]) == 1
    check_numbers(FOLDED[name], program)


@pytest.mark.parametrize("name", KEPT)
def test_other_loops_stay(name: str) -> None:
    program = formed(ModuleOp([parse(KEPT[name])]))
    assert not all_of(program, loop.FoldOp)
    check_numbers(KEPT[name], program)


SHIFTED = """
sdg.program @shifted dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<2x3xf32>
  %s = sdg.sum %a[1:t + 1] axes [0] in (t) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = sdg.max %s[t:min(T, t + 5)] axes [0] in (t) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  sdg.output "y" %y[t] in (t) : tensor<2x3xf32>
}
"""


def test_what_comes_steps_later_is_a_fold_too() -> None:
    """Its rows are those of four steps before."""
    program = formed(tiled(SHIFTED, 2, hoist=False))
    folds = all_of(program, loop.FoldOp)
    assert [fold.parent_op().writes[0].index[0] for fold in folds] == [*index("[t]"), *index("[t - 4]")]
    check_numbers(SHIFTED, program)


def drawn(text: str, size: int) -> dict[str, Array]:
    return arguments(parse(text), {"T": size})


@pytest.mark.parametrize("name", FOLDED)
def test_native_kernels(name: str) -> None:
    plain = tp.compile(ModuleOp([parse(FOLDED[name])]))
    for tile in (4, 64):
        executable = tp.compile(tiled(FOLDED[name], tile, hoist=True))
        for size in (*SIZES, 1025):
            values = drawn(FOLDED[name], size)
            expected, found = plain(**values, T=size), executable(**values, T=size)
            for key, array in expected.items():
                np.testing.assert_allclose(found[key], array, rtol=2e-4, atol=1e-5, err_msg=f"{key} at {size}")


def test_triton_kernels() -> None:
    executable = tp.compile(tiled(ATTENTION, 4, hoist=True), target="triton-interpret")
    values = drawn(ATTENTION, 6)
    expected = run(parse(ATTENTION), values, {"T": 6})
    np.testing.assert_allclose(executable(**values, T=6)["o"], expected["o"], rtol=1e-5, atol=1e-6)


WEIGHTED = """
sdg.program @weighted dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f64>
  %w = sdg.input "w" in (t) : tensor<f64>
  %s = sdg.sum %a[0:t + 1] axes [0] in (t) : (tensor<f64>) -> tensor<f64>
  %loss = sdg.mul %s[t], %w[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %da = sdg.grad %loss wrt %a in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "loss" %loss[t] in (t) : tensor<f64>
  sdg.output "da" %da[t] in (t) : tensor<f64>
}
"""


def test_gradients_of_many_tiles() -> None:
    module = ModuleOp([parse(WEIGHTED)])
    SdgAutodiffPass().apply(Context(), module)
    SdgTilePass(tile=64).apply(Context(), module)
    module.verify()
    executable = tp.compile(module)
    for size in (0, 1, 4, 64, 65, 1025):
        a, w = np.arange(size, dtype=np.float64), np.arange(1, size + 1, dtype=np.float64)
        found = executable(a=a, w=w, T=size)
        np.testing.assert_allclose(found["loss"], np.cumsum(a) * w, rtol=1e-12)
        np.testing.assert_allclose(found["da"], np.cumsum(w[::-1])[::-1], rtol=1e-12)
    assert list(executable(a=np.zeros(4), w=np.arange(1.0, 5), T=4)["da"]) == [10, 9, 7, 4]


def doubled_and_cut(g: tp.Tensor, w: tp.Tensor, x: tp.Tensor) -> tp.Tensor:
    return tp.clip(tp.split(g @ w, 2, axis=1)[0] + x, -1.0, 1.0)


STEPS: dict[str, tuple[bool, Callable[[tp.Tensor, tp.Tensor, tp.Tensor], tp.Tensor]]] = {
    "in place": (True, lambda g, w, x: tp.tanh(g * 0.5 + x)),
    "beside a sum over what is read": (True, lambda g, w, x: g * 0.5 + tp.sum(x * 2.0, axis=1, keepdims=True)),
    "a part of a product": (False, doubled_and_cut),
    "over a sum": (False, lambda g, w, x: g / (1.0 + tp.sum(g * g, axis=1, keepdims=True)) + x),
    "a softmax": (False, lambda g, w, x: tp.softmax(g + x, axis=1)),
    "turned on": (False, lambda g, w, x: tp.concat(tp.split(g, (1, 5), axis=1)[::-1], axis=1) * 0.5 + x),
    "backwards": (False, lambda g, w, x: tp.reverse(g, axis=1) * 0.5 + x),
    "moved up": (False, lambda g, w, x: tp.pad(tp.split(g, (1, 5), axis=1)[1], 0, 1, axis=1) * 0.5 + x),
    "less the first": (False, lambda g, w, x: g * 0.5 - tp.split(g, 6, axis=1)[0] + x),
    "the rows' greatest": (False, lambda g, w, x: g * 0.5 - tp.max(g, axis=0) + x),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_block_is_made_of_that_block_alone(name: str) -> None:
    """Else the loop stays one, of kernels: none is left to numpy."""
    folded, step = STEPS[name]

    @tp.program
    def last():
        t, T = tp.dim("t")
        x, first = tp.input("x", tp.f32[5, 6], over=t), tp.input("first", tp.f32[5, 6])
        w = tp.input("w", tp.f32[6, 12])
        g = tp.tensor("g", tp.f32[5, 6], over=t)
        g[0] = first
        g[t + 1] = step(g, w, x)
        tp.output("s", tp.tanh(g[T - 1]))

    executable, reference = tp.compile(last(), cache=False), tp.compile(last(), "reference")
    assert not all_of(executable.lowered, loop.BodyOperation)
    assert bool(all_of(executable.lowered, loop.ForOp)) != folded
    for steps in (1, 2, 3, 17, 70):
        draw = np.random.default_rng(steps)
        shapes = {"x": (steps, 5, 6), "first": (5, 6), "w": (6, 12)}
        given = {key: draw.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}
        np.testing.assert_allclose(executable(**given)["s"], reference(**given)["s"], rtol=2e-5, atol=2e-6)
