"""Operations against numpy and torch, by the reference interpreter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from frontend_support import error_of, run

import tempo_ir as tp


def value_of(build, **inputs):
    """The output of `build(**tensors)`, on arrays over no dim."""

    def program():
        dtypes = {
            "float32": tp.f32,
            "float64": tp.f64,
            "int64": tp.i64,
            "bool": tp.bool,
            "int32": tp.i32,
            "uint8": tp.u8,
        }
        tensors = {name: tp.input(name, dtypes[array.dtype.name][array.shape]) for name, array in inputs.items()}
        tp.output("y", build(**tensors))

    return run(program, **inputs)["y"]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(math.prod(shape)).normal(size=shape)


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "sqrt",
        "tanh",
        "sin",
        "cos",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "rsqrt",
        "sigmoid",
        "erf",
        "ln",
        "log1p",
    ],
)
def test_functions_of_one_argument(name: str) -> None:
    x = np.abs(normal(5, 3)) + 0.1 if name in ("sqrt", "rsqrt", "ln", "log1p") else normal(5, 3)
    expected = getattr(torch, {"ln": "log"}.get(name, name))(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(value_of(lambda x: getattr(tp, name)(x), x=x), expected, rtol=1e-12)


@pytest.mark.parametrize("target", ["reference", "cpu", "triton-interpret"])
def test_softplus_is_exact_far_from_zero(target: str) -> None:
    """In f32, with its gradient, beside f64's: `log(1 + exp(x))` alone is 0 below -17 and infinite above 88."""
    x = np.array([-100, -87, -20, -17, -10, -3, -1e-3, 0, 1e-3, 3, 20, 100], np.float32)

    def program() -> None:
        argument = tp.input("x", tp.f32[len(x)])
        y = tp.softplus(argument)
        tp.output("y", y)
        tp.output("gradient", tp.grad(tp.sum(y), argument))

    out = tp.compile(tp.program(program)(), target)(x=x)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(out["y"], np.logaddexp(exact, 0), rtol=1e-6, atol=1e-44)
    np.testing.assert_allclose(out["gradient"], 1 / (1 + np.exp(-exact)), rtol=1e-6, atol=1e-44)


@pytest.mark.parametrize("name", ["relu", "silu", "gelu", "softplus"])
def test_activations(name: str) -> None:
    x = 3 * normal(5, 3)
    expected = getattr(torch.nn.functional, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(value_of(lambda x: getattr(tp, name)(x), x=x), expected, rtol=1e-10, atol=1e-12)


def test_arithmetic_broadcasts_as_in_numpy() -> None:
    x, y = normal(4, 3), normal(3)
    np.testing.assert_allclose(
        value_of(lambda x, y: (x + y) * 2 - x / (y**2 + 1) - 1.5**y, x=x, y=y), (x + y) * 2 - x / (y**2 + 1) - 1.5**y
    )
    n, m = np.array([-7, 7, -8]), np.array([2, -2, 3])
    np.testing.assert_array_equal(value_of(lambda n, m: n // m, n=n, m=m), n // m)
    np.testing.assert_array_equal(value_of(lambda n, m: n % m, n=n, m=m), n % m)
    np.testing.assert_array_equal(value_of(lambda n, m: 2 ** (m + 2), n=n, m=m), 2 ** (m + 2))


def test_comparison_logic_and_choice() -> None:
    x = normal(6)
    np.testing.assert_array_equal(
        value_of(lambda x: (x > 0) & ~(x >= 1) | (x == x[0]), x=x), ((x > 0) & ~(x >= 1)) | (x == x[0])
    )
    np.testing.assert_array_equal(value_of(lambda x: tp.where(x > 0, x, -1), x=x), np.where(x > 0, x, -1))
    np.testing.assert_array_equal(value_of(lambda x: tp.clip(x, -0.5, 0.5), x=x), np.clip(x, -0.5, 0.5))
    np.testing.assert_array_equal(value_of(lambda x: tp.minimum(x, 0, 0.3), x=x), np.minimum(x, 0))
    np.testing.assert_array_equal(value_of(lambda x: tp.all(x > -9) & tp.any(x > 9), x=x), False)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
def test_reductions(axis) -> None:
    x = normal(4, 3, 2)
    for name in ("sum", "prod", "mean", "max", "min", "std", "var"):
        expected = getattr(np, name)(x, axis=axis)
        np.testing.assert_allclose(value_of(lambda x, name=name: getattr(tp, name)(x, axis), x=x), expected, rtol=1e-12)
    kept = value_of(lambda x: tp.mean(x, axis, keepdims=True), x=x)
    np.testing.assert_allclose(kept, x.mean(axis=axis, keepdims=True), rtol=1e-12)


def test_positions_and_scans() -> None:
    x = normal(4, 3)
    np.testing.assert_array_equal(value_of(lambda x: tp.argmax(x, 1), x=x), x.argmax(1))
    np.testing.assert_array_equal(value_of(lambda x: tp.argmin(x), x=x), x.argmin())
    np.testing.assert_allclose(value_of(lambda x: tp.cumsum(x, 1), x=x), x.cumsum(1))
    np.testing.assert_allclose(value_of(lambda x: tp.cumprod(x, 0, reverse=True), x=x), x[::-1].cumprod(0)[::-1])
    np.testing.assert_array_equal(value_of(lambda x: tp.sort(x, 0), x=x), np.sort(x, 0))
    np.testing.assert_array_equal(value_of(lambda x: tp.argsort(x, descending=True), x=x), np.argsort(-x, -1))
    np.testing.assert_array_equal(value_of(lambda x: tp.reverse(x, 0), x=x), x[::-1])
    assert value_of(lambda x: tp.sum(x > 0), x=x) == (x > 0).sum()


def test_softmax_and_losses_against_torch() -> None:
    x, ids = normal(4, 5), np.array([0, 4, 2, 2])
    tx, ti = torch.from_numpy(x), torch.from_numpy(ids)
    f = torch.nn.functional
    for build, expected in [
        (lambda x, ids: tp.softmax(x), f.softmax(tx, -1)),
        (lambda x, ids: tp.log_softmax(x, 0), f.log_softmax(tx, 0)),
        (lambda x, ids: tp.logsumexp(x), tx.logsumexp(-1)),
        (lambda x, ids: tp.cross_entropy(x, ids), f.cross_entropy(tx, ti, reduction="none")),
        (lambda x, ids: tp.log_prob(x, ids), torch.distributions.Categorical(logits=tx).log_prob(ti)),
        (lambda x, ids: tp.entropy(x), torch.distributions.Categorical(logits=tx).entropy()),
        (lambda x, ids: tp.layer_norm(x), f.layer_norm(tx, (5,))),
        (lambda x, ids: tp.rms_norm(x, eps=1e-6), f.rms_norm(tx, (5,), eps=1e-6)),
        (lambda x, ids: tp.one_hot(ids, 5), f.one_hot(ti, 5).float()),
    ]:
        np.testing.assert_allclose(value_of(build, x=x, ids=ids), expected.numpy(), rtol=1e-10, atol=1e-12)


def test_entropy_of_an_impossible_category_is_finite() -> None:
    x = np.array([0.0, -np.inf, 0.0])
    np.testing.assert_allclose(value_of(lambda x: tp.entropy(x), x=x), math.log(2))


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
     ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((1, 2, 3), (1, 3, 4))],
)  # fmt: skip
def test_matmul_is_numpys(left, right) -> None:
    x, y = normal(*left), normal(*right)
    np.testing.assert_allclose(value_of(lambda x, y: x @ y, x=x, y=y), x @ y, rtol=1e-12)


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
     ("...i,ij->...j", [(5, 2, 3), (3, 4)]), ("bhgd,nbhd->bhgn", [(2, 3, 1, 4), (5, 2, 3, 4)]),
     ("i,j->ij", [(2,), (3,)]),
     ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("ba", [(2, 3)])],
)  # fmt: skip
def test_einsum_is_numpys(spec, shapes) -> None:
    arrays = {f"x{number}": normal(*shape) for number, shape in enumerate(shapes)}
    expected = np.einsum(spec, *arrays.values())
    np.testing.assert_allclose(value_of(lambda **x: tp.einsum(spec, *x.values()), **arrays), expected, rtol=1e-12)


def test_shapes() -> None:
    x = normal(2, 3, 4)
    for build, expected in [
        (lambda x: x.reshape(3, 8), x.reshape(3, 8)),
        (lambda x: x.reshape(-1, 4), x.reshape(-1, 4)),
        (lambda x: x.reshape((4, -1)), x.reshape(4, -1)),
        (lambda x: x.flatten(1), x.reshape(2, 12)),
        (lambda x: x.flatten(0, 1), x.reshape(6, 4)),
        (lambda x: x.transpose(1, 0, 2), x.transpose(1, 0, 2)),
        (lambda x: x.T, x.T),
        (lambda x: tp.expand_dims(x, 1), x[:, None]),
        (lambda x: tp.squeeze(x[:1], 0), x[0]),
        (lambda x: tp.broadcast_to(x[0, 0], (5, 4)), np.broadcast_to(x[0, 0], (5, 4))),
        (lambda x: tp.concat([x, x[:1]], 0), np.concatenate([x, x[:1]])),
        (lambda x: tp.stack([x[0], x[1], x[0]], 1), np.stack([x[0], x[1], x[0]], 1)),
        (lambda x: tp.stack(tp.unstack(x, 2), 0), np.moveaxis(x, 2, 0)),
        (lambda x: tp.split(x, [1, 3], 2)[1], x[..., 1:]),
        (lambda x: tp.pad(x, 1, 2, axis=1), np.pad(x, [(0, 0), (1, 2), (0, 0)])),
        (lambda x: x.take(np.array([2, 0]), 1), x[:, [2, 0]]),
        (lambda x: tp.full((2, 2), 3.0) + tp.ones((2, 2)) + tp.zeros((2,)), np.full((2, 2), 4.0, np.float32)),
    ]:
        np.testing.assert_allclose(value_of(build, x=x), expected, rtol=1e-12)


def test_scatter_add_accumulates() -> None:
    ids, rows = np.array([0, 1, 1, 1, 2]), normal(5, 2)
    expected = np.zeros((4, 2))
    np.add.at(expected, ids, rows)
    np.testing.assert_allclose(
        value_of(lambda ids, rows: tp.scatter_add((4, 2), ids, rows), ids=ids, rows=rows), expected
    )


def test_dims_and_conditions_are_tensors_where_one_is_expected() -> None:
    def program():
        (t, T), (p, P) = tp.dims("t", "p")
        tp.output("t", t * 1.0)
        tp.output("half", t / 2)
        tp.output("square", t**2 + T)
        tp.output("before", tp.where((t < P) & ~tp.equal(t, 0) | (t == 4), 1, 0))
        tp.output("range", tp.arange(t, T).sum())

    out = run(program, T=5, P=2)
    assert out["t"].tolist() == [0, 1, 2, 3, 4]
    assert out["half"].tolist() == [0, 0.5, 1, 1.5, 2]
    assert out["square"].tolist() == [5, 6, 9, 14, 21]
    assert out["before"].tolist() == [0, 1, 0, 0, 1]
    assert out["range"].tolist() == [10, 10, 9, 7, 4]


def test_dynamic_extents_flatten_and_reshape() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[4, 2], over=t)
        flat = x[0:T].flatten(0, 1)
        assert str(flat.shape) == "(T * 4, 2)" or str(flat.shape) == "(4 * T, 2)"
        tp.output("flat", flat)
        tp.output("growing", x[0 : t + 1].reshape(-1, 8).sum(0))

    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    out = run(program, x=x)
    np.testing.assert_array_equal(out["flat"], x.reshape(12, 2))
    np.testing.assert_array_equal(out["growing"], np.cumsum(x.reshape(3, 8), 0))


def error(build, **inputs) -> str:
    def program():
        tp.output("y", build(*(tp.input(name, spec) for name, spec in inputs.items())))

    return error_of(program)


def test_errors_of_operations() -> None:
    f4, f23, i4 = tp.f32[4], tp.f32[2, 3], tp.i64[4]
    assert "(4,)" in error(lambda x, y: x @ y, x=f4, y=f23)
    assert "the inner extents 4 and 2 differ" in error(lambda x, y: x @ y, x=f4, y=f23)
    assert "axis 0" in error(lambda x, y: x + y[0], x=f4, y=f23)
    assert "cannot reshape (2, 3) to (4,): 6 elements are not 4" in error(lambda x: x.reshape(4), x=f23)
    assert "6 is no multiple of 4" in error(lambda x: x.reshape(4, -1), x=f23)
    assert "axis 2 does not exist, the operand has 2 axes" in error(lambda x: x.sum(2), x=f23)
    assert "compare first, as in x > 0" in error(lambda x: x & x, x=f4)
    assert "needs a boolean condition, got f32" in error(lambda x: tp.where(x, x, x), x=f4)
    assert "take needs integer positions, got f32" in error(lambda x: x.take(x), x=f4)
    assert "names 2 operands, got 1" in error(lambda x: tp.einsum("ij,jk->ik", x), x=f23)
    assert '"ijk" names 3 axes' in error(lambda x: tp.einsum("ijk->ik", x), x=f23)
    assert "the natural logarithm is tp.ln" in error(lambda x: x + tp.log(x), x=f4)
    assert "tp.stack joins the elements of a list" in error(lambda x: tp.exp([x]), x=f4)
    assert "unstack" in error(lambda x: list(x), x=f4)
    assert "choose with tp.where" in error(lambda x: x if x[0] > 0 else -x, x=f4)
    assert "the number 300 is outside of u8" in error(lambda x: x + 300, x=tp.u8[4])
    assert "a numpy array of complex128 has no type here" in error(lambda x: x + np.array([1j, 2]), x=i4)


def test_a_tensor_of_another_program_is_refused() -> None:
    kept: list[tp.Tensor] = []

    def first():
        kept.append(tp.input("x", tp.f32[2]))

    def second():
        tp.output("y", kept[0] + 1)

    tp.program(first)()
    assert "belongs to another program" in error_of(second)


def test_operations_outside_of_a_program_are_refused() -> None:
    with pytest.raises(tp.ProgramError, match="use it inside a function under"):
        tp.input("x", tp.f32[2])
