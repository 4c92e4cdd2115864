"""Kernels and programs in Triton's interpreter, which computes with numpy: in a process of its own, kept for later.

What runs is the very text that a GPU would be given: slow (a kernel takes milliseconds), and as a check of it exact.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import Pipe
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.lowering.triton.driver import parameter_names, program_name
from tempo_ir.lowering.triton.package import write_package
from tempo_ir.reference.calls import Outputs
from tempo_ir.reference.errors import ExecutionError

Array = np.ndarray[Any, np.dtype[Any]]
HostFactories = Mapping[str, Callable[[], Any]]
PROGRAM = Path(__file__).with_name("interpreter_process.py")


class InterpreterError(RuntimeError):
    """A kernel failed in Triton's interpreter, or its process did."""


class Interpreter:
    """The process, started at the first job and ended with this one; jobs of several threads wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection, _ = Pipe()
        self._busy = False

    def job(self, kind: str, *arguments: Any, hosts: HostFactories = MappingProxyType({})) -> Any:
        """The result of a job; `hosts` makes the host objects that it may ask for.

        Raises InterpreterError for what went wrong there, ExecutionError for what has no value in the program, and what
        a host object raised.
        """
        with self._lock:
            if self._busy:
                raise InterpreterError("a host object cannot run another program in Triton's interpreter")
            self._busy = True
            try:
                return self._answered(kind, arguments, _Hosts(hosts))
            except (EOFError, OSError):
                self.close()
                raise InterpreterError(
                    "the process of Triton's interpreter ended; are torch and triton there?"
                ) from None
            except (KeyboardInterrupt, SystemExit):
                self.close()
                raise
            finally:
                self._busy = False

    def _answered(self, kind: str, arguments: Sequence[Any], hosts: _Hosts) -> Any:
        self._start()
        self._connection.send((kind, arguments))
        while True:
            match self._connection.recv():
                case ("done", result):
                    return result
                case ("failed", name, text, point, notes):
                    raise hosts.failure(name, text, point, notes)
                case ("make", name):
                    self._connection.send(hosts.make(name))
                case ("call", name, method, arrays):
                    self._connection.send(hosts.call(name, method, arrays))
                case answer:
                    raise InterpreterError(f"the process of Triton's interpreter says {answer!r}")

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._connection, theirs = Pipe()
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        arguments = [sys.executable, "-W", "ignore", str(PROGRAM), str(theirs.fileno())]
        self._process = subprocess.Popen(arguments, env=environment, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        """End the process; the next job starts another."""
        process, self._process = self._process, None
        if process is not None:
            atexit.unregister(self.close)
            self._connection.close()
            process.kill()
            process.wait()


class _Hosts:
    """The host objects of one job, and what one of them raised."""

    def __init__(self, factories: HostFactories):
        self.factories = factories
        self.objects: dict[str, Any] = {}
        self.error: Exception | None = None

    def make(self, name: str) -> tuple[bool, None]:
        return self._kept(lambda: self.objects.__setitem__(name, self.factories[name]()))

    def call(self, name: str, method: str, arrays: Sequence[Array]) -> tuple[bool, Any]:
        for array in arrays:
            array.flags.writeable = False
        return self._kept(lambda: getattr(self.objects[name], method)(*arrays))

    def _kept(self, run: Callable[[], Any]) -> tuple[bool, Any]:
        try:
            return True, run()
        except Exception as error:  # whatever the user's code raises is raised where the program was called
            self.error = error
            return False, None

    def failure(self, name: str, text: str, point: Mapping[str, int], notes: Sequence[str]) -> Exception:
        """The error of a failed job."""
        if self.error is not None:
            for note in notes:
                self.error.add_note(note)
            return self.error
        if name == "ProgramError":
            return ExecutionError(text, None, point)
        return InterpreterError(f"{name}: {text}")


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


class InterpretedProgram:
    """A module of one loop program and its kernels, lowered for a GPU, as a package that Triton's interpreter runs."""

    def __init__(self, module: ModuleOp):
        (self.program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
        self._parameters = parameter_names(module)
        self._directory = tempfile.TemporaryDirectory(prefix="tempo_ir_")
        write_package(module, Path(self._directory.name))

    def run(
        self,
        arrays: Mapping[str, Array],
        bounds: Mapping[str, int],
        seed: int = 0,
        hosts: HostFactories = MappingProxyType({}),
        start: Mapping[str, int] = MappingProxyType({}),
    ) -> Outputs:
        """The outputs by name. Raises as `Interpreter.job` does."""
        named = {self._parameters[name]: value for name, value in bounds.items()}
        arguments = (
            self._directory.name,
            program_name(self.program),
            dict(arrays),
            named,
            seed,
            dict(start),
            list(hosts),
            self.program.ending is not None,
        )
        outputs, extents = interpreter().job("program", *arguments, hosts=hosts)
        return Outputs.of(outputs, {**bounds, **extents})


def run_interpreted(
    module: ModuleOp,
    arrays: Mapping[str, Array],
    bounds: Mapping[str, int],
    seed: int = 0,
    hosts: HostFactories = MappingProxyType({}),
) -> dict[str, Array]:
    """Run a module as `InterpretedProgram` does, once."""
    return InterpretedProgram(module).run(arrays, bounds, seed, hosts)
