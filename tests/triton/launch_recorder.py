"""Runs a package by Triton's own launch path without a GPU: kernels are compiled and bound, what happens is recorded.

python launch_recorder.py DIRECTORY PROGRAM '{"x": [5, 4]}' '{"T": 5}' prints JSON: `events`, in order, each
`["launch", kernel, grid, arguments, stream]` with the addresses of tensors, or `["host", object, method]`; `outputs`
and `arrays`, the addresses of what was given and taken; `compiled`, by kernel how often it was compiled; `dispatched`,
how many launches Triton's dispatch of arguments was asked for. A shape that ends in a dtype, `[5, "int64"]`, is of it.
"""

import importlib
import json
import sys
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget

EVENTS = []
STREAM = 7


class Utilities:
    """What Triton asks of a device."""

    def load_binary(self, name, binary, shared, device):
        return 1, 2, 32, 0, 1024

    def unload_module(self, module):
        pass

    def get_device_properties(self, device):
        return {"max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}


class Launcher:
    """Records launches."""

    def __init__(self, source, metadata):
        self.name = metadata.name

    def __call__(self, x, y, z, stream, function, metadata, launch_metadata, enter, leave, *arguments):
        told = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        EVENTS.append(["launch", self.name, [x, y, z], told, stream])


class Driver:
    """A device of compute capability 9.0 that computes nothing."""

    utils, launcher_cls = Utilities(), Launcher

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return STREAM

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_device_interface(self):
        return torch.cpu

    @staticmethod
    def is_active():
        return True

    def map_python_to_cpp_type(self, kind):
        return kind


class Host:
    """A host object that records its calls and gives zeros of the shapes that the driver has rows for."""

    def __init__(self, name):
        self.name = name


def recorded_call(host, name, reads, writes, where, point):
    """In the place of `call_host`: whatever is returned is written."""
    EVENTS.append(["host", *name])


def tensor(shape):
    """Ones of a shape."""
    if shape and isinstance(shape[-1], str):
        return torch.ones(shape[:-1], dtype=getattr(torch, shape[-1]))
    return torch.ones(shape)


def main():
    triton.runtime.driver.set_active(Driver())
    directory, program = Path(sys.argv[1]), sys.argv[2]
    shapes, bounds = json.loads(sys.argv[3]), json.loads(sys.argv[4])
    sys.path.insert(0, str(directory.parent))
    sys.modules["tempo_ir"] = sys.modules["xdsl"] = None  # pyright: ignore[reportArgumentType]
    package = importlib.import_module(directory.name)
    driver = importlib.import_module(f"{directory.name}.driver")
    if hasattr(driver, "call_host"):
        driver.call_host = recorded_call
    if hasattr(driver, "make_host"):
        driver.make_host = lambda hosts, name: Host(name)
    dispatched, run = [], triton.runtime.jit.JITFunction.run

    def dispatch(self, *arguments, **options):
        dispatched.append(self.__name__)
        return run(self, *arguments, **options)

    triton.runtime.jit.JITFunction.run = dispatch
    arrays = {name: tensor(shape) for name, shape in shapes.items()}
    outputs = getattr(package, program)(arrays, **bounds)
    launched = {event[1] for event in EVENTS if event[0] == "launch"}
    kernels = {name: getattr(driver, name).kernel for name in launched}
    result = {
        "events": EVENTS,
        "arrays": {name: array.data_ptr() for name, array in arrays.items()},
        "outputs": {name: array.data_ptr() for name, array in outputs.items()},
        "compiled": {name: len(kernel.device_caches[0][0]) for name, kernel in kernels.items()},
        "dispatched": len(dispatched),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
