"""sdg-remat: what is computed anew, at sizes round that of a block; what stays; budgets; and the values."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
from passes_support import apply, program_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

import tempo_ir as tp
from examples.bptt import bptt
from tempo_ir import nn
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.passes.pipeline import recomputing_pipeline
from tempo_ir.passes.remarks import collecting
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.reference.sdg import run
from tempo_ir.runtime.errors import CompileError
from tests.fuzz.arguments import admissible, draw

Program = Callable[[], None]
BLOCKS = (1, 4)


def network(steps: tp.Expr | None = None) -> tuple[tp.Tensor, tp.Tensor, tp.Tensor, tp.Dim]:
    """`h[t] = tanh(h[t - 1] w + x u)`, and what else a program needs."""
    t, _ = tp.dim("t") if steps is None else tp.dim("t", steps)
    x = tp.input("x", tp.f64[2, 3], over=t)
    w, u = tp.parameter("w", tp.f64[4, 4]), tp.parameter("u", tp.f64[3, 4])
    h = tp.tensor("h", tp.f64[2, 4], over=t)
    h[0] = tp.tanh(x[0] @ u)
    h[t] = tp.tanh(h[t - 1] @ w * 0.3 + x @ u)
    return h, w, u, t


def plain():
    h, w, u, _ = network()
    loss = tp.mean(h * h)
    tp.output("dw", tp.grad(loss, w))
    tp.output("du", tp.grad(loss, u))


def with_outputs():
    """Rows that the caller gets, and the loss of each step."""
    h, w, _, t = network()
    loss = tp.mean(tp.sin(h))
    tp.output("h", h)
    tp.output("loss", loss)
    tp.output("dw", tp.grad(loss, w))
    tp.output("rows", tp.stop_gradient(h)[0 : t + 1].sum(0))


def two_values():
    """A cell and a state, each of which reads both."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f64[3], over=t)
    w = tp.parameter("w", tp.f64[3])
    c, h = tp.tensor("c", tp.f64[3], over=t), tp.tensor("h", tp.f64[3], over=t)
    c[0], h[0] = x[0] * w, tp.sin(x[0])
    c[t] = tp.sigmoid(h[t - 1] * w) * c[t - 1] + tp.tanh(x)
    h[t] = tp.tanh(c) * tp.sigmoid(x + h[t - 1])
    tp.output("dw", tp.grad((h * x).sum(), w))
    tp.output("dx", tp.grad((h * x).sum(), x))


def second_order():
    """Reads of the two steps before; a gradient of each step."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f64[3], over=t)
    h = tp.tensor("h", tp.f64[3], over=t)
    h[t < 2] = tp.sin(x)
    h[t] = tp.tanh(h[t - 1] * h[t - 2] + x)
    tp.output("dx", tp.grad((h * h).sum(), x))


def training():
    """Steps of gradient descent, each through all of t."""
    (i, _), (t, _) = tp.dims("i", "t")
    w = tp.state("w", tp.f64[3], init=0.3, steps=i)
    x = tp.input("x", tp.f64[3], over=(i, t))
    h = tp.tensor("h", tp.f64[3], over=(i, t))
    h[i, 0] = x[i, 0]
    h[i, t] = tp.tanh(h[i, t - 1] * w[i] + x[i, t])
    loss = tp.mean(h * h)
    w.next = w[i] - 0.01 * tp.grad(loss, w)[i]
    tp.output("loss", loss)


def weights_of_each_step():
    """A loss that weighs steps by their number; weights of each step."""
    t, _ = tp.dim("t")
    w = tp.input("w", tp.f64[3], over=t)
    h = tp.tensor("h", tp.f64[3], over=t)
    h[0] = w[0]
    h[t] = tp.sin(h[t - 1] * w[t]) + w[t]
    tp.output("dw", tp.grad((h * tp.cast(t, tp.f64)).sum(), w))


def draws():
    """Dropout, and what steps add to noise: the same numbers the second time."""
    t, _ = tp.dim("t")
    x, w = tp.input("x", tp.f64[3], over=t), tp.parameter("w", tp.f64[3])
    h = tp.tensor("h", tp.f64[3], over=t)
    h[0] = x[0]
    kept = (tp.random.uniform(0.0, 1.0, tp.f64[3], over=t) < 0.7).cast(tp.f64)
    h[t] = tp.tanh(h[t - 1] * w * kept + tp.random.normal(0.0, 1.0, tp.f64[3], over=t)) + x
    tp.output("dw", tp.grad((h * h).sum(), w))


def sums_of_rows():
    """A mean over all steps of what a backward recurrence makes, and its greatest."""
    (t, T) = tp.dim("t")
    x = tp.input("x", tp.f64[2, 4], over=t)
    h, g = tp.tensor("h", tp.f64[2, 4], over=t), tp.tensor("g", tp.f64[2, 4], over=t)
    h[0] = x[0]
    h[t] = tp.tanh(h[t - 1]) + x
    g[T - 1] = h[T - 1]
    g[t] = tp.cos(g[t + 1]) * h[t]
    tp.output("sum", g[0:T].sum(0))
    tp.output("greatest", g[0:T].max((0, 1)))
    tp.output("products", tp.einsum("tbk,tbn->kn", g[0:T], h[0:T]))
    tp.output("with inputs", tp.einsum("tbk,tbn->kn", x[0:T], g[0:T]))


def inner_points():
    """Another dim beside t, which a block does not touch."""
    (e, _), (t, _) = tp.dim("e", 2), tp.dim("t")
    x = tp.input("x", tp.f64[3], over=(e, t))
    w = tp.parameter("w", tp.f64[3])
    h = tp.tensor("h", tp.f64[3], over=(e, t))
    h[e, 0] = x[e, 0]
    h[e, t] = tp.tanh(h[e, t - 1] * w) + x
    tp.output("dw", tp.grad((h * h).sum(), w))


def bounded():
    h, w, _, _ = network(11)
    tp.output("dw", tp.grad(tp.mean(h), w))


APPLIES = (
    plain, with_outputs, two_values, second_order, training, weights_of_each_step, inner_points, bounded, draws,
    sums_of_rows,
)  # fmt: skip


@functools.cache
def graphs(program: Program, block: int) -> tuple[ModuleOp, ModuleOp]:
    """Before and after the pass; its own passes run before."""
    names = [name for name, _ in recomputing_pipeline((), {})]
    before = apply(tp.program(program)().module.clone(), *names[: names.index("sdg-remat")])
    with collecting() as collector:
        after = apply(before.clone(), "sdg-remat", block=block)
    assert collector.statistics["sdg-remat"]["recomputed"] > 0, collector.remarks
    return before, after


def sizes(program: ProgramOp, block: int) -> list[dict[str, int]]:
    """Values of the bounds: T round the length of a block."""
    every = (
        {**dict.fromkeys(program.space.params, 2), "T": size}
        for size in (0, 1, block - 1, block, block + 1, 2 * block + 3)
    )
    return [bounds for bounds in every if admissible(program, bounds)]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("program", APPLIES)
def test_the_values_stay(program: Program, block: int):
    before, after = (program_of(module) for module in graphs(program, block))
    simplified = program_of(apply(graphs(program, block)[1].clone(), "sdg-simplify", "sdg-reduce-domain", "sdg-dce"))
    for bounds in sizes(before, block):
        arguments = draw(before, bounds, bounds["T"])
        expected = run(before, arguments, bounds)
        for graph in (after, simplified):
            found = run(graph, arguments, bounds)
            for key, value in expected.items():
                np.testing.assert_allclose(found[key], value, 1e-11, 1e-11, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("program", [plain, with_outputs, second_order, training, draws])
def test_on_the_cpu(program: Program):
    source = tp.program(program)()
    executable = tp.compile(source, remat={"block": 4})
    before = program_of(graphs(program, 4)[0])
    for bounds in sizes(before, 4):
        arguments = draw(before, bounds, bounds["T"])
        expected = run(before, arguments, bounds)
        state = {key: arguments.pop(key) for key in executable.signature.parameters}
        out = executable(**arguments, **bounds, state=state)
        for key, value in expected.items():
            found = out.state[key] if key in out.state else out[key]
            np.testing.assert_allclose(found, value, 1e-11, 1e-11, err_msg=f"{key} at {bounds}")


def test_draws_go_on_from_where_a_call_starts():
    """As many draws as the program has without blocks, at the same steps."""
    source = tp.program(draws)()
    executable, whole = tp.compile(source, remat={"block": 4}), tp.compile(source)
    generator = np.random.default_rng(0)
    x, state = generator.normal(size=(9, 3)), {"w": generator.normal(size=3)}
    for start in ({}, {"t": 5}):
        found, expected = (each(x=x, state=state, seed=3, start=start)["dw"] for each in (executable, whole))
        np.testing.assert_allclose(found, expected, 1e-11, 1e-11)
    assert not np.allclose(found, whole(x=x, state=state, seed=3)["dw"])


def test_rows_of_one_block_and_one_of_each():
    executable = tp.compile(bptt(batch=2, inputs=1, width=8), remat={"block": 10})
    row = 2 * 8 * 4
    text = str(executable.formed)
    assert "%h_kept = loop.alloc : !loop.buffer<(b: full to T floordiv 10) 2x8xf32>" in text
    x, wanted = np.ones((1000, 2, 1), np.float32), np.ones((1000, 2), np.float32)
    executable(x=x, wanted=wanted, state=executable.init(0))
    assert executable.stats.peak_bytes < row * (1000 / 10 + 8 * 10) + 4096


@tp.program
def with_all_rows():
    """The caller gets states of the forward side, and gradients of the backward one, at all steps."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f64[2, 3], over=t)
    u = tp.parameter("u", tp.f64[3, 64])
    inputs = tp.stop_gradient(x) * 1.0
    h = tp.tensor("h", tp.f64[2, 64], over=t)
    h[0], h[t] = 0.0, tp.tanh(h[t - 1] * 0.5 + inputs @ u)
    loss = (h * h).sum()
    tp.output("h", h)
    tp.output("gradients", tp.grad(loss, inputs))
    tp.output("total", loss[0:T].sum())


def test_rows_that_the_caller_gets_lie_in_its_arrays_alone():
    """Values in blocks that are outputs over all steps are computed into the arrays of the outputs, not copied there:
    what the program keeps beside them does not grow by a row a step."""
    source = with_all_rows()
    executable, whole = tp.compile(source, remat={"block": 8}), tp.compile(source)
    text = str(executable.formed)
    assert "outs(%h[8 * b + j])" in text
    assert "t floordiv 8" not in text
    state = {"u": np.random.default_rng(0).normal(size=(3, 64)) * 0.3}
    for size in (0, 1, 7, 8, 9, 63, 64, 65):
        x = np.random.default_rng(size).normal(size=(size, 2, 3))
        found, expected = executable(x=x, state=state), whole(x=x, state=state)
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, 1e-11, 1e-11, err_msg=f"{key} at T = {size}")
    executable(x=np.ones((8000, 2, 3)), state=state)
    assert executable.stats.peak_bytes < 8000 * 2 * 64 * 8 / 8


# ---- budgets ----


def test_within_a_budget_the_rest_keeps_what_is_most_work():
    """A twentieth of what all rows take; and more, which keeps the product of the state with its weights."""
    program = bptt(batch=4, inputs=2, width=16)
    x, wanted = np.ones((2000, 4, 2), np.float32), np.ones((2000, 4), np.float32)
    arguments = {"x": x, "wanted": wanted, "state": program.init(0)}
    whole = tp.compile(program)
    expected = whole(**arguments)
    full = whole.stats.peak_bytes
    peaks: list[int] = []
    for share in (20, 3):
        executable = tp.compile(program, remat={"budget": full // share, "steps": 2000})
        found = executable(**arguments)
        peaks.append(executable.stats.peak_bytes)
        assert peaks[-1] <= full // share
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, 1e-3, 1e-3 * float(np.abs(value).max()), err_msg=key)
    assert peaks[0] < peaks[1]


def remarks(program: Program, **options: object) -> list[str]:
    """What the pass says of a program that it leaves as it is; fails if it does not."""
    names = [name for name, _ in recomputing_pipeline((), {})]
    before = apply(tp.program(program)().module.clone(), *names[: names.index("sdg-remat")])
    with collecting() as collector:
        after = apply(before.clone(), "sdg-remat", **options)
    assert str(after) == str(before)
    return [found.message for found in collector.remarks]


def test_all_rows_are_kept_where_they_fit():
    (found,) = remarks(plain, budget=10**9)
    assert re.fullmatch(r"not computed anew along t: all rows are \d+ bytes, within the budget", found)


def test_a_budget_that_is_too_small_is_said():
    before = graphs(plain, 4)[0]
    with collecting() as collector:
        apply(before.clone(), "sdg-remat", budget=100)
    assert [found.message for found in collector.remarks if "over the budget" in found.message]


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "say what may be kept"), ({"block": 0}, "block is a count of 1 to")],
)
def test_what_is_refused(options: dict[str, int], message: str):
    with pytest.raises(PassFailedException, match=message):
        apply(graphs(plain, 4)[0].clone(), "sdg-remat", **options)


def test_an_option_of_a_compile_that_is_none():
    with pytest.raises(CompileError, match=r"remat has no option 'bytes'; its options: block, budget, steps"):
        tp.compile(tp.program(plain)(), remat={"bytes": 3})


# ---- what stays ----


def forward_only():
    h, _, _, t = network()
    tp.output("h", h)


def attention():
    """Each step reads all before."""
    t, _ = tp.dim("t")
    w = tp.parameter("w", tp.f64[3])
    h = tp.tensor("h", tp.f64[3], over=t)
    h[0] = w
    h[t] = tp.tanh((h[0:t] * h[t - 1]).max(0) * w)
    tp.output("dw", tp.grad((h * h).sum(), w))


@pytest.mark.parametrize(
    ("program", "message"),
    [(forward_only, "there is no backward recurrence along it"), (attention, "reads a range of its steps")],
)
def test_what_stays(program: Program, message: str):
    assert any(message in found for found in remarks(program, block=4))


class Counter:
    """Sines, and how often it was asked for one."""

    def __init__(self) -> None:
        self.calls = 0

    def step(self, x: np.ndarray) -> tuple[np.ndarray, np.float64]:
        self.calls += 1
        return np.sin(x), np.float64(self.calls)


@tp.program
def with_calls():
    """What a host gives is kept; the calls stay in their order."""
    t, T = tp.dim("t")
    x, w = tp.input("x", tp.f64[3], over=t), tp.parameter("w", tp.f64[3])
    h = tp.tensor("h", tp.f64[3], over=t)
    seen, calls = tp.host(Counter).step(x, returns=[tp.f64[3], tp.f64])
    h[0] = seen[0]
    h[t] = tp.tanh(h[t - 1] * w) + seen
    tp.output("dw", tp.grad((h * h).sum() * calls, w))
    tp.output("calls", calls[0:T].sum())


def test_calls_of_the_host_are_not_repeated():
    source = with_calls()
    executable, whole = tp.compile(source, remat={"block": 4}), tp.compile(source)
    assert "h_again" in str(executable.formed)
    generator = np.random.default_rng(0)
    for size in (0, 1, 3, 4, 5, 11):
        arguments = {"x": generator.normal(size=(size, 3)), "state": {"w": generator.normal(size=3)}}
        found, expected = executable(**arguments), whole(**arguments)
        assert found["calls"] == size * (size + 1) / 2
        np.testing.assert_allclose(found["dw"], expected["dw"], 1e-11, 1e-11, err_msg=f"T = {size}")


class Failing(Counter):
    def step(self, x: np.ndarray) -> tuple[np.ndarray, np.float64]:
        if self.calls == 9:
            raise ValueError("the environment is gone")
        return super().step(x)


@tp.program
def with_quotients():
    """Integers that are divided in a block."""
    t, _ = tp.dim("t")
    x, w = tp.input("x", tp.f64[3], over=t), tp.parameter("w", tp.f64[3])
    n = tp.input("n", tp.i64[3], over=t)
    h = tp.tensor("h", tp.f64[3], over=t)
    h[0] = x[0]
    h[t] = tp.tanh(h[t - 1] * w) + (12 // n).cast(tp.f64)
    tp.output("dw", tp.grad((h * h).sum(), w))


def test_errors_name_the_point_of_the_program():
    """The step t, not its block and the place in it."""
    executable = tp.compile(with_calls(), remat={"block": 4})
    with pytest.raises(ValueError, match="the environment is gone") as caught:
        executable(x=np.ones((12, 3)), state={"w": np.ones(3)}, hosts={executable.signature.hosts[0]: Failing})
    assert "t = 9" in caught.value.__notes__[0]
    divided = tp.compile(with_quotients(), remat={"block": 4})
    assert "h_again" in str(divided.formed)
    n = np.ones((12, 3), np.int64)
    n[6] = 0
    with pytest.raises(ExecutionError, match=r"t = 6\b"):
        divided(x=np.ones((12, 3)), n=n, state={"w": np.ones(3)})


class Squares:
    """A function with a gradient of its own, and the order in which it is asked."""

    asked: ClassVar[list[str]] = []

    def step(self, x: np.ndarray) -> np.ndarray:
        self.asked.append("there")
        return x * x

    def back(self, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
        self.asked.append("back")
        return 2 * x * dy


@tp.program
def through_calls():
    """A host function inside of the recurrence: the gradient goes through it."""
    t, _ = tp.dim("t")
    x, w = tp.input("x", tp.f64[3], over=t), tp.parameter("w", tp.f64[3])
    h, before = tp.tensor("h", tp.f64[3], over=t), tp.tensor("before", tp.f64[3], over=t)
    before[0], before[t] = x[0], h[t - 1]
    h[t] = tp.tanh(tp.host(Squares).step(before * w, returns=tp.f64[3], gradient="back") + x)
    tp.output("dw", tp.grad((h * h).sum(), w))


def test_calls_that_carry_gradients_back_are_asked_once_each():
    source = through_calls()
    executable, whole = tp.compile(source, remat={"block": 4}), tp.compile(source)
    generator = np.random.default_rng(0)
    for size in (0, 1, 3, 4, 5, 11):
        arguments = {"x": generator.normal(size=(size, 3)), "state": {"w": generator.normal(size=3)}}
        expected = whole(**arguments)["dw"]
        Squares.asked.clear()
        np.testing.assert_allclose(executable(**arguments)["dw"], expected, 1e-11, 1e-11, err_msg=f"T = {size}")
        assert Squares.asked == ["there"] * size + ["back"] * size


@tp.program
def lstm(width: int = 8):
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f64[width], over=t)
    cell = nn.LSTMCell(width, width, name="cell", dtype=tp.f64)
    h, c = tp.tensor("h", tp.f64[width], over=t), tp.tensor("c", tp.f64[width], over=t)
    h[0], c[0] = 0.0, 0.0
    h[t], c[t] = cell(x[t - 1], (h[t - 1], c[t - 1]))
    tp.output("gradient", tp.grad(tp.mean(h * h), cell))


def test_a_cell_keeps_two_rows_of_each_block():
    source = lstm()
    executable, whole = tp.compile(source, remat={"block": 12}), tp.compile(source)
    state = source.init(0)
    for size in (0, 1, 12, 13, 400):
        x = np.random.default_rng(size).normal(size=(size, 8))
        found, expected = executable(x=x, state=state), whole(x=x, state=state)
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, 1e-10, 1e-10, err_msg=f"{key} at T = {size}")
    assert 5 * executable.stats.peak_bytes < whole.stats.peak_bytes


def test_how_many_numbers_a_range_has_does_not_count_on_from_the_start():
    @tp.program
    def program():
        t, T = tp.dim("t")
        w = tp.input("w", tp.f64[3, 3])
        x = tp.input("x", tp.f64[3], over=t)
        ahead = tp.arange(tp.minimum(T - t, 2)).cast(tp.f64).sum()
        h = tp.tensor("h", tp.f64[3], over=t)
        h[0] = x[0]
        h[t] = tp.tanh(h[t - 1] @ w + x * ahead)
        tp.output("dw", tp.grad(tp.sum(h[0:T] ** 2), w))

    plain = apply(program().module.clone(), "sdg-autodiff")
    blocks = apply(plain.clone(), "sdg-remat", block=2)
    assert "sdg.arange [0:" in str(blocks)
    for size in (1, 2, 3, 6):
        arguments = draw(program_of(plain), {"T": size}, 0)
        for start in (0, 5):
            expected, found = (
                run(program_of(each), arguments, {"T": size}, start={"t": start}) for each in (plain, blocks)
            )
            np.testing.assert_allclose(found["dw"], expected["dw"], 1e-10, 1e-12)
