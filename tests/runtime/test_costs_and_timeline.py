"""Closed forms of cost and the memory timeline, against counting by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tempo_ir as tp
from examples.bptt import bptt
from tempo_ir.index.closed_form import value
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.executable import Executable
from tempo_ir.runtime.memory import ALIGNMENT

SIZES = (0, 1, 2, 3, 4, 5, 9, 17)


def window(w: int = 4, width: int = 8) -> Executable:
    """A recurrence that is read through a window of `w` rows."""

    @tp.program
    def program():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f32[width], over=t)
        h = tp.tensor("h", tp.f32[width], over=t)
        h[0] = x[0]
        h[t] = x * h[t - 1]
        tp.output("y", h[tp.maximum(0, t - w + 1) : t + 1].max(axis=0))

    return tp.compile(program())


def attention(width: int = 8) -> Executable:
    """Attention over the rows so far, along a recurrence."""

    @tp.program
    def program():
        t, _ = tp.dim("t")
        k = tp.tensor("k", tp.f32[width], over=t)
        k[0] = 1.0
        weights = tp.softmax(tp.einsum("nd,d->n", k[0 : t + 1], k))
        k[t + 1] = tp.einsum("n,nd->d", weights, k[0 : t + 1])
        tp.output("k", k)

    return tp.compile(program())


def test_operations_of_a_prefix_grow_with_the_square():
    costs = attention().costs
    assert costs.left_out == ()
    for steps in SIZES:
        # of the T - 1 steps that are needed: two contractions of 8 by t + 1, and a softmax of t + 1
        expected = sum((2 * 8 + 2 * 8 + 4) * (t + 1) for t in range(steps - 1))
        assert value(costs.operations, {"T": steps}) == expected
    assert str(costs.near({"T": 64}).operations) == "18*T**2 - 18*T"


def test_operations_of_a_window_grow_with_its_length():
    costs = window().costs
    for steps in SIZES:
        expected = sum(8 * min(t + 1, 4) for t in range(steps)) + 8 * max(0, steps - 1)
        assert value(costs.operations, {"T": steps}) == expected
    assert str(costs.near({"T": 64}).operations) == "40*T - 56"


def each_step(formula: Any, steps: int) -> float:
    """What the last of some steps adds to a closed form."""
    return value(formula, {"T": steps}) - value(formula, {"T": steps - 1})


@pytest.mark.parametrize("ahead", [False, True])
def test_a_step_of_a_running_sum_costs_the_same_however_far_it_is(ahead: bool):
    @tp.program
    def program():
        t, T = tp.dim("t")
        a = tp.input("a", tp.f32[8], over=t)
        tp.output("y", tp.sum(a[t:T] if ahead else a[0 : t + 1], axis=0))

    costs = tp.compile(program()).costs
    assert costs.left_out == ()
    for steps in (2, 3, 9, 64, 1025, 10**6):
        # one row is added: two are read, the sum so far and that of the step, and one is written
        assert each_step(costs.operations, steps) == 8
        assert each_step(costs.bytes_moved, steps) == 3 * 8 * 4
        assert each_step(costs.launches, steps) == 1
    assert costs.peak_bytes == 0


def test_a_step_of_attention_costs_what_it_reads():
    @tp.program
    def program():
        t, _ = tp.dim("t")
        q, k, v = (tp.input(name, tp.f32[8], over=t) for name in "qkv")
        scores = tp.einsum("d,nd->n", q, k[0 : t + 1])
        tp.output("y", tp.einsum("n,nd->d", tp.softmax(scores), v[0 : t + 1]))

    costs = tp.compile(program()).costs
    assert costs.left_out == ()
    for steps in (1, 2, 3, 9, 64, 1025, 10**6):
        # of each row so far: two contractions of 8 and a part of a softmax; its key and its value are read once
        assert each_step(costs.operations, steps) == (2 * 8 + 2 * 8 + 4) * steps
        # beside them a query is read and a row is written; no score is
        assert each_step(costs.bytes_moved, steps) == 2 * 8 * 4 * steps + 2 * 8 * 4
        assert each_step(costs.launches, steps) == 1
    assert costs.peak_bytes == 0


def test_what_is_computed_anew_in_blocks_has_closed_forms():
    """Loops over blocks and their steps, the last block shorter: every launch and copy is counted, at all sizes."""
    exe = tp.compile(bptt(batch=2, inputs=1, width=4), remat={"block": 4})
    costs = exe.costs
    assert costs.left_out == ()
    for steps in SIZES:
        bounds = {"T": steps}
        assert value(costs.launches, bounds) == tp.memory_timeline(exe, **bounds).steps
    assert value(costs.peak_bytes, {"T": 10_000}) < value(tp.compile(exe.source).costs.peak_bytes, {"T": 10_000}) / 4


def test_no_host_is_called_and_the_peak_does_not_grow():
    exe = window()
    assert exe.costs.host_calls == 0
    peak = exe.costs.near({"T": 17}).peak_bytes
    assert peak.is_Integer
    exe(x=np.ones((17, 8), np.float32))
    # the arena rounds each buffer up to cache lines
    assert 4 * 8 * 4 <= peak <= exe.stats.peak_bytes


@pytest.mark.parametrize("steps", [0, 1, 3, 4, 5, 9])
def test_a_ring_has_no_more_slots_than_there_are_steps(steps: int):
    exe, x = window(w=5), np.random.default_rng(0).normal(size=(steps, 8)).astype(np.float32)
    assert value(exe.costs.peak_bytes, {"T": steps}) == min(5, steps) * 8 * 4
    h = np.cumprod(x, axis=0)
    expected = [h[max(0, t - 4) : t + 1].max(axis=0) for t in range(steps)]
    np.testing.assert_allclose(exe(x=x)["y"], np.array(expected, np.float32).reshape(steps, 8), rtol=1e-6)
    assert 0 <= exe.stats.bytes_by_class["ring"] - min(5, steps) * 8 * 4 < 2 * ALIGNMENT
    assert tp.memory_timeline(exe, T=steps).peak <= min(5, steps) * 8 * 4


def test_the_live_rows_of_a_window():
    timeline = tp.memory_timeline(window(), T=17)
    assert timeline.live.keys() <= {"ring", "slot"}
    assert timeline.live["ring"].max() == 4 * 8 * 4
    assert (timeline.total <= timeline.reserved).all()
    assert timeline.peak == timeline.total.max()


def test_the_live_rows_of_a_prefix_grow():
    @tp.program
    def program():
        t, _ = tp.dim("t")
        k = tp.tensor("k", tp.f32[16], over=t)
        k[0] = 1.0
        k[t + 1] = tp.einsum("n,nd->d", tp.softmax(tp.einsum("nd,d->n", k[0 : t + 1], k)), k[0 : t + 1])
        tp.output("last", k[t].sum())

    timeline = tp.memory_timeline(tp.compile(program()), T=9)
    kept = [bytes_ for name, bytes_ in timeline.live.items() if name != "slot"]
    rows = np.sum(kept, axis=0) // (16 * 4)
    assert rows.max() == 9
    assert (np.diff(rows[: int(rows.argmax())]) >= 0).all()


@pytest.mark.parametrize("steps", SIZES)
def test_pictures_are_well_formed(steps: int, tmp_path: Path):
    timeline = tp.memory_timeline(window(), T=steps)
    timeline.write(tmp_path / "memory.svg")
    root = ElementTree.parse(tmp_path / "memory.svg").getroot()
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert f"program, T = {steps}: peak" in texts[0]
    corners = [e.attrib["points"] for e in root.iter() if "points" in e.attrib]
    assert all(np.isfinite(float(number)) for text in corners for number in re.findall(r"[^ ,]+", text))


def test_sizes_and_targets_that_have_no_timeline():
    with pytest.raises(CallError, match="give T"):
        tp.memory_timeline(window())
    reference = tp.compile(window().source, target="reference")
    with pytest.raises(CallError, match="schedules nothing"):
        tp.memory_timeline(reference, T=3)
