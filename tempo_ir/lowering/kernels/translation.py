"""From one leaf or kernel of a loop program to a tile kernel and what a launch of it passes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i64
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tempo_ir.dialects import sdg
from tempo_ir.dialects.loop import BodyOperation, BufferAccess, BufferType, FoldOp, SharesOp, YieldOp, enclosing_loops
from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.tile.attributes import PointerType
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.dialects.types import element
from tempo_ir.index import Expr, Space, Sym
from tempo_ir.lowering.formation.row_bodies import RowBody
from tempo_ir.lowering.kernels.axis_classes import Axis, AxisClasses, doubled, reduced_classes, values_of
from tempo_ir.lowering.kernels.axis_names import AxisNames
from tempo_ir.lowering.kernels.blocks import Blocks
from tempo_ir.lowering.kernels.collapse import Body, collapsed
from tempo_ir.lowering.kernels.draws import start_of
from tempo_ir.lowering.kernels.emitters import EMITTERS
from tempo_ir.lowering.kernels.folds import emit_fold
from tempo_ir.lowering.kernels.layout import Array, Layout, array_of
from tempo_ir.lowering.kernels.nests import GridAxis, Sink, write_all
from tempo_ir.lowering.kernels.row_blocks import is_computed_by_rows, write_rows
from tempo_ir.lowering.kernels.scans import write_scan, write_scatter_add
from tempo_ir.lowering.kernels.scopes import ScopedBuilder
from tempo_ir.lowering.kernels.shares import write_shares
from tempo_ir.lowering.kernels.translator import AxisKey, Decisions, Programs, Refine, Source, Translator, Unsupported
from tempo_ir.names import fresh_name

STATUS = "status"
WORDS = 4
"""Of the name of a kernel."""
_PLAIN = frozenset("reshape slice transpose broadcast cast index add sub mul div neg select".split())


@dataclass(frozen=True)
class Translation:
    """A kernel; the expressions that a launch evaluates for its scalars and for the axes of its grid that are open.

    `buffers` numbers the buffers of the leaf in the order of the kernel's pointers. `failures` are the messages of
    its run-time errors: where there are any, the last pointer is to the cells that a loop.check looks at.
    """

    kernel: KernelOp
    scalars: tuple[Expr, ...]
    failures: tuple[str, ...]


def leaf_buffers(leaf: BodyOperation) -> list[SSAValue]:
    """The buffers that a leaf reads and writes, each once, those read first."""
    return list(dict.fromkeys(leaf.operands))


def leaf_key(leaf: BodyOperation) -> Hashable:
    """What the translation of a leaf depends on: leaves of equal keys share a kernel."""
    numbers: dict[SSAValue, int] = {buffer: number for number, buffer in enumerate(leaf_buffers(leaf))}
    accesses = [
        (numbers[access.buffer], access.buffer.type, access.index, access.type)
        for access in (*leaf.reads, *leaf.writes)
    ]
    place = (leaf.point, _counted(leaf)) if _uses_point(leaf) else ()
    return len(leaf.in_indices.data), tuple(accesses), _ops_key(leaf.body.block), place


def _ops_key(block: Block) -> Hashable:
    """The ops of a body up to names, those of its folds too."""
    values: dict[SSAValue, int] = {argument: number for number, argument in enumerate(block.args)}
    ops: list[Hashable] = []
    for op in ops_of(block):
        operands = tuple(values[operand] for operand in op.operands)
        inner = tuple(_ops_key(region.block) for region in op.regions)
        ops.append((op.name, frozenset(op.properties.items()), operands, op.result_types, inner))
        values.update((result, len(values) + number) for number, result in enumerate(op.results))
    return tuple(ops)


def _all_ops(leaf: BodyOperation) -> list[Operation]:
    """The ops of a leaf, those in its folds too."""
    return [op for op in leaf.walk() if op is not leaf and not isinstance(op, YieldOp)]


def _uses_point(leaf: BodyOperation) -> bool:
    return any(isinstance(op, (sdg.RandomOp, sdg.IndexOp, sdg.ArangeOp)) for op in leaf.walk())


def _counted(leaf: BodyOperation) -> tuple[str, ...]:
    return tuple(loop.iterator for loop in enclosing_loops(leaf))


def kernel_key(kernel: KernelOp) -> Hashable:
    """A kernel up to names."""
    values: dict[SSAValue, int] = {}
    return kernel.grid, frozenset(kernel.attributes.items()), _block_key(kernel.body.block, values)


def _block_key(block: Block, values: dict[SSAValue, int]) -> Hashable:
    def number(value: SSAValue) -> int:
        return values.setdefault(value, len(values))

    arguments = tuple((number(argument), argument.type) for argument in block.args)
    ops: list[Hashable] = []
    for op in ops_of(block):
        operands = tuple(map(number, op.operands))
        bodies = tuple(_block_key(region.block, values) for region in op.regions)
        results = tuple((number(result), result.type) for result in op.results)
        ops.append((op.name, frozenset(op.properties.items()), operands, bodies, results))
    return arguments, tuple(ops)


def translate(
    leaf: BodyOperation,
    name: str,
    space: Space,
    layouts: Mapping[SSAValue, Layout],
    blocks: Blocks,
    programs: Programs | None = None,
) -> Translation:
    """The kernel of a leaf; `programs` says what its grid is to be. Raises Unsupported where an op of it has no tile
    form, or not on that grid."""
    decisions = Decisions()
    reads, writes = (
        [array_of(access, layouts[access.buffer]) for access in accesses] for accesses in (leaf.reads, leaf.writes)
    )
    found = RowBody.of(leaf.body.block) if is_computed_by_rows(leaf.body.block) else None
    pairs = [(value, axis) for value, axis in found.rows.items()] if found is not None and found.inner else []
    body = collapsed(leaf, reads, writes, None if programs is None else programs.rows, pairs)
    if programs is not None and programs.rows is not None:
        programs = replace(programs, rows=body.rows)
    while True:
        try:
            return _Attempt(leaf, body, name, space, blocks, decisions, programs).build()
        except Refine as refine:
            decisions.learn(refine)


class _Attempt:
    """One try at building the kernel, with what was learnt before."""

    def __init__(
        self,
        leaf: BodyOperation,
        body: Body,
        name: str,
        space: Space,
        blocks: Blocks,
        decisions: Decisions,
        programs: Programs | None,
    ):
        self.leaf = leaf
        self.body = body
        buffers = leaf_buffers(leaf)
        names = pointer_names(buffers)
        pointers = {names[buffer]: PointerType(_element(buffer)) for buffer in buffers}
        checked = any(map(may_fail, _all_ops(leaf)))
        if checked:
            pointers[STATUS] = PointerType(i64)
        self.builder = ScopedBuilder(name, pointers, [])
        self.names = names
        sources: dict[SSAValue, Source] = {
            argument: self.source(access, array)
            for argument, access, array in zip(body.block.args, leaf.reads, body.reads, strict=True)
        }
        self.translator = Translator(
            self.builder,
            sources,
            EMITTERS,
            blocks,
            decisions,
            [value + start_of(dim) for dim, value in leaf.point],
            {
                loop.iterator: Sym(loop.iterator) + start_of(loop.iterator)
                for loop in enclosing_loops(leaf)
                if loop.iterator in space.names
            },
            self.builder[STATUS] if checked else None,
            emit_fold,
            _shared_axes(body.block),
            programs,
            AxisNames.read(leaf, body.block, body.yielded).of if blocks.powers_of_two else lambda key: None,
        )

    def source(self, access: BufferAccess, array: Array) -> Source:
        """The memory of an access."""
        return Source(self.builder[self.names[access.buffer]], _element(access.buffer), array)

    def build(self) -> Translation:
        """The kernel: every yielded value written where it goes."""
        sinks = [
            Sink(value, self.source(access, array))
            for value, access, array in zip(self.body.yielded, self.leaf.writes, self.body.writes, strict=True)
        ]
        grid = self._write(sinks)
        self.builder.set_grid([axis.extent if isinstance(axis.extent, int) else None for axis in grid])
        open_axes = tuple(axis.extent for axis in grid if not isinstance(axis.extent, int))
        kernel = self.builder.finish(verified=False)
        status = self.translator.status
        if status is not None and not self.translator.failures:  # it has no element in which an error is looked for
            assert isinstance(status.ssa, BlockArgument)
            kernel.body.block.erase_arg(status.ssa)
        return Translation(kernel, (*self.builder.scalars, *open_axes), tuple(self.translator.failures))

    def _write(self, sinks: Sequence[Sink]) -> list[GridAxis]:
        op = sinks[0].value.owner
        if len(sinks) == 1 and isinstance(op, sdg.ScanOp):
            return write_scan(self.translator, self.leaf, sinks[0], op)
        if len(sinks) == 1 and isinstance(op, sdg.ScatterAddOp):
            return write_scatter_add(self.translator, self.leaf, sinks[0], op)
        if isinstance(op, SharesOp):
            return write_shares(self.translator, self.leaf, sinks, op)
        if is_computed_by_rows(self.body.block) and (rows := RowBody.of(self.body.block)) is not None:
            if not self.translator.blocks.row_programs or rows.inner:
                raise Unsupported("it is computed block by block of rows")
            return write_rows(self.translator, self.leaf, sinks, rows)
        return write_all(self.translator, self.leaf, sinks)


def _shared_axes(block: Block) -> dict[AxisKey, Axis]:
    """The reduced axes of a body with folds, with what axis each is."""
    folds = [op for op in block.ops if isinstance(op, FoldOp)]
    if not folds:
        return {}
    classes = AxisClasses.of(block)
    excluded = doubled(classes, values_of(block))
    ops = [op for inner in (block, *(fold.body.block for fold in folds)) for op in inner.ops]
    reduced = {AxisKey(op, n): axis for op in ops for n, axis in reduced_classes(op, classes).items()}
    return {key: axis for key, axis in reduced.items() if axis not in excluded}


def _element(buffer: SSAValue):
    assert isinstance(buffer.type, BufferType)
    return element(buffer.type.row)


def pointer_names(buffers: Sequence[SSAValue]) -> dict[SSAValue, str]:
    """A name for each buffer: its own, made unique."""
    names: dict[SSAValue, str] = {}
    for number, buffer in enumerate(buffers):
        names[buffer] = fresh_name(buffer.name_hint or f"b{number}", {STATUS, *names.values()})
    return names


def kernel_name(*leaves: BodyOperation) -> str:
    """A name that says what the kernel does, and is no function of the C library: `contract_add_tanh`, `exp_kernel`.

    Of many ops those that only move elements, or add and multiply, are left out.
    """
    ops = [op for leaf in leaves for op in _all_ops(leaf)]
    words = dict.fromkeys(op.name.split(".")[1] for op in ops if not isinstance(op, sdg.ConstantOp))
    telling = [word for word in words if word not in _PLAIN]
    names = list(words) if len(words) <= WORDS else (telling or list(words))[:WORDS]
    names = names or ["copy"]
    return "_".join(names) if len(names) > 1 else f"{names[0]}_kernel"
