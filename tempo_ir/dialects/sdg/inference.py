"""Type inference shared by the constructors of ops, the frontend, passes and the verifier.

Every op states its result type once, as a static `infer` over accessed operand types. Extents that are not numbers are
compared structurally here; a pair that stays open is recorded in `Extents`, and the verifier has isl prove it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.types import (
    Extent,
    Shape,
    Tensor,
    dtype_name,
    element,
    holds,
    is_bool,
    is_float,
    is_integer,
    shape_of,
    tensor,
)
from tempo_ir.index.expr import Const, Expr, as_expr
from tempo_ir.index.rules import simplify


class Obligation(NamedTuple):
    """Two extents that must be equal wherever the op has a value, and what they belong to."""

    first: Expr
    second: Expr
    what: str


@dataclass(slots=True)
class Extents:
    """Compares extents; keeps what structure alone could not decide."""

    obligations: list[Obligation] = field(default_factory=list[Obligation])

    def same(self, first: Extent, second: Extent, what: str) -> Extent:
        """The common extent, the static one if either is; raises VerifyException if they are known to differ."""
        if first == second:
            return first
        difference = _difference(first, second)
        if isinstance(difference, Const) and difference.value != 0:
            raise VerifyException(f"{what}: extents {first} and {second} differ")
        if not isinstance(difference, Const):
            self.obligations.append(Obligation(as_expr(first), as_expr(second), what))
        return second if isinstance(second, int) else first

    def same_shape(self, first: Shape, second: Shape, what: str) -> Shape:
        """The common shape, axis by axis."""
        if len(first) != len(second):
            raise VerifyException(f"{what}: shapes {shape_text(first)} and {shape_text(second)} differ in rank")
        axes = enumerate(zip(first, second, strict=True))
        return tuple(self.same(a, b, f"{what}, axis {axis}") for axis, (a, b) in axes)

    def broadcast(self, shapes: Sequence[Shape], what: str) -> Shape:
        """The numpy broadcast of the shapes, aligned right; an extent stretches only if it is the number 1."""
        rank = max(map(len, shapes))
        result: list[Extent] = [1] * rank
        for shape in shapes:
            for axis, extent in enumerate(shape, rank - len(shape)):
                if result[axis] == 1:
                    result[axis] = extent
                elif extent != 1:
                    result[axis] = self.same(result[axis], extent, f"{what}, axis {axis}")
        return tuple(result)


@lru_cache(maxsize=4096)
def _difference(first: Extent, second: Extent) -> Expr:
    return simplify(as_expr(first) - as_expr(second))


def shape_text(shape: Shape) -> str:
    """`(4, t + 1)`, as numpy writes shapes."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def same_element(types: Sequence[Attribute], what: str) -> Attribute:
    """The element type that all operands share; raises VerifyException naming the clash."""
    first = element(types[0])
    for other in map(element, types[1:]):
        if other is not first and other != first:
            raise VerifyException(
                f"{what} needs operands of one dtype, got {dtype_name(first)} and {dtype_name(other)}: cast one of them"
            )
    return first


def widest_element(types: Sequence[Attribute], what: str) -> Attribute:
    """The element type that holds every value of all operands' exactly, which one of them has; raises VerifyException
    where there is none."""
    elements = list(map(element, types))
    for candidate in elements:
        if all(holds(candidate, other) for other in elements):
            return candidate
    first = elements[0]
    clash = next(other for other in elements if other != first)
    raise VerifyException(
        f"{what} needs an operand whose dtype holds the values of all, got {dtype_name(first)} and "
        f"{dtype_name(clash)}: cast one of them"
    )


def check_element(element_type: Attribute, accepted: str, what: str) -> None:
    """Raises VerifyException unless the element type is of the kind "float", "integer", "logic", "number" or "any"."""
    if not _is_of_kind(element_type, accepted):
        kinds = {
            "float": "floating-point",
            "integer": "integer",
            "logic": "boolean or integer",
            "number": "numeric",
            "bool": "boolean",
        }[accepted]
        raise VerifyException(f"{what} needs {kinds} elements, got {dtype_name(element_type)}: cast the operand")


@lru_cache(maxsize=1024)
def _is_of_kind(element_type: Attribute, accepted: str) -> bool:
    dtype_name(element_type)
    match accepted:
        case "any":
            return True
        case "float":
            return is_float(element_type)
        case "integer":
            return is_integer(element_type)
        case "logic":
            return is_bool(element_type) or is_integer(element_type)
        case "number":
            return not is_bool(element_type)
        case _:
            return is_bool(element_type)


def check_axis(axis: int, rank: int, what: str) -> int:
    """`axis` if it names one of `rank` axes; raises VerifyException otherwise (negative axes are the frontend's)."""
    if 0 <= axis < rank:
        return axis
    has = f"the axes 0 to {rank - 1}" if rank > 1 else ("axis 0 only" if rank else "no axes")
    raise VerifyException(f"{what}: axis {axis} does not exist, the operand has {has}")


def check_axes(axes: Sequence[int], rank: int, what: str) -> tuple[int, ...]:
    """The axes, each existing and none twice; raises VerifyException otherwise."""
    for axis in axes:
        check_axis(axis, rank, what)
    if len(set(axes)) != len(axes):
        raise VerifyException(f"{what}: axes {list(axes)} name an axis twice")
    return tuple(axes)


def elementwise(types: Sequence[Tensor], what: str, extents: Extents, result: Attribute | None = None) -> Tensor:
    """The broadcast of tensors of one element type; `result` replaces that element type."""
    common = same_element(types, what)
    first = types[0]
    if all(other is first or other == first for other in types):
        return first if result is None or result == common else tensor(result, shape_of(first))
    return tensor(common if result is None else result, extents.broadcast([shape_of(t) for t in types], what))


def drop_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape without the given axes."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
