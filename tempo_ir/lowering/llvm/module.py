"""A module of one loop program and its tile kernels as LLVM modules: some for the kernels, one for the host program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.lowering.llvm.host import DECLARATIONS, HostProgram, kernels_of, lower_host
from tempo_ir.lowering.llvm.kernel import KernelCode, lower_kernel, module_text
from tempo_ir.lowering.llvm.target import OPTIMISED, PLAIN, Target

PART_CHARACTERS = 60_000
"""How much text of kernels is handed on at a time: enough that handing on costs nothing, little enough that code is
generated from early on."""
LONG_HOST_CHARACTERS = 50_000
"""A host program of more text, of some hundred launches, is not optimised: a launch takes 5 ns more, and that of a
hundred launches as long to compile as two large kernels."""


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The texts of a module and its program."""

    program: loop.ProgramOp
    host: HostProgram
    kernels: tuple[KernelCode, ...]
    target: Target

    @property
    def text(self) -> str:
        """All of it as one LLVM module."""
        kernels = module_text(self.kernels, self.target)
        declarations = [line for line in DECLARATIONS if line.split("@")[1].split("(")[0] not in kernels]
        return "\n".join([kernels, *declarations, self.host.text])

    @property
    def scratch_bytes(self) -> int:
        """The scratch that any of its kernels needs."""
        return max((code.scratch_bytes for code in self.kernels), default=0)


def lower_module(module: ModuleOp, target: Target, ready: Callable[[str, int], None] | None = None) -> LoweredModule:
    """The LLVM text of the one loop program in a module.

    Each part is handed to `ready` as soon as it is written: a module of its own, and the level at which to generate
    code of it.
    """
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    kernels = kernels_of(list(module.ops))
    codes: list[KernelCode] = []
    for part in _parts(lower_kernel(kernel, target) for kernel in kernels.values()):
        codes += part
        if ready is not None:
            ready(module_text(part, target), OPTIMISED)
    lowered = LoweredModule(program, lower_host(program, kernels, target), tuple(codes), target)
    if ready is not None:
        text = "\n".join([*(code.declaration for code in codes), *DECLARATIONS, lowered.host.text])
        ready(text, PLAIN if len(text) > LONG_HOST_CHARACTERS else OPTIMISED)
    return lowered


def _parts(codes: Iterable[KernelCode]) -> Iterator[list[KernelCode]]:
    """The kernels, in parts of about as much text."""
    part: list[KernelCode] = []
    for code in codes:
        part.append(code)
        if sum(len(code.definition) for code in part) >= PART_CHARACTERS:
            yield part
            part = []
    if part:
        yield part
