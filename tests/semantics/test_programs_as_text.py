"""The cases from IR text: each program in `programs/` is read, compiled and run; its values come from numpy."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from semantics_support import SIZES, same
from text_expectations import EXPECTED, STATED
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tempo_ir as tp
from tempo_ir.passes import get_all_passes
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime.executable import Executable
from tempo_ir.tools import tempo_opt
from tempo_ir.tools.parsing import own_context, parse_module

PROGRAMS = Path(__file__).parent / "programs"
CASES = 46
TARGETS = ("reference", "cpu")
IN_TILES = frozenset({1, 3, 4, 6, 15, 17, 22, 23, 27, 28, 29, 30, 39, 40, 41, 46})
"""The cases with reductions that sdg-tile{tile=3} takes."""


def read(name: str) -> ModuleOp:
    """A program, verified."""
    file = PROGRAMS / f"{name}.mlir"
    module = parse_module(own_context(), file.read_text(), file.name)
    module.verify()
    return module


@cache
def executable(name: str, target: str) -> Executable:
    """A program, compiled once for all of this file's tests."""
    return tp.compile(read(name), target)


def check(name: str, target: str, arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    """The outputs of a call are these."""
    gives(executable(name, target), arguments, expected, name)


def gives(run: Executable, arguments: dict[str, Any], expected: dict[str, Any], name: str) -> None:
    """A call gives these outputs, and states."""
    result = run(**arguments)
    outputs = {**result, **result.state}
    for key, value in expected.items():
        same(outputs[key], value, f"{name} on {run.target}: {key}")


def sizes_of(least: int) -> list[int]:
    """The sizes to run a program at, by the least that it takes; those of a program that takes none are one call."""
    return [0] if least < 0 else [size for size in SIZES if size >= least]


def after(compiler_pass: str, module: ModuleOp, **options: Any) -> ModuleOp:
    """A copy of a program after a pass."""
    changed = module.clone()
    get_all_passes()[compiler_pass]()(**options).apply(Context(), changed)
    changed.verify()
    return changed


@pytest.mark.parametrize("name", EXPECTED)
def test_program(name: str) -> None:
    call, least = EXPECTED[name]
    for target in TARGETS:
        for size in sizes_of(least):
            check(name, target, *call(size))
        if name in STATED:
            size, values = STATED[name]
            check(name, target, call(size)[0], values)


@pytest.mark.parametrize("name", EXPECTED)
def test_program_in_tiles(name: str) -> None:
    """Tiles of three, at sizes that are no more, that they divide and that they do not."""
    plain = after("sdg-autodiff", read(name))
    module = after("sdg-tile", plain, tile=3)
    assert (str(module) != str(plain)) is (int(name[:2]) in IN_TILES)
    if str(module) == str(plain):
        return
    call, least = EXPECTED[name]
    for target in TARGETS:
        run = tp.compile(module, target)
        for size in sizes_of(least):
            gives(run, *call(size), f"{name} in tiles")


@pytest.mark.parametrize("name", sorted(file.stem for file in PROGRAMS.glob("*.mlir") if "refused" not in file.stem))
def test_text_is_kept_by_printing(name: str) -> None:
    """The files are as the printer writes them, but for the comment in front."""
    _, text = (PROGRAMS / f"{name}.mlir").read_text().split("\n", 1)
    (program,) = read(name).ops
    assert str(program).strip() == text.strip()


@pytest.mark.parametrize("file", sorted(PROGRAMS.glob("*_refused.mlir")), ids=lambda file: file.stem)
def test_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors stand as comments beside the lines that they are about."""
    command = [str(file), "--split-input-file", "--verify-diagnostics", "-p", "sdg-default,sdg-schedule"]
    assert tempo_opt.main(command) == 0, capsys.readouterr().err


class Counter:
    """Counts its calls."""

    calls: list[int]

    def value(self, t: Any) -> Any:
        self.calls.append(int(t))
        return np.float32(t + 10)


@pytest.mark.parametrize("target", TARGETS)
def test_14_the_host_is_called_once(target: str) -> None:
    counter = Counter()
    counter.calls = []
    out = executable("14_needed_points", target)(T=5, hosts={"counter": lambda: counter})
    assert out["first"] == 10
    assert counter.calls == [0]


class Halves:
    """An environment of many: a step gives what it is given and the number of steps so far."""

    def __init__(self) -> None:
        self.steps = 0
        self.called: list[str] = []

    def __getattr__(self, method: str) -> Any:
        name, several, _ = method.partition("_all")
        if name not in ("reset", "step"):
            raise AttributeError(method)
        one = {"reset": self._reset, "step": self._step}[name]

        def call(given: Any) -> Any:
            self.called.append(method)
            made = [one(row) for row in (given if several else [given])]
            columns = [np.stack(column) for column in zip(*made, strict=True)]
            results = columns if several else [column[0] for column in columns]
            return results[0] if len(results) == 1 else tuple(results)

        return call

    def _reset(self, b: Any) -> tuple[Any, ...]:
        return (np.full(2, b + 1, np.float32),)

    def _step(self, action: Any) -> tuple[Any, ...]:
        self.steps += 1
        return action, np.int64(self.steps)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("vectorised", [False, True])
def test_24_calls_as_text(target: str, vectorised: bool) -> None:
    module = read("24_calls_of_a_vector_environment")
    run = tp.compile(after("sdg-vectorize", module) if vectorised else module, target)
    for T, B in [(3, 2), (1, 5), (0, 2), (2, 0)]:
        made: list[Halves] = []
        out = run(T=T, B=B, hosts={"env": lambda made=made: made.append(Halves()) or made[-1]})
        expected = (np.arange(B) + 1) * 0.5 ** np.arange(T)[:, None]
        same(out["obs"], np.repeat(expected[..., None], 2, -1), "obs")
        same(out["count"], np.arange(T * B).reshape(T, B) + 1, "count")
        one_call = vectorised or target == "cpu"
        calls = {"reset_all": min(B, 1), "step_all": T * min(B, 1)} if one_call else {"reset": B, "step": T * B}
        assert made[0].called == [name for name, count in calls.items() for _ in range(count if T else 0)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "size", "given"), [("16_two_blocks", 6, "a"), ("41_preconditions", 0, "k")])
def test_16_41_a_size_that_is_too_small(name: str, size: int, given: str, target: str) -> None:
    least = EXPECTED[name][1]
    with pytest.raises(ValueError, match=rf"T >= {least}, got T = {size}.*reads"):
        executable(name, target)(**{given: np.zeros(size, np.float32)})


@pytest.mark.parametrize("target", TARGETS)
def test_19_20_donated_states(target: str) -> None:
    for name in ("19_carried_states", "20_read_after_the_update"):
        for size in (1, 2, 5):
            arguments, expected = EXPECTED[name][0](size)
            check(name, target, {**arguments, "donate": True}, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_21_37_draws(target: str) -> None:
    a = np.zeros((9, 2), np.float32)
    out = executable("21_alike_and_not_equal", target)(a=a, b=a, seed=1)
    assert not np.array_equal(out["u"], out["v"])
    run = executable("37_random_numbers", target)
    first, again, other = (run(I=3, T=5, seed=seed) for seed in (1, 1, 2))
    for name, value in first.items():
        np.testing.assert_array_equal(value, again[name])
        assert not np.array_equal(value, other[name])
    np.testing.assert_array_equal(first["u"], first["again"])
    assert not np.array_equal(first["u"], first["other"])
    assert set(np.unique(first["integers"])) <= {*range(-3, 4)}
    for name in ("u", "other", "bits", "integers"):
        reference = executable("37_random_numbers", "reference")(I=3, T=5, seed=1)
        np.testing.assert_array_equal(value := first[name], reference[name], err_msg=f"{name} {value.dtype}")


@pytest.mark.parametrize("lifted", [False, True])
def test_26_a_long_recurrence_is_stable(lifted: bool) -> None:
    name = "26_discounted_returns"
    module = after("sdg-lift", read(name), all=True) if lifted else read(name)
    assert str(module).count("sdg.cumsum") == lifted
    gives(tp.compile(module), *EXPECTED[name][0](2000), name)


def test_38_offsets_are_computed_in_64_bits() -> None:
    assert re.search(r"i(nt)?64", executable("38_long_rows", "cpu").ir("triton"))


@pytest.mark.parametrize("target", TARGETS)
def test_42_run_time_errors_name_op_point_and_line(target: str) -> None:
    arguments = EXPECTED["42_odd_slices_and_run_time_errors"][0](3)[0]
    text = (PROGRAMS / "42_odd_slices_and_run_time_errors.mlir").read_text().splitlines()
    lines = {line.split()[2]: number for number, line in enumerate(text, 1) if " = sdg." in line}
    for wrong, message in ((0, "division by zero"), (4, "outside of the 4 rows"), (-1, "outside of the 4 rows")):
        n = np.array([1, 2, wrong])
        with pytest.raises(ExecutionError, match=rf"(?s){message}.*t = 2") as raised:
            executable("42_odd_slices_and_run_time_errors", target)(**{**arguments, "n": n})
        line = lines["sdg.floordiv" if wrong == 0 else "sdg.gather"]
        assert f"42_odd_slices_and_run_time_errors.mlir:{line}" in str(raised.value)


class Fragile:
    """Raises at one step."""

    def step(self, t: Any) -> Any:
        if t == 3:
            raise KeyError("broken")
        return np.float32(t)


@pytest.mark.parametrize("target", TARGETS)
def test_44_an_exception_of_a_host_is_raised_with_its_point(target: str) -> None:
    run = executable("44_a_host_that_raises", target)
    with pytest.raises(KeyError, match="broken") as raised:
        run(T=5, hosts={"fragile": Fragile})
    notes = "\n".join(raised.value.__notes__)
    assert "t = 3" in notes
    assert "44_a_host_that_raises.mlir:6" in notes
    same(run(T=3, hosts={"fragile": Fragile})["y"], [0, 2, 4], "after the failure")


@pytest.mark.parametrize("target", TARGETS)
def test_45_two_calls_equal_one(target: str) -> None:
    x, state = np.linspace(-1, 1, 27).reshape(9, 3), {"w": np.full(3, 0.5)}
    run = executable("45_two_calls", target)
    whole = run(x=x, seed=3, state=state)
    for cut in (0, 4, 9):
        first = run(x=x[:cut], seed=3, state=state)
        second = run(x=x[cut:], seed=3, state=first.state, start={"i": cut})
        for name in ("before", "drawn"):
            np.testing.assert_array_equal(np.concatenate([first[name], second[name]]), whole[name])
        np.testing.assert_array_equal(second.state["w"], whole.state["w"])


def test_nine_cases_in_ten_are_programs_in_text() -> None:
    covered = {int(file.stem[:2]) for file in PROGRAMS.glob("*.mlir")}
    assert covered <= {*range(1, CASES + 1)}
    assert len(covered) >= 0.9 * CASES
    tested = {*EXPECTED, *re.findall(r'"(\d\d_\w+)"', Path(__file__).read_text())}
    assert {file.stem for file in PROGRAMS.glob("*.mlir") if "refused" not in file.stem} <= tested
