"""Names that nothing else has."""

from __future__ import annotations

import itertools
from collections.abc import Container


def fresh_name(wanted: str, taken: Container[str], joint: str = "_") -> str:
    """The name, or where it is taken the first of `name_2`, `name_3`, ... that is not."""
    numbered = (f"{wanted}{joint}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([wanted], numbered) if name not in taken)
