"""Loops that give a bound: data ends them, and the bound is then the number of their iterations.

Until such a loop is done nobody knows the bound. That nothing before it or inside of it names the bound is the whole
proof that what runs there does not depend on where data ends the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import Operation

from tempo_ir.dialects.loop.leaves import AccessOperation
from tempo_ir.dialects.loop.structure import BufferOperation, ForOp, LoopOperation, ProgramOp
from tempo_ir.dialects.sdg.base import OpError, SdgOp
from tempo_ir.dialects.sdg.symbols import property_symbols
from tempo_ir.dialects.types import shape_of
from tempo_ir.index.expr import Const, Expr, Slice, Sym, free_symbols
from tempo_ir.index.rules import rises


def verify_ending(program: ProgramOp, ending: ForOp) -> str:
    """The bound that a loop gives. Raises OpError where the loop may not, or where the bound is named too early."""
    bound = ending.gives
    assert bound is not None
    if ending.parent is not program.body.block or bound not in program.space.params:
        raise OpError(f"a loop that gives {bound}, a bound of the program, stands in no other loop or guard", ending)
    if ending.range != Slice(Const(0), Sym(bound), 1) or ending.down or ending.until is None:
        raise OpError(f"a loop that gives {bound} runs upwards from 0 to {bound} by 1, until something is true", ending)
    for op in program.body.walk():
        if isinstance(op, ForOp) and op.gives is not None and op is not ending:
            raise OpError(f"a second loop gives {op.gives}: one loop of a program may", op)
        if isinstance(op, BufferOperation):
            verify_room(op, bound)
    for op in before_end(ending):
        if bound in symbols_of(op, ending):
            raise OpError(f"{bound} is known only after the loop that gives it, {op.name} names it before", op)
    return bound


def verify_room(op: BufferOperation, bound: str) -> None:
    """Memory is reserved for the most iterations that there may be: no fewer may need more. Raises OpError."""
    for extent in (*(dim.extent for dim in op.buffer_type.dims), *shape_of(op.buffer_type.row)):
        if isinstance(extent, Expr) and not rises(extent, bound):
            raise OpError(f"the extent {extent} grows as {bound} falls: no memory can be reserved for it", op)


def before_end(ending: ForOp) -> Iterator[Operation]:
    """The operations that run before a loop at the top of a program is done, itself included."""
    block = ending.parent
    assert block is not None
    for op in block.ops:
        yield from op.walk()
        if op is ending:
            return


@dataclass(frozen=True)
class Unknown:
    """The bound that is not known yet where an operation runs that is before the end of the loop that gives it."""

    bound: str = ""
    early: AbstractSet[Operation] = frozenset()

    @staticmethod
    def of(program: ProgramOp) -> Unknown:
        """What is unknown where in a program."""
        ending = program.ending
        if ending is None or ending.gives is None:
            return Unknown()
        return Unknown(ending.gives, frozenset(before_end(ending)))

    def at(self, op: Operation, *names: AbstractSet[str]) -> bool:
        """Whether one of the names is unknown where an operation runs."""
        return any(self.bound in some for some in names) and op in self.early


def symbols_of(op: Operation, ending: ForOp) -> frozenset[str]:
    """The names that an operation uses, types of what it reads and writes included; not those of memory it makes."""
    if isinstance(op, SdgOp):
        return property_symbols(op)
    if not isinstance(op, LoopOperation):
        return frozenset()
    found = frozenset[str]()
    for part, names in op.symbol_uses():
        if op is not ending or part != "range":
            found |= names
    if isinstance(op, AccessOperation):
        for access in (*op.reads, *op.writes):
            found |= free_symbols(tuple(e for e in shape_of(access.type) if not isinstance(e, int)))
    return found
