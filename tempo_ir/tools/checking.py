"""`tempo-opt --check-each`: the reference interpreter runs the module before and after each pass, at small sizes.

What a pass changes beyond rounding is an error that names the pass, the output, the first value that differs, and the
call that shows it: sizes, seed, arguments. Programs are compared by name, across levels: an sdg.program with the
loop.program that it became. A module whose kernels are compiled is not run any more, and neither is one with a gradient
that is still to be expanded. Host objects that are not given have stand-ins, and what they are given is compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, product

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Expr, evaluate
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.tools.diagnostics import Place, UserError, place_of_error, place_of_location
from tempo_ir.tools.programs import Array, HostFactory, draw, draw_array
from tempo_ir.tools.running import Results, compare, message_of_host, values_text
from tempo_ir.tools.stand_ins import Calls, may_be_left_out

PREFERRED = (7, 2, 3, 5)
"""The last of these are the sizes of the last bounds: odd ones behind, so that windows and steps wrap."""
LARGEST = (6, 17)
"""Sizes up to here are tried for a program that the preferred ones do not fit, first the small ones."""
MOST_TRIED = 100_000
SHOWN_ELEMENTS = 64
"""Arguments are printed as long as they have no more together."""

Program = sdg.ProgramOp | loop.ProgramOp
Bounds = dict[str, int]


@dataclass(frozen=True)
class Case:
    """A call of a program, and what it gave."""

    bounds: Bounds
    arguments: Mapping[str, Array]
    results: Results


@dataclass
class EachPassCheck:
    """Keeps what the programs of a module computed, and compares it with what they compute after a pass."""

    sizes: Mapping[str, int]
    hosts: Mapping[str, HostFactory] = field(default_factory=lambda: dict[str, HostFactory]())
    seed: int = 0
    _cases: dict[str, list[Case]] = field(default_factory=lambda: dict[str, list[Case]]())

    def check(self, module: ModuleOp, after: ModulePass | None = None) -> None:
        """Run every program that can be run. Raises UserError where one differs from before, or fails now."""
        if after is None:
            _check_given(module, self.sizes)
        for op in module.ops:
            if not isinstance(op, Program) or not _is_interpretable(op):
                continue
            if op.sym_name.data not in self._cases:
                self._cases[op.sym_name.data] = self._first(op)
                continue
            for case in self._cases[op.sym_name.data]:
                self._compare(op, case, after)

    def _first(self, program: Program) -> list[Case]:
        """The cases that later passes are compared with: those at which the program runs at all."""
        cases: list[Case] = []
        failure: ExecutionError | None = None
        given = {name: size for name, size in self.sizes.items() if name in program.space.params}
        for bounds in choose_sizes(program, given):
            arguments = dict(_arguments(program, bounds, self.seed))
            try:
                cases.append(Case(bounds, arguments, self._run(program, bounds, arguments)))
            except ExecutionError as error:
                failure = error
        if failure is not None and not cases:
            raise failure
        return cases

    def _compare(self, program: Program, case: Case, after: ModulePass | None) -> None:
        name = f"@{program.sym_name.data}"
        try:
            results = self._run(program, case.bounds, case.arguments)
        except ExecutionError as error:
            broken = UserError(f"pass '{after}' broke {name}: {error}", place_of_error(error))
            self._show(broken, case)
            raise broken from error
        if lost := [key for key in case.results.outputs if key not in results.outputs and not may_be_left_out(key)]:
            raise UserError(f"pass '{after}' took {_shown(lost[0])} of {name} away")
        if added := [key for key in results.outputs if key not in case.results.outputs]:
            raise UserError(f"pass '{after}' added {_shown(added[0])} to {name}")
        kept = {key: value for key, value in case.results.outputs.items() if key in results.outputs}
        comparison = compare(results, Results(kept, {}))
        for difference in comparison.differences:
            if not difference.fits:
                found = f"{_shown(difference.name)}: {difference.text}"
                place = _place(program, difference.name)
                changed = UserError(f"pass '{after}' changed what {name} computes: {found}", place)
                self._show(changed, case)
                raise changed

    def _show(self, error: UserError, case: Case) -> None:
        """Note the call on an error: `tempo-run` draws the same arguments from the same seed."""
        settings = "".join(f" --set {bound}={size}" for bound, size in case.bounds.items())
        error.add_note(f"seen by{settings} --seed {self.seed}")
        shown = 0
        for name, array in case.arguments.items():
            shown += array.size
            if shown <= SHOWN_ELEMENTS:
                error.add_note(f"{name}: {array.dtype}{list(array.shape)} {values_text(array)}")

    def _run(self, program: Program, bounds: Bounds, arguments: Mapping[str, Array]) -> Results:
        """The outputs, and what stand-ins of host objects were given."""
        from tempo_ir.reference.loop import run_loop
        from tempo_ir.reference.sdg import run

        calls = Calls.of(program, bounds, self.seed)
        hosts = {**calls.factories(), **self.hosts}
        try:
            if isinstance(program, sdg.ProgramOp):
                outputs = run(program, arguments, bounds, self.seed, hosts)
            else:
                outputs = run_loop(program, arguments, bounds, self.seed, hosts)
        except Exception as error:  # a host object is the user's code, which may raise anything
            if (message := message_of_host(error)) is None:
                raise
            raise message from error
        return Results({**outputs, **calls.given}, {})


def _is_interpretable(program: Program) -> bool:
    return not any(isinstance(op, sdg.GradOp | loop.LaunchOp) for op in program.walk())


def _shown(name: str) -> str:
    return name if name.startswith("@") else f'output "{name}"'


def _place(program: Program, name: str) -> Place | None:
    """The line of an output."""
    outputs = (op for op in program.body.block.ops if isinstance(op, sdg.OutputOp | loop.OutputOp))
    return next((place_of_location(op.location) for op in outputs if op.key.data == name), None)


def _arguments(program: Program, bounds: Mapping[str, int], seed: int) -> Iterator[tuple[str, Array]]:
    for op in program.body.block.ops:
        if isinstance(op, sdg.InputOp | sdg.ParameterOp):
            yield op.key.data, draw(op, bounds, seed)
        elif isinstance(op, loop.InputOp | loop.ParameterOp):
            yield op.key.data, _draw_buffer(op, program.space, bounds, seed)


def _draw_buffer(op: loop.InputOp | loop.ParameterOp, space: Space, bounds: Mapping[str, int], seed: int) -> Array:
    buffer = op.buffer.type
    assert isinstance(buffer, loop.BufferType)
    extents = [dim.extent or space.bound(dim.name) for dim in buffer.dims] + [*shape_of(buffer.row)]
    shape = [evaluate(extent, bounds) if isinstance(extent, Expr) else extent for extent in extents]
    is_weight = isinstance(op, loop.ParameterOp)
    return draw_array(op.key.data, element(buffer.row), shape, seed, is_weight=is_weight)


def choose_sizes(program: Program, given: Mapping[str, int]) -> list[Bounds]:
    """Small values of the bounds for which the program is declared: nothing, single steps, and several.

    Those given stay as they are. Raises UserError where no values are found.
    """
    space = program.space
    accepts = _acceptance(program)
    count = len(space.params)
    preferred = PREFERRED[-count:] if 0 < count <= len(PREFERRED) else PREFERRED[-1:] * count
    patterns: list[tuple[int, ...]] = [(0,) * count, (1,) * count, preferred]
    wanted = [{**dict(zip(space.params, sizes, strict=True)), **given} for sizes in patterns]
    found = [bounds for number, bounds in enumerate(wanted) if bounds not in wanted[:number] and accepts(bounds)]
    if wanted[-1] not in found and (searched := _search(space, given, accepts)) is not None:
        found.append(searched)
    if not found:
        raise UserError(f"--check-each found no small sizes for `{space.where}`: give them by --check-set NAME=VALUE")
    return found


def _check_given(module: ModuleOp, given: Mapping[str, object]) -> None:
    programs = [op for op in module.ops if isinstance(op, Program)]
    for name, size in given.items():
        if not any(name in program.space.params for program in programs):
            known = "; ".join(f"@{p.sym_name.data} has {', '.join(p.space.params) or 'none'}" for p in programs)
            raise UserError(f"--check-set {name}: no program has this bound: {known}")
        if type(size) is not int or size < 0:
            raise UserError(f"--check-set {name}={size}: a bound is a number of steps, 0 or more")


def _search(space: Space, given: Mapping[str, int], accepts: Callable[[Bounds], bool]) -> Bounds | None:
    """The first values that the program accepts, different ones first: mixed up dims show only where they differ."""
    for largest in LARGEST:
        ranges = [[given[name]] if name in given else range(2, largest + 1) for name in space.params]
        for sizes in sorted(islice(product(*ranges), MOST_TRIED), key=lambda sizes: -len(set(sizes))):
            bounds = dict(zip(space.params, sizes, strict=True))
            if accepts(bounds):
                return bounds
    return None


def _acceptance(program: Program) -> Callable[[Mapping[str, int]], bool]:
    conditions = [program.space.where]
    if isinstance(program, sdg.ProgramOp):
        conditions += [precondition.cond.data for precondition in program.preconditions or ()]
    return lambda bounds: all(evaluate(condition, bounds) for condition in conditions)
