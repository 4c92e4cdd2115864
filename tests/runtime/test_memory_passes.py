"""Passes about memory, each alone and all together: the same values as without, at sizes 0, 1 and odd ones; and
what the requests of the graph add to what storage does by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir import nn, optim
from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg import requests_of
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tempo_ir.runtime.calls import Request, Workspaces
from tempo_ir.runtime.compiler import Levels, Options, lower
from tempo_ir.runtime.native import NativeProgram
from tests.fuzz.arguments import admissible, draw

SIZES = (0, 1, 2, 3, 7)
WIDTH = 4


@tp.program
def trained() -> None:
    """Iterations of Adam on a recurrence: states that are updated in place, and a way back."""
    (i, _), (t, T) = tp.dims("i", "t")
    x = tp.input("x", tp.f64[2, WIDTH], over=(i, t))
    w = tp.state("w", tp.f64[WIDTH, WIDTH], init=nn.orthogonal(), steps=i)
    s = tp.tensor("s", tp.f64[2, WIDTH], over=(i, t))
    h = tp.tanh(x + s @ w[i])
    s[i, 0], s[i, t + 1] = 0.0, h
    loss = tp.mean((h - x) ** 2)
    optim.Adam(1e-2).minimize(loss, w)
    tp.output("loss", loss[i, 0:T].sum())


@tp.program
def through_time() -> None:
    """Gradients of a recurrence with an input layer, whose first row is read by itself."""
    t, T = tp.dim("t")
    x = tp.input("x", tp.f64[2, 3], over=t)
    w, u = tp.parameter("w", tp.f64[WIDTH, WIDTH]), tp.parameter("u", tp.f64[3, WIDTH])
    h = tp.tensor("h", tp.f64[2, WIDTH], over=t)
    h[0] = tp.tanh(x[0] @ u)
    h[t] = tp.tanh(h[t - 1] @ w * 0.3 + x @ u)
    loss = (h * h).sum()
    tp.output("loss", loss[0:T].sum())
    for name, each in (("dw", w), ("du", u)):
        tp.output(name, tp.grad(loss, each))


@tp.program
def attending() -> None:
    """A cache that grows by a row at each step, and a window of another."""
    t, _ = tp.dim("t")
    k, v = (tp.tensor(name, tp.f64[WIDTH], over=t) for name in "kv")
    k[0], v[0] = 1.0, 0.5
    k[t + 1] = tp.softmax(tp.einsum("nd,d->n", k[0 : t + 1], v)) @ k[0 : t + 1]
    v[t + 1] = tp.tanh(v[tp.maximum(0, t - 2) : t + 1].sum(0) + k)
    tp.output("y", k * v)


PROGRAMS: dict[str, Callable[[], Any]] = {"trained": trained, "through_time": through_time, "attending": attending}
DEALLOC: Mapping[str, Options] = {"sdg-insert-dealloc": {}}
DONATE: Mapping[str, Options] = {"sdg-insert-donate": {}}
SWAP: Mapping[str, Options] = {"sdg-accumulate": {"memory": 0}, "sdg-insert-swap": {}}
BLOCK = {"block": 3}
PASSES: dict[str, tuple[Mapping[str, int] | None, Mapping[str, Options]]] = {
    "dealloc": (None, DEALLOC),
    "donate": (None, DONATE),
    "swap": (None, SWAP),
    "remat": (BLOCK, {}),
    "remat_and_swap": (BLOCK, SWAP),
    "all": (BLOCK, {**DEALLOC, **DONATE, **SWAP}),
}


@cache
def lowered(name: str, passes: str | None) -> Levels:
    remat, options = (None, {}) if passes is None else PASSES[passes]
    return lower(PROGRAMS[name]().module, "cpu", remat=remat, options=options)


def formed(name: str, passes: str | None) -> loop.ProgramOp:
    module = lowered(name, passes).loop
    assert module is not None
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    return program


@cache
def reference(name: str) -> sdg.ProgramOp:
    """The program with its gradients expanded, and nothing else done."""
    without = ("sdg-simplify", "sdg-vectorize", "sdg-lift", "sdg-unlift", "sdg-accumulate", "sdg-devectorize")
    module = lower(PROGRAMS[name]().module, "cpu", without).optimised
    assert module is not None
    (program,) = [op for op in module.ops if isinstance(op, sdg.ProgramOp)]
    return program


@cache
def compiled(name: str, passes: str) -> NativeProgram:
    module = lowered(name, passes).lowered
    assert module is not None
    return NativeProgram.compile(module)


def natively(native: NativeProgram, arrays: Mapping[str, np.ndarray], bounds: Mapping[str, int]) -> dict[str, Any]:
    """What native code gives, with the arrays of states overwritten."""
    own = {key: array.copy() for key, array in arrays.items()}
    request = Request(own, bounds, 0, {}, {}, donate=True)
    return native.execute(native.callee.frame(bounds), request, Workspaces())


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_values_stay(name: str, passes: str) -> None:
    source, program = reference(name), formed(name, passes)
    ran = 0
    for size in SIZES:
        bounds = {**dict.fromkeys(source.space.params, 2), "T": size}
        if not admissible(source, bounds):
            continue
        arrays = draw(source, bounds, size)
        expected = run(source, arrays, bounds)
        for found in (run_loop(program, arrays, bounds), natively(compiled(name, passes), arrays, bounds)):
            for key, value in expected.items():
                np.testing.assert_allclose(found[key], value, 1e-9, 1e-11, err_msg=f"{key} at {bounds}")
        ran += 1
    assert ran >= 4


@pytest.mark.parametrize("passes", ["dealloc", "donate"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_storage_frees_and_donates_by_itself(name: str, passes: str) -> None:
    """The requests are visible on the graph; the loop program is the one that it is without them."""
    asked, plain = formed(name, passes), formed(name, None)
    assert str(asked) == str(plain)
    if passes == "dealloc":
        (graph,) = [op for op in lowered(name, passes).optimised.ops if isinstance(op, sdg.ProgramOp)]  # pyright: ignore
        assert requests_of(graph)


def test_states_are_updated_in_place() -> None:
    donating = [
        op.key.data
        for op in formed("trained", None).walk()
        if isinstance(op, loop.OutputOp)
        if loop.DONATES in op.attributes
    ]
    assert donating == ["w", "adam.m.w", "adam.v.w"]


def test_all_of_them_do_something() -> None:
    """The programs are such that passes apply: a row of each block is kept, and rows go to the host."""
    text = str(formed("through_time", "all"))
    assert "h_kept_host" in text
    assert "h_again" in text
    assert "loop.offload" in str(formed("trained", "swap"))
    assert "loop.free" in str(formed("attending", None))
