"""What the scheduler sees of a program: statements with their domains, and which statement reads which, where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, Cond, Const, Index, Slice, Sym, evaluate

NOMINAL_BOUND = 128
"""What the cost model takes every bound to be."""


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Statement:
    """
    Work that runs once per point of its domain.

    `weight` is the bytes of one point's value, for the cost model. `pinned`: its place among its producers matters (a
    host call), so it is not moved towards its consumers. `name` is for messages.
    """

    number: int
    name: str
    domain: Domain
    weight: int = 1
    pinned: bool = False

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims of the domain, in order."""
        return self.domain.dims


@dataclass(frozen=True, slots=True)
class Relation:
    """
    Which points of a producer a point of a consumer reads: those at `index`, where `guard` holds.

    `constants` holds the distance (consumer minus producer) along each dim of the producer where the index says a
    constant one: 1 for `x[t - 1]`.
    """

    consumer: Domain
    producer: Domain
    index: Index
    guard: Cond = TRUE
    constants: Mapping[str, int] = field(init=False, compare=False)
    hashed: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        constants: dict[str, int] = {}
        for dim, entry in zip(self.producer.dims, self.index, strict=True):
            distance = None if isinstance(entry, Slice) else Sym(dim) - entry
            if isinstance(distance, Const):
                constants[dim] = distance.value
        object.__setattr__(self, "constants", constants)
        # relations are keys of many tables, and long to hash
        object.__setattr__(self, "hashed", hash((self.consumer, self.producer, self.index, self.guard)))

    def __hash__(self) -> int:
        return self.hashed


@dataclass(slots=True, unsafe_hash=True)  # never changed; `frozen` would make it four times as slow to make
class Dependence:
    """A consumer that must run after the points of a producer that it reads."""

    consumer: int
    producer: int
    relation: Relation


@dataclass(frozen=True, slots=True)
class Ending:
    """
    The loop over a dim that data ends, and gives its bound.

    `before` holds the statements that run before it, `shifts` for each in it the iteration of its point 0, or, of those
    that are `still`, of all its points. All others need the bound, or may as well wait for it. Two statements without
    work, the `marks`, begin and end each iteration.
    """

    dim: str
    bound: str
    before: frozenset[int]
    shifts: Mapping[int, int]
    still: frozenset[int]
    marks: tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """The statements of a program in program order, numbered from 0, and the dependences between them."""

    space: Space
    statements: Sequence[Statement]
    dependences: Sequence[Dependence]
    ending: Ending | None = None

    @cached_property
    def nominal_sizes(self) -> Mapping[str, int]:
        """How many points each dim is taken to have."""
        bounds = dict.fromkeys(self.space.params, NOMINAL_BOUND)
        return {dim: max(1, evaluate(bound, bounds)) for dim, bound in self.space.dims}
