"""Tensor types with named extents."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32, i64
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.types import (
    DTYPES,
    accessed_type,
    dtype,
    dtype_name,
    integer_range,
    is_bool,
    is_float,
    is_integer,
    shape_of,
    tensor,
)
from tempo_ir.index import Const, expr, index


def test_shapes_round_trip_through_types() -> None:
    shape = (4, expr("t + 1"), 2, expr("min(t, 8)"))
    assert shape_of(tensor(f32, shape)) == shape
    assert shape_of(tensor(f32)) == ()
    assert shape_of(tensor(f32, [Const(3), expr("t - t")])) == (3, 0)


def test_extents_are_integers() -> None:
    """True is 1, and a type that is made once for both has integers."""
    assert [type(extent) for made in (tensor(f32, [True, 5]), tensor(f32, [1, 5])) for extent in shape_of(made)] == [
        int
    ] * 4


def test_dtypes_have_names_and_kinds() -> None:
    assert all(dtype_name(dtype(name)) == name for name in DTYPES)
    assert [name for name in DTYPES if is_float(dtype(name))] == ["f16", "bf16", "f32", "f64"]
    assert [name for name in DTYPES if is_integer(dtype(name))] == ["i8", "i16", "i32", "i64", "u8"]
    assert is_bool(dtype("bool"))
    assert integer_range(dtype("u8")) == (0, 256)
    assert integer_range(dtype("i8")) == (-128, 128)


def test_unknown_dtype_lists_the_known() -> None:
    with pytest.raises(ValueError, match="unknown dtype 'f8'; use one of bool, i8"):
        dtype("f8")


@pytest.mark.parametrize(
    ("shape", "read", "expected"),
    [
        ((4,), "[i, t]", (4,)),
        ((4,), "[i, 0:t + 1]", (expr("t + 1"), 4)),
        ((4,), "[0:5, 0:t]", (5, expr("t"), 4)),
        ((expr("t + 1"),), "[i, t - 1]", (expr("t"),)),
        ((expr("i + t"),), "[0, 3]", (3,)),
        ((expr("i + 1"),), "[i, 0:T]", (expr("T"), expr("i + 1"))),
    ],
)
def test_accessed_type(shape, read, expected) -> None:
    assert shape_of(accessed_type(tensor(f32, shape), index(read), ("i", "t"))) == expected


def test_rows_of_different_extents_do_not_stack() -> None:
    with pytest.raises(VerifyException, match="would stack rows of different extents"):
        accessed_type(tensor(i64, [expr("t + 1")]), index("[0:T]"), ("t",))
