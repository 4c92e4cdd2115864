"""How the values of a kernel are written where they are used: by name, as a number, or as the expression itself."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import ReduceKind, element_of, shape_of
from tempo_ir.lowering.triton.addresses import constant_of, loop_of
from tempo_ir.lowering.triton.axes import WHOLE, Axis, KernelAxes, Lane, along
from tempo_ir.lowering.triton.expressions import Call, computed_type, is_plain, number_text, scalar_number
from tempo_ir.lowering.triton.library_text import LIBRARY_NAMES
from tempo_ir.lowering.triton.writer import RESERVED, Lines, Names, identifier, is_composite

_HINTS: Mapping[type[Operation], str] = MappingProxyType(
    {
        structure.ProgramIdOp: "program",
        memory.GatherOp: "rows",
        shape.ConstOp: "filled",
        shape.SplatOp: "filled",
        shape.BroadcastOp: "stretched",
        shape.ExpandOp: "expanded",
        shape.IotaOp: "positions",
        shape.InRangeOp: "inside",
        shape.TransOp: "transposed",
        shape.ScanOp: "running",
        shape.DotOp: "product",
        ew.NegOp: "negated",
        ew.AbsOp: "magnitude",
        ew.AddOp: "sum_of",
        ew.SubOp: "difference",
        ew.MulOp: "product",
        ew.DivOp: "quotient",
        ew.FloorDivOp: "quotient",
        ew.ModOp: "rest",
        ew.PowOp: "powers",
        ew.MaxOp: "greater",
        ew.MinOp: "lesser",
        ew.EqOp: "equal",
        ew.NeOp: "different",
        ew.LtOp: "is_below",
        ew.LeOp: "at_most",
        ew.GtOp: "is_above",
        ew.GeOp: "at_least",
        ew.AndOp: "both",
        ew.OrOp: "either",
        ew.XorOp: "differing",
        ew.NotOp: "inverse",
        ew.SelectOp: "chosen",
        ew.CastOp: "converted",
    }
)
"""What values without a name are called."""
_REDUCED: Mapping[ReduceKind, str] = MappingProxyType(
    {
        ReduceKind.SUM: "total",
        ReduceKind.PROD: "product",
        ReduceKind.MAX: "greatest",
        ReduceKind.MIN: "least",
        ReduceKind.AND: "every",
        ReduceKind.OR: "some",
        ReduceKind.ARGMAX: "place",
        ReduceKind.ARGMIN: "place",
    }
)
_CARRIED: Mapping[type[Operation], str] = MappingProxyType(
    {shape.DotOp: "total", ew.AddOp: "total", ew.MaxOp: "greatest", ew.MinOp: "least", ew.MulOp: "product"}
)
"""What a value is called that a loop carries on, by the op that makes the next one."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Which indices, `shift` further on, lie inside: those below `size`; `natural` says that none is below 0."""

    size: int | SSAValue
    shift: int = 0
    natural: bool = True


class Values:
    """The names of one kernel's values, and what of the library it uses."""

    def __init__(self, kernel: structure.KernelOp):
        self.kernel = kernel
        self.names = Names(reserved=(*LIBRARY_NAMES, identifier_of(kernel)))
        self.library: list[str] = []
        self.lines = Lines()
        self.axes = KernelAxes(kernel)
        self.blocks: dict[str, int] = {}
        """The block sizes by name, in the order of their use."""
        self._blocks: dict[Axis, str] = {}
        self._own: dict[Axis, str] = {}
        self._lanes: dict[Lane, str] = {}
        self.limits: dict[Lane, list[Limit]] = {}
        """The masks along axes that are the same wherever the indices are known."""
        self._written: dict[SSAValue, str] = {}
        self._shared: list[dict[str, str]] = [{}]

    def error(self, message: str, op: Operation | None = None) -> DiagnosticException:
        """An error about the kernel, that carries the op."""
        error = DiagnosticException(f"kernel @{self.kernel.sym_name.data}: {message}")
        error.op = self.kernel if op is None else op  # pyright: ignore[reportAttributeAccessIssue]
        return error

    # -- definitions

    def hint(self, value: SSAValue) -> str:
        """What to call a value: by its own name, the buffer that it is loaded from or stored to, or what it is."""
        if value.name_hint is not None:
            return value.name_hint
        owner = value.owner
        if isinstance(owner, Block):
            return self._argument_hint(value, owner)
        if isinstance(owner, (memory.LoadOp, memory.GatherOp)):
            return owner.view_op.pointer.name_hint or "loaded"
        if isinstance(owner, shape.ReduceOp):
            return _REDUCED[owner.kind.data]
        if (name := along(value)) is not None:
            return name if isinstance(owner, structure.ProgramIdOp) else f"{name}_start"
        uses = list(value.uses)
        if len(uses) == 1 and isinstance(store := uses[0].operation, (memory.WriteOp, memory.IndexedWriteOp)):
            return store.view_op.pointer.name_hint or "stored"
        if isinstance(value.type, IndexType) and isinstance(owner, ew.BinaryOp):
            return "start"
        return _HINTS.get(type(owner), owner.name.split(".")[-1])

    def _argument_hint(self, value: SSAValue, block: Block) -> str:
        """A counter goes by its axis; a carried value by what is done to it."""
        if value is block.args[0]:
            lane = next((lane for lane in self.axes.lanes() if lane.start is value), None)
            return along(value) or "i" if lane is None else f"{self.own_name(lane.axis)}_start"
        loop = block.parent_op()
        assert isinstance(loop, structure.ForOp)
        following = loop.yielded[list[SSAValue](block.args).index(value) - 1].owner
        return _CARRIED.get(type(following), "carried") if isinstance(following, Operation) else "carried"

    def define(self, value: SSAValue) -> str:
        """A new name for a value."""
        return self.names.new(value, self.hint(value))

    def write(self, value: SSAValue, text: str) -> None:
        """Let a value be written as an expression wherever it is used."""
        self._written[value] = text

    def is_written(self, value: SSAValue) -> bool:
        """Whether a value is written as an expression where it is used."""
        return value in self._written

    def known(self, text: str) -> str | None:
        """The name of an expression that a line before has."""
        return next((scope[text] for scope in self._shared if text in scope), None)

    def shared(self, text: str, hint: str) -> str:
        """The name of an expression, which is written on a line of its own where no line before has it."""
        if (known := self.known(text)) is not None:
            return known
        name = self._shared[-1][text] = self.names.unique(hint)
        self.lines.add(f"{name} = {text}")
        return name

    def forget(self, name: str) -> None:
        """What was written with a name means another value from here on."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        for scope in self._shared:
            for text in [text for text in scope if word.search(text)]:
                del scope[text]

    @contextmanager
    def block(self, header: str) -> Generator[None]:
        """The lines below `for ...:` or `if ...:`; what is shared there is not known after."""
        self._shared.append({})
        with self.lines.block(header):
            yield
        self._shared.pop()

    def call(self, function: Call, *arguments: str) -> str:
        """A call; what it needs of the library is noted."""
        if function.library and function.function not in self.library:
            self.library.append(function.function)
        return f"{function.function}({', '.join(arguments)})"

    # -- axes

    def own_name(self, axis: Axis) -> str:
        """The name of an axis, that nothing else in the kernel has."""
        root = self.axes.find(axis)
        if root not in self._own:
            name = identifier(self.axes.names[root])
            taken = name in (self.names[argument] for argument in self.kernel.body.block.args)
            self._own[root] = self.names.unique(f"{name}s" if taken else name)
        return self._own[root]

    def block_size(self, axis: Axis) -> str:
        """The name of the extent of an axis. Raises DiagnosticException for one that is no power of two."""
        root = self.axes.find(axis)
        value, number = root
        extent = shape_of(value)[number]
        if extent & (extent - 1):
            raise self.error(
                f"Triton needs tile extents that are powers of two, not {extent}; lower it for a GPU, "
                "as by loop-lower-kernels{target=sm_80}"
            )
        if extent == 1:
            return "1"
        if root not in self._blocks:
            name = self.axes.names[root]
            wanted = "BLOCK" if name == WHOLE else f"BLOCK_{identifier(name).upper()}"
            self._blocks[root] = self.names.unique(wanted)
            self.blocks[self._blocks[root]] = extent
        return self._blocks[root]

    def extents(self, value: SSAValue) -> str:
        """The shape of a tile."""
        sizes = [self.block_size((value, axis)) for axis in range(len(shape_of(value)))]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    def define_lane(self, lane: Lane) -> None:
        """A line for the indices along an axis, and one for each mask along it that is asked for later."""
        if lane in self._lanes:
            return
        own = self.own_name(lane.axis)
        name = self._lanes[lane] = own if own not in self._lanes.values() else self.names.unique(own)
        self.lines.add(f"{name} = {self._lane_text(lane)}")
        for limit in self.limits.get(lane, ()):
            self.inside(lane, limit)

    def lane(self, lane: Lane) -> str:
        """The name of the indices along an axis; they have a line here if they had none before."""
        return self._lanes.get(lane) or self.shared(self._lane_text(lane), self.axes.names[lane.axis])

    def _lane_text(self, lane: Lane) -> str:
        start = "" if lane.start is None else f"{self.bare(lane.start)} + "
        return f"{start}tl.arange(0, {self.block_size(lane.axis)})"

    def inside(self, lane: Lane, limit: Limit) -> str:
        """The mask of the indices along an axis that lie below a limit."""
        name = self.lane(lane)
        place = f"{name} + {limit.shift}" if limit.shift > 0 else f"{name} - {-limit.shift}" if limit.shift else name
        size = str(limit.size) if isinstance(limit.size, int) else self.use(limit.size)
        below = f"{place} < {size}"
        return self.shared(below if limit.natural else f"({place} >= 0) & ({below})", f"inside_{name}")

    def places(self, axis: Axis) -> str:
        """`0, 1, ...` along an axis of a tile."""
        root = self.axes.find(axis)
        value, number = root
        return self.lane(Lane(root, None, shape_of(value)[number]))

    # -- uses

    def use(self, value: SSAValue) -> str:
        """The name of a value; scalar constants are numbers, which take the type of what they meet."""
        text = self.bare(value)
        return f"({text})" if value in self._written and is_composite(text) else text

    def bare(self, value: SSAValue) -> str:
        """As `use`, where an expression needs no parentheses."""
        literal = literal_of(value)
        if literal is not None:
            return literal
        return self._written[value] if value in self._written else self.names[value]

    def typed(self, value: SSAValue) -> str:
        """As `use`, with the type written where Triton would give the number another one."""
        element = element_of(value)
        return self.use(value) if literal_of(value) is None or is_plain(element) else self.scalar(value)

    def scalar(self, value: SSAValue) -> str:
        """As `use`, numbers always as scalars of their type."""
        literal = literal_of(value)
        return self.use(value) if literal is None else filled("()", literal, element_of(value))

    def cast(self, value: SSAValue, kind: str) -> str:
        """The value converted to a Triton type."""
        if _is_counted(value):  # in Triton's interpreter a counter is a Python number
            return f"tl.cast({self.use(value)}, {kind})"
        return f"{self.scalar(value)}.to({kind})"


def _is_counted(value: SSAValue) -> bool:
    """Whether a value is made of counters of loops, and numbers, alone."""
    if loop_of(value) is not None:
        return True
    op = value.owner
    if not isinstance(op, ew.BinaryOp):
        return False
    numbers = [constant_of(operand) is not None for operand in op.operands]
    return not all(numbers) and all(
        number or _is_counted(operand) for number, operand in zip(numbers, op.operands, strict=True)
    )


def identifier_of(kernel: structure.KernelOp) -> str:
    """The name of a kernel's function, which is none that its file has already."""
    name = identifier(kernel.sym_name.data)
    return f"{name}_kernel" if name in LIBRARY_NAMES or name in RESERVED else name


def literal_of(value: SSAValue) -> str | None:
    """A scalar constant as a number; None for any other value."""
    number = scalar_number(value)
    return None if number is None else number_text(number, element_of(value))


def filled(extents: str, value: str, element: Attribute) -> str:
    """A tile, or a scalar of known type, filled with a value."""
    kind = computed_type(element)
    if extents != "()" and value in ("0", "0.0"):
        return f"tl.zeros({extents}, {kind})"
    return f"tl.full({extents}, {value}, {kind})"
