"""loop-lower-kernels: every leaf and every kernel of a loop program becomes a tile kernel and a launch of it.

Before:
```mlir
loop.compute at (t = t) ins(%a = %x[t], %b = %h[t - 1]) outs(%h[t]) {
  %r = sdg.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  loop.yield %r : tensor<16xf32>
}
```
After:
```mlir
loop.launch @add(%x, %h)[16 * t, 16 * t - 16]
...
tile.kernel @add(%x: !tile.ptr<f32>, %h: !tile.ptr<f32>, %n0: index, %n1: index) grid [] { ... }
```
The scalars of a launch are the kernel's scalar arguments, then the extents of the axes of its grid that it leaves
open. Reshapes of what a leaf computes element by element become those of what it reads (`kernels/reshaped_reads.py`).
Equal kernels (of equal layers, of one leaf at several indices) are one. On cpu those of a loop that reads more
than caches hold are marked: `tile.kernel @add(...) grid [] attributes {streams}`, and products of one whose weights
stay in a cache near by, `attributes {near}` (`kernels/footprint.py`); what a loop's kernel may know of the next
launch is marked too (`kernels/successive.py`), and pointers that may be one (`kernels/donated.py`). A leaf without a
tile form stays as it is where the target can call the host (cpu), or where a library has it (a sort); elsewhere it is
refused. Where a kernel may fail, a loop.check follows the launch. For a GPU two more steps belong to it,
`loop-split-softmax` before and `loop-join-siblings` after.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.loop import (
    AllocOp,
    BodyOperation,
    BufferOperation,
    BufferType,
    CheckOp,
    ForOp,
    LaunchOp,
    ProgramOp,
    enclosing_loops,
)
from tempo_ir.dialects.loop.checks import status_type
from tempo_ir.dialects.loop.ending import verify_ending
from tempo_ir.dialects.loop.transfers import is_copied
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.tile.attributes import IntegersAttr
from tempo_ir.dialects.tile.shape import DotOp
from tempo_ir.dialects.tile.structure import NEAR, SHARES, STREAMS, KernelOp
from tempo_ir.index.expr import Index
from tempo_ir.lowering.kernels.blocks import TARGETS
from tempo_ir.lowering.kernels.donated import shared_pointers
from tempo_ir.lowering.kernels.footprint import where_read
from tempo_ir.lowering.kernels.layout import Layout, Most, most_of
from tempo_ir.lowering.kernels.library import library_op
from tempo_ir.lowering.kernels.literals import Literals
from tempo_ir.lowering.kernels.loop_block_queries import block_queries
from tempo_ir.lowering.kernels.loop_join_siblings import join_siblings
from tempo_ir.lowering.kernels.loop_peel_starts import peel_starts
from tempo_ir.lowering.kernels.loop_split_rows import split_rows
from tempo_ir.lowering.kernels.loop_split_softmax import split_softmax
from tempo_ir.lowering.kernels.named_points import name_points
from tempo_ir.lowering.kernels.naming import name_pointers
from tempo_ir.lowering.kernels.orders import order_axes
from tempo_ir.lowering.kernels.persistent import Persistent, persistent_kernel
from tempo_ir.lowering.kernels.persistent_check import OtherRowsTouched, check_rows
from tempo_ir.lowering.kernels.reshaped_reads import reshape_reads
from tempo_ir.lowering.kernels.successive import Succession, mark_advances, with_turns
from tempo_ir.lowering.kernels.translation import (
    Translation,
    kernel_key,
    kernel_name,
    leaf_buffers,
    leaf_key,
    translate,
)
from tempo_ir.lowering.kernels.translator import Programs, Unsupported
from tempo_ir.lowering.persistence.rows import NoRows, leaves_of, rows_of
from tempo_ir.names import fresh_name
from tempo_ir.passes.remarks import remark
from tempo_ir.passes.utilities import refuse


@dataclass(frozen=True)
class LoopLowerKernelsPass(ModulePass):
    """Leaves and kernels to tile kernels and launches; of a GPU those that may are made one, unless `join` is false."""

    name = "loop-lower-kernels"
    target: str = "cpu"
    join: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_kernels(op, self.target, join=self.join)


def lower_kernels(
    module: ModuleOp,
    target: str,
    made: Callable[[KernelOp], None] | None = None,
    *,
    join: bool = True,
    peel: bool = True,
) -> None:
    """Lower a module in place; each kernel is handed to `made` as soon as it is there, before it stands in the module
    and its pointers have the names that suit all launches. `prepare` comes before, without loop-peel-starts unless
    `peel`; for a GPU loop-join-siblings after, with `join`.

    Raises PassFailedException for a target that there is not, and a leaf that cannot run there.
    """
    if target not in TARGETS:
        raise PassFailedException(f"unknown target '{target}'; use one of {', '.join(sorted(TARGETS))}")
    names: set[str] = set()
    for program in [program for program in module.ops if isinstance(program, ProgramOp)]:
        blocked = prepare(program, target, peel=peel)
        order_axes(program)
        places = where_read(program) if target == "cpu" else dict[BodyOperation, str]()
        lowering = _Lowering(program, target, names, made, blocked, places)
        literals = Literals(program)
        leaves = [leaf for leaf in program.operations() if isinstance(leaf, BodyOperation)]
        leaves = [literals.separate(leaf) for leaf in leaves]
        for leaf in leaves:
            reshape_reads(leaf.body.block)
        gone: set[BodyOperation] = set()
        for loop in [loop for loop in program.loops() if loop.programs is not None]:
            gone |= lowering.persist(loop)
        for leaf in [leaf for leaf in leaves if leaf not in gone]:
            lowering.lower(leaf)
        for loop in blocked.values():
            loop.erase()
        if program.ending is not None:
            verify_ending(program, program.ending)  # no pass has let it be named where it is not known
        name_points(program)
        kernels = {each.kernel.sym_name.data: each.kernel for each in lowering.kernels.values()}
        kernels |= {kernel.sym_name.data: kernel for kernel in lowering.persistent.values()}
        if join:
            join_siblings(program, kernels, target)
        names |= kernels.keys()
        launches = [inner for inner in program.operations() if isinstance(inner, LaunchOp)]
        used = {launch.kernel.root_reference.data for launch in launches}
        kernels = {name: kernel for name, kernel in kernels.items() if name in used}
        name_pointers(launches, kernels)
        module.body.block.add_ops(kernels.values())


def prepare(program: ProgramOp, target: str, *, peel: bool = True) -> dict[BodyOperation, ForOp]:
    """Rewrite the leaves of a program for kernels of a target: each is one launch from then on. Gives those that are
    all steps of a loop, with the loop that each stands for."""
    split_softmax(program, TARGETS[target])
    blocked = block_queries(program) if target == "cpu" else {}
    split_rows(program, TARGETS[target])
    if target == "cpu" and peel:
        peel_starts(program)
    return blocked


@dataclass
class _Lowering:
    program: ProgramOp
    target: str
    names: set[str]
    made: Callable[[KernelOp], None] | None
    blocked: dict[BodyOperation, ForOp]
    """Kernels of all steps of a loop, with the loops that they stand for."""
    places: dict[BodyOperation, str]
    """Of some leaves where their operands come from, as the attribute of their kernels says it."""
    translations: dict[Hashable, tuple[Translation, ...]] = field(
        default_factory=dict[Hashable, tuple[Translation, ...]]
    )
    """The translation of leaves of a key; none where Python runs them."""
    layouts: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])
    successions: dict[ForOp, Succession | None] = field(default_factory=dict[ForOp, Succession | None])
    kernels: dict[Hashable, Translation] = field(default_factory=dict[Hashable, Translation])
    persistent: dict[Hashable, KernelOp] = field(default_factory=dict[Hashable, KernelOp])
    """The kernels of whole loops."""
    status: SSAValue | None = None

    @cached_property
    def most(self) -> Most:
        """The bound that data decides, and how much room there is for it."""
        return most_of(self.program)

    def lower(self, leaf: BodyOperation) -> None:
        """Replace a leaf by the launch of its kernel."""
        self._lay_out(leaf)
        buffers = leaf_buffers(leaf)
        succession = self._succession(leaf) if self.target == "cpu" else None
        key = leaf_key(leaf), self.places.get(leaf), succession, shared_pointers(leaf)
        found = self.translations.get(key)
        if found is None:
            found = self.translations[key] = self._translated(leaf, succession)
        if not found:
            self._lower_steps(leaf)
            return
        (translation,) = found
        block = leaf.parent
        assert block is not None
        if translation.failures:
            buffers = [*buffers, self._status()]
        launch = LaunchOp(translation.kernel.sym_name, buffers, translation.scalars, self._touched(leaf))
        launch.location = leaf.location
        block.insert_op_before(launch, leaf)
        if translation.failures:
            check = CheckOp(self._status(), translation.failures, leaf.point)
            check.location = leaf.location
            block.insert_op_before(check, leaf)
        leaf.detach()
        leaf.erase()

    def _succession(self, leaf: BodyOperation) -> Succession | None:
        """What the innermost loop round a leaf says of the launches one after the other."""
        loops = enclosing_loops(leaf)
        if not loops:
            return None
        if loops[-1] not in self.successions:
            self.successions[loops[-1]] = Succession.of(loops[-1])
        return self.successions[loops[-1]]

    def _lower_steps(self, leaf: BodyOperation) -> None:
        """Where a kernel of all steps has no tile form put the loop back, whose kernel may have one."""
        loop, block = self.blocked.pop(leaf, None), leaf.parent
        if loop is None or block is None:
            return
        block.insert_op_before(loop, leaf)
        self.successions.clear()  # there is a loop more
        leaf.detach()
        leaf.erase()
        for inner in leaves_of(loop.body.block):
            self.lower(inner)

    def _touched(self, leaf: BodyOperation) -> list[tuple[SSAValue, Index, bool]] | None:
        """The rows that a leaf touches of buffers that are copied to the host or back, if there are such buffers."""
        touched = [(access.buffer, access.index, False) for access in leaf.reads]
        touched += [(access.buffer, access.index, True) for access in leaf.writes]
        copied = [rows for rows in touched if is_copied(rows[0])] if self.target != "cpu" else []
        return copied or None

    def persist(self, loop: ForOp) -> set[BodyOperation]:
        """Replace a loop that is marked by the launch of its kernel; one that has none is no longer marked. Returns the
        leaves that are gone."""
        if self.target == "cpu":
            return set()
        try:
            persistent = self._persistent(loop)
        except (Unsupported, NoRows, OtherRowsTouched) as reason:
            remark(loop, f"its kernels are launched in each iteration: {reason}")
            loop.programs_attr = None
            return set()
        launch = LaunchOp(persistent.kernel.sym_name, persistent.buffers, persistent.scalars)
        launch.location = loop.location
        block = loop.parent
        assert block is not None
        for alloc in [op for op in loop.body.walk() if isinstance(op, AllocOp)]:
            alloc.detach()
            block.insert_op_before(alloc, loop)
        block.insert_op_before(launch, loop)
        gone = set(leaves_of(loop.body.block))
        loop.detach()
        loop.erase()
        return gone

    def _persistent(self, loop: ForOp) -> Persistent:
        """The kernel of a loop. Raises Unsupported, NoRows or OtherRowsTouched where there is none."""
        leaves = leaves_of(loop.body.block)
        rows = rows_of(loop.body.block) if loop.programs else None
        members: dict[BodyOperation, Translation] = {}
        for leaf in leaves:
            self._lay_out(leaf)
            programs = Programs() if rows is None else Programs(rows.axes[leaf], loop.programs or 0)
            members[leaf] = translate(
                leaf, kernel_name(leaf), self.program.space, self.layouts, TARGETS[self.target], programs
            )
        name = fresh_name(f"{kernel_name(*leaves)}_over_{loop.iterator}", self.names)
        made = persistent_kernel(loop, name, members)
        if rows is not None:
            check_rows(made.kernel, made.scalars)
        known = self.persistent.setdefault(kernel_key(made.kernel), made.kernel)
        self.names.add(known.sym_name.data)
        return replace(made, kernel=known)

    def _lay_out(self, leaf: BodyOperation) -> None:
        """Say how the buffers of a leaf lie in memory."""
        for buffer in leaf_buffers(leaf):
            assert isinstance(buffer.type, BufferType)
            if buffer not in self.layouts:
                self.layouts[buffer] = Layout.of(buffer.type, self.program.space, self.most)

    def _translated(self, leaf: BodyOperation, succession: Succession | None) -> tuple[Translation, ...]:
        try:
            name = fresh_name(kernel_name(leaf), self.names)
            translation = translate(leaf, name, self.program.space, self.layouts, TARGETS[self.target])
        except Unsupported as unsupported:
            if self.target == "cpu" and leaf not in self.blocked:
                remark(leaf, f"it has no kernel, and runs in numpy: {unsupported}")
            if self.target == "cpu" or library_op(leaf) is not None:
                return ()
            refuse(leaf, f"{unsupported}: it runs on cpu only, not on '{self.target}'")
        place, has_products = self.places.get(leaf), any(isinstance(op, DotOp) for op in translation.kernel.walk())
        if place == STREAMS or (place == NEAR and has_products):
            translation.kernel.attributes[place] = UnitAttr()
        if shared := shared_pointers(leaf):
            translation.kernel.attributes[SHARES] = IntegersAttr(shared)
        if succession is not None:
            mark_advances(translation, succession)
            translation = with_turns(translation, succession) if place == NEAR and has_products else translation
        known = self.kernels.setdefault(kernel_key(translation.kernel), translation)
        self.names.add(known.kernel.sym_name.data)
        if known is translation and self.made is not None:
            self.made(known.kernel)
        return (replace(translation, kernel=known.kernel),)

    def _status(self) -> SSAValue:
        """The memory in which kernels leave a run-time error: enough for the leaf that has most ops that may fail."""
        if self.status is None:
            leaves = [op for op in self.program.operations() if isinstance(op, BodyOperation)]
            alloc = AllocOp(status_type(max(sum(map(may_fail, leaf.walk())) for leaf in leaves)))
            self.status = alloc.buffer
            self.status.name_hint = "status"
            block = self.program.body.block
            first = next((op for op in block.ops if not isinstance(op, BufferOperation)), None)
            if first is None:
                block.add_op(alloc)
            else:
                block.insert_op_before(alloc, first)
        return self.status
