"""`@tp.program`: a function that states a program. Calling it with settings records the program."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.utils.exceptions import PassFailedException, VerifyException

from tempo_ir.collection import collection_paused
from tempo_ir.dialects.operation import maker_of, ops_of
from tempo_ir.dialects.sdg import CustomGradientOp, GradOp, HostOp, InputOp, OutputOp, ParameterOp, ProgramOp, UntilOp
from tempo_ir.frontend.arguments import Arguments, Result
from tempo_ir.frontend.description import Array, HostInfo, InputInfo, OutputInfo, StateInfo
from tempo_ir.frontend.errors import Place, ProgramError, here, place_of
from tempo_ir.frontend.recording import Recording, recorded
from tempo_ir.frontend.state import initial
from tempo_ir.index.expr import Expr

if TYPE_CHECKING:
    from tempo_ir.frontend.settlement import Known


class Program:
    """A recorded program: its sdg module, and what the caller needs to know about arguments and results."""

    def __init__(self, module: ModuleOp, recording: Recording, known: Known):
        self.module = module
        self._known = known
        self.name = recording.name
        self.settings: Mapping[str, object] = recording.settings
        self.inputs: Mapping[str, InputInfo] = recording.inputs
        self.outputs: Mapping[str, OutputInfo] = recording.outputs
        self.states: Mapping[str, StateInfo] = recording.states
        self.hosts: Mapping[str, HostInfo] = recording.hosts
        self.dims: Mapping[str, Expr] = recording.dims

    @property
    def op(self) -> ProgramOp:
        """The sdg.program op."""
        (op,) = self.module.body.block.ops
        assert isinstance(op, ProgramOp)
        return op

    @property
    def bounds(self) -> tuple[str, ...]:
        """The bounds that a call gives, or that are read off its inputs."""
        return self.op.space.params

    def keep(self) -> None:
        """Let other processes that record the same program know what settling it gave, where anything is kept."""
        self._known.keep()

    def init(self, seed: int = 0) -> dict[str, Array]:
        """The first value of every parameter and state, made from the seed."""
        return {name: initial(info, seed) for name, info in self.states.items()}

    def run(
        self,
        target: str = "reference",
        *,
        state: Mapping[str, Array] | None = None,
        seed: int = 0,
        start: Mapping[str, int] | None = None,
        **arguments: Any,
    ) -> Result:
        """Run without compiling, by the numpy interpreter that defines the language.

        `arguments` are inputs and bounds (bounds are read off the inputs where they can be). Raises ProgramError
        for arguments that do not fit, each naming the input.
        """
        if target != "reference":
            raise ProgramError(
                f"run() interprets: for target '{target}', use tempo_ir.compile(program, target='{target}')", here()
            )
        from tempo_ir.reference import sdg as reference
        from tempo_ir.reference.calls import mapping_of, starts_of

        try:
            started = starts_of(start, tuple(self.dims))
            state = state if state is None else mapping_of("state", state, "arrays by name, as of init()")
        except ValueError as error:
            raise ProgramError(str(error)) from None
        checked = Arguments.of(self, arguments, self.init(seed) if state is None else state)
        hosts = {name: info.make for name, info in self.hosts.items()}
        values = reference.run(self.expanded(), checked.arrays, checked.bounds, seed, hosts, start=started)
        return Result.of(self, checked, values)

    def expanded(self) -> ProgramOp:
        """The program with its gradients expanded: the op itself if it has none.

        Raises ProgramError for a gradient that does not exist.
        """
        if not any(isinstance(op, GradOp | CustomGradientOp) for op in self.op.body.block.ops):
            return self.op
        from tempo_ir.passes.sdg_autodiff import SdgAutodiffPass

        module = self.module.clone()
        try:
            SdgAutodiffPass().apply(Context(), module)
        except PassFailedException as error:
            raise ProgramError.about(error, self.op) from None
        (op,) = module.body.block.ops
        assert isinstance(op, ProgramOp)
        return op

    def __str__(self) -> str:
        return str(self.op)

    def __repr__(self) -> str:
        return f"<program {self.name} of {len(list(self.op.body.block.ops))} ops>"


class ProgramFunction:
    """A function under `@tp.program`. Its keyword arguments are settings, fixed when the program is recorded."""

    def __init__(self, function: Callable[..., None]):
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__
        self.settings: dict[str, object] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise ProgramError(
                    f"the program '{self.name}' takes *{parameter.name}: name its settings, each with a default", here()
                )
            self.settings[parameter.name] = parameter.default

    def __call__(self, *positional: object, **settings: Any) -> Program:
        """Record the program. Raises ProgramError where it means nothing, with the user's line."""
        if positional:
            names = ", ".join(f"{name}=..." for name in self.settings) or "none"
            raise ProgramError(f"the settings of '{self.name}' are given by name: {names}", here())
        return build(self, settings)

    def __repr__(self) -> str:
        return f"<@tp.program {self.name}({', '.join(self.settings)})>"


def program(function: Callable[..., None]) -> ProgramFunction:
    """Make a function a program: called with settings, it records and gives a `Program`."""
    return ProgramFunction(function)


def build(source: ProgramFunction, settings: Mapping[str, Any]) -> Program:
    """Run the user's function and finish what it left open."""
    if unknown := [name for name in settings if name not in source.settings]:
        known = ", ".join(source.settings) or "none"
        raise ProgramError(
            f"the program '{source.name}' has no setting '{unknown[0]}'; its settings are {known}", here()
        )
    chosen = {**source.settings, **settings}
    if missing := [name for name, value in chosen.items() if value is inspect.Parameter.empty]:
        raise ProgramError(f"the program '{source.name}' needs a value for its setting '{missing[0]}'", here())
    code = source.function.__code__
    recording = Recording(source.name, chosen)
    with recorded(recording), collection_paused():
        for name in chosen:
            recording.claim("argument", "setting", name)
        source.function(**chosen)
        for end in recording.endings:
            end()
        for finish in list(recording.finishers):
            finish()
        remove_unused(recording)
        return finished(recording, Place(code.co_filename, code.co_firstlineno, 1))


def remove_unused(recording: Recording) -> None:
    """Erase the ops that no output and no host call needs; what the caller gives stays declared."""
    needed: set[Operation] = set()
    waiting: list[Operation] = [
        op for op in recording.block.ops if isinstance(op, OutputOp | HostOp | InputOp | ParameterOp | UntilOp)
    ]
    while waiting:
        op = waiting.pop()
        if op in needed:
            continue
        needed.add(op)
        waiting += [maker for value in op.operands if (maker := maker_of(value)) is not None]
    unused = [op for op in ops_of(recording.block) if op not in needed]
    for op in unused:
        op.detach()
        op.drop_all_references()
    for op in unused:
        op.erase(drop_references=False)


def finished(recording: Recording, place: Place) -> Program:
    """The program: domains narrowed to the needed points, preconditions stated, verified."""
    from tempo_ir.frontend.settlement import settled

    op = ProgramOp(recording.name, recording.space, Region(recording.block), location=place.location)
    module = ModuleOp([op])
    try:
        known = settled(module, op)
    except VerifyException as error:
        culprit: Operation = getattr(error, "op", op)
        lines = [str(case.place) for case in recording.definitions.get(culprit, [])]
        cases = f" (its cases: {', '.join(lines)})" if lines else ""
        raise ProgramError(f"{error.args[0]}{cases}", place_of(culprit.location) or place) from None
    return Program(module, recording, known)


def load_program(
    path: str | PathLike[str], name: str | None = None, settings: Mapping[str, Any] | None = None
) -> Program:
    """Record the program that a Python file defines under `@tp.program`.

    `name` picks one where the file defines several. A setting given as text, as tools have it, is read as a Python
    literal where the setting's default is no text (`"64"` is 64). Raises ProgramError where there is no such
    program or setting.
    """
    return load_function(path, name)(**{key: literal(value) for key, value in (settings or {}).items()})


def load_function(path: str | PathLike[str], name: str | None = None) -> ProgramFunction:
    """The function under `@tp.program` that a Python file defines; `settings` has its settings and their defaults."""
    file = Path(path)
    if not file.exists():
        raise ProgramError(f"{file} does not exist", here())
    specification = importlib.util.spec_from_file_location(f"tempo_program_{file.stem}", file)
    if specification is None or specification.loader is None:
        raise ProgramError(f"{file} is no Python file", here())
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if isinstance(value, ProgramFunction)}
    if name is not None:
        if name not in found:
            raise ProgramError(f"{file} defines no program '{name}': it defines {', '.join(found) or 'none'}", here())
        return found[name]
    if len(found) != 1:
        listed = ", ".join(found) or "none"
        raise ProgramError(f"{file} defines {len(found)} programs ({listed}): pick one, as in {file}:name", here())
    return next(iter(found.values()))


def literal(value: Any) -> Any:
    """Text as the Python literal that it spells; other text, and what is no text, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
