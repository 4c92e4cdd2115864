"""The steps of loops: what of a body only launches kernels, which a CUDA graph may repeat, and what stands between; the
kernels that compute the scalars of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tempo_ir.dialects import loop
from tempo_ir.index import free_symbols
from tempo_ir.lowering.triton.driver_names import (
    LOCALS,
    SUPPORT,
    parameter_names,
    program_name,
    program_of,
    symbol_names,
)
from tempo_ir.lowering.triton.scalars import TABLE, ScalarTable
from tempo_ir.lowering.triton.style import KernelSource
from tempo_ir.lowering.triton.writer import Names

WORTH_A_GRAPH = 3
"""Launches from which on one graph is less work for the host than they are."""


def inner_operations(op: Operation) -> Iterator[Operation]:
    """The operations of the blocks of an operation."""
    return (inner for region in op.regions for block in region.blocks for inner in block.ops)


def is_idle(op: Operation) -> bool:
    """Whether an operation does nothing but let rows go, which a driver does by the whole buffer."""
    return isinstance(op, loop.FreeOp) or (
        isinstance(op, loop.ForOp | loop.IfOp) and all(map(is_idle, inner_operations(op)))
    )


@dataclass(frozen=True)
class Part:
    """Operations that stand side by side: such as a graph may repeat, or one other."""

    ops: tuple[Operation, ...]
    repeatable: bool

    @property
    def launches(self) -> int:
        """The most launches that there may be."""
        return _launches(self.ops)


def parts(block: Block, table: ScalarTable) -> list[Part]:
    """The operations of a block that do something."""
    found: list[Part] = []
    some = (op for op in block.ops if not isinstance(op, loop.BufferOperation) and not is_idle(op))
    for repeatable, group in groupby(some, lambda op: _is_repeatable(op, table)):
        ops = tuple(group)
        found += [Part(ops, True)] if repeatable else [Part((op,), False) for op in ops]
    return found


def _launches(ops: Iterable[Operation]) -> int:
    """The most launches among operations, of which one side of each guard runs."""
    return sum(
        max(_launches(block.ops) for region in op.regions for block in region.blocks)
        if isinstance(op, loop.IfOp)
        else isinstance(op, loop.LaunchOp)
        for op in ops
    )


def _is_repeatable(op: Operation, table: ScalarTable) -> bool:
    """Whether an operation launches kernels with grids that are the same in each step; checks come after them."""
    match op:
        case loop.LaunchOp():
            grid = {symbol for extent in table.grid(op) for symbol in free_symbols(extent)}
            return not grid & table.iterators
        case loop.IfOp():
            return all(_is_repeatable(inner, table) or is_idle(inner) for inner in inner_operations(op))
        case loop.CheckOp() | loop.AllocOp():
            return True
        case _:
            return False


def scalar_table(module: ModuleOp) -> ScalarTable:
    """The table of a module's program."""
    names = (*SUPPORT, *LOCALS, *parameter_names(module).values(), program_name(program_of(module)))
    return ScalarTable(module, names)


def step_sources(module: ModuleOp) -> list[KernelSource]:
    """The kernels that compute scalars."""
    table, hints = scalar_table(module), symbol_names(module, Names())
    sources: list[KernelSource] = []
    for level in table.levels.values():
        text, parameters, calls = table.kernel_text(level, hints)
        typed = ((f"{TABLE}_ptr", "*i64"), *((name, "i64") for name in parameters))
        what = "scalars" if level.loop is None else f"scalars of a step of {level.loop.iterator}"
        sources.append(KernelSource(level.kernel, text, typed, frozenset(), 1, what, calls=calls))
    return sources
