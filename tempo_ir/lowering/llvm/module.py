"""A module of one loop program and its tile kernels as LLVM modules: some for the kernels, one for the host program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm import order
from tempo_ir.lowering.llvm.host import DECLARATIONS, HostProgram, kernels_of, lower_host
from tempo_ir.lowering.llvm.kernel import KernelCode, lower_kernel, module_text
from tempo_ir.lowering.llvm.parallel import can_split, parallel_text, run_name
from tempo_ir.lowering.llvm.target import OPTIMISED, PLAIN, Target

PART_CHARACTERS = 60_000
"""How much text of kernels is handed on at a time: enough that handing on costs nothing, little enough that code is
generated from early on."""
LONG_HOST_CHARACTERS = 50_000
"""A host program of more text, of some hundred launches, is not optimised: a launch takes 5 ns more, and that of a
hundred launches as long to compile as two large kernels."""


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The texts of a module, and its program."""

    program: loop.ProgramOp
    host: HostProgram
    kernels: tuple[KernelCode, ...]
    parallel: tuple[str, ...]
    """The functions that run launches of kernels on several threads."""
    target: Target

    @property
    def text(self) -> str:
        """All of it as one LLVM module."""
        kernels = module_text(self.kernels, self.target, self.parallel)
        return _joined(kernels, order.functions_text(self.host.orders), self.host.text)

    @property
    def scratch_bytes(self) -> int:
        """The scratch that its kernels need, each thread of its own."""
        return max((code.scratch_bytes for code in self.kernels), default=0)


class ModuleLowering:
    """The lowering of a module whose kernels may come one by one, before the program that launches them.

    Each part of the text is handed to `ready` as soon as it is written: a module of its own, and the level at which to
    generate code of it.
    """

    def __init__(self, target: Target, ready: Callable[[str, int], None] | None = None, *, clocked: bool = False):
        self._target = target
        self._clocked = clocked
        self._ready = ready
        self._codes: dict[KernelOp, KernelCode] = {}
        self._parallel: dict[KernelOp, str] = {}
        self._part: list[KernelOp] = []

    def kernel(self, kernel: KernelOp) -> None:
        """Lower a kernel. Raises UnsupportedKernel where the back end lacks something."""
        code = self._codes[kernel] = lower_kernel(kernel, self._target)
        if can_split(kernel, self._target):
            self._parallel[kernel] = parallel_text(kernel, code, self._target)
        self._part.append(kernel)
        if sum(self._codes[kernel].characters for kernel in self._part) >= PART_CHARACTERS:
            self._hand_on()

    def module(self, module: ModuleOp) -> LoweredModule:
        """Lower the kernels of a module that have not come before, and its one loop program."""
        kernels = kernels_of(list(module.ops))
        for kernel in kernels.values():
            if kernel not in self._codes:
                self.kernel(kernel)
        (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
        split = {name for name, kernel in kernels.items() if kernel in self._parallel}
        host = lower_host(program, kernels, split, self._target, clocked=self._clocked)
        lowered = LoweredModule(program, host, *self._texts(kernels.values()), self._target)
        if self._ready is not None:
            self._hand_on_host(lowered, self._ready)
        return lowered

    def _hand_on_host(self, lowered: LoweredModule, ready: Callable[[str, int], None]) -> None:
        """The host program and the kernels that wait, in one module, since each takes LLVM some milliseconds however
        short it is; in one of its own where it is long."""
        host, orders = lowered.host, order.functions_text(lowered.host.orders)
        waiting, self._part = self._part, []
        codes, parallel = self._texts(waiting)
        kernels = module_text(codes, self._target, parallel) if codes else ""
        is_long = len(host.text) > LONG_HOST_CHARACTERS
        defined = [] if is_long else [code.name for code in codes]
        called = [self._called(kernel, code) for kernel, code in self._codes.items() if code.name not in defined]
        if not is_long:
            ready(_joined(kernels, *called, orders, host.text), OPTIMISED)
            return
        if kernels or orders:
            ready(_joined(kernels, orders), OPTIMISED)
        ready(_joined("", *called, *map(order.declaration, host.orders), host.text), PLAIN)

    def _called(self, kernel: KernelOp, code: KernelCode) -> str:
        """The declaration of what a launch of a kernel calls."""
        return code.called(run_name(code.name), "ptr") if kernel in self._parallel else code.called(code.name)

    def _texts(self, kernels: Iterable[KernelOp]) -> tuple[tuple[KernelCode, ...], tuple[str, ...]]:
        kernels = list(kernels)
        parallel = tuple(self._parallel[kernel] for kernel in kernels if kernel in self._parallel)
        return tuple(self._codes[kernel] for kernel in kernels), parallel

    def _hand_on(self) -> None:
        if self._part and self._ready is not None:
            codes, parallel = self._texts(self._part)
            self._ready(module_text(codes, self._target, parallel), OPTIMISED)
        self._part = []


def _joined(kernels: str, *others: str) -> str:
    """Kernels and what else is one module with them, with what that calls."""
    declarations = [line for line in DECLARATIONS if line.split("@")[1].split("(")[0] not in kernels]
    return "\n".join([kernels, *declarations, *others])


def lower_module(module: ModuleOp, target: Target) -> LoweredModule:
    """The LLVM text of the one loop program in a module."""
    return ModuleLowering(target).module(module)
