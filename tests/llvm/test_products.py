"""Products of few rows, at odd sizes and for narrower machines: the plan of their operands, and what programs share."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr, bf16, f16, f32, f64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.dialects.tile.structure import NEAR, STREAMS, KernelOp
from tempo_ir.lowering.llvm import ahead
from tempo_ir.lowering.llvm.engine import compile_assembly, host_target
from tempo_ir.lowering.llvm.invariant import loop_order, program_axes, program_levels
from tempo_ir.lowering.llvm.jit import compile_kernel
from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
from tempo_ir.lowering.llvm.plan import Plan, Storage
from tempo_ir.lowering.llvm.simplify import merge_equal
from tempo_ir.lowering.llvm.target import AVX2, AVX512, SSE, Target
from tempo_ir.reference.tile import numpy_dtype
from tests.llvm.support import assert_same
from tests.tile import kernels
from tests.tile.programs import F32, numbers

TARGETS = {"widest": None, "avx2": AVX2, "sse": SSE}


def narrower(name: str) -> Target | None:
    target = TARGETS[name]
    return None if target is not None and target.lanes > host_target().lanes else target


def compile_text(kernel: KernelOp) -> str:
    return lower_kernel(kernel).definition


def lhs_storage(kernel: KernelOp, target: Target) -> Storage:
    """Where the left operand of the kernel's first dot is."""
    dot = next(op for op in kernel.walk() if isinstance(op, DotOp))
    return Plan(kernel, target).of(dot.lhs)


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        *((rows, "widest") for rows in (7, 16, 24, 31, 48)),
        *((rows, "avx2") for rows in (8, 24)),
        (4, "sse"),
        (12, "sse"),
    ],
)
def test_products_of_some_rows(rows: int, target: str):
    for case in (
        kernels.linear(np.random.default_rng(0), rows, 37, 29, 37, 29),
        kernels.linear(np.random.default_rng(1), rows, 66, 26, 33, 13, bf16),
        kernels.rmsnorm_linear(np.random.default_rng(3), rows, 74, 37, 37),
    ):
        assert_same(case.kernel, case.arguments, case.grid, case.tolerance, narrower(target))


def many_rows(rows: int, columns: int, element: Attribute, *, turned: bool) -> KernelOp:
    """x @ w, where x may lie the other way round, and with it the result."""
    k = KernelBuilder(
        "product", {"x": F32, "w": PointerType(element), "out": PointerType(f64 if element == f64 else f32)}
    )
    total = f64 if element == f64 else f32
    x = k.load(
        k.view(k["x"], [37, rows] if turned else [rows, 37]), (0, 37 if turned else rows), (0, rows if turned else 37)
    )
    x = (x.t if turned else x).to(total)
    w = k.load(k.view(k["w"], [37, columns]), (0, 37), (0, columns)).to(total)
    product = k.dot(x, w, k.const(0.0, total, [rows, columns]))
    shape = (columns, rows) if turned else (rows, columns)
    out = k.view(k["out"], list(shape))
    k.store(product.t if turned else product, out, *((0, extent) for extent in shape))
    return k.finish()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [23, 24, 31, 64])
@pytest.mark.parametrize("columns", [15, 32, 40, 63, 64, 96, 100, 128, 160])
@pytest.mark.parametrize(("turned", "element"), [(False, f32), (True, f32), (False, f64), (False, bf16)])
def test_products_of_many_rows(rows: int, columns: int, turned: bool, element: Attribute, target: str):
    """In blocks of one to four vectors, and what is left."""
    out = np.zeros((columns, rows) if turned else (rows, columns), np.float64 if element == f64 else np.float32)
    arguments = [
        numbers(37, rows) if turned else numbers(rows, 37),
        numbers(37, columns).astype(numpy_dtype(element)),
        out,
    ]
    assert_same(many_rows(rows, columns, element, turned=turned), arguments, (), 1e-5, narrower(target))


@pytest.mark.parametrize(("rows", "columns", "turned"), [(64, 64, False), (48, 32, True)])
def test_blocks_of_many_rows_fit_the_registers(rows: int, columns: int, turned: bool):
    """24 accumulators, four vectors, and one number at a time."""
    code = lower_kernel(many_rows(rows, columns, f32, turned=turned), AVX512)
    lines = compile_assembly(module_text([code], AVX512), AVX512).splitlines()
    assert any("vfmadd231ps" in line for line in lines)
    assert not [line for line in lines if "vmovaps" in line and "rsp" in line]


@pytest.mark.parametrize(
    ("rows", "element", "target"),
    [
        *((rows, element, "widest") for rows in (1, 2, 3) for element in (f32, bf16, f16)),
        *((1, element, target) for element in (f32, bf16) for target in ("avx2", "sse")),
    ],
)
def test_weights_that_come_from_memory(rows: int, element: Attribute, target: str):
    """Of more than 128 KB, several rows of which are asked for before they are read; bf16 are read two at a time."""
    case = kernels.linear(np.random.default_rng(0), rows, 262, 331, 262, 331, element)
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance, narrower(target))
    asks = "llvm.prefetch" in lower_kernel(case.kernel, AVX512).definition
    assert asks == (rows > 1 or element == bf16)


@pytest.mark.parametrize(("depth", "block"), [(262, 331), (64, 331), (262, 13), (40, 13)])
@pytest.mark.parametrize("element", [f32, bf16], ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_weights_that_no_cache_holds(depth: int, block: int, element: Attribute, target: str):
    """They are read one row after the other, whatever part of them a program reads."""
    case = kernels.linear(np.random.default_rng(0), 1, 2 * 331 * 13, depth, block, depth, element)
    here = compile_text(case.kernel)
    case.kernel.attributes[STREAMS] = UnitAttr()
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance, narrower(target))
    short = depth <= 128 and block >= 16
    assert (compile_text(case.kernel) != here) is (element == bf16 and not short)  # else they are read so in any case


@pytest.mark.parametrize("element", [f32, bf16], ids=str)
def test_rows_that_the_processor_does_not_foresee(element: Attribute):
    """Weights that come from memory are asked for where it takes them one row after the other, on Intel's alone."""
    case = kernels.linear(np.random.default_rng(0), 1, 331, 262, 331, 262, element)
    case.kernel.attributes[STREAMS] = UnitAttr()
    intel, amd = (Target("x86-64-v3", features, 8, 16) for features in ("+avx2,+fma", "+avx2,+fma,+sse4a"))
    asked = [lower_kernel(case.kernel, target).definition.count("llvm.prefetch") for target in (intel, amd, AVX2)]
    assert asked[0] > 0
    assert asked[1:] == [0, 0]
    del case.kernel.attributes[STREAMS]
    texts = {lower_kernel(case.kernel, target).definition for target in (intel, amd, AVX2)}
    assert len(texts) == 1
    case.kernel.attributes[STREAMS] = UnitAttr()
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rows", "element"), [(1, f32), (2, f32), (1, bf16)])
def test_weights_that_are_near(rows: int, element: Attribute, target: str):
    """Those of one row are read several at a time too, and nothing is asked for."""
    case = kernels.linear(np.random.default_rng(0), rows, 262, 331, 262, 331, element)
    before = lower_kernel(case.kernel, AVX512).definition
    case.kernel.attributes[NEAR] = UnitAttr()
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance, narrower(target))
    after = lower_kernel(case.kernel, AVX512).definition
    assert after != before
    assert "llvm.prefetch" not in after


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "target", "storage"),
    [
        (16, 64, 100, AVX512, Storage.ROWS),
        (32, 64, 100, AVX512, Storage.ROWS),
        (64, 64, 100, AVX512, Storage.INLINE),  # as much work to turn the rows round as the weights
        (8, 64, 100, AVX2, Storage.ROWS),
        (8, 64, 100, AVX512, Storage.INLINE),  # half of the lanes would do nothing
        (17, 64, 100, AVX512, Storage.INLINE),
        (16, 20, 100, AVX512, Storage.INLINE),  # too few columns to turn the rows round for
        (16, 64, 1024, AVX512, Storage.INLINE),  # 16 lines of the weights would fall together in the cache
    ],
)
def test_rows_that_fill_vectors_are_lanes(rows: int, columns: int, depth: int, target: Target, storage: Storage):
    case = kernels.linear(np.random.default_rng(0), rows, columns, depth, columns, depth)
    assert lhs_storage(case.kernel, target) is storage


@pytest.mark.parametrize(("rows", "columns", "depth"), [(32, 660, 261), (45, 660, 100), (32, 192, 261), (16, 660, 261)])
def test_weights_of_the_next_block_of_registers(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, depth: int):
    """They are asked for where rows are lanes and the weights are more than stay near."""
    case = kernels.linear(np.random.default_rng(0), rows, columns, depth, columns // 3, depth)
    assert lhs_storage(case.kernel, AVX512) is Storage.ROWS
    assert_same(case.kernel, case.arguments, case.grid, case.tolerance)
    asked = lower_kernel(case.kernel, AVX512).definition.count("llvm.prefetch")
    monkeypatch.setattr(ahead, "NEAR_WEIGHTS", 1 << 30)
    near = lower_kernel(case.kernel, AVX512).definition.count("llvm.prefetch")
    assert (asked > near) is (4 * columns * depth > 1 << 18)


def gated(rows: int, columns: int, depth: int, programs: int) -> KernelOp:
    """sigmoid(x @ a.T) * (x @ b.T) of normalised rows x, as a decoder has it, each product with rows of its own."""
    arguments = {"x": F32, "a": F32, "b": F32, "out": F32}
    k = KernelBuilder("gated", arguments, grid=[programs])
    n = k.program_id(0) * columns
    products = []
    for name in ("a", "b"):
        x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
        x = x * k.rsqrt(k.reduce("sum", x * x, 1) + 1.0)[:, None]
        w = k.load(k.view(k[name], [programs * columns, depth]), (n, columns), (0, depth))
        products.append(k.dot(x, w.t, k.const(0.0, f32, [rows, columns])))
    out = k.view(k["out"], [rows, programs * columns])
    k.store(k.sigmoid(products[0]) * products[1], out, (0, rows), (n, columns))
    return k.finish()


@pytest.mark.parametrize(("rows", "target"), [(1, "widest"), (16, "widest"), (32, "avx2"), (5, "sse")])
def test_two_products_of_the_same_rows(rows: int, target: str):
    columns, depth, programs = 40, 37, 3
    weights = [numbers(programs * columns, depth) for _ in range(2)]
    out = np.zeros((rows, programs * columns), np.float32)
    assert_same(
        gated(rows, columns, depth, programs),
        [numbers(rows, depth), *weights, out],
        (programs,),
        target=narrower(target),
    )


def test_what_is_heavy_beside_a_product_is_computed_in_vectors():
    """Both products are kept: in the block of one, whose points are no vectors, a sigmoid is as many as there are."""
    kernel = gated(1, 64, 64, 2)
    plan = Plan(kernel, AVX512)
    dots = [op for op in kernel.walk() if isinstance(op, DotOp)]
    assert [plan.of(dot.result) for dot in dots] == [Storage.SCRATCH] * 2
    light = kernels.linear(np.random.default_rng(0), 1, 64, 64, 64, 64).kernel
    (dot,) = (op for op in light.walk() if isinstance(op, DotOp))
    assert Plan(light, AVX512).of(dot.result) is Storage.INLINE


def test_the_same_rows_are_computed_once():
    kernel = gated(16, 64, 64, 2)
    merge_equal(kernel)
    first, second = (op for op in kernel.walk() if isinstance(op, DotOp))
    assert first.lhs is second.lhs
    assert first.rhs is not second.rhs
    levels = program_levels(program_axes(kernel), (0,))
    assert levels[first.lhs.owner] == 1  # no program has its own
    assert levels[first] == 0
    kernel.verify()


def test_what_is_loaded_before_and_after_a_store_differs():
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    x = k.view(k["x"], [20])
    before = k.load(x, (0, 20))
    k.store(before * 2.0, x, (0, 20))
    k.store(before + k.load(x, (0, 20)), k.view(k["out"], [20]), (0, 20))
    assert_same(k.finish(), [numbers(20), np.zeros(20, np.float32)])


def test_programs_see_what_those_before_them_wrote():
    k = KernelBuilder("kernel", {"x": F32, "out": F32}, grid=[None])
    n, x = k.program_id(0), k.view(k["x"], [20])
    scaled = k.exp(k.load(x, (0, 20)) * 0.125)
    k.store(scaled + k.reduce("max", scaled, 0), k.view(k["out"], [4, 20]), n, (0, 20))
    k.store(scaled, x, (0, 20))
    assert_same(k.finish(), [numbers(20), np.zeros((4, 20), np.float32)], (4,))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_programs_along_one_axis_share(axis: int):
    k = KernelBuilder("kernel", {"x": F32, "out": F32}, grid=[3, 2])
    programs = [k.program_id(0), k.program_id(1)]
    row = k.load(k.view(k["x"], [3, 20]), programs[axis], (0, 20))
    y = k.exp(row * 0.125)
    out = k.view(k["out"], [3, 2, 20])
    k.store(y * k.reduce("sum", y, 0) + (programs[0] + programs[1]).to(f32), out, *programs, (0, 20))
    kernel = k.finish()
    assert program_levels(program_axes(kernel), (0, 1))[y.ssa.owner] == axis
    assert_same(kernel, [numbers(3, 20), np.zeros((3, 2, 20), np.float32)], (3, 2))


def product(rows: int, columns: int, depth: int, row: int, column: int) -> KernelOp:
    """x @ w.T, of which each program has `row` rows and `column` columns; programs are numbered by rows first."""
    k = KernelBuilder("kernel", dict.fromkeys(("x", "w", "out"), F32), grid=[rows // row, columns // column])
    at = k.program_id(0) * row, k.program_id(1) * column
    x = k.load(k.view(k["x"], [rows, depth]), (at[0], row), (0, depth))
    w = k.load(k.view(k["w"], [columns, depth]), (at[1], column), (0, depth))
    y = k.dot(x, w.t, k.const(0.0, f32, [row, column]))
    k.store(y, k.view(k["out"], [rows, columns]), (at[0], row), (at[1], column))
    return k.finish()


@pytest.mark.parametrize(
    ("rows", "columns", "column", "storage", "order"),
    [
        (64, 1024, 32, Storage.ROWS, (1, 0)),  # rows are turned round once for all columns
        (32, 1024, 32, Storage.ROWS, (1, 0)),
        (64, 1024, 512, Storage.ROWS, (0, 1)),  # where there are few blocks of these to be turned round for
        (512, 1024, 32, Storage.INLINE, (0, 1)),  # columns once for all rows
    ],
)
def test_what_is_turned_round_once(rows: int, columns: int, column: int, storage: Storage, order: tuple[int, ...]):
    kernel = product(rows, columns, 256, 32, column)
    plan = Plan(kernel, AVX512)
    assert lhs_storage(kernel, AVX512) is storage
    assert loop_order(kernel, program_axes(kernel), lambda value: not plan.is_inline(value)) == order
    arguments = [numbers(rows, 256), numbers(columns, 256), np.zeros((rows, columns), np.float32)]
    assert_same(kernel, arguments, (rows // 32, columns // column))


def test_a_grid_without_programs_reads_nothing():
    compile_kernel(gated(16, 40, 37, 3))(0, 0, 0, 0, grid=(0,))


@pytest.mark.parametrize(
    ("rows", "first", "second", "target"), [(2, 16, 21, "widest"), (3, 5, 40, "widest"), (2, 8, 9, "avx2")]
)
def test_a_dot_that_goes_on_where_another_ends(rows: int, first: int, second: int, target: str):
    """Sums along K of two operands, as queries and keys that are rotated in halves have them."""
    columns = 37
    k = KernelBuilder("kernel", dict.fromkeys(("x", "w", "y", "v", "start", "out"), F32))
    total = k.load(k.view(k["start"], [rows, columns]), (0, rows), (0, columns))
    for lhs, rhs, depth in (("x", "w", first), ("y", "v", second)):
        left = k.load(k.view(k[lhs], [rows, depth]), (0, rows), (0, depth))
        right = k.load(k.view(k[rhs], [columns, depth]), (0, columns), (0, depth))
        total = k.dot(left, right.t, total)
    k.store(total * 0.5, k.view(k["out"], [rows, columns]), (0, rows), (0, columns))
    operands = [numbers(rows, first), numbers(columns, first), numbers(rows, second), numbers(columns, second)]
    out = np.zeros((rows, columns), np.float32)
    assert_same(k.finish(), [*operands, numbers(rows, columns), out], target=narrower(target))


def scores(rows: int, depth: int, columns: int, element: Attribute, total: Attribute = f32) -> KernelOp:
    """The scores of the first `n` of some keys that lie one after the other; of others -1."""
    arguments = {"x": PointerType(total), "w": PointerType(element), "out": PointerType(total), "n": INDEX}
    k = KernelBuilder("kernel", arguments)
    x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
    w = k.load(k.view(k["w"], [k["n"], depth], [depth, 1]), (0, columns), (0, depth))
    w = w if element == total else w.to(total)
    dot = k.dot(x, w.t, k.const(1.0, total, [rows, columns]))
    masked = k.select(k.in_range(0, columns, k["n"])[None, :], dot, -1.0)
    out = k.view(k["out"], [rows, columns])
    k.store(masked + k.reduce("max", masked, 1)[:, None], out, (0, rows), (0, columns))
    return k.finish()


@pytest.mark.parametrize(
    ("element", "target"),
    [
        *((element, "widest") for element in (f32, bf16, f16, f64)),
        *((element, target) for element in (f32, bf16) for target in ("avx2", "sse")),
    ],
)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 16, 16), (2, 32, 48), (3, 37, 41), (6, 72, 32)])
def test_sums_across_lanes_a_vector_at_a_time(rows: int, depth: int, columns: int, element: Attribute, target: str):
    """Of keys of which a call has all, some, or none; what lies behind them is not read."""
    total = f64 if element == f64 else f32
    kernel = scores(rows, depth, columns, element, total)
    for count in (0, columns // 3, columns - 1, columns):
        x, w = (numbers(size, depth).astype(numpy_dtype(kind)) for size, kind in ((rows, total), (count, element)))
        arguments = [x, w, np.zeros((rows, columns), numpy_dtype(total)), count]
        assert_same(kernel, arguments, target=narrower(target))


@pytest.mark.parametrize("element", [f32, bf16], ids=str)
def test_no_score_passes_through_a_scalar(element: Attribute):
    definition = compile_text(scores(2, 32, 64, element))
    assert "extractelement" not in definition
    assert ("shl <16 x i32>" in definition) is (element == bf16)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", [f32, bf16], ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(1, 32), (2, 64), (3, 48), (5, 37), (9, 32)])
def test_sums_of_the_rows_that_are_there(rows: int, columns: int, element: Attribute, target: str):
    """Weighted sums end with the last row, whatever the weights of others are; bf16 are read two columns in a word."""
    depth = 24
    k = KernelBuilder("kernel", {"x": F32, "w": PointerType(element), "start": F32, "out": F32, "n": INDEX})
    x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
    w = k.load(k.view(k["w"], [k["n"], columns], [columns, 1]), (0, depth), (0, columns))
    start = k.load(k.view(k["start"], [rows, columns]), (0, rows), (0, columns))
    k.store(k.dot(x, w.to(f32), start), k.view(k["out"], [rows, columns]), (0, rows), (0, columns))
    kernel = k.finish()
    for count in (0, 7, depth):
        w_ = numbers(count, columns).astype(numpy_dtype(element))
        arguments = [numbers(rows, depth), w_, numbers(rows, columns), np.zeros((rows, columns), np.float32), count]
        assert_same(kernel, arguments, target=narrower(target))


def deep(rows: int, columns: int, depth: int, along_depth: bool, element: Attribute) -> KernelOp:
    """`y * max(x @ w + y, 0)`, twice over, of rows that two programs share out."""
    arguments = {"x": F32, "w": PointerType(element), "y": F32, "out": F32}
    k = KernelBuilder("deep", arguments, grid=[2])
    m, half = k.program_id(0) * (rows // 2), rows // 2
    x = k.load(k.view(k["x"], [rows, depth]), (m, half), (0, depth))
    if along_depth:
        w = k.load(k.view(k["w"], [columns, depth]), (0, columns), (0, depth)).t
    else:
        w = k.load(k.view(k["w"], [depth, columns]), (0, depth), (0, columns))
    y = k.load(k.view(k["y"], [rows, columns]), (m, half), (0, columns))
    total = k.dot(x, w.to(f32), y)
    gated = y * k.maximum(total, k.const(0.0, f32, [half, columns]))
    k.store(gated + gated, k.view(k["out"], [rows, columns]), (m, half), (0, columns))
    return k.finish()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rows", "depth"), [(140, 256), (140, 257), (140, 523), (22, 1100), (256, 1024), (150, 2051)])
@pytest.mark.parametrize(("along_depth", "element"), [(False, f32), (True, f32), (False, bf16)])
def test_deep_products_in_pieces(rows: int, depth: int, along_depth: bool, element: Attribute, target: str):
    """Panels that are deeper than the nearest cache: their pieces serve groups of rows, whole ones and what is left."""
    columns = 96
    shape = (columns, depth) if along_depth else (depth, columns)
    weights = numbers(*shape).astype(numpy_dtype(element))
    arguments = [numbers(rows, depth), weights, numbers(rows, columns), np.zeros((rows, columns), np.float32)]
    assert_same(deep(rows, columns, depth, along_depth, element), arguments, [2], 1e-4, narrower(target))


def test_what_is_deep_enough_for_pieces():
    """One loop over the rows of a panel that fits the nearest cache, loops over pieces and their rows of one that does
    not."""
    loops = [compile_text(deep(140, 96, depth, along_depth=False, element=f32)).count(" phi ") for depth in (256, 258)]
    assert loops[0] < loops[1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [16, 32, 33, 48, 64])
@pytest.mark.parametrize("plain", [True, False])
def test_products_turned_round_on_their_way_to_memory(rows: int, plain: bool, target: str):
    """Rows of the left operand that are lanes: blocks of several vectors of them, turned round when all are computed,
    with and without what is added to them."""
    columns, depth = 45, 37
    k = KernelBuilder("turned", {"x": F32, "w": F32, "y": F32, "out": F32}, grid=[2])
    n = k.program_id(0) * columns
    x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
    w = k.load(k.view(k["w"], [2 * columns - 4, depth]), (n, columns), (0, depth))
    total = k.dot(x, w.t, k.const(0.0, f32, [rows, columns]))
    if not plain:
        total = total + k.load(k.view(k["y"], [rows, 2 * columns - 4]), (0, rows), (n, columns)) * 2.0
    k.store(total, k.view(k["out"], [rows, 2 * columns - 4]), (0, rows), (n, columns))
    weights, out = numbers(2 * columns - 4, depth), np.zeros((rows, 2 * columns - 4), np.float32)
    assert_same(k.finish(), [numbers(rows, depth), weights, numbers(*out.shape), out], [2], 1e-5, narrower(target))


def turned_whole(rows: int, columns: int) -> KernelOp:
    """x @ w.T of weights that are near, all of it inside of what it is stored to."""
    depth = 37
    k = KernelBuilder("turned", {"x": F32, "w": F32, "out": F32})
    x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
    w = k.load(k.view(k["w"], [columns, depth]), (0, columns), (0, depth))
    product = k.dot(x, w.t, k.const(0.0, f32, [rows, columns]))
    k.store(product, k.view(k["out"], [rows, columns]), (0, rows), (0, columns))
    kernel = k.finish()
    kernel.attributes[NEAR] = UnitAttr()
    return kernel


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [8, 16, 32, 33])
@pytest.mark.parametrize("columns", [32, 48, 64, 75])
def test_squares_that_are_stored_turned_round(rows: int, columns: int, target: str):
    out = np.zeros((rows, columns), np.float32)
    arguments = [numbers(rows, 37), numbers(columns, 37), out]
    assert_same(turned_whole(rows, columns), arguments, (), 1e-5, narrower(target))


def test_a_product_that_is_stored_turned_round_stands_once():
    texts = [lower_kernel(turned_whole(16, columns), AVX512).definition for columns in (64, 128)]
    products = [text.count("fmul") for text in texts]
    assert products[0] == products[1]
    assert all("call void @transposed" in text for text in texts)
