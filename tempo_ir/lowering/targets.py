"""What `tempo-opt -t` prints: the code of a loop program, its kernels lowered for the target if they are not yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target

from tempo_ir.dialects.loop import BodyOperation
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering import get_all_passes
from tempo_ir.lowering.kernels.loop_lower_kernels import LoopLowerKernelsPass
from tempo_ir.lowering.persistence.loop_persist import LoopPersistPass

PIPELINE = "sdg-default,sdg-schedule,loop-form-kernels,loop-plan-storage"
"""The passes from the graph, gradients and all, to what the targets take."""
GPU_PASSES = ("tile-forward-stores",)
"""What the kernels for a GPU go through after loop-lower-kernels."""


@dataclass(frozen=True)
class LlvmTarget(Target):
    """`-t llvm`: the whole program, kernels and time loops, as LLVM text for this machine."""

    name = "llvm"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from tempo_ir.lowering.llvm import print_module

        print_module(lowered(ctx, module, "cpu"), output)


@dataclass(frozen=True)
class TritonTarget(Target):
    """`-t triton`, `-t 'triton{machine=sm_90 precision=tf32}'`: the Triton source of every kernel, and the driver."""

    name = "triton"
    machine: str = "sm_80"
    precision: str = "ieee"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from tempo_ir.lowering.triton.module import print_module
        from tempo_ir.lowering.triton.style import UnknownPrecisionError, style_of

        try:
            style = style_of(self.precision)
        except UnknownPrecisionError as error:
            raise PassFailedException(str(error)) from None
        print_module(lowered(ctx, module, self.machine), output, style)


def lowered(ctx: Context, module: ModuleOp, target: str) -> ModuleOp:
    """The module after loop-lower-kernels: itself where that has run, else a lowered copy.

    Raises PassFailedException for a program that has no order yet.
    """
    for op in module.ops:
        if isinstance(op, ProgramOp):
            error = PassFailedException(
                f"@{op.sym_name.data} is an sdg program, which has no kernels yet: "
                f"run --pass-pipeline='{PIPELINE}' on it"
            )
            error.op = op  # pyright: ignore[reportAttributeAccessIssue]
            raise error
    has_kernels = any(isinstance(op, KernelOp) for op in module.ops)
    if has_kernels or not any(isinstance(op, BodyOperation) for op in module.walk()):
        return module
    copy = module.clone()
    if target != "cpu":
        LoopPersistPass().apply(ctx, copy)
    LoopLowerKernelsPass(target=target).apply(ctx, copy)
    if target != "cpu":
        for name in GPU_PASSES:
            get_all_passes()[name]()().apply(ctx, copy)
    copy.verify()
    return copy
