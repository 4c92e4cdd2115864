"""Proof that the programs of a kernel touch no memory of each other, read off its accesses alone.

With rows R and stride S of a row, every address is `q * R * S + r * S + inner`, where `inner` is less than S: its
digit r says whose it is. A program p may only touch rows `p * block` to `p * block + block` of what any program
writes. So of each access to such memory one axis of the view has size R and stride S and is read from `p * block` on;
the other axes and the offset either step over all rows, in multiples of R * S, or stay inside of one.

It uses nothing of how the rows were chosen. What it cannot read it does not accept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, structure
from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.shape import ConstOp
from tempo_ir.index import Const, Expr, Sym, as_expr, maximum, minimum
from tempo_ir.index.rules import terms

PROGRAM = Sym("$program")


class OtherRowsTouched(Exception):
    """An access is not known to stay in the rows of its program; the message says which."""


@dataclass(frozen=True)
class _Digit:
    """How the rows of a memory are counted: how many, the elements of one, and how many a program has."""

    rows: Expr
    stride: Expr
    block: int


def check_rows(kernel: structure.KernelOp, scalars: Sequence[Expr]) -> None:
    """Raise OtherRowsTouched unless every program of the grid, which has one axis, keeps to rows of its own; `scalars`
    are what a launch passes."""
    if kernel.grid.data == (1,):
        return
    if len(kernel.grid.data) != 1:
        raise OtherRowsTouched(f"the grid has {len(kernel.grid.data)} axes")
    pointers = [argument for argument in kernel.body.block.args if isinstance(argument.type, PointerType)]
    others = [argument for argument in kernel.body.block.args if argument not in pointers]
    reader = _Reader(dict(zip(others, scalars, strict=False)))
    accesses = [op for op in kernel.body.walk() if isinstance(op, memory.AccessOp)]
    written = {op.view_op.pointer for op in accesses if isinstance(op, memory.WRITES)}
    digits: dict[SSAValue, _Digit] = {}
    for op in accesses:
        pointer = op.view_op.pointer
        if pointer not in written:
            continue
        name = pointer.name_hint or "a pointer"
        digit = _digit(op, reader, name)
        if digits.setdefault(pointer, digit) != digit:
            raise OtherRowsTouched(f"the rows of %{name} are counted in two ways")
    if len({(digit.block, digit.rows) for digit in digits.values()}) > 1:
        raise OtherRowsTouched("programs have other rows of one memory than of another")


def _digit(op: memory.AccessOp, reader: _Reader, name: str) -> _Digit:
    """How an access counts rows; raises where it may leave those of its program."""
    view = op.view_op
    indices = [reader.read(index) for index in op.indices]
    sizes = [reader.extent(size) for size in view.sizes]
    strides = [reader.extent(stride) for stride in view.strides]
    own = [axis for axis, index in enumerate(indices) if _uses_program(index)]
    offset = Const(0) if view.offset is None else reader.read(view.offset)
    if len(own) != 1 or _uses_program(offset):
        raise OtherRowsTouched(f"%{name} is accessed in other rows than those of the program")
    (axis,) = own
    block = op.block.data[axis]
    positioned = isinstance(op, memory.IndexedAccessOp) and op.axis_number == axis
    if block == 0 or positioned or indices[axis] != PROGRAM * block:
        raise OtherRowsTouched(f"%{name} is accessed from row {indices[axis]} on")
    digit = _Digit(sizes[axis], strides[axis], block)
    whole = digit.rows * digit.stride
    inner = _rest(offset, whole)
    for other, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if other != axis and not _is_multiple(stride, whole):
            inner = inner + (size - 1) * stride
            if not isinstance(stride, Const) or stride.value < 0:
                raise OtherRowsTouched(f"%{name} is accessed in steps of {stride}")
    left = digit.stride - inner
    if not (isinstance(inner, Const) and inner.value >= 0 and isinstance(left, Const) and left.value > 0):
        raise OtherRowsTouched(f"%{name} is accessed {inner} elements behind a row of {digit.stride}")
    return digit


def _rest(offset: Expr, whole: Expr) -> Expr:
    """What of an offset does not step over all rows."""
    rest: Expr = Const(0)
    for monomial, coefficient in terms(offset).items():
        term: Expr = Const(coefficient)
        for factor in monomial:
            term = term * factor
        if not _is_multiple(term, whole):
            rest = rest + term
    return rest


def _is_multiple(value: Expr, of: Expr) -> bool:
    """Whether each term of a value is a multiple of a product."""
    ((divisor, number),) = terms(of).items() if len(terms(of)) == 1 else (((), 0),)
    if not number:
        return False
    return all(
        coefficient % number == 0 and not Counter(divisor) - Counter(monomial)
        for monomial, coefficient in terms(value).items()
    )


def _uses_program(value: Expr) -> bool:
    return any(PROGRAM.name in str(factor) for monomial in terms(value) for factor in monomial)


@dataclass
class _Reader:
    """Index values of a kernel as expressions; what is no arithmetic is a symbol of its own."""

    scalars: Mapping[SSAValue, Expr]
    known: dict[SSAValue, Expr] = field(default_factory=dict[SSAValue, Expr])

    def extent(self, extent: int | SSAValue) -> Expr:
        """A size or a stride."""
        return as_expr(extent) if isinstance(extent, int) else self.read(extent)

    def read(self, value: SSAValue) -> Expr:
        """What a value is."""
        if value not in self.known:
            self.known[value] = self._read(value)
        return self.known[value]

    def _read(self, value: SSAValue) -> Expr:
        if value in self.scalars:
            return self.scalars[value]
        match value.owner:
            case structure.ProgramIdOp():
                return PROGRAM
            case ConstOp(value=IntegerAttr() as number):
                return Const(number.value.data)
            case ew.BinaryOp(lhs=lhs, rhs=rhs) as op:
                return self._binary(op, self.read(lhs), self.read(rhs))
            case _:
                return Sym(f"$value{len(self.known)}")

    def _binary(self, op: ew.BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
        match op:
            case ew.AddOp():
                return lhs + rhs
            case ew.SubOp():
                return lhs - rhs
            case ew.MulOp():
                return lhs * rhs
            case ew.FloorDivOp():
                return lhs // rhs
            case ew.ModOp():
                return lhs % rhs
            case ew.MinOp():
                return minimum(lhs, rhs)
            case ew.MaxOp():
                return maximum(lhs, rhs)
            case _:
                return Sym(f"$value{len(self.known)}")
