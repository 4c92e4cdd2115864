"""A pass that rewrites until nothing more applies is left out where it left the graph as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tempo_ir as tp
from tempo_ir.dialects.sdg import Access, MulOp, OutputOp
from tempo_ir.index import Sym
from tempo_ir.passes.sdg_simplify import SdgSimplifyPass
from tempo_ir.passes.settled import Settled


@tp.program
def halves():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    tp.output("y", x * 0.5 + 1.0)


def simplified() -> ModuleOp:
    module = halves().module.clone()
    SdgSimplifyPass().apply(Context(), module)
    return module


def read_another(module: ModuleOp) -> None:
    (product,) = [op for op in module.walk() if isinstance(op, MulOp)]
    (output,) = [op for op in module.walk() if isinstance(op, OutputOp)]
    access = output.accesses[0]
    output.with_access(0, product.result, access.index)


def read_elsewhere(module: ModuleOp) -> None:
    (output,) = [op for op in module.walk() if isinstance(op, OutputOp)]
    access = output.accesses[0]
    output.with_access(0, access.value, (Sym("t") - 1,))


def add_one(module: ModuleOp) -> None:
    (product,) = [op for op in module.walk() if isinstance(op, MulOp)]
    block = product.parent
    assert block is not None
    block.insert_op_after(
        MulOp(Access(product.result, product.accesses[0].index), product.accesses[1], domain=product.domain), product
    )


def test_what_a_pass_left_has_nothing_for_it():
    settled = Settled(simplified())
    assert not settled.has_nothing_for("sdg-simplify")
    settled.note("sdg-simplify")
    assert settled.has_nothing_for("sdg-simplify")
    settled.note("sdg-vectorize")  # which may find more to do the second time
    assert not settled.has_nothing_for("sdg-vectorize")


@pytest.mark.parametrize("change", [read_another, read_elsewhere, add_one])
def test_any_change_is_seen(change: Callable[[ModuleOp], None]):
    module = simplified()
    settled = Settled(module)
    settled.note("sdg-simplify")
    change(module)
    assert not settled.has_nothing_for("sdg-simplify")
