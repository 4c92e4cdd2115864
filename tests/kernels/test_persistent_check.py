"""Programs that keep to their rows are proved so, and each way of leaving them is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import f32, i64

from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import Expr, Sym
from tempo_ir.lowering.kernels.persistent_check import OtherRowsTouched, check_rows

ROWS, WIDTH, BLOCK = 40, 8, 16
Access = Callable[[KernelBuilder, Value, Value], None]
SCALARS = (Sym("T"), Sym("B") * WIDTH, Sym("B"))


def kernel(access: Access, grid: tuple[int | None, ...] = (3,)) -> KernelOp:
    """Programs that walk over T steps of `h` (a row of 8 elements for each of 40 rows) and of x, which is only read;
    `access` writes something in each, given the counter and the first row of the program."""
    arguments = {"h": PointerType(f32), "x": PointerType(f32), "T": INDEX, "n": INDEX, "B": INDEX}
    k = KernelBuilder("kernel", arguments, grid)
    first = k.program_id(0) * BLOCK if grid else k.const(0, INDEX)
    with k.loop(0, k["T"]) as loop:
        access(k, loop.index, first)
    return k.finish()


def rows(k: KernelBuilder, t: Value, offset: int = 0, stride: int = WIDTH, size: int = ROWS) -> Value:
    """The rows of h at a step."""
    return k.view(k["h"], [size, WIDTH], [stride, 1], t * (ROWS * WIDTH) + offset)


def own_rows(k: KernelBuilder, t: Value, first: Value) -> None:
    before = k.load(rows(k, t), (first, BLOCK), (0, WIDTH))
    k.store(before * 2.0, rows(k, t + 1), (first, BLOCK), (0, WIDTH))


def slots_of_a_ring(k: KernelBuilder, t: Value, first: Value) -> None:
    view = k.view(k["h"], [ROWS, WIDTH], [WIDTH, 1], t % 3 * (ROWS * WIDTH))
    k.store(k.load(rows(k, t), (first, BLOCK), (0, WIDTH)), view, (first, BLOCK), (0, WIDTH))


def one_column(k: KernelBuilder, t: Value, first: Value) -> None:
    column = k.view(k["h"], [ROWS], [WIDTH], t * (ROWS * WIDTH) + 3)
    k.store(k.load(column, (first, BLOCK)), column, (first, BLOCK))


def windows_of_steps(k: KernelBuilder, t: Value, first: Value) -> None:
    window = k.view(k["h"], [3, ROWS], [ROWS * WIDTH, WIDTH], t * (ROWS * WIDTH))
    k.store(k.reduce("sum", k.load(window, (0, 4), (first, BLOCK)), 0), k.view(k["h"], [ROWS], [WIDTH]), (first, BLOCK))


def as_many_rows_as_the_call_says(k: KernelBuilder, t: Value, first: Value) -> None:
    view = k.view(k["h"], [k["B"], WIDTH], [WIDTH, 1], t * k["n"])
    k.store(k.load(view, (first, BLOCK), (0, WIDTH)), view, (first, BLOCK), (0, WIDTH))


def next_row(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t), (first + 1, BLOCK), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


def a_row_further_by_the_offset(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t, WIDTH), (first, BLOCK), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


def columns_of_the_next_row(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t, 1), (first, BLOCK), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


def all_rows(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t), (0, BLOCK), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


def one_cell_of_all(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.const(0.0, f32), k.view(k["h"], [], [], t))


def a_step_of_some_rows(k: KernelBuilder, t: Value, first: Value) -> None:
    view = k.view(k["h"], [ROWS, WIDTH], [WIDTH, 1], t * WIDTH)
    k.store(k.load(view, (first, BLOCK), (0, WIDTH)), view, (first, BLOCK), (0, WIDTH))


def rows_of_other_strides(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t, stride=2 * WIDTH), (first, BLOCK), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


def blocks_that_overlap(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t), (first, 2 * BLOCK), (0, WIDTH)), rows(k, t), (first, 2 * BLOCK), (0, WIDTH))


def rows_by_number(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.gather(rows(k, t), k.iota(first, BLOCK, i64), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


def rows_turned_round(k: KernelBuilder, t: Value, first: Value) -> None:
    k.store(k.load(rows(k, t), (ROWS - first, BLOCK), (0, WIDTH)), rows(k, t), (first, BLOCK), (0, WIDTH))


KEEP = [
    own_rows,
    slots_of_a_ring,
    one_column,
    windows_of_steps,
    as_many_rows_as_the_call_says,
]
LEAVE = [
    next_row,
    a_row_further_by_the_offset,
    columns_of_the_next_row,
    all_rows,
    one_cell_of_all,
    a_step_of_some_rows,
    rows_of_other_strides,
    blocks_that_overlap,
    rows_by_number,
    rows_turned_round,
]


@pytest.mark.parametrize("access", KEEP, ids=lambda access: access.__name__)
def test_kept(access):
    check_rows(kernel(access), SCALARS)


@pytest.mark.parametrize("access", LEAVE, ids=lambda access: access.__name__)
def test_left(access):
    with pytest.raises(OtherRowsTouched):
        check_rows(kernel(access), SCALARS)


def test_strides_of_the_call_must_be_those_of_the_rows():
    scalars: tuple[Expr, ...] = (Sym("T"), Sym("N"), Sym("B"))
    with pytest.raises(OtherRowsTouched, match="behind a row"):
        check_rows(kernel(as_many_rows_as_the_call_says), scalars)


def test_programs_along_two_axes_are_refused():
    with pytest.raises(OtherRowsTouched, match="2 axes"):
        check_rows(kernel(own_rows, (3, 2)), SCALARS)
