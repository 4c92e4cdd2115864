"""What `op.lhs` asks: the accessors of xDSL's ops that are asked most, answering at once. xDSL's own look up what kind
of part they are of, make a view of it and take from it what is at their place, ten thousand times a compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter
from struct import unpack
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, SSAValues
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BeforeVariadicSingleAccessor,
    UniqueVariadicAccessor,
    VariadicAttrAccessor,
    VarIRConstruct,
)

_operands: Callable[[Operation], SSAValues] = attrgetter("_operands")
_item: Callable[[tuple[Any, ...], int], Any] = tuple[Any, ...].__getitem__
"""Of `SSAValues` too, which asks first whether it is an index or a slice."""


class Operand(BeforeVariadicSingleAccessor):
    """An operand at a place that is always the same."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> Any:
        return _item(_operands(obj), self.idx)


class Result(BeforeVariadicSingleAccessor):
    """A result at a place that is always the same."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> Any:
        return _item(obj.results, self.idx)


class Body(BeforeVariadicSingleAccessor):
    """A region at a place that is always the same."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> Any:
        return obj.regions[self.idx]


class Operands(UniqueVariadicAccessor):
    """The one sequence of operands."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> Any:
        return self.index(_operands(obj))


class Segment(VariadicAttrAccessor):
    """One of several sequences of operands, whose numbers lie in a property."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> Any:
        segments: Any = obj.properties[self.option.attribute_name]
        starts = _starts(segments.data.data)
        return _operands(obj)[starts[self.idx] : starts[self.idx + 1]]


SINGLES = {VarIRConstruct.OPERAND: Operand, VarIRConstruct.RESULT: Result, VarIRConstruct.REGION: Body}


def quick(value: object) -> object:
    """The accessor that answers as one of xDSL's; any other value as it is."""
    match value:
        case BeforeVariadicSingleAccessor(construct, number) if construct in SINGLES:
            return SINGLES[construct](construct, number)
        case UniqueVariadicAccessor(VarIRConstruct.OPERAND as construct, number, parts):
            return Operands(construct, number, parts)
        case VariadicAttrAccessor(construct, number, AttrSizedOperandSegments(as_property=True) as option):
            return Segment(construct, number, option)
        case _:
            return value


@lru_cache(maxsize=256)
def segments(sizes: tuple[int, ...]) -> Attribute:
    """The property that says how many operands there are of each."""
    return DenseArrayBase.from_list(i32, sizes)


@lru_cache(maxsize=256)
def _starts(sizes: bytes) -> tuple[int, ...]:
    """Where segments begin, and where the last one ends, by their sizes as i32."""
    return tuple(accumulate(unpack(f"<{len(sizes) // 4}i", sizes), initial=0))
