"""What the scheduler sees of a program: statements with their domains, and which statement reads which, where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, Cond, Index


@dataclass(frozen=True, slots=True)
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
    """Which points of a producer a point of a consumer reads: those at `index`, where `guard` holds."""

    consumer: Domain
    producer: Domain
    index: Index
    guard: Cond = TRUE


@dataclass(frozen=True, slots=True)
class Dependence:
    """A consumer that must run after the points of a producer that it reads."""

    consumer: int
    producer: int
    relation: Relation


@dataclass(frozen=True)
class Graph:
    """The statements of a program in program order, numbered from 0, and the dependences between them."""

    space: Space
    statements: Sequence[Statement]
    dependences: Sequence[Dependence]
