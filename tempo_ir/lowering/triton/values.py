"""How the values of a kernel are written where they are used: by name, or as a number."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import element_of, shape_of
from tempo_ir.lowering.triton.addresses import loop_of
from tempo_ir.lowering.triton.expressions import Call, computed_type, is_plain, number_of, number_text
from tempo_ir.lowering.triton.library_text import LIBRARY_NAMES
from tempo_ir.lowering.triton.writer import RESERVED, Lines, Names, identifier

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
        ew.AddOp: "sum_of",
        ew.SubOp: "difference",
        ew.MulOp: "product",
        ew.DivOp: "quotient",
        ew.SelectOp: "chosen",
        ew.CastOp: "converted",
    }
)
"""What values without a name are called."""


class Values:
    """The names of one kernel's values, and what of the library it uses."""

    def __init__(self, kernel: structure.KernelOp):
        self.kernel = kernel
        self.names = Names(reserved=(*LIBRARY_NAMES, identifier_of(kernel)))
        self.library: list[str] = []
        self.lines = Lines()
        self._shared: list[dict[str, str]] = [{}]
        self.ranges: dict[int, str] = {}

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
            return "i" if value is owner.args[0] else "carried"
        if isinstance(owner, (memory.LoadOp, memory.GatherOp)):
            return owner.view_op.pointer.name_hint or "loaded"
        uses = list(value.uses)
        if len(uses) == 1 and isinstance(store := uses[0].operation, (memory.WriteOp, memory.IndexedWriteOp)):
            return store.view_op.pointer.name_hint or "stored"
        if isinstance(value.type, IndexType) and isinstance(owner, ew.BinaryOp):
            return "start"
        return _HINTS.get(type(owner), owner.name.split(".")[-1])

    def define(self, value: SSAValue) -> str:
        """A new name for a value."""
        return self.names.new(value, self.hint(value))

    def range(self, extent: int) -> str:
        """The name of `0, 1, ..., extent - 1`. Raises DiagnosticException for an extent that is no power of two."""
        if extent & (extent - 1):
            raise self.error(
                f"Triton needs tile extents that are powers of two, not {extent}; lower it for a GPU, "
                "as by loop-lower-kernels{target=sm_80}"
            )
        if extent not in self.ranges:
            self.ranges[extent] = self.names.unique(f"range_{extent}")
        return self.ranges[extent]

    def shared(self, text: str, hint: str) -> str:
        """The name of an expression, which is written on a line of its own where no line before has it."""
        for scope in self._shared:
            if text in scope:
                return scope[text]
        name = self._shared[-1][text] = self.names.unique(hint)
        self.lines.add(f"{name} = {text}")
        return name

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

    # -- uses

    def use(self, value: SSAValue) -> str:
        """The name of a value; scalar constants are numbers, which take the type of what they meet."""
        literal = literal_of(value)
        return self.names[value] if literal is None else literal

    def typed(self, value: SSAValue) -> str:
        """As `use`, with the type written where Triton would give the number another one."""
        element = element_of(value)
        return self.use(value) if literal_of(value) is None or is_plain(element) else self.scalar(value)

    def scalar(self, value: SSAValue) -> str:
        """As `use`, numbers always as scalars of their type."""
        return (
            self.use(value) if literal_of(value) is None else filled("()", literal_of(value) or "0", element_of(value))
        )

    def cast(self, value: SSAValue, kind: str) -> str:
        """The value converted to a Triton type."""
        if loop_of(value) is not None:  # in Triton's interpreter a counter is a Python number
            return f"tl.cast({self.use(value)}, {kind})"
        return f"{self.scalar(value)}.to({kind})"


def identifier_of(kernel: structure.KernelOp) -> str:
    """The name of a kernel's function, which is none that its file has already."""
    name = identifier(kernel.sym_name.data)
    return f"{name}_kernel" if name in LIBRARY_NAMES or name in RESERVED else name


def literal_of(value: SSAValue, element: Attribute | None = None) -> str | None:
    """A scalar constant as a number, converted to `element` where that is given; None for any other value."""
    if not isinstance(value.owner, shape.ConstOp) or shape_of(value):
        return None
    return number_text(number_of(value.owner.number, element))


def filled(extents: str, value: str, element: Attribute) -> str:
    """A tile, or a scalar of known type, filled with a value."""
    return f"tl.full({extents}, {value}, {computed_type(element)})"
