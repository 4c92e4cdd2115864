# pyright: basic
"""The process that runs kernels and programs in Triton's interpreter: `python interpreter_process.py DESCRIPTOR`.

Triton decides when a kernel is decorated whether it is interpreted, so this is never the process that compiles. Jobs
come over the connection whose file descriptor is the argument, one at a time; the answer is `("done", result)` or
`("failed", class name, text)`. This file imports nothing of tempo_ir.
"""

import importlib.util
import os
import sys
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import ml_dtypes
import numpy as np
import torch


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


def load_module(path, name):
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run_kernel(path, name, arguments, grid):
    """Run a kernel of a file; gives its arrays, written to."""
    tensors = [tensor_of(np.array(a)) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel = getattr(load_module(path, Path(path).stem), name)
    kernel[grid](*tensors)
    return [array_of(a) if isinstance(a, torch.Tensor) else a for a in tensors]


def serve(connection):
    """Answer jobs until the other side goes away."""
    jobs = {"kernel": run_kernel}
    while True:
        try:
            kind, arguments = connection.recv()
        except EOFError:
            return
        try:
            result = jobs[kind](*arguments)
        except Exception as error:  # whatever fails in a job is the answer to it
            connection.send(("failed", type(error).__name__, str(error)))
        else:
            connection.send(("done", result))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # numpy's, of infinities and NaN that kernels may meet
    serve(Connection(int(sys.argv[1])))
