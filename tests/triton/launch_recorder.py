"""Runs a package by Triton's own launch path without a GPU: kernels are compiled and bound, launches recorded.

python launch_recorder.py DIRECTORY PROGRAM '{"x": [5, 4]}' '{"T": 5}' prints {kernel: [launches, compiles]} as JSON.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import ClassVar

import torch
import triton
from triton.backends.compiler import GPUTarget


class Utilities:
    """What Triton asks of a device."""

    def load_binary(self, name, binary, shared, device):
        return 1, 2, 32, 0, 1024

    def unload_module(self, module):
        pass

    def get_device_properties(self, device):
        return {"max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}


class Launcher:
    """Counts launches by kernel."""

    counts: ClassVar[dict] = {}

    def __init__(self, source, metadata):
        self.name = metadata.name

    def __call__(self, *arguments):
        self.counts[self.name] = self.counts.get(self.name, 0) + 1


class Driver:
    """A device that computes nothing."""

    utils, launcher_cls = Utilities(), Launcher

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

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


def main():
    triton.runtime.driver.set_active(Driver())
    directory, program, shapes, bounds = (
        Path(sys.argv[1]),
        sys.argv[2],
        json.loads(sys.argv[3]),
        json.loads(sys.argv[4]),
    )
    sys.path.insert(0, str(directory.parent))
    package = importlib.import_module(directory.name)
    getattr(package, program)({name: torch.ones(shape) for name, shape in shapes.items()}, **bounds)
    found = {}
    for name, count in Launcher.counts.items():
        kernel = getattr(importlib.import_module(f"{directory.name}.kernels.{name}"), name)
        found[name] = count, len(kernel.device_caches[0][0])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
