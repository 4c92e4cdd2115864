"""sdg-accumulate: sums over all steps that are kept as they run, what must stay, how few rows are kept, the values."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import numpy as np
import pytest
from passes_support import apply, check_values_stay, parse, program_of

import tempo_ir as tp
from examples.n_step import n_step
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.index.closed_form import symbol
from tempo_ir.passes.remarks import collecting
from tempo_ir.reference.sdg import run
from tests.fuzz.arguments import admissible, draw

SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)
BEFORE = ("sdg-autodiff", "sdg-simplify", "sdg-devectorize", "sdg-unlift", "sdg-lift")
Program = Callable[[], None]


def states(dtype: tp.DType = tp.f64, over: str = "t") -> tuple[tp.Tensor, tp.Dim, tp.Dim]:
    """A recurrence along t, 16 rows of 6."""
    t, T = tp.dim(over)
    a = tp.input("a", dtype[16, 6], over=t)
    h = tp.tensor("h", dtype[16, 6], over=t)
    h[0] = a[0]
    h[t + 1] = (tp.tanh(h) + a).cast(dtype)
    return h, t, T


def reductions():
    h, t, T = states()
    tp.output("sum", h[0:T].sum(0))
    tp.output("every", h[0:T].sum())
    tp.output("product", h[0:T].prod((0, 1)))
    tp.output("greatest", tp.exp(h)[0:T].max(0))
    tp.output("product of two", tp.einsum("tbk,tbn->kn", h[0:T], tp.exp(-h)[0:T]))
    tp.output("from the third", h[tp.minimum(2, T) : T].sum(0))


def means():
    h, t, T = states()
    tp.output("mean", h[0:T].mean(0))
    tp.output("every", h[0:T].mean())


def looking_ahead():
    h, t, T = states()
    later = h[t : tp.minimum(t + 4, T)].sum((0, 2))
    tp.output("y", tp.einsum("tb,tbk->k", later[0:T], h[0:T]))


def training():
    """Steps of gradient descent, each of an episode of its own."""
    (i, I), (t, T) = tp.dims("i", "t")
    w = tp.state("w", tp.f64[6, 2], init=0.1, steps=i)
    a = tp.input("a", tp.f64[16, 6], over=(i, t))
    h = tp.tensor("h", tp.f64[16, 6], over=(i, t))
    score = h @ w[i]
    h[i, 0] = a[i, 0]
    h[i, t + 1] = tp.tanh(tp.stop_gradient(score.sum()) * 0.1 + h) + a
    reward = tp.stop_gradient(h.sum(1))
    loss = tp.mean(tp.sin(score).sum(1) * reward[i, t : tp.minimum(t + 3, T)].sum(0))
    w.next = w[i] - 0.001 * tp.grad(loss, w)[i]
    tp.output("loss", loss)


def integers():
    t, T = tp.dim("t")
    a = tp.input("a", tp.i32[16, 6], over=t)
    h = tp.tensor("h", tp.i32[16, 6], over=t)
    h[0] = a[0]
    h[t + 1] = h // 2 + a
    tp.output("sum", h[0:T].sum((0, 1)))
    tp.output("least", h[0:T].min((0, 1)))
    tp.output("greatest", h[0:T].max((0, 1, 2)))


def sixteen_bits():
    h, t, T = states(tp.f16)
    tp.output("sum", h[0:T].sum(0))
    tp.output("mean", h[0:T].mean((0, 1)))


def two_dims():
    """Sums over e of what recurs along t, for each t; over t of what recurs along it."""
    (e, _), (t, T) = tp.dim("e", 3), tp.dim("t")
    a = tp.input("a", tp.f64[16, 6], over=(e, t))
    h = tp.tensor("h", tp.f64[16, 6], over=(e, t))
    h[e, 0] = a[e, 0]
    h[e, t + 1] = tp.tanh(h) + a
    tp.output("each", h[e, 0:T].sum((0, 1)))
    tp.output("squares", tp.einsum("tbk,tbk->k", h[e, 0:T], h[e, 0:T]))


APPLIES: dict[Program, int] = {
    reductions: 6, means: 2, looking_ahead: 1, training: 1, integers: 3, sixteen_bits: 2, two_dims: 2,
}  # fmt: skip
"""How many sums are accumulated where none is too large."""


@functools.cache
def graphs(program: Program):
    """Before and after the pass, and how often it applied."""
    before = apply(tp.program(program)().module.clone(), *BEFORE)
    with collecting() as collector:
        after = apply(before.clone(), "sdg-accumulate", memory=0)
    return before, after, collector.statistics["sdg-accumulate"]["accumulated"]


@pytest.mark.parametrize("program", APPLIES)
def test_it_applies(program: Program):
    assert graphs(program)[2] == APPLIES[program]


@pytest.mark.parametrize("program", APPLIES)
def test_the_values_stay(program: Program):
    before, after = (program_of(module) for module in graphs(program)[:2])
    vectorised = program_of(apply(after.parent_op().clone(), "sdg-vectorize", "sdg-simplify", "sdg-reduce-domain"))
    tolerance = 2e-3 if program is sixteen_bits else 1e-12
    for bounds in admissible_sizes(before):
        arguments = draw(before, bounds, bounds["T"])
        expected = run(before, arguments, bounds)
        for graph in (after, vectorised):
            found = run(graph, arguments, bounds)
            for key, value in expected.items():
                np.testing.assert_allclose(found[key], value, tolerance, tolerance, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("program", [looking_ahead, training, two_dims])
def test_on_the_cpu(program: Program):
    before = graphs(program)[0]
    on, off = tp.compile(before), tp.compile(before, without=("sdg-accumulate",))
    for bounds in admissible_sizes(program_of(before)):
        arguments = draw(program_of(before), bounds, bounds["T"])
        state = {key: arguments.pop(key) for key in on.signature.parameters}
        expected = run(program_of(before), {**arguments, **state}, bounds)
        for executable in (on, off):
            out = executable(**arguments, **bounds, state=state)
            for key, value in expected.items():
                found = out.state[key] if key in out.state else out[key]
                np.testing.assert_allclose(found, value, 1e-11, 1e-11, err_msg=f"{key} at {bounds}")


def admissible_sizes(program: ProgramOp) -> list[dict[str, int]]:
    """Values of the bounds, T among them."""
    every = ({**dict.fromkeys(program.space.params, 3), "T": size} for size in SIZES)
    return [bounds for bounds in every if admissible(program, bounds)]


# ---- learning from n-step returns ----

SMALL = {"envs": 16, "side": 4, "hidden": 8}


@functools.cache
def learner(n: int | None, without: tuple[str, ...] = ()) -> tp.Executable:
    return tp.compile(n_step(n=n, **SMALL), without=without)


@pytest.mark.parametrize("n", [1, 3, 8, None])
def test_gradients_of_returns_over_n_steps(n: int | None):
    program = n_step(n=n, **SMALL)
    state = program.init(0)
    for size in SIZES:
        expected = program.run(T=size, state=state, seed=5)
        for without in ((), ("sdg-accumulate",), ("sdg-accumulate", "sdg-vectorize")):
            found = learner(n, without)(T=size, state=state, seed=5)
            assert found.keys() == expected.keys()
            for key, value in expected.items():
                scale = max(1e-3, float(np.abs(value).max()))
                np.testing.assert_allclose(found[key] / scale, value / scale, 0, 2e-5, err_msg=f"{key} at T = {size}")


def test_n_rows_are_kept_and_not_all():
    row = 16 * 3 * 4 * 4 * 4
    for n in (1, 3, 8):
        on, off = learner(n), learner(n, ("sdg-accumulate",))
        peak, whole = (executable.costs.near({"T": 1000}).peak_bytes for executable in (on, off))
        assert peak.is_number
        assert peak < (n + 1) / 0.8 * row + 4 * (n + 1) * 16 * 4 * 8
        assert whole.coeff(symbol("T")) >= row
        state = on.init(0)
        on(T=100, state=state)
        measured = on.stats.peak_bytes
        on(T=200, state=state)
        assert on.stats.peak_bytes == measured
        assert on.costs.near({"T": 1000}).copies == off.costs.near({"T": 1000}).copies == 0


def test_the_sums_are_updated_in_place():
    lowered = str(learner(3).formed)
    for line in lowered.splitlines():
        if "loop.kernel" in line and "outs(%gpolicy" in line:
            (written,) = re.findall(r"outs\((%\w+)", line)
            assert f"= {written}" in line.split("outs")[0], line


# ---- what stays ----


def stays(program: Program, **options: int) -> list[str]:
    """Why the pass leaves a program as it is; fails if it does not."""
    before = apply(tp.program(program)().module.clone(), *BEFORE)
    with collecting() as collector:
        after = apply(before.clone(), "sdg-accumulate", **options)
    assert str(after) == str(before)
    return [found.message for found in collector.remarks]


def to_the_end():
    h, t, T = states()
    tp.output("y", tp.einsum("tb,tbk->k", h[t:T].sum((0, 2))[0:T], h[0:T]))


def after_the_last():
    """A row that needs the mean of all."""
    h, t, T = states()
    total = h[0:T].sum((0, 1, 2))
    tp.output("y", (h * total)[0:T].sum((0, 1, 2)))


def output_too():
    h, t, T = states()
    tp.output("y", h[0:T].sum())
    tp.output("every", h)


def no_loop():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[16, 6], over=t)
    tp.output("y", tp.einsum("tbk,tbn->kn", tp.tanh(a)[0:T], a[0:T]))


def one_row():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f64[6], over=t)
    h = tp.tensor("h", tp.f64[6], over=t)
    h[0] = a[0]
    h[t + 1] = tp.tanh(h) + a
    tp.output("y", tp.einsum("tk,tn->kn", h[0:T], tp.exp(h)[0:T]))


def few_steps():
    t, T = tp.dim("t", 4)
    a = tp.input("a", tp.f64[16, 6], over=t)
    h = tp.tensor("h", tp.f64[16, 6], over=t)
    h[0] = a[0]
    h[t + 1] = tp.tanh(h) + a
    tp.output("y", tp.einsum("tb,tbk->k", h[t : tp.minimum(t + 4, 4)].sum((0, 2))[0:T], h[0:T]))


@pytest.mark.parametrize("program", [to_the_end, few_steps])
def test_what_waits_for_the_last_step_stays(program: Program):
    assert any("waits for the last step" in message for message in stays(program, memory=0))


@pytest.mark.parametrize("spec", ["tk,sk->", "tk,sk->tk", "ti,sj->ij", "tk,sn->s"])
def test_rows_beside_all_rows_of_the_same_dim_stay(spec: str):
    """A range that two letters stand for: each row would need all those that the other one names."""

    def program():
        h, t, T = states()
        tp.output("y", tp.einsum(spec, h[0:T].sum(1), tp.exp(h)[0:T].sum(1)))

    stays(program, memory=0)


def test_without_a_loop_it_stays_where_there_is_memory():
    assert stays(no_loop) == []
    before = apply(tp.program(no_loop)().module.clone(), *BEFORE)
    for options in ({"memory": 0}, {"dims": ("t",)}):
        assert str(apply(before.clone(), "sdg-accumulate", **options)) != str(before)


def test_rows_smaller_than_their_sum_stay_within_the_memory():
    assert stays(one_row) == ["not accumulated over t: its rows are 96 bytes a step, the sums 288"]
    before = apply(tp.program(one_row)().module.clone(), *BEFORE)
    assert str(apply(before.clone(), "sdg-accumulate", memory=96 * 256 - 1)) != str(before)


def test_rows_that_are_kept_anyway_stay():
    assert stays(output_too, memory=0) == ["not accumulated over t: its rows are 0 bytes a step, the sums 8"]
    assert sorted(stays(after_the_last, memory=0)) == [
        "not accumulated over t: its rows are 0 bytes a step, the sums 8",
        "not accumulated over t: what it reduces waits for the last step",
    ]


def back_through_time():
    """Gradients of weights that all steps share, by back-propagation through time."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f64[4, 3], over=t)
    w = tp.parameter("w", tp.f64[3, 3])
    b = tp.parameter("b", tp.f64[3])
    h = tp.tensor("h", tp.f64[4, 3], over=t)
    h[0] = 0.0
    h[t] = tp.tanh(x + h[t - 1] @ w + b)
    loss = (h * h).sum()
    tp.output("w", tp.grad(loss, w))
    tp.output("b", tp.grad(loss, b))


def test_gradients_are_summed_on_the_way_back() -> None:
    """With no memory for rows the sums are kept in the loop down, and give the same; by default nothing changes."""
    before = tp.program(back_through_time)().module
    for name in BEFORE:
        apply(before, name)
    kept, summed = apply(before.clone(), "sdg-accumulate"), apply(before.clone(), "sdg-accumulate", memory=0)
    assert str(kept) == str(before)
    assert str(summed).count("[t + 1]") > str(before).count("[t + 1]")
    for T in SIZES:
        generator = np.random.default_rng(T)
        arrays = {"x": generator.normal(size=(T, 4, 3)), "w": 0.3 * generator.normal(size=(3, 3)), "b": np.ones(3)}
        expected, computed = (run(program_of(module), arrays, {"T": T}) for module in (before, summed))
        for key, value in expected.items():
            np.testing.assert_allclose(computed[key], value, rtol=1e-9, atol=1e-12)


def fed_back_through_time() -> None:
    """As `back_through_time`, of inputs that are a product with weights of their own."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f64[4, 3], over=t)
    w, v = tp.parameter("w", tp.f64[3, 3]), tp.parameter("v", tp.f64[3, 3])
    h = tp.tensor("h", tp.f64[4, 3], over=t)
    h[0] = 0.0
    h[t] = tp.tanh(tp.tanh(x @ v) @ w + h[t - 1] @ w)
    tp.output("v", tp.grad((h * h).sum(), v))


@pytest.mark.parametrize("products", [3, 4, 5, 0])
def test_sums_of_many_products_a_step_are_kept_on_the_way_back(products: int) -> None:
    """Each step adds the products of four rows to the gradient of the weights: as many as asked for, or fewer."""
    before = tp.program(back_through_time)().module
    for name in BEFORE:
        apply(before, name)
    found = apply(before.clone(), "sdg-accumulate", products=products)
    assert (str(found) == str(before)) == (products in (5, 0))
    check_values_stay(before, found, SIZES, 1e-9)


def test_products_between_the_recurrence_and_the_sum_are_made_at_once() -> None:
    before = tp.program(fed_back_through_time)().module
    for name in BEFORE:
        apply(before, name)
    assert str(apply(before.clone(), "sdg-accumulate", products=1)) == str(before)


def weighted_by_returns() -> None:
    """The gradient of a layer whose outputs are weighted by discounted returns."""
    t, T = tp.dim("t")
    x, r = tp.input("x", tp.f64[4, 3], over=t), tp.input("r", tp.f64[4], over=t)
    w = tp.parameter("w", tp.f64[3, 3])
    later = tp.tensor("later", tp.f64[4], over=t)
    later[T - 1] = r
    later[t] = r + 0.9 * later[t + 1]
    tp.output("w", tp.grad((tp.tanh(x @ w) * later[..., None]).sum(), w))


def test_a_recurrence_without_products_makes_none() -> None:
    """One product of all steps reads what its loop, of little work, would read anew."""
    before = tp.program(weighted_by_returns)().module
    for name in BEFORE:
        apply(before, name)
    assert str(apply(before.clone(), "sdg-accumulate", products=1)) == str(before)
    summed = apply(before.clone(), "sdg-accumulate", memory=0)
    assert str(summed) != str(before)
    check_values_stay(before, summed, SIZES, 1e-9)


def test_a_dim_of_one_point():
    """No point comes before it: the running sum has no case that reads one."""
    text = """
    sdg.program @p dims(b: 1, t: T) {
      %x = sdg.input "x" in (b, t) : tensor<4xf32>
      %y = sdg.tanh %x[b, t] in (b, t) : (tensor<4xf32>) -> tensor<4xf32>
      %s = sdg.sum %y[0:1, t] axes [0] in (t) : (tensor<4xf32>) -> tensor<4xf32>
      sdg.output "s" %s[t] in (t) : tensor<4xf32>
    }"""
    module = parse(text)
    check_values_stay(module, apply(module.clone(), "sdg-accumulate", dims=("b",)), SIZES, 1e-6)
