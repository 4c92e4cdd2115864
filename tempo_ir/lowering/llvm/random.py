"""Philox4x32-10 on registers (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile.shape import PhiloxOp
from tempo_ir.lowering.llvm.evaluate import Evaluator, Point
from tempo_ir.lowering.llvm.text import Register

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def philox_words(key: Sequence[Register], counter: Sequence[Register]) -> tuple[Register, ...]:
    """Four words of random bits, from two words of key and four of counter."""
    text = key[0].text
    k0, k1, c0, c1, c2, c3 = text.unify(*key, *counter)
    for _ in range(ROUNDS):
        p0 = text.convert("zext", c0, "i64") * MULTIPLIERS[0]
        p1 = text.convert("zext", c2, "i64") * MULTIPLIERS[1]
        high0, high1 = (text.convert("trunc", p >> 32, "i32") for p in (p0, p1))
        low0, low1 = (text.convert("trunc", p, "i32") for p in (p0, p1))
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return c0, c1, c2, c3


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
