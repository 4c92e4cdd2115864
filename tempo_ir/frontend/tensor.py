"""`Tensor`: a value of the graph, read at an index. Operations on tensors append one op each to the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tempo_ir import index as ix
from tempo_ir.dialects import types
from tempo_ir.dialects.sdg.base import Access, current_point, domain_of
from tempo_ir.frontend.dims import Condition, Dim, dim_or_int
from tempo_ir.frontend.dtypes import DType, Spec, dtype_of_element
from tempo_ir.frontend.errors import Place, ProgramError, ValueUnknownError, here
from tempo_ir.frontend.recording import Recording, current
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import Index

if TYPE_CHECKING:
    from types import EllipsisType

    KeyEntry: TypeAlias = "int | Dim | slice | Tensor | Condition | EllipsisType | None"
    Key: TypeAlias = "KeyEntry | tuple[KeyEntry, ...]"

Value: TypeAlias = "Tensor | Dim | Condition | bool | int | float | np.ndarray[Any, Any] | np.generic"


class Tensor:
    """A value of the graph and the index it is read at; `dims` are the dims that the read varies over."""

    __slots__ = ("index", "recording", "value")

    def __init__(self, recording: Recording, value: SSAValue, index: Index | None = None):
        self.recording = recording
        self.value = value
        self.index = current_point(domain_of(value).dims) if index is None else index

    # ---------------------------------------------------------------------------------------- what it is

    @property
    def access(self) -> Access:
        """The read as the sdg dialect has it."""
        return Access(self.value, self.index)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims it varies over, outer first."""
        return self.recording.in_order(ix.free_symbols(self.index))

    @property
    def is_whole(self) -> bool:
        """True if it is the value itself, read at the current point."""
        return self.index == current_point(domain_of(self.value).dims)

    @property
    def type(self) -> types.Tensor:
        """The tensor type of the read, its slices as leading axes."""
        try:
            return self.access.tensor
        except VerifyException as error:
            raise ProgramError(str(error)) from None

    @property
    def extents(self) -> types.Shape:
        """The shape at one point, dynamic extents as index expressions."""
        shape = types.shape_of(own := self.type)
        if types.is_static(own):
            return shape
        domain, space = Domain(self.dims), self.recording.space
        return tuple(extent if isinstance(extent, int) else domain.simplify(extent, space) for extent in shape)

    @property
    def shape(self) -> tuple[int | Dim, ...]:
        """The shape at one point; an extent that depends on dims or bounds is a Dim."""
        return tuple(dim_or_int(extent) for extent in self.extents)

    @property
    def ndim(self) -> int:
        """The number of axes at one point."""
        return len(types.shape_of(self.type))

    @property
    def dtype(self) -> DType:
        """The element type."""
        return dtype_of_element(types.element(self.value.type))

    @property
    def spec(self) -> Spec:
        """Element type and shape at one point."""
        return Spec(self.dtype, self.shape)

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"'{self.value.name_hint}'" if self.value.name_hint is not None else "the value"

    def __repr__(self) -> str:
        return f"<tensor {self.value.name_hint or ''} {self.spec} over ({', '.join(self.dims)})>"

    # ---------------------------------------------------------------------------------------- what it cannot be

    def __bool__(self) -> NoReturn:
        raise ValueUnknownError(
            "a tensor has no value while the program is recorded: choose with tp.where(condition, a, b), "
            "and join conditions with & and |"
        )

    def __iter__(self) -> NoReturn:
        raise ValueUnknownError("a tensor cannot be iterated over: use tp.unstack(x), or index it")

    def __contains__(self, item: object) -> NoReturn:
        raise ValueUnknownError(
            "a tensor has no value while the program is recorded, so `in` has no answer: use tp.any(x == item)"
        )

    def __len__(self) -> NoReturn:
        raise ValueUnknownError(
            f"a tensor has no len(): x.shape[0] is its first extent, which may be a Dim (here {self.spec})"
        )

    def __float__(self) -> NoReturn:
        raise ValueUnknownError(
            "a tensor has no value while the program is recorded, so float(x) is none: x.cast(tp.f32) converts it, and "
            "functions of it are tensors of tp's (tp.sin(x), not math.sin(x))"
        )

    def __int__(self) -> NoReturn:
        raise ValueUnknownError(
            "a tensor has no value while the program is recorded, so int(x) is none: x.cast(tp.i64) converts it"
        )

    def __index__(self) -> NoReturn:
        raise ValueUnknownError(
            "a tensor has no value while the program is recorded, so Python cannot count or index by it: x.take(i) "
            "takes rows at integer positions, and sizes are integers or dims"
        )

    def __round__(self, digits: int | None = None) -> Tensor:
        if digits is not None:
            raise ValueUnknownError("round(x) rounds a tensor to integers: scale it to keep digits")
        return elementwise.round(self)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        raise ValueUnknownError(
            "a tensor has no value while the program is recorded, so numpy cannot make an array of it: use the "
            "functions of tp, and give what numpy is to see to a host (tp.host) or to tp.output"
        )

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Value, **options: object) -> Tensor:
        """`array + x` comes here, since the array is asked first; `np.sin(x)` does too."""
        return numpy_calls.ufunc(function.__name__, method, inputs, options)

    def __array_function__(self, function: Callable[..., object], *_: object) -> NoReturn:
        raise numpy_calls.refusal(function.__name__)

    def __hash__(self) -> int:
        return hash((id(self.value), self.index))

    # ---------------------------------------------------------------------------------------- indexing

    def __getitem__(self, key: Key) -> Tensor:
        return indexing.read(self, key)

    # ---------------------------------------------------------------------------------------- arithmetic

    def __add__(self, other: Value) -> Tensor:
        return elementwise.add(self, other)

    def __radd__(self, other: Value) -> Tensor:
        return elementwise.add(other, self)

    def __sub__(self, other: Value) -> Tensor:
        return elementwise.subtract(self, other)

    def __rsub__(self, other: Value) -> Tensor:
        return elementwise.subtract(other, self)

    def __mul__(self, other: Value) -> Tensor:
        return elementwise.multiply(self, other)

    def __rmul__(self, other: Value) -> Tensor:
        return elementwise.multiply(other, self)

    def __truediv__(self, other: Value) -> Tensor:
        return elementwise.divide(self, other)

    def __rtruediv__(self, other: Value) -> Tensor:
        return elementwise.divide(other, self)

    def __floordiv__(self, other: Value) -> Tensor:
        return elementwise.floor_divide(self, other)

    def __rfloordiv__(self, other: Value) -> Tensor:
        return elementwise.floor_divide(other, self)

    def __mod__(self, other: Value) -> Tensor:
        return elementwise.mod(self, other)

    def __rmod__(self, other: Value) -> Tensor:
        return elementwise.mod(other, self)

    def __pow__(self, other: Value) -> Tensor:
        return elementwise.power(self, other)

    def __rpow__(self, other: Value) -> Tensor:
        return elementwise.power(other, self)

    def __matmul__(self, other: Value) -> Tensor:
        return contractions.matmul(self, other)

    def __rmatmul__(self, other: Value) -> Tensor:
        return contractions.matmul(other, self)

    def __neg__(self) -> Tensor:
        return elementwise.negative(self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return elementwise.abs(self)

    def __invert__(self) -> Tensor:
        return elementwise.logical_not(self)

    def __and__(self, other: Value) -> Tensor:
        return elementwise.logical_and(self, other)

    def __rand__(self, other: Value) -> Tensor:
        return elementwise.logical_and(other, self)

    def __or__(self, other: Value) -> Tensor:
        return elementwise.logical_or(self, other)

    def __ror__(self, other: Value) -> Tensor:
        return elementwise.logical_or(other, self)

    def __xor__(self, other: Value) -> Tensor:
        return elementwise.logical_xor(self, other)

    def __rxor__(self, other: Value) -> Tensor:
        return elementwise.logical_xor(other, self)

    def __lt__(self, other: Value) -> Tensor:
        return elementwise.less(self, other)

    def __le__(self, other: Value) -> Tensor:
        return elementwise.less_equal(self, other)

    def __gt__(self, other: Value) -> Tensor:
        return elementwise.greater(self, other)

    def __ge__(self, other: Value) -> Tensor:
        return elementwise.greater_equal(self, other)

    def __eq__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return elementwise.equal(self, elementwise.checked_value(other))

    def __ne__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return elementwise.not_equal(self, elementwise.checked_value(other))

    # ---------------------------------------------------------------------------------------- methods

    def cast(self, dtype: DType) -> Tensor:
        """The same numbers in another element type."""
        return elementwise.cast(self, dtype)

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The sum over axes; booleans are counted."""
        return reductions.sum(self, axis, keepdims)

    def prod(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The product over axes."""
        return reductions.prod(self, axis, keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The mean over axes."""
        return reductions.mean(self, axis, keepdims)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The greatest element over axes; NaN if there is one."""
        return reductions.max(self, axis, keepdims)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The least element over axes; NaN if there is one."""
        return reductions.min(self, axis, keepdims)

    def argmax(self, axis: int | None = None) -> Tensor:
        """The position of the greatest element, the first of ties."""
        return reductions.argmax(self, axis)

    def reshape(self, *shape: int | Dim | Iterable[int | Dim]) -> Tensor:
        """The same elements in another shape; one extent may be -1."""
        return shapes.reshape(self, *shape)

    def flatten(self, first: int = 0, last: int = -1) -> Tensor:
        """The axes from `first` to `last`, both included, as one."""
        return shapes.flatten(self, first, last)

    def transpose(self, *axes: int | Iterable[int]) -> Tensor:
        """The axes in another order, one by one or as one tuple; reversed if none is given."""
        return shapes.transpose(self, *axes)

    @property
    def T(self) -> Tensor:
        """The axes reversed."""
        return shapes.transpose(self)

    def take(self, indices: Value, axis: int = 0) -> Tensor:
        """The rows at integer positions along an axis, as numpy's take."""
        return shapes.take(self, indices, axis)


def record(
    make: Callable[..., Operation],
    *operands: Tensor,
    over: Iterable[str] = (),
    place: Place | None = None,
    **properties: Any,
) -> Tensor:
    """Append an op over the union of the dims that its operands use and of `over`; gives its result.

    Raises ProgramError, with the user's line, where the operands do not fit the op.
    """
    recording = current()
    return Tensor(recording, record_op(recording, make, operands, over, place, properties).results[0])


def record_op(
    recording: Recording,
    make: Callable[..., Operation],
    operands: Sequence[Tensor],
    over: Iterable[str],
    place: Place | None,
    properties: dict[str, Any],
) -> Operation:
    """Append an op and give the op itself."""
    used = frozenset(over)
    for operand in operands:
        if operand.recording is not recording:
            raise ProgramError(f"{operand.name} belongs to another program: make it inside this one")
        used |= ix.free_symbols(operand.index)
    place = here() if place is None else place
    try:
        op = make(*[operand.access for operand in operands], domain=recording.domain(used), **properties)
    except VerifyException as error:
        raise ProgramError(f"{error}{_described(operands)}", place) from None
    return recording.add(op, place)


def _described(operands: Sequence[Tensor]) -> str:
    """The operands of an op that does not take them, for its message."""
    texts = [f"{operand.name} {operand.spec}".removeprefix("the value ") for operand in operands]
    return f" (operands: {', '.join(texts)})" if len(texts) > 1 else f" (operand: {', '.join(texts)})"


# The modules below define the operations on the class above: they need it, and its methods need them.
from tempo_ir.frontend import contractions, elementwise, indexing, numpy_calls, reductions, shapes  # noqa: E402
