"""
Write tile kernels in Python, with operators. A kernel is a Python function of its block sizes:

    def scale(block: int) -> KernelOp:
        k = KernelBuilder("scale", {"x": PointerType(f32), "n": INDEX}, grid=[None])
        x = k.view(k["x"], [k["n"]], [1])
        start = k.program_id(0) * block
        k.store(k.load(x, (start, block)) * 2.0, x, (start, block))
        return k.finish()

Python numbers take the element type of the other operand; where there is none, int is `index` and float f32.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import (
    ALONG,
    DYNAMIC,
    INDEX,
    ReduceKind,
    element_of,
    is_float,
    shape_of,
)

Number = int | float


@dataclass(frozen=True, eq=False)
class Value:
    """A scalar or tile of the kernel under construction. Operators broadcast; comparisons other than `eq`, `ne` too."""

    builder: KernelBuilder
    ssa: SSAValue

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, `()` of a scalar."""
        return shape_of(self.ssa)

    @property
    def element(self) -> Attribute:
        """Element type."""
        return element_of(self.ssa)

    def named(self, name: str) -> Value:
        """The same value, printed as `%name`."""
        self.ssa.name_hint = name
        return self

    def _binary(self, op: type[ew.BinaryOp], other: Value | Number, swapped: bool = False) -> Value:
        return self.builder.apply(op, *((other, self) if swapped else (self, other)))

    def __add__(self, other: Value | Number) -> Value:
        return self._binary(ew.AddOp, other)

    def __radd__(self, other: Number) -> Value:
        return self._binary(ew.AddOp, other, swapped=True)

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary(ew.SubOp, other)

    def __rsub__(self, other: Number) -> Value:
        return self._binary(ew.SubOp, other, swapped=True)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary(ew.MulOp, other)

    def __rmul__(self, other: Number) -> Value:
        return self._binary(ew.MulOp, other, swapped=True)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary(ew.DivOp, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._binary(ew.DivOp, other, swapped=True)

    def __floordiv__(self, other: Value | Number) -> Value:
        return self._binary(ew.FloorDivOp, other)

    def __mod__(self, other: Value | Number) -> Value:
        return self._binary(ew.ModOp, other)

    def __pow__(self, other: Value | Number) -> Value:
        return self._binary(ew.PowOp, other)

    def __lt__(self, other: Value | Number) -> Value:
        return self._binary(ew.LtOp, other)

    def __le__(self, other: Value | Number) -> Value:
        return self._binary(ew.LeOp, other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._binary(ew.GtOp, other)

    def __ge__(self, other: Value | Number) -> Value:
        return self._binary(ew.GeOp, other)

    def __and__(self, other: Value | Number) -> Value:
        return self._binary(ew.AndOp, other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary(ew.OrOp, other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary(ew.XorOp, other)

    def __lshift__(self, other: Value | Number) -> Value:
        return self._binary(ew.ShlOp, other)

    def __rshift__(self, other: Value | Number) -> Value:
        return self._binary(ew.ShrOp, other)

    def __neg__(self) -> Value:
        return self.builder.apply(ew.NegOp, self)

    def __invert__(self) -> Value:
        return self.builder.apply(ew.NotOp, self)

    def __abs__(self) -> Value:
        return self.builder.apply(ew.AbsOp, self)

    def eq(self, other: Value | Number) -> Value:
        """Elementwise ="""
        return self._binary(ew.EqOp, other)

    def ne(self, other: Value | Number) -> Value:
        """Elementwise !="""
        return self._binary(ew.NeOp, other)

    def __getitem__(self, key: tuple[slice | None, slice | None]) -> Value:
        """`x[:, None]` makes a column of a rank-1 tile, `x[None, :]` a row."""
        return self.builder.add(shape.ExpandOp(self.ssa, key.index(None)))

    @property
    def t(self) -> Value:
        """The transpose of a tile of rank 2."""
        return self.builder.add(shape.TransOp(self.ssa))

    def to(self, element: Attribute) -> Value:
        """Cast, unless it already has that element type."""
        return self if self.element == element else self.builder.add(ew.CastOp(self.ssa, element))

    def broadcast(self, *extents: int) -> Value:
        """A scalar or a tile with axes of extent 1, stretched to `extents`."""
        if self.shape == extents:
            return self
        op = shape.BroadcastOp(self.ssa, extents) if self.shape else shape.SplatOp(self.ssa, extents)
        return self.builder.add(op)


@dataclass(eq=False)
class Loop:
    """A loop under construction: use `index` and `carried` inside, end with `carry`; `results` are valid after it."""

    index: Value
    carried: list[Value]
    results: list[Value] = field(default_factory=lambda: list[Value]())
    next_values: list[Value] = field(default_factory=lambda: list[Value]())

    def carry(self, *values: Value) -> None:
        """What the carried values are in the next trip, in the order of `carried`."""
        self.next_values = list(values)


class KernelBuilder:
    """
    Builds one `tile.kernel`. `arguments` maps names to types (`PointerType(f32)`, `INDEX`, any scalar type); `k["x"]`
    is the argument. `grid` has one entry per axis, `None` where only the launch knows the extent. Set `location` to
    give the ops that follow a source location.
    """

    def __init__(self, name: str, arguments: Mapping[str, Attribute], grid: Sequence[int | None] = ()):
        self.location: LocationAttr | None = None
        self._block = Block(arg_types=list(arguments.values()))
        self._constants: list[dict[tuple[Attribute, Attribute], Value]] = [{}]
        self._kernel = structure.KernelOp(
            name, [DYNAMIC if extent is None else extent for extent in grid], Region(self._block)
        )
        for argument, argument_name in zip(self._block.args, arguments, strict=True):
            argument.name_hint = argument_name
        self._arguments = {
            argument_name: Value(self, argument)
            for argument, argument_name in zip(self._block.args, arguments, strict=True)
        }

    def __getitem__(self, name: str) -> Value:
        """The argument of that name."""
        return self._arguments[name]

    def finish(self, *, verified: bool = True) -> structure.KernelOp:
        """The kernel; with `verified` it is checked first, else by who runs the pass, as what any pass makes."""
        if verified:
            self._kernel.verify()
        return self._kernel

    # -- ops

    def insert(self, op: Operation) -> Operation:
        """Append an op as it is."""
        if self.location is not None:
            op.location = self.location
        self._block.add_op(op)
        return op

    def add(self, op: Operation) -> Value:
        """Append an op of one result and give that result."""
        return Value(self, self.insert(op).results[0])

    def const(self, number: Number, element: Attribute, extents: Sequence[int] = ()) -> Value:
        """A number as a scalar, or filling a tile; equal constants of one block are one op."""
        op = shape.ConstOp(number_attribute(number, element), tuple(extents))
        key = op.result.type, op.number
        for known in self._constants:
            if key in known:
                return known[key]
        value = self._constants[-1][key] = self.add(op)
        return value

    def value(self, operand: Value | Number, element: Attribute | None = None) -> Value:
        """`operand`, made a constant of `element` if it is a Python number."""
        if isinstance(operand, Value):
            return operand
        default = f32 if isinstance(operand, float) else INDEX
        return self.const(operand, default if element is None else element)

    def apply(self, op: type[ew.UnaryOp | ew.BinaryOp | ew.SelectOp], *operands: Value | Number) -> Value:
        """An elementwise op by class: `k.apply(ExpOp, x)`, `k.apply(SelectOp, c, x, 0.0)`."""
        data = operands[1:] if op is ew.SelectOp else operands
        element = next((operand.element for operand in data if isinstance(operand, Value)), None)
        return self.add(op(*(self.value(operand, element).ssa for operand in operands)))

    def program_id(self, axis: int) -> Value:
        """This program's place along an axis of the grid."""
        return self.add(structure.ProgramIdOp(axis))

    def view(
        self,
        pointer: Value,
        sizes: Sequence[Value | int],
        strides: Sequence[Value | int] | None = None,
        offset: Value | int | None = None,
    ) -> Value:
        """Memory as an array; `strides` and `offset` in elements; strides of row-major order by default."""
        if strides is None:
            strides = row_major(sizes)
        raw_offset = None if offset is None or offset == 0 else self.value(offset).ssa
        raw_sizes, raw_strides = ([d if isinstance(d, int) else d.ssa for d in ds] for ds in (sizes, strides))
        return self.add(memory.ViewOp(pointer.ssa, raw_sizes, raw_strides, raw_offset))

    def load(self, view: Value, *places: Value | int | tuple[Value | int, int], other: Number | None = None) -> Value:
        """Read a block: one place per axis of the view, a point or `(start, extent)`; see `tile.load`."""
        indices, block = self._places(places)
        return self.add(memory.LoadOp(view.ssa, indices, block, _other(other, view)))

    def store(self, value: Value, view: Value, *places: Value | int | tuple[Value | int, int]) -> None:
        """Write a block; the value must have the view's element type; see `tile.store`."""
        indices, block = self._places(places)
        self.insert(memory.StoreOp(value.ssa, view.ssa, indices, block))

    def atomic_add(self, value: Value, view: Value, *places: Value | int | tuple[Value | int, int]) -> None:
        """Add a block to memory; see `tile.atomic_add`."""
        indices, block = self._places(places)
        self.insert(memory.AtomicAddOp(value.ssa, view.ssa, indices, block))

    def gather(self, view: Value, *places: Value | int | tuple[Value | int, int], other: Number | None = None) -> Value:
        """Read a block; the one place that is a tile of integers gives positions on its axis; see `tile.gather`."""
        positions, axis, indices, block = self._positions(places)
        return self.add(memory.GatherOp(view.ssa, indices, positions, axis, block, _other(other, view)))

    def scatter(self, value: Value, view: Value, *places: Value | int | tuple[Value | int, int]) -> None:
        """Write a block at the positions of the one place that is a tile of integers; see `tile.scatter`."""
        positions, axis, indices, block = self._positions(places)
        self.insert(memory.ScatterOp(value.ssa, view.ssa, indices, positions, axis, block))

    def scatter_add(self, value: Value, view: Value, *places: Value | int | tuple[Value | int, int]) -> None:
        """Add a block at the positions of the one place that is a tile of integers; see `tile.scatter_add`."""
        positions, axis, indices, block = self._positions(places)
        self.insert(memory.ScatterAddOp(value.ssa, view.ssa, indices, positions, axis, block))

    def _places(self, places: Sequence[Value | int | tuple[Value | int, int]]) -> tuple[list[SSAValue], list[int]]:
        ranges = [place if isinstance(place, tuple) else (place, 0) for place in places]
        return [self.value(start).ssa for start, _ in ranges], [extent for _, extent in ranges]

    def _positions(
        self, places: Sequence[Value | int | tuple[Value | int, int]]
    ) -> tuple[SSAValue, int, list[SSAValue], list[int]]:
        tiles = [(i, place) for i, place in enumerate(places) if isinstance(place, Value) and place.shape]
        if len(tiles) != 1:
            raise ValueError(f"exactly one place must be a tile of positions, {len(tiles)} are")
        axis, positions = tiles[0]
        others = [(0, positions.shape[0]) if i == axis else place for i, place in enumerate(places)]
        return positions.ssa, axis, *self._places(others)

    def iota(self, start: Value | int, extent: int, element: Attribute = i32) -> Value:
        """`start`, `start + 1`, ..."""
        return self.add(shape.IotaOp(self.value(start).ssa, extent, element))

    def in_range(self, start: Value | int, extent: int, limit: Value | int) -> Value:
        """Which of `start`, `start + 1`, ... are below `limit`, as i1."""
        return self.add(shape.InRangeOp(self.value(start).ssa, self.value(limit).ssa, extent))

    def reduce(self, kind: ReduceKind | str, x: Value, axis: int, index_element: Attribute = i64) -> Value:
        """Combine along an axis: `k.reduce("max", x, 1)`."""
        return self.add(shape.ReduceOp(kind, x.ssa, axis, index_element))

    def scan(self, kind: ReduceKind | str, x: Value, axis: int, reverse: bool = False) -> Value:
        """Running sum or product along an axis."""
        return self.add(shape.ScanOp(kind, x.ssa, axis, reverse))

    def dot(self, lhs: Value, rhs: Value, accumulator: Value) -> Value:
        """`accumulator + lhs @ rhs`"""
        return self.add(shape.DotOp(lhs.ssa, rhs.ssa, accumulator.ssa))

    def select(self, condition: Value, lhs: Value | Number, rhs: Value | Number) -> Value:
        """`lhs` where the condition holds, else `rhs`."""
        return self.apply(ew.SelectOp, condition, lhs, rhs)

    def maximum(self, lhs: Value | Number, rhs: Value | Number) -> Value:
        """The larger, NaN where either is NaN."""
        return self.apply(ew.MaxOp, lhs, rhs)

    def minimum(self, lhs: Value | Number, rhs: Value | Number) -> Value:
        """The smaller, NaN where either is NaN."""
        return self.apply(ew.MinOp, lhs, rhs)

    def philox(
        self, key: tuple[Value, Value], counter: tuple[Value, Value, Value, Value]
    ) -> tuple[Value, Value, Value, Value]:
        """The four random words of Philox4x32-10; all words are i32 or ui32."""
        low, high = key
        c0, c1, c2, c3 = counter
        op = shape.PhiloxOp((low.ssa, high.ssa), (c0.ssa, c1.ssa, c2.ssa, c3.ssa))
        self.insert(op)
        return Value(self, op.word0), Value(self, op.word1), Value(self, op.word2), Value(self, op.word3)

    # -- unary functions

    def exp(self, x: Value) -> Value:
        """e to the x"""
        return self.apply(ew.ExpOp, x)

    def log(self, x: Value) -> Value:
        """Natural logarithm."""
        return self.apply(ew.LogOp, x)

    def sqrt(self, x: Value) -> Value:
        """Square root."""
        return self.apply(ew.SqrtOp, x)

    def rsqrt(self, x: Value) -> Value:
        """1 / sqrt(x)"""
        return self.apply(ew.RsqrtOp, x)

    def tanh(self, x: Value) -> Value:
        """Hyperbolic tangent."""
        return self.apply(ew.TanhOp, x)

    def sigmoid(self, x: Value) -> Value:
        """1 / (1 + exp(-x))"""
        return self.apply(ew.SigmoidOp, x)

    # -- control flow

    @contextmanager
    def loop(
        self,
        low: Value | int,
        high: Value | int,
        step: int = 1,
        carried: Sequence[Value] = (),
        axis: str | None = None,
    ) -> Generator[Loop]:
        """
        `with k.loop(0, n, 64, [total]) as loop:` builds `tile.for`; the body ends with `loop.carry(...)` if anything is
        carried, and `loop.results` are the final values. `axis` says what the counter runs along.
        """
        bounds = self.value(low).ssa, self.value(high).ssa
        block = Block(arg_types=[INDEX, *(value.ssa.type for value in carried)])
        arguments = [Value(self, argument) for argument in block.args]
        loop = Loop(arguments[0], arguments[1:])
        with self._inside(block):
            yield loop
            self.insert(structure.YieldOp([value.ssa for value in loop.next_values]))
        op = structure.ForOp(*bounds, step, [value.ssa for value in carried], Region(block))
        if axis is not None:
            op.attributes[ALONG] = StringAttr(axis)
        self.insert(op)
        loop.results = [Value(self, result) for result in op.carried]

    @contextmanager
    def when(self, condition: Value) -> Generator[Block]:
        """`with k.when(c):` builds the branch of a `tile.if`; `with k.otherwise():` right after it the other branch."""
        block = Block()
        with self._inside(block):
            yield block
            self.insert(structure.YieldOp())
        self.insert(structure.IfOp(condition.ssa, Region(block)))

    @contextmanager
    def otherwise(self) -> Generator[Block]:
        """The other branch of the `when` just built."""
        branch = self._block.last_op
        if not isinstance(branch, structure.IfOp) or branch.otherwise is not None:
            raise ValueError("otherwise() must follow when() directly")
        block = Block()
        with self._inside(block):
            yield block
            self.insert(structure.YieldOp())
        then = branch.then
        branch.detach()
        self.insert(structure.IfOp(branch.condition, branch.detach_region(then), Region(block)))
        branch.erase()

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        outside, self._block = self._block, block
        self._constants.append({})
        yield
        self._constants.pop()
        self._block = outside


def number_attribute(number: Number, element: Attribute) -> FloatAttr | IntegerAttr:
    """A Python number as an attribute of an element type; an integer is wrapped to its width."""
    if is_float(element):
        assert isinstance(element, AnyFloat)
        return FloatAttr(float(number), element)
    assert isinstance(element, (IntegerType, IndexType))
    return IntegerAttr(int(number), cast("IntegerType | IndexType", element), truncate_bits=True)


def row_major(sizes: Sequence[Value | int]) -> list[Value | int]:
    """Strides of an array whose last axis is contiguous."""
    strides: list[Value | int] = [1] if sizes else []
    for size in reversed(sizes[1:]):
        strides.insert(0, _product(strides[0], size))
    return strides


def _product(a: Value | int, b: Value | int) -> Value | int:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(a, int):
        return b if a == 1 else b * a
    return a * b


def _other(other: Number | None, view: Value) -> FloatAttr | IntegerAttr | None:
    return None if other is None else number_attribute(other, view.element)
