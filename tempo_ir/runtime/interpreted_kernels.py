"""The target "triton-interpret": kernels as Triton source in Triton's interpreter, loops in Python.

Slow (a kernel takes milliseconds) and exact enough to check the source: what runs is the text that a GPU would compile.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.llvm.host import kernels_of
from tempo_ir.lowering.triton import kernel_sources
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.calls import Call, Request
from tempo_ir.runtime.driver import Driver
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.memory import ALIGNMENT, Buffer, Placement


class InterpretedProgram:
    """A lowered module whose kernels run in a process of their own; one call at a time."""

    def __init__(self, module: ModuleOp):
        (self.program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
        self.kernels = kernels_of(list(module.ops))
        sources = zip(self.kernels, kernel_sources(module), strict=True)
        self.sources = {name: (source.name, source.text) for name, source in sources}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, buffers: Sequence[Buffer], placement: Placement, request: Request) -> dict[str, Array]:
        """Run a call: all buffers lie in memory that is shared with the process. Returns the outputs."""
        sizes = [buffer.bytes(request.bounds) for buffer in buffers]
        starts = np.concatenate([[0], np.cumsum([-(-size // ALIGNMENT) * ALIGNMENT + ALIGNMENT for size in sizes])])
        with self._lock, tempfile.NamedTemporaryFile() as file:
            try:
                return self._run(Path(file.name), buffers, [int(start) for start in starts], sizes, request)
            finally:
                self._ask("release")

    def _run(
        self,
        file: Path,
        buffers: Sequence[Buffer],
        starts: Sequence[int],
        sizes: Sequence[int],
        request: Request,
    ) -> dict[str, Array]:
        whole = np.memmap(file, np.uint8, "w+", shape=(starts[-1] + ALIGNMENT,))
        flat: dict[SSAValue, Array] = {}
        for buffer, start, size in zip(buffers, starts, sizes, strict=False):
            flat[buffer.value] = whole[start : start + size].view(buffer.dtype)
            if buffer.owner in ("input", "parameter"):
                flat[buffer.value][...] = request.arrays[buffer.key].reshape(-1)
            elif buffer.owner or buffer.zeroed:
                flat[buffer.value][...] = 0
        numbers = {buffer.value: number for number, buffer in enumerate(buffers)}
        places = {n: (starts[n], sizes[n], _torch_name(buffer)) for n, buffer in enumerate(buffers)}
        self._ask("memory", str(file), len(whole), places)

        def launch(kernel: KernelOp, given: Sequence[SSAValue], scalars: Sequence[int], grid: Sequence[int]) -> None:
            self._ask("launch", kernel.sym_name.data, [numbers[value] for value in given], list(scalars), list(grid))

        call = Call.over(self.program, buffers, flat, request)
        call.make_objects()
        with call.interruptible():
            Driver(call, self.kernels, launch).run()
        return {
            buffer.key: np.array(flat[buffer.value]).reshape(buffer.shape(request.bounds))
            for buffer in buffers
            if buffer.owner == "output"
        }

    def _ask(self, *message: Any) -> None:
        """Send a message and wait for the answer. Raises CompileError where the kernel or the process failed."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(message, process.stdin)
        process.stdin.flush()
        try:
            answer = pickle.load(process.stdout)
        except EOFError:
            self._process = None
            raise CompileError("the process of Triton's interpreter ended; is triton installed?") from None
        if answer is not None:
            raise CompileError(f"Triton's interpreter: {answer}")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "tempo_ir.runtime.kernel_server"]
            environment = {**os.environ, "TRITON_INTERPRET": "1"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
            )
            self._ask("kernels", self.sources)
        return self._process

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def __del__(self) -> None:
        self.close()


def _torch_name(buffer: Buffer) -> str:
    return {"bool": "bool", "bfloat16": "bfloat16"}.get(buffer.dtype.name, buffer.dtype.name)
