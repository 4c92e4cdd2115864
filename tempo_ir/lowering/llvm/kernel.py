"""
One tile kernel to one LLVM function:

    void @name(ptr or scalar arguments..., i64 low0, i64 high0, i64 low1, i64 high1, ..., ptr scratch)

The arguments are those of the kernel, in order: `!tile.ptr` is `ptr`, `index` is `i64`, `i1` is `i1`, other scalars are
themselves (f16 and bf16 scalars are passed as `float`). Then, per axis of the grid, the range of programs to run: a
thread runs its part of a grid by one call. `scratch` is memory of `KernelCode.scratch_bytes` bytes, aligned to 64, of
which each thread needs its own; it may be null if that is 0.

Every condition that decides whether masks are needed and that is known when a program starts is tested once: the body
is written twice, without those masks and with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import DYNAMIC, PointerType
from tempo_ir.dialects.tile.memory import GatherOp, LoadOp
from tempo_ir.dialects.tile.shape import (
    BroadcastOp,
    ConstOp,
    DotOp,
    ExpandOp,
    InRangeOp,
    IotaOp,
    PhiloxOp,
    ReduceOp,
    SplatOp,
    TransOp,
)
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm import access, contraction, random, values
from tempo_ir.lowering.llvm.address import ZERO, Bounds, Linear, linear, materialize
from tempo_ir.lowering.llvm.evaluate import Evaluator, Handler
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.plan import Plan
from tempo_ir.lowering.llvm.scratch import Arena, Scratch
from tempo_ir.lowering.llvm.simplify import inline_single_trips
from tempo_ir.lowering.llvm.statements import Lowering
from tempo_ir.lowering.llvm.target import AVX512, Target
from tempo_ir.lowering.llvm.text import KINDS, Register, Text

HANDLERS: Mapping[type[Operation], Handler] = MappingProxyType(
    {
        **dict.fromkeys(ew.ELEMENTWISE, values.elementwise_op),
        BroadcastOp: values.broadcast,
        ConstOp: values.const,
        DotOp: contraction.dot,
        ExpandOp: values.expand,
        GatherOp: access.load,
        InRangeOp: values.in_range,
        IotaOp: values.iota,
        LoadOp: access.load,
        PhiloxOp: random.philox,
        ReduceOp: contraction.reduce,
        SplatOp: values.splat,
        TransOp: values.trans,
    }
)
"""How every op that can be computed at a point is."""


@dataclass(frozen=True)
class KernelCode:
    """A kernel as LLVM text: the function and the declarations it needs; see the module for how it is called."""

    name: str
    definition: str
    declarations: frozenset[str]
    parameters: tuple[tuple[str, str], ...]
    """Name and kind (`ptr`, `i64`, `f32`, ...) of every parameter, those of the grid and `scratch` included."""
    grid_axes: int
    scratch_bytes: int

    def called(self, name: str, *more: str) -> str:
        """The declaration of a function of the kernel's parameters, and more, for a module that calls it."""
        return f"declare void @{name}({', '.join([*(KINDS[kind] for _, kind in self.parameters), *more])})"


def lower_kernel(kernel: KernelOp, target: Target = AVX512) -> KernelCode:
    """Lower a kernel; `kernel` is not changed. Raises UnsupportedKernel where the back end lacks something."""
    kernel = inline_single_trips(kernel)
    text = Text(target.lanes)
    name = kernel.sym_name.data
    parameters = _parameters(kernel)
    with text.function(name, parameters) as registers:
        arena = Arena(text, registers[-1])
        _grid(_Kernel(kernel, target, text, arena, registers), len(kernel.grid.data) - 1, {})
    return KernelCode(
        name,
        text.functions[0],
        frozenset(text.declarations),
        tuple(parameters),
        len(kernel.grid.data),
        arena.bytes,
    )


def module_text(codes: Iterable[KernelCode], target: Target, others: Sequence[str] = ()) -> str:
    """Kernels (and other function definitions) as one LLVM module."""
    codes = list(codes)
    declarations = sorted({declaration for code in codes for declaration in code.declarations})
    width = target.lanes * 32
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}'
    return "\n\n".join([*(code.definition for code in codes), *others, "\n".join(declarations), attributes, ""])


def parameter_kind(type_: Attribute) -> str:
    """How an argument of a kernel is passed."""
    if isinstance(type_, PointerType):
        return "ptr"
    return "i64" if isinstance(type_, IndexType) else element_layout(type_).kind


def _parameters(kernel: KernelOp) -> list[tuple[str, str]]:
    used: set[str] = set()
    parameters: list[tuple[str, str]] = []
    for i, argument in enumerate(kernel.body.block.args):
        name = argument.name_hint or f"arg{i}"
        if name in used:
            name = f"{name}.{i}"
        used.add(name)
        parameters.append((f"{name}.in", parameter_kind(argument.type)))
    for axis in range(len(kernel.grid.data)):
        parameters += [(f"low{axis}", "i64"), (f"high{axis}", "i64")]
    return [*parameters, ("scratch", "ptr")]


@dataclass(frozen=True)
class _Kernel:
    kernel: KernelOp
    target: Target
    text: Text
    arena: Arena
    registers: Sequence[Register]


def _grid(state: _Kernel, axis: int, programs: dict[int, Register]) -> None:
    """The loops over programs, the last axis outermost; inside them the body."""
    if axis < 0:
        _versions(state, programs)
        return
    arguments = len(state.kernel.body.block.args)
    low, high = state.registers[arguments + 2 * axis], state.registers[arguments + 2 * axis + 1]
    with state.text.loop(low, high, 1) as program:
        _grid(state, axis - 1, {**programs, axis: program})


def _versions(state: _Kernel, programs: dict[int, Register]) -> None:
    text = state.text
    full, conditions = _version(state, programs, assume=True)
    if not conditions:
        text.lines(full)
        return
    masked, _ = _version(state, programs, assume=False)
    condition: Register | None = None
    for x in conditions:
        condition = text.both(condition, text.compare("sge", materialize(text, x), 0))
    assert condition is not None
    text.branch(condition, full, masked)


def _version(state: _Kernel, programs: dict[int, Register], assume: bool) -> tuple[list[str], Sequence[Linear]]:
    """The body's lines, and what they assume."""
    kernel, text, grid = state.kernel, state.text, state.kernel.grid.data
    bounds = Bounds(assume, text.level)
    for axis, program in programs.items():
        bounds.learn(program, lower=[ZERO], upper=[] if grid[axis] == DYNAMIC else [Linear(grid[axis] - 1)])
    environment: dict[SSAValue, Scratch | Register | Linear] = {}
    for argument, register in zip(kernel.body.block.args, state.registers, strict=False):
        environment[argument] = linear(register) if isinstance(argument.type, IndexType) else register
    concurrent = DYNAMIC in grid or prod(grid) > 1
    evaluator = Evaluator(text, HANDLERS, bounds, environment)
    state.arena.reset()
    lowering = Lowering(evaluator, Plan(kernel, state.target), state.target, state.arena, programs, concurrent)
    text.open()
    with nullcontext() if assume else text.keep_inside():
        lowering.run(kernel.body.block)
    return text.close(), list(bounds.conditions)
