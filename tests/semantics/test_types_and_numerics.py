"""Cases 32 to 40: states and optimisers, element types, statistics, random numbers, attention."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from semantics_support import SIZES, Everywhere, normal, refused

import tempo_ir as tp
from tempo_ir import nn, optim, rl
from tempo_ir.runtime.packed import parse_module


def test_32_sgd_by_hand_and_a_constant_parameter() -> None:
    def program():
        i, I = tp.dim("i")
        p = tp.state("p", tp.f64[()], init=1.0, steps=i)
        q = tp.parameter("q", tp.f64[2], init=3.0)
        optim.SGD(0.25).minimize(p * p, p)
        tp.output("before", p)
        tp.output("q2", q * i)

    run = Everywhere(program)
    for I in SIZES:
        q2 = np.arange(I)[:, None] * np.full(2, 3.0)
        run.gives({"before": 0.5 ** np.arange(I), "q2": q2}, I=I)
        out = run(I=I)
        assert out.state["p"] == 0.5**I
        assert out.state["q"].tolist() == [3, 3]


def test_32_adam_on_an_mlp_equals_torchs() -> None:
    def program():
        i, I = tp.dim("i")
        x, y = tp.input("x", tp.f64[4, 3], over=i), tp.input("y", tp.f64[4, 2], over=i)
        net = nn.MLP(3, 5, 2, name="net", steps=i, dtype=tp.f64)
        loss = tp.mean((net[i](x) - y) ** 2)
        optim.Adam(1e-2).minimize(loss, net)
        tp.output("loss", loss)

    torch.manual_seed(0)
    twin = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    optimiser = torch.optim.Adam(twin.parameters(), 1e-2)
    x, y = normal(5, 4, 3, dtype=np.float64), normal(5, 4, 2, seed=1, dtype=np.float64)
    run = Everywhere(program)
    state = run.cpu.init(0)
    for name, value in twin.state_dict().items():
        state[f"net.{name.replace('2.', '1.')}"] = value.numpy().copy()
    losses = []
    for step in range(5):
        loss = ((twin(torch.from_numpy(x[step])) - torch.from_numpy(y[step])) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    run.gives({"loss": losses}, x=x, y=y, state=state)
    trained = run.cpu(x=x, y=y, state=state).state
    np.testing.assert_allclose(trained["net.1.weight"], twin.state_dict()["2.weight"].numpy(), rtol=1e-6)


def test_33_weak_numbers_and_promotion() -> None:
    def program():
        x, n, d = tp.input("x", tp.f32[3]), tp.input("n", tp.i64[3]), tp.input("d", tp.f64[3])
        small = tp.input("small", tp.i8[3])
        tp.output("hundreds", tp.full((), 100) + tp.full((), 100))
        tp.output("ratio", n / n)
        tp.output("weak", x + 2)
        tp.output("wide", n + d)
        tp.output("wrapped", small + 100)
        tp.output("count", (n > 1).sum())

    x, n = np.array([1, 2, 3], np.float32), np.array([1, 2, 3])
    run = Everywhere(program)
    expected = {
        "hundreds": 200, "ratio": [1, 1, 1], "weak": x + 2, "wide": n + 0.5, "wrapped": [-56, -55, 50], "count": 2,
    }  # fmt: skip
    arguments = {"x": x, "n": n, "d": np.full(3, 0.5), "small": np.array([100, 101, -50], np.int8)}
    run.gives(expected, **arguments)
    out = run(**arguments)
    types = {"hundreds": "int64", "ratio": "float32", "weak": "float32", "wide": "float64", "wrapped": "int8"}
    assert {name: out[name].dtype.name for name in types} == types

    def carried():
        t, T = tp.dim("t")
        h = tp.tensor("h", tp.i32[()], over=t)
        h[0] = 0
        h[t + 1] = h * 0.5
        tp.output("h", h)

    text = refused(carried)
    assert "'h' is i32" in text
    assert "this case is f32" in text
    first = carried.__code__.co_firstlineno
    assert f"test_types_and_numerics.py:{first + 2}" in text  # where it is declared
    assert f"test_types_and_numerics.py:{first + 4}" in text  # the case of another type

    def of_one_type():
        h = tp.tensor("h", tp.f32[()], over=(dim := tp.dim("t"))[0])
        h[0], h[dim[0] + 1] = 1, h * 0.5 + 1
        tp.output("h", h)

    Everywhere(of_one_type).gives({"h": [1, 1.5, 1.75]}, T=3)


def test_34_sums_of_bf16_are_held_in_f32() -> None:
    def program():
        t, T = tp.dim("t")
        x, y = tp.input("x", tp.bf16[1000], over=t), tp.input("y", tp.bf16[8, 1000], over=t)
        tp.output("sum", tp.sum(x))
        tp.output("dot", y @ x)
        tp.output("mean", tp.mean(x))

    run = Everywhere(program)
    x, y = np.ones((2, 1000), ml_dtypes.bfloat16), np.ones((2, 8, 1000), ml_dtypes.bfloat16)
    for executable in (run.reference, run.cpu, *run.others.values()):
        out = executable(x=x, y=y)
        assert out["sum"].tolist() == [1000] * 2
        assert out["mean"].tolist() == [1] * 2
        assert (out["dot"] == 1000).all()


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_34_half_precision_is_no_worse_than_twice_torchs(dtype: str) -> None:
    def program():
        t, T = tp.dim("t")
        x, w = tp.input("x", getattr(tp, dtype)[16, 64], over=t), tp.input("w", getattr(tp, dtype)[64, 32])
        tp.output("y", tp.softmax(tp.tanh(x @ w) * 2))

    kind = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
    x, w = normal(3, 16, 64).astype(kind), (normal(64, 32, seed=1) / 8).astype(kind)
    wide = [torch.from_numpy(array.astype(np.float64)) for array in (x, w)]
    narrow = [array.to({"bf16": torch.bfloat16, "f16": torch.float16}[dtype]) for array in wide]
    exact, theirs = (torch.softmax(torch.tanh(a @ b) * 2, -1) for a, b in (wide, narrow))
    limit = 2 * (theirs.double() - exact).abs().max().item()
    run = Everywhere(program)
    for executable in (run.reference, run.cpu, *run.others.values()):
        y = executable(x=x, w=w)["y"]
        assert y.dtype == kind
        assert np.abs(y.astype(np.float64) - exact.numpy()).max() <= limit


def test_34_f32_dot_is_ieee() -> None:
    def program():
        x, w = tp.input("x", tp.f32[8, 96]), tp.input("w", tp.f32[96, 16])
        tp.output("y", x @ w)

    x, w = normal(8, 96), normal(96, 16, seed=1)
    y = Everywhere(program)(x=x, w=w)["y"]
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(y - exact).max() <= 2 * max(np.abs(x @ w - exact).max(), 1e-6)  # TF32 would be off by 1e-2


def test_35_statistics_of_one_sample() -> None:
    def program():
        x, one, more = tp.input("x", tp.f64[3]), tp.input("one", tp.f64[1]), tp.input("more", tp.f64[5])
        tp.output("discounted", rl.discounted_sum(x, 0.5))
        tp.output("one_normal", rl.normalise(one))
        tp.output("more_normal", rl.normalise(more))
        tp.output("std", tp.std(one))

    more = normal(5, dtype=np.float64)
    expected = {"discounted": 1.75, "one_normal": [0], "std": 0}
    run = Everywhere(program)
    run.gives(expected, x=np.ones(3), one=np.full(1, 7.0), more=more)
    out = run(x=np.ones(3), one=np.full(1, 7.0), more=more)
    np.testing.assert_allclose(out["more_normal"], (more - more.mean()) / more.std(), rtol=1e-6)


def test_36_generalised_advantages() -> None:
    def program():
        t, T = tp.dim("t")
        reward, value, following = (tp.input(name, tp.f64[()], over=t) for name in ("r", "v", "n"))
        terminated, truncated = (tp.input(name, tp.bool[()], over=t) for name in ("terminated", "truncated"))
        delta = reward + 0.9 * tp.where(terminated, 0, following) - value
        tp.output("a", rl.generalised_advantages("a", delta, 0.9 * 0.8, (t,), terminated | truncated))

    run = Everywhere(program)
    arguments = {
        "r": np.ones(5), "v": np.array([0.5, 0.4, 0.3, 0.2, 0.1]), "n": np.array([0.4, 0.3, 0.9, 0.1, 0.0]),
        "terminated": np.arange(5) == 4, "truncated": np.arange(5) == 2,
    }  # fmt: skip
    run.gives({"a": [2.269184, 1.9572, 1.51, 1.538, 0.9]}, **arguments)
    for T in SIZES:
        r, v, n = (normal(T, seed=seed, dtype=np.float64) for seed in range(3))
        terminated, truncated = (normal(T, seed=seed) > 1 for seed in (3, 4))
        following, a = 0.0, np.zeros(T)
        for t in reversed(range(T)):
            delta = r[t] + (0 if terminated[t] else 0.9 * n[t]) - v[t]
            a[t] = following = delta + (0 if terminated[t] or truncated[t] else 0.72 * following)
        run.gives({"a": a}, r=r, v=v, n=n, terminated=terminated, truncated=truncated)


def test_37_random_numbers_are_the_same_on_every_way() -> None:
    def program():
        (i, I), (t, T) = tp.dims("i", "t")
        u = tp.random.uniform(spec=tp.f32[3], over=(i, t))
        tp.output("twice", tp.stack([u, u]))
        tp.output("other", tp.random.uniform(spec=tp.f32[3], over=(i, t)))
        tp.output("double", tp.random.uniform(spec=tp.f64[2], over=t))
        tp.output("bits", tp.random.bits(tp.i64[5], over=i))
        tp.output("integers", tp.random.integers(-3, 4, tp.i32[5], over=(i, t)))
        tp.output("normal", tp.random.normal(spec=tp.f64[4], over=t))
        tp.output("category", tp.random.categorical(tp.log_softmax(u)))
        tp.output("coin", tp.random.bernoulli(0.3, tp.bool[7], over=t))
        tp.output("order", tp.random.permutation(T, over=i))
        tp.output("growing", tp.random.uniform(spec=tp.f32[()], over=t)[0 : t + 1].sum())
        tp.output("late", u[i, T - 1 - t] - u)

    run = Everywhere(program)
    exact = ("twice", "other", "double", "bits", "integers", "coin", "order")
    for I, T in [(1, 1), (0, 3), (2, 0), (3, 5), (2, 17)]:
        for seed in (0, 1, 2**32 - 1):
            out = run(I=I, T=T, seed=seed)
            for executable in (run.reference, *run.others.values()):
                again = executable(I=I, T=T, seed=seed)
                for name in exact:
                    np.testing.assert_array_equal(again[name], out[name], err_msg=name)
    first, second = run.cpu(I=3, T=5, seed=1), run.cpu(I=3, T=5, seed=2)
    assert np.array_equal(first["twice"][:, :, 0], first["twice"][:, :, 1])
    for name in ("twice", "other", "double", "bits", "normal"):
        assert not np.array_equal(first[name], second[name])
    assert not np.array_equal(first["twice"][:, :, 0], first["other"])
    np.testing.assert_array_equal(np.sort(first["order"], -1), np.tile(np.arange(5), (3, 1)))


def test_38_offsets_are_computed_in_64_bits() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[7864320], over=t)
        tp.output("y", x[..., 0] * 2)

    text = tp.compile(tp.program(program)()).ir("triton")
    assert 319 * 7864320 > 2**31
    assert "i64" in text or "int64" in text


@pytest.mark.slow
def test_38_a_row_beyond_two_to_the_31st_element() -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.u8[7864320], over=t)
        tp.output("y", x[T - 1, 0:4].cast(tp.i64) + x[T - 1, -1].cast(tp.i64))

    x = np.zeros((320, 7864320), np.uint8)
    x[319, :4], x[319, -1] = [1, 2, 3, 4], 10
    assert tp.compile(tp.program(program)())(x=x)["y"].tolist() == [11, 12, 13, 14]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, window: int) -> np.ndarray:
    """Causal attention with grouped queries; row t sees keys t - window + 1 to t: (T, kv, group, d)."""
    result = np.zeros_like(q)
    for t in range(len(q)):
        past = slice(max(0, t - window + 1), t + 1)
        score = np.einsum("hgd,nhd->hgn", q[t], k[past])
        p = np.exp(score - score.max(-1, keepdims=True))
        result[t] = np.einsum("hgn,nhd->hgd", p / p.sum(-1, keepdims=True), v[past])
    return result


@pytest.mark.parametrize("window", [1, 3, 7, 8, 16, None])
def test_39_windowed_attention(window: int | None) -> None:
    def program():
        t, T = tp.dim("t")
        q = tp.input("q", tp.f64[2, 3, 8], over=t)
        k, v = (tp.input(name, tp.f64[2, 8], over=t) for name in "kv")
        past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)
        score = tp.einsum("hgd,nhd->hgn", q, k[past])
        tp.output("o", tp.einsum("hgn,nhd->hgd", tp.softmax(score), v[past]))

    run = Everywhere(program)
    for T in SIZES:
        q, k, v = (normal(T, *shape, dtype=np.float64, seed=n) for n, shape in enumerate([(2, 3, 8), (2, 8), (2, 8)]))
        run.gives({"o": attention(q, k, v, window or T)}, q=q, k=k, v=v)


def test_39_fewer_queries_than_keys() -> None:
    def program():
        b, B = tp.dim("b")
        a, A = tp.dim("a", at_least=B)
        k, q = tp.input("k", tp.f64[2], over=a), tp.input("q", tp.f64[2], over=b)
        past = k[0 : A - B + b + 1]
        tp.output("o", tp.einsum("n,nd->d", tp.softmax(tp.einsum("d,nd->n", q, past)), past))
        tp.output("seen", past[..., 0].cast(tp.i64).sum() * 0 + A - B + b + 1)

    run = Everywhere(program)
    for B, A in [(2, 5), (1, 1), (0, 3), (5, 5), (3, 17)]:
        q, k = normal(B, 2, dtype=np.float64), normal(A, 2, dtype=np.float64, seed=1)
        rows = [k[: A - B + b + 1] for b in range(B)]
        scores = [np.exp(row @ q[b]) for b, row in enumerate(rows)]
        expected = [e / e.sum() @ row for e, row in zip(scores, rows, strict=True)]
        run.gives({"o": np.reshape(expected, (B, 2)), "seen": [len(row) for row in rows]}, q=q, k=k)


@pytest.mark.parametrize(("heads", "kv", "width"), [(6, 2, 8), (7, 1, 24), (14, 2, 8), (24, 1, 80)])
def test_40_grouped_queries(heads: int, kv: int, width: int) -> None:
    def program():
        t, T = tp.dim("t")
        q = tp.input("q", tp.f32[kv, heads // kv, width], over=t)
        k, v = (tp.input(name, tp.f32[kv, width], over=t) for name in "kv")
        score = tp.einsum("hgd,nhd->hgn", q * width**-0.5, k[0 : t + 1])
        tp.output("o", tp.einsum("hgn,nhd->hgd", tp.softmax(score), v[0 : t + 1]))

    run = Everywhere(program)
    for T in (0, 1, 2, 9):
        q, k, v = (normal(T, *s, seed=n) for n, s in enumerate([(kv, heads // kv, width), (kv, width), (kv, width)]))
        run.gives({"o": attention((q * width**-0.5).astype(np.float64), k, v, T)}, q=q, k=k, v=v)


def test_40_rows_of_different_lengths() -> None:
    def program():
        (b, B), (t, T) = tp.dims("b", "t")
        length = tp.input("length", tp.i64[()], over=b)
        k, q = tp.input("k", tp.f64[4], over=(b, t)), tp.input("q", tp.f64[4], over=b)
        keys = k[b, 0:T]
        score = tp.where(tp.arange(0, T) < length, tp.einsum("d,nd->n", q, keys), -np.inf)
        tp.output("o", tp.einsum("n,nd->d", tp.softmax(score), keys))

    run = Everywhere(program)
    lengths = np.array([3, 7, 1, 0])
    k, q = normal(4, 7, 4, dtype=np.float64), normal(4, 4, dtype=np.float64, seed=1)
    expected = np.zeros((4, 4))
    for b, n in enumerate(lengths):
        e = np.exp(k[b, :n] @ q[b])
        expected[b] = e / e.sum() @ k[b, :n] if n else 0
    run.gives({"o": expected}, length=lengths, k=k, q=q)
    for b, n in enumerate(lengths[:3]):
        run.gives({"o": expected[b : b + 1]}, length=lengths[b : b + 1], k=k[b : b + 1, :n], q=q[b : b + 1])


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 0.25, -1.5, 3.0, -2.0])
def test_a_constant_exponent_gives_what_an_array_of_it_gives(target, exponent):
    @tp.program
    def powers():
        x = tp.input("x", tp.f64[6])
        tp.output("constant", x**exponent)
        tp.output("array", x ** tp.input("e", tp.f64[6]))

    x = np.array([-np.inf, -0.0, 0.0, 2.25, np.inf, np.nan])
    out = tp.compile(powers(), target)(x=x, e=np.full(6, exponent))
    with np.errstate(divide="ignore"):
        expected = np.power(x, np.full(6, exponent))
    np.testing.assert_allclose(out["constant"], expected, rtol=1e-12)
    np.testing.assert_allclose(out["array"], expected, rtol=1e-12)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("as_text", [False, True])
def test_zeros_of_an_array_keep_their_signs(target, dtype, as_text):
    """0.0 and -0.0 are equal, but no array of one number; of each array there is one program."""
    for zeros in ([0.0, 0.0, -0.0], [-0.0, 0.0, 0.0], [-0.0, -0.0, -0.0], [0.0, 0.0, 0.0]):

        @tp.program
        def quotients(divisors=zeros):
            x = tp.input("x", tp.f64[3])
            tp.output("y", x / tp.cast(np.array(divisors, dtype), tp.f64))

        program = quotients()
        source = parse_module(str(program)) if as_text else program
        out = tp.compile(source, target)(x=np.ones(3))
        assert out["y"].tolist() == [np.copysign(np.inf, zero) for zero in zeros]


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_an_array_of_no_elements(target):
    @tp.program
    def nothing():
        x = tp.input("x", tp.f32[3, 0])
        tp.output("sum", x + np.zeros((3, 0), np.float32))
        tp.output("either", tp.where(np.zeros((3, 0), np.bool_), x, 1.0))
        tp.output("total", tp.sum(x + np.zeros((3, 0), np.float32), axis=1))

    out = tp.compile(nothing(), target)(x=np.zeros((3, 0), np.float32))
    assert out["sum"].shape == out["either"].shape == (3, 0)
    assert out["total"].tolist() == [0.0, 0.0, 0.0]
