"""Steps as graphs, in numbers: tests for a process with TRITON_INTERPRET=1. `test_on_device.py` runs them.

A graph here is what CUDA's is: launches with the grids and arguments that they had when they were captured. Captured
they do nothing, repeated they run in Triton's interpreter. Every step is a graph, however few its launches.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path

import pytest
import torch

import tempo_ir as tp
from tempo_ir.lowering.triton import driver
from tempo_ir.lowering.triton.interpreter_process import array_of, tensor_of
from tempo_ir.tools import programs
from tempo_ir.tools.running import Call, Results, compare, run

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "semantics" / "programs"
PER_STEP = ("loop-persist",)
"""Passes left out, so that there are launches per step."""


class Graph:
    """Launches that are repeated."""

    current: Graph | None = None
    repeated = 0

    def __init__(self):
        self.launches = []

    def replay(self):
        Graph.repeated += 1
        for launch, grid, arguments in self.launches:
            launch(grid, *arguments)

    @staticmethod
    @contextlib.contextmanager
    def captured(graph, capture_error_mode):
        """While launches go into a graph."""
        Graph.current = graph
        yield
        Graph.current = None


@pytest.fixture(autouse=True)
def device(monkeypatch, tmp_path):
    """A device with graphs."""
    Graph.repeated = 0
    monkeypatch.setattr(driver, "WORTH_A_GRAPH", 1)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", Graph.captured)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def package_of(executable, name: str):
    """The package of an executable, whose launches graphs may take."""
    executable.write_triton(Path(name))
    importlib.invalidate_caches()
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]
    package, support = importlib.import_module(name), importlib.import_module(f"{name}.support")
    launch = support.Bound.launch

    def launched(self, grid, *arguments):
        if Graph.current is None:
            launch(self, grid, *arguments)
        else:
            Graph.current.launches.append((lambda *told: launch(self, *told), grid, arguments))

    support.Bound.launch = launched
    return package


def repeats(program, name: str, **bounds) -> int:
    """With graphs a program gives what it gives on the CPU; gives how many times a graph was repeated."""
    inputs = programs.complete_inputs(program, {}, bounds, 0)
    call = Call(program, inputs, bounds, program.initial(0), {}, 7)
    expected = run(tp.compile(program.source), call)
    package = package_of(tp.compile(program.source, "triton", without=PER_STEP), name)
    (function,) = package.__all__
    tensors = {key: tensor_of(array.copy()) for key, array in {**call.inputs, **call.state}.items()}
    outputs = getattr(package, function)(tensors, **bounds, seed=7, graphs=True)
    arrays = {key: array_of(tensor) for key, tensor in outputs.items()}
    results = Results(
        {key: arrays[key] for key in expected.outputs}, {key: arrays[key] for key in expected.state if key in arrays}
    )
    comparison = compare(results, Results(expected.outputs, {key: expected.state[key] for key in results.state}))
    assert comparison.equal, comparison.text
    return Graph.repeated


SUITE = (
    *("01_windows", "02_points", "03_dims_left_by_an_index", "04_across_dims", "10_odometer", "15_stencil"),
    *("18_written_at_t_and_read_at_t_minus_w", "20_read_after_the_update", "23_growing_ranges", "24_batch_and_time"),
    *("26_discounted_returns", "27_gradients_of_sums", "28_gradients_of_points", "32_sgd", "37_random_numbers"),
)


@pytest.mark.parametrize("name", SUITE)
def test_programs_of_the_suite(name):
    program = programs.load_text((PROGRAMS / f"{name}.mlir").read_text(), f"{name}.mlir")
    assert repeats(program, f"suite_{name}", **dict.fromkeys(program.op.space.params, 5)) >= 3


@pytest.mark.parametrize(
    ("name", "settings", "bounds"),
    [("rnn", {}, {"I": 3, "T": 4}), ("llama", {"layers": 1}, {"T": 7, "P": 2})],
)
def test_examples(name, settings, bounds):
    program, _ = programs.load_python(ROOT / "examples" / f"{name}.py", None, settings)
    assert repeats(program, f"graphs_{name}", **bounds) >= 3
