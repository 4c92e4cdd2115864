# pyright: basic
"""How far apart a consumer and the points that it reads are along a dim: exact bounds, for all sizes, from isl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias

from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import conj
from tempo_ir.index.isl import (
    DIM,
    Map,
    Set,
    access_map,
    domain_set,
    encode,
    read_map,
)
from tempo_ir.lowering.schedule.graph import Relation
from tempo_ir.lowering.schedule.order import Direction

Fixed: TypeAlias = tuple[tuple[str, int], ...]
"""Distances along outer dims that are known to have a value."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The least and greatest value of consumer minus producer along a dim; None where it depends on the bounds."""

    lower: int | None
    upper: int | None

    def least(self, direction: Direction) -> int | None:
        """The least number of iterations from producer to consumer of a loop in that direction."""
        if direction == 1:
            return self.lower
        return None if self.upper is None else -self.upper

    def exceeds(self, gap: int, direction: Direction) -> bool:
        """Whether the consumer is always more than `gap` iterations after the producer."""
        least = self.least(direction)
        return least is not None and least > gap


@cache
def _exactly(distance: int) -> Distance:
    return Distance(distance, distance)


class Distances:
    """The distances of a program's dependences, each asked once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._found: dict[tuple[Relation, str, Fixed], Distance | None] = {}
        self._deltas: dict[Relation, tuple[Sequence[str], Set]] = {}

    def of(self, relation: Relation, dim: str, fixed: Fixed = ()) -> Distance | None:
        """
        The distance along a dim that consumer and producer share, where the `fixed` ones hold; None where nothing is
        read.

        A constant distance is read off the index, whether or not anything is read.
        """
        constant = relation.constants.get(dim)
        if constant is not None:
            return _exactly(constant)
        key = (relation, dim, fixed)
        if key not in self._found:
            self._found[key] = self._measure(relation, dim, fixed)
        return self._found[key]

    def _measure(self, relation: Relation, dim: str, fixed: Fixed) -> Distance | None:
        if relation not in self._deltas:
            self._deltas[relation] = _deltas(self._space, relation)
        dims, deltas = self._deltas[relation]
        for name, value in fixed:
            deltas = deltas.fix_val(DIM.set, dims.index(name), value)
        if deltas.is_empty():
            return None
        position = dims.index(dim)
        lower, upper = deltas.dim_min_val(position), deltas.dim_max_val(position)
        return Distance(lower.to_python() if lower.is_int() else None, upper.to_python() if upper.is_int() else None)


@lru_cache(maxsize=4096)
def happens(space: Space, relation: Relation) -> bool:
    """Whether anything is read at all, for any bounds."""
    return not relation_map(space, relation).is_empty()


def relation_map(space: Space, relation: Relation, consumer_name: str = "", producer_name: str = "") -> Map:
    """From each point of the consumer to the points of the producer that it reads."""
    consumer = relation.consumer
    guarded = Domain(consumer.dims, consumer.ranges, conj(consumer.where, relation.guard))
    reads = access_map(space, guarded, relation.index, relation.producer, consumer_name, producer_name)
    return reads.intersect_range(domain_set(space, relation.producer, producer_name))


def _deltas(space: Space, relation: Relation) -> tuple[Sequence[str], Set]:
    """The set of distance vectors along the dims that both have, over all sizes."""
    consumer, producer = relation.consumer, relation.producer
    reads = relation_map(space, relation)
    common = [dim for dim in consumer.dims if dim in producer.dims]
    onto_common = (_projection(dims, common) for dims in (consumer.dims, producer.dims))
    aligned = reads.apply_domain(next(onto_common)).apply_range(next(onto_common))
    return common, aligned.reverse().deltas().project_out_all_params()


def _projection(dims: Sequence[str], common: Sequence[str]) -> Map:
    names = {dim: encode(dim) for dim in dims}
    return read_map(f"{{ [{', '.join(names.values())}] -> [{', '.join(names[dim] for dim in common)}] }}")
