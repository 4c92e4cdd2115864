"""Questions that take isl too much work are given up, the same ones on every machine, and isl goes on after them."""

from __future__ import annotations

import pytest

from tempo_ir.index.isl import Inexact, IslError, coalesced, read_map, read_set
from tempo_ir.index.limits import TooLarge, limited

CUBE = "[N] -> { [i, j, t] : 0 <= i, j, t and i < N and j < N and t < N }"
HALVES = "{ [i, j, t] -> [floor((i + t)/3), floor((i + j)/2), floor((j + t)/2)] }"


def hard() -> bool:
    """Whether a set is its image under quotients of all pairs of dims, twice."""
    points = read_set(CUBE.replace("i, j, t and", "i and 0 <= j and 0 <= t and"))
    image = points.apply(read_map(HALVES)).apply(read_map(HALVES))
    return image.is_equal(points)


def test_what_is_too_much_work_is_given_up() -> None:
    with pytest.raises(TooLarge), limited(1000):
        hard()
    assert issubclass(TooLarge, Inexact)


def test_isl_goes_on_afterwards() -> None:
    for _ in range(2):
        with pytest.raises(TooLarge), limited(1000):
            hard()
        with limited(1000):
            assert read_set("{ [t] : 0 <= t < 1 }").intersect(read_set("{ [t] : t = 1 }")).is_empty()


def test_a_text_that_cannot_be_read_for_want_of_operations_is_too_much_work() -> None:
    with pytest.raises(TooLarge), limited(1):
        read_set("[N] -> { [i] : exists (k : i = 2k and 0 <= k and k < N) and (i mod 7 = 3 or i mod 5 = 2) }")


def number_without_text() -> None:
    """Read a number of which isl, its operations spent, gives None for a text."""
    try:
        hard()
    except IslError:
        int(None)  # pyright: ignore[reportArgumentType]


def test_a_number_that_has_no_text_for_want_of_operations_is_too_much_work() -> None:
    with pytest.raises(TooLarge), limited(1000):
        number_without_text()


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(IslError), limited():
        read_set("{ [t] : 0 <= ")
    with pytest.raises(TypeError), limited():
        int(None)  # pyright: ignore[reportArgumentType]


def test_the_outer_limit_counts() -> None:
    with pytest.raises(TooLarge), limited(1000), limited(10**9):
        hard()


def test_joining_pieces_does_not_hide_that_no_operations_are_left() -> None:
    points = read_set("{ [a, b] : (0 <= a < 5 and 0 <= b < a) or (5 <= a < 9 and 0 <= b < a) or (a = 9 and b = 3) }")
    with pytest.raises(TooLarge), limited(1):
        coalesced(points)
