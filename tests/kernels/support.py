"""Run one sdg op as a tile kernel in the reference interpreter of tiles, beside its meaning in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from tempo_ir.dialects.loop import AllocOp, BodyOperation, BufferAccess, BufferType, ComputeOp, ProgramOp, YieldOp
from tempo_ir.dialects.loop import KernelOp as LoopKernelOp
from tempo_ir.dialects.sdg import NO_DIMS, SdgOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.dialects.types import Tensor, as_tensor, element
from tempo_ir.index import Space, evaluate
from tempo_ir.lowering.kernels.blocks import CPU, Blocks
from tempo_ir.lowering.kernels.layout import Layout
from tempo_ir.lowering.kernels.translation import leaf_buffers, translate
from tempo_ir.lowering.llvm.jit import compile_kernel
from tempo_ir.reference.dtypes import numpy_dtype
from tempo_ir.reference.operations import evaluate as meaning
from tempo_ir.reference.tile import run_kernel

SMALL = Blocks(column=4, row=2, reduced=3, dynamic_row=2, dynamic=4)
"""Blocks that make tails and loops of everything."""
PADDED = Blocks(column=8, row=4, reduced=4, dynamic_row=2, dynamic=4, powers_of_two=True)
Make = Callable[..., SdgOp]


def leaf_of(make: Make, types: Sequence[Tensor], point: Mapping[str, str] | None = None) -> ComputeOp:
    """A program with one leaf whose op is `make(*arguments)`, over buffers of one slot."""
    block = Block(arg_types=list(types))
    op = make(*block.args)
    block.add_op(op)
    block.add_op(YieldOp(op.results))
    reads = [BufferAccess(AllocOp(BufferType.of((), t)).buffer, (), t) for t in types]
    result_type = op.results[0].type
    writes = [BufferAccess(AllocOp(BufferType.of((), result_type)).buffer, (), result_type)]
    leaf = ComputeOp(reads, writes, Region(block))
    program = ProgramOp("p", Space())
    for access in (*reads, *writes):
        program.body.block.add_op(access.buffer.owner)
    program.body.block.add_op(leaf)
    return leaf


def kernel_of(leaf: BodyOperation, blocks: Blocks = CPU, space: Space | None = None):
    """The translation of a leaf."""
    space = Space() if space is None else space
    layouts = {buffer: Layout.of(buffer.type, space) for buffer in leaf_buffers(leaf)}
    return translate(leaf, "kernel", space, layouts, blocks)


def run(
    leaf: BodyOperation,
    inputs: Sequence[np.ndarray],
    shape: Sequence[int],
    symbols: Mapping[str, int],
    blocks: Blocks,
    *,
    native: bool = False,
) -> tuple[np.ndarray, list[int], KernelOp]:
    """The result of the kernel, the cells in which it leaves a run-time error, and the kernel."""
    translation = kernel_of(leaf, blocks)
    result = np.full(shape, 77, numpy_dtype(element(leaf.out_types.data[0])))
    arrays: dict[SSAValue, np.ndarray] = dict(zip(leaf.ins, inputs, strict=True))
    arrays[leaf.outs[0]] = result
    status = np.zeros(len(translation.failures) + 1, np.int64)
    pointers = [np.ascontiguousarray(arrays[buffer]) if buffer in leaf.ins else result for buffer in leaf_buffers(leaf)]
    if translation.failures:
        pointers.append(status)
    values = [evaluate(scalar, symbols) for scalar in translation.scalars]
    given = iter(values[len(values) - sum(n < 0 for n in translation.kernel.grid.data) :])
    grid = [n if n >= 0 else next(given) for n in translation.kernel.grid.data]
    scalars = values[: len(translation.kernel.body.block.args) - len(pointers)]
    if native:
        compile_kernel(translation.kernel)(*pointers, *scalars, grid=grid)
    else:
        run_kernel(translation.kernel, [*pointers, *scalars], grid)
    return result, status.tolist(), translation.kernel


def check(
    make: Make,
    types: Sequence[Tensor],
    inputs: Sequence[np.ndarray],
    symbols: Mapping[str, int] | None = None,
    *,
    tolerance: float = 2e-6,
    all_blocks: Sequence[Blocks] = (CPU, SMALL, PADDED),
) -> None:
    """The kernel computes what the op means: for several block sizes in the interpreter of tiles, and as native
    code."""
    symbols = {} if symbols is None else symbols
    for blocks, native in [*((blocks, False) for blocks in all_blocks), (CPU, True)]:
        leaf = leaf_of(make, types)
        op = leaf.body.block.first_op
        assert isinstance(op, SdgOp)
        (expected,) = meaning(op, list(inputs), symbols, 0, {})
        call = {"call.seed": 0, **symbols}
        actual, status, kernel = run(leaf, inputs, expected.shape, call, blocks, native=native)
        assert not any(status)
        compare(actual, expected, tolerance, str(kernel))


def compare(actual: np.ndarray, expected: np.ndarray, tolerance: float, what: str) -> None:
    """Equal for integers and booleans, close for floats, NaN where there is NaN."""
    if actual.dtype.kind in "iub":
        assert np.array_equal(actual, expected), what
        return
    wide = np.float64 if actual.dtype.itemsize > 2 else np.float32
    a, b = actual.astype(wide), expected.astype(wide)
    assert np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True), f"{a}\n{b}\n{what}"


def data(shape: Sequence[int], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    """Numbers of any sign; small integers."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.random(shape) < 0.5
    if dtype[0] in "iu":
        low = 0 if dtype[0] == "u" else -9
        return generator.integers(low, 10, shape).astype(f"{'uint' if dtype[0] == 'u' else 'int'}{dtype[1:]}")
    values = generator.standard_normal(shape)
    if dtype == "bf16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    return values.astype(f"float{dtype[1:]}")


Body = Callable[..., SSAValue]
"""Adds ops to a block by its first argument, `add(op class, *arguments)`, and gives the value that is written."""


def body_of(make: Body, types: Sequence[Tensor]) -> LoopKernelOp:
    """A program with one kernel of several ops, over buffers of one slot."""
    block = Block(arg_types=list(types))

    def add(cls: Callable[..., SdgOp], *arguments: object, **properties: object) -> SSAValue:
        op = cls(*arguments, domain=NO_DIMS, **properties)
        block.add_op(op)
        return op.results[0]

    result = make(add, *block.args)
    block.add_op(YieldOp([result]))
    reads = [BufferAccess(AllocOp(BufferType.of((), t)).buffer, (), t) for t in types]
    result_type = as_tensor(result.type)
    writes = [BufferAccess(AllocOp(BufferType.of((), result_type)).buffer, (), result_type)]
    leaf = LoopKernelOp(reads, writes, Region(block))
    program = ProgramOp("p", Space())
    for access in (*reads, *writes):
        program.body.block.add_op(access.buffer.owner)
    program.body.block.add_op(leaf)
    return leaf


def check_body(
    make: Body,
    types: Sequence[Tensor],
    inputs: Sequence[np.ndarray],
    symbols: Mapping[str, int] | None = None,
    tolerance: float = 1e-5,
) -> None:
    """The kernel of several ops against their meaning, one after the other, with all blocks and as machine code."""
    symbols = symbols or {}
    leaf = body_of(make, types)
    expected = meaning_of(leaf, inputs, symbols)
    for blocks, native in ((SMALL, False), (PADDED, False), (CPU, False), (CPU, True)):
        result, _, kernel = run(leaf, inputs, expected.shape, symbols, blocks, native=native)
        compare(result, expected, tolerance, str(kernel))


def meaning_of(leaf: LoopKernelOp, inputs: Sequence[np.ndarray], symbols: Mapping[str, int]) -> np.ndarray:
    """What the ops of a body mean, one after the other."""
    values: dict[SSAValue, np.ndarray] = dict(zip(leaf.body.block.args, inputs, strict=True))
    for op in leaf.body.block.ops:
        if isinstance(op, SdgOp):
            (values[op.results[0]],) = meaning(op, [values[operand] for operand in op.operands], symbols)
    (expected,) = (values[value] for value in leaf.yielded)
    return expected


__all__ = [
    "PADDED", "SMALL", "body_of", "check", "check_body", "compare", "data", "kernel_of", "leaf_of", "meaning_of", "run",
]  # fmt: skip
