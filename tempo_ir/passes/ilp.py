# pyright: basic
"""Integer linear programs, by the HiGHS of scipy, which the extra `ilp` installs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import PassFailedException


def least_cost(costs: Sequence[int], sizes: Sequence[int], needed: int) -> list[bool]:
    """
    Which things to take so that their sizes are `needed` in all, at the least cost; all of them have to be enough.

    Raises PassFailedException where scipy is not installed, or finds nothing.
    """
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError as error:
        raise PassFailedException(
            "solver=ilp needs scipy, which has HiGHS: install tempo_ir[ilp], or leave solver=greedy"
        ) from error
    enough = LinearConstraint([list(map(float, sizes))], lb=float(needed))
    solved = milp(list(map(float, costs)), constraints=enough, integrality=[1] * len(costs), bounds=Bounds(0, 1))
    if solved.x is None:
        raise PassFailedException(f"solver=ilp: {solved.message}; leave solver=greedy")
    return [share > 0.5 for share in solved.x]
