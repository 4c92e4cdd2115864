"""Whether one program does a step of a loop in about the time that launching its kernels takes.

A launch costs some microseconds of the host, whatever it does, and a kernel that is launched has the whole device. One
program has a single multiprocessor, so a loop is worth one launch only where a step is little work for each program:
per launch saved, as many multiplications and as many bytes as a multiprocessor manages meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import BodyOperation, FoldOp, ForOp, IfOp
from tempo_ir.dialects.types import Extent, element, shape_of
from tempo_ir.index import Const, MinMax, simplify
from tempo_ir.lowering.kernels.layout import element_bytes
from tempo_ir.lowering.persistence.rows import Rows

MULTIPLICATIONS = 1 << 20
"""Of f32, that one program does in about the time of a launch."""
BYTES = 1 << 18
"""That one program reads or writes in about the time of a launch."""
MOST_LAUNCHES = 64
"""Of an iteration: the code of a kernel has its limits."""
ROWS_OF_PRODUCTS = 16
"""Rows that a program holds where there are products of matrices: as many as fill `tl.dot`."""
MOST_ROWS = 128
ELEMENTS = 1024
"""That fill the threads of a program."""


class TooMuch(Exception):
    """A step is too much work for a program; the message says what."""


@dataclass(frozen=True)
class Work:
    """What one program does in one iteration."""

    launches: int = 0
    multiplications: int = 0
    bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.launches + other.launches,
            self.multiplications + other.multiplications,
            self.bytes + other.bytes,
        )

    def times(self, trips: int) -> Work:
        """Of so many iterations of an inner loop, which is one kernel more only once."""
        return Work(self.launches * trips, self.multiplications * trips, self.bytes * trips)


def check_work(block: Block, rows: Rows | None, block_rows: int) -> None:
    """Raise TooMuch where an iteration is too much for a program with so many of the rows."""
    work = _Counter(rows, block_rows).block(block)
    launches = sum(isinstance(op, BodyOperation) for op in block.walk())
    if launches > MOST_LAUNCHES:
        raise TooMuch(f"{launches} kernels in an iteration are too much code for one")
    for what, amount, limit in (
        ("multiplications", work.multiplications, MULTIPLICATIONS),
        ("bytes read and written", work.bytes, BYTES),
    ):
        if amount > limit * work.launches:
            raise TooMuch(f"{amount} {what} in an iteration are too many for a program")


def rows_of_a_program(block: Block, rows: Rows) -> int:
    """How many rows a program takes."""
    leaves = [op for op in block.walk() if isinstance(op, BodyOperation)]
    if any(isinstance(op, sdg.ContractOp) for leaf in leaves for op in leaf.body.walk()):
        return ROWS_OF_PRODUCTS
    shapes = [shape_of(value.type) for leaf in leaves for value in leaf.yielded]
    widest = max(prod(extent for extent in shape if isinstance(extent, int)) for shape in shapes)
    if isinstance(rows.extent, int):
        widest = -(-widest // rows.extent)
    fitting = 1 << max(0, (ELEMENTS // max(1, widest)).bit_length() - 1)
    return max(ROWS_OF_PRODUCTS, min(MOST_ROWS, fitting))


def _most(extent: Extent) -> int | None:
    """The greatest that an extent may be, where it says so: 3 of `min(t + 1, 3)`."""
    match extent:
        case int():
            return extent
        case MinMax("min", args):
            return min((arg.value for arg in args if isinstance(arg, Const)), default=None)
        case _:
            return None


@dataclass(frozen=True)
class _Counter:
    """Counts the work of a program that has `size` of the rows."""

    rows: Rows | None
    size: int

    def block(self, block: Block) -> Work:
        """The work of one run of a block, all its guards true."""
        total = Work()
        for op in block.ops:
            if isinstance(op, BodyOperation):
                total += self.leaf(op)
            elif isinstance(op, IfOp):
                total += self.block(op.then.block)
                total += Work() if op.otherwise is None else self.block(op.otherwise.block)
            elif isinstance(op, ForOp):
                trips = simplify(op.upper - op.lower)
                if not isinstance(trips, Const):
                    raise TooMuch(f"a loop of {trips} iterations stands in it")
                total += self.block(op.body.block).times(max(0, trips.value))
        return total

    def leaf(self, leaf: BodyOperation) -> Work:
        """The work of a leaf."""
        reads = zip(leaf.reads, leaf.body.block.args, strict=True)
        values = [*{(access.buffer, access.index): value for access, value in reads}.values(), *leaf.yielded]
        moved = sum(self.size_of(value) * element_bytes(element(value.type)) for value in values)
        multiplications = sum(self.multiplications(op) for op in leaf.body.walk())
        return Work(1, multiplications, moved)

    def size_of(self, value: SSAValue) -> int:
        """The elements of a value that a program has."""
        return prod(self.extent(value, axis) for axis in range(len(shape_of(value.type))))

    def extent(self, value: SSAValue, axis: int) -> int:
        """The extent of an axis as a program has it."""
        extent = shape_of(value.type)[axis]
        if self.rows is not None and self.rows.is_row(value, axis):
            return min(extent, self.size) if isinstance(extent, int) else self.size
        most = _most(extent)
        if most is None:
            raise TooMuch(f"%{value.name_hint or 'a value'} has {extent} rows, and may have many")
        return most

    def multiplications(self, op: Operation) -> int:
        """Of a contraction, eight times as dear in 64 bits as in 32, and in 32 as in 16; elementwise ops are counted by
        the bytes around them."""
        if isinstance(op, FoldOp):
            raise TooMuch("it holds a loop of unknown length")
        if not isinstance(op, sdg.ContractOp):
            return 0
        inputs, _ = op.letters
        extents: Mapping[str, int] = {
            letter: self.extent(operand, axis)
            for letters, operand in zip(inputs, op.inputs, strict=True)
            for axis, letter in enumerate(letters)
        }
        return prod(extents.values()) * element_bytes(element(op.result.type)) ** 3 // 64
