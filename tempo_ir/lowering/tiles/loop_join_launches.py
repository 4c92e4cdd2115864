"""loop-join-launches: launches that stand next to one another and do not need one another are one.

Before:
```mlir
loop.launch @copy(%a, %b)
loop.launch @update(%g, %m, %w)[T]
...
tile.kernel @copy(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>) grid [4] { ... }
tile.kernel @update(%g: !tile.ptr<f32>, %m: !tile.ptr<f32>, %w: !tile.ptr<f32>, %T: index) grid [] { ... }
```
After:
```mlir
loop.launch @copy_update_joined(%a, %b, %g, %m, %w)[T]
...
tile.kernel @copy_update_joined(%a: ..., %b: ..., %g: ..., %m: ..., %w: ..., %T: index) grid [5] {
  %program = tile.program_id 0
  %first = tile.lt %program, 4
  tile.if %first { ... }
  %second = tile.ge %program, 4
  tile.if %second { ... }
}
```
A launch costs some microseconds whatever it does, and kernels of few programs leave most of a device idle: the updates
of all parameters of a group take one launch, and so do copies before a loop. The first axis of the grid chooses the
member by ranges of program ids. Members are kernels of few programs, which then run side by side, and elementwise ones
of any number; none writes what another reads or writes. A gradient that is summed by the kernel of its update is made
there as before: joined, the sums of all parameters run at once and no gradient goes through memory.

A launch stays by itself where its neighbours need it, where something other than memory stands in between, where it has
many programs and does more than elementwise work, or where the kernel would have too many members.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import cse

from tempo_ir.dialects.loop import DONATES, AllocOp, LaunchOp, OutputOp, ParameterOp, ProgramOp
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import DYNAMIC, INDEX
from tempo_ir.dialects.tile.builder import number_attribute
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import Const, Expr
from tempo_ir.lowering.kernels.naming import name_pointers
from tempo_ir.lowering.tiles.dead_code import remove_dead_code
from tempo_ir.names import fresh_name
from tempo_ir.passes.remarks import count

FEW_PROGRAMS = 128
"""About as many as a device has multiprocessors: they leave some idle."""
MOST_MEMBERS = 32
MOST_ARGUMENTS = 128
"""Of a kernel: what a launch passes has its limit, 4096 bytes."""


@dataclass(frozen=True)
class LoopJoinLaunchesPass(ModulePass):
    """Launches side by side -> one launch. Those that need one another stay."""

    name = "loop-join-launches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            joining = _Joining(op, _memory_of(program))
            joining.block(program.body.block)
            joining.finish()
            count(self, "joined", joining.joined)


def _memory_of(program: ProgramOp) -> Mapping[SSAValue, Hashable]:
    """The buffers that may be the memory of another one: an output that takes that of its parameter."""
    names = {op.key: op.buffer for op in program.operations() if isinstance(op, ParameterOp)}
    return {
        op.buffer: names[op.key]
        for op in program.operations()
        if isinstance(op, OutputOp) and op.key in names and DONATES in op.attributes
    }


@dataclass(frozen=True)
class Touched:
    """What a launch reads and writes."""

    reads: frozenset[Hashable]
    writes: frozenset[Hashable]

    def is_independent(self, other: Touched) -> bool:
        """Whether neither writes what the other one touches."""
        return not (self.writes & (other.reads | other.writes) or other.writes & self.reads)


@dataclass
class _Joining:
    module: ModuleOp
    memory_of: Mapping[SSAValue, Hashable]
    made: dict[Hashable, KernelOp] = field(default_factory=dict[Hashable, KernelOp])
    joined: int = 0

    def __post_init__(self) -> None:
        self.kernels = {op.sym_name.data: op for op in self.module.ops if isinstance(op, KernelOp)}
        self.names = set(self.kernels)

    def block(self, block: Block) -> None:
        """Join the launches of a block, and of the blocks in it; from the end, so that what ends an iteration, as the
        updates of parameters, is together."""
        group: list[LaunchOp] = []
        for op in reversed(list(block.ops)):
            if isinstance(op, LaunchOp):
                if not self.may_precede(op, group):
                    self.join(group)
                    group = []
                group = [op, *group] if self.may_join(op) else []
                continue
            if not isinstance(op, AllocOp):
                self.join(group)
                group = []
            for inner in [inner for region in op.regions for inner in region.blocks]:
                self.block(inner)
        self.join(group)

    def kernel(self, launch: LaunchOp) -> KernelOp:
        """The kernel of a launch."""
        return self.kernels[launch.kernel.root_reference.data]

    def may_join(self, launch: LaunchOp) -> bool:
        """Whether a launch may be a member: it has few programs, or is elementwise."""
        kernel = self.kernel(launch)
        extents = kernel.grid.data
        if DYNAMIC not in extents and prod(extents) <= FEW_PROGRAMS:
            return True
        heavy = structure.ForOp, shape.DotOp, shape.ReduceOp, shape.ScanOp
        return not any(isinstance(op, heavy) for op in kernel.walk())

    def may_precede(self, launch: LaunchOp, group: Sequence[LaunchOp]) -> bool:
        """Whether a launch may be one more member of a group."""
        if not self.may_join(launch) or len(group) == MOST_MEMBERS:
            return False
        if sum(len(each.buffers) + len(each.scalars) for each in (*group, launch)) > MOST_ARGUMENTS:
            return False
        own = self.touched(launch)
        return all(own.is_independent(self.touched(member)) for member in group)

    def touched(self, launch: LaunchOp) -> Touched:
        """What a launch reads and writes."""
        kernel = self.kernel(launch)
        passed: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, launch.buffers, strict=False))
        reads, writes = set[Hashable](), set[Hashable]()
        for op in kernel.walk():
            if isinstance(op, memory.AccessOp):
                buffer = passed[op.view_op.pointer]
                kind = reads if isinstance(op, memory.LoadOp | memory.GatherOp) else writes
                kind.add(self.memory_of.get(buffer, buffer))
        return Touched(frozenset(reads), frozenset(writes))

    # -- the kernel

    def join(self, group: Sequence[LaunchOp]) -> None:
        """Replace launches by one, where the last of them stands."""
        if len(group) < 2:
            return
        members = [_Member.of(self.kernel(launch), launch) for launch in group]
        arguments = _Arguments(members)
        known = self.made.get(arguments.key)
        if known is None:
            known = self.made[arguments.key] = self.made_of(members, arguments)
        last = group[-1]
        launch = LaunchOp(known.sym_name, arguments.buffers, arguments.passed)
        launch.location = last.location
        block = last.parent
        assert block is not None
        block.insert_op_before(launch, last)
        for each in group:
            each.detach()
            each.erase()
        self.joined += len(group)

    def made_of(self, members: Sequence[_Member], arguments: _Arguments) -> KernelOp:
        """The kernel of all members."""
        name = fresh_name(joined_name([member.kernel.sym_name.data for member in members]), self.names)
        self.names.add(name)
        block = arguments.block()
        program = structure.ProgramIdOp(0)
        block.add_op(program)
        start: Expr = Const(0)
        for member in members:
            _add_member(block, member, arguments, program.result, start)
            start = start + member.programs
        grid = start.value if isinstance(start, Const) else DYNAMIC
        kernel = KernelOp(name, [grid], Region(block))
        cse(kernel)
        remove_dead_code(kernel)
        self.module.body.block.add_op(kernel)
        self.kernels[name] = kernel
        return kernel

    def finish(self) -> None:
        """Name the pointers of joined kernels after all their launches, and remove kernels that nobody launches."""
        launches = [op for op in self.module.walk() if isinstance(op, LaunchOp)]
        used = {launch.kernel.root_reference.data for launch in launches}
        joined = {kernel.sym_name.data: kernel for kernel in self.made.values()}
        name_pointers([launch for launch in launches if launch.kernel.root_reference.data in joined], joined)
        for name, kernel in self.kernels.items():
            if name not in used and self.joined:
                kernel.detach()
                kernel.erase()


def joined_name(names: Sequence[str]) -> str:
    """`copy_kernel_joined` of copies, `contract_sqrt_sum_sqrt_joined` of two sorts of kernels."""
    sorts = list(dict.fromkeys(re.sub(r"_\d+$", "", name) for name in names))
    return "_".join([*sorts[:2], "joined"])


@dataclass(frozen=True)
class _Member:
    """A kernel with what its launch passes; `extents` are those of its grid."""

    kernel: KernelOp
    buffers: tuple[SSAValue, ...]
    scalars: tuple[Expr, ...]
    extents: tuple[Expr, ...]

    @staticmethod
    def of(kernel: KernelOp, launch: LaunchOp) -> _Member:
        own = len(kernel.body.block.args) - len(launch.buffers)
        open_axes = iter(launch.scalars[own:])
        extents = tuple(next(open_axes) if n == DYNAMIC else Const(n) for n in kernel.grid.data)
        return _Member(kernel, tuple(launch.buffers), launch.scalars[:own], extents)

    @property
    def programs(self) -> Expr:
        """How many programs it has."""
        product: Expr = Const(1)
        for extent in self.extents:
            product = product * extent
        return product


class _Arguments:
    """The arguments of a joined kernel: each buffer and each scalar once."""

    def __init__(self, members: Sequence[_Member]) -> None:
        self.buffers = list(dict.fromkeys(buffer for member in members for buffer in member.buffers))
        scalars = dict.fromkeys(scalar for member in members for scalar in member.scalars)
        start: Expr = Const(0)
        self.starts: list[Expr] = [start]
        for member in members:
            scalars |= dict.fromkeys(each for each in (start, *member.extents[1:]) if not isinstance(each, Const))
            start = start + member.programs
            scalars |= dict.fromkeys([] if isinstance(start, Const) or member is members[-1] else [start])
            self.starts.append(start)
        self.scalars = list(scalars)
        self.total = start
        self.members = members
        self.values: dict[Hashable, SSAValue] = {}

    @property
    def passed(self) -> list[Expr]:
        """The scalars of the launch, the number of programs last where it is no number of the kernel."""
        return self.scalars if isinstance(self.total, Const) else [*self.scalars, self.total]

    @property
    def key(self) -> Hashable:
        """Equal for launches of which one kernel can be made."""
        buffers = {buffer: number for number, buffer in enumerate(self.buffers)}
        scalars = {scalar: number for number, scalar in enumerate(self.scalars)}
        starts = tuple(scalars.get(start, str(start)) for start in self.starts[:-1])
        return (
            starts,
            isinstance(self.total, Const),
            tuple(
                (
                    member.kernel.sym_name.data,
                    tuple(buffers[buffer] for buffer in member.buffers),
                    tuple(scalars[scalar] for scalar in member.scalars),
                    tuple(scalars.get(extent, str(extent)) for extent in member.extents[1:]),
                )
                for member in self.members
            ),
        )

    def block(self) -> Block:
        """The body of the kernel, empty, with its arguments."""
        types: dict[Hashable, Attribute] = {}
        names: dict[Hashable, str | None] = {}
        for member in self.members:
            passed = (*member.buffers, *member.scalars)
            for argument, value in zip(member.kernel.body.block.args, passed, strict=True):
                types.setdefault(value, argument.type)
                hint = value.name_hint if isinstance(value, SSAValue) else None
                names.setdefault(value, hint or argument.name_hint)
        order: list[Hashable] = [*self.buffers, *self.scalars]
        block, taken = Block(arg_types=[types.get(each, INDEX) for each in order]), set[str]()
        for each, argument in zip(order, block.args, strict=True):
            argument.name_hint = fresh_name(names.get(each) or "start", taken)
            taken.add(argument.name_hint)
            self.values[each] = argument
        return block


def _add_member(block: Block, member: _Member, arguments: _Arguments, program: SSAValue, start: Expr) -> None:
    """The branch of the programs of one member."""

    def number(expression: Expr) -> SSAValue:
        if not isinstance(expression, Const):
            return arguments.values[expression]
        constant = shape.ConstOp(number_attribute(expression.value, INDEX))
        block.add_op(constant)
        return constant.result

    def add(op: ew.BinaryOp) -> SSAValue:
        block.add_op(op)
        return op.result

    conditions: list[SSAValue] = []
    if start != Const(0):
        conditions.append(add(ew.GeOp(program, number(start))))
    if start + member.programs != arguments.total:
        conditions.append(add(ew.LtOp(program, number(start + member.programs))))
    condition = conditions[0] if len(conditions) == 1 else add(ew.AndOp(*conditions))
    place = program if start == Const(0) else add(ew.SubOp(program, number(start)))
    places: dict[int, SSAValue] = {}
    for axis in reversed(range(len(member.extents))):
        extent = member.extents[axis]
        if extent == Const(1):
            places[axis] = number(Const(0))
            continue
        # the remainder says where the place ends, so that no mask is needed for what it surely is inside of
        within = axis == 0 and not isinstance(extent, Const)
        places[axis] = place if within else add(ew.ModOp(place, number(extent)))
        place = place if axis == 0 else add(ew.FloorDivOp(place, number(extent)))
    branch = Block()
    values: dict[SSAValue, SSAValue] = {
        argument: arguments.values[value]
        for argument, value in zip(member.kernel.body.block.args, (*member.buffers, *member.scalars), strict=True)
    }
    _copy(member.kernel.body.block, branch, values, places)
    branch.add_op(structure.YieldOp())
    block.add_op(structure.IfOp(condition, Region(branch)))


def _copy(source: Block, target: Block, values: dict[SSAValue, SSAValue], places: Mapping[int, SSAValue]) -> None:
    """Copy ops, with the places of a program in place of its ids."""
    for op in source.ops:
        if isinstance(op, structure.ProgramIdOp):
            values[op.result] = places[op.axis.value.data]
            continue
        copy = op.clone(values)
        for inner in [inner for inner in copy.walk() if isinstance(inner, structure.ProgramIdOp)]:
            inner.result.replace_all_uses_with(places[inner.axis.value.data])
            inner.detach()
            inner.erase()
        target.add_op(copy)
