"""Element types: promotion as torch's table, weak Python scalars, casts, constants."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
import torch
from frontend_support import error_of, record, run

import tempo_ir as tp
from tempo_ir.frontend.dtypes import promote, promote_scalar

NAMES = {
    "bool": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip
NAME_OF = {dtype: name for name, dtype in NAMES.items()}


@pytest.mark.parametrize(("first", "second"), list(product(NAMES, NAMES)))
def test_promotion_is_torchs(first: str, second: str) -> None:
    expected = torch.promote_types(NAMES[first], NAMES[second])
    assert promote(getattr(tp, first), getattr(tp, second)).name == NAME_OF[expected]


@pytest.mark.parametrize("name", NAMES)
def test_scalars_are_weak(name: str) -> None:
    for value in (True, 2, 2.5):
        expected = torch.result_type(torch.zeros(1, dtype=NAMES[name]), value)
        assert promote_scalar(getattr(tp, name), value).name == NAME_OF[expected]


def type_of(build) -> str:
    seen: list[tp.Tensor] = []

    def program():
        seen.append(build(**{name: tp.input(name, getattr(tp, name)[2]) for name in NAMES}))

    record(program)
    return str(seen[0].dtype)


def test_types_of_results() -> None:
    assert type_of(lambda f32, **_: f32 + 2) == "f32"
    assert type_of(lambda i64, f64, **_: i64 + f64) == "f64"
    assert type_of(lambda i64, **_: i64 / i64) == "f32"
    assert type_of(lambda i64, **_: i64 // 2) == "i64"
    assert type_of(lambda i32, **_: i32 * 2.0) == "f32"
    assert type_of(lambda bf16, **_: bf16 * 2.0) == "bf16"
    assert type_of(lambda bf16, f16, **_: bf16 * f16) == "f32"
    assert type_of(lambda u8, i8, **_: u8 * i8) == "i16"
    assert type_of(lambda bool, **_: bool.sum()) == "i64"
    assert type_of(lambda bool, **_: bool + bool) == "i64"
    assert type_of(lambda i8, **_: i8 < 3) == "bool"
    assert type_of(lambda i64, **_: tp.exp(i64)) == "f32"
    assert type_of(lambda i64, **_: tp.mean(i64)) == "f32"
    assert type_of(lambda f64, **_: tp.where(f64 > 0, 1, 2.5)) == "f32"
    assert type_of(lambda f64, **_: f64 + np.float32(1)) == "f64"
    assert type_of(lambda f32, **_: f32 + np.float64(1)) == "f64"  # numpy's numbers have a type of their own
    assert type_of(lambda f32, **_: f32 + np.ones(2)) == "f64"
    assert type_of(lambda f32, **_: np.ones(2, np.float32) * f32) == "f32"
    assert type_of(lambda bf16, **_: tp.rms_norm(bf16)) == "bf16"


def test_casts() -> None:
    def program():
        x = tp.input("x", tp.f32[4])
        for name in NAMES:
            tp.output(name, x.cast(getattr(tp, name)))

    out = run(program, x=np.array([np.nan, 1e30, -2.7, 0], np.float32))
    assert out["i64"].tolist() == [0, 2**63 - 1, -2, 0]
    assert out["i8"].tolist() == [0, 127, -2, 0]
    assert out["u8"].tolist() == [0, 255, 0, 0]
    assert out["bool"].tolist() == [True, True, True, False]
    assert out["bf16"].dtype == ml_dtypes.bfloat16


def test_constants_of_arrays() -> None:
    arrays = {
        "f32": np.array([1.5, -np.inf, 0.1], np.float32), "bf16": np.array([1.5, 3, 0.1], ml_dtypes.bfloat16),
        "bool": np.array([True, False, True]), "i8": np.array([-128, 0, 127], np.int8),
        "f64": np.array([[0.1], [1e300]]),
        "u8": np.array([0, 255], np.uint8), "i64": np.array([2**62, -1]), "f16": np.array([0.1, 2], np.float16),
        "one": np.array([3.0]), "scalar": np.float32(2.5), "none": np.zeros((0, 2), np.float32),
    }  # fmt: skip

    def program():
        for name, array in arrays.items():
            tp.output(name, array)

    out = run(program)
    for name, array in arrays.items():
        np.testing.assert_array_equal(out[name], array)
        assert out[name].dtype == array.dtype


def test_integers_wrap_and_constants_have_the_width_of_their_tensor() -> None:
    def program():
        x = tp.input("x", tp.i8[()])
        tp.output("y", x + 100)
        tp.output("z", tp.full((), 100) + tp.full((), 100))

    out = run(program, x=np.int8(100))
    assert out["y"] == -56
    assert out["z"] == 200


def test_specs_print_as_they_are_written() -> None:
    assert str(tp.f32[16, 64]) == "f32[16, 64]"
    assert str(tp.i64[()]) == "i64[()]"
    assert repr(tp.bf16) == "tp.bf16"


def test_sum_of_many_bf16_is_exact() -> None:
    def program():
        tp.output("y", tp.sum(tp.input("x", tp.bf16[1000])))

    assert run(program, x=np.ones(1000, ml_dtypes.bfloat16))["y"] == 1000


def test_parameters_have_shapes_of_numbers() -> None:
    def program():
        t, T = tp.dim("t")
        tp.parameter("p", tp.f32[T])

    assert "an array that the caller owns has a shape of numbers" in error_of(program)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: tp.f32[1.5], "a shape of f32: an extent is an integer of 0 or more, or a dim, got 1.5"),
        (lambda t: tp.f32[-1], "a shape of f32: an extent is an integer of 0 or more, or a dim, got -1"),
        (lambda t: tp.zeros((2, -1)), "full: an extent is 0 or more, got -1"),
        (lambda t: tp.zeros(tp.f32[2]), "full: an extent is an integer or a dim, got Spec"),
        (lambda t: tp.scatter_add(tp.zeros(2), 0, 1.0), "scatter_add: an extent is an integer or a dim, got Tensor"),
        (lambda t: tp.random.permutation(-1), "a shape of i64: an extent is an integer of 0 or more, or a dim, got -1"),
        (lambda t: tp.sum(tp.zeros(2), axis=t), "sum: an axis is an integer, got t"),
        (lambda t: tp.sum(tp.zeros(2), axis=0.0), "sum: an axis is an integer, got 0.0"),
        (lambda t: tp.expand_dims(tp.zeros(2), "a"), "expand_dims: an axis is an integer, got 'a'"),
        (lambda t: tp.cast(1.0, np.float32), "cast: an element type is one as tp.f32 or tp.i64, got <class"),
        (lambda t: tp.pad(tp.zeros(2), 0.5, 0), "pad: the amounts are integers, got 0.5 and 0"),
        (lambda t: tp.dim("k", 1.5), "an integer or a dim is needed here, got 1.5"),
        (lambda t: tp.dim("k", -3), "dim 'k' has the bound -3: a bound is a number of steps, 0 or more"),
        (lambda t: tp.dim("k", t), "the bound t of dim 'k' varies over dim t: a bound is one number for a call"),
        (lambda t: tp.dim("ü"), "'ü' cannot name a dim"),
        (lambda t: tp.input(3, tp.f32[2]), "the name of an input is a text, got 3"),
        (lambda t: tp.output("", 1.0), "the name of an output is a text, got ''"),
        (lambda t: tp.output("y", "text"), "output 'y': there is no tensor in the str that is given"),
        (lambda t: tp.host(3), "tp.host takes a function that makes the object of a call, as lambda: 3"),
        (lambda t: tp.host(object).act(returns=3), "returns: a spec is a dtype with a shape, as in"),
        (lambda t: tp.grad(None, tp.zeros(2)), "expected a tensor, a dim, a number or a numpy array, got NoneType"),
    ],
)  # fmt: skip
def test_what_is_no_shape_axis_type_name_or_bound_is_refused(make, message: str) -> None:
    def program():
        t, _ = tp.dim("t")
        make(t)

    assert message in error_of(program)


def test_shapes_and_orders_of_axes_as_numpy_takes_them() -> None:
    def program():
        x = tp.input("x", tp.f32[np.int64(2), 3])
        tp.output("x", tp.transpose(x, (1, 0)))
        tp.output("y", x.transpose(1, 0) + tp.zeros(np.int64(2)) + tp.broadcast_to(1.0, 2))
        tp.output("z", tp.sum(x, axis=np.int64(1)))

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = run(program, x=x)
    np.testing.assert_array_equal(out["x"], x.T)
    np.testing.assert_array_equal(out["y"], x.T + 1)
    np.testing.assert_array_equal(out["z"], x.sum(1))


def test_an_extent_below_0_is_0() -> None:
    def program():
        t, T = tp.dim("t")
        tp.output("y", tp.sum(tp.concat([tp.ones((T - 2 * t,)), tp.ones((T - t,))])))

    for target in ("reference", "cpu"):
        assert tp.compile(record(program), target=target)(T=5)["y"].tolist() == [10, 7, 4, 2, 1]
