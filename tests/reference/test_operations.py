"""What each op computes, against numpy and against the rules of the language."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.ir import Attribute

from tempo_ir.dialects import sdg
from tempo_ir.dialects.types import DTYPES, element, tensor
from tempo_ir.index import Slice, domain, entry, expr, index
from tempo_ir.reference.dtypes import Array, element_type, numpy_dtype
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.reference.operations import cast, evaluate, stable_order

NAN, INF = float("nan"), float("inf")
f32, i64, u8, bf16 = (DTYPES[name] for name in ("f32", "i64", "u8", "bf16"))
EVERYWHERE = domain("()")
equal, close = np.testing.assert_array_equal, np.testing.assert_allclose


def values(*arrays: Array) -> list[sdg.Access]:
    """Something to read, of the types of the arrays."""
    types = [tensor(element_type(array.dtype), array.shape) for array in arrays]
    return [sdg.Access(result) for result in test.TestOp(result_types=types).results]


def apply(make: type[sdg.SdgOp], *arrays: Array, **properties: object) -> Array:
    """The result of an op on arrays."""
    op = make(*values(*arrays), **properties, domain=EVERYWHERE)  # pyright: ignore[reportCallIssue]
    (result,) = evaluate(op, arrays, {})
    assert result.dtype == numpy_dtype(element(op.results[0].type))
    return result


def array(elements: object, name: str = "f32") -> Array:
    return np.asarray(elements).astype(numpy_dtype(DTYPES[name]))


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_go_both_ways(name: str):
    assert element_type(numpy_dtype(DTYPES[name])) == DTYPES[name]


def test_a_foreign_dtype_is_named():
    with pytest.raises(TypeError, match="complex64"):
        element_type(np.dtype(np.complex64))


UNARY = {
    sdg.NegOp: np.negative,
    sdg.AbsOp: np.abs,
    sdg.SignOp: np.sign,
    sdg.ExpOp: np.exp,
    sdg.LogOp: np.log,
    sdg.Log1pOp: np.log1p,
    sdg.SqrtOp: np.sqrt,
    sdg.TanhOp: np.tanh,
    sdg.SinOp: np.sin,
    sdg.CosOp: np.cos,
    sdg.FloorOp: np.floor,
    sdg.CeilOp: np.ceil,
    sdg.RoundOp: np.rint,
}


@pytest.mark.parametrize(("op", "function"), UNARY.items(), ids=lambda it: getattr(it, "name", ""))
def test_unary(op: type[sdg.SdgOp], function: np.ufunc):
    x = array([-2.5, -0.5, 0.0, 0.5, 1.5, 2.5, INF, NAN])
    with np.errstate(all="ignore"):
        equal(apply(op, x), function(x))


def test_functions_that_numpy_lacks():
    x = np.linspace(-9, 9, 37)
    close(apply(sdg.ErfOp, x), [math.erf(value) for value in x])
    close(apply(sdg.SigmoidOp, x), 1 / (1 + np.exp(-x)))
    equal(apply(sdg.SigmoidOp, array([-INF, INF, -1000, 1000])), [0, 1, 0, 1])
    close(apply(sdg.RsqrtOp, x[20:]), x[20:] ** -0.5)


def test_integers_wrap():
    assert apply(sdg.AddOp, array([127], "i8"), array([1], "i8")) == -128
    assert apply(sdg.MulOp, array([200], "u8"), array([2], "u8")) == 144
    assert apply(sdg.NegOp, array([-128], "i8")) == -128
    assert apply(sdg.SumOp, array([100, 100], "i8"), axes=[0]) == -56
    base, exponent = array([2, -1, 3, 0], "i32"), array([5, -3, -1, -1], "i32")
    equal(apply(sdg.PowOp, base, exponent), [32, -1, 0, 0])


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_one_exponent_for_all_is_no_square_root(shape: tuple[int, ...]) -> None:
    equal(apply(sdg.PowOp, array([-INF, INF, 4.0]), np.full(shape, 0.5, np.float32)), [INF, INF, 2.0])


def test_division_floors():
    x, y = array([-7, 7, -7, 7], "i64"), array([2, 2, -2, -2], "i64")
    equal(apply(sdg.FloordivOp, x, y), [-4, 3, 3, -4])
    equal(apply(sdg.ModOp, x, y), [1, 1, -1, -1])
    equal(apply(sdg.ModOp, array([-7.5, 7.5]), array([2.0, -2.0])), [0.5, -0.5])


@pytest.mark.parametrize("op", [sdg.FloordivOp, sdg.ModOp])
def test_integer_division_by_zero_is_an_error(op: type[sdg.SdgOp]):
    with pytest.raises(ExecutionError, match=f"integer division by zero, in {op.name}"):
        apply(op, array([1], "i32"), array([0], "i32"))


def test_casts_saturate_and_send_nan_to_zero():
    x = array([NAN, 1e30, -1e30, INF, 2.9, -2.9])
    equal(cast(x, np.dtype(np.int64)), [0, 2**63 - 1, -(2**63), 2**63 - 1, 2, -2])
    equal(cast(x, np.dtype(np.int8)), [0, 127, -128, 127, 2, -2])
    equal(cast(x, np.dtype(np.uint8)), [0, 255, 0, 255, 2, 0])
    equal(cast(x, np.dtype(np.bool_)), [True] * 6)
    equal(cast(array([300, -1], "i32"), np.dtype(np.int8)), [44, -1])
    assert apply(sdg.CastOp, array([255.7]), element_type=u8) == 255
    assert cast(array([2.5], "bf16"), np.dtype(np.int32)) == 2


def test_extremes_propagate_nan():
    x, y = array([NAN, 1, 2]), array([1, NAN, 3])
    equal(apply(sdg.MaximumOp, x, y), [NAN, NAN, 3])
    equal(apply(sdg.MaxOp, array([[1, NAN], [2, 3]]), axes=[1]), [NAN, 3])
    assert apply(sdg.ArgmaxOp, array([1, NAN, 9, NAN]), axis=0) == 1
    assert apply(sdg.ArgminOp, array([1, 0, 0]), axis=0) == 1
    assert apply(sdg.ArgmaxOp, array([1, 3, 3], "bf16"), axis=0) == 1


def test_reductions_over_nothing_give_the_identity():
    empty = array(np.zeros((0, 2)))
    for op, identity in ((sdg.SumOp, 0), (sdg.ProdOp, 1), (sdg.MaxOp, -INF), (sdg.MinOp, INF)):
        equal(apply(op, empty, axes=[0]), [identity] * 2)
    assert apply(sdg.MaxOp, array(np.zeros(0), "i8"), axes=[0]) == -128
    assert not apply(sdg.MaxOp, array(np.zeros(0), "bool"), axes=[0])
    assert apply(sdg.MinOp, array(np.zeros(0), "bool"), axes=[0])
    with pytest.raises(ExecutionError, match="the mean over no elements"):
        apply(sdg.MeanOp, empty, axes=[0])
    with pytest.raises(ExecutionError, match="among no elements"):
        apply(sdg.ArgmaxOp, empty, axis=0)


def test_half_precision_accumulates_in_f32():
    ones = array(np.ones(1000), "bf16")
    assert apply(sdg.SumOp, ones, axes=[0]) == 1000
    assert apply(sdg.MeanOp, ones, axes=[0]) == 1
    dot = sdg.ContractOp("k,k->", *values(ones, ones), domain=EVERYWHERE)
    assert evaluate(dot, [ones, ones], {})[0] == 1000
    x = np.random.default_rng(0).normal(size=(8, 64))
    for name in ("f16", "bf16"):
        total = apply(sdg.SumOp, array(x, name), axes=[1])
        equal(total, np.sum(array(x, name).astype(np.float32), axis=1).astype(total.dtype))


def test_softmax():
    x = np.random.default_rng(0).normal(size=(3, 5)) * 100
    weights = np.exp(x - x.max(1, keepdims=True))
    close(apply(sdg.SoftmaxOp, x, axis=1), weights / weights.sum(1, keepdims=True))
    equal(apply(sdg.SoftmaxOp, array([[-INF, -INF], [0, -INF]]), axis=1), [[0, 0], [1, 0]])
    assert apply(sdg.SoftmaxOp, array(np.zeros((2, 0))), axis=1).shape == (2, 0)


def test_scans():
    x = array([1, 2, 3, 4])
    equal(apply(sdg.CumsumOp, x, axis=0), [1, 3, 6, 10])
    equal(apply(sdg.CumsumOp, x, axis=0, reverse=True), [10, 9, 7, 4])
    equal(apply(sdg.CumprodOp, x, axis=0, reverse=True), [24, 24, 12, 4])


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [("bk,kn->bn", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("a,b,c->abc", [(2,), (3,), (4,)])],
)
def test_contract(spec: str, shapes: list[tuple[int, ...]]):
    source = np.random.default_rng(0)
    arrays = [source.integers(-9, 9, shape) for shape in shapes]
    op = sdg.ContractOp(spec, *values(*arrays), domain=EVERYWHERE)
    equal(evaluate(op, arrays, {})[0], np.einsum(spec, *arrays))


def test_shapes():
    x = array(np.arange(24).reshape(2, 3, 4))
    equal(apply(sdg.ReshapeOp, x, shape=[6, 4]), x.reshape(6, 4))
    equal(apply(sdg.TransposeOp, x, permutation=[2, 0, 1]), x.transpose(2, 0, 1))
    equal(apply(sdg.BroadcastOp, x[:, :1], shape=[5, 2, 3, 4]), np.broadcast_to(x[:, :1], (5, 2, 3, 4)))
    equal(apply(sdg.SliceOp, x, take=index("[0:2, 1, 0:4:2]")), x[:, 1, ::2])
    equal(apply(sdg.ReverseOp, x, axis=1), x[:, ::-1])
    padded = apply(sdg.PadOp, x[0], low=[1, 0], high=[0, 2], value=7.0)
    equal(padded, np.pad(x[0], [(1, 0), (0, 2)], constant_values=7))
    op = sdg.ConcatOp(*values(x, x), axis=1, domain=EVERYWHERE)
    equal(evaluate(op, [x, x], {})[0], np.concatenate([x, x], 1))


def test_gather_and_scatter():
    table, ids = array(np.arange(12).reshape(4, 3)), array([[3, 0], [1, 1]], "i64")
    equal(apply(sdg.GatherOp, table, ids, axis=0), table[ids])
    equal(apply(sdg.GatherOp, table, ids % 3, axis=1), table[:, ids % 3])
    updates = array(np.ones((5, 2)))
    added = apply(sdg.ScatterAddOp, array([0, 1, 1, 1, 2], "i64"), updates, axis=0, shape=[4, 2])
    equal(added, [[1, 1], [3, 3], [1, 1], [0, 0]])
    added = apply(sdg.ScatterAddOp, array([1, 1], "i64"), array([[1, 2], [3, 4]]), axis=1, shape=[2, 3])
    equal(added, [[0, 3, 0], [0, 7, 0]])
    for bad in (-1, 4):
        with pytest.raises(ExecutionError, match=f"id {bad} is outside of the 4 rows, 0 to 3, in sdg.gather"):
            apply(sdg.GatherOp, table, array(bad, "i64"), axis=0)
    equal(apply(sdg.OneHotOp, array([1, 5], "i64"), depth=3), [[0, 1, 0], [0, 0, 0]])


def test_sorting_is_stable_and_nan_is_greatest():
    x = array([2, NAN, 1, 2])
    equal(apply(sdg.SortOp, x, axis=0), [1, 2, 2, NAN])
    equal(apply(sdg.ArgsortOp, x, axis=0), [2, 0, 3, 1])
    equal(apply(sdg.ArgsortOp, x, axis=0, descending=True), [1, 0, 3, 2])
    two_rows = array([[3, 1], [2, 5]], "bf16")
    equal(apply(sdg.SortOp, two_rows, axis=1, descending=True), [[3, 1], [5, 2]])


def test_logic_and_select():
    x, y = array([True, True, False], "bool"), array([True, False, False], "bool")
    equal(apply(sdg.AndOp, x, y), [True, False, False])
    equal(apply(sdg.XorOp, x, y), [False, True, False])
    equal(apply(sdg.NotOp, x), [False, False, True])
    equal(apply(sdg.NotOp, array([0, 5], "i8")), [-1, -6])
    equal(apply(sdg.SelectOp, x, array([NAN, 1, 2]), array(0.0)), [NAN, 1, 0])
    equal(apply(sdg.LtOp, array([1, NAN]), array([2, 2])), [True, False])


def evaluated(op: sdg.SdgOp, **symbols: int) -> Array:
    return evaluate(op, [], symbols)[0]


def test_values_of_the_program():
    values, point = entry("1:t + 2"), expr("T - t")
    assert isinstance(values, Slice)
    assert evaluated(sdg.IndexOp(point, domain=domain("(t)")), t=2, T=5) == 3
    equal(evaluated(sdg.ArangeOp(values, domain=domain("(t)")), t=2), [1, 2, 3])
    half = evaluated(sdg.ConstantOp(2.5, tensor(bf16, [2])))
    equal(half, np.full(2, 2.5, ml_dtypes.bfloat16))
    equal(evaluated(sdg.ConstantOp(1, tensor(i64, [expr("T")])), T=3), [1, 1, 1])


def test_random_depends_on_op_point_and_start():
    def draw(element: Attribute, identity: int, start: int, **symbols: int) -> Array:
        op = sdg.RandomOp("uniform", identity, tensor(element, [4]), domain=domain("(t)"))
        return evaluate(op, [], symbols, seed=5, start={"t": start})[0]

    assert np.array_equal(draw(f32, 1, 0, t=3), draw(f32, 1, 3, t=0))
    assert not np.array_equal(draw(f32, 1, 0, t=3), draw(f32, 1, 0, t=2))
    assert not np.array_equal(draw(f32, 2, 0, t=3), draw(f32, 1, 0, t=3))


def test_what_is_not_pure_has_no_value():
    op = sdg.InputOp("x", tensor(f32))
    with pytest.raises(ExecutionError, match=r"sdg.input has no value of its own"):
        evaluate(op, [], {})


@pytest.mark.parametrize("spec", ["ab,cdb->d", "ab,cb->", "cab,cd->d"])
def test_products_over_nothing_are_zero_beside_nan(spec: str):
    first, second = spec.split("->")[0].split(",")
    arrays = [np.full([0 if letter == "c" else 3 for letter in each], NAN, np.float32) for each in (first, second)]
    op = sdg.ContractOp(spec, *values(*arrays), domain=EVERYWHERE)
    result = evaluate(op, arrays, {})[0]
    equal(result, np.zeros(result.shape))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("spread", [3, 2**15, 2**16, 2**16 + 5, 2**31, 2**33])
def test_integers_are_ordered_as_numpy_does(dtype: type, spread: int) -> None:
    """Digit by digit where that is quicker: equal ones keep their order, along any axis, from any least number."""
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(spread)
    for least in (0, max(-spread // 2, int(limits.min)), int(limits.min)):
        end = min(least + spread, int(limits.max))
        for shape, axis in [((700,), 0), ((3, 300), 1), ((300, 3), 0), ((5,), 0), ((300, 0), 0)]:
            x = generator.integers(least, end, shape, dtype)
            np.testing.assert_array_equal(stable_order(x, axis), np.argsort(x, axis=axis, kind="stable"))
    x = np.array([int(limits.max), int(limits.min)] * 200, dtype)
    np.testing.assert_array_equal(stable_order(x, 0), np.argsort(x, kind="stable"))
