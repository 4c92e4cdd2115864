"""Kernels in Triton's interpreter, which computes them with numpy: in a process of its own, kept for the next call."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
PROGRAM = Path(__file__).with_name("interpreter_process.py")


class InterpreterError(RuntimeError):
    """A kernel failed in Triton's interpreter."""


class Interpreter:
    """The process, started at the first job and ended with this one; jobs of several threads wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection, theirs = Pipe()
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        arguments = [sys.executable, "-W", "ignore", str(PROGRAM), str(theirs.fileno())]
        self._process = subprocess.Popen(arguments, env=environment, pass_fds=[theirs.fileno()])
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.wait(timeout=10)

    def job(self, kind: str, *arguments: Any) -> Any:
        """The result of a job. Raises InterpreterError for what it raised."""
        with self._lock:
            self._connection.send((kind, arguments))
            try:
                answer = self._connection.recv()
            except EOFError:
                raise InterpreterError("the process of Triton's interpreter ended") from None
        if answer[0] == "failed":
            raise InterpreterError(f"{answer[1]}: {answer[2]}")
        return answer[1]


@cache
def interpreter() -> Interpreter:
    """The interpreter of this process."""
    return Interpreter()


def run_interpreted_kernel(
    text: str, name: str, arguments: Sequence[Array | float], grid: Sequence[int]
) -> list[Array | float]:
    """Run the kernel `name` of a file's text; gives the arguments, the arrays written to."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{name}.py"
        path.write_text(text)
        return interpreter().job("kernel", str(path), name, list(arguments), tuple(grid) or (1,))
