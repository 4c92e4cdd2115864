"""What the launches of a program say of the arguments of a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import BufferType, LaunchOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Const


@dataclass(frozen=True)
class Launched:
    """What all launches of a kernel have in common: elements that are behind a pointer for certain, and scalars that
    are another one and a number, as T - 1 is T and -1."""

    room: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    given: Mapping[SSAValue, tuple[SSAValue, int]] = field(default_factory=dict[SSAValue, tuple[SSAValue, int]])


def launches_of(module: ModuleOp) -> dict[str, list[LaunchOp]]:
    """The launches of each kernel, by its name."""
    found: dict[str, list[LaunchOp]] = {op.sym_name.data: [] for op in module.ops if isinstance(op, KernelOp)}
    for launch in [op for op in module.walk() if isinstance(op, LaunchOp)]:
        found[launch.kernel.root_reference.data].append(launch)
    return found


def launched(kernel: KernelOp, launches: Sequence[LaunchOp]) -> Launched:
    """What the launches of a kernel say; nothing if there is none."""
    arguments = kernel.body.block.args
    if not launches:
        return Launched()
    pointers = len(launches[0].buffers)
    room: dict[SSAValue, int] = {}
    for number, argument in enumerate(arguments[:pointers]):
        room[argument] = min(_room(each.buffers[number]) for each in launches)
    given: dict[SSAValue, tuple[SSAValue, int]] = {}
    scalars = arguments[pointers:]
    for number, argument in enumerate(scalars):
        for earlier, other in enumerate(scalars[:number]):
            distances = {each.scalars[number] - each.scalars[earlier] for each in launches}
            if len(distances) == 1 and isinstance(distance := distances.pop(), Const):
                given[argument] = other, distance.value
                break
    return Launched(room, given)


def _room(buffer: SSAValue) -> int:
    """Elements of a buffer that has one row, of extents that are numbers; 0 of others, which may have none."""
    assert isinstance(buffer.type, BufferType)
    shape = shape_of(buffer.type.row)
    if buffer.type.dims or not all(isinstance(extent, int) for extent in shape):
        return 0
    return math.prod(extent for extent in shape if isinstance(extent, int))
