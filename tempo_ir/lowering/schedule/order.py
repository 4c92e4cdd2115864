"""The order that scheduling finds, as a tree: sequences of leaves and of loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from tempo_ir.index.expr import Const, Expr, Sym

Direction: TypeAlias = Literal[1, -1]


@lru_cache(maxsize=1024)
def _shifted(dim: str, direction: Direction, shift: int) -> Expr:
    return Sym(dim) * direction + shift


@dataclass(frozen=True, slots=True)
class Leaf:
    """One statement, all of whose dims are fixed by the loops round it."""

    statement: int


@dataclass(frozen=True, slots=True)
class Loop:
    """
    A loop of several statements over a dim.

    Point `d` of statement `s` runs in iteration `d + shifts[s]` upwards, `-d + shifts[s]` downwards; all points of
    those that are `still` in iteration `shifts[s]`. Data may end the loop, which then `gives` its bound.
    """

    dim: str
    direction: Direction
    shifts: Mapping[int, int]
    body: Sequence[Node]
    still: frozenset[int] = frozenset()
    gives: str | None = None

    def iteration(self, statement: int) -> Expr:
        """When each point of a statement runs, over its dims."""
        if statement in self.still:
            return Const(self.shifts[statement])
        return _shifted(self.dim, self.direction, self.shifts[statement])


@dataclass(frozen=True, slots=True)
class Wave:
    """A loop in which each statement runs in the iteration that an expression over its dims gives: a skewed loop."""

    iterations: Mapping[int, Expr]
    body: Sequence[Node]

    def iteration(self, statement: int) -> Expr:
        """When each point of a statement runs, over its dims."""
        return self.iterations[statement]


Node: TypeAlias = Leaf | Loop | Wave


def statements(nodes: Sequence[Node]) -> Iterator[int]:
    """The statements of the nodes, in order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node.statement
        else:
            yield from statements(node.body)


def order_text(nodes: Sequence[Node], names: Sequence[str], indent: str = "") -> str:
    """The tree for people: a line per leaf and per loop, with the iteration of each statement where it is not plain."""
    lines: list[str] = []
    for node in nodes:
        if isinstance(node, Leaf):
            lines.append(f"{indent}{names[node.statement]}")
            continue
        plain = isinstance(node, Loop) and not any(node.shifts.values())
        moved = "" if plain else f" {', '.join(f'{names[s]}: {node.iteration(s)}' for s in statements(node.body))}"
        kind = f"for {node.dim} {'up' if node.direction == 1 else 'down'}" if isinstance(node, Loop) else "wave"
        lines += [f"{indent}{kind}{moved}", order_text(node.body, names, indent + "  ")]
    return "\n".join(lines)
