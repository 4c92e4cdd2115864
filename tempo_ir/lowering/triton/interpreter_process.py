# pyright: basic
"""The process that runs kernels and programs in Triton's interpreter: `python interpreter_process.py DESCRIPTOR`.

Triton decides when a kernel is decorated whether it is interpreted, so this is never the process that compiles. Jobs
come over the connection whose file descriptor is the argument, one at a time; the answer is `("done", result)` or
`("failed", class name, text, point, notes)`. While a program runs, `("make", host)` and `("call", host, method,
arrays)` ask the other side for its host objects; it answers `(True, value)`, or `(False, None)` where one raised.
This file imports nothing of tempo_ir.
"""

import importlib.util
import os
import sys
import warnings
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import ml_dtypes
import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle


class HostRaised(Exception):
    """A host object raised something on the other side, which keeps it."""


class Host:
    """A host object of the other side."""

    def __init__(self, connection, name):
        self.connection, self.name = connection, name
        self.ask("make", name)

    def ask(self, *question):
        """The answer of the other side."""
        self.connection.send(question)
        fine, value = self.connection.recv()
        if not fine:
            raise HostRaised
        return value

    def __getattr__(self, method):
        return lambda *arrays: self.ask("call", self.name, method, arrays)


def mend_bfloat16():
    """Triton's interpreter truncates where GPUs round, and multiplies the bits of bf16 as integers."""
    builder, cast, dot = InterpreterBuilder, InterpreterBuilder.cast_impl, InterpreterBuilder.create_dot

    def rounded(self, source, kind):
        if source.dtype.scalar == tl.float32 and kind.scalar == tl.bfloat16:
            return TensorHandle(source.data.astype(ml_dtypes.bfloat16).view(np.uint16), tl.bfloat16)
        return cast(self, source, kind)

    def widened(self, a, b, *others):
        if a.dtype.scalar == tl.bfloat16:
            a, b = (TensorHandle(x.data.view(ml_dtypes.bfloat16).astype(np.float32), tl.float32) for x in (a, b))
        return dot(self, a, b, *others)

    builder.cast_impl = rounded  # pyright: ignore[reportAttributeAccessIssue]
    builder.create_dot = widened  # pyright: ignore[reportAttributeAccessIssue]


def tensor_of(array):
    """A tensor over the memory of an array."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_of(tensor):
    """The memory of a tensor as an array."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def load_module(path, name, folders=None):
    """The module of a file; of a package if it has folders."""
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def load_package(directory):
    """The package in a directory."""
    return load_module(Path(directory) / "__init__.py", f"program_{Path(directory).name}", [directory])


def run_kernel(connection, path, name, arguments, grid):
    """Run a kernel of a file; gives its arrays, written to."""
    tensors = [tensor_of(np.array(a)) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel = getattr(load_module(path, Path(path).stem), name)
    kernel[grid](*tensors)
    return [array_of(a) if isinstance(a, torch.Tensor) else a for a in tensors]


def run_program(connection, directory, name, arrays, bounds, seed, start, hosts, ends):
    """Run the program of a package; gives its outputs, and the bounds that it found where data ends a dim."""
    tensors = {key: tensor_of(np.array(array)) for key, array in arrays.items()}
    makers = {host: lambda host=host: Host(connection, host) for host in hosts}
    extents, function = {}, getattr(load_package(directory), name)
    told = {"extents": extents} if ends else {}
    outputs = function(tensors, **bounds, seed=seed, start=start, hosts=makers, **told)
    return {key: array_of(tensor) for key, tensor in outputs.items()}, extents


def serve(connection):
    """Answer jobs until the other side goes away."""
    jobs = {"kernel": run_kernel, "program": run_program}
    while True:
        try:
            kind, arguments = connection.recv()
        except EOFError:
            return
        try:
            result = jobs[kind](connection, *arguments)
        except Exception as error:  # whatever fails in a job is the answer to it
            text, point = getattr(error, "message", str(error)), getattr(error, "point", {})
            connection.send(("failed", type(error).__name__, text, point, getattr(error, "__notes__", [])))
        else:
            connection.send(("done", result))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # numpy's, of infinities and NaN that kernels may meet
    mend_bfloat16()
    serve(Connection(int(sys.argv[1])))
