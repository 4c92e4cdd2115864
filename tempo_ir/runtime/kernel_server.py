# pyright: basic
"""The process that runs Triton kernels in Triton's interpreter: `python -m tempo_ir.runtime.kernel_server`.

It has a process of its own because the interpreter is chosen by an environment variable that is read when triton is
imported. The parent shares the memory of a call and sends, as pickles on standard input, ("memory", file, bytes,
{buffer: (offset, bytes, dtype)}), ("kernels", {kernel: (function, source)}) and ("launch", kernel, buffers, scalars,
grid); each is answered by None or by a message.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any


class Server:
    """The state of the process: the kernels by name, and the buffers of the call."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.kernels: dict[str, Any] = {}
        self.buffers: dict[int, Any] = {}

    def handle(self, what: str, *arguments: Any) -> None:
        """Do what a message asks."""
        getattr(self, f"do_{what}")(*arguments)

    def do_kernels(self, sources: dict[str, tuple[str, str]]) -> None:
        """Import the source of each kernel from a file, as triton needs it."""
        for name, (function, source) in sources.items():
            path = self.directory / f"{function}.py"
            path.write_text(source)
            specification = importlib.util.spec_from_file_location(f"tempo_kernel_{function}", path)
            assert specification is not None
            assert specification.loader is not None
            module = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(module)
            self.kernels[name] = getattr(module, function)

    def do_memory(self, file: str, size: int, buffers: dict[int, tuple[int, int, str]]) -> None:
        """See the memory of a call as tensors."""
        import torch

        whole = torch.from_file(file, shared=True, size=size, dtype=torch.uint8)
        for number, (offset, length, dtype) in buffers.items():
            self.buffers[number] = whole[offset : offset + length].view(getattr(torch, dtype))

    def do_release(self) -> None:
        """Let go of the memory of the last call."""
        self.buffers.clear()

    def do_launch(self, kernel: str, buffers: list[int], scalars: list[int], grid: list[int]) -> None:
        """Run a kernel."""
        arguments = [self.buffers[number] for number in buffers]
        self.kernels[kernel][tuple(grid) or (1,)](*arguments, *scalars)


def main() -> None:
    """Answer messages until standard input ends. What a kernel prints goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory))
        while True:
            try:
                message = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            try:
                server.handle(*message)
                answer = None
            except Exception as error:  # whatever triton raises belongs to the parent
                answer = f"{type(error).__name__}: {error}"
            pickle.dump(answer, answers)
            answers.flush()


if __name__ == "__main__":
    main()
