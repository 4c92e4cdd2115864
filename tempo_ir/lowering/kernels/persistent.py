"""The kernel of a whole loop: its programs run the iterations, each with the kernels of the loop's body in order.

Before, of `loop.for t = 0 to T in programs of 16 rows`, the kernels of two leaves on a grid of rows:
```mlir
tile.kernel @a(%x: !tile.ptr<f32>, %h: !tile.ptr<f32>, %n0: index) grid [8] { ... }        with [1024 * t]
tile.kernel @b(%h: !tile.ptr<f32>, %y: !tile.ptr<f32>, %t: index) grid [8] { ... }         with [t], if t >= 1
```
After:
```mlir
tile.kernel @a_b_over_t(%x: !tile.ptr<f32>, %h: !tile.ptr<f32>, %y: !tile.ptr<f32>, %T: index) grid [8] {
  %p = tile.program_id 0
  tile.for %t = 0 to %T step 1 {
    %n0 = tile.mul %t, 1024
    ... the body of @a
    %c = tile.ge %t, 1
    tile.if %c { ... the body of @b }
  }
}
```
What a launch passed is computed from the counter. Other axes of a grid become loops of the program. Numbers and views
that do not vary stand before the loops. Values go from one kernel to the next through memory, where a barrier stands
between a write and what reads it (`triton.hazards`); tile-forward-stores keeps them in registers, and what is read in
all iterations.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Pure

from tempo_ir.dialects.loop import BodyOperation, BufferType, ForOp, IfOp
from tempo_ir.dialects.tile import structure
from tempo_ir.dialects.tile.attributes import ALONG, PointerType
from tempo_ir.dialects.tile.builder import Value
from tempo_ir.dialects.types import element
from tempo_ir.index import Const, Expr, as_expr, simplify, substitute
from tempo_ir.lowering.kernels.scopes import ScopedBuilder, name_axis
from tempo_ir.lowering.kernels.translation import Translation, leaf_buffers, pointer_names
from tempo_ir.lowering.kernels.translator import Unsupported


@dataclass(frozen=True)
class Persistent:
    """The kernel of a loop, the buffers that its launch passes, and the scalars, those of its grid last."""

    kernel: structure.KernelOp
    buffers: tuple[SSAValue, ...]
    scalars: tuple[Expr, ...]


def persistent_kernel(loop: ForOp, name: str, members: Mapping[BodyOperation, Translation]) -> Persistent:
    """The kernel of a loop, of the kernels of its leaves; with programs of some rows they have a grid of these.

    Raises Unsupported where they have another.
    """
    buffers = tuple(dict.fromkeys(buffer for leaf in members for buffer in leaf_buffers(leaf)))
    names = pointer_names(buffers)
    builder = ScopedBuilder(name, {names[buffer]: PointerType(_element(buffer)) for buffer in buffers}, [])
    pointers = {buffer: builder[names[buffer]].ssa for buffer in buffers}
    copier = _Copier(builder)
    grid: tuple[Expr, ...] = ()
    if loop.programs:
        grid = _grid_of_rows(members.values())
        copier.program = builder.program_id(0).ssa
        copier.depths[copier.program] = 0
    _Iterations(copier, members, pointers).loop(loop)
    open_axes = tuple(extent for extent in grid if not isinstance(extent, Const))
    builder.set_grid([extent.value if isinstance(extent, Const) else None for extent in grid])
    return Persistent(builder.finish(), buffers, (*builder.scalars, *open_axes))


def _element(buffer: SSAValue) -> Attribute:
    assert isinstance(buffer.type, BufferType)
    return element(buffer.type.row)


def _grid(translation: Translation) -> list[Expr]:
    """How many programs the grid of a kernel has along each axis."""
    own = sum(not isinstance(argument.type, PointerType) for argument in translation.kernel.body.block.args)
    open_axes = iter(translation.scalars[own:])
    return [as_expr(extent) if extent >= 0 else next(open_axes) for extent in translation.kernel.grid.data]


def _grid_of_rows(members: Iterable[Translation]) -> tuple[Expr, ...]:
    """How many programs there are: as all kernels say that write anything."""
    found = dict.fromkeys(tuple(_grid(member)) for member in members)
    grids = [grid for grid in found if grid]
    if len(grids) != 1 or len(grids[0]) != 1:
        raise Unsupported("its kernels have rows of several counts")
    return grids[0]


@dataclass
class _Iterations:
    """The loops and guards of a body, and the kernels in them."""

    copier: _Copier
    members: Mapping[BodyOperation, Translation]
    pointers: Mapping[SSAValue, SSAValue]
    known: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    """What the iterators of the open loops are."""

    def loop(self, op: ForOp) -> None:
        """All iterations of a loop."""
        builder = self.copier.builder
        lower, upper = self.read(op.lower), self.read(op.upper)
        low, high = (Const(0), simplify(upper - lower)) if op.down else (lower, upper)
        with self.copier.opened(), builder.loop(builder.index(low), builder.index(high)) as loop:
            loop.index.named(op.iterator if not op.down else f"{op.iterator}_step")
            counter = builder.counter(loop.index, low, high, op.iterator)
            at = simplify(upper - 1 - counter) if op.down else counter
            replace(self, known={**self.known, op.iterator: at}).block(op.body.block)

    def block(self, block: Block) -> None:
        """The operations of a block; memory that it makes and lets go stands outside."""
        for op in block.ops:
            match op:
                case BodyOperation():
                    self.member(op)
                case ForOp():
                    self.loop(op)
                case IfOp():
                    self.guard(op)
                case _:
                    pass

    def guard(self, op: IfOp) -> None:
        """A guard."""
        builder = self.copier.builder
        condition = builder.condition(substitute(op.condition, self.known))
        with self.copier.opened(), builder.when(condition):
            self.block(op.then.block)
        if op.otherwise is not None and op.otherwise.block.ops:
            with self.copier.opened(), builder.otherwise():
                self.block(op.otherwise.block)

    def member(self, leaf: BodyOperation) -> None:
        """The kernel of a leaf, with what a launch would pass; axes of its grid beside the rows are loops."""
        translation, copier = self.members[leaf], self.copier
        pointers = [self.pointers[buffer] for buffer in leaf_buffers(leaf)]
        arguments = translation.kernel.body.block.args
        for argument, pointer in zip(arguments, pointers, strict=False):
            copier.know(argument, pointer, 0)
        for argument, scalar in zip(arguments[len(pointers) :], translation.scalars, strict=False):
            self.scalar(argument, self.read(scalar))
        rows = 0 if copier.program is None else 1
        self.programs(translation.kernel, [self.read(extent) for extent in _grid(translation)[rows:]], rows, {})

    def programs(
        self, kernel: structure.KernelOp, grid: Sequence[Expr], axis: int, places: Mapping[int, SSAValue]
    ) -> None:
        """The programs of a kernel along the axes of its grid from `axis` on, one after the other."""
        copier, builder = self.copier, self.copier.builder
        if not grid:
            if copier.program is not None:
                places = {**places, 0: copier.program}
            copier.programs = places
            copier.block(kernel.body.block)
            return
        with copier.opened(), builder.loop(0, builder.index(grid[0])) as loop:
            copier.depths[loop.index.ssa] = builder.level
            self.programs(kernel, grid[1:], axis + 1, {**places, axis: loop.index.ssa})

    def scalar(self, argument: SSAValue, expression: Expr) -> None:
        """A scalar of a launch, from the counters."""
        builder = self.copier.builder
        expression = builder.simplify(expression)
        self.copier.know(argument, builder.index(expression).ssa, builder.depth(expression))

    def read(self, expression: Expr) -> Expr:
        """An expression of the loop, over the counters of the kernel."""
        return substitute(expression, self.known)


@dataclass
class _Copier:
    """Copies the bodies of kernels, each op as far outside as what it is made of allows, and equal ones once."""

    builder: ScopedBuilder
    program: SSAValue | None = None
    programs: Mapping[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The program of the kernel that is copied, per axis of its grid."""
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    scopes: list[dict[Hashable, Sequence[SSAValue]]] = field(default_factory=lambda: [{}])

    @contextmanager
    def opened(self) -> Generator[None]:
        """A scope of the builder is open."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    def know(self, old: SSAValue, new: SSAValue, depth: int) -> None:
        """What a value of the body is in the copy, and within how many scopes it varies."""
        self.values[old] = new
        self.depths[new] = depth

    def block(self, block: Block) -> None:
        """All ops of a block, without its terminator."""
        for op in block.ops:
            match op:
                case structure.YieldOp():
                    pass
                case structure.ProgramIdOp():
                    program = self.programs[op.axis.value.data]
                    self.values[op.result] = program
                    if (axis := _along(op)) is not None:
                        name_axis(Value(self.builder, program), axis)
                case structure.ForOp():
                    self.loop(op)
                case structure.IfOp():
                    self.guard(op)
                case _:
                    self.op(op)

    def loop(self, op: structure.ForOp) -> None:
        """A loop of a kernel."""
        builder = self.builder
        start = [Value(builder, self.values[value]) for value in op.init]
        low, high = (Value(builder, self.values[value]) for value in (op.low, op.high))
        with self.opened(), builder.loop(low, high, op.step_size, start, _along(op)) as loop:
            inside = [loop.index, *loop.carried]
            for old, new in zip(op.body.block.args, inside, strict=True):
                new.ssa.name_hint = old.name_hint
                self.know(old, new.ssa, builder.level)
            self.block(op.body.block)
            loop.carry(*(Value(builder, self.values[value]) for value in op.yielded))
        for old, new in zip(op.results, loop.results, strict=True):
            new.ssa.name_hint = old.name_hint
            self.know(old, new.ssa, builder.level)

    def guard(self, op: structure.IfOp) -> None:
        """A branch of a kernel."""
        condition = Value(self.builder, self.values[op.condition])
        with self.opened(), self.builder.when(condition):
            self.block(op.then.block)
        if op.otherwise is not None:
            with self.opened(), self.builder.otherwise():
                self.block(op.otherwise.block)

    def op(self, op: Operation) -> None:
        """An op without a body."""
        operands = [self.values[operand] for operand in op.operands]
        depth = max((self.depths[operand] for operand in operands), default=0)
        known = None
        key = op.name, tuple(operands), frozenset(op.properties.items()), tuple(op.result_types), _along(op)
        if not op.has_trait(Pure):
            depth = self.builder.level
        else:
            known = next((scope[key] for scope in self.scopes[: depth + 1] if key in scope), None)
        if known is None:
            fresh = type(op).create(
                operands=operands, result_types=op.result_types, properties=op.properties, attributes=op.attributes
            )
            fresh.location = op.location
            for old, new in zip(op.results, fresh.results, strict=True):
                new.name_hint = old.name_hint
            with self.builder.at(depth):
                self.builder.insert(fresh)
            known = fresh.results
            if op.has_trait(Pure):
                self.scopes[depth][key] = known
        for old, new in zip(op.results, known, strict=True):
            self.know(old, new, depth)


def _along(op: Operation) -> str | None:
    """The axis that an op says it runs along."""
    axis = op.attributes.get(ALONG)
    return axis.data if isinstance(axis, StringAttr) else None
