"""Shared by the tests of passes: text to module, pass by name, the reference interpreter before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from tempo_ir.dialects.sdg import GradOp, InputOp, ParameterOp, ProgramOp, Sdg
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import evaluate
from tempo_ir.passes import get_all_passes
from tempo_ir.reference.sdg import run
from tempo_ir.runtime import Executable
from tests.fuzz.arguments import draw as draw_arguments

SIZES = (0, 1, 2, 3, 5, 8)
MANY_SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)


def parse(text: str) -> ModuleOp:
    """A verified module."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sdg)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def apply(module: ModuleOp, *passes: str, **options: object) -> ModuleOp:
    """Run passes by name, verifying after each; options go to all of them. No pass leaves an op outside that reads."""
    for name in passes:
        get_all_passes()[name]()(**options).apply(Context(), module)
        module.verify()
        used = (use.operation for op in module.walk() for result in op.results for use in result.uses)
        assert not [str(user) for user in used if user.parent is None], name
    return module


def program_of(module: ModuleOp) -> ProgramOp:
    """The one program of a module."""
    (program,) = (op for op in module.ops if isinstance(op, ProgramOp))
    return program


def transformed(text: str, *passes: str, **options: object) -> str:
    """The program text after passes."""
    return str(apply(parse(text), *passes, **options))


def draw(program: ProgramOp, bounds: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs and parameters of f64, drawn from a seed."""
    generator = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    for op in program.body.block.ops:
        if not isinstance(op, InputOp | ParameterOp):
            continue
        leading = [evaluate(program.space.bound(dim), bounds) for dim in op.domain.dims]
        own = [extent if isinstance(extent, int) else evaluate(extent, bounds) for extent in shape_of(op.result.type)]
        shape = (*leading, *own)
        sign = np.where(generator.random(shape) < 0.5, -1.0, 1.0)
        arrays[op.key.data] = generator.uniform(0.5, 1.5, size=shape) * sign
    return arrays


def outputs(module: ModuleOp, arrays: Mapping[str, np.ndarray], bounds: Mapping[str, int]) -> dict[str, np.ndarray]:
    """What the reference interpreter makes of a program."""
    return run(program_of(module), arrays, bounds)


def check_unchanged(
    text: str, *passes: str, bounds: Sequence[Mapping[str, int]], before: Sequence[str] = (), exact: bool = False
) -> ModuleOp:
    """Passes change no output, at any of the bounds; `before` are run first on both sides."""
    plain, changed = apply(parse(text), *before), apply(parse(text), *before, *passes)
    for point in bounds:
        arrays = draw(program_of(plain), point)
        want, have = outputs(plain, arrays, point), outputs(changed, arrays, point)
        assert want.keys() == have.keys()
        for key in want:
            tolerance = 0.0 if exact else 1e-12
            where = f"{key} at {point}"
            np.testing.assert_allclose(have[key], want[key], rtol=tolerance, atol=tolerance, err_msg=where)
    return changed


def check_values_stay(
    before: ModuleOp, after: ModuleOp, sizes: Sequence[int], tolerance: float, *, special: bool = False
) -> None:
    """Two programs have the same outputs at all sizes, on `special` values (NaN, infinities) too; a bound I is 3."""
    plain, changed = program_of(before), program_of(after)
    for size in sizes:
        bounds = dict.fromkeys(plain.space.params, size)
        if "I" in bounds:
            bounds["I"] = 3
        arguments = draw_arguments(plain, bounds, size, special=special)
        with np.errstate(all="ignore"):
            expected, found = run(plain, arguments, bounds), run(changed, arguments, bounds)
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, tolerance, tolerance, err_msg=f"{key} at {bounds}")


def check_executables(
    module: ModuleOp, executables: Sequence[Executable], sizes: Sequence[int], tolerance: float
) -> None:
    """What was compiled has the outputs that the reference interpreter finds, with all bounds of one size."""
    program = program_of(module)
    for size in sizes:
        bounds = dict.fromkeys(program.space.params, size)
        arguments = draw_arguments(program, bounds, size)
        expected = run(program, arguments, bounds)
        for executable in executables:
            found = executable(**arguments, **bounds)
            for key, value in expected.items():
                np.testing.assert_allclose(found[key], value, tolerance, tolerance, err_msg=f"{key} at {bounds}")


def check_gradients(text: str, bounds: Mapping[str, int], arrays: Mapping[str, np.ndarray] | None = None) -> None:
    """Every output "d<key>" is the gradient of the sum of output "loss" by input <key>, by central differences."""
    module = apply(parse(text), "sdg-autodiff")
    assert not any(isinstance(op, GradOp) for op in module.walk())
    arrays = dict(draw(program_of(module), bounds) if arrays is None else arrays)
    found = outputs(module, arrays, bounds)
    keys = [key[1:] for key in found if key.startswith("d")]
    assert keys
    for key in keys:
        expected = finite_differences(module, arrays, bounds, key)
        np.testing.assert_allclose(found[f"d{key}"], expected, rtol=1e-6, atol=1e-6, err_msg=f"{key} at {bounds}")


def finite_differences(
    module: ModuleOp, arrays: Mapping[str, np.ndarray], bounds: Mapping[str, int], key: str
) -> np.ndarray:
    """The gradient of the sum of output "loss" by an input, by central differences."""
    step = 1e-5
    gradient = np.zeros_like(arrays[key])
    program = program_of(module)
    for position in np.ndindex(gradient.shape):
        losses: list[float] = []
        for offset in (step, -step):
            moved = np.array(arrays[key])
            moved[position] += offset
            losses.append(float(np.sum(run(program, {**arrays, key: moved}, bounds)["loss"])))
        gradient[position] = (losses[0] - losses[1]) / (2 * step)
    return gradient
