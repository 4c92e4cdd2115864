"""sdg-insert-dealloc, -donate and -swap: what is asked, how it fares in later passes, which values are swapped."""

from __future__ import annotations

import sys
from typing import cast

import numpy as np
import pytest
from passes_support import apply, draw, outputs, parse, program_of
from random_programs import random_program
from xdsl.context import Context
from xdsl.utils.exceptions import PassFailedException

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.dialects.sdg import SwapOp, requests_of
from tempo_ir.passes import get_all_passes
from tempo_ir.passes.ilp import least_cost
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE
from tempo_ir.reference.loop import run_loop
from tempo_ir.runtime.compiler import run_passes

INSERT = ("sdg-insert-dealloc", "sdg-insert-donate", "sdg-insert-swap")
LOWER = ("sdg-schedule", "loop-form-kernels", "loop-plan-storage")
BOUNDS = [{"B": 1, "T": 1}, {"B": 2, "T": 3}, {"B": 3, "T": 7}]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_with_all_requests(seed: int) -> None:
    """Before every other pass and after all of them: the same values, down to planned loops."""
    plain = parse(random_program(seed, gradients=seed % 2 == 1))
    early = apply(apply(plain.clone(), "sdg-autodiff"), *INSERT)
    early = apply(early, *DEFAULT_PIPELINE)
    late = apply(apply(plain.clone(), *DEFAULT_PIPELINE), *INSERT)
    expanded = apply(plain.clone(), "sdg-autodiff")
    for module in (early, late):
        lowered = module.clone()
        run_passes(Context(), lowered, LOWER, {})
        (program,) = [op for op in lowered.ops if isinstance(op, loop.ProgramOp)]
        for bounds in BOUNDS:
            arrays = draw(program_of(expanded), bounds)
            want, have = outputs(expanded, arrays, bounds), run_loop(program, arrays, bounds)
            for key in want:
                np.testing.assert_allclose(have[key], want[key], rtol=1e-9, atol=1e-9, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("name", sorted(set(get_all_passes()) - {"sdg-autodiff"}))
def test_requests_stay_right_in_every_pass(name: str) -> None:
    """A pass keeps a request, or drops it with what it was about; the program stays well formed."""
    for seed in (3, 8, 21):
        module = apply(parse(random_program(seed)), "sdg-autodiff", *INSERT)
        asked = len(requests_of(program_of(module)))
        assert asked
        apply(module, name, **({"block": 2} if name == "sdg-remat" else {}))
        assert all(request.value.owner.parent is not None for request in requests_of(program_of(module)))


def gradients(width: int = 8, layers: int = 2):
    """Layers of a recurrence, and the gradients of their weights."""
    t, T = tp.dim("t")
    value = tp.input("x", tp.f64[2, width], over=t)
    weights = [tp.parameter(f"w{number}", tp.f64[width, width]) for number in range(layers)]
    for number, weight in enumerate(weights):
        h = tp.tensor(f"h{number}", tp.f64[2, width], over=t)
        h[0] = 0.0
        h[t] = tp.tanh(value + h[t - 1] @ weight)
        value = h
    loss = (value * value).sum()
    for number, weight in enumerate(weights):
        tp.output(f"g{number}", tp.grad(loss, weight))


def asked_of(budget: int, **options: object) -> list[str]:
    """The names of the values that are to be swapped at T = 100."""
    module = tp.program(gradients)().module.clone()
    for name in DEFAULT_PIPELINE:
        apply(module, name, **({"memory": 0} if name == "sdg-accumulate" else {}))
    apply(module, "sdg-insert-swap", budget=budget, sizes=("T=100",), **options)
    swaps = [op for op in requests_of(program_of(module)) if isinstance(op, SwapOp)]
    return sorted({cast("str", swap.value.name_hint or "") for swap in swaps} - {""})


def test_as_many_values_as_the_budget_asks_for() -> None:
    """Each state is 2 x 8 doubles a step: 12800 bytes of a hundred."""
    assert {"h0", "h1"} <= set(asked_of(0))
    assert not asked_of(1 << 20)
    few, all_of_them = asked_of(15000), asked_of(100)
    assert few
    assert set(few) < set(all_of_them)
    assert set(asked_of(15000, solver="ilp")) <= set(all_of_them)


def test_the_least_to_copy() -> None:
    assert least_cost([5, 4, 3], [5, 4, 3], 7) == [False, True, True]
    assert least_cost([5, 4, 3], [5, 4, 3], 9) == [True, True, False]
    assert least_cost([9, 1, 1], [5, 4, 3], 4) == [False, True, False]


def test_without_scipy_there_is_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(PassFailedException, match=r"install tempo_ir\[ilp\], or leave solver=greedy"):
        asked_of(15000, solver="ilp")


@pytest.mark.parametrize("T", [1, 2, 9])
def test_layers_within_a_budget(T: int) -> None:
    """Two recurrences on top of each other, on the CPU: the same gradients."""
    program = tp.program(gradients)()
    plain, small = tp.compile(program), tp.compile(program, memory_budget=1 << 16)
    generator = np.random.default_rng(T)
    state = {f"w{number}": 0.3 * generator.normal(size=(8, 8)) for number in range(2)}
    x = generator.normal(size=(T, 2, 8))
    expected, outputs = plain(x=x, state=state), small(x=x, state=state)
    for name, value in expected.items():
        np.testing.assert_allclose(outputs[name], value, rtol=1e-9, atol=1e-12)
    assert "host" in small.stats.peak_by_space
