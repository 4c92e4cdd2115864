"""Every op and ten kernels of deep learning compiled ahead of time for GPUs, types asserted as they are compiled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import INDEX, UI8, UI32, PointerType, ReduceKind, is_float
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.triton.compiling import TritonCompileError, compile_kernels
from tempo_ir.lowering.triton.machines import UnknownMachineError, machine_of
from tempo_ir.lowering.triton.printer import print_kernel
from tempo_ir.lowering.triton.style import KernelSource, Style
from tests.triton.test_kernels import CASES

CHECKED = Style(checked=True)
FLOATS = (f16, bf16, f32, f64)
INTEGERS = (i8, i16, i32, i64, UI8, UI32)


def elementwise(element) -> KernelOp:
    """Every elementwise op of an element type, and casts from it to every other."""
    k = KernelBuilder(f"elementwise_{element}", {"x": PointerType(element), "s": PointerType(element)})
    view = k.view(k["x"], [64])
    x, y, s = k.load(view, (0, 64)), k.load(view, (0, 64)), k.load(k.view(k["s"], []))
    unary = (ew.NegOp, ew.AbsOp, ew.SignOp, *(ew.FLOAT_UNARY if is_float(element) else (ew.NotOp,)))
    binary = (*ew.BINARY, *ew.COMPARISONS) if is_float(element) else (*ew.BINARY, *ew.COMPARISONS, *ew.BITWISE)
    values = [k.apply(op, x) for op in unary]
    values += [k.apply(op, x, y) for op in binary if is_float(element) or op is not ew.DivOp]
    values += [k.apply(op, x, s) for op in (ew.MaxOp, ew.FloorDivOp, ew.ModOp, ew.PowOp)]
    values += [k.apply(op, x, 3) for op in (ew.AddOp, ew.MinOp, ew.FloorDivOp, ew.ModOp, ew.PowOp)]
    values += [k.select(k.apply(ew.LtOp, x, y), x, 1)]
    values += [x.to(other) for other in (i1, *FLOATS, *INTEGERS)]
    return with_results(k, values)


def with_results(k: KernelBuilder, values) -> KernelOp:
    """The kernel with a pointer for each value, written."""
    block = k._kernel.body.block  # pyright: ignore[reportPrivateUsage]
    for value in values:
        argument = block.insert_arg(PointerType(value.element), len(block.args))
        argument.name_hint = "out"
        pointer = dataclasses.replace(value, ssa=argument)
        k.store(value, k.view(pointer, list(value.shape)), *((0, n) for n in value.shape))
    return k.finish()


def combined(element) -> KernelOp:
    """Reductions, scans, dots, gathers and atomics of an element type."""
    k = KernelBuilder(f"combined_{element}", {"x": PointerType(element), "ids": PointerType(i32), "n": INDEX})
    view = k.view(k["x"], [k["n"], 32])
    x = k.load(view, (0, 32), (0, 32))
    kinds = list(ReduceKind) if element in INTEGERS else list(ReduceKind)[:6]
    values = [k.reduce(kind, x, axis) for kind in kinds for axis in (0, 1)]
    values += [k.reduce("sum", k.reduce("max", x, 0), 0)]
    values += [k.scan("sum", x, 1, True), k.scan("prod", x, 0)]
    total = {f16: f32, bf16: f32, i8: i32, i16: i32, UI8: i32}.get(element, element)
    values += [k.dot(x, x.t, k.const(0, total, [32, 32]))]
    small = k.load(view, (0, 2), (0, 32))
    values += [k.dot(small, x, k.const(1, total, [2, 32]))]
    ids = k.load(k.view(k["ids"], [8]), (0, 8))
    rows = k.gather(view, ids, (0, 32))
    values += [rows, k.load(view, (k["n"] - 5, 4), 3, other=1)]
    if element in (f32, f64, i32, i64, UI32):
        k.scatter_add(rows, view, ids, (0, 32))
        k.atomic_add(k.reduce("sum", x, 0), view, 0, (0, 32))
    k.scatter(rows, view, ids, (0, 32))
    return with_results(k, values)


def booleans() -> KernelOp:
    """What i1 has."""
    k = KernelBuilder("booleans", {"x": PointerType(i1)})
    x = k.load(k.view(k["x"], [64]), (0, 64), other=1)
    values = [k.apply(op, x, x) for op in (ew.AndOp, ew.OrOp, ew.XorOp, ew.EqOp, ew.NeOp)]
    values += [~x, k.select(x, x, 0), *(x.to(other) for other in (*FLOATS, *INTEGERS))]
    values += [k.reduce("and", x, 0).broadcast(8), k.reduce("or", x, 0).broadcast(8)]
    return with_results(k, values)


def control() -> KernelOp:
    """Loops and branches with scalars of every sort."""
    types = {"out": PointerType(f32), "rate": f32, "flag": i1, "small": i32, "n": INDEX, "seed": i32}
    k = KernelBuilder("control", types, grid=[None, 4])
    word = k.const(7, UI32)
    bits, *_ = k.philox((k["seed"], word), (k.iota(0, 64, UI32), word, word, k.program_id(0).to(UI32)))
    out = k.view(k["out"], [k["n"], 64])
    start = [k.const(1.0, f32), k.value(3), k.const(0, i32), k.const(0, i1), (bits >> 8).to(f32)]
    with k.loop(0, 8, 2, start) as outer:
        with k.loop(outer.index, k["n"], 1, outer.carried) as loop:
            x, i, j, flag, tile = loop.carried
            with k.when(flag):
                k.store(tile, out, loop.index, (0, 64))
            with k.otherwise():
                k.store(tile * 2.0, out, outer.index, (0, 64))
            loop.carry(x * k["rate"], i + loop.index % 4, j - 1, ~flag, tile + x)
        outer.carry(*loop.results[:1], outer.index, *loop.results[2:])
    k.store(outer.results[4] + outer.results[1].to(f32), out, k["n"] - 1, (0, 64))
    return k.finish()


def sources() -> list[KernelSource]:
    elements = (*FLOATS, *INTEGERS)
    kernels = [*map(elementwise, elements), *map(combined, elements), booleans(), control()]
    return [print_kernel(kernel, CHECKED) for kernel in kernels]


def deep_learning() -> list[KernelSource]:
    """The ten kernels, under names of their own."""
    found: list[KernelSource] = []
    for name, case in CASES.items():
        kernel = case(np.random.default_rng(0)).kernel
        kernel.properties["sym_name"] = type(kernel.sym_name)(name.replace(" ", "_"))
        found.append(print_kernel(kernel, CHECKED))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "gfx942"])
def test_every_op_compiles(target):
    assert len(compile_kernels(sources(), target)) == 22


@pytest.mark.parametrize("target", ["sm_80", *(pytest.param(t, marks=pytest.mark.slow) for t in ("sm_90", "gfx942"))])
def test_kernels_compile_and_fit(target):
    kernels = deep_learning()
    for name, figures in zip((kernel.name for kernel in kernels), compile_kernels(kernels, target), strict=True):
        assert figures.shared <= machine_of(target).shared, name
        assert figures.spilled == 0, name


def test_what_does_not_compile_is_named():
    source = KernelSource("broken", print_kernel(control()).text.replace("tl.load", "tl.lood"), (), frozenset())
    with pytest.raises(TritonCompileError, match="kernel broken does not compile for sm_80"):
        compile_kernels([source], "sm_80")
    with pytest.raises(UnknownMachineError, match="there is no machine 'sm_1'; use one of sm_80, sm_86, sm_89, sm_90"):
        compile_kernels([source], "sm_1")


def test_figures_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("TEMPO_IR_CACHE", str(tmp_path))
    source = print_kernel(booleans())
    first = compile_kernels([source, source], "sm_80")
    assert len(list(tmp_path.rglob("*.json"))) == 1
    assert compile_kernels([source, source], "sm_80") == first  # compile seconds and all
