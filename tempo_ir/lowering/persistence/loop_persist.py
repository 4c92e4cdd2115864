"""The pass `loop-persist`: a loop over steps as one launch."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.loop import (
    DONATES,
    AllocOp,
    BodyOperation,
    CheckOp,
    ForOp,
    FreeOp,
    IfOp,
    LaunchOp,
    OutputOp,
    ParameterOp,
    ProgramOp,
)
from tempo_ir.dialects.sdg.failing import may_fail
from tempo_ir.dialects.sdg.reduction import ScanOp
from tempo_ir.dialects.sdg.shape_ops import ScatterAddOp
from tempo_ir.index import free_symbols
from tempo_ir.lowering.kernels.library import library_op
from tempo_ir.lowering.persistence.rows import NoRows, Rows, leaves_of, rows_of
from tempo_ir.lowering.persistence.work import TooMuch, check_work, rows_of_a_program
from tempo_ir.passes.remarks import count, remark


class Stays(Exception):
    """The loop launches its kernels one by one; the message says why."""


@dataclass(frozen=True)
class LoopPersistPass(ModulePass):
    """
    Mark the loops of which one launch runs all iterations on a GPU. Before:

    ```mlir
    loop.for t = 0 to T {                             loop.for t = 0 to T in programs of 16 rows {
      loop.kernel ins(%a = %h[t], %b = %w, ...)         loop.kernel ins(%a = %h[t], %b = %w, ...)
        outs(%h[t + 1]) { h = tanh(x + h @ w) }    ->     outs(%h[t + 1]) { h = tanh(x + h @ w) }
    }                                                 }
    ```
    and after loop-lower-kernels `loop.launch @contract_add_tanh_over_t(...)`, whose programs each run the loop.

    Programs run in no order, so what one of them writes no other may touch: each has rows of its own where all that the
    loop writes has an axis of rows that nothing mixes (`persistence.rows`); else there is one program, which has
    everything. In both cases a step must be little work for a program (`persistence.work`): many rows, or small ones.

    A loop stays as it is, with a remark, where it calls the host, copies rows to or from it, may fail at a point, ends
    by data, or has a loop of unknown length in it (that one may be marked); where a value of it is as long as the steps
    so far; where a step is much work. Inner loops of a marked one run in its programs. It does nothing for a CPU, whose
    host program is native.
    """

    name = "loop-persist"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [inner for inner in op.ops if isinstance(inner, ProgramOp)]:
            count(self, "persisted", _mark_all(program.body.block))


def _mark_all(block: Block) -> int:
    """Mark the outermost loops of a block that can be; returns how many."""
    marked = 0
    for op in block.ops:
        if isinstance(op, IfOp):
            marked += sum(_mark_all(inner) for region in op.regions for inner in region.blocks)
        if not isinstance(op, ForOp) or not leaves_of(op.body.block):
            continue
        try:
            op.programs_attr = IntegerAttr(programs_of(op), i64)
            marked += 1
        except Stays as reason:
            inner = any(isinstance(inner, ForOp) for inner in op.body.walk())
            if not inner:
                remark(op, f"its kernels are launched in each iteration: {reason}")
            marked += _mark_all(op.body.block)
    return marked


def programs_of(loop: ForOp) -> int:
    """How many rows each program of a loop has, 0 for one program. Raises Stays."""
    for inner in (loop, *(inner for inner in loop.body.walk() if isinstance(inner, ForOp))):
        if inner.until is not None or inner.step != 1:
            raise Stays("data ends it" if inner.until is not None else "it leaves steps out")
    _check_operations(loop)
    _check_donations(loop)
    block = loop.body.block
    try:
        rows = _rows(loop)
    except NoRows as reason:
        try:
            check_work(block, None, 0)
        except TooMuch as too_much:
            raise Stays(f"{reason}, and {too_much}") from None
        return 0
    size = rows_of_a_program(block, rows)
    if isinstance(rows.extent, int):
        size = min(size, 1 << (rows.extent - 1).bit_length())
    try:
        check_work(block, rows, size)
    except TooMuch as too_much:
        raise Stays(str(too_much)) from None
    return size


def _rows(loop: ForOp) -> Rows:
    """The rows of a loop, as many in all iterations."""
    leaves = leaves_of(loop.body.block)
    if any(isinstance(op, ScanOp | ScatterAddOp) for leaf in leaves for op in leaf.body.walk()):
        raise NoRows("a running sum has an order of its own")
    rows = rows_of(loop.body.block)
    iterators = {inner.iterator for inner in (loop, *(op for op in loop.body.walk() if isinstance(op, ForOp)))}
    if not isinstance(rows.extent, int) and free_symbols(rows.extent) & iterators:
        raise NoRows(f"there are {rows.extent} rows, more in each iteration")
    return rows


def _check_operations(loop: ForOp) -> None:
    """Raise Stays for what a kernel cannot do."""
    for op in loop.body.walk():
        match op:
            case BodyOperation():
                if library_op(op) is not None:
                    raise Stays("a library computes a step of it")
                if any(map(may_fail, op.body.walk())):
                    raise Stays("a step of it may fail")
            case AllocOp():
                if loop.iterator in _size_symbols(op):
                    raise Stays("memory of it is of another size in each iteration")
            case ForOp() | IfOp() | FreeOp():
                pass
            case LaunchOp() | CheckOp():
                raise Stays("its kernels are lowered already")
            case _ if op.name.startswith("loop.") and op.name not in ("loop.yield", "loop.fold"):
                raise Stays(f"it holds {op.name}")
            case _:
                pass


def _size_symbols(op: AllocOp) -> set[str]:
    """What the number of rows of a buffer depends on."""
    return {name for dim in op.buffer_type.dims if dim.extent is not None for name in free_symbols(dim.extent)}


def _check_donations(loop: ForOp) -> None:
    """Raise Stays where the loop writes memory that it also has under the name of a parameter."""
    used: set[SSAValue] = {operand for op in loop.body.walk() for operand in op.operands}
    parameters = {operand.owner.key.data for operand in used if isinstance(operand.owner, ParameterOp)}
    for buffer in used:
        op = buffer.owner
        if isinstance(op, OutputOp) and DONATES in op.attributes and op.key.data in parameters:
            raise Stays(f"it reads and writes the memory of the state '{op.key.data}'")
