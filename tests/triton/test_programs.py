"""Whole programs: their packages run in Triton's interpreter against the reference."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

import tempo_ir as tp
from tempo_ir.dialects.sdg import Sdg
from tempo_ir.lowering.triton.interpreter import InterpretedProgram, InterpreterError, run_interpreted
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime.compiler import lower, module_of
from tempo_ir.tools import programs
from tempo_ir.tools.running import Call, Results, compare, run
from tests.triton.support import walk

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = {
    "rnn": {},
    "reinforce": {},
    "llama": {},
    "llama with a window": {"window": 8},
}


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A directory of its own, in which the example writes its random model."""
    monkeypatch.chdir(tmp_path)


def load(name: str, **settings):
    """An example of the tree."""
    program, _ = programs.load_python(EXAMPLES / f"{name.split()[0]}.py", None, {**SETTINGS[name], **settings})
    return program


def lowered(program, target: str = "triton-interpret"):
    """A program as loops and kernels."""
    module = lower(module_of(program), target).lowered
    assert module is not None
    return module


def in_interpreter_as_in_reference(program, **bounds) -> None:
    inputs = programs.complete_inputs(program, {}, bounds, 0)
    call = Call(program, inputs, bounds, program.initial(0), {}, 0)
    expected = run(tp.compile(program.source, "reference"), call)
    comparison = compare(run(tp.compile(program.source, "triton-interpret"), call), expected)
    assert comparison.equal, comparison.text


def test_the_rnn_in_the_interpreter():
    in_interpreter_as_in_reference(load("rnn"), I=2, T=3)


def test_reinforce_in_the_interpreter():
    in_interpreter_as_in_reference(load("reinforce"), I=1, T=3)


@pytest.mark.parametrize("name", ["llama", pytest.param("llama with a window", marks=pytest.mark.slow)])
def test_llama_in_the_interpreter(name, model):
    in_interpreter_as_in_reference(load(name, layers=1), T=10 if "window" in name else 4, P=2)


# ---- the same in f16 ----


class Poles:
    """Poles that swing, of numbers that f16 holds; every third step is the last for one of them."""

    def __init__(self):
        self.steps = 0

    def reset(self, seed):
        return np.linspace(-0.5, 0.5, 32).astype(np.float16).reshape(8, 4)

    def step(self, action):
        self.steps += 1
        observation = (self.reset(0) * (-1) ** self.steps + action[:, None] / 8).astype(np.float16)
        return observation, np.ones(8), np.arange(8) == self.steps // 3 - 1, np.zeros(8, np.bool_)


class Silence:
    """A log that nobody reads."""

    def __getattr__(self, name):
        return lambda *arrays: None


HOSTS = {"rnn": {}, "reinforce": {"cartpoles": Poles, "log": Silence}}


def in_half(program) -> programs.LoadedProgram:
    """A program with f16 for f32. What keeps Adam from dividing by 0 is more: f16 has no 1e-8."""
    text = re.sub(r"\bf32\b|(?<=x)f32\b", "f16", str(module_of(program.source)))
    return programs.load_text(text.replace("1.0e-08", "1.0e-02"), "half.mlir")


@pytest.mark.parametrize(("name", "bounds"), [("rnn", {"I": 2, "T": 3}), ("reinforce", {"I": 1, "T": 4})])
def test_training_in_f16(name, bounds):
    example = load(name)
    program = in_half(example)
    state = {key: array.astype(np.float16) for key, array in example.initial(0).items()}
    inputs = programs.complete_inputs(program, {}, bounds, 0)
    call = Call(program, inputs, bounds, state, HOSTS[name], 0)
    expected = run(tp.compile(program.source, "reference"), call)
    assert all(np.isfinite(array.astype(np.float64)).all() for array in expected.state.values())
    comparison = compare(run(tp.compile(program.source, "triton-interpret"), call), expected)
    assert comparison.equal, comparison.text


def test_llama_with_weights_and_caches_of_f16(model):
    in_interpreter_as_in_reference(load("llama", layers=1, weights="f16", cache="f16"), T=4, P=2)


# ---- what drivers do ----


class Counter:
    """A host object: it counts calls, and may refuse one."""

    def __init__(self, limit: int = 100):
        self.calls, self.limit = 0, limit

    def step(self, x):
        self.calls += 1
        if self.calls > self.limit:
            raise ValueError("the counter broke")
        assert not x.flags.writeable
        return (x + np.float32(self.calls)).astype(np.float32), np.bool_(self.calls > 2)


@tp.program
def hosted():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[3], over=t)
    counter = tp.host(Counter, name="counter")
    y, late = counter.step(x, returns=(tp.f32[3], tp.bool))
    tp.output("y", y)
    tp.output("late", late)


@tp.program
def looked_up():
    t, T = tp.dim("t")
    ids = tp.input("ids", tp.i64, over=t)
    table = tp.input("table", tp.f32[5])
    tp.output("row", tp.take(table, ids))


def test_loops_in_both_directions_windows_and_draws():
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    executable = tp.compile(walk(), "reference")
    expected = executable(x=x, seed=3)
    got = run_interpreted(lowered(walk()), {"x": x}, {"T": 5}, 3)
    comparison = compare(Results(got, {}), Results(expected, {}))
    assert comparison.equal, comparison.text
    resumed = InterpretedProgram(lowered(walk())).run({"x": x}, {"T": 5}, 3, start={"t": 7})
    assert compare(Results(resumed, {}), Results(executable(x=x, seed=3, start={"t": 7}), {})).equal
    assert not np.array_equal(resumed["back"], got["back"])


def test_host_objects_are_called_where_the_program_was():
    x = np.ones((4, 3), np.float32)
    made: list[Counter] = []

    def make() -> Counter:
        made.append(Counter())
        return made[-1]

    got = run_interpreted(lowered(hosted()), {"x": x}, {"T": 4}, hosts={"counter": make})
    assert got["late"].tolist() == [False, False, True, True]
    assert got["y"][:, 0].tolist() == [2, 3, 4, 5]
    assert [counter.calls for counter in made] == [4]


def test_what_a_host_object_raises_is_raised_with_its_place():
    with pytest.raises(ValueError, match="the counter broke") as caught:
        run_interpreted(
            lowered(hosted()), {"x": np.ones((4, 3), np.float32)}, {"T": 4}, hosts={"counter": lambda: Counter(2)}
        )
    (note,) = caught.value.__notes__
    assert note.startswith("raised by @counter::@step, in ")
    assert note.endswith(" at t = 2")


def test_a_missing_host_object_is_named():
    with pytest.raises(ExecutionError, match="there is no host object @counter"):
        run_interpreted(lowered(hosted()), {"x": np.ones((4, 3), np.float32)}, {"T": 4})


def test_run_time_errors_name_op_and_point():
    ids = np.array([0, 4, 5])
    with pytest.raises(ExecutionError, match=r"id 5 is outside of the 5 rows.*sdg.gather.* at t = 2"):
        run_interpreted(lowered(looked_up()), {"ids": ids, "table": np.zeros(5, np.float32)}, {"T": 3})


def test_an_error_of_the_interpreter_is_no_end_of_its_process():
    program = InterpretedProgram(lowered(looked_up()))
    with pytest.raises(InterpreterError, match="KeyError: 'table'"):
        program.run({"ids": np.zeros(2, np.int64)}, {"T": 2})
    table = np.arange(5, dtype=np.float32)
    assert program.run({"ids": np.array([3, 1]), "table": table}, {"T": 2})["row"].tolist() == [3, 1]


def test_the_package_needs_nothing_of_ours(tmp_path):
    tp.compile(walk(), "cpu").write_triton(tmp_path / "walked")
    script = """
import sys
sys.modules["tempo_ir"] = sys.modules["xdsl"] = None
import torch
from walked import walk
outputs = walk({"x": torch.ones(3, 4)}, T=3)
print(outputs["window"][:, 0].tolist())
"""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1.0, 2.5, 4.25]\n"
    text = (tmp_path / "walked" / "README.md").read_text()
    assert "walk({" in text
    assert "| `mul_add_sum_over_t` | mul, constant, sum, add | 4 |" in text


@tp.program
def ordered():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[3, 5], over=t)
    tp.output("sorted", tp.sort(x, axis=1, descending=True))
    tp.output("order", tp.argsort(x, axis=0))


def test_sorts_are_torchs():
    x = np.random.default_rng(0).integers(0, 3, (2, 3, 5)).astype(np.float32)
    x[0, 1, 2] = np.nan
    got = run_interpreted(lowered(ordered()), {"x": x}, {"T": 2})
    expected = tp.compile(ordered(), "reference")(x=x)
    np.testing.assert_array_equal(got["sorted"], expected["sorted"])
    np.testing.assert_array_equal(got["order"], expected["order"])


@tp.program
def scattered():
    t, T = tp.dim("t")
    ids = tp.input("ids", tp.i64[4], over=t)
    table = tp.parameter("table", tp.bf16[6, 3])
    loss = tp.sum(tp.take(table, ids).cast(tp.f32) ** 2)
    tp.output("gradient", tp.grad(loss, table))


def test_sums_scattered_in_16_bits_are_rounded_once():
    ids = np.random.default_rng(0).integers(0, 6, (3, 4))
    table = np.random.default_rng(1).standard_normal((6, 3)).astype(ml_dtypes.bfloat16)
    got = run_interpreted(lowered(scattered()), {"ids": ids, "table": table}, {"T": 3})["gradient"]
    expected = tp.compile(scattered(), "reference")(ids=ids, state={"table": table})["gradient"]
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


def test_names_that_python_or_the_driver_has_already():
    text = """
        sdg.program @torch dims(t: range, seed: lambda) {
          %0 = sdg.input "x" in (t, seed) : tensor<4xf32>
          %arrays = sdg.exp %0[t, seed] in (t, seed) : (tensor<4xf32>) -> tensor<4xf32>
          sdg.output "def" %arrays[t, seed] in (t, seed) : tensor<4xf32>
        }
        """
    x = np.random.default_rng(0).standard_normal((3, 2, 4)).astype(np.float32)
    got = run_interpreted(lowered(parsed(text)), {"x": x}, {"range": 3, "lambda": 2})
    np.testing.assert_allclose(got["def"], np.exp(x), rtol=1e-6)


def parsed(text: str):
    """The module of a text of IR."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sdg)
    return Parser(context, text).parse_module()
