"""Gradients summed over micro-batches, sequences and tiles, and used layer by layer: few bytes, equal values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from passes_support import apply, program_of

import tempo_ir as tp
from examples.accumulate import layers, micro_batches, one_batch, sequences
from tempo_ir.index.closed_form import symbol
from tempo_ir.runtime.errors import CompileError

ROWS, WIDTH = 8, 16
ROW, WEIGHTS = 4 * ROWS * WIDTH, 4 * WIDTH * WIDTH
SMALL = {"rows": ROWS, "width": WIDTH}
ALONG_B: Mapping[str, Any] = {"sdg-accumulate": {"dims": ("b",)}}


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def agree(program: Any, executable: tp.Executable, **arguments: np.ndarray) -> int:
    """A compile gives what the reference interpreter does; the peak of its bytes."""
    state = executable.init(0)
    expected = program.run(**arguments, state=state)
    out = executable(**arguments, state=state)
    for key, value in expected.items():
        scale = max(1e-3, float(np.abs(value).max(initial=0.0)))
        np.testing.assert_allclose(out[key] / scale, value / scale, 0, 2e-5, err_msg=key)
    return executable.stats.peak_bytes


def symbols_of(executable: tp.Executable) -> set[str]:
    """The bounds that the peak of bytes depends on."""
    return {each.name for each in executable.costs.peak_bytes.free_symbols}


def test_micro_batches_keep_the_activations_of_one() -> None:
    program = micro_batches(**SMALL)
    summed, whole = tp.compile(program, options=ALONG_B), tp.compile(program, without=("loop-fuse-rows",))
    assert symbols_of(summed) == set()
    assert symbols_of(whole) == {"B"}  # small rows are kept, where nobody asks for less
    peaks = [agree(program, summed, x=draw(B, ROWS, WIDTH)) for B in (0, 1, 2, 5, 64)]
    assert len(set(peaks[1:])) == 1
    assert peaks[1] <= 4 * ROW + 2 * WEIGHTS
    agree(program, whole, x=draw(64, ROWS, WIDTH))
    assert whole.stats.peak_bytes > 64 * ROW


@pytest.mark.parametrize("dims", [("b",), ("t", "b")])
def test_sequences_keep_the_activations_of_one(dims: tuple[str, ...]) -> None:
    program = sequences(**SMALL)
    summed = tp.compile(program, options={"sdg-accumulate": {"dims": dims}})
    assert program_of(summed.levels.optimised).outermost == ("b",)
    assert symbols_of(summed) == {"T"}
    assert summed.costs.near({"T": 100, "B": 100}).peak_bytes.coeff(symbol("T")) <= 2 * ROW
    for T in (0, 1, 2, 7):
        peaks = {agree(program, summed, x=draw(T, B, ROWS, WIDTH)) for B in (1, 2, 9)}
        assert len(peaks) == 1
        agree(program, summed, x=draw(T, 0, ROWS, WIDTH))


@pytest.mark.parametrize("last", [0, 3])
def test_tiles_of_one_batch_keep_the_activations_of_one(last: int) -> None:
    """Tiles that divide the batch, and that leave three rows."""
    tile = WIDTH
    peaks: list[int] = []
    for count in (2, 4, 20):
        program = one_batch(rows=count * tile + last, width=WIDTH)
        tiled = tp.compile(program, options={"sdg-tile": {"static": True, "tile": tile}})
        peaks.append(agree(program, tiled, x=draw(count * tile + last, WIDTH)))
        agree(program, tp.compile(program), x=draw(count * tile + last, WIDTH))
    assert len(set(peaks)) == 1
    assert peaks[0] <= 8 * 4 * tile * WIDTH + 4 * WEIGHTS


def test_layers_keep_the_gradient_of_one() -> None:
    program = layers(**SMALL)
    executable = tp.compile(program)
    assert executable.costs.near({"L": 100}).peak_bytes.coeff(symbol("L")) == ROW
    peaks = {
        L: agree(program, executable, first=draw(ROWS, WIDTH), w=0.2 * draw(L, WIDTH, WIDTH)) for L in (1, 2, 5, 30)
    }
    assert peaks[30] - peaks[5] <= 25 * ROW + 64


def test_a_memory_budget_asks_for_it() -> None:
    program = micro_batches(**SMALL)
    for B in (8, 64):
        executable = tp.compile(program, memory_budget=8000, sizes={"B": B})
        assert agree(program, executable, x=draw(B, ROWS, WIDTH)) <= 8000
        assert executable.stats.peak_by_space.keys() == {"device"}


def test_much_is_summed_as_it_is_made_by_default() -> None:
    """More than `memory` bytes of activations in `steps` batches, and no fewer in one than of gradients."""
    graphs = {rows: apply(micro_batches(rows=rows, width=256).module.clone(), "sdg-autodiff") for rows in (64, 256)}
    for rows, graph in graphs.items():
        apply(graph, "sdg-simplify")
        before = str(graph)
        apply(graph, "sdg-accumulate")
        assert (str(graph) != before) is (rows == 256)
    few, many = (apply(graphs[64].clone(), "sdg-accumulate", memory=memory) for memory in (2**20, 2**20 - 1))
    assert str(few) == str(many) == str(graphs[64])  # fewer rows than gradients: not by cost
    assert str(apply(graphs[64].clone(), "sdg-accumulate", dims=("b",))) != str(graphs[64])


def test_statistics_of_the_batch_wait_for_all_of_it() -> None:
    """What is normalised by the whole batch is kept, and so is what it is made of."""

    def program() -> None:
        b, B = tp.dim("b", at_least=1)
        x = tp.input("x", tp.f64[4, 4], over=b)
        w = tp.input("w", tp.f64[4, 4])
        y = tp.tanh(x @ w)
        z = y - y[0:B].mean((0, 1))
        tp.output("dw", tp.grad(tp.mean(z**4), w))

    made = tp.program(program)()
    executable = tp.compile(made, options=ALONG_B)
    graph = program_of(executable.levels.optimised)
    assert any("B" in str(op.results[0].type) for op in graph.body.ops if op.results)
    x, w = (np.random.default_rng(0).normal(size=shape) for shape in ((5, 4, 4), (4, 4)))
    np.testing.assert_allclose(executable(x=x, w=w)["dw"], made.run(x=x, w=w)["dw"], rtol=1e-9)


def test_options_that_are_not_there() -> None:
    program = micro_batches(**SMALL)
    with pytest.raises(CompileError, match="options: there is no pass 'sdg-sum' on the graph"):
        tp.compile(program, options={"sdg-sum": {}})
    with pytest.raises(
        CompileError, match="sdg-accumulate has no option 'dim'; its options: steps, memory, products, dims"
    ):
        tp.compile(program, options={"sdg-accumulate": {"dim": "b"}})
    with pytest.raises(tp.ProgramError, match="has no dim `q`; it declares b"):
        tp.compile(program, options={"sdg-accumulate": {"dims": ("q",)}})
