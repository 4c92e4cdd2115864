"""A loop nest without its ops: what isl's code generator finds for an order, in our own index expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tempo_ir.index.expr import Cond, Expr


@dataclass(frozen=True, slots=True)
class Call:
    """The statements of a group, one after another, at the point of their common domain that `point` gives."""

    group: int
    point: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class For:
    """`for iterator in range(lower, upper, step)`, or the same downwards from `upper - 1`; where data ends it, it
    `gives` a bound."""

    iterator: str
    lower: Expr
    upper: Expr
    step: int
    down: bool
    body: Sequence[NestNode]
    gives: str | None = None


@dataclass(frozen=True, slots=True)
class If:
    """A guard with its two parts."""

    condition: Cond
    then: Sequence[NestNode]
    otherwise: Sequence[NestNode] = ()


NestNode: TypeAlias = Call | For | If


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest and the groups of statements that its calls run."""

    nodes: Sequence[NestNode]
    groups: Sequence[Sequence[int]]
