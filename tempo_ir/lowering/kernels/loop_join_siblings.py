"""loop-join-siblings: launches that need nothing of each other, and are small, become one.

Before: three products of one row, whose kernels have 48, 16 and 16 programs.
```mlir
loop.launch @query(%x, %wq, %q)[]
loop.launch @key(%x, %wk, %k)[32 * t]
loop.launch @value(%x, %wv, %v)[32 * t]
```
After: one, of 80.
```mlir
loop.launch @query_and_key(%x, %wq, %q, %wk, %k, %wv, %v)[32 * t]
...
tile.kernel @query_and_key(...) grid [80] {
  %p = tile.program_id 0
  %first = tile.lt %p, 48
  tile.if %first { /* query, program %p */ } else {
    %second = tile.lt %p, 64
    tile.if %second { /* key, program %p - 48 */ } else { /* value, program %p - 64 */ }
  }
}
```
So the updates of all parameters of an optimiser are one launch, each with the sum that its gradient is, which no memory
holds; and so are the copies before a loop.

A launch costs some microseconds, and each of them alone leaves most of a GPU idle. A launch moves up to the one that it
joins: over launches and other operations that write none of what it accesses, and access none of what it writes. A
buffer, and a scalar, that several take is one argument.

It does not apply on the cpu; to grids that only a call knows; where more programs would come together than twice the
multiprocessors, which fill the GPU anyway; to kernels whose programs have different numbers of warps; to more launches
than `MOST_SIBLINGS`; to two kernels that may report an error, whose status is one buffer. An output that may take the
memory of a parameter counts as that parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.loop import (
    DONATES,
    AllocOp,
    BodyOperation,
    BufferType,
    ForOp,
    LaunchOp,
    OutputOp,
    ParameterOp,
    ProgramOp,
)
from tempo_ir.dialects.loop.transfers import is_copied
from tempo_ir.dialects.tile import memory
from tempo_ir.dialects.tile.attributes import INDEX
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.dialects.tile.structure import KernelOp, ProgramIdOp
from tempo_ir.index import Expr, Index
from tempo_ir.lowering.kernels.blocks import TARGETS, WAVES
from tempo_ir.lowering.kernels.translation import kernel_key
from tempo_ir.lowering.triton.tuning import warps_of
from tempo_ir.names import fresh_name

MOST_SIBLINGS = 32
"""Launches that become one."""
MOST_ARGUMENTS = 256
"""Of a kernel: a launch passes at most 4096 bytes."""
Kernels = dict[str, KernelOp]


@dataclass(frozen=True)
class LoopJoinSiblingsPass(ModulePass):
    """Independent launches side by side, for a target."""

    name = "loop-join-siblings"
    target: str = "sm_90"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target not in TARGETS:
            raise PassFailedException(f"unknown target '{self.target}'; use one of {', '.join(sorted(TARGETS))}")
        kernels = {inner.sym_name.data: inner for inner in op.ops if isinstance(inner, KernelOp)}
        joined = dict(kernels)
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            join_siblings(program, joined, self.target)
        used = {launch.kernel.root_reference.data for launch in op.walk() if isinstance(launch, LaunchOp)}
        for name, kernel in kernels.items():
            if name not in used:
                kernel.detach()
                kernel.erase()
        op.body.block.add_ops([kernel for name, kernel in joined.items() if name not in kernels and name in used])


def join_siblings(program: ProgramOp, kernels: Kernels, target: str) -> None:
    """Join launches of a program in place; kernels that come of it are added to `kernels`, which keeps all."""
    most = WAVES * TARGETS[target].multiprocessors
    if not most:
        return
    joining = _Joining(kernels, most, _parameters(program))
    blocks = [program.body.block]
    for block in blocks:
        for op in block.ops:
            if not isinstance(op, BodyOperation):
                blocks += [inner for region in op.regions for inner in region.blocks]
        joining.block(block)


def _parameters(program: ProgramOp) -> dict[SSAValue, SSAValue]:
    """The parameter whose memory an output may take."""
    parameters = {op.key: op.buffer for op in program.operations() if isinstance(op, ParameterOp)}
    outputs = [op for op in program.operations() if isinstance(op, OutputOp) and DONATES in op.attributes]
    return {op.buffer: parameters[op.key] for op in outputs if op.key in parameters}


@dataclass(frozen=True)
class _Effects:
    """The buffers that an operation reads or writes, and those that it writes."""

    touched: frozenset[SSAValue]
    written: frozenset[SSAValue]

    def conflicts(self, other: _Effects) -> bool:
        """Whether the order of two operations matters."""
        return bool(self.written & other.touched or self.touched & other.written)

    def __or__(self, other: _Effects) -> _Effects:
        return _Effects(self.touched | other.touched, self.written | other.written)


@dataclass
class _Group:
    """Launches that become one where the first one stands, and what has run since that others must not pass."""

    launches: list[LaunchOp]
    programs: int
    effects: _Effects
    passed: _Effects = _Effects(frozenset(), frozenset())
    allocs: list[AllocOp] = field(default_factory=list[AllocOp])
    """Those that stand behind the first launch."""


@dataclass
class _Joining:
    kernels: Kernels
    most: int
    parameters: Mapping[SSAValue, SSAValue]
    known: dict[object, str] = field(default_factory=dict[object, str])
    """Joined kernels up to names."""

    def block(self, block: Block) -> None:
        """Join launches of one block; what follows a loop that gives a bound may name it, and stays behind it."""
        groups: list[_Group] = []
        done: list[_Group] = []
        for op in list(block.ops):
            if isinstance(op, ForOp) and op.gives is not None:
                done, groups = [*done, *groups], []
                continue
            if isinstance(op, AllocOp):
                for group in groups:
                    group.allocs.append(op)
                continue
            effects = self.effects(op)
            programs = self.programs(op)
            if isinstance(op, LaunchOp) and programs:
                group = next((group for group in groups if self.takes(group, op, effects, programs)), None)
                if group is not None:
                    group.launches.append(op)
                    group.programs += programs
                    group.effects |= effects
                    for other in groups[: groups.index(group)]:
                        other.passed |= effects
                    continue
            for group in groups:
                group.passed |= effects
            if isinstance(op, LaunchOp) and programs:
                groups.append(_Group([op], programs, effects))
        for group in (*done, *groups):
            if len(group.launches) > 1:
                self.join(group)

    def takes(self, group: _Group, launch: LaunchOp, effects: _Effects, programs: int) -> bool:
        """Whether a launch may join a group."""
        return (
            len(group.launches) < MOST_SIBLINGS
            and self.warps(launch) == self.warps(group.launches[0])
            and len(group.effects.touched | effects.touched) < MOST_ARGUMENTS
            and group.programs + programs <= self.most
            and not effects.conflicts(group.effects)
            and not effects.conflicts(group.passed)
        )

    def warps(self, launch: LaunchOp) -> int:
        """The warps of a program of a launch: with more than it needs each thread has fewer registers."""
        return warps_of(self.kernels[launch.kernel.root_reference.data], "ieee")

    def programs(self, op: Operation) -> int:
        """How many programs a launch has; 0 where that is not known, or it is none."""
        if not isinstance(op, LaunchOp):
            return 0
        grid = self.kernels[op.kernel.root_reference.data].grid.data
        return prod(grid) if all(extent > 0 for extent in grid) else 0

    def effects(self, op: Operation) -> _Effects:
        """The buffers that an operation touches, with what is inside of it; all count as written where it is not a
        launch."""
        if isinstance(op, LaunchOp):
            kernel = self.kernels[op.kernel.root_reference.data]
            written = written_by(kernel)
            buffers = [self.parameters.get(buffer, buffer) for buffer in op.buffers]
            pairs = zip(kernel.body.block.args, buffers, strict=False)
            return _Effects(frozenset(buffers), frozenset(buffer for pointer, buffer in pairs if pointer in written))
        values = [value for inner in op.walk() for value in inner.operands if isinstance(value.type, BufferType)]
        touched = frozenset(self.parameters.get(value, value) for value in values)
        return _Effects(touched, touched)

    def join(self, group: _Group) -> None:
        """Put one launch in the place of several."""
        first, *_ = group.launches
        block = first.parent
        assert block is not None
        used = {buffer for launch in group.launches for buffer in launch.buffers}
        for alloc in [alloc for alloc in group.allocs if alloc.buffer in used]:
            alloc.detach()
            block.insert_op_before(alloc, first)
        members = [self.kernels[launch.kernel.root_reference.data] for launch in group.launches]
        buffers = list(dict.fromkeys(buffer for launch in group.launches for buffer in launch.buffers))
        scalars = list(dict.fromkeys(scalar for launch in group.launches for scalar in launch.scalars))
        name = fresh_name(joined_name([kernel.sym_name.data for kernel in members]), self.kernels)
        kernel = joined_kernel(name, members, group.launches, buffers, scalars)
        name = self.known.setdefault(kernel_key(kernel), name)
        self.kernels.setdefault(name, kernel)
        launch = LaunchOp(name, buffers, scalars, joined_rows(group.launches))
        launch.location = first.location
        block.insert_op_before(launch, first)
        for member in group.launches:
            member.detach()
            member.erase()


def joined_rows(launches: Sequence[LaunchOp]) -> list[tuple[SSAValue, Index, bool]] | None:
    """The rows that launches touch of buffers that are copied; None where one does not say it, or none does."""
    if any(launch.touched is None and any(map(is_copied, launch.buffers)) for launch in launches):
        return None
    return [row for launch in launches for row in launch.touched or ()] or None


def written_by(kernel: KernelOp) -> set[SSAValue]:
    """The pointers through which a kernel writes."""
    return {op.view_op.pointer for op in kernel.walk() if isinstance(op, memory.WriteOp | memory.IndexedWriteOp)}


def joined_name(names: Sequence[str]) -> str:
    """`contracts` of kernels that are all contractions, `contract_and_cos` of others: the first two kinds."""
    kinds = list(dict.fromkeys(name.rstrip("0123456789").rstrip("_") for name in names))
    return f"{kinds[0]}s" if len(kinds) == 1 else f"{kinds[0]}_and_{kinds[1]}"


def joined_kernel(
    name: str,
    members: Sequence[KernelOp],
    launches: Sequence[LaunchOp],
    buffers: Sequence[SSAValue],
    scalars: Sequence[Expr],
) -> KernelOp:
    """The kernel whose programs are those of all members, one after the other."""
    pointers = {buffer: f"buffer{number}" for number, buffer in enumerate(buffers)}
    numbers = {scalar: f"scalar{number}" for number, scalar in enumerate(scalars)}
    types: dict[SSAValue, Attribute] = {}
    for launch, member in zip(launches, members, strict=True):
        types |= {b: argument.type for b, argument in zip(launch.buffers, member.body.block.args, strict=False)}
    arguments = {pointers[buffer]: types[buffer] for buffer in buffers} | dict.fromkeys(numbers.values(), INDEX)
    builder = KernelBuilder(name, arguments, [sum(prod(member.grid.data) for member in members)])
    program = builder.program_id(0)

    ends = list(accumulate(prod(member.grid.data) for member in members))

    def place(first: int, last: int) -> None:
        """The members from `first` to `last`, cut in two until one is left."""
        begin = ends[first - 1] if first else 0
        if first < last:
            middle = first + (last - first) // 2
            with builder.when((program < ends[middle]).named("is_first" if not begin else "is_next")):
                place(first, middle)
            with builder.otherwise():
                place(middle + 1, last)
            return
        member, launch = members[first], launches[first]
        given = [builder[pointers[buffer]] for buffer in launch.buffers]
        given += [builder[numbers[scalar]] for scalar in launch.scalars]
        own = builder.maximum(program - begin, 0) if begin else program
        if first < len(members) - 1:
            own = builder.minimum(own, ends[first] - begin - 1)
        _copy(builder, member, given, own)

    place(0, len(members) - 1)
    kernel = builder.finish()
    taken: set[str] = set()
    hints = [*(buffer.name_hint or "b" for buffer in buffers), *("n" for _ in scalars)]
    for argument, hint in zip(kernel.body.block.args, hints, strict=True):
        argument.name_hint = fresh_name(hint, taken)
        taken.add(argument.name_hint)
    return kernel


def _copy(builder: KernelBuilder, member: KernelOp, given: Sequence[Value], program: Value) -> None:
    """The body of a member for what it is given, as one of its programs, counted along the last axis of its grid."""
    known: dict[SSAValue, SSAValue] = {}
    for argument, value in zip(member.body.block.args, given, strict=True):
        known[argument] = value.ssa
    places: list[SSAValue] = []
    grid = member.grid.data
    for axis, extent in enumerate(grid):
        below = prod(grid[axis + 1 :])
        place = program if below == 1 else program // below
        places.append((place if axis == 0 else place % extent).ssa)
    for op in member.body.block.ops:
        copy = op.clone(known)
        for old, new in zip(op.walk(), copy.walk(), strict=True):
            new.location = old.location
        builder.location = None
        builder.insert(copy)
        for inner in [inner for inner in copy.walk() if isinstance(inner, ProgramIdOp)]:
            inner.result.replace_all_uses_with(places[inner.axis.value.data])
            inner.detach()
            inner.erase()
        for old, new in zip(op.results, copy.results, strict=False):
            known[old] = new
            new.name_hint = old.name_hint
        if isinstance(op, ProgramIdOp):
            known[op.result] = places[op.axis.value.data]
