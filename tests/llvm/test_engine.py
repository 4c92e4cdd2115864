"""LLVM through llvmlite: objects are bytes that load again, errors are exceptions."""

from __future__ import annotations

import ctypes

import pytest

from tempo_ir.lowering.llvm.engine import (
    Assembler,
    compile_assembly,
    compile_object,
    host_target,
    llvm_version,
    load_object,
    load_objects,
)
from tempo_ir.lowering.llvm.target import PLAIN

DOUBLE = """
define void @double(ptr %x) {
  %a = load i32, ptr %x
  %b = add i32 %a, %a
  store i32 %b, ptr %x
  ret void
}
"""

CALL = """
declare void @tempo_test_count(i32)
define void @f() {
  call void @tempo_test_count(i32 7)
  ret void
}
"""


def test_an_object_is_bytes_that_load_more_than_once():
    target = host_target()
    code = compile_object(DOUBLE, target)
    assert isinstance(code, bytes)
    number = ctypes.c_int32(3)
    libraries = [load_object(code, target) for _ in range(2)]
    for library in libraries:
        library.function("double", ctypes.c_void_p)(ctypes.addressof(number))
    assert number.value == 12


def test_calls_to_given_symbols():
    counts: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int32)(counts.append)
    target = host_target()
    symbols = {"tempo_test_count": ctypes.cast(callback, ctypes.c_void_p).value or 0}
    load_object(compile_object(CALL, target), target, symbols).function("f")()
    assert counts == [7]


TWICE = """
declare void @double(ptr)
define void @twice(ptr %x) {
  call void @double(ptr %x)
  call void @double(ptr %x)
  ret void
}
"""


def test_modules_that_an_assembler_makes_call_each_other():
    target = host_target()
    with Assembler(target) as assembler:
        assembler.add(TWICE, PLAIN)
        assembler.add(DOUBLE)
        objects = assembler.objects()
    assert objects == (compile_object(TWICE, target, PLAIN), compile_object(DOUBLE, target))
    number = ctypes.c_int32(3)
    load_objects(objects, target).function("twice", ctypes.c_void_p)(ctypes.addressof(number))
    assert number.value == 12


def test_an_assembler_raises_what_is_wrong_with_a_text():
    with Assembler(host_target()) as assembler:
        assembler.add(DOUBLE)
        assembler.add("define void @f( {")
        with pytest.raises(RuntimeError, match="expected"):
            assembler.objects()


def test_errors():
    target = host_target()
    with pytest.raises(RuntimeError, match="expected"):
        compile_object("define void @f( {", target)
    with pytest.raises(KeyError, match="no function triple"):
        load_object(compile_object(DOUBLE, target), target).address("triple")


def test_names_of_machine_and_version():
    assert host_target().lanes in (4, 8, 16)
    assert llvm_version()[0].isdigit()
    assert "double" in compile_assembly(DOUBLE, host_target())
