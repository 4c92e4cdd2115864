"""Leaving out what does nothing: a pass that rewrites until nothing more applies has nothing to do on the graph that it
left itself."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

SETTLING = frozenset({"sdg-simplify"})
"""The passes that rewrite until nothing more applies."""

State: TypeAlias = tuple[Operation, tuple[SSAValue, ...], tuple[Attribute, ...], tuple[Attribute, ...]]


def state_of(module: ModuleOp) -> list[State]:
    """Every op of a module, with what it reads and says: equal for a module in which nothing was changed."""
    return [
        (op, tuple(op.operands), tuple(op.properties.values()), tuple(result.type for result in op.results))
        for op in module.walk()
    ]


class Settled:
    """How passes left a module that is rewritten in place."""

    def __init__(self, module: ModuleOp):
        self._module = module
        self._left: dict[str, list[State]] = {}

    def note(self, name: str) -> None:
        """A pass has just run."""
        if name in SETTLING:
            self._left[name] = state_of(self._module)

    def has_nothing_for(self, name: str) -> bool:
        """Whether the module is as the pass left it, to which it could do nothing more."""
        return name in self._left and self._left[name] == state_of(self._module)
