"""What the launches of a kernel say about its scalars: those that are always multiples of 16 allow wide loads."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.loop import LaunchOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import Expr
from tempo_ir.index.rules import terms

ALIGNMENT = 16


def aligned_arguments(module: ModuleOp) -> dict[str, frozenset[int]]:
    """By kernel the numbers of the arguments that are multiples of 16 in every launch of the module."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    found: dict[str, frozenset[int]] = {}
    for launch in (op for op in module.walk() if isinstance(op, LaunchOp)):
        name = launch.kernel.root_reference.data
        if name not in kernels:
            continue
        scalars = len(kernels[name].body.block.args) - len(launch.buffers)
        aligned = frozenset(_aligned(launch.scalars[:scalars], len(launch.buffers)))
        found[name] = found.get(name, aligned) & aligned
    return found


def _aligned(scalars: Iterable[Expr], first: int) -> Iterable[int]:
    for number, scalar in enumerate(scalars, first):
        if is_aligned(scalar):
            yield number


def is_aligned(expression: Expr) -> bool:
    """Whether an index expression is a multiple of 16 whatever its symbols are."""
    return all(coefficient % ALIGNMENT == 0 for coefficient in terms(expression).values())
