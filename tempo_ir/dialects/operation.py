"""The base of all ops of this package: operations of xDSL whose questions of identity and kind Python answers itself,
and which are made and copied in a third of the time.

A compile asks a hundred thousand times whether an op is of some class, and as often has one in a dict or a set; it
makes some ten thousand ops.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpOperands, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import IRDLOperation, OptionalDef

NO_ATTRIBUTES: Mapping[str, Attribute] = {}


class NominalMeta(ABCMeta):
    """Abstract classes of which nobody registers virtual subclasses: an instance is one by its bases, which Python
    knows without a function call, a cache per pair of classes and a search of all subclasses before it."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class NominalOperation(IRDLOperation, metaclass=NominalMeta):
    """An operation, which equals itself alone."""

    __hash__ = object.__hash__

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
        self.results = SSAValues([OpResult(type, self, number) for number, type in enumerate(result_types)])
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

    @property
    def operands(self) -> OpOperands:
        return OpOperands(self)

    @operands.setter
    def operands(self, new: Sequence[SSAValue]) -> None:
        self._take_operands(new)

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
