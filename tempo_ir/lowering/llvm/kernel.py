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

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import DYNAMIC, PointerType, shape_of
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
from tempo_ir.dialects.tile.structure import NEAR, STREAMS, TURNS, KernelOp
from tempo_ir.lowering.llvm import access, contraction, random, reduction, values
from tempo_ir.lowering.llvm.address import ZERO, Bounds, Linear, linear, materialize
from tempo_ir.lowering.llvm.ahead import NextLaunch, ask_first, ask_next
from tempo_ir.lowering.llvm.elementwise import called_functions
from tempo_ir.lowering.llvm.evaluate import Evaluator, Handler
from tempo_ir.lowering.llvm.half import half_functions
from tempo_ir.lowering.llvm.invariant import loop_order, program_axes, program_levels
from tempo_ir.lowering.llvm.memory import element_layout
from tempo_ir.lowering.llvm.plan import HEAVY, Plan
from tempo_ir.lowering.llvm.scratch import Arena, Scratch
from tempo_ir.lowering.llvm.simplify import inline_single_trips, merge_equal
from tempo_ir.lowering.llvm.statements import Lowering
from tempo_ir.lowering.llvm.target import AVX512, Target
from tempo_ir.lowering.llvm.text import KINDS, Register, Text

Environment = dict[SSAValue, Scratch | Register | Linear]

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
        ReduceOp: reduction.reduce,
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
    shared_functions: tuple[tuple[str, str], ...] = ()
    """Names and definitions of functions that it calls: those of a name are the same whatever kernel calls them."""

    @property
    def characters(self) -> int:
        """How much text it is."""
        return len(self.definition) + sum(len(function) for _, function in self.shared_functions)

    def called(self, name: str, *more: str) -> str:
        """The declaration of a function of the kernel's parameters, and more, for a module that calls it."""
        return f"declare void @{name}({', '.join([*(KINDS[kind] for _, kind in self.parameters), *more])})"


def lower_kernel(kernel: KernelOp, target: Target = AVX512) -> KernelCode:
    """Lower a kernel; `kernel` is not changed. Raises UnsupportedKernel where the back end lacks something."""
    kernel = inline_single_trips(kernel)
    merge_equal(kernel)
    text = Text(target.lanes)
    name = kernel.sym_name.data
    parameters = _parameters(kernel)
    with text.function(name, parameters) as registers:
        arena = Arena(text, registers[-1])
        plan, axes = Plan(kernel, target), program_axes(kernel)
        order = loop_order(kernel, axes, lambda value: not plan.is_inline(value))
        levels, called = program_levels(axes, order), called_functions(kernel)
        backwards = _backwards(kernel, registers)
        state = _Kernel(kernel, target, text, arena, registers, plan, order, levels, called, backwards)
        environment: Environment = {
            argument: linear(register) if isinstance(argument.type, IndexType) else register
            for argument, register in zip(kernel.body.block.args, registers, strict=False)
        }
        with text.when(_has_programs(state)) if _shared(state, 0, ()) else nullcontext():
            _grid(state, len(kernel.grid.data) - 1, _Known({}, environment, frozenset()))
    return KernelCode(
        name,
        text.functions[0],
        frozenset(text.declarations),
        tuple(parameters),
        len(kernel.grid.data),
        arena.bytes,
        tuple(text.shared_functions.items()),
    )


def module_text(codes: Iterable[KernelCode], target: Target, others: Sequence[str] = ()) -> str:
    """Kernels (and other function definitions) as one LLVM module."""
    codes = list(codes)
    declarations = sorted({declaration for code in codes for declaration in code.declarations})
    width = target.lanes * 32
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}'
    functions = dict(function for code in codes for function in code.shared_functions)
    parts = [*functions.values(), *(code.definition for code in codes), *others]
    parts += half_functions("".join(parts), target)
    return "\n\n".join([*parts, "\n".join(declarations), attributes, ""])


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
    plan: Plan
    order: tuple[int, ...]
    """The axes of the grid in the order of the loops over programs, from the innermost to the outermost."""
    levels: Mapping[Operation, int]
    """The level of these loops before which each op of the body can be computed (`program_levels`)."""
    called: frozenset[type[Operation]]
    """The elementary functions that are called (`called_functions`)."""
    backwards: Register | None
    """Do programs run from the last to the first? None: they do not."""


@dataclass(frozen=True)
class _Known:
    """What has been computed outside of a loop over programs: their ids, values, and the ops that gave these."""

    programs: Mapping[int, Register]
    environment: Environment
    done: frozenset[Operation]


def _grid(state: _Kernel, level: int, known: _Known) -> None:
    """The loops over programs up to a level, and inside them the body."""
    if level < 0:
        _versions(state, known)
        return
    text, known, axis = state.text, _kept_outside(state, level, known), state.order[level]
    low, high = _range(state, axis)
    with text.loop(low, high, 1) as program:
        if state.backwards is not None:
            program = text.select(state.backwards, low + high - 1 - program, program)
        _grid(state, level - 1, replace(known, programs={**known.programs, axis: program}))


def _range(state: _Kernel, axis: int) -> tuple[Register, Register]:
    """The programs along an axis that a call runs."""
    first = len(state.kernel.body.block.args) + 2 * axis
    return state.registers[first], state.registers[first + 1]


def _backwards(kernel: KernelOp, registers: Sequence[Register]) -> Register | None:
    """Whether the last argument of a kernel is odd, where it turns."""
    if TURNS not in kernel.attributes:
        return None
    turn = registers[len(kernel.body.block.args) - 1]
    return turn.text.compare("ne", turn & 1, 0)


def _has_programs(state: _Kernel) -> Register:
    """Does a call run any program?"""
    some: Register | None = None
    for axis in range(len(state.kernel.grid.data)):
        some = state.text.both(some, state.text.compare("slt", *_range(state, axis)))
    assert some is not None
    return some


def _shared(state: _Kernel, least: int, done: Collection[Operation]) -> list[Operation]:
    """The ops of the body, of those not done, that all programs of the loops up to the level `least` share; none of
    them where none is kept in scratch, nor is a number that takes long, as a power does."""
    shared = [op for op, level in state.levels.items() if level > least and op not in done]
    is_worth = any(_takes_long(op) or not state.plan.is_inline(value) for op in shared for value in op.results)
    return shared if is_worth else []


def _takes_long(op: Operation) -> bool:
    """Is it a number, and of a heavy function?"""
    return isinstance(op, HEAVY) and not shape_of(op.results[0])


def _kept_outside(state: _Kernel, least: int, known: _Known) -> _Known:
    """
    Compute what all programs of the loops up to the level `least` share, where it is kept in scratch and needs no
    condition: rows that are normalised, an operand of a dot that is turned round.
    """
    shared = _shared(state, least, known.done)
    if not shared:
        return known
    text = state.text
    text.open()
    lowering = _lowering(state, known, assume=True)
    lowering.run(shared)
    lines = text.close()
    if lowering.evaluator.bounds.conditions:
        state.arena.reset()
        return known
    text.lines(lines)
    state.arena.keep()
    return replace(known, environment=lowering.evaluator.environment, done=known.done | frozenset(shared))


def _versions(state: _Kernel, known: _Known) -> None:
    text = state.text
    full, conditions = _version(state, known, assume=True)
    if not conditions:
        text.lines(full)
        return
    masked, _ = _version(state, known, assume=False)
    condition: Register | None = None
    for x in conditions:
        condition = text.both(condition, text.compare("sge", materialize(text, x), 0))
    assert condition is not None
    text.branch(condition, full, masked)


def _version(state: _Kernel, known: _Known, assume: bool) -> tuple[list[str], Sequence[Linear]]:
    """The body's lines, and what they assume."""
    text = state.text
    lowering = _lowering(state, known, assume)
    state.arena.reset()
    text.open()
    with nullcontext() if assume else text.keep_inside():
        ask_first(lowering.evaluator, state.kernel)
        lowering.run(op for op in ops_of(state.kernel.body.block) if op not in known.done)
        ask_next(lowering.evaluator, state.kernel)
    return text.close(), list(lowering.evaluator.bounds.conditions)


def _lowering(state: _Kernel, known: _Known, assume: bool) -> Lowering:
    """The lowering of ops of the body, where so much is known."""
    grid = state.kernel.grid.data
    bounds = Bounds(assume, state.text.level)
    for axis, program in known.programs.items():
        bounds.learn(program, lower=[ZERO], upper=[] if grid[axis] == DYNAMIC else [Linear(grid[axis] - 1)])
    concurrent = DYNAMIC in grid or prod(grid) > 1
    evaluator = Evaluator(state.text, HANDLERS, bounds, dict(known.environment), called=state.called)
    evaluator.streams, evaluator.near = (place in state.kernel.attributes for place in (STREAMS, NEAR))
    evaluator.next_launch = NextLaunch.of(state.kernel, known.programs)
    evaluator.backwards, evaluator.foresees_rows = state.backwards, state.target.foresees_rows
    return Lowering(evaluator, state.plan, state.target, state.arena, known.programs, concurrent)
