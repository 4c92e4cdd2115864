"""Rows of integers that native code puts in order, and what it leaves to Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.lowering.llvm.order import function_name


@tp.program
def positions(element=tp.i64, descending=False):
    t, T = tp.dim("t")
    x = tp.input("x", element[3], over=t)
    keys = x[0:T].flatten(0, 1)
    tp.output("order", tp.argsort(keys, 0, descending=descending))


def expected(x: np.ndarray) -> np.ndarray:
    return np.argsort(x.reshape(-1), kind="stable")


RANGES = [(0, 2**32), (-3, 3), (-(2**31), 2**31), (2**62, 2**62 + 2**32), (-(2**62), 2**62), (7, 8)]
"""The last but one leaves no room in a word for positions: Python sorts it."""


@pytest.fixture(scope="module")
def executable() -> tp.Executable:
    return tp.compile(positions())


@pytest.mark.parametrize("least_and_end", RANGES)
@pytest.mark.parametrize("steps", [0, 1, 2, 341, 3000])
def test_positions(executable: tp.Executable, steps: int, least_and_end: tuple[int, int]):
    x = np.random.default_rng(steps).integers(*least_and_end, (steps, 3))
    np.testing.assert_array_equal(executable(x=x)["order"], expected(x))


def test_greatest_and_least_keys(executable: tp.Executable):
    x = np.array([[2**63 - 1, -(2**63), 0]])
    np.testing.assert_array_equal(executable(x=x)["order"], [1, 2, 0])
    x = np.array([[2**63 - 1, 2**63 - 2, 2**63 - 1], [2**63 - 2, 2**63 - 1, 2**63 - 3]])
    np.testing.assert_array_equal(executable(x=x)["order"], [5, 1, 3, 0, 2, 4])


def test_keys_of_32_bits():
    executable = tp.compile(positions(element=tp.i32))
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (500, 3)).astype(np.int32)
    np.testing.assert_array_equal(executable(x=x)["order"], expected(x))
    assert function_name("i32") in executable.ir("llvm")


@pytest.mark.parametrize(
    ("element", "dtype", "descending"),
    [(tp.f32, np.float32, False), (tp.i16, np.int16, False), (tp.i64, np.int64, True)],
)
def test_others_are_left_to_python(element: Any, dtype: type[np.generic], descending: bool):
    executable = tp.compile(positions(element=element, descending=descending))
    x = np.random.default_rng(0).integers(0, 9, (50, 3)).astype(dtype)
    np.testing.assert_array_equal(executable(x=x)["order"], expected(np.negative(x) if descending else x))
    assert "tempo_order" not in executable.ir("llvm")


def test_a_saved_program_sorts(executable: tp.Executable, tmp_path: Path):
    executable.save(tmp_path / "program")
    x = np.random.default_rng(0).integers(0, 2**32, (100, 3))
    np.testing.assert_array_equal(tp.load(tmp_path / "program")(x=x)["order"], expected(x))


def test_permutations_are_those_of_the_reference():
    @tp.program
    def shuffled():
        i, _ = tp.dim("i")
        tp.output("order", tp.random.permutation(1000, over=i))

    native, reference = tp.compile(shuffled()), tp.compile(shuffled(), target="reference")
    np.testing.assert_array_equal(native(I=3, seed=1)["order"], reference(I=3, seed=1)["order"])
