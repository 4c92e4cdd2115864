"""Runs a saved program where nothing can be compiled: on the device that records, which may be another than asked for.

python saved_process.py DIRECTORY CAPABILITY '{"T": 5}' prints JSON: `events` as in `launch_recorder.py`, `shapes` of
the outputs, what its statistics count, and `error`, the text of what was raised.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import triton
from triton.backends.compiler import GPUTarget

import tempo_ir as tp
from tempo_ir.runtime.errors import CallError, CompileError
from tests.triton.launch_recorder import EVENTS, Driver


def refuse(*arguments, **options):
    """In the place of all that compiles: Triton's dispatch of arguments, its compiler, our passes."""
    raise AssertionError("something was compiled")


def main():
    directory, capability, bounds = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    driver = Driver()
    driver.get_current_target = lambda: GPUTarget("cuda", capability, 32)
    triton.runtime.driver.set_active(driver)
    for module in (triton, triton.compiler, triton.compiler.compiler):
        module.compile = refuse
    triton.runtime.jit.JITFunction.run = refuse
    from tempo_ir.runtime import executable as executables

    executables.lower = refuse
    result = {"error": None}
    try:
        executable = tp.load(directory)
        spec = executable.signature
        state = {name: np.ones(each.shape(bounds), each.dtype) for name, each in spec.parameters.items()}
        inputs = {name: np.ones(each.shape(bounds), each.dtype) for name, each in spec.inputs.items()}
        out = executable(**inputs, state=state, **bounds)
        result["shapes"] = {name: list(array.shape) for name, array in out.items()}
        result["cached"], result["launches"] = executable.stats.cached, executable.stats.launches
    except (CallError, CompileError) as error:
        result["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps({**result, "events": EVENTS}))


if __name__ == "__main__":
    main()
