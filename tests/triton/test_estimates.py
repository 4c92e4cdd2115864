"""The cost model of kernels: what it says of choices of warps and stages, and which it offers."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tempo_ir as tp
from tempo_ir.lowering.triton.compiling import compile_kernels
from tempo_ir.lowering.triton.estimates import MOST_CANDIDATES, Choice, candidates, estimate
from tempo_ir.lowering.triton.machines import MACHINES, machine_of
from tempo_ir.lowering.triton.module import kernel_sources
from tempo_ir.lowering.triton.style import Style
from tempo_ir.lowering.triton.tuning import stages_of, warps_of
from tempo_ir.runtime.compiler import kernels, lower, module_of
from tests.triton import catalogue

SM_90 = machine_of("sm_90")


def kernels_of(program, machine: str = "sm_90"):
    return kernels(lower(module_of(program), machine_of(machine).blocks, without=("loop-persist",)).lowered)


def product(**settings):
    (kernel,) = kernels_of(catalogue.matmul(**settings))
    return kernel


def test_what_a_product_takes():
    kernel = product(m=64, n=64, k=128, dtype=tp.bf16)
    programs = kernel.grid.data[0]
    found = estimate(kernel, SM_90, Choice(4, 2), "ieee")
    assert found.operations * programs == pytest.approx(2 * 64 * 64 * 128, rel=0.1)
    assert found.bytes * programs == pytest.approx(2 * (64 * 128 + programs * 128 * 64 + 64 * 64), rel=0.1)
    assert found.shared == 2 * (64 // programs * 64 + 64 * 64)  # a block of 64 columns, of the next trip


def test_more_stages_take_more_memory_and_more_warps_fewer_registers():
    kernel = product(dtype=tp.bf16)
    two, four = (estimate(kernel, SM_90, Choice(4, stages), "ieee") for stages in (2, 4))
    assert four.shared == 3 * two.shared
    few, many = (estimate(kernel, SM_90, Choice(warps, 2), "ieee") for warps in (1, 8))
    assert few.registers > many.registers
    assert few.resident >= many.resident


def test_tensor_cores_are_faster():
    kernel, slow = product(m=256, n=256, k=4096), replace(SM_90, operations=1e12)  # memory is not what is waited for
    ieee, tf32 = (estimate(kernel, slow, Choice(4, 2), precision).seconds for precision in ("ieee", "tf32"))
    assert tf32 < ieee


def test_a_launch_of_more_programs_takes_longer():
    small, large = (estimate(product(m=m), SM_90, Choice(4, 2), "ieee").seconds for m in (64, 1 << 16))
    assert large > 10 * small


@pytest.mark.parametrize("machine", ["sm_80", "sm_86", "gfx942"])
def test_candidates_begin_with_what_is_printed_and_fit(machine):
    record, offered = MACHINES[machine], 0
    for program in (catalogue.fusions(), catalogue.attention(dtype=tp.bf16), catalogue.matmul(dtype=tp.f16)):
        for kernel in kernels_of(program, machine):
            printed, *others = candidates(kernel, record, "ieee")
            assert printed == Choice(warps_of(kernel, "ieee"), stages_of(kernel))
            assert len(others) < MOST_CANDIDATES
            assert len({printed, *others}) == 1 + len(others)
            offered += len(others)
            assert all(estimate(kernel, record, choice, "ieee").shared <= record.shared for choice in others)
    assert offered >= 20


def test_what_the_model_says_of_shared_memory_is_what_compiling_shows():
    module = lower(module_of(catalogue.matmul()), "sm_90", without=("loop-persist",)).lowered
    (kernel,) = kernels(module)
    source = kernel_sources(module, Style(machine=SM_90))[0]
    for warps, stages in source.choices:
        (found,) = compile_kernels([replace(source, warps=warps, stages=stages)], "sm_90")
        assert found.shared == estimate(kernel, SM_90, Choice(warps, stages), "ieee").shared
        assert found.spilled == 0
