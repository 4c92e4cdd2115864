"""Squares of vectors turned round in registers, of every kind and width."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tempo_ir.lowering.llvm.address import Linear
from tempo_ir.lowering.llvm.engine import compile_assembly, compile_object, host_target, load_object
from tempo_ir.lowering.llvm.kernel import KernelCode, module_text
from tempo_ir.lowering.llvm.memory import Buffer, load_vector, register_layout, store_vector
from tempo_ir.lowering.llvm.shuffle import store_transposed, transpose
from tempo_ir.lowering.llvm.target import AVX2, AVX512, SSE, Target
from tempo_ir.lowering.llvm.text import Text

KINDS = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def square(kind: str, target: Target, *, called: bool = False) -> str:
    """A function that reads a square of as many rows as vectors have lanes, and writes its columns, or has them written
    by a function that it calls."""
    text, layout, lanes = Text(target.lanes), register_layout(kind), target.lanes
    parameters = (("x", "ptr"), ("y", "ptr"))
    with text.function("f", parameters) as (source, destination):
        rows = [load_vector(Buffer(source, layout), Linear(lanes * row)) for row in range(lanes)]
        if called:
            store_transposed(rows, destination, lanes)
            store_transposed(rows, destination, lanes)
        for row, vector in enumerate(() if called else transpose(rows)):
            store_vector(Buffer(destination, layout), Linear(lanes * row), vector)
    shared = tuple(text.shared_functions.items())
    code = KernelCode("f", text.functions[0], frozenset(text.declarations), parameters, 0, 0, shared)
    return module_text([code], target)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["host", "avx2", "sse"])
@pytest.mark.parametrize("called", [False, True], ids=["written out", "called"])
def test_rows_become_columns(kind: str, target: Target | None, called: bool):
    host = host_target()
    target = host if target is None or target.lanes > host.lanes else target
    library = load_object(compile_object(square(kind, target, called=called), target), target)
    x = np.random.default_rng(0).integers(-100, 100, (target.lanes, target.lanes)).astype(KINDS[kind])
    y = np.zeros_like(x)
    library.function("f", ctypes.c_void_p, ctypes.c_void_p)(x.ctypes.data, y.ctypes.data)
    np.testing.assert_array_equal(y, x.T)


def test_the_function_that_is_called_stands_once():
    assert square("f32", AVX512, called=True).count("define internal") == 1


@pytest.mark.parametrize(("target", "shuffles"), [(AVX512, 64), (AVX2, 24), (SSE, 8)], ids=["avx512", "avx2", "sse"])
def test_each_round_is_one_instruction_a_vector(target: Target, shuffles: int):
    """None that takes a table of lanes from memory."""
    assembly = compile_assembly(square("f32", target), target)
    assert "vperm" not in assembly.replace("vperm2f128", "")
    assert (
        sum(assembly.count(f"{name}") for name in ("unpck", "shuf", "vperm2f128", "vinsertf", "movlhps", "movhlps"))
        <= shuffles
    )
