"""From a program to an executable: the default pipeline, and the IR of each level on the way."""

from __future__ import annotations

import gc
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.locations import location_text
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.lowering import get_all_passes as lowerings
from tempo_ir.lowering.proofs import IllegalError, timed_proofs
from tempo_ir.passes import get_all_passes as passes
from tempo_ir.passes.pipeline import (
    DEFAULT_PIPELINE,
    NO_OPTIONS,
    REQUIRED,
    default_pipeline,
    recomputing_pipeline,
    with_options,
)
from tempo_ir.passes.remarks import Collector, noting
from tempo_ir.runtime.errors import CompileError

if TYPE_CHECKING:
    from tempo_ir.frontend.program import Program, ProgramFunction

LOOP_PASSES = ("sdg-schedule", "loop-form-kernels", "loop-plan-storage", "loop-lower-kernels")
"""From the graph to kernels and launches, in order."""
OPTIONAL = frozenset(DEFAULT_PIPELINE) - REQUIRED | {"loop-plan-storage"}
"""What a compile may leave out: without it a program is slower or takes more memory, and its numbers stay."""
MEMORY_PASSES = ("sdg-remat", "sdg-insert-swap", "loop-plan-storage")
"""Those that decide where rows are while they wait."""
ABOUT_ROWS = ("not computed anew", "over the budget", "not swapped", "its rows stay on the device")
"""How remarks begin that say why rows are kept."""
REMAT_OPTIONS = frozenset({"budget", "block", "steps"})
"""What a compile may say of what is computed anew: the options of sdg-remat."""
TARGETS = ("cpu", "reference", "triton-interpret")
Options: TypeAlias = Mapping[str, str | bool | int | tuple[str, ...]]
"""The options of a pass."""


@dataclass
class Levels:
    """The module at each level, the seconds that each step took, and what passes said."""

    sdg: ModuleOp
    optimised: ModuleOp | None = None
    loop: ModuleOp | None = None
    lowered: ModuleOp | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    notes: dict[str, Collector] = field(default_factory=dict[str, Collector])

    @property
    def memory(self) -> dict[str, dict[str, int]]:
        """How often each pass about memory did what."""
        told = {name: self.notes[name].statistics.get(name, {}) for name in MEMORY_PASSES if name in self.notes}
        return {name: dict(counters) for name, counters in told.items() if counters}

    @property
    def kept_rows(self) -> list[str]:
        """Why rows lie where they do though it was asked that they be computed anew or wait with the host, with the
        lines of the program."""
        found = [remark for name in MEMORY_PASSES if name in self.notes for remark in self.notes[name].remarks]
        texts = [(location_text(remark.location), remark.message) for remark in found]
        about = [": ".join(filter(None, each)) for each in texts if each[1].startswith(ABOUT_ROWS)]
        return list(dict.fromkeys(about))


@contextmanager
def collection_paused() -> Generator[None]:
    """Python's collector of cycles waits: a compile makes many objects, few of them garbage, and would be stopped for a
    tenth of its time to have all of them looked at again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def module_of(program: Program | ProgramFunction | ModuleOp | sdg.ProgramOp) -> ModuleOp:
    """The module of what a caller may compile: a program of the front end, or IR. Raises CompileError."""
    if isinstance(program, ModuleOp):
        module = program
    elif isinstance(program, sdg.ProgramOp):
        module = ModuleOp([program.clone()])
    else:
        found = getattr(program, "module", None)
        if not isinstance(found, ModuleOp):
            raise CompileError(
                f"cannot compile {program!r}: a program is what a function under @tp.program returns, or a module of IR"
            )
        module = found
    if sum(isinstance(op, sdg.ProgramOp) for op in module.ops) != 1:
        raise CompileError("a module to compile holds one sdg.program")
    return module


def lower(
    module: ModuleOp,
    target: str,
    without: Collection[str] = (),
    *,
    remat: Mapping[str, int] | None = None,
    check: bool = True,
    options: Mapping[str, Options] | None = None,
) -> Levels:
    """Run the default pipeline, but for the passes named, and with sdg-remat where `remat` has options for it; `check`
    lets those that lower prove their results. `options` are those of passes on the graph by name; a pass that is not in
    the pipeline and has some runs too (`with_options`).

    Raises CompileError where one cannot be left out, or a pass or an option is not there, ProgramError where a pass
    refuses the program.
    """
    if kept := sorted(set(without) - OPTIONAL):
        raise CompileError(f"the pass '{kept[0]}' cannot be left out; those that can: {', '.join(sorted(OPTIONAL))}")
    levels = Levels(module)
    context = Context(allow_unregistered=False)
    work = module.clone()
    (graph,) = [op for op in work.ops if isinstance(op, sdg.ProgramOp)]
    options = options or {}
    pipeline = [(name, NO_OPTIONS) for name in default_pipeline(without)]
    if remat is not None:
        if unknown := sorted(set(remat) - REMAT_OPTIONS):
            listed = ", ".join(sorted(REMAT_OPTIONS))
            raise CompileError(f"remat has no option '{unknown[0]}'; its options: {listed}")
        pipeline = list(recomputing_pipeline(graph.space.names, remat, without))
    for name, given in with_options(pipeline, checked_options(options), without):
        run_passes(context, work, (name,), levels.seconds, given, levels.notes)
    (graph,) = [op for op in work.ops if isinstance(op, sdg.ProgramOp)]
    lowering = [name for name in LOOP_PASSES[:-1] if name not in without]
    run_passes(context, work, lowering, levels.seconds, {"check": check}, levels.notes)
    levels.optimised = ModuleOp([graph])
    levels.loop = work.clone()
    run_passes(context, work, LOOP_PASSES[-1:], levels.seconds, {"target": target})
    levels.lowered = work
    return levels


def checked_options(options: Mapping[str, Options]) -> Mapping[str, Options]:
    """Options of passes on the graph, by name. Raises CompileError for those that are not there."""
    known = passes()
    for name, given in options.items():
        if name not in known:
            raise CompileError(f"options: there is no pass '{name}' on the graph")
        there = [field.name for field in fields(known[name]())]
        if unknown := sorted(set(given) - set(there)):
            raise CompileError(f"{name} has no option '{unknown[0]}'; its options: {', '.join(there) or 'none'}")
    return options


def for_triton(levels: Levels) -> ModuleOp:
    """The program with kernels of blocks that Triton takes, whatever target it was compiled for."""
    assert levels.loop is not None
    work = levels.loop.clone()
    run_passes(Context(allow_unregistered=False), work, LOOP_PASSES[-1:], {}, {"target": "sm_80"})
    return work


def run_passes(
    context: Context,
    module: ModuleOp,
    names: Sequence[str],
    seconds: dict[str, float],
    options: Mapping[str, object] | None = None,
    notes: dict[str, Collector] | None = None,
) -> None:
    """Run passes in order, in place, noting the seconds of each and of its proof, and what it said. Raises
    ProgramError, with the user's line, for what a pass refuses, and what a proof raises, since that is no fault of the
    program."""
    known = {**passes(), **lowerings()}
    for name in names:
        with timed_proofs(seconds, name), noting() as heard:
            try:
                known[name]()(**(options or {})).apply(context, module)
            except IllegalError:
                raise
            except (PassFailedException, sdg.OpError) as error:
                raise refusal(error, module) from error
        if notes is not None:
            notes[name] = heard


def refusal(error: Exception, module: ModuleOp) -> ProgramError:
    """What a pass or a back end refuses, at the line of the user's program."""
    (program,) = [op for op in module.ops if isinstance(op, sdg.ProgramOp | loop.ProgramOp)]
    return ProgramError.about(error, program)


def kernels(module: ModuleOp) -> list[KernelOp]:
    """The tile kernels of a module."""
    return [op for op in module.ops if isinstance(op, KernelOp)]


def launches(program: loop.ProgramOp) -> int:
    """The places in a program that launch a kernel."""
    return sum(isinstance(op, loop.LaunchOp) for op in program.body.walk())
