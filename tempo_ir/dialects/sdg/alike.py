"""Ops that say the same of values of the same kind, as equal layers have: what is asked of one is asked of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from xdsl.ir import Operation
from xdsl.traits import Pure

from tempo_ir.dialects.operation import Numbering, maker_of
from tempo_ir.dialects.sdg.base import SdgOp

Key: TypeAlias = tuple[object, ...]


class Alike:
    """Tells ops apart by what they are, say and make, and by the types, the domains and the makers' classes of what
    they read, by nothing else.

    That is all that an op without effects may be verified by, or is by itself about reads and claims. It is for one
    pass over ops that stay as they are: attributes are known by their identity.
    """

    def __init__(self) -> None:
        self._number = Numbering().of
        self._pure: dict[type[Operation], bool] = {}
        self._seen: set[Key] = set()

    def is_new(self, op: Operation) -> bool:
        """Whether no op like this one was asked about; always of an op that has effects or regions."""
        kind = type(op)
        if (pure := self._pure.get(kind)) is None:
            pure = self._pure[kind] = issubclass(kind, SdgOp) and op.has_trait(Pure)
        key = self._key(op) if pure and not op.regions else None
        if key is None:
            return True
        before = len(self._seen)
        self._seen.add(key)
        return len(self._seen) > before

    def _key(self, op: Operation) -> Key | None:
        number = self._number
        parts: list[object] = [type(op), *op.properties, None]
        for value in op.operands:
            owner = maker_of(value)
            if owner is None:
                return None
            domain = number(owner.properties["domain"]) if isinstance(owner, SdgOp) else -1
            parts += number(value.type), type(owner), domain
        parts.append(None)
        parts += [number(result.type) for result in op.results]
        parts.append(None)
        parts += [number(attribute) for attribute in op.properties.values()]
        for name, attribute in op.attributes.items():
            parts += name, number(attribute)
        return tuple(parts)


def firsts(ops: Iterable[SdgOp]) -> Iterator[SdgOp]:
    """Of ops that are alike the first."""
    return filter(Alike().is_new, ops)
