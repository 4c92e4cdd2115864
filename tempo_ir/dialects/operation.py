"""The base of all ops of this package: operations of xDSL whose questions of identity and kind Python answers itself,
and which are made and copied in a third of the time.

A compile asks a hundred thousand times whether an op is of some class, and as often has one in a dict or a set; it
makes some ten thousand ops.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Self, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpOperands, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OptionalDef, ParsePropInAttrDict, VariadicDef

from tempo_ir.dialects.accessors import quick, segments

NO_ATTRIBUTES: Mapping[str, Attribute] = {}


class NominalMeta(ABCMeta):
    """Abstract classes of which nobody registers virtual subclasses: an instance is one by its bases, which Python
    knows without a function call, a cache per pair of classes and a search of all subclasses before it."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __setattr__(cls, name: str, value: object) -> None:
        super().__setattr__(name, quick(value))  # the decorator of ops sets accessors


class Result(OpResult, metaclass=NominalMeta):
    """A result of an operation, which equals itself alone."""

    __hash__ = object.__hash__


VALUES: frozenset[type] = frozenset({Result, OpResult, BlockArgument})
"""All classes of values: xDSL's base of them asks for its subclasses each time."""


class NominalOperation(IRDLOperation, metaclass=NominalMeta):
    """An operation, which equals itself alone."""

    __hash__ = object.__hash__

    def __init__(
        self,
        *,
        operands: Sequence[SSAValue | Operation | Sequence[SSAValue | Operation] | None] | None = None,
        result_types: Sequence[Attribute | Sequence[Attribute] | None] | None = None,
        properties: Mapping[str, Attribute | None] | None = None,
        attributes: Mapping[str, Attribute | None] | None = None,
        successors: Sequence[Block | Sequence[Block] | None] | None = None,
        regions: Sequence[
            Region
            | Sequence[Operation]
            | Sequence[Block]
            | Sequence[Region | Sequence[Operation] | Sequence[Block]]
            | None
        ]
        | None = None,
    ) -> None:
        """As xDSL has it: `initialise` does it, unless something is given in another form than is usual."""
        layout = _layout(type(self))
        values = _flat(operands or (), layout.operands, SSAValue)
        types = _flat(result_types or (), layout.results, Attribute)
        inner = _flat(regions or (), layout.regions, Region)
        if successors or layout.is_unusual or values is None or types is None or inner is None:
            super().__init__(
                operands=operands,
                result_types=result_types,
                properties=properties,
                attributes=attributes,
                successors=successors,
                regions=regions,
            )
            return
        given = {name: value for name, value in (properties or {}).items() if value is not None}
        if layout.has_segments:
            given[AttrSizedOperandSegments.attribute_name] = segments(values[1])
        others = {name: value for name, value in (attributes or {}).items() if value is not None}
        self.initialise(
            operands=values[0], result_types=types[0], properties=given, attributes=others, regions=inner[0]
        )

    def initialise(
        self,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> None:
        """What `Operation.__init__` does, for constructors to call: its setters and views take most of its time."""
        self._take_operands(operands)
        self.results = SSAValues([Result(type, self, number) for number, type in enumerate(result_types)])
        self.properties = dict(properties)
        self.attributes = dict(attributes)
        self.location = UNKNOWN_LOC if location is None else location
        if successors:
            self.successors = list(successors)
        for region in regions:
            self.add_region(region)
        if _has_defaults(type(self)):
            self.__post_init__()

    def _take_operands(self, operands: Sequence[SSAValue]) -> None:
        """Read other values, from now on."""
        taken = SSAValues(operands)
        for operand, use in zip(self._operands, self._operand_uses, strict=False):  # of no use where all were dropped
            operand.remove_use(use)
        uses: list[Use] = []
        for number, operand in enumerate(taken):
            use = Use(self, number)
            operand.add_use(use)
            uses.append(use)
        self._operands, self._operand_uses = taken, tuple(uses)
        self._view = OpOperands(self)  # asked for ten times

    @property
    def operands(self) -> OpOperands:
        return self._view

    @operands.setter
    def operands(self, new: Sequence[SSAValue]) -> None:
        self._take_operands(new)

    def walk(self, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
        if reverse or region_first:
            yield from super().walk(reverse=reverse, region_first=region_first)
            return
        yield self
        for region in self.regions:
            for block in region.blocks:
                for op in ops_of(block):
                    if op.regions:
                        yield from op.walk()
                    else:
                        yield op

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        op = cls.__new__(cls)
        NominalOperation.initialise(
            op,
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            location=location,
            successors=successors,
            regions=regions,
        )
        return op

    def clone_without_regions(
        self,
        value_mapper: dict[SSAValue, SSAValue] | None = None,
        block_mapper: dict[Block, Block] | None = None,
        *,
        clone_name_hints: bool = True,
        clone_operands: bool = True,
    ) -> Self:
        values = {} if value_mapper is None else value_mapper
        blocks = {} if block_mapper is None else block_mapper
        copy = type(self).create(
            operands=[values.get(operand, operand) for operand in self._operands] if clone_operands else (),
            result_types=[result.type for result in self.results],
            properties=self.properties,
            attributes=self.attributes,
            location=self.location,
            successors=[blocks.get(successor, successor) for successor in self._successors],
            regions=[Region() for _ in self.regions],
        )
        for result, copied in zip(self.results, copy.results, strict=True):
            values[result] = copied
            if clone_name_hints and result.name_hint is not None:
                copied.name_hint = result.name_hint
        return copy

    def clone(
        self,
        value_mapper: dict[SSAValue, SSAValue] | None = None,
        block_mapper: dict[Block, Block] | None = None,
        *,
        clone_name_hints: bool = True,
        clone_operands: bool = True,
    ) -> Self:
        values = {} if value_mapper is None else value_mapper
        if self.regions:
            names, operands = clone_name_hints, clone_operands
            return super().clone(values, block_mapper, clone_name_hints=names, clone_operands=operands)
        copy = self.clone_without_regions(values, block_mapper, clone_name_hints=clone_name_hints, clone_operands=False)
        if clone_operands:  # an op may read itself
            copy._take_operands([values.get(operand, operand) for operand in self._operands])
        return copy


SEQUENCES: frozenset[type] = frozenset({list, tuple, SSAValues})


class Form(Enum):
    """What is given for a definition."""

    ONE = 0
    OPTIONAL = 1
    SEVERAL = 2


@dataclass(frozen=True)
class Layout:
    """Of the operands, results and regions that a class of ops defines."""

    operands: tuple[Form, ...]
    results: tuple[Form, ...]
    regions: tuple[Form, ...]
    has_segments: bool
    """Whether a property says how many operands there are of each definition."""
    is_unusual: bool
    """Whether there is more to it."""


@cache
def _layout(kind: type[IRDLOperation]) -> Layout:
    definition = kind.get_irdl_definition()
    options = [option for option in definition.options if not isinstance(option, ParsePropInAttrDict)]
    defined = definition.operands, definition.results, definition.regions
    operands, results, regions = (tuple([_form(each) for _, each in part]) for part in defined)
    has_segments = options == [AttrSizedOperandSegments(as_property=True)]
    return Layout(operands, results, regions, has_segments, bool(options) and not has_segments)


def _form(definition: object) -> Form:
    if isinstance(definition, OptionalDef):
        return Form.OPTIONAL
    return Form.SEVERAL if isinstance(definition, VariadicDef) else Form.ONE


def _flat(given: Sequence[Any], forms: tuple[Form, ...], kind: type) -> tuple[list[Any], tuple[int, ...]] | None:
    """What is given, in one list, and how much of it there is of each definition; None where something is neither of
    the kind nor, where it may be, missing or a sequence of such."""
    if len(given) != len(forms):
        return None
    flat: list[Any] = []
    sizes: list[int] = []
    for each, form in zip(given, forms, strict=True):
        is_missing = each is None and form is Form.OPTIONAL
        if _is_a(each.__class__, kind):
            flat.append(each)
            sizes.append(1)
        elif form is Form.SEVERAL and type(each) in SEQUENCES:
            parts = cast("Sequence[Any]", each)
            if not all(_is_a(part.__class__, kind) for part in parts):
                return None
            flat += parts
            sizes.append(len(parts))
        elif is_missing:
            sizes.append(0)
        else:
            return None
    return flat, tuple(sizes)


@cache
def _is_a(kind: type, of: type) -> bool:
    return issubclass(kind, of)


def maker_of(value: SSAValue) -> Operation | None:
    """The op that made a value; None of an argument of a block. Sooner than to ask what its owner is."""
    return getattr(value, "op", None)


_first, _next = attrgetter("_first_op"), attrgetter("_next_op")


def ops_of(block: Block) -> Iterator[Operation]:
    """The ops of a block, of which the one at hand may be erased: `block.ops` in a fifth of the time."""
    op: Operation | None = _first(block)
    while op is not None:
        following = _next(op)
        yield op
        op = following


class Numbering:
    """Attributes as numbers, which equal attributes share: a key of numbers is found in a table at once, while an
    attribute is looked at anew each time, to the last part."""

    def __init__(self) -> None:
        self._numbers: dict[Attribute, int] = {}
        self._known: dict[int, tuple[Attribute, int]] = {}
        """Those asked about, by identity; each is held, so that no other one gets it."""

    def of(self, attribute: Attribute) -> int:
        """The number of an attribute."""
        known = self._known.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._known[id(attribute)] = attribute, number
        return known[1]


@cache
def _has_defaults(kind: type[Operation]) -> bool:
    """Whether an op of a class has properties or attributes that are there though nobody gives them."""
    definition = kind.get_irdl_definition() if issubclass(kind, IRDLOperation) else None
    given = [] if definition is None else [*definition.properties.values(), *definition.attributes.values()]
    return any(not isinstance(each, OptionalDef) and each.default_value is not None for each in given)
