"""Sizes of blocks on the CPU."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32

from tempo_ir.lowering.kernels.blocks import CPU, even_block


@pytest.mark.parametrize(
    ("extent", "most", "block"),
    [
        (500, 512, 500),
        (704, 512, 352),
        (1000, 250, 200),  # of no whole vectors, but of halves
        (1000, 512, 1000),
        (1021, 512, 1021),  # a prime that is less than twice as much
        (1031, 512, 512),
    ],
)
def test_blocks_are_equal_where_they_can(extent: int, most: int, block: int):
    assert even_block(extent, most) == block


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "programs"),
    [
        (1, 256, 256, 1),  # what one thread has read before another has come
        (1, 704, 256, 2),
        (1, 256, 704, 2),
        (16, 704, 256, 11),
        (16, 256, 704, 4),  # no fewer columns than 64
    ],
)
def test_products_of_few_rows_are_cut_for_threads(rows: int, columns: int, depth: int, programs: int):
    block = CPU.shared_columns(columns, rows * columns * depth, rows, 1, streamed=False)
    assert -(-columns // block) == programs


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "block"),
    [
        (64, 256, 64, 32),
        (256, 256, 256, 32),  # eight programs, for threads
        (384, 384, 384, 48),
        (512, 512, 512, 64),
        (4096, 512, 512, 64),
        (4096, 32, 32, 32),  # a row is little work
    ],
)
def test_products_of_many_rows_read_the_right_operand_less_often(rows: int, columns: int, depth: int, block: int):
    assert CPU.rows(rows, columns * depth) == block


def test_few_rows_read_what_they_contract_whole():
    assert CPU.contracted(2048, (1, 64), f32, f32) == 2048
    assert CPU.contracted(2048, (4, 64), f32, f32) == 2048
    assert CPU.contracted(2048, (32, 64), f32, f32) == 1024
