"""tempo-run: what it takes, what it prints and writes, and its messages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from xdsl.dialects.builtin import f32

from tempo_ir.tools.programs import draw_array
from tempo_ir.tools.running import LEVELS, Results, compare
from tempo_ir.tools.tempo_run import TARGETS, main

SCAN = """
sdg.program @scan dims(t: T) where T >= 1 {
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %w = sdg.parameter "w" : tensor<4xf32>
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.merge {t = 0 : %zero, t > 0 : %s[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xw = sdg.mul %x[t], %w in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.add %h[t], %xw[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}
"""

COUNTER = """
sdg.program @count dims(t: T) {
  %host = sdg.host_state @counter : !sdg.token
  %before = sdg.merge {t = 0 : %host, t > 0 : %after[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %n, %after = sdg.host @counter::@next() after %before[t] in (t) : (!sdg.token) -> (tensor<i64>, !sdg.token)
  sdg.output "n" %n[t] in (t) : tensor<i64>
}
"""

HOSTS = """
class Counter:
    def __init__(self):
        self.n = 0
    def next(self):
        self.n += 1
        return self.n

class Failing:
    def next(self):
        raise ValueError("the environment is gone")
"""


TRAIN = """
import tempo_ir as tp

@tp.program
def train(rate=0.5):
    i, I = tp.dim("i")
    w = tp.state("w", tp.f32[()], init=8.0, steps=i)
    loss = w * w
    w.next = w - rate * tp.grad(loss, w)
    tp.output("loss", loss)
"""


@pytest.fixture
def folder(in_temporary_directory):
    (in_temporary_directory / "scan.mlir").write_text(SCAN)
    (in_temporary_directory / "count.mlir").write_text(COUNTER)
    (in_temporary_directory / "hosts_of_test.py").write_text(HOSTS)
    np.save("x.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    return in_temporary_directory


def run(*arguments: str) -> int:
    return main(["--target", "reference", *arguments])


def test_outputs_are_printed_and_written(folder, capsys):
    assert run("scan.mlir", "--input", "x=x.npy", "--out", "results", "--dump-ir", "ir", "--check") == 0
    w = draw_array("w", f32, [4], 0, is_weight=True)
    np.testing.assert_allclose(np.load("results/s.npy"), np.cumsum(np.load("x.npy") * w, axis=0), rtol=1e-6)
    assert not (folder / "results/state.safetensors").exists(), "a parameter is no state"
    printed = capsys.readouterr().out
    assert "s: float32[3, 4] [[" in printed
    assert "check s: ok" in printed
    assert (folder / "ir/sdg.mlir").read_text().count("sdg.program @scan dims(t: T)") == 1


def test_gradients_are_expanded_for_the_interpreter_and_states_written(folder, capsys):
    (folder / "train.py").write_text(TRAIN)
    assert run("train.py", "--set", "I=3", "--set", "rate=0.25", "--out", "results") == 0
    # the gradient of w * w is 2 * w: each step halves w
    np.testing.assert_array_equal(load_file("results/state.safetensors")["w"], np.float32(1.0))
    assert capsys.readouterr().out == "loss: float32[3] [64. 16. 4.]\nw: float32[] (state)\n"


def test_inputs_not_given_are_drawn_from_the_seed(folder, capsys):
    texts = []
    for seed in ("1", "1", "2"):
        assert run("scan.mlir", "--set", "T=3", "--seed", seed) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_a_bound_that_is_tied_to_a_known_one_is_chosen(folder, capsys):
    (folder / "tied.mlir").write_text(
        SCAN.replace("where T >= 1", "where 1 <= P and P <= T").replace("dims(t: T)", "dims(t: T, p: P)")
    )
    assert run("tied.mlir", "--set", "T=3") == 0
    assert capsys.readouterr().err == "note: P = 3, since it is not set\n"
    assert run("tied.mlir", "--set", "P=3") == 0
    assert capsys.readouterr().err == "note: T = 4, since it is not set\n"


def test_targets_are_those_of_the_runtime():
    from tempo_ir.runtime.compiler import TARGETS as RUNTIME_TARGETS

    assert TARGETS == RUNTIME_TARGETS


def test_the_native_program_equals_the_reference(folder, capsys):
    arguments = ["scan.mlir", "--target", "cpu", "--set", "T=5", "--check", "--stats"]
    assert main([*arguments, "--dump-ir", "ir", "--emit-triton", "kernels"]) == 0
    printed = capsys.readouterr().out
    assert "check s: ok" in printed
    assert "peak_bytes: " in printed
    assert {file.name for file in (folder / "ir").iterdir()} == set(LEVELS.values())
    assert {"driver.py", "support.py", "README.md"} < {file.name for file in (folder / "kernels").iterdir()}
    for kernel in (folder / "kernels" / "kernels").glob("[a-z]*.py"):
        assert "@triton.jit" in kernel.read_text(), kernel


BACK = """
sdg.program @back dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<64xf32>
  %zero = sdg.constant 0.0 : tensor<64xf32>
  %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %s1 = sdg.add %s[t], %x[t] in (t) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %h = sdg.tanh %s1[t] in (t) : (tensor<64xf32>) -> tensor<64xf32>
  %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %g[t + 1]} in (t) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %g = sdg.mul %n[t], %h[t] in (t) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  sdg.output "g" %g[t] in (t) : tensor<64xf32>
}
"""


def test_a_memory_budget(folder, capsys):
    (folder / "back.mlir").write_text(BACK)
    arguments = ["back.mlir", "--set", "T=100", "--check", "--stats"]
    assert main([*arguments, "--memory-budget", "4096", "--timeline", "memory.svg"]) == 0
    printed = capsys.readouterr().out
    assert "check g: ok" in printed
    (device,), (host, _) = (re.findall(rf"^  {space}: (\d+)", printed, re.MULTILINE) for space in ("device", "host"))
    assert int(device) <= 4096 < 100 * 64 * 4 <= int(host)
    assert "with the host" in (folder / "memory.svg").read_text()
    assert main([*arguments, "--memory-budget", "100"]) == 1
    assert "the memory_budget is 100, give it" in capsys.readouterr().err


def test_a_profile(folder, capsys):
    (folder / "back.mlir").write_text(BACK)
    assert main(["back.mlir", "--set", "T=100", "--profile"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^kernel +launches +seconds +share", printed, re.MULTILINE)
    assert re.search(r"^mul_kernel\S* +\d+ +\S+ [mu]s +\S+ %", printed, re.MULTILINE)
    assert main(["back.mlir", "--set", "T=100", "--profile", "--target", "reference"]) == 1
    out, err = capsys.readouterr()
    assert "target 'reference' has no profile: leave --profile, or give --target cpu" in err
    assert out == ""  # said before anything ran


def test_what_is_computed_anew(folder, capsys):
    """Options as of a compile; what was done, and what was not, is among the statistics."""
    total = '%total = sdg.sum %g[0:T] axes [0] : (tensor<64xf32>) -> tensor<64xf32>\n  sdg.output "total" %total : '
    text = BACK.replace('sdg.output "g" %g[t] in (t) : ', total)
    (folder / "back.mlir").write_text(text)
    arguments = ["back.mlir", "--set", "T=400", "--check", "--stats"]
    peaks: list[int] = []
    for options in (["budget=100000000"], ["budget=20000"], ["block=10", "--memory-budget", "6500"]):
        assert main([*arguments, "--remat", *options]) == 0
        printed = capsys.readouterr().out
        assert "check total: ok" in printed
        peaks.append(int(re.findall(r"^peak_bytes: (\d+)", printed, re.MULTILINE)[0]))
        is_anew = options[0] != "budget=100000000"
        assert ("    steps of a block of t: " in printed) == is_anew
        assert ("not computed anew along t: all rows are 102400 bytes, within the budget" in printed) != is_anew
    assert peaks[0] > 102400 > 20000 >= peaks[1] > 6500 >= peaks[2]
    assert "    buffers swapped: 1" in printed


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("budget", "--remat budget: an option is a name and a number, as budget=1000000"),
        ("budget=x", "--remat budget=x: an option is a name and a number"),
        ("bytes=3", "remat has no option 'bytes'; its options: block, budget, steps"),
        ("steps=3", "sdg-remat: say what may be kept"),
    ],
)
def test_options_of_remat_that_are_none(folder, capsys, option, message):
    (folder / "back.mlir").write_text(BACK)
    assert main(["back.mlir", "--set", "T=4", "--remat", option]) == 1
    assert message in capsys.readouterr().err


UNTIL = """
sdg.program @until dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %one = sdg.constant 1.0 : tensor<f32>
  %stop = sdg.gt %x[t], %one in (t) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  sdg.until %stop[t] in (t) : tensor<i1>
  %sum = sdg.sum %x[0:T] axes [0] : (tensor<f32>) -> tensor<f32>
  sdg.output "sum" %sum : tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}
"""


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "triton"])  # which tests/triton runs
def test_a_dim_that_ends_by_data(folder, capsys, target):
    (folder / "until.mlir").write_text(UNTIL)
    np.save(folder / "x.npy", np.array([0.5, 0.25, 2.0, 8.0], np.float32))
    assert main(["until.mlir", "--input", "x=x.npy", "--check", "--target", target, "--out", "results"]) == 0
    assert "sum: float32[] 2.75" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load("results/x.npy"), np.array([0.5, 0.25, 2.0], np.float32))


def test_a_difference_is_status_1_and_named():
    expected = Results({"n": np.array([1, 2, 3]), "x": np.array([1.0, 2.0])}, {})
    equal = compare(Results({"n": np.array([1, 2, 3]), "x": np.array([1.0, 2.0 + 1e-12])}, {}), expected)
    assert equal.equal
    different = compare(Results({"n": np.array([1, 5, 3]), "x": np.array([1.0, np.nan])}, {}), expected)
    assert not different.equal
    assert different.text.splitlines() == [
        "check n: DIFFERENT, 1 of 3 values, first at [1]: 5, not 2",
        "check x: DIFFERENT, 1 of 2 values, first at [1]: nan, not 2.0",
    ]


def test_host_objects_come_from_modules(folder, capsys):
    assert run("count.mlir", "--set", "T=3", "--host", "counter=hosts_of_test:Counter") == 0
    assert capsys.readouterr().out == "n: int64[3] [1 2 3]\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.mlir"], "error: absent.mlir: No such file or directory"),
        (["absent.py"], "error: absent.py: No such file or directory"),
        (
            ["scan.mlir", "--input", "y=x.npy", "--set", "T=3"],
            "error: --input y: the program has no input",
        ),
        (["scan.mlir", "--input", "x"], "error: --input x: write name=file.npy"),
        (["scan.mlir", "--input", "x=scan.mlir"], "error: --input x=scan.mlir: scan.mlir is no .npy file"),
        (["scan.mlir", "--input", "x=empty.npy"], "error: --input x=empty.npy: empty.npy is no .npy file"),
        (["scan.mlir", "--input", "x=two.npz"], "two.npz is no .npy file of one array: it holds several, by name"),
        (["scan.mlir", "--set", "T=3", "--timeline", "absent/t.svg"], "absent/t.svg: there is no folder absent"),
        (
            ["scan.mlir", "--input", "x=wide.npy"],
            "error: input 'x' is f32[T, 4], got an array of shape (3, 5)",
        ),
        (
            ["scan.mlir", "--input", "x=x.npy", "--set", "T=4"],
            "error: input 'x' has T = 3, another input",
        ),
        (["scan.mlir", "--set", "T=2.5"], "error: --set T=2.5: a bound is a number of steps, 0 or more"),
        (["scan.mlir", "--set", f"T={2**63}"], f"error: --set T={2**63}: a bound is at most 2**48"),
        (["scan.mlir", "--set", f"T={2**40}"], "error: to draw 'x' of 1099511627776x4 numbers needs 49152.0 GiB"),
        (
            ["scan.mlir", "--set", "T=3", "--seed", "-1"],
            "error: the seed is -1: a seed is an integer of 0 to 2**32 - 1",
        ),
        (["scan.mlir", "--set", "width=2"], "error: --set width: the program has the bounds T"),
        (["scan.mlir", "--set", "T"], "error: --set T: write name=value"),
        (["scan.mlir", "--set", "T=1", "--set", "T=2"], "error: --set T=2: 'T' is set twice"),
        (["count.mlir", "--set", "T=1"], "there is no host object @counter; given are none"),
        (["count.mlir", "--set", "T=1", "--host", "counter"], "error: --host counter: write name=module:factory"),
        (["count.mlir", "--set", "T=1", "--host", "counter=nowhere:A"], "No module named 'nowhere'"),
        (["count.mlir", "--set", "T=1", "--host", "counter=hosts_of_test:A"], "no function or class 'A'"),
        (
            ["count.mlir", "--set", "T=1", "--host", "counter=hosts_of_test:Failing"],
            "hosts_of_test.py:11:9: error: ValueError: the environment is gone",
        ),
        (["binary.py"], "error: binary.py: not a Python file: source code string cannot contain null bytes"),
        (["hosts_of_test.py"], "error: hosts_of_test.py: it has no @tp.program"),
    ],
)
def test_mistakes_have_one_clean_message(folder, capsys, arguments, message):
    np.save("wide.npy", np.zeros((3, 5), np.float32))
    np.savez("two.npz", a=np.zeros(2), b=np.zeros(3))
    Path("empty.npy").touch()
    Path("binary.py").write_bytes(b"x = 1\0\n")
    assert run(*arguments) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_an_output_is_written_into_the_folder_or_not_at_all(folder, capsys):
    before = set(Path().glob("*.npy"))
    Path("outside.mlir").write_text(SCAN.replace('sdg.output "', 'sdg.output "../'))
    assert run("outside.mlir", "--set", "T=3", "--out", "results") == 1
    assert "error: --out results: the output '../" in capsys.readouterr().err
    assert set(Path().glob("*.npy")) == before


def test_more_numbers_than_there_is_memory_for(folder, capsys):
    huge = "tensor<99999999999999x9999999999999xf32>"
    Path("huge.mlir").write_text(
        f'sdg.program @p dims(t: T) {{\n  %x = sdg.input "x" in (t) : {huge}\n'
        f'  sdg.output "y" %x[t] in (t) : {huge}\n}}\n'
    )
    for steps in (0, 3):
        assert run("huge.mlir", "--set", f"T={steps}", "--target", "reference") == 1
        assert "error: there is no memory for 'x' of " in capsys.readouterr().err
