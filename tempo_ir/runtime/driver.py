"""A loop program run by Python: the same walk as the native host program, each launch given to a function.

For targets whose kernels Python launches, and to look at what a program does step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Block, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import evaluate
from tempo_ir.lowering.llvm.host import Site
from tempo_ir.runtime.calls import Call

Launch = Callable[[KernelOp, Sequence[SSAValue], Sequence[int], Sequence[int]], None]
"""Runs a kernel: its buffers, its scalars, the extents of the grid."""


class Driver:
    """One call of a loop program."""

    def __init__(self, call: Call, kernels: Mapping[str, KernelOp], launch: Launch):
        self.call = call
        self.kernels = kernels
        self.launch = launch

    def run(self) -> None:
        """Run the program. Raises what Python code in it raises, KeyboardInterrupt included."""
        symbols = dict(zip(self.call.scalar_names, self.call.scalars, strict=True))
        self._block(self.call.program.body.block, symbols)

    def _block(self, block: Block, symbols: Mapping[str, int]) -> None:
        for op in block.ops:
            match op:
                case loop.ForOp():
                    self._loop(op, symbols)
                case loop.IfOp():
                    taken = op.then if evaluate(op.condition, symbols) else op.otherwise
                    if taken is not None:
                        self._block(taken.block, symbols)
                case loop.LaunchOp():
                    self._launch(op, symbols)
                case loop.CheckOp():
                    if self.call.flat[op.status][0]:
                        self._site(Site(op, ()), symbols)
                case loop.AccessOperation():
                    self._site(Site(op, tuple(symbols)), symbols)
                case _:
                    pass  # buffers and frees: where they lie is decided before

    def _loop(self, op: loop.ForOp, symbols: Mapping[str, int]) -> None:
        values = evaluate(op.range, symbols)
        for value in reversed(values) if op.down else values:
            inner = {**symbols, op.iterator: value}
            self._block(op.body.block, inner)
            if op.until is not None and self.call.rows.view(loop.BufferAccess.of(*op.until), inner):
                return

    def _launch(self, op: loop.LaunchOp, symbols: Mapping[str, int]) -> None:
        kernel = self.kernels[op.kernel.root_reference.data]
        values = [evaluate(scalar, symbols) for scalar in op.scalars]
        own = len(kernel.body.block.args) - len(op.buffers)
        open_axes = iter(values[own:])
        grid = [extent if extent >= 0 else next(open_axes) for extent in kernel.grid.data]
        if all(extent > 0 for extent in grid):
            self.launch(kernel, list(op.buffers), values[:own], grid)

    def _site(self, site: Site, symbols: Mapping[str, int]) -> None:
        if isinstance(site.op, loop.CheckOp):
            site = Site(site.op, tuple(symbols))
        if self.call.run_site(site, [symbols[name] for name in site.iterators]):
            self.call.finish()
