"""Work across the lanes of vectors: horizontal reductions, many sums at once, transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tempo_ir.lowering.llvm.text import BYTES, KINDS, REDUCTION_FLAGS, Register, Text, suffix


def shuffle(a: Register, b: Register, order: Sequence[int]) -> Register:
    """The lanes `order` of a followed by b."""
    lanes = ", ".join(f"i32 {lane}" for lane in order)
    return a.text.new(f"shufflevector {a.typed}, {b.typed}, <{len(order)} x i32> <{lanes}>", a.kind, len(order))


def add(a: Register, b: Register) -> Register:
    """A sum whose order is free."""
    return a.text.binary("fadd" if a.is_float else "add", a, b, REDUCTION_FLAGS)


def horizontal(operation: str, x: Register) -> Register:
    """
    All lanes as one scalar, by LLVM's name of the reduction: fadd, fmul, fmaximum, fminimum, add, mul, smax, umin, and,
    or, ...
    """
    text = x.text
    if operation in ("fadd", "fmul"):
        start = text.constant(0.0 if operation == "fadd" else 1.0, x.kind)
        name = f"llvm.vector.reduce.{operation}.{suffix(x.kind, x.lanes)}"
        return text.call(name, x.kind, 0, start, x, flags=REDUCTION_FLAGS)
    flags = "nsz" if x.is_float else ""
    return text.call(f"llvm.vector.reduce.{operation}.{suffix(x.kind, x.lanes)}", x.kind, 0, x, flags=flags)


def sums(vectors: Sequence[Register]) -> list[Register]:
    """
    The horizontal sum of each vector, of a number of vectors that is a power of two up to the number of lanes: a
    tree that adds halves of two vectors at once, so that n sums cost about as much as n additions and 2 n shuffles.
    """
    count, lanes = len(vectors), vectors[0].lanes
    rows, groups = list(vectors), 1
    while len(rows) > 1:
        half = lanes // groups // 2
        low = [
            group * 2 * half + lane + (lanes if second else 0)
            for group in range(groups)
            for second in (False, True)
            for lane in range(half)
        ]
        high = [lane + half for lane in low]
        rows = [add(shuffle(a, b, low), shuffle(a, b, high)) for a, b in zip(rows[::2], rows[1::2], strict=True)]
        groups *= 2
    total, segment = rows[0], lanes // groups
    while segment > 1:
        segment //= 2
        low = [group * 2 * segment + lane for group in range(groups) for lane in range(segment)]
        total = add(shuffle(total, total, low), shuffle(total, total, [lane + segment for lane in low]))
    # the tree leaves sum i in the lane whose number is i with its bits reversed
    bits = count.bit_length() - 1
    order = [int(format(i, "b").zfill(bits)[::-1], 2) if bits else 0 for i in range(count)]
    return [total.text.extract(total, order.index(i)) for i in range(count)]


def sum_into_lanes(vector: Callable[[int], Sequence[Register]], count: int) -> list[Register]:
    """
    The horizontal sums of `count` vectors side by side in one, of which lane i has that of vector i; `vector(i)` gives
    vector i, of several such sets at once. There are as many vectors as lanes. A tree from the first vectors on, so
    that few registers are needed; each round is two instructions without a table of lanes (`vunpcklps`, `vshuff32x4`)
    and an addition.
    """

    def tree(first: int, size: int) -> Sequence[Register]:
        if size == 1:
            return vector(first)
        pairs = zip(tree(first, size // 2), tree(first + size // 2, size // 2), strict=True)
        return [_halves_added(a, b, size // 2) for a, b in pairs]

    return list(tree(0, count))


def _halves_added(a: Register, b: Register, size: int) -> Register:
    """Two vectors, each with the partial sums of `size` others in turn, as one with those of both."""
    lanes, group = a.lanes, _group(a)
    if size < group:
        starts = [start for first in range(0, lanes, group) for start in range(first, first + group // 2, size)]
        low = [of + lane for start in starts for of in (start, start + lanes) for lane in range(size)]
        high = [lane + group // 2 for lane in low]
    else:
        low, high = _even_and_odd_groups(lanes, group)
    return add(shuffle(a, b, low), shuffle(a, b, high))


def can_sum_together(count: int, lanes: int) -> bool:
    """Does `sums` take this many vectors?"""
    return 1 < count <= lanes and count & (count - 1) == 0


GROUP_BITS = 128
"""Bits of the groups of lanes within which instructions interleave two vectors."""


def transpose(rows: Sequence[Register]) -> list[Register]:
    """
    As many vectors as they have lanes, transposed: squares within groups of lanes by rounds of interleaving two
    vectors, then the groups by rounds of taking the even and the odd ones of two. Each is an instruction without a
    table of lanes (`vunpcklps`, `vshuff32x4`, `zip1`), and LLVM, which would look through all rounds for a better one
    in half of the time that it takes for the kernel, sees one round at a time.
    """
    lanes = len(rows)
    group = _group(rows[0])
    squares = [_transposed_squares(rows[i : i + group], group) for i in range(0, lanes, group)]
    columns = [_transposed_groups(column, group) for column in zip(*squares, strict=True)]
    return [row for rows in zip(*columns, strict=True) for row in rows]


def store_transposed(rows: Sequence[Register], to: Register, pitch: int) -> None:
    """
    `transpose`, of which vector i is written `i * pitch` elements behind `to`, by a function that a module has once:
    written out it is a tenth of the text of most kernels that have it, and some have it three times.
    """
    text, first = to.text, rows[0]
    name, kind = f"transposed.{suffix(first.kind, first.lanes)}", first.kind
    if name not in text.shared_functions:
        inner = Text(text.lanes)
        given = [Register(f"%x{i}", kind, first.lanes, 0, inner) for i in range(len(rows))]
        address, step = Register("%to", "ptr", 0, 0, inner), Register("%pitch", "i64", 0, 0, inner)
        parameters = [address, step, *given]
        for column in transpose(given):
            inner.line(f"store {column.typed}, ptr {address.name}, align {BYTES[kind]}")
            address = inner.new(f"getelementptr inbounds {KINDS[kind]}, ptr {address.name}, i64 {step.name}", "ptr")
        text.define_shared(name, parameters, inner)
    text.line(f"call void @{name}({', '.join([to.typed, f'i64 {pitch}', *(row.typed for row in rows)])})")


def _group(x: Register) -> int:
    """The lanes of a group of a vector."""
    return min(x.lanes, GROUP_BITS // (8 * BYTES[x.kind]))


def _even_and_odd_groups(lanes: int, group: int) -> tuple[list[int], list[int]]:
    """The lanes of the even and of the odd groups of two vectors."""
    even = [first + lane for first in range(0, 2 * lanes, 2 * group) for lane in range(group)]
    return even, [lane + group for lane in even]


def _transposed_squares(rows: Sequence[Register], group: int) -> list[Register]:
    """As many vectors as a group has lanes: row i has lane i of each group of them."""
    lanes, half = rows[0].lanes, group // 2
    starts = [start for first in range(0, lanes, group) for start in range(first, first + half)]
    low = [lane for start in starts for lane in (start, start + lanes)]
    high = [lane + half for lane in low]
    rows = list(rows)
    for _ in range(group.bit_length() - 1):
        rows = _fenced([shuffle(rows[i], rows[i + half], order) for i in range(half) for order in (low, high)])
    return rows


def _transposed_groups(rows: Sequence[Register], group: int) -> list[Register]:
    """As many vectors as they have groups of lanes, transposed."""
    lanes, count = rows[0].lanes, len(rows)
    orders = _even_and_odd_groups(lanes, group)
    rows = list(rows)
    for _ in range(count.bit_length() - 1):
        rows = _fenced([shuffle(rows[i], rows[i + 1], order) for order in orders for i in range(0, count, 2)])
    return rows


def _fenced(rows: Sequence[Register]) -> list[Register]:
    """The same vectors, of which LLVM does not look at how they were made."""
    return [row.text.intrinsic("arithmetic.fence", row) if row.is_float else row for row in rows]
