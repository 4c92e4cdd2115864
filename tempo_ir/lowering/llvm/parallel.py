"""A launch on several threads: the grid of a kernel in chunks.

    void @name.run(arguments..., i64 low0, i64 high0, ..., ptr scratch, ptr team)     as the kernel, and the team
    void @name.part(ptr frame, i64 chunk, i64 worker)                                 a chunk of it

One axis of the grid is cut, the one of most programs. What a program computes does not depend on who runs it, so that
results are those of one thread, bit by bit. A kernel whose programs write where the text does not say has an order that
shows in the result, and one that reports run-time errors an order that shows in the report: these stay with one thread,
and so does a launch of too little work.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.tile.attributes import DYNAMIC, shape_of
from tempo_ir.dialects.tile.elementwise import ElementwiseOp
from tempo_ir.dialects.tile.memory import AtomicAddOp, GatherOp, IndexedWriteOp, LoadOp
from tempo_ir.dialects.tile.shape import ConstOp, DotOp, ReduceOp, ScanOp
from tempo_ir.dialects.tile.structure import ForOp, IfOp, KernelOp
from tempo_ir.lowering.kernels.translation import STATUS
from tempo_ir.lowering.llvm.kernel import KernelCode
from tempo_ir.lowering.llvm.plan import WEIGHTS
from tempo_ir.lowering.llvm.target import Target
from tempo_ir.lowering.llvm.team import CHUNKS_PER_WORKER, field
from tempo_ir.lowering.llvm.text import KINDS

WORTH_FORKING = 30_000
"""From so many vector instructions on a launch is cut: they take some 10 us, and fork and join 1 to 4."""

UNKNOWN_TRIPS, UNKNOWN_PROGRAMS = 16, 64
"""What a loop or an axis of the grid is taken to have where the text does not say."""

LINE = 64
"""Bytes of a cache line."""


def can_split(kernel: KernelOp, target: Target) -> bool:
    """Has the grid several programs, of which it is not known that they are too little work, and does nothing show in
    which order they run?"""
    grid = kernel.grid.data
    if DYNAMIC not in grid and prod(grid) < 2:
        return False
    if any(argument.name_hint == STATUS for argument in kernel.body.block.args):
        return False
    if any(isinstance(op, AtomicAddOp | IndexedWriteOp) for op in kernel.walk()):
        return False
    fixed, by_argument = _work(kernel.body.block, target)
    return DYNAMIC in grid or bool(by_argument) or max(1, round(fixed)) * prod(grid) >= WORTH_FORKING


def run_name(kernel: str) -> str:
    """The function that runs a launch of a kernel on a team."""
    return f"{kernel}.run"


def scratch_pitch(size: int) -> int:
    """Bytes from the scratch of one thread to that of the next: whole lines, and one between them."""
    return -(-size // LINE) * LINE + LINE if size else 0


def parallel_text(kernel: KernelOp, code: KernelCode, target: Target) -> str:
    """The two functions of the module's docstring, for a kernel that can be split."""
    grid = kernel.grid.data
    axis = max(range(len(grid)), key=lambda n: (UNKNOWN_PROGRAMS if grid[n] == DYNAMIC else grid[n], n))
    low = len(kernel.body.block.args) + 2 * axis
    parameters = [(KINDS[kind], f"%a{number}") for number, (_, kind) in enumerate(code.parameters)]
    return "\n".join(
        [
            *_run_lines(code.name, parameters, low, _work_lines(kernel, target)),
            "",
            *_part_lines(code.name, parameters, low, scratch_pitch(code.scratch_bytes)),
        ]
    )


def _run_lines(name: str, parameters: Sequence[tuple[str, str]], low: int, work: Sequence[str]) -> list[str]:
    arguments = _typed(parameters)
    return [
        f"define void @{run_name(name)}({arguments}, ptr %team) #0 {{",
        "entry:",
        f"  %frame = alloca [{len(parameters) + 1} x i64]",
        "  %alone = icmp eq ptr %team, null",
        "  br i1 %alone, label %one, label %weigh",
        "weigh:",
        f"  %programs = sub i64 %a{low + 1}, %a{low}",
        *work,
        f"  %worth = icmp sge i64 %work, {WORTH_FORKING}",
        "  %several = icmp sge i64 %programs, 2",
        "  %both = and i1 %worth, %several",
        "  br i1 %both, label %split, label %one",
        "split:",
        f"  %threads.at = {field('threads')}",
        "  %threads = load i64, ptr %threads.at",
        f"  %most = mul i64 %threads, {CHUNKS_PER_WORKER}",
        "  %few = icmp slt i64 %programs, %most",
        "  %chunks = select i1 %few, i64 %programs, i64 %most",
        *_frame_lines(parameters, "  store {kind} {value}, ptr {at}"),
        f"  %fork.at = {field('fork')}",
        "  %fork = load ptr, ptr %fork.at",
        f"  call void %fork(ptr %team, ptr @{name}.part, ptr %frame, i64 %chunks)",
        "  ret void",
        "one:",
        f"  call void @{name}({arguments})",
        "  ret void",
        "}",
    ]


def _part_lines(name: str, parameters: Sequence[tuple[str, str]], low: int, pitch: int) -> list[str]:
    own = [value for _, value in parameters]
    own[low], own[low + 1], own[-1] = "%first", "%end", "%own"
    arguments = _typed([(kind, value) for (kind, _), value in zip(parameters, own, strict=True)])
    return [
        f"define internal void @{name}.part(ptr %frame, i64 %chunk, i64 %worker) #0 {{",
        *_frame_lines(parameters, "  {value} = load {kind}, ptr {at}"),
        f"  %programs = sub i64 %a{low + 1}, %a{low}",
        "  %before = mul i64 %programs, %chunk",
        "  %behind = add i64 %before, %programs",
        "  %skip = sdiv i64 %before, %chunks",
        "  %reach = sdiv i64 %behind, %chunks",
        f"  %first = add i64 %a{low}, %skip",
        f"  %end = add i64 %a{low}, %reach",
        f"  %offset = mul i64 %worker, {pitch}",
        f"  %own = getelementptr i8, ptr {parameters[-1][1]}, i64 %offset",
        f"  call void @{name}({arguments})",
        "  ret void",
        "}",
    ]


def _typed(values: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {value}" for kind, value in values)


def _frame_lines(parameters: Sequence[tuple[str, str]], access: str) -> list[str]:
    """Write the arguments and the number of chunks to the frame, or read them: eight bytes each."""
    lines: list[str] = []
    for number, (kind, value) in enumerate([*parameters, ("i64", "%chunks")]):
        at = f"%f{number}"
        lines.append(f"  {at} = getelementptr i8, ptr %frame, i64 {8 * number}")
        lines.append(access.format(kind=kind, value=value, at=at))
    return lines


def _work_lines(kernel: KernelOp, target: Target) -> list[str]:
    """Instructions for `%work`: the vector instructions of a launch, all programs together."""
    fixed, by_argument = _work(kernel.body.block, target)
    lines, total = list[str](), str(max(1, round(fixed)))
    for argument, cost in by_argument.items():
        lines.append(f"  %each{argument} = mul i64 %a{argument}, {max(1, round(cost))}")
        lines.append(f"  %sum{argument} = add i64 {total}, %each{argument}")
        total = f"%sum{argument}"
    for number in range(len(kernel.grid.data)):
        low = len(kernel.body.block.args) + 2 * number
        lines.append(f"  %count{number} = sub i64 %a{low + 1}, %a{low}")
        lines.append(f"  %total{number} = mul i64 {total}, %count{number}")
        total = f"%total{number}"
    return [*lines, f"  %work = add i64 {total}, 0"]


def _work(block: Block, target: Target) -> tuple[float, dict[int, float]]:
    """Vector instructions of one program: a number, and what is to be multiplied by arguments of the kernel, by
    number."""
    fixed, by_argument = 0.0, dict[int, float]()
    for op in ops_of(block):
        match op:
            case ForOp():
                once, each = _work(op.body.block, target)
                trip = (once + sum(each.values()) * UNKNOWN_TRIPS * op.step_size) / op.step_size
                argument = _argument(op.high)
                if argument is None:
                    fixed += trip * _number(op.high, UNKNOWN_TRIPS * op.step_size)
                else:
                    by_argument[argument] = by_argument.get(argument, 0.0) + trip
            case IfOp():
                fixed += sum(_work(region.block, target)[0] for region in op.regions if region.blocks)
            case _:
                fixed += _instructions(op) / target.lanes
    return fixed, by_argument


def _argument(value: SSAValue) -> int | None:
    """The number of the kernel's argument that a value is."""
    block = value.owner
    return block.args.index(value) if isinstance(block, Block) and isinstance(block.parent_op(), KernelOp) else None


def _number(value: SSAValue, unknown: int) -> int:
    op = value.owner
    if isinstance(op, ConstOp) and isinstance(op.number, IntegerAttr):
        return op.number.value.data
    return unknown


def _instructions(op: Operation) -> float:
    """Instructions if no vector held several elements."""
    match op:
        case DotOp():
            return prod(shape_of(op.lhs)) * shape_of(op.rhs)[1]
        case LoadOp() | GatherOp():
            return 2 * prod(shape_of(op.result)) * WEIGHTS[type(op)]
        case ReduceOp() | ScanOp():
            return prod(shape_of(op.value))
        case ElementwiseOp():
            return prod(shape_of(op.results[0])) * WEIGHTS.get(type(op), 1)
        case _:
            return 0.0
