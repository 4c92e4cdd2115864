"""What tempo-run does with a loaded program: run it on a target, write what it gives, compare it with the reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.executable import Compiled, Executable, memory_timeline
from tempo_ir.runtime.profile import profile
from tempo_ir.tools.diagnostics import UserError, is_user_error, place_outside_package
from tempo_ir.tools.programs import Array, HostFactory, LoadedProgram

LEVELS = {"sdg": "sdg.mlir", "loop": "loop.mlir", "tile": "tile.mlir", "llvm": "llvm.ll", "triton": "triton.py"}
"""The levels of IR that an executable keeps, and the file of each."""

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 4e-2}
"""Differences that the order of operations explains, relative to the largest value of an output."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Call:
    """A program and the arguments of one call."""

    program: LoadedProgram
    inputs: Mapping[str, Array]
    bounds: Mapping[str, int]
    state: Mapping[str, Array]
    hosts: Mapping[str, HostFactory]
    seed: int


@dataclass(frozen=True)
class Results:
    """What a call gave: the outputs, and the last values of the carried states, by name."""

    outputs: Mapping[str, Array]
    state: Mapping[str, Array]


def run(executable: Executable, call: Call) -> Results:
    """Run a call. What a host object raises becomes a message with its line and the op's. Raises UserError."""
    values = _told(executable, call)
    return Results(values, {name: values.state[name] for name in call.program.state_names})


def profile_text(executable: Executable, call: Call) -> str:
    """How long each kernel takes in a call. Raises UserError and CallError."""
    return str(_told(partial(profile, executable), call))


def _told(function: Callable[..., Value], call: Call) -> Value:
    """What a function makes of the arguments of a call; what a host object raises becomes a message."""
    arguments: dict[str, Any] = {**call.inputs, **call.bounds}
    try:
        return function(**arguments, state=call.state, seed=call.seed, hosts=call.hosts)
    except Exception as error:  # a host object is the user's code, which may raise anything
        if (message := message_of_host(error)) is None:
            raise
        raise message from error


def message_of_host(error: Exception) -> UserError | None:
    """The message for what a host object raised, with its line and the op's; None for any other exception."""
    # whoever calls a host notes op and point on what it raises
    place = place_outside_package(error) if getattr(error, "__notes__", None) else None
    if is_user_error(error) or place is None:
        return None
    message = UserError(f"{type(error).__name__}: {error}", place)
    for note in error.__notes__:
        message.add_note(note)
    return message


def remat_options(given: Sequence[str], bounds: Mapping[str, int]) -> dict[str, int] | None:
    """The options of `--remat budget=BYTES`, several or separated by commas, for `tempo_ir.compile`; a dim is expected
    to have as many points as the greatest bound where nothing is said. Raises UserError for what is none."""
    if not given:
        return None
    options = {"steps": max(bounds.values(), default=1)} if bounds else {}
    for text in [part for argument in given for part in argument.split(",")]:
        name, equals, number = (part.strip() for part in text.partition("="))
        if not equals or not number.isdecimal():
            raise UserError(f"--remat {text}: an option is a name and a number, as budget=1000000")
        options[name] = int(number)
    return options


# ---- what is written ----


def write_ir(executable: Executable, directory: Path) -> None:
    """Write every level of IR that the executable has, one file each."""
    directory.mkdir(parents=True, exist_ok=True)
    for level, file in LEVELS.items():
        with suppress(CallError):  # a level that the target does not have
            (directory / file).write_text(executable.ir(level))


def write_triton(executable: Executable, directory: Path, precision: str | None) -> None:
    """Write the program for a GPU: a package of Triton kernels and their driver, which needs nothing of ours. Raises
    CallError for a precision that there is not."""
    executable.write_triton(directory, precision)


def write_results(results: Results, directory: Path) -> None:
    """Write each output as NAME.npy, and the state as one safetensors file. Raises UserError for names of no file."""
    for name in results.outputs:
        if Path(name).name != name:
            raise UserError(f"--out {directory}: the output '{name}' cannot name a file: rename it in the program")
    directory.mkdir(parents=True, exist_ok=True)
    for name, array in results.outputs.items():
        np.save(directory / f"{name}.npy", array)
    if results.state:
        from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

        arrays = {name: np.ascontiguousarray(array) for name, array in results.state.items()}
        save_file(arrays, directory / "state.safetensors")


def results_text(results: Results) -> str:
    """A line per output: name, element type, shape, and the values, the middle ones left out where they are many."""
    rows = [f"{name}: {array.dtype}{list(array.shape)} {values_text(array)}" for name, array in results.outputs.items()]
    rows += [f"{name}: {array.dtype}{list(array.shape)} (state)" for name, array in results.state.items()]
    return "\n".join(rows) or "the program has no outputs"


def values_text(array: Array) -> str:
    """The values on one line, the middle ones left out where they are many."""
    shown = array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array
    text = np.array2string(shown, precision=6, threshold=16, edgeitems=3, separator=" ")
    return " ".join(text.split()).replace("[ ", "[").replace(" ]", "]")


def statistics_text(executable: Executable, bounds: Mapping[str, int]) -> str:
    """A line per fact; nested ones are indented. Costs are formulas that hold near these bounds, with their values."""
    lines = _facts(dataclasses.asdict(executable.stats), "")
    if isinstance(executable, Compiled):
        from tempo_ir.index.closed_form import value  # sympy: only for who asks

        costs = executable.costs.near(bounds)
        at = ", ".join(f"{name} = {value}" for name, value in bounds.items()) or "any call"
        lines += [f"costs, as formulas near {at}:"]
        lines += [f"  {name}: {formula} = {value(formula, bounds)}" for name, formula in costs.formulas.items()]
        lines += [f"  left out of {reason}" for reason in costs.left_out]
    return "\n".join(lines)


def write_timeline(executable: Executable, bounds: Mapping[str, int], path: Path) -> None:
    """Write the live bytes over the schedule as a picture, `*.svg`."""
    memory_timeline(executable, **bounds).write(path)


def _facts(facts: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for name, value in facts.items():
        if isinstance(value, tuple):
            lines += [f"{indent}{name}:", *(f"{indent}  {each}" for each in cast("tuple[str, ...]", value))]
        elif isinstance(value, Mapping):
            lines += [f"{indent}{name}:", *_facts(cast("Mapping[str, Any]", value), indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {value:.6g}" if isinstance(value, float) else f"{indent}{name}: {value}")
    return lines


# ---- comparison ----


@dataclass(frozen=True)
class Difference:
    """How far two arrays of one name are apart, and whether rounding explains it."""

    name: str
    fits: bool
    text: str


@dataclass(frozen=True)
class Comparison:
    """How far two runs are apart, array by array."""

    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Whether rounding explains all differences."""
        return all(difference.fits for difference in self.differences)

    @property
    def text(self) -> str:
        """A line per array."""
        return "\n".join(f"check {d.name}: {'ok' if d.fits else 'DIFFERENT'}, {d.text}" for d in self.differences)


def compare(results: Results, reference: Results) -> Comparison:
    """Compare outputs and states with those of the reference interpreter: integers exactly, floats to rounding."""
    pairs = [(name, results.outputs[name], expected) for name, expected in reference.outputs.items()]
    pairs += [(name, results.state[name], expected) for name, expected in reference.state.items()]
    return Comparison(tuple(Difference(name, *_difference(got, expected)) for name, got, expected in pairs))


def _difference(got: Array, expected: Array) -> tuple[bool, str]:
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False, f"{got.dtype}{list(got.shape)}, the reference has {expected.dtype}{list(expected.shape)}"
    tolerance = TOLERANCE.get(expected.dtype.name)
    if tolerance is None:
        return _counted(got, expected, got != expected)
    ours, theirs = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(theirs)
    elsewhere = ~finite & (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs)) | finite & ~np.isfinite(ours)
    if elsewhere.any():
        return _counted(got, expected, elsewhere)
    distance = np.abs(np.subtract(ours, theirs, where=finite, out=np.zeros_like(ours)))
    largest, scale = (float(np.max(values, where=finite, initial=0.0)) for values in (distance, np.abs(theirs)))
    text = f"largest difference {largest:.3g} among values up to {scale:.3g}"
    wrong = distance > tolerance * max(scale, 1.0)
    return (True, text) if not wrong.any() else (False, f"{text}; {_counted(got, expected, wrong)[1]}")


def _counted(got: Array, expected: Array, wrong: npt.NDArray[np.bool_]) -> tuple[bool, str]:
    places = np.argwhere(wrong)
    if not len(places):
        return True, "equal"
    first = tuple(int(axis) for axis in places[0])
    return (
        False,
        f"{len(places)} of {expected.size} values, first at {list(first)}: {got[first]}, not {expected[first]}",
    )
