"""Profiles of calls: how long each kernel of a program on the CPU took, and how much it did.

The program is compiled once more with the cycles counted round each launch (see `lowering.llvm.host`), and called
twice: the first call touches the memory that it needs, the second is the one that counts.
"""

from __future__ import annotations

import ctypes
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from tempo_ir.dialects import loop
from tempo_ir.dialects.sdg.locations import location_text
from tempo_ir.lowering.costs import Work, work_of
from tempo_ir.lowering.kernels.loop_lower_kernels import prepare
from tempo_ir.lowering.llvm.engine import compile_object, host_target, load_object
from tempo_ir.lowering.llvm.host import CLOCKS, has_cycle_counter
from tempo_ir.reference.calls import Outputs
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.calls import Request
from tempo_ir.runtime.compiler import PEEL
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.executable import Executable, Native, check_executable
from tempo_ir.runtime.frames import Callee, Frame
from tempo_ir.runtime.native import NativeCompiler
from tempo_ir.runtime.statistics import Statistics

ELSEWHERE = "(loops, host calls)"
"""The line of what passes between the launches."""


@dataclass(frozen=True)
class KernelTime:
    """What the launches of one kernel took in a call: `seconds` in all, `least` in the shortest. `operations` and
    `bytes_moved` are those of all launches, as `Executable.costs` counts them, None where they have no closed form;
    `places` are the lines of the program that it comes from."""

    kernel: str
    launches: int
    seconds: float
    least: float
    operations: int | None = None
    bytes_moved: int | None = None
    places: tuple[str, ...] = ()

    @property
    def flops(self) -> float | None:
        """Operations a second."""
        return self.operations / self.seconds if self.operations and self.seconds else None

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second, of memory or of a cache."""
        return self.bytes_moved / self.seconds if self.bytes_moved and self.seconds else None


@dataclass(frozen=True)
class Profile:
    """A call: its seconds of native code, the kernels that it launched, the slowest first, and what is none of them."""

    seconds: float
    kernels: tuple[KernelTime, ...]

    @property
    def elsewhere(self) -> float:
        """Seconds outside of kernels: loops, host methods, what Python runs."""
        return max(0.0, self.seconds - sum(kernel.seconds for kernel in self.kernels))

    def __str__(self) -> str:
        headings = ("kernel", "launches", "seconds", "share", "shortest", "GF/s", "GB/s", "lines")
        lines = [_cells(kernel, self.seconds) for kernel in self.kernels]
        rest = self.elsewhere
        lines.append((ELSEWHERE, "", _seconds(rest), _share(rest, self.seconds), "", "", "", ""))
        widths = [max(len(line[column]) for line in (headings, *lines)) for column in range(len(headings))]
        return "\n".join(_aligned(line, widths) for line in (headings, *lines))


def profile(executable: Executable, **call: Any) -> Profile:
    """Where the time of a call goes: `print(tempo_ir.profile(exe, x=x, T=64))`, with the arguments of a call.

    Compiles once more and runs the program twice. Raises CallError for a target other than cpu and for a processor
    whose cycles cannot be counted, and what a call raises.
    """
    check_executable(executable)
    if not isinstance(executable, Native):
        raise CallError(f"target '{executable.target}' has no profile: compile for cpu")
    if not has_cycle_counter(executable.native.target):
        raise CallError("a profile counts cycles, and on this processor programs may not read how many pass")
    clocked = Clocked(executable.source, executable.settings)
    clocked(**call)
    clocked(**call)
    return clocked.profile()


class Clocked(Native):
    """A program on the CPU that counts the cycles of its launches."""

    def _made(self) -> tuple[Callee, Statistics]:
        with NativeCompiler(clocked=True) as compiler:
            self.levels = self._lowered(compiler.kernel)
            self.native = self._coded(self.levels, compiler.program)
        self.launches = [op for op in self.native.callee.program.walk() if isinstance(op, loop.LaunchOp)]
        self.clocks = _fresh_clocks(len(self.launches))
        self.ran: Mapping[str, int] = {}
        return self.native.callee, self._counted(self.native.callee.program)

    def _execute(self, frame: Frame, request: Request) -> Outputs:
        self.clocks = _fresh_clocks(len(self.launches))
        outputs = self.native.execute(frame, request, self._workspaces, self.clocks)
        self.ran = outputs.bounds
        return outputs

    def profile(self) -> Profile:
        """The profile of the last call."""
        assert self._last is not None
        total, *numbers = (int(number) for number in self.clocks)
        counted: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for position, launch in enumerate(self.launches):
            runs, cycles, least = numbers[CLOCKS * position : CLOCKS * (position + 1)]
            if runs:
                counted[kernel_of(launch)].append((runs, cycles, least))
        work, rate, bounds = self._work, cycles_per_second(), {**self._last.bounds, **self.ran}
        kernels: list[KernelTime] = []
        for kernel, found in counted.items():
            runs, cycles, least = (list(column) for column in zip(*found, strict=True))
            operations, moved = work[kernel].at(bounds) if kernel in work else (None, None)
            seconds = sum(cycles) / rate, min(least) / rate
            kernels.append(KernelTime(kernel, sum(runs), *seconds, operations, moved, self._places[kernel]))
        kernels.sort(key=lambda kernel: -kernel.seconds)
        return Profile(total / rate, tuple(kernels))

    @cached_property
    def _work(self) -> dict[str, Work]:
        """The work of each kernel: that of the leaves that it was made of, as they are prepared for kernels; of all
        steps of a loop at once, that of the loop. Before the first of them a lowered program fills the memory of its
        literals, which is left out."""
        formed = self.formed.clone()
        for kernel, steps in prepare(formed, self.target, peel=PEEL not in self.settings.without).items():
            Rewriter.replace_op(kernel, steps)
        leaves = [op for op in formed.walk() if isinstance(op, loop.BodyOperation)]
        after = [op for op in self.program.walk() if isinstance(op, loop.LaunchOp | loop.BodyOperation)]
        made = dict(zip(leaves, after[len(after) - len(leaves) :], strict=True))
        return work_of(formed, lambda leaf: kernel_of(made[leaf]))

    @cached_property
    def _places(self) -> dict[str, tuple[str, ...]]:
        """The lines of the program that each kernel comes from."""
        places: dict[str, dict[str, None]] = defaultdict(dict)
        for launch in self.launches:
            if place := location_text(launch.location):
                places[kernel_of(launch)][place] = None
        return defaultdict(tuple, {kernel: tuple(found) for kernel, found in places.items()})


def kernel_of(op: Operation) -> str:
    """The name of the kernel of a launch; "" for what Python runs."""
    return op.kernel.root_reference.data if isinstance(op, loop.LaunchOp) else ""


def _fresh_clocks(launches: int) -> Array:
    clocks = np.zeros(1 + CLOCKS * launches, np.int64)
    clocks[3::CLOCKS] = np.iinfo(np.int64).max
    return clocks


_COUNTER = "tempo_cycles"
_MEASURED = 0.02
"""Seconds over which the rate of the counter is measured."""


@cache
def cycles_per_second() -> float:
    """The rate of the cycle counter, which does not depend on the clock of the processor: measured once, in 20 ms."""
    target = host_target()
    text = f"""
declare i64 @llvm.readcyclecounter()
define void @{_COUNTER}(ptr %to) {{
  %now = call i64 @llvm.readcyclecounter()
  store i64 %now, ptr %to
  ret void
}}
"""
    read = load_object(compile_object(text, target), target).function(_COUNTER, ctypes.c_void_p)
    place = np.zeros(1, np.int64)

    def now() -> tuple[int, float]:
        read(place.ctypes.data)
        return int(place[0]), time.perf_counter()

    cycles, begin = now()
    while time.perf_counter() - begin < _MEASURED:
        continue
    later, end = now()
    return (later - cycles) / (end - begin)


def _cells(kernel: KernelTime, total: float) -> tuple[str, ...]:
    rates = ("" if rate is None else f"{rate / 1e9:.1f}" for rate in (kernel.flops, kernel.bandwidth))
    places = [Path(place).name for place in kernel.places]  # a file name and a line
    first = [kernel.kernel, f"{kernel.launches:,}", _seconds(kernel.seconds), _share(kernel.seconds, total)]
    return (*first, _seconds(kernel.least), *rates, ", ".join(places[:2]) + ", ..." * (len(places) > 2))


def _seconds(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def _share(seconds: float, total: float) -> str:
    return f"{100 * seconds / total:.1f} %" if total else ""


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    texts = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
    texts[0], texts[-1] = line[0].ljust(widths[0]), line[-1]
    return "  ".join(texts).rstrip()
