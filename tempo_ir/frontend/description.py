"""What a program takes and gives, for callers and tools: inputs, outputs, states, bounds and host objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tempo_ir.frontend.errors import Place

if TYPE_CHECKING:
    from tempo_ir.frontend.dtypes import Spec

Array: TypeAlias = npt.NDArray[Any]
Initialiser: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], Array]


@dataclass(frozen=True, slots=True)
class InputInfo:
    """An array of the caller: its leading axes are the dims `over`, then come those of `spec`."""

    name: str
    spec: Spec
    over: tuple[str, ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class OutputInfo:
    """An array for the caller: its leading axes are the dims `over`, then come those of `spec`."""

    name: str
    spec: Spec
    over: tuple[str, ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class StateInfo:
    """An array that the caller owns. `steps` are the dims that carry it; a parameter has none and never changes."""

    name: str
    spec: Spec
    initialiser: Initialiser
    steps: tuple[str, ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class HostInfo:
    """A Python object made anew for every call of the program; its methods are ops."""

    name: str
    make: Callable[[], object]
    place: Place | None
