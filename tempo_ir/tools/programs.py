"""Programs from Python files and from IR text, with the arguments that a call of them needs."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tempo_ir.dialects.sdg import InputOp, OutputOp, ParameterOp, ProgramOp
from tempo_ir.dialects.types import element, is_bool, is_float, shape_of
from tempo_ir.index.expr import And, Cond, Expr, Sym, evaluate, free_symbols
from tempo_ir.reference.calls import MOST_STEPS
from tempo_ir.reference.dtypes import numpy_dtype
from tempo_ir.tools.diagnostics import Place, UserError, is_user_error, place_in_file, place_of_error, place_of_location
from tempo_ir.tools.parsing import own_context, parse_module

if TYPE_CHECKING:
    from tempo_ir.frontend.program import Program, ProgramFunction

Array = npt.NDArray[Any]
HostFactory = Callable[[], object]
Result = TypeVar("Result")

LARGEST_DRAWN_INTEGER = 8
"""Integers that are not given are drawn below it: as token ids or indices they fit tables of the usual sizes."""


@dataclass(frozen=True)
class LoadedProgram:
    """A program, and what its file says about the arguments that a caller may leave out."""

    op: ProgramOp
    source: Program | ModuleOp

    def initial(self, seed: int) -> dict[str, Array]:
        """The parameters and first states: the program's own, or for IR text, which has none, drawn from the seed."""
        if not isinstance(self.source, ModuleOp):
            return self.source.init(seed)
        return {op.key.data: draw(op, {}, seed) for op in self.op.body.block.ops if isinstance(op, ParameterOp)}

    @property
    def inputs(self) -> dict[str, InputOp]:
        """The ops of the arrays that the caller gives."""
        return {op.key.data: op for op in self.op.body.block.ops if isinstance(op, InputOp)}

    @property
    def state_names(self) -> list[str]:
        """The names of the carried states: parameters with an output of the same name."""
        outputs = {op.key.data for op in self.op.body.block.ops if isinstance(op, OutputOp)}
        parameters = [op.key.data for op in self.op.body.block.ops if isinstance(op, ParameterOp)]
        return [name for name in parameters if name in outputs]


# ---- loading ----


def load_text(text: str, name: str) -> LoadedProgram:
    """The one sdg.program of IR text. Raises ParseError, VerifyException, UserError."""
    module = parse_module(own_context(), text, name)
    module.verify()
    found = [op for op in module.ops if isinstance(op, ProgramOp)]
    if len(found) != 1:
        names = ", ".join(f"@{op.sym_name.data}" for op in found) or "none"
        raise UserError(f"{name}: one sdg.program is needed to run, found {names}")
    return LoadedProgram(found[0], module)


def load_python(path: Path, name: str | None, assignments: Mapping[str, Any]) -> tuple[LoadedProgram, dict[str, Any]]:
    """The program that a Python file states, and those of the assignments that are no settings of it: its bounds."""
    function = find_program(path, name)
    settings = {key: value for key, value in assignments.items() if key in function.settings}
    program = _record(path, function, settings)
    rest = {key: value for key, value in assignments.items() if key not in settings}
    return LoadedProgram(program.op, program), rest


def record_program(path: Path, name: str | None, settings: Mapping[str, Any]) -> Program:
    """The program that a Python file states under `name`, or its only one, with these settings."""
    function = find_program(path, name)
    if unknown := [key for key in settings if key not in function.settings]:
        listed = ", ".join(function.settings) or "none"
        raise UserError(f"--set {unknown[0]}: the program '{function.name}' has the settings {listed}")
    return _record(path, function, settings)


def _record(path: Path, function: ProgramFunction, settings: Mapping[str, Any]) -> Program:
    for key, default in function.settings.items():
        if default is Parameter.empty and key not in settings:
            raise UserError(f"the program '{function.name}' needs a value for '{key}': give --set {key}=...")
    from tempo_ir.frontend.errors import ProgramError

    try:
        return call_user_code(path, lambda: function(**settings))
    except ProgramError as error:
        above = {frame.filename for frame in traceback.extract_stack()}
        if error.place is not None and error.place.file not in above:
            raise
        # about the call itself, which is the tool's: the user's line is that of the program
        code = function.function.__code__
        raise UserError(error.message, Place(code.co_filename, code.co_firstlineno)) from error


def find_program(path: Path, name: str | None) -> ProgramFunction:
    """The `@tp.program` called `name` in a Python file, or the only one. Raises UserError, OSError."""
    from tempo_ir.frontend.program import ProgramFunction

    module = import_file(path)
    named = {key: value for key, value in vars(module).items() if isinstance(value, ProgramFunction)}
    if name is not None and name in named:
        return named[name]
    # those that a file imports from another are not its own
    own = {key: value for key, value in named.items() if value.function.__module__ == module.__name__}
    listed = ", ".join(own) or "none"
    if name is not None:
        raise UserError(f"{path}: no @tp.program is called '{name}'; it has {listed}")
    if not own:
        raise UserError(f"{path}: it has no @tp.program")
    if len(own) > 1:
        raise UserError(f"{path}: it has several programs: choose one, as in {path}:{next(iter(own))} (of {listed})")
    return next(iter(own.values()))


def import_file(path: Path) -> ModuleType:
    """Run a Python file as `python FILE` would, but not as `__main__`: its folder is searched for what it imports."""
    if not path.is_file():
        raise UserError(f"{path}: No such file or directory")
    name = f"tempo_program_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: not a Python file")
    if (folder := str(path.absolute().parent)) not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and typing look their module up
    loader = spec.loader
    call_user_code(path, lambda: loader.exec_module(module))
    return module


def call_user_code(path: Path, run: Callable[[], Result]) -> Result:
    """Run code of the user's file; what it raises becomes a message with its line. Raises UserError."""
    try:
        return run()
    except Exception as error:  # the user's code may raise anything
        place = None if is_user_error(error) else place_in_file(error, path)
        if isinstance(error, SyntaxError | UnicodeDecodeError) and place_of_error(error) is None and place is None:
            raise UserError(f"{path}: not a Python file: {error}") from error
        if place is None:
            raise
        raise UserError(f"{type(error).__name__}: {error}", place) from error


def load_hosts(arguments: Sequence[str]) -> dict[str, HostFactory]:
    """`name=module:factory` arguments as functions that make the host objects. Modules are found from here."""
    hosts: dict[str, HostFactory] = {}
    for argument in arguments:
        name, _, target = argument.partition("=")
        module_name, _, attribute = target.partition(":")
        if not name or not module_name or not attribute:
            raise UserError(f"--host {argument}: write name=module:factory")
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.insert(0, here)
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise UserError(f"--host {argument}: {error}") from error
        factory = getattr(module, attribute, None)
        if not callable(factory):
            raise UserError(f"--host {argument}: the module has no function or class '{attribute}'")
        hosts[name] = factory
    return hosts


# ---- arguments ----


def read_arrays(arguments: Sequence[str]) -> dict[str, Array]:
    """`name=file.npy` arguments as arrays. Raises UserError."""
    arrays: dict[str, Array] = {}
    for argument in arguments:
        name, _, file = argument.partition("=")
        if not name or not file:
            raise UserError(f"--input {argument}: write name=file.npy")
        try:
            array = np.load(file, allow_pickle=False)
        except OSError as error:
            raise UserError(f"--input {argument}: {file}: {error.strerror or error}") from error
        except (ValueError, EOFError, BadZipFile) as error:
            raise UserError(f"--input {argument}: {file} is no .npy file of numbers: {error}") from error
        if not isinstance(array, np.ndarray):
            raise UserError(f"--input {argument}: {file} is no .npy file of one array: it holds several, by name")
        arrays[name] = array
    return arrays


def find_bounds(program: LoadedProgram, given: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, int]:
    """The bounds that are known: as set, or read off the leading axes of the inputs that are given."""
    params = program.op.space.params
    settings = () if isinstance(program.source, ModuleOp) else tuple(program.source.settings)
    for name, value in given.items():
        if name not in params:
            known = [f"the bounds {', '.join(params)}"] if params else []
            known += [f"the settings {', '.join(settings)}"] if settings else []
            raise UserError(f"--set {name}: the program has {' and '.join(known) or 'no bounds or settings'}")
        if type(value) is not int or value < 0:
            raise UserError(f"--set {name}={value}: a bound is a number of steps, 0 or more")
        if value > MOST_STEPS:
            raise UserError(f"--set {name}={value}: a bound is at most 2**48")
    bounds: dict[str, int] = dict(given)
    for name, op in program.inputs.items():
        dims = [program.op.space.bound(dim) for dim in op.domain.dims]
        for bound, size in zip(dims, arrays[name].shape if name in arrays else (), strict=False):
            if isinstance(bound, Sym) and bounds.setdefault(bound.name, size) != size:
                raise UserError(
                    f"input '{name}' has {bound.name} = {size}, another input or --set has {bounds[bound.name]}"
                )
    return {name: bounds[name] for name in params if name in bounds}


def choose_bounds(program: LoadedProgram, known: Mapping[str, int]) -> dict[str, int]:
    """All bounds: those known, and a small value for one that the program ties to them, as in `where P <= T`.

    Raises UserError for a bound that nothing ties, or that has no such value.
    """
    space = program.op.space
    conditions = [space.where, *(precondition.cond.data for precondition in program.op.preconditions or ())]
    parts = [part for whole in conditions for part in (whole.args if isinstance(whole, And) else [whole])]
    bounds = dict(known)
    for name in [name for name in space.params if name not in known]:
        tied = any(name in free_symbols(part) and free_symbols(part) & known.keys() for part in parts)
        bounds[name] = _small_value(name, bounds, parts) if tied else -1
        if bounds[name] < 0:
            raise UserError(f"the bound {name} is not known: give --set {name}=16, or an input that has it")
    return {name: bounds[name] for name in space.params}


def _small_value(name: str, bounds: Mapping[str, int], conditions: Sequence[Cond]) -> int:
    """A value of the bound for which every condition on known bounds holds; -1 where there is no small one."""
    about = [part for part in conditions if name in free_symbols(part) and free_symbols(part) <= {name, *bounds}]
    for value in (4, 3, 2, 1, *range(5, 65)):
        if all(evaluate(part, {**bounds, name: value}) for part in about):
            return value
    return -1


def complete_inputs(
    program: LoadedProgram, arrays: Mapping[str, Array], bounds: Mapping[str, int], seed: int
) -> dict[str, Array]:
    """The inputs that are given, and the others drawn from the seed at their sizes."""
    inputs = program.inputs
    if unknown := [name for name in arrays if name not in inputs]:
        listed = ", ".join(inputs) or "none"
        raise UserError(f"--input {unknown[0]}: the program has no input of this name; it has {listed}")
    return {name: arrays[name] if name in arrays else draw(op, bounds, seed) for name, op in inputs.items()}


def draw(op: InputOp | ParameterOp, bounds: Mapping[str, int], seed: int) -> Array:
    """An array for an input or a parameter of an sdg program: a function of the seed and its name."""
    program = op.parent_op()
    assert isinstance(program, ProgramOp)
    name, type_ = op.key.data, op.result.type
    extents = [*(program.space.bound(dim) for dim in op.domain.dims), *shape_of(type_)]
    unknown = [extent for extent in extents if isinstance(extent, Expr) and free_symbols(extent) - bounds.keys()]
    if unknown:
        raise UserError(f"'{name}' has an extent {unknown[0]}, which is not known", place_of_location(op.location))
    shape = [evaluate(extent, bounds) if isinstance(extent, Expr) else extent for extent in extents]
    return draw_array(name, element(type_), shape, seed, is_weight=isinstance(op, ParameterOp))


def draw_array(name: str, element_type: Attribute, shape: Sequence[int], seed: int, *, is_weight: bool) -> Array:
    """Normal numbers or small integers, a function of the seed and the name.

    Inputs have variance 1; matrices of weights have what keeps a product with them at the variance of its operand.
    Raises UserError or NotEnoughMemoryError for more numbers than memory holds.
    """
    if math.prod(max(1, extent) for extent in shape) > np.iinfo(np.intp).max // np.dtype(np.float64).itemsize:
        raise UserError(f"there is no memory for '{name}' of {'x'.join(map(str, shape))} numbers")
    from tempo_ir.runtime.room import check_room  # the runtime: only for who runs

    dtype, numbers = numpy_dtype(element_type), math.prod(shape)
    parts = {"the numbers": numbers * dtype.itemsize, "drawing them": numbers * np.dtype(np.float64).itemsize}
    what = f"to draw '{name}' of {'x'.join(map(str, shape))} numbers"
    check_room(parts, what, {}, "give smaller bounds, or the array as a file")
    generator = np.random.default_rng([seed, *name.encode()])
    if not is_float(element_type):
        end = 2 if is_bool(element_type) else LARGEST_DRAWN_INTEGER
        return generator.integers(0, end, shape).astype(dtype)
    scale = shape[0] ** -0.5 if is_weight and len(shape) > 1 and shape[0] else 1.0
    drawn = generator.standard_normal(shape)
    drawn *= scale
    return drawn.astype(dtype)
