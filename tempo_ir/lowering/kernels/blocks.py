"""Block sizes: how much of an axis a program holds at a time, per target.

On the CPU the lowering of tiles cuts every tile into register blocks anyway, so that blocks decide cache use and the
granularity of tails only (measured: within 8 % of the best for matrix products). Triton wants powers of two, and small
blocks where a dot is chained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import bit_width, is_float
from tempo_ir.dialects.types import Extent

VECTOR = 16
"""Elements of the widest vectors."""

STREAM = 512
"""Elements of a row of the right operand of a product that a program reads at least, where its rows run along the
columns of the result: shorter pieces, each on another page, take up to four times as long (measured)."""

HELD_KEYS = 64
"""Keys of a block of many queries on a CPU: their scores are half of the innermost cache (measured: blocks of 32 and of
128 take 1.05 to 1.15 times as long)."""

OPEN_KEYS = 128
"""Keys of a block of few queries on a CPU, where more may come: what waits for the greatest score of a block is the
same for any, and the scores lie in the innermost cache (measured: 1.1 times as fast as 64, and as 256)."""

MANY_ROWS = 64
MUCH_OF_A_ROW = 1 << 12
"""Rows of a product of many rows, or of which only a call knows how many there are, where each is much work on a CPU:
the right operand, which is copied into panels or read from a cache once for so many, is what takes half of the time of
blocks of 16 (measured: prompts of 64 to 1024 tokens; 1024 x 256 x 1024, transposed, 1.4 times as fast as blocks of 32,
1024 x 1024 x 1024 1.09 times)."""

LEAST_PROGRAMS = 8
"""Into how many programs such rows are cut at least, where their number is known."""

BOUND_ROWS = 4
"""From so many rows on the multiplications of a product take the time, with fewer to read its right operand does."""

LEAST_COLUMNS = 64
"""Columns of such a program of another product at least: the rows are turned round once for all of them."""

MOST_SHARES = 64
"""Into how many programs a product is cut at most where that is for threads alone."""

WAVES = 2
"""Programs for each multiprocessor, from which on none waits for memory alone."""

LEAST_KEYS = 4
"""Blocks of a share of what is summed, where the greatest number of keys is known."""

LONGEST_ROW = 1 << 15
"""Elements of a row that a program of one thread holds whole, where it is reduced and read again."""

HELD_ROWS = 1 << 12
"""Elements of the rows that such a program holds at once: with what is made of them they stay in the first cache."""

WIDEST_HEAD = 256
"""Columns of queries and keys that one program holds whole."""

HELD = 1 << 13
"""Elements of the left operand of a product that lie in the L1 cache, at least: with few rows those of the right one
are read whole, in the order of memory."""

SMALLEST_DOT = 16
"""Rows that a tensor core takes at least (triton)."""

LEAST_BLOCKS = 4
"""Blocks of rows for which a program lays out weights and has sums of its own, where their number is known."""

LARGEST_PRODUCT = 16_384
"""Registers of a program that products may take, written out (triton)."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Greatest block of a target: along columns (contiguous), rows, contracted or reduced axes, and of unknown
    extents.

    `filling` is how many elements fill the threads of a program, 0 where a program is one thread.
    """

    column: int
    row: int
    reduced: int
    dynamic_row: int
    dynamic: int
    powers_of_two: bool = False
    filling: int = 0
    share: int = 0
    """A product of few rows is cut along its columns, so that threads may share it, into programs of so many
    multiplications for a row or more; 0: it is not."""
    multiprocessors: int = 0
    """What programs are shared among; 0 where a few threads are all there is."""
    row_block: int = 0
    """Rows that a program computes all values of before it goes on, of kernels that are computed by rows."""
    row_programs: int = 0
    """Programs that share such rows; 0 where such kernels are not to be had."""
    held_queries: int = 0
    """Queries of a program of attention, where there are many."""
    held_keys: int = 0
    """Bits of a block of keys."""

    def filled(self, column: Extent, row: Extent | None) -> tuple[int, int]:
        """Blocks along columns and rows of a result whose elements are computed one by one; rows are points (0) where
        columns fill the threads."""
        wide = self._block(column, self.filling, self.filling if row is None else self.filling // 4)
        high = 0 if row is None else self._block(row, max(1, self.filling // wide), max(1, self.filling // wide))
        return wide, 0 if high == 1 else high

    def fitted(self, extent: int) -> int:
        """The block that holds so many elements and no more than it must."""
        return 1 << (extent - 1).bit_length() if self.powers_of_two else extent

    def columns(self, extent: Extent) -> int:
        """Block along the contiguous axis of a result."""
        return self._block(extent, self.column, self.dynamic)

    def shared_columns(self, extent: Extent, multiplications: int, rows: Extent, programs: int, streamed: bool) -> int:
        """Block along the columns of a product of so many multiplications and rows, with so many programs along other
        axes; of a product that reads its right operand along the columns, where `streamed`."""
        block = self.columns(extent)
        if not self.share or not isinstance(extent, int):
            return block
        least = STREAM if streamed else LEAST_COLUMNS
        each = self.share * min(BOUND_ROWS, rows if isinstance(rows, int) else BOUND_ROWS)
        wanted = min(MOST_SHARES, multiplications // each) // max(1, programs)
        return block if wanted <= extent // block else min(block, even_block(extent, max(least, extent // wanted)))

    def rows(self, extent: Extent, multiplications: int = 0) -> int:
        """Block along the other axis of a result, of a product of so many multiplications a row."""
        if not self.share or multiplications < MUCH_OF_A_ROW:
            return self._block(extent, self.row, self.dynamic_row)
        part = extent // LEAST_PROGRAMS if isinstance(extent, int) else 0
        return self._block(extent, max(self.row, min(part, MANY_ROWS)), MANY_ROWS)

    def block_of_rows(self, extent: Extent) -> int:
        """The rows of a block of a kernel that is computed by rows."""
        return min(extent, self.row_block) if isinstance(extent, int) else self.row_block

    def programs_of_rows(self, extent: Extent) -> int:
        """How many programs share the rows of such a kernel: each has some blocks, for which it lays out weights."""
        if not isinstance(extent, int):
            return self.row_programs
        return max(1, min(self.row_programs, extent // (LEAST_BLOCKS * self.block_of_rows(extent))))

    def whole_rows(self, extent: Extent, rows: Extent | None) -> tuple[int, int] | None:
        """Blocks along a row of so many elements that is reduced and read again, all of it, and along the `rows`; None
        where rows are read block by block: if they are long or open, and by programs of many threads."""
        if self.filling or not isinstance(extent, int) or not 1 < extent <= LONGEST_ROW:
            return None
        return extent, 1 if rows is None else self.held_rows(extent, rows)

    def held_rows(self, extent: int, rows: Extent) -> int:
        """Block along rows of so many elements that are read several times: parts of one size, if these are no less
        than half of what may be held."""
        most = max(1, min(self.row, HELD_ROWS // extent))
        if not isinstance(rows, int):
            return min(self.dynamic_row, most)
        return next((block for block in range(min(most, rows), most // 2, -1) if rows % block == 0), min(most, rows))

    def queries(self, extent: Extent, element: Attribute, others: int = 1) -> int:
        """Block of queries, of each of which there are so many `others` with the same keys; of 16 bits no fewer than a
        tensor core takes, which are padding then. Products of f32, whose operands lie in registers, have fewer."""
        narrow = self._has_tensor_cores(element)
        many = not isinstance(extent, int) or extent > self.row
        held = self.held_queries if narrow else self.held_queries // 2
        most = max(self.row, held // self.fitted(others)) if many else self.row
        return max(SMALLEST_DOT if narrow else 1, self._block(extent, most, most))

    def shares_keys(self, others: int, element: Attribute) -> bool:
        """Whether a program of many queries holds so many others beside each."""
        return self.powers_of_two and bit_width(element) == 16 and others * SMALLEST_DOT <= self.held_queries

    def side(self, block: int, element: Attribute, contracted: Extent) -> int:
        """The block along a side of a product of 16-bit numbers: a few rows or columns are padded to what a tensor core
        takes, since it then does in one what else is a multiplication and a conversion for each of them (from 2 on,
        and where it has 16 or more to contract); one is a vector, and stays one."""
        long = not isinstance(contracted, int) or contracted >= SMALLEST_DOT
        few = 1 < block < SMALLEST_DOT
        return SMALLEST_DOT if few and long and self._has_tensor_cores(element) else block

    def _has_tensor_cores(self, element: Attribute) -> bool:
        return self.powers_of_two and is_float(element) and bit_width(element) == 16

    def keys(self, block: int, shape: tuple[int, int], element: Attribute, *, more: bool = False) -> int:
        """The block along what a sum weighted by a softmax sums, where others have `block`, for so many rows and
        columns: on a GPU two of them, and what is read ahead, lie in shared memory; on a CPU the scores of many rows in
        the innermost cache, and where there may be `more` keys than the block has it is longer for few rows."""
        rows, columns = shape
        if not self.powers_of_two:
            return min(block, HELD_KEYS) if rows >= VECTOR else max(block, OPEN_KEYS) if more else block
        while block > SMALLEST_DOT and block * columns * bit_width(element) > self.held_keys:
            block //= 2
        return block

    def reductions(self, extent: Extent, others: int = 0) -> int:
        """Block along a reduced axis; longer where what is reduced is read for `others` elements of the result at once
        (0: for many), and these leave threads idle."""
        most = max(self.reduced, self.filling // others) if others else self.reduced
        return self._block(extent, most, max(self.dynamic, most) if self.filling else self.dynamic)

    def contracted(
        self, extent: Extent, sides: tuple[int, int], operand: Attribute, element: Attribute, *, whole: bool = False
    ) -> int:
        """Block along a contracted axis of a dot of `operand`s whose result has `sides` and is summed in `element`; all
        of it where `whole` asks for that, and it is no longer than columns of attention are.

        GPUs have no dots of integers wider than 8 bits: those hold all products at once, in registers.
        """
        if not self.powers_of_two:
            return self._block(extent, max(self.reduced, HELD // sides[0]), self.dynamic)
        block = self.reductions(extent)
        if is_float(element):
            if whole and isinstance(extent, int) and extent <= WIDEST_HEAD:
                block = self.fitted(extent)
            padded = self._has_tensor_cores(operand) and min(sides) >= SMALLEST_DOT
            return max(block, SMALLEST_DOT) if padded else block
        while block > 1 and block * sides[0] * sides[1] * max(1, bit_width(element) // 32) > LARGEST_PRODUCT:
            block //= 2
        return block

    def key_shares(self, keys: int | None, programs: int) -> int:
        """Into how many shares a softmax's elements are cut, where there are so many programs without; None: of keys
        there are as many as a call has."""
        wanted = WAVES * self.multiprocessors // max(1, programs)
        most = MOST_SHARES if keys is None else min(MOST_SHARES, keys // (LEAST_KEYS * self.reduced))
        return 1 << max(0, min(wanted, most).bit_length() - 1)

    def _block(self, extent: Extent, most: int, dynamic: int) -> int:
        if not isinstance(extent, int):
            return dynamic
        if self.powers_of_two:
            return 1 << (max(1, min(extent, most)) - 1).bit_length()
        return even_block(extent, most)


def even_block(extent: int, most: int) -> int:
    """The greatest block of at most `most` that cuts an extent into equal parts of whole vectors; where it has no such
    parts, the extent itself if it is no more than twice as much, else parts of halves of vectors.

    A last block that is shorter needs masks, hence a second copy of the code, and runs at 60 % of the speed (measured
    on matrix products of 704 in blocks of 512).
    """
    if extent <= most:
        return max(1, extent)
    parts = range(-(-extent // most), 4 * extent // most + 1)
    for whole in (VECTOR, VECTOR // 2):
        if found := next((extent // n for n in parts if extent % n == 0 and extent // n % whole == 0), None):
            return found
        if extent <= 2 * most:
            return extent
    return most


CPU = Blocks(
    column=512,
    row=32,
    reduced=1024,
    dynamic_row=16,
    dynamic=64,
    share=1 << 16,
    row_block=64,
    row_programs=8,
    held_queries=128,
)
GPU = Blocks(
    column=64,
    row=16,
    reduced=64,
    dynamic_row=16,
    dynamic=64,
    powers_of_two=True,
    filling=1024,
    held_queries=64,
    held_keys=64 * 128 * 16,
)
TARGETS = {
    "cpu": CPU,
    "sm_80": replace(GPU, multiprocessors=108),
    "sm_90": replace(GPU, multiprocessors=132),
    "gfx942": replace(GPU, multiprocessors=304, held_queries=16, held_keys=32 * 128 * 16),
    "triton-interpret": replace(GPU, multiprocessors=8),
}
"""The blocks of each target; the interpreter runs programs one by one: it has enough to show that shares are right."""
