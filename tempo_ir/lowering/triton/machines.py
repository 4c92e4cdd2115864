"""The GPUs that kernels are made for: what Triton's compiler calls them, and what a multiprocessor has.

A machine is named as its compilers name it, `sm_90` or `gfx942`. Of NVIDIA's all from `sm_80` on are machines: one that
has no row here is made like the last before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


class UnknownMachineError(ValueError):
    """There is no machine of a name; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU: `backend` and `arch` are Triton's names, `warp` is the threads of one, `blocks` the target whose blocks
    `loop-lower-kernels` takes; a program may have `shared` bytes of shared memory.

    A multiprocessor has `threads` at once and so many `registers`; the whole does so many operations of f32 a second,
    and so many by tensor cores (of 16 bits; a half of TF32).
    """

    name: str
    backend: str
    arch: int | str
    warp: int
    blocks: str
    shared: int
    threads: int
    registers: int
    operations: float
    tensor_operations: float


MACHINES: Mapping[str, Machine] = MappingProxyType(
    {
        machine.name: machine
        for machine in (
            Machine("sm_80", "cuda", 80, 32, "sm_80", 166_912, 2048, 65_536, 1.9e13, 3.1e14),
            Machine("sm_86", "cuda", 86, 32, "sm_80", 101_376, 1536, 65_536, 3.5e13, 1.5e14),
            Machine("sm_89", "cuda", 89, 32, "sm_80", 101_376, 1536, 65_536, 8e13, 3.3e14),
            Machine("sm_90", "cuda", 90, 32, "sm_90", 232_448, 2048, 65_536, 6.6e13, 9.8e14),
            Machine("sm_100", "cuda", 100, 32, "sm_90", 232_448, 2048, 65_536, 7.5e13, 2.2e15),
            Machine("sm_120", "cuda", 120, 32, "sm_90", 101_376, 1536, 65_536, 1e14, 4e14),
            Machine("gfx942", "hip", "gfx942", 64, "gfx942", 65_536, 2048, 131_072, 8.1e13, 1.3e15),
        )
    }
)


def machine_of(name: str) -> Machine:
    """The machine of a name. Raises UnknownMachineError."""
    if name in MACHINES:
        return MACHINES[name]
    number = re.fullmatch(r"sm_(\d+)", name)
    like = [m for m in MACHINES.values() if number and isinstance(m.arch, int) and m.arch <= int(number[1])]
    if not like:
        raise UnknownMachineError(f"there is no machine '{name}'; use one of {', '.join(MACHINES)}")
    assert number is not None
    return replace(like[-1], name=name, arch=int(number[1]))


def name_of(backend: str, arch: int | str) -> str:
    """The name of the machine that Triton calls so."""
    return f"sm_{arch}" if backend == "cuda" else str(arch)
