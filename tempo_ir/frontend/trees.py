"""Trees of tensors: modules, records, lists, tuples and dicts. One walk names the leaves, one maps them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.tensor import Tensor


class Node:
    """Base of objects whose attributes hold tensors, or further nodes."""


class Record(Node):
    """Named values: `r = tp.record(obs=obs, action=action)`, then `r.obs`; `r.map(f)` applies `f` to every tensor."""

    def __init__(self, **values: Any):
        self.__dict__.update(values)

    def map(self, function: Callable[[Tensor], Tensor]) -> Record:
        """The record of `function` of every tensor."""
        return tree_map(function, self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ProgramError(f"the record has no '{name}', it has {', '.join(self.__dict__)}")

    def __repr__(self) -> str:
        return f"record({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def record(**values: Any) -> Record:
    """Values under names, handled as one: `tp.stop_gradient`, `.map`, `tp.output` and `tp.grad` go through all of
    them."""
    return Record(**values)


def children(tree: Any) -> Iterator[tuple[str, Any]]:
    """The named parts of a node, a list, a tuple or a dict; nothing for anything else."""
    if isinstance(tree, Node):
        yield from vars(tree).items()
    elif isinstance(tree, Mapping):
        mapping = cast(Mapping[object, object], tree)
        yield from ((str(name), part) for name, part in mapping.items())
    elif isinstance(tree, list | tuple):
        sequence = cast(Sequence[object], tree)
        yield from ((str(position), part) for position, part in enumerate(sequence))


def leaves(tree: Any) -> list[tuple[str, Tensor]]:
    """The tensors of a tree with their paths, `layers.0.weight`; a tensor alone has the path ''."""
    if isinstance(tree, Tensor):
        return [("", tree)]
    found: list[tuple[str, Tensor]] = []
    for name, part in children(tree):
        found.extend((f"{name}.{path}" if path else name, leaf) for path, leaf in leaves(part))
    return found


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of the same form with `function` of every tensor; parts that hold no tensor are kept as they are."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, Node):
        mapped = copy.copy(tree)
        mapped.__dict__.update({name: tree_map(function, part) for name, part in vars(tree).items()})
        return mapped
    if isinstance(tree, Mapping):
        mapping = cast(Mapping[object, object], tree)
        return {name: tree_map(function, part) for name, part in mapping.items()}
    if isinstance(tree, list | tuple):
        parts = [tree_map(function, part) for part in cast(Sequence[object], tree)]
        return parts if isinstance(tree, list) else tuple(parts)
    return tree
