"""`tempo-opt --check-each`: the reference interpreter runs the module before and after each pass, at small sizes.

What a pass changes beyond rounding is an error that names the pass and the output. Programs are compared by name,
across levels: an sdg.program with the loop.program that it became. A module whose kernels are compiled is not run any
more, and neither is one with a gradient that is still to be expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.types import element, shape_of
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Expr, evaluate
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.tools.diagnostics import UserError
from tempo_ir.tools.programs import Array, HostFactory, draw, draw_array
from tempo_ir.tools.running import Results, compare

SMALLEST, LARGEST = 2, 7
"""The sizes that are tried where none are set: small, and different for each bound where the program allows it."""

Program = sdg.ProgramOp | loop.ProgramOp


@dataclass
class EachPassCheck:
    """Keeps what the programs of a module computed, and compares it with what they compute after a pass."""

    sizes: Mapping[str, int]
    hosts: Mapping[str, HostFactory] = field(default_factory=lambda: dict[str, HostFactory]())
    seed: int = 0
    _expected: dict[str, tuple[dict[str, int], Results]] = field(
        default_factory=lambda: dict[str, tuple[dict[str, int], Results]]()
    )

    def check(self, module: ModuleOp, after: ModulePass | None = None) -> None:
        """Run every program that can be run. Raises UserError where one differs from before, or fails now."""
        for op in module.ops:
            if isinstance(op, Program) and _is_interpretable(op):
                self._check_program(op, after)

    def _check_program(self, program: Program, after: ModulePass | None) -> None:
        name = program.sym_name.data
        if name not in self._expected:
            bounds = choose_sizes(program, self.sizes)
            self._expected[name] = (bounds, self._run(program, bounds))
            return
        bounds, expected = self._expected[name]
        sizes = ", ".join(f"{bound} = {size}" for bound, size in bounds.items())
        try:
            comparison = compare(self._run(program, bounds), expected)
        except ExecutionError as error:
            raise UserError(f"pass '{after}' broke @{name} ({sizes}): {error}") from error
        if not comparison.equal:
            different = [line for line in comparison.text.splitlines() if "DIFFERENT" in line]
            raise UserError(f"pass '{after}' changed what @{name} computes ({sizes}): {'; '.join(different)}")

    def _run(self, program: Program, bounds: Mapping[str, int]) -> Results:
        from tempo_ir.reference.loop import run_loop
        from tempo_ir.reference.sdg import run

        arguments = dict(_arguments(program, bounds, self.seed))
        if isinstance(program, sdg.ProgramOp):
            return Results(run(program, arguments, bounds, self.seed, self.hosts), {})
        return Results(run_loop(program, arguments, bounds, self.seed, self.hosts), {})


def _is_interpretable(program: Program) -> bool:
    return not any(isinstance(op, sdg.GradOp | loop.LaunchOp) for op in program.walk())


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


def choose_sizes(program: Program, given: Mapping[str, int]) -> dict[str, int]:
    """Small values of the bounds for which the program is declared. Raises UserError where none are found."""
    space = program.space
    accepts = _acceptance(program)
    ranges = [[given[name]] if name in given else range(SMALLEST, LARGEST) for name in space.params]
    # different sizes first: a pass that mixes two dims up shows only where they differ
    for sizes in sorted(product(*ranges), key=lambda sizes: -len(set(sizes))):
        bounds = dict(zip(space.params, sizes, strict=True))
        if accepts(bounds):
            return bounds
    raise UserError(f"--check-each found no small sizes for `{space.where}`: give them by --check-set NAME=VALUE")


def _acceptance(program: Program) -> Callable[[Mapping[str, int]], bool]:
    conditions = [program.space.where]
    if isinstance(program, sdg.ProgramOp):
        conditions += [precondition.cond.data for precondition in program.preconditions or ()]
    return lambda bounds: all(evaluate(condition, bounds) for condition in conditions)
