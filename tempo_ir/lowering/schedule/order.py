"""The order that scheduling finds, as a tree: sequences of leaves and of loops over named dims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Direction: TypeAlias = Literal[1, -1]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One statement, all of whose dims are fixed by the loops round it."""

    statement: int


@dataclass(frozen=True, slots=True)
class Loop:
    """
    A loop of several statements over a dim.

    Point `d` of statement `s` runs in iteration `d + shifts[s]` upwards, `-d + shifts[s]` downwards.
    """

    dim: str
    direction: Direction
    shifts: Mapping[int, int]
    body: Sequence[Node]


Node: TypeAlias = Leaf | Loop


def statements(nodes: Sequence[Node]) -> Iterator[int]:
    """The statements of the nodes, in order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node.statement
        else:
            yield from statements(node.body)


def order_text(nodes: Sequence[Node], names: Sequence[str], indent: str = "") -> str:
    """The tree for people: one line per leaf and loop, shifts that are not zero after the statement's name."""

    def lines(nodes: Sequence[Node], indent: str, shifts: Mapping[int, str]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, Leaf):
                yield f"{indent}{names[node.statement]}{shifts.get(node.statement, '')}"
                continue
            yield f"{indent}for {node.dim} {'up' if node.direction == 1 else 'down'}"
            inner = {s: shifts.get(s, "") + (f" {node.dim}{k:+d}" if k else "") for s, k in node.shifts.items()}
            yield from lines(node.body, indent + "  ", inner)

    return "\n".join(lines(nodes, indent, {}))
