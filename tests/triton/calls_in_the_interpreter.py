"""Tests of target "triton" for a process with TRITON_INTERPRET=1, where the device is Triton's interpreter: the emitted
packages run in this very process, and give what the CPU target gives. `test_on_device.py` runs them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

import tempo_ir as tp
from tempo_ir import optim
from tempo_ir.kept import DIRECTORY
from tempo_ir.lowering.triton.compiling import Binary
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime import gpu
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.tools import programs
from tempo_ir.tools.running import Call, compare, run
from tempo_ir.tools.tempo_run import main
from tests.triton.support import walk

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "semantics" / "programs"


def as_on_cpu(program, **bounds):
    """Both targets give the same, to rounding."""
    inputs = programs.complete_inputs(program, {}, bounds, 0)
    call = Call(program, inputs, bounds, program.initial(0), {}, 7)
    comparison = compare(run(tp.compile(program.source, "triton"), call), run(tp.compile(program.source), call))
    assert comparison.equal, comparison.text


@pytest.mark.parametrize(
    ("name", "settings", "bounds"),
    [
        ("rnn", {}, {"I": 2, "T": 3}),
        ("reinforce", {}, {"I": 1, "T": 3}),
        ("llama", {"layers": 1}, {"T": 4, "P": 2}),
    ],
)
def test_examples(name, settings, bounds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # llama writes its random model there
    program, _ = programs.load_python(ROOT / "examples" / f"{name}.py", None, settings)
    as_on_cpu(program, **bounds)


@pytest.mark.parametrize(
    "name",
    [
        "01_windows",
        "09_recurrences",
        "11_backwards",
        "17_window_of_a_recurrence",
        "19_carried_states",
        "22_suffix_and_prefix_sums",
        "29_through_time",
        "32_sgd",
        "33_types",
        "37_random_numbers",
        "40_grouped_queries",
    ],
)
def test_programs_of_the_suite(name):
    program = programs.load_text((PROGRAMS / f"{name}.mlir").read_text(), f"{name}.mlir")
    as_on_cpu(program, **dict.fromkeys(program.op.space.params, 4))


# ---- how it is called ----


@tp.program
def training():
    i, _I = tp.dim("i")
    x = tp.input("x", tp.f32[4, 3], over=i)
    scale = tp.parameter("scale", tp.f32[3], init=lambda key, shape: np.full(shape, 0.5, np.float32))
    w = tp.state("w", tp.f32[3, 2], init=1.0, steps=i)
    loss = tp.mean(((x * scale) @ w[i]) ** 2)
    optim.SGD(0.1).minimize(loss, w)
    tp.output("loss", loss)


def test_tensors_in_are_tensors_out_and_arrays_are_arrays():
    x = np.random.default_rng(0).standard_normal((3, 4, 3)).astype(np.float32)
    on_cpu = tp.compile(training())
    executable = tp.compile(training(), "triton")
    state = executable.init(0)
    given = {name: array.copy() for name, array in state.items()}
    expected, arrays = on_cpu(x=x, state=state), executable(x=x, state=state)
    tensors = executable(x=torch.from_numpy(x), state=state)
    for results in (arrays, tensors):
        np.testing.assert_allclose(results["loss"], expected["loss"], rtol=1e-5)
        np.testing.assert_allclose(results.state["w"], expected.state["w"], rtol=1e-5)
        assert results.extents == {"i": 3}
    assert isinstance(arrays["loss"], np.ndarray)
    assert isinstance(arrays.state["scale"], np.ndarray)
    assert all(isinstance(value, torch.Tensor) for value in (*tensors.values(), *tensors.state.values()))
    for name, array in given.items():  # an executable is a pure function
        np.testing.assert_array_equal(state[name], array)
    after, expected = executable(x=torch.from_numpy(x), state=tensors.state), on_cpu(x=x, state=expected.state)
    np.testing.assert_allclose(after.state["w"], expected.state["w"], rtol=1e-5)


@tp.program
def halves():
    t, _T = tp.dim("t")
    x = tp.input("x", tp.bf16[4, 8], over=t)
    tp.output("y", x * 1.5)
    tp.output("z", tp.sum(x @ x[t].T, axis=0))


def test_bf16_rounds_as_gpus_do():
    x = np.random.default_rng(0).standard_normal((2, 4, 8)).astype(ml_dtypes.bfloat16)
    got, expected = tp.compile(halves(), "triton")(x=x), tp.compile(halves())(x=x)
    for name in "yz":
        assert got[name].dtype == expected[name].dtype
        np.testing.assert_allclose(got[name].astype(np.float32), expected[name].astype(np.float32), rtol=2e-2)


def test_calls_resume_and_draw_by_the_seed():
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    executable, on_cpu = tp.compile(walk(), "triton"), tp.compile(walk())
    for seed, start in ((3, {}), (3, {"t": 7}), (4, {})):
        got, expected = executable(x=x, seed=seed, start=start), on_cpu(x=x, seed=seed, start=start)
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6)


@tp.program
def drawn(n=3):
    t, _T = tp.dim("t")
    tp.output("x", tp.random.uniform(0.0, 1.0, tp.f32[n], over=t))


def test_a_program_without_arrays():
    np.testing.assert_array_equal(tp.compile(drawn(), "triton")(T=3)["x"], tp.compile(drawn())(T=3)["x"])


class Counter:
    """A host object: it counts calls, and may refuse one."""

    def __init__(self, limit: int = 100):
        self.calls, self.limit = 0, limit

    def step(self, x):
        self.calls += 1
        if self.calls > self.limit:
            raise ValueError("the counter broke")
        assert not x.flags.writeable
        return (x + np.float32(self.calls)).astype(np.float32)


@tp.program
def hosted():
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[3], over=t)
    tp.output("y", tp.host(Counter, name="counter").step(x * 2, returns=tp.f32[3]) * 3)


def test_host_objects():
    x = np.ones((3, 3), np.float32)
    executable = tp.compile(hosted(), "triton")
    np.testing.assert_array_equal(executable(x=x)["y"], tp.compile(hosted())(x=x)["y"])
    with pytest.raises(ValueError, match="the counter broke") as caught:
        executable(x=x, hosts={"counter": lambda: Counter(2)})
    assert caught.value.__notes__[0].endswith(" at t = 2")
    with pytest.raises(CallError, match="hosts: the program has no host object 'clock'"):
        executable(x=x, hosts={"clock": Counter})


@tp.program
def ended():
    t, T = tp.dim("t", until=lambda: x > 1.0)
    x = tp.input("x", tp.f32[()], over=t)
    tp.output("x", x)
    tp.output("sum", tp.sum(x[0:T]))


def test_a_dim_that_ends_by_data():
    out = tp.compile(ended(), "triton")(x=np.array([0.5, 0.25, 2.0, 8.0], np.float32))
    assert out["x"].tolist() == [0.5, 0.25, 2.0]
    assert out["sum"] == 2.75
    assert out.extents == {"t": 3}


@tp.program
def looked_up():
    t, _T = tp.dim("t")
    ids = tp.input("ids", tp.i64, over=t)
    table = tp.input("table", tp.f32[5])
    tp.output("row", tp.take(table, ids))


def message(executable, **arguments) -> str:
    with pytest.raises((CallError, ExecutionError)) as caught:
        executable(**arguments)
    return f"{caught.type.__name__}: {caught.value}"


def test_what_does_not_fit_is_said_in_the_words_of_the_cpu_target():
    executable, on_cpu = tp.compile(looked_up(), "triton"), tp.compile(looked_up())
    ids, table = np.array([0, 4, 1]), np.zeros(5, np.float32)
    wrong = [
        {"ids": ids},
        {"ids": ids, "table": np.zeros(4, np.float32)},
        {"ids": ids, "table": np.zeros(5)},
        {"ids": ids, "table": torch.zeros(4)},
        {"ids": ids, "table": torch.zeros(5, dtype=torch.bfloat16)},
        {"ids": torch.zeros(2, 2, dtype=torch.int64), "table": table},
        {"ids": ids, "table": table, "T": 4},
        {"ids": ids, "table": table, "S": 4},
        {"ids": ids, "table": table, "seed": -1},
        {"ids": ids, "table": table, "start": {"i": 4}},
        {"ids": ids, "table": table, "state": {"w": table}},
        {"ids": np.array([0, 4, 5]), "table": table},  # no fault of the call: no such row at run time
    ]
    for arguments in wrong:
        assert message(executable, **arguments) == message(on_cpu, **arguments), arguments


def test_the_package_and_its_entry_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    x = np.ones((3, 4), np.float32)
    first = tp.compile(walk(), "triton")
    expected = first(x=x)
    (folder,) = tmp_path.glob("*.triton")
    (kernel, *_) = sorted((folder / "kernels").glob("[a-z]*.py"))
    whole = kernel.read_text()
    kernel.write_text(whole[:40])  # whoever finds it so writes it anew
    second = tp.compile(walk(), "triton")
    assert (first.stats.cached, second.stats.cached) == (False, True)
    assert second.stats.compile_seconds.keys() == {"load"}
    assert second.stats.launches == first.stats.launches
    for name, value in second(x=x).items():
        np.testing.assert_array_equal(value, expected[name])
    assert kernel.read_text() == whole
    assert tp.compile(walk(), "triton", precision="tf32").stats.cached is False
    assert second.stats.peak_bytes == first.stats.peak_bytes > 0


def test_a_saved_program_is_compiled_anew_where_that_is_asked_for(tmp_path, monkeypatch):
    executable = tp.compile(walk(), "triton")
    binaries = [Binary("cubin", b"", "{}") for _ in executable.package.kernels]  # which the interpreter cannot run
    monkeypatch.setattr(gpu, "compile_binaries", lambda *arguments: binaries)
    executable.save(tmp_path / "walked")
    with pytest.raises(CompileError, match=r"was saved for sm_80, and Triton's interpreter runs no machine code"):
        tp.load(tmp_path / "walked")
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    got, expected = tp.load(tmp_path / "walked", recompile=True)(x=x, seed=3), executable(x=x, seed=3)
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value)


def test_tempo_run(tmp_path, capsys):
    arguments = ["--set", "T=3", "--set", "I=1", "--check", "--emit-triton", str(tmp_path)]
    assert main([str(ROOT / "examples" / "rnn.py"), "--target", "triton", *arguments]) == 0
    assert "DIFFERENT" not in capsys.readouterr().out
    assert {"driver.py", "support.py", "README.md"} < {file.name for file in tmp_path.iterdir()}
