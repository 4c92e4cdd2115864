"""Philox4x32-10 on registers (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.shape import PhiloxOp
from tempo_ir.lowering.llvm.evaluate import Evaluator, Point
from tempo_ir.lowering.llvm.shuffle import shuffle
from tempo_ir.lowering.llvm.text import Register, vector_type

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def philox_words(key: Sequence[Register], counter: Sequence[Register]) -> tuple[Register, ...]:
    """Four words of random bits, from two words of key and four of counter. What is the same for all lanes, as a point
    of the domain is, meets what differs two rounds later."""
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(ROUNDS):
        (low0, high0), (low1, high1) = _product(c0, MULTIPLIERS[0]), _product(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return c0, c1, c2, c3


def _product(word: Register, multiplier: int) -> tuple[Register, Register]:
    """
    The low and the high word of a product. Words of a vector are multiplied where they lie, two in 64 bits, those at
    even and those at odd positions: no vector is widened (a third of the instructions).
    """
    text, lanes = word.text, word.lanes
    if not lanes:
        product = text.convert("zext", word, "i64") * multiplier
        return text.convert("trunc", product, "i32"), text.convert("trunc", product >> 32, "i32")
    pairs = text.new(f"bitcast {word.typed} to {vector_type('i64', lanes // 2)}", "i64", lanes // 2)
    products = [(pairs & 0xFFFFFFFF) * multiplier, (pairs >> 32) * multiplier]
    even, odd = (text.new(f"bitcast {x.typed} to {word.type}", "i32", lanes) for x in products)
    low = [lane for first in range(0, lanes, 2) for lane in (first, first + lanes)]
    return shuffle(even, odd, low), shuffle(even, odd, [lane + 1 for lane in low])


def philox(evaluator: Evaluator, value: SSAValue, points: Sequence[Point]) -> list[Register]:
    """`tile.philox`: computes all four words at a point and remembers the other three."""
    op = value.owner
    assert isinstance(op, PhiloxOp)
    operands = [evaluator.operand(operand, points) for operand in op.operands]
    registers: list[Register] = []
    for point, *words in zip(points, *operands, strict=True):
        results = philox_words(words[:2], words[2:])
        for result, register in zip(op.results, results, strict=True):
            evaluator.remember(result, point, register)
            if result is value:
                registers.append(register)
    return registers
