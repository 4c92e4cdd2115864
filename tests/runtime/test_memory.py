"""Memory of parameters and states."""

from __future__ import annotations

import numpy as np
import pytest

from tempo_ir.runtime.memory import ALIGNMENT, LARGE_PAGE, aligned_copies


@pytest.mark.parametrize("rows", [0, 3, 1 << 16])
def test_copies_lie_aligned_in_one_piece(rows: int):
    arrays = {
        "a": np.arange(rows * 20, dtype=np.float32).reshape(rows, 20)[:, ::2].T,
        "b": np.array(7, np.int64),
        "c": np.arange(5, dtype=np.int8),
    }
    copies = aligned_copies(arrays)
    for name, copy in copies.items():
        assert copy.flags.c_contiguous
        assert copy.flags.writeable
        assert copy.dtype == arrays[name].dtype
        assert copy.__array_interface__["data"][0] % ALIGNMENT == 0
        np.testing.assert_array_equal(copy, arrays[name])
    first = copies["a"].__array_interface__["data"][0]
    assert copies["c"].__array_interface__["data"][0] > first
    assert sum(copy.nbytes for copy in copies.values()) < 2 * LARGE_PAGE or first % LARGE_PAGE == 0


def test_nothing_is_copied_to_nowhere():
    assert aligned_copies({}) == {}
