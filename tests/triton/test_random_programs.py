"""Random tile programs of the CPU's tests, in tiles of powers of two, in Triton's interpreter against the reference."""

from __future__ import annotations

import pytest

from tempo_ir.lowering.triton.compiling import compile_kernels
from tempo_ir.lowering.triton.printer import print_kernel
from tempo_ir.lowering.triton.style import Style
from tests.llvm.test_random_programs import Program
from tests.triton.support import assert_same

POWERS = (1, 2, 4, 8, 16)


class PowerOfTwoProgram(Program):
    """A random program whose extents are powers of two."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.extents = self.random.sample(POWERS, 3)


def run(seed: int) -> None:
    program = PowerOfTwoProgram(seed)
    kernel = program.build()
    grid = (program.random.randint(1, 2),) if program.dynamic else tuple(kernel.grid.data)
    assert_same(kernel, program.arguments(), grid, tolerance=1e-4)


@pytest.mark.parametrize("seed", range(16))
def test_random_program(seed):
    run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1150))
def test_more_random_programs(seed):
    run(seed)


@pytest.mark.slow
def test_random_programs_compile():
    """Types that loops carry, and shapes, are checked by Triton's compiler alone."""
    sources = [print_kernel(PowerOfTwoProgram(seed).build(), Style(checked=True)) for seed in range(2000, 2060)]
    assert len(compile_kernels(sources, "sm_80")) == 60
