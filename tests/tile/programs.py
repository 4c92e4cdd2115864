"""Tile kernels with arguments that more than one target is tried on; extents of blocks are the target's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import INDEX, UI8, UI32, PointerType, is_float
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.reference.tile import numpy_dtype

F32 = PointerType(f32)
Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A kernel, what it is called with, and its grid."""

    kernel: KernelOp
    arguments: Sequence[Array | int | float]
    grid: Sequence[int] = ()


def numbers(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def assert_close(got: Array, want: Array, tolerance: float, name: str = "", least_scale: float = 1e-30) -> None:
    """
    Integers and bools are equal, floats within `tolerance` relative to the largest finite value, which counts as
    `least_scale` at least; NaN and infinities are in the same places.
    """
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, name)
        return
    wide_got, wide_want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(wide_want)
    np.testing.assert_array_equal(wide_got[~finite], wide_want[~finite], name)
    scale = np.abs(wide_want[finite]).max(initial=least_scale)
    error = np.abs(wide_got[finite] - wide_want[finite]).max(initial=0.0) / scale
    assert error <= tolerance, f"{name}: error {error:.1e} of the largest value {scale:.3g}"


def carried_tiles(trips: int, extent: int) -> Case:
    """Tiles that a loop carries change places at once, one of them transposed."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    whole = (0, extent), (0, extent)
    x = k.load(k.view(k["x"], [extent, extent]), *whole)
    with k.loop(0, k["n"], 1, [x, x * 2.0, x + 1.0]) as loop:
        a, b, c = loop.carried
        loop.carry(b, c.t, a + b)
    out = k.view(k["out"], [3, extent, extent])
    for i, value in enumerate(loop.results):
        k.store(value, out, i, *whole)
    return Case(k.finish(), [numbers(extent, extent), np.zeros((3, extent, extent), np.float32), trips])


def carried_scalars(trips: int) -> Case:
    """Scalars of every sort that a loop carries."""
    types = {"out": F32, "ints": PointerType(i64), "flags": PointerType(i1), "n": INDEX}
    k = KernelBuilder("kernel", types)
    start = [k.const(1.0, f32), k.value(3), k.const(0, i32), k.const(0, i1), k.const(1.5, bf16)]
    with k.loop(0, k["n"], 1, start) as loop:
        x, i, j, flag, y = loop.carried
        loop.carry(x * 1.5, i + loop.index * 2, j - 1, ~flag, y * 0.5)
    x, i, j, flag, y = loop.results
    out, ints = k.view(k["out"], [2]), k.view(k["ints"], [2])
    k.store(x, out, 0)
    k.store(y.to(f32), out, 1)
    k.store(i.to(i64), ints, 0)
    k.store(j.to(i64), ints, 1)
    k.store(flag, k.view(k["flags"], [1]), 0)
    return Case(k.finish(), [np.zeros(2, np.float32), np.zeros(2, np.int64), np.zeros(1, np.bool_), trips])


def nested_loops(rows: int, columns: int) -> Case:
    """The bounds of a loop follow from the counter of the one round it; blocks of so many rows and columns."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX})
    view = k.view(k["x"], [k["n"], 20])
    with k.loop(0, k["n"], 1, [k.const(0.0, f32, [columns])]) as outer:
        with k.loop(outer.index // 2, outer.index + 1, 3, [outer.carried[0]]) as inner:
            block = k.load(view, (inner.index, rows), (0, columns))
            inner.carry(inner.carried[0] + k.reduce("sum", block, 0))
        outer.carry(inner.results[0] * 0.9)
    k.store(outer.results[0], k.view(k["out"], [20]), (0, columns))
    return Case(k.finish(), [numbers(11, 20), np.zeros(20, np.float32), 11])


def loop_range(low: int, high: int) -> Case:
    """A sum over a range in steps of 4."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "low": INDEX, "high": INDEX})
    view = k.view(k["x"], [k["high"]])
    with k.loop(k["low"], k["high"], 4, [k.const(0.0, f32, [4])]) as loop:
        loop.carry(loop.carried[0] + k.load(view, (loop.index, 4)))
    k.store(loop.results[0], k.view(k["out"], [4]), (0, 4))
    return Case(k.finish(), [numbers(23), np.zeros(4, np.float32), low, high])


def length_from_memory(length: int) -> Case:
    """The greatest of as many numbers as a buffer says."""
    k = KernelBuilder("kernel", {"x": F32, "length": PointerType(i64), "out": F32})
    limit = k.load(k.view(k["length"], [])).to(INDEX)
    view = k.view(k["x"], [limit])
    with k.loop(0, limit, 16, [k.const(-np.inf, f32, [16])]) as loop:
        loop.carry(k.maximum(loop.carried[0], k.load(view, (loop.index, 16), other=-np.inf)))
    k.store(k.reduce("max", loop.results[0], 0), k.view(k["out"], []))
    return Case(k.finish(), [numbers(37), np.array(length), np.zeros((), np.float32)])


def branches(n: int, block: int) -> Case:
    """A branch in a branch, beside one with a loop."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "n": INDEX}, grid=[2])
    x = k.exp(k.load(k.view(k["x"], [37]), (0, block)))
    out = k.view(k["out"], [2, 37])
    row = k.program_id(0)
    with k.when(k["n"] < 5):
        y = x + 1.0
        with k.when(row.eq(0)):
            k.store(y * y, out, row, (0, block))
    with k.otherwise():
        with k.loop(0, k["n"], 1, [x]) as loop:
            loop.carry(loop.carried[0] * 0.5)
        k.store(loop.results[0], out, row, (0, block))
    return Case(k.finish(), [numbers(37), np.zeros((2, 37), np.float32), n], (2,))


def index_arithmetic(op: type[ew.BinaryOp], a: int, b: int) -> Case:
    """An op of indices that are arguments, constants, or made of both."""
    k = KernelBuilder("kernel", {"out": PointerType(i64), "a": INDEX, "b": INDEX})
    out = k.view(k["out"], [6])
    values = [
        k.apply(op, k["a"], k["b"]),
        k.apply(op, k["a"], b),
        k.apply(op, k["a"] * b, b),
        k.apply(op, a, b),
        k.apply(op, k["a"] + 100, k["a"]) if op is not ew.PowOp else k["a"],
        k.select(k["a"] < k["b"], k["a"], abs(-k["b"])),
    ]
    for i, value in enumerate(values):
        k.store(value.to(i64), out, i)
    return Case(k.finish(), [np.zeros(6, np.int64), a, b])


INDEX_OPS = (ew.AddOp, ew.SubOp, ew.MulOp, ew.FloorDivOp, ew.ModOp, ew.MinOp, ew.MaxOp, ew.PowOp)
INDICES = ((7, 3), (-7, 3), (12, 4), (0, 5))


def masked_ends(element: Attribute, start: int, size: int, block: int) -> Case:
    """A block that lies across either end of a buffer, read with ones outside and written back."""
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "out": pointer, "back": pointer, "start": INDEX, "size": INDEX})
    read = k.load(k.view(k["x"], [k["size"]]), (k["start"], block), other=1)
    k.store(read, k.view(k["out"], [block]), (0, block))
    k.store(read, k.view(k["back"], [k["size"]]), (k["start"], block))
    x = (numbers(50) * 3).astype(numpy_dtype(element))
    return Case(k.finish(), [x, np.zeros(block, x.dtype), np.zeros(50, x.dtype), start, size])


def masked_axes(rows: int, columns: int, block: int) -> Case:
    """Blocks of 4 rows that cover a table, and more."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "rows": INDEX, "columns": INDEX}, grid=[None, None])
    view, out = (k.view(k[name], [k["rows"], k["columns"]]) for name in ("x", "out"))
    at = (k.program_id(0) * 4, 4), (k.program_id(1) * block, block)
    k.store(k.load(view, *at) * 2.0, out, *at)
    x = numbers(rows, columns)
    grid = (-(-rows // 4) + 1, -(-columns // block) + 1)
    return Case(k.finish(), [x, np.zeros_like(x), rows, columns], grid)


STRIDES = ((40, 1), (1, 40), (3, 41), (0, 1), (1, 0), (-1, -40), (80, 2))


def strided(strides: tuple[int, int], dynamic: bool, rows: int, columns: int) -> Case:
    """A view with strides, which are arguments where `dynamic`."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "s0": INDEX, "s1": INDEX, "offset": INDEX})
    steps = [k["s0"], k["s1"]] if dynamic else list(strides)
    x = k.load(k.view(k["x"], [9, 21], steps, k["offset"]), (0, rows), (0, columns))
    k.store(x + 1.0, k.view(k["out"], [9, 21]), (0, rows), (0, columns))
    return Case(k.finish(), [numbers(4000), np.zeros((9, 21), np.float32), *strides, 2000])


def ranks_and_points(*blocks: int) -> Case:
    """Views of rank 0 and 3, read at points and in blocks of three extents."""
    first, second, third = ((0, extent) for extent in blocks)
    k = KernelBuilder("kernel", {"x": F32, "scale": F32, "out": F32, "i": INDEX})
    scale = k.load(k.view(k["scale"], []))
    view, out = (k.view(k[name], [3, 5, 40]) for name in ("x", "out"))
    k.store(k.load(view, k["i"], second, third) * scale, out, k["i"], second, third)
    k.store(k.load(view, first, k["i"], third) * scale, out, first, k["i"], third)
    k.store(k.load(view, 0, 0, k["i"]), out, 0, 0, k["i"])
    k.store(k.load(view, first, second, k["i"]), out, first, second, k["i"] + 1)
    return Case(k.finish(), [numbers(3, 5, 40), numbers(1), np.zeros((3, 5, 40), np.float32), 2])


def atomic_sum(grid: Sequence[int], element: Attribute, block: int) -> Case:
    """Every program of a grid adds to the same memory."""
    pointer = PointerType(element)
    k = KernelBuilder("kernel", {"x": pointer, "out": pointer, "size": INDEX}, grid=list(grid))
    view = k.view(k["x"], [k["size"]])
    k.atomic_add(k.load(view, (0, block)) * 3, k.view(k["out"], [k["size"]]), (0, block))
    x = np.arange(30).astype(numpy_dtype(element))
    return Case(k.finish(), [x, np.ones_like(x), 30], grid)


def adam_step() -> Case:
    """Three buffers are read and written at the same block."""
    k = KernelBuilder("kernel", {"w": F32, "m": F32, "v": F32, "g": F32, "n": INDEX}, grid=[None])
    at = (k.program_id(0) * 64, 64)
    views = {name: k.view(k[name], [k["n"]]) for name in "wmvg"}
    w, m, v, g = (k.load(views[name], at) for name in "wmvg")
    m, v = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
    k.store(m, views["m"], at)
    k.store(v, views["v"], at)
    k.store(w - m / (k.sqrt(v) + 1e-8) * 0.001, views["w"], at)
    return Case(k.finish(), [numbers(150), numbers(150), numbers(150) ** 2, numbers(150), 150], (3,))


def overwritten(extent: int) -> Case:
    """A matrix read, overwritten by its transpose, and read again."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32})
    whole = (0, extent), (0, extent)
    view, out = k.view(k["x"], [extent, extent]), k.view(k["out"], [extent, extent])
    before = k.load(view, *whole)
    k.store(before.t * 2.0, view, *whole)
    k.store(before + k.load(view, *whole), out, *whole)
    return Case(k.finish(), [numbers(extent, extent), np.zeros((extent, extent), np.float32)])


def ring(block: int) -> Case:
    """A ring of four rows, summed and then written in each iteration."""
    k = KernelBuilder("kernel", {"ring": F32, "out": F32, "steps": INDEX})
    rows, out = k.view(k["ring"], [4, 21]), k.view(k["out"], [k["steps"], 21])
    with k.loop(0, k["steps"]) as loop:
        slot = loop.index % 4
        window = k.load(rows, (0, 4), (0, block))
        k.store(k.reduce("sum", window, 0), out, loop.index, (0, block))
        k.store(k.load(rows, slot, (0, block)) * 0.5 + 1.0, rows, slot, (0, block))
    return Case(k.finish(), [numbers(4, 21), np.zeros((10, 21), np.float32), 10])


def wide_positions(count: int) -> Case:
    """Positions whose low 32 bits lie inside of the view, though they do not."""
    k = KernelBuilder("kernel", {"x": F32, "ids": PointerType(i64), "out": F32})
    ids = k.load(k.view(k["ids"], [count]), (0, count))
    k.store(k.gather(k.view(k["x"], [20]), ids, other=-1.0), k.view(k["out"], [count]), (0, count))
    positions = np.array([1 << 33, (1 << 32) + 3, -(1 << 32) + 5, 5] * (count // 4))
    return Case(k.finish(), [numbers(20), positions, np.zeros(count, np.float32)])


def wide_size(block: int) -> Case:
    """A size whose low 32 bits are 5."""
    k = KernelBuilder("kernel", {"x": F32, "out": F32, "size": INDEX})
    k.store(k.load(k.view(k["x"], [k["size"]]), (0, block)), k.view(k["out"], [block]), (0, block))
    return Case(k.finish(), [numbers(40), np.zeros(block, np.float32), (1 << 32) + 5])


Block = Callable[[Sequence[int]], list[tuple[int, int]]]
"""The places of all of an array, as a target has its blocks."""


def values(element: Attribute, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of an element type: normal, or small integers."""
    rng = np.random.default_rng(seed)
    dtype = numpy_dtype(element)
    if element == i1:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if is_float(element):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-5 if dtype.kind == "i" else 0, 6, shape).astype(dtype)


def loaded(k: KernelBuilder, name: str, shape: Sequence[int], block: Block, other: float = 0) -> Value:
    """All of an array."""
    return k.load(k.view(k[name], list(shape)), *block(shape), other=other)


def stored(k: KernelBuilder, value: Value, name: str, shape: Sequence[int], block: Block) -> None:
    """Write all of an array."""
    k.store(value, k.view(k[name], list(shape)), *block(shape))


DOT_ELEMENTS = ((f16, f32), (bf16, f32), (f64, f64), (i8, i32), (UI8, i32), (i32, i32), (i64, i64))
"""What is multiplied, and what the products are added in."""


def product(
    element: Attribute, total: Attribute, sides: tuple[int, int, int], transposed: tuple[bool, bool], block: Block
) -> Case:
    """A matrix product, of operands that lie transposed in memory or do not, added to ones."""
    rows, depth, columns = sides
    shapes = [(rows, depth), (depth, columns)]
    shapes = [shape[::-1] if swap else shape for shape, swap in zip(shapes, transposed, strict=True)]
    k = KernelBuilder("kernel", {"a": PointerType(element), "b": PointerType(element), "c": PointerType(total)})
    a, b = (loaded(k, name, shape, block) for name, shape in zip("ab", shapes, strict=True))
    a, b = (x.t if swap else x for x, swap in zip((a, b), transposed, strict=True))
    ones = k.const(1, total, [a.shape[0], b.shape[1]])
    stored(k, k.dot(a, b, ones), "c", (rows, columns), block)
    given = [values(element, shape, seed) for seed, shape in enumerate(shapes, 1)]
    return Case(k.finish(), [*given, np.zeros((rows, columns), numpy_dtype(total))])


def moves(shape: tuple[int, int], block: Block) -> Case:
    """A transpose, and rows and columns that are broadcast."""
    rows, columns = shape
    k = KernelBuilder("kernel", dict.fromkeys(("x", "row", "column", "out", "swapped"), F32))
    x, row, column = (loaded(k, *each, block) for each in (("x", shape), ("row", (columns,)), ("column", (rows,))))
    wide = column[None, :].broadcast(*x.t.shape)
    stored(k, (x + row[None, :]).t + wide, "out", (columns, rows), block)
    stored(k, k.exp(x).t, "swapped", (columns, rows), block)
    out = np.zeros((columns, rows), np.float32)
    return Case(k.finish(), [values(f32, shape), values(f32, (columns,), 1), values(f32, (rows,), 2), out, out.copy()])


def positions(element: Attribute, n: int, block: Block) -> Case:
    """Numbers from n on, and which places lie inside of n."""
    k = KernelBuilder("kernel", {"out": PointerType(element), "inside": PointerType(i1), "n": INDEX})
    ((_, extent),) = block((37,))
    stored(k, k.iota(k["n"], extent, element), "out", (37,), block)
    stored(k, k.in_range(3, extent, k["n"]), "inside", (37,), block)
    return Case(k.finish(), [np.zeros(37, numpy_dtype(element)), np.zeros(37, np.bool_), n])


def random_words(seed: int, block: Block) -> Case:
    """The four words of Philox at 37 counters."""
    names = ("w0", "w1", "w2", "w3")
    k = KernelBuilder("kernel", {**{name: PointerType(UI32) for name in names}, "seed": i32})
    ((_, extent),) = block((37,))
    counter, zero = k.iota(0, extent, UI32), k.const(0, UI32)
    words = k.philox((k["seed"], k.const(7, UI32)), (counter, zero, counter + 5, zero))
    for name, word in zip(names, words, strict=True):
        stored(k, word, name, (37,), block)
    return Case(k.finish(), [*(np.zeros(37, np.uint32) for _ in names), seed])
