"""What the lowering knows of a machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """
    A CPU as LLVM names it, the number of f32 lanes of its vectors (16, 8 or 4; used for every element type, LLVM splits
    what is wider) and of its vector registers. `triple` is that of another machine than this process runs on, to make
    code that is only looked at or taken elsewhere.
    """

    cpu: str
    features: str
    lanes: int
    registers: int
    triple: str = ""

    @property
    def enabled(self) -> frozenset[str]:
        """The features that code may use."""
        return frozenset(part[1:] for part in self.features.split(",") if part.startswith("+"))

    @property
    def foresees_rows(self) -> bool:
        """Does the processor ask memory for the rows of a matrix that come next by itself? AMD's do (`sse4a` is
        theirs), Intel's stop at the end of a page. Of what is only printed it is taken to."""
        return "sse4a" in self.enabled or "avx2" not in self.enabled


AVX512 = Target("x86-64-v4", "-prefer-256-bit", 16, 32)
"""For printed text: what it says does not depend on the machine that prints it."""

AVX2 = Target("x86-64-v3", "", 8, 16)
SSE = Target("x86-64-v2", "", 4, 16)

NEON = Target("generic", "+fp-armv8,+neon", 4, 32, "aarch64-unknown-linux-gnu")
"""Any 64-bit processor of Arm, with Linux."""

OPTIMISED, PLAIN = 1, 0
"""Levels of code generation: for kernels, and for what is much text that runs once in a while. At 2 LLVM takes a sixth
longer, for code that is no faster (measured: kernels, recurrent networks, rl, a decoder)."""
