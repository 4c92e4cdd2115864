"""From a program to an executable: the default pipeline, and the IR of each level on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.locations import location_text
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.lowering import get_all_passes as lowerings
from tempo_ir.lowering.kernels.loop_lower_kernels import lower_kernels
from tempo_ir.lowering.proofs import IllegalError, timed_proofs
from tempo_ir.lowering.targets import GPU_PASSES
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
from tempo_ir.passes.settled import Settled
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.statistics import PerStep, per_step

if TYPE_CHECKING:
    from tempo_ir.frontend.program import Program, ProgramFunction

LOOP_PASSES = ("sdg-schedule", "loop-form-kernels", "loop-plan-storage", "loop-lower-kernels")
"""From the graph to kernels and launches, in order; before the last one, loop-persist for a GPU."""
PERSIST = "loop-persist"
FUSE_ROWS = "loop-fuse-rows"
"""Of the CPU, behind loop-form-kernels."""
PEEL = "loop-peel-starts"
"""Of the CPU, within loop-lower-kernels."""
OPTIONAL = frozenset(DEFAULT_PIPELINE) - REQUIRED | {"loop-plan-storage", FUSE_ROWS, PEEL, PERSIST, *GPU_PASSES}
"""What a compile may leave out: without it a program is slower or takes more memory, and its numbers stay."""
MEMORY_PASSES = ("sdg-remat", "sdg-insert-swap", "loop-plan-storage")
"""Those that decide where rows are while they wait."""
ABOUT_ROWS = ("not computed anew", "over the budget", "not swapped", "its rows stay on the device")
"""How remarks begin that say why rows are kept."""
REMAT_OPTIONS = ("block", "budget", "steps")
"""What a compile may say of what is computed anew: the options of sdg-remat."""
TARGETS = ("cpu", "triton", "reference", "triton-interpret")
Options: TypeAlias = Mapping[str, str | bool | int | tuple[str, ...]]
"""The options of a pass."""
GPU_OPTIONS: Mapping[str, Options] = MappingProxyType(
    {"sdg-accumulate": {"products": 0}, "sdg-vectorize": {"rows": 0}, "sdg-transpose": {"elements": 0}}
)
"""What passes on the graph are told for a GPU, where a step of a loop is a launch, or part of one that mixes no row,
and blocks are transposed on their way to the tensor cores."""
KernelMade: TypeAlias = Callable[[KernelOp], None]
"""Who takes kernels as soon as they are there."""
Kind = TypeVar("Kind", sdg.ProgramOp, loop.ProgramOp)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Levels:
    """The module at each level, the seconds that each step took, and what passes said."""

    sdg: ModuleOp
    optimised: ModuleOp
    formed: Callable[[], ModuleOp]
    """Gives the loop program with its kernels formed and its storage planned."""
    per_step: PerStep
    lowered: ModuleOp
    seconds: dict[str, float]
    notes: dict[str, Collector]
    without: frozenset[str] = frozenset()
    """The passes that were left out."""

    @cached_property
    def loop(self) -> ModuleOp:
        """The loop program with its kernels formed and its storage planned."""
        return self.formed()

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
    kernel_made: KernelMade | None = None,
) -> Levels:
    """Run the default pipeline, but for the passes named, and with sdg-remat where `remat` has options for it; `check`
    lets those that lower prove their results. `options` are those of passes on the graph by name; a pass that is not in
    the pipeline and has some runs too (`with_options`). Kernels are handed to `kernel_made` one by one; its seconds are
    those of "code". Who takes them wants code and not the formed program, which is made anew where it is asked for.

    Raises CompileError where one cannot be left out, or a pass or an option is not there, ProgramError where a pass
    refuses the program.
    """
    check_asked(without, remat, options)
    from tempo_ir.index import isl

    isl.forget()  # what is found in time does not depend on what was compiled before
    context, work = Context(allow_unregistered=False), module.clone()
    seconds, notes = dict[str, float](), dict[str, Collector]()
    graph = program_of(work, sdg.ProgramOp)
    settled = Settled(work)
    if target not in ("cpu", "reference"):
        options = joined_options(GPU_OPTIONS, options or {})
    for name, given in pipeline_of(graph, without, remat, options or {}):
        if not settled.has_nothing_for(name):
            run_passes(context, work, (name,), seconds, given, notes)
            settled.note(name)
    graph = program_of(work, sdg.ProgramOp)
    schedule, form, storage, _ = LOOP_PASSES
    fuses = target == "cpu" and FUSE_ROWS not in without
    for name in (schedule, form, *((FUSE_ROWS,) if fuses else ()), storage):
        if name not in without:
            given = {"check": check, "sums_apart": True} if fuses and name == form else {"check": check}
            run_passes(context, work, (name,), seconds, given, notes)
    copy = work.clone() if kernel_made is None else None
    counts = per_step(program_of(work, loop.ProgramOp))
    if target not in ("cpu", "reference") and PERSIST not in without:
        run_passes(context, work, (PERSIST,), seconds, {}, notes)
    made = None if kernel_made is None else timed(kernel_made, seconds, "code")
    run_pass(LOOP_PASSES[-1], work, seconds, partial(lower_kernels, work, target, made, peel=PEEL not in without))
    seconds[LOOP_PASSES[-1]] -= seconds.get("code", 0.0)
    if target not in ("cpu", "reference"):
        run_passes(context, work, [name for name in GPU_PASSES if name not in without], seconds, {}, notes)

    def formed() -> ModuleOp:
        if copy is not None:
            return copy
        return lower(module, target, without, remat=remat, check=check, options=options).loop

    return Levels(module, ModuleOp([graph]), formed, counts, work, seconds, notes, frozenset(without))


def pipeline_of(
    graph: sdg.ProgramOp, without: Collection[str], remat: Mapping[str, int] | None, options: Mapping[str, Options]
) -> Sequence[tuple[str, Mapping[str, object]]]:
    """The passes on a graph that `lower` runs, with the options of each."""
    pipeline = [(name, NO_OPTIONS) for name in default_pipeline(without)]
    if remat is not None:
        pipeline = list(recomputing_pipeline(graph.space.names, remat, without))
    return with_options(pipeline, options, without)


def joined_options(own: Mapping[str, Options], given: Mapping[str, Options]) -> Mapping[str, Options]:
    """The options of passes that a target has, and those that a caller gives, which win."""
    return {**own, **{name: {**own.get(name, {}), **some} for name, some in given.items()}}


def program_of(module: ModuleOp, kind: type[Kind]) -> Kind:
    """The one program of a kind in a module."""
    (program,) = [op for op in module.ops if isinstance(op, kind)]
    return program


def check_asked(without: object, remat: object, options: object) -> None:
    """Raise CompileError where passes to leave out, the options of sdg-remat, or those of passes on the graph by name
    are none."""
    if isinstance(without, str) or not isinstance(without, Collection):
        raise CompileError(f"without is a collection of the names of passes, got {without!r}")
    if kept := sorted(str(name) for name in set(cast("Collection[object]", without)) - OPTIONAL):
        raise CompileError(f"the pass '{kept[0]}' cannot be left out; those that can: {', '.join(sorted(OPTIONAL))}")
    if remat is not None:
        _check_options("remat", "sdg-remat", REMAT_OPTIONS, remat)
    for name, given in _named("options are", {} if options is None else options).items():
        if name not in passes():
            raise CompileError(f"options: there is no pass '{name}' on the graph")
        _check_options(name, name, [field.name for field in fields(passes()[name]())], given)


def _check_options(title: str, name: str, there: Collection[str], given: object) -> None:
    """Raise CompileError for options of a pass that are not there, or of another type."""
    types: dict[str, Any] = get_type_hints(passes()[name]())
    for option, value in _named(f"the options of {title} are", given).items():
        if option not in there:
            raise CompileError(f"{title} has no option '{option}'; its options: {', '.join(there) or 'none'}")
        hint = types[option]
        if not isa(value, hint) or (isinstance(value, bool) and hint is not bool):
            wanted = hint.__name__ if isinstance(hint, type) else str(hint)
            raise CompileError(f"option '{option}' of {title} takes {wanted}, got {value!r}")


def _named(what: str, given: object) -> Mapping[str, object]:
    """What is given by name. Raises CompileError where it is not."""
    if not isinstance(given, Mapping):
        raise CompileError(f"{what} a mapping by name, got {given!r}")
    return cast("Mapping[str, object]", given)


def for_triton(levels: Levels) -> ModuleOp:
    """The program with kernels of blocks that Triton takes, whatever target it was compiled for."""
    work = levels.loop.clone()
    if FUSE_ROWS in levels.notes:  # GPUs take no kernels by rows
        work = levels.optimised.clone()
        names = [name for name in LOOP_PASSES[:-1] if name not in levels.without]
        run_passes(Context(allow_unregistered=False), work, names, {}, {"check": False})
    if PERSIST not in levels.without:
        run_passes(Context(allow_unregistered=False), work, (PERSIST,), {})
    run_passes(Context(allow_unregistered=False), work, LOOP_PASSES[-1:], {}, {"target": "sm_80"})
    run_passes(Context(allow_unregistered=False), work, [name for name in GPU_PASSES if name not in levels.without], {})
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
        apply = known[name]()(**(options or {})).apply
        with noting() as heard:
            run_pass(name, module, seconds, partial(apply, context, module))
        if notes is not None:
            notes[name] = heard


def run_pass(name: str, module: ModuleOp, seconds: dict[str, float], apply: Callable[[], None]) -> None:
    """Run what is a pass on a module; the seconds are noted, and raised is what `run_passes` raises."""
    with timed_proofs(seconds, name):
        try:
            apply()
        except IllegalError:
            raise
        except (PassFailedException, sdg.OpError) as error:
            raise refusal(error, module) from error


def timed(call: Callable[[Value], None], seconds: dict[str, float], name: str) -> Callable[[Value], None]:
    """A function that adds up the seconds that its calls take."""

    def wrapped(value: Value) -> None:
        begin = time.perf_counter()
        call(value)
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin

    return wrapped


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
