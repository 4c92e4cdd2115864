"""Launches side by side: what one kernel computes of several, in Triton's interpreter, and who may join whom."""

from __future__ import annotations

import numpy as np

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.triton.interpreter import run_interpreted
from tempo_ir.lowering.triton.module import kernel_sources
from tempo_ir.runtime.compiler import lower, module_of, run_passes
from tempo_ir.tools.parsing import own_context, parse_module


@tp.program
def products():
    """Products of grids (2, 3), (2) and (1, 2), the second with fewer warps, and one that reads the first."""
    x, y = tp.input("x", tp.f32[20, 33]), tp.input("y", tp.f32[100, 33])
    z, w = tp.input("z", tp.f32[33, 130]), tp.input("w", tp.f32[100, 5])
    first = tp.einsum("mk,nk->mn", x, y)
    tp.output("first", first)
    tp.output("second", tp.einsum("k,kn->n", x[0], z))
    tp.output("third", tp.einsum("mk,kn->mn", y[:16], z))
    tp.output("fourth", tp.einsum("mk,kn->mn", first, w))


def launched(within) -> list[str]:
    """The kernels of the launches in an operation, in their order."""
    return [op.kernel.root_reference.data for op in within.walk() if isinstance(op, loop.LaunchOp)]


def test_the_programs_of_a_joined_kernel_are_those_of_its_members():
    module = lower(module_of(products()), "triton-interpret").lowered
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    assert sorted(launched(module)) == sorted(kernel.sym_name.data for kernel in kernels)
    assert len(kernels) == 3  # the one of a row has programs of fewer warps
    (joined,) = [kernel for kernel in kernels if "_and_" in kernel.sym_name.data]
    random = np.random.default_rng(0)
    shapes = {"x": (20, 33), "y": (100, 33), "z": (33, 130), "w": (100, 5)}
    given = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    got = run_interpreted(module, given, {})
    x, y, z, w = (given[name].astype(np.float64) for name in "xyzw")
    expected = {"first": x @ y.T, "second": x[0] @ z, "third": y[:16] @ z, "fourth": x @ y.T @ w}
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-4, err_msg=name)
    assert joined.grid.data[0] > 2


def test_no_mask_is_added_where_programs_are_counted_anew():
    """A member's programs are known to be no more than it has: extents that its blocks divide need no masks."""
    text = next(source.text for source in kernel_sources(lower(module_of(even()), "sm_90").lowered))
    assert "mask=" not in text
    assert text.count("tl.store(") == 3


@tp.program
def even():
    x = tp.input("x", tp.f32[64])
    for name, columns in {"a": 128, "b": 256, "c": 64}.items():
        tp.output(name, tp.einsum("k,kn->n", x, tp.input(f"w{name}", tp.f32[64, columns])))


@tp.program
def updates(count=20, width=64):
    """So many parameters of one loss, each updated by itself."""
    from tempo_ir import optim

    i, _I = tp.dim("i")
    weights = [tp.state(f"w{number}", tp.f32[width], steps=i) for number in range(count)]
    loss = tp.sum(sum(weights[1:], weights[0]) ** 2)
    optim.Adam(0.5).minimize(loss, weights)


def test_updates_of_many_parameters_are_few_launches():
    module = lower(module_of(updates()), "sm_90", ("loop-persist",)).lowered
    (steps,) = [op for op in module.walk() if isinstance(op, loop.ForOp)]
    assert [name for name in launched(steps) if name.startswith("sqrt_kernels")] == ["sqrt_kernels"]
    assert len(launched(steps)) == 3


LAUNCHES = """
loop.program @copies dims() {
  %x = loop.input "x" : !loop.buffer<8xf32>
  %y = loop.input "y" : !loop.buffer<8xf32>
  %b = loop.output "b" : !loop.buffer<8xf32>
  %a = loop.alloc : !loop.buffer<8xf32>
  loop.launch @copy(%x, %a)
  loop.launch @copy(%a, %b)
  loop.launch @copy(%y, %b)
}
tile.kernel @copy(%x: !tile.ptr<f32>, %a: !tile.ptr<f32>) grid [] {
  %z = tile.const 0 : index -> index
  %v = tile.view %x[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %l = tile.load %v[%z] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %w = tile.view %a[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %l, %w[%z] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
"""


def test_a_launch_stays_behind_one_that_it_has_to_wait_for():
    """The third one could join the first, but for the second, which writes what it writes."""
    module = parse_module(own_context(), LAUNCHES, "launches.mlir")
    run_passes(own_context(), module, ["loop-join-siblings"], {}, {"target": "sm_90"})
    assert launched(module) == ["copy", "copy", "copy"]
