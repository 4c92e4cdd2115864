"""sdg-absorb-casts: a contraction reads the narrow value, and widens it as it reads.

Before:

    %w = sdg.parameter "w" : tensor<8x4xbf16>
    %w32 = sdg.cast %w : (tensor<8x4xbf16>) -> tensor<8x4xf32>
    %y = sdg.contract "k,nk->n" %x[t], %w32 in (t) : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8xf32>

After:

    %w = sdg.parameter "w" : tensor<8x4xbf16>
    %y = sdg.contract "k,nk->n" %x[t], %w in (t) : (tensor<4xf32>, tensor<8x4xbf16>) -> tensor<8xf32>

Weights and caches of bf16, f16 or i8 are then read as such, in half or a quarter of the bytes, where the cast would be
done once, before the loop, and be read in f32. The products are those of before, bit by bit.

It does not apply where the cast may change a value (f32 to bf16, i32 to f32); where something else than a contraction
reads the cast too, so that it is made anyway; and where no other operand has the type that it was cast to (of two casts
the greater one goes).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Use
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import Access, CastOp, ContractOp
from tempo_ir.dialects.types import element, holds, is_bool, shape_of
from tempo_ir.index import compose
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import erase, programs

MANY = 1 << 20
"""What an extent that only a call knows counts, where casts are compared."""


@dataclass(frozen=True)
class SdgAbsorbCastsPass(ModulePass):
    """Let contractions read what is cast for them alone."""

    name = "sdg-absorb-casts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            casts = [inner for inner in program.body.block.ops if isinstance(inner, CastOp)]
            for cast in sorted(casts, key=size, reverse=True):
                if absorb(cast):
                    count(self, "absorbed")


def size(cast: CastOp) -> int:
    """The elements of a cast at one point."""
    return prod(extent if isinstance(extent, int) else MANY for extent in shape_of(cast.result.type))


def absorb(cast: CastOp) -> bool:
    """Let the contractions that read a cast read what is cast, if all readers are some that may; whether they do."""
    source = cast.accesses[0]
    narrow, wide = element(source.type), element(cast.result.type)
    if narrow == wide or is_bool(narrow) or not holds(wide, narrow):
        return False
    uses = list(cast.result.uses)
    readers = dict.fromkeys(use.operation for use in uses)
    if not readers or not all(isinstance(reader, ContractOp) and stays_wide(reader, cast) for reader in readers):
        return False
    found = [(use, compose(source.index, cast.domain.dims, access_of(use).index)) for use in uses]
    if any(index is None for _, index in found):
        return False
    for use, index in found:
        assert isinstance(use.operation, ContractOp)
        assert index is not None
        use.operation.with_access(use.index, source.value, index)
    erase([cast])
    return True


def stays_wide(reader: ContractOp, cast: CastOp) -> bool:
    """Whether another operand has the type that the cast gives, which is that of the result."""
    others = (access for access in reader.accesses if access.value is not cast.result)
    return any(element(access.type) == element(reader.result.type) for access in others)


def access_of(use: Use) -> Access:
    """The read that a use by a contraction is."""
    assert isinstance(use.operation, ContractOp)
    return use.operation.accesses[use.index]
