"""A memory budget: the same numbers in less memory on the device, what is counted, and what is refused."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

import tempo_ir as tp
from examples.bptt import bptt
from examples.rnn import rnn, waves
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.executable import Compiled, Executable

STEPS = 512
SIZES = {"I": 2, "T": STEPS}
HEIGHT, WIDTH = 4, 16


@cache
def program():
    return rnn(batch=HEIGHT, width=WIDTH)


@cache
def plain() -> Executable:
    return tp.compile(program())


def peak_of(executable: Executable, steps: int = STEPS) -> int:
    """The bytes on the device of a call."""
    call(executable, steps)
    return executable.stats.peak_by_space["device"]


def call(executable: Executable, steps: int, iterations: int = 2) -> tp.Result:
    x, y = waves(iterations, steps, HEIGHT, WIDTH)
    return executable(x=x, y=y, state=executable.init(0))


@cache
def within(share: float) -> Executable:
    """The program in a part of the memory that it takes by itself."""
    return tp.compile(program(), memory_budget=int(peak_of(plain()) * share), sizes=SIZES)


def agree(one: tp.Result, other: tp.Result) -> None:
    for name, value in {**one, **one.state}.items():
        found, greatest = other[name] if name in one else other.state[name], float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5 * max(1, greatest), err_msg=name)


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_back_propagation_through_time_within_a_budget(share: float) -> None:
    """Half of the memory, and a twentieth: the rows lie with the host, and the gradients are the same."""
    small, whole = within(share), peak_of(plain())
    assert peak_of(small) <= share * whole
    assert small.stats.peak_by_space["host"] > 0
    assert small.stats.bytes_by_class["host"] >= small.stats.peak_by_space["host"]
    for steps in (1, 2, 3, 5, 17, STEPS, STEPS + 1):
        agree(call(plain(), steps), call(small, steps))


def test_no_more_is_swapped_than_the_budget_asks_for() -> None:
    assert within(0.05).stats.transfers_per_step["i > t"] > within(0.5).stats.transfers_per_step["i > t"] > 0
    enough = tp.compile(program(), memory_budget=peak_of(plain()), sizes=SIZES)
    assert enough.ir("loop") == plain().ir("loop")


def test_memory_of_the_device_does_not_grow() -> None:
    """Without sizes all that can be lies with the host: what is left are rings and sums."""
    small = tp.compile(program(), memory_budget=1 << 20)
    assert peak_of(small, 600) - peak_of(small, 20) < 64 * 2  # the losses of the iterations, rounded to lines
    agree(call(plain(), 33), call(small, 33))


def test_what_is_counted() -> None:
    small = within(0.05)
    assert isinstance(small, Compiled)
    call(small, 40)
    stats, costs = small.stats, small.costs
    assert stats.peak_by_space.keys() == {"device", "host"}
    assert stats.peak_bytes == stats.peak_by_space["device"]
    assert stats.launches_per_step["i > t"] > 0
    assert set(stats.copies_per_step.values()) == {0}
    assert plain().stats.peak_by_space.keys() == {"device"}
    from tempo_ir.index.closed_form import value

    bounds = {"I": 2, "T": 40}
    timeline = tp.memory_timeline(small, **bounds)
    assert value(costs.transfers, bounds) == len(timeline.transfers)
    assert value(costs.host_bytes, bounds) == timeline.host_reserved.max() <= stats.peak_by_space["host"]
    assert value(costs.peak_bytes, bounds) <= stats.peak_bytes


def test_the_timeline_shows_both_memories_and_what_overlaps() -> None:
    small, steps = within(0.05), 60
    timeline, before = (tp.memory_timeline(each, I=1, T=steps) for each in (small, plain()))
    assert timeline.peak < before.peak / 3
    assert timeline.host_peak > 0
    assert not before.transfers
    fetches, offloads = timeline.fetches, [each for each in timeline.transfers if each.kind == "offload"]
    assert 0 < len(fetches) <= len(offloads)
    # kernels run while a row comes back, but for the first ones, which are read at once
    assert sum(each.overlap > 0 for each in fetches) > 0.9 * len(fetches)
    assert all(each.needed > each.step and each.overlap == len(timeline.between(each)) for each in fetches)
    assert timeline.between(fetches[len(fetches) // 2])[0].startswith("kernel %")
    # a row that goes may take until its place is written again
    assert sum(each.overlap > 0 for each in offloads) > 0.9 * len(offloads)
    assert {each.bytes for each in timeline.transfers} == {HEIGHT * WIDTH * 4}
    # rows are with the host between the way there and the way back
    middle = timeline.steps // 2
    assert timeline.host_live[middle] > timeline.host_live[5] > 0 == timeline.host_live[-1]
    text = timeline.svg()
    ElementTree.fromstring(text)
    assert "with the host" in text
    assert "with the host" not in before.svg()
    # below, some steps one by one: bars say when a copy is issued and what needs it
    middle = fetches[len(fetches) // 2]
    assert f"issued at step {middle.step}, needed at {middle.needed}, {middle.iterations} iterations" in text
    assert "issued at" not in before.svg()


# ---- with what is computed anew ----


@cache
def through_time() -> Executable:
    return tp.compile(bptt(batch=4, inputs=2, width=16))


def gradients(executable: Executable, steps: int) -> tp.Result:
    generator = np.random.default_rng(steps)
    x, wanted = generator.normal(size=(steps, 4, 2)), generator.normal(size=(steps, 4))
    return executable(x=x.astype(np.float32), wanted=wanted.astype(np.float32), state=executable.init(0))


def peak_through_time(executable: Executable, steps: int = 2000) -> int:
    gradients(executable, steps)
    return executable.stats.peak_by_space["device"]


def test_rows_that_are_kept_to_compute_others_anew_lie_with_the_host() -> None:
    """A budget under what recomputation alone comes down to: the states that blocks begin with are swapped."""
    whole = through_time()
    anew = tp.compile(whole.source, remat={"budget": 1, "steps": 2000})
    least = peak_through_time(anew)
    small = tp.compile(whole.source, remat={}, memory_budget=least // 2, sizes={"T": 2000})
    assert peak_through_time(small) <= least // 2 < least < peak_through_time(whole) // 20
    assert small.stats.peak_by_space["host"] > 0
    assert "h_again" in small.ir("loop")
    for steps in (0, 1, 2, 17, 18, 19, 37, 2000):
        agree(gradients(whole, steps), gradients(small, steps))


def test_what_computing_anew_brings_within_the_budget_is_not_swapped() -> None:
    whole = through_time()
    small = tp.compile(whole.source, remat={}, memory_budget=peak_through_time(whole) // 20, sizes={"T": 2000})
    assert peak_through_time(small) <= peak_through_time(whole) // 20
    assert small.stats.peak_by_space.keys() == {"device"}


def test_options_of_both() -> None:
    """Blocks as they are asked for, and all swapped that can be, since no size is known."""
    small = tp.compile(through_time().source, remat={"block": 10}, memory_budget=1)
    assert "h_again" in small.ir("loop")
    assert small.stats.transfers_per_step["b"] > 0
    assert peak_through_time(small, 2000) == peak_through_time(small, 200)
    agree(gradients(through_time(), 33), gradients(small, 33))


def test_rows_of_a_long_recurrence_and_one_that_is_read_by_itself() -> None:
    """Without recomputation: the first state, which the gradient of the inputs reads at the end, comes back too."""
    whole = through_time()
    small = tp.compile(whole.source, memory_budget=peak_through_time(whole) // 20, sizes={"T": 2000})
    assert peak_through_time(small) <= peak_through_time(whole) // 20
    for steps in (0, 1, 2, 5, 2000):
        agree(gradients(whole, steps), gradients(small, steps))


def test_the_triton_driver_copies_rows_too() -> None:
    interpreted = tp.compile(program(), "triton-interpret", memory_budget=peak_of(plain()) // 20, sizes=SIZES)
    assert "host=True" in interpreted.ir("triton")
    agree(call(plain(), 3, 1), call(interpreted, 3, 1))


def test_why_rows_are_kept_is_said() -> None:
    @tp.program
    def reversed_states():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[64], over=t)
        h = tp.tensor("h", tp.f32[64], over=t)
        h[0] = x[0]
        h[t] = tp.sin(h[t - 1])
        tp.output("y", h[t] + h[0:T].max(0))
        tp.output("z", tp.sort(h[0:T]))

    with pytest.raises(CompileError) as caught:
        tp.compile(reversed_states(), memory_budget=4096, sizes={"T": 100})
    assert re.search(
        r"still read in other ways: %h\[0:T\] is read at once \(.*test_memory_budget\.py:\d+\)", str(caught.value)
    )
    small = within(0.05)
    assert small.stats.memory_passes["loop-plan-storage"]["buffers swapped"] == 2
    assert small.stats.kept_rows == ()
    assert plain().stats.memory_passes["loop-plan-storage"]["states in place"] == 3


def test_what_is_refused() -> None:
    with pytest.raises(CompileError, match=r"the program takes \d+ bytes at I = 2, T = 512, with all rows on the host"):
        tp.compile(program(), memory_budget=1000, sizes=SIZES)
    with pytest.raises(CompileError, match="a memory budget is some bytes, got 0"):
        tp.compile(program(), memory_budget=0)
    with pytest.raises(CompileError, match="the program has no bound 'B', only I, T"):
        tp.compile(program(), memory_budget=1000, sizes={"B": 3})
    with pytest.raises(CompileError, match="T = -1, a bound is an integer of 0 or more"):
        tp.compile(program(), memory_budget=1000, sizes={"T": -1})
    with pytest.raises(CompileError, match="target 'reference' has no memory of its own"):
        tp.compile(program(), "reference", memory_budget=1000)
    with pytest.raises(CompileError, match="sizes say for what a memory_budget is meant"):
        tp.compile(program(), sizes=SIZES)
