"""Executables: a compiled program as a pure function of arrays, bounds, state and seed."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir import __version__
from tempo_ir.collection import collection_paused
from tempo_ir.dialects import loop, sdg
from tempo_ir.kept import write_whole
from tempo_ir.lowering.llvm.engine import host_target, process_triple
from tempo_ir.lowering.llvm.module import lower_module
from tempo_ir.passes.remarks import is_listening
from tempo_ir.reference import sdg as reference
from tempo_ir.reference.calls import Outputs, mapping_of, starts_of, whole_number
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.budget import Budget, lower_within
from tempo_ir.runtime.cache import Cache, default_cache, key_of
from tempo_ir.runtime.calls import Request, Workspaces, needs
from tempo_ir.runtime.compiler import (
    TARGETS,
    KernelMade,
    Levels,
    Options,
    check_asked,
    for_triton,
    kernels,
    launches,
    lower,
    module_of,
    program_of,
    refusal,
    run_passes,
)
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.runtime.frames import Callee, Frame
from tempo_ir.runtime.memory import aligned_copies
from tempo_ir.runtime.native import NativeCompiler, NativeProgram, check_runs_here
from tempo_ir.runtime.packed import Damaged, OtherFormat, Packed, parse_module, text_with_places
from tempo_ir.runtime.room import SMALL, check_room
from tempo_ir.runtime.settings import Settings
from tempo_ir.runtime.signature import Signature, Sizes
from tempo_ir.runtime.statistics import Statistics
from tempo_ir.runtime.tensors import as_array, tensor_of_array
from tempo_ir.runtime.timeline import Timeline, timeline

if TYPE_CHECKING:
    from tempo_ir.lowering.costs import Costs


Code = TypeVar("Code")


class Result(dict[str, Any]):
    """The outputs by name; `state` holds the last value of every state, and the parameters as they were; `extents` the
    number of points of each dim."""

    __slots__ = ("extents", "state")
    state: dict[str, Any]
    extents: dict[str, int]


def compile(
    program: Any,
    target: str = "cpu",
    *,
    without: Collection[str] = (),
    remat: Mapping[str, int] | None = None,
    options: Mapping[str, Options] | None = None,
    check: bool = True,
    memory_budget: int | None = None,
    sizes: Mapping[str, int] | None = None,
    cache: bool = True,
    machine: str | None = None,
    precision: str | None = None,
    autotune: bool = False,
) -> Executable:
    """Compile a program: what a function under `@tp.program` returns, or a module with one sdg.program.

    `target` is "cpu", "triton" (the GPU that torch sees), "reference" (nothing is compiled, the numpy interpreter runs)
    or "triton-interpret". One compile serves every size. `without` names passes to leave out,
    `without=("sdg-vectorize",)`: the numbers stay. `remat={"budget": 2**20, "steps": 10_000}` computes activations anew
    for a backward pass, so that 1 MiB of them is kept where T is 10000 (see sdg-remat). `options` are those of passes
    on the graph, by name: with `options={"sdg-accumulate": {"dims": ("b",)}}` sums over b are kept as they run, so that
    what they are made of is kept for one b; `{"sdg-tile": {"static": True, "tile": 64}}` runs what is not among the
    default passes too. With `check=False` order, kernels and storage are not proved: a fault of the compiler may then
    give wrong numbers.

    With `memory_budget` a call with bounds of these `sizes`, `sizes={"T": 512}`, takes no more bytes on the device
    beside the caller's arrays: values that a later loop reads again lie with the host meanwhile, as few as do.
    Without sizes for all bounds all lie there that can. The program serves other sizes too, in more or fewer bytes.
    With both, activations are computed anew first (within the memory budget and for the sizes, where `remat={}` does
    not say other), and of what is kept even so as much lies with the host as has to.

    Of target "triton", `machine` is the GPU to compile for, "sm_90" or "gfx942", which need not be here before the
    first call; by default it is the one that is. `precision="tf32"` lets tensor cores multiply f32 with 11 bits of each
    factor; by default ("ieee") products are those of f32. With `autotune` the first launch of a kernel with sizes of
    new powers of two measures how many warps and stages are best, and keeps that on disk, by kernel and device; results
    differ by rounding.

    What was compiled for this machine before, by whatever process, is loaded from disk, unless `cache` is false or
    `TEMPO_CACHE_DIR` is empty (see `tempo_ir.kept`).

    Raises CompileError where the program or the target is none, a pass is needed, the budget is too small or there is
    no GPU, and ProgramError, with the line of the program, for what it asks for and no pass can do.
    """
    if sizes is not None and memory_budget is None:
        raise CompileError("sizes say for what a memory_budget is meant: give one")
    if target not in TARGETS:
        raise CompileError(f"there is no target '{target}'; use one of {', '.join(TARGETS)}")
    if target != "triton" and (machine or precision or autotune):
        raise CompileError(f"machine, precision and autotune are of target 'triton', the target is '{target}'")
    if target == "reference":
        if memory_budget is not None:
            raise CompileError("target 'reference' has no memory of its own to keep to a memory_budget: use cpu")
        return Interpreted(program)
    budget = None if memory_budget is None else Budget.of(memory_budget, {} if sizes is None else sizes)
    check_asked(without, remat, options)
    settings = Settings(frozenset(without), remat, check, budget, options)
    if target == "triton-interpret":
        return TritonInterpreted(program, settings)
    kept = default_cache() if cache else None
    if target == "triton":
        from tempo_ir.runtime.gpu import GpuSettings, TritonProgram

        return TritonProgram(program, settings, GpuSettings.of(machine, precision, autotune), kept)
    return Native(program, settings, kept)


def load(path: str | Path, *, recompile: bool = False) -> Executable:
    """
    The executable that `Executable.save` wrote, a file or, for a GPU, a folder: nothing is compiled. With `recompile`
    the kernels of a folder are compiled from their source when they are first launched, for whatever GPU is here.

    How parameters begin and how host objects are made is not in the file: give `state` and `hosts` to calls. Raises
    CompileError for a file that is none, is damaged, is of another version, or holds code for another processor or GPU.
    """
    if Path(path).is_dir():
        from tempo_ir.runtime.gpu import load_folder

        return load_folder(Path(path), recompile)
    try:
        packed = Packed.of_bytes(Path(path).read_bytes())
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror}") from None
    except OtherFormat:
        raise CompileError(f"{path} was saved in the form of another version of tempo_ir: save it again") from None
    except Damaged:
        raise CompileError(f"{path} is no saved program, or not all of one: save it again") from None
    if packed.header.get("made_by") != __version__:
        made_by = packed.header.get("made_by", "another version")
        raise CompileError(f"{path} was saved by tempo_ir {made_by}, this is {__version__}: save it again")
    check_runs_here(packed, f"{path} was saved")
    return Native(parse_module(packed.header["program"]), Settings.of(packed.header["settings"]), packed=packed)


class Executable(ABC):
    """A program on a target. A pure function: same arguments, same bits; it may be called from several threads at once.

    `exe(x=x, T=16, state=exe.init(0), seed=0)` gives the outputs by name; `.state` of the result the states after it.
    """

    target: str

    def __init__(self, program: Any):
        self.source = program
        self.module = module_of(program)
        self.graph = program_of(self.module, sdg.ProgramOp)
        self.signature = Signature.of(self.graph)

    def init(self, seed: int = 0) -> dict[str, Array]:
        """The first value of every parameter and state, made from the seed.

        Raises CallError for IR, which has none, and for what is no seed.
        """
        seed = seed_of(seed)
        if not self.signature.parameters:
            return {}
        initial = getattr(self.source, "init", None)
        if initial is None:
            raise CallError("IR does not say how parameters begin: pass state={name: array}")
        return aligned_copies(initial(seed))

    def __call__(
        self,
        *,
        state: Mapping[str, Any] | None = None,
        seed: int = 0,
        start: Mapping[str, int] | None = None,
        donate: bool = False,
        hosts: Mapping[str, Callable[[], Any]] | None = None,
        **arguments: Any,
    ) -> Result:
        """Run the program.

        `arguments` are inputs and bounds (bounds are read off the inputs where they can be); `state` holds the
        parameters, by default those of `init(seed)`; `start` is what dims count on from, when a call resumes;
        `donate` lets the call overwrite the arrays of `state`; `hosts` replaces host objects by name. Arrays are
        numpy's, torch's, or of whatever has `__dlpack__`; if one is a torch tensor, so are the results. On the CPU
        nothing is copied of arrays that lie row by row, nor of results.

        Raises CallError for arguments that do not fit, NotEnoughMemoryError where the machine has not what the call
        takes, ExecutionError for what has no value, and what a host object raises.
        """
        if type(seed) is not int or seed >> 32:
            seed = seed_of(seed)
        if type(donate) is not bool:
            raise CallError(f"donate is True or False, got {donate!r}")
        parameters = self.init(seed) if state is None else _dict_of("state", state, "arrays by name, as of init(seed)")
        checked = self.signature.arguments(arguments, parameters, self._taken)
        started = {} if start is None else self._start(start)
        made = {} if hosts is None and not self.signature.hosts else self._hosts(hosts)
        sizes, in_torch = checked.sizes, checked.in_torch
        outputs = self._run(Request(checked.arrays, sizes.bounds, seed, started, made, donate, in_torch))
        return self._result(self._given(outputs, in_torch), outputs.bounds, parameters, sizes)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: what a call gives depends on its arguments alone."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"'{self.signature.name}' holds machine code and cannot be pickled: exe.save(path) and tempo_ir.load(path) "
            "take it to another process, and a program that was compiled before is loaded from disk"
        )

    def _result(
        self, values: Mapping[str, Any], bounds: Mapping[str, int], state: Mapping[str, Any], sizes: Sizes
    ) -> Result:
        """Outputs, states after the call apart."""
        result, parameters = Result(values), self.signature.parameters
        result.state = {name: result.pop(name, state[name]) for name in parameters} if parameters else {}
        as_asked = bounds is sizes.bounds or bounds == sizes.bounds
        result.extents = dict(sizes.extents) if as_asked else self.signature.extents(bounds)
        return result

    def _taken(self, value: Any) -> Any:
        """The caller's array as the target takes it; other values as they are."""
        return as_array(value)

    def _given(self, outputs: Outputs, in_torch: bool) -> Mapping[str, Any]:
        """Results as the caller wants them."""
        return {name: tensor_of_array(array) for name, array in outputs.items()} if in_torch else outputs

    def _start(self, start: Any) -> dict[str, int]:
        try:
            return starts_of(start, self.signature.space.names)
        except ValueError as error:
            raise CallError(str(error)) from None

    def _hosts(self, hosts: Any) -> dict[str, Callable[[], Any]]:
        known = {name: info.make for name, info in getattr(self.source, "hosts", {}).items()}
        given = _dict_of("hosts", hosts, "functions by name, each of which makes a host object")
        for name, make in given.items():
            if name not in self.signature.hosts:
                listed = ", ".join(self.signature.hosts) or "none"
                raise CallError(f"hosts: the program has no host object '{name}', only {listed}")
            if not callable(make):
                raise CallError(f"hosts: '{name}' is a function that makes the object, got a {type(make).__name__}")
        return {**known, **given}

    @abstractmethod
    def _run(self, request: Request) -> Outputs:
        """The outputs of a call whose arguments fit."""

    def ir(self, level: str) -> str:
        """The IR at a level, as text: "sdg", "loop", "tile", "llvm", "triton". Raises CallError for another."""
        if level == "sdg":
            return str(self.module)
        raise CallError(f"target '{self.target}' has no level '{level}'")

    def write_triton(self, directory: Path, precision: str | None = None) -> None:
        """Write the program as a package of Triton kernels and their driver, whose f32 products have a precision (as
        `compile` has it). Raises CallError where there is none."""
        raise CallError(f"target '{self.target}' has no Triton kernels: use cpu or triton")

    def save(self, path: str | Path) -> None:
        """Write the machine code and all that calls need to a file, or for a GPU a folder, which `tempo_ir.load` reads;
        the first values of parameters and host objects are not in it. Raises CallError where there is no machine code,
        and OSError."""
        raise CallError(f"target '{self.target}' has no machine code to save: compile for cpu or triton")

    @property
    def stats(self) -> Statistics:
        """What compiling took and made, and what the last call used."""
        return Statistics(self.target, 0)


class Interpreted(Executable):
    """A program under the numpy interpreter."""

    target = "reference"

    def __init__(self, program: Any):
        super().__init__(program)
        expanded = self.module.clone()
        from xdsl.context import Context

        run_passes(Context(), expanded, ("sdg-autodiff",), {})
        self.expanded = program_of(expanded, sdg.ProgramOp)

    def _run(self, request: Request) -> Outputs:
        return reference.run(
            self.expanded, request.arrays, request.bounds, request.seed, request.hosts, start=request.start
        )


class Compiled(Executable, ABC):
    """A program as kernels and a host program."""

    def __init__(self, program: Any, settings: Settings):
        super().__init__(program)
        self.settings = settings
        self._frame = lru_cache(maxsize=64)(self._framed)
        self._last: Frame | None = None
        with collection_paused():
            self.callee, self._stats = self._made()

    @abstractmethod
    def _made(self) -> tuple[Callee, Statistics]:
        """Make the code; what calls have in common, and what was made."""

    @property
    def _blocks(self) -> str:
        """The target whose blocks kernels have."""
        return self.target

    @property
    def program(self) -> loop.ProgramOp:
        """The loop program; of one that was loaded, what Python runs of it."""
        return self.callee.program

    @cached_property
    def levels(self) -> Levels:
        """The module at each level, worked out when it is asked for where the code was at hand."""
        return self._lowered()

    def _lowered(self, kernel_made: KernelMade | None = None) -> Levels:
        """Run the passes, with somebody to take kernels as they are made, or without."""
        asked, within = self.settings, self.settings.budget
        chosen = (self.module, self._blocks, asked.without)
        remat, check, options = asked.remat, asked.check, asked.options
        with collection_paused():
            if within is None:
                return lower(*chosen, remat=remat, check=check, options=options, kernel_made=kernel_made)
            space = self.signature.space
            return lower_within(*chosen, within, space, remat=remat, check=check, options=options)

    def _counted(self, program: loop.ProgramOp) -> Statistics:
        """What was made of a program that has just been compiled."""
        sites = sum(isinstance(op, loop.AccessOperation) for op in program.body.walk())
        sites -= sum(isinstance(op, loop.TransferOp) for op in program.body.walk())
        made = len(kernels(self.lowered)), launches(program), sites
        counted = Statistics(self.target, 1, dict(self.levels.seconds), *made, *self.levels.per_step)
        asked = self.settings.remat is not None or self.settings.budget is not None
        kept = tuple(self.levels.kept_rows) if asked else ()
        return dataclasses.replace(counted, memory_passes=self.levels.memory, kept_rows=kept)

    def _coded(self, levels: Levels, make: Callable[[ModuleOp], Code]) -> Code:
        """What makes code of a lowered program makes of it."""
        begin = time.perf_counter()
        try:
            return make(levels.lowered)
        except DiagnosticException as error:
            raise refusal(error, levels.lowered) from error
        finally:
            levels.seconds["code"] = levels.seconds.get("code", 0.0) + time.perf_counter() - begin

    def _keep_recording(self) -> None:
        """Beside code on disk, what is known of the program as it was recorded."""
        if (keep := getattr(self.source, "keep", None)) is not None:
            keep()

    @abstractmethod
    def _execute(self, frame: Frame, request: Request) -> Outputs:
        """Run a call of the bounds of a frame."""

    @property
    def _kept_bytes(self) -> int:
        """The memory that is kept for the next call."""
        return 0

    @property
    def lowered(self) -> ModuleOp:
        """The loop program with launches, and the kernels."""
        return self.levels.lowered

    def _framed(self, bounds: tuple[int, ...]) -> Frame:
        return self.callee.frame(dict(zip(self.callee.params, bounds, strict=True)))

    def _run(self, request: Request) -> Outputs:
        frame = self._frame(tuple([request.bounds[name] for name in self.callee.params]))
        if frame.most_bytes >= SMALL:
            self._check_room(frame, request)
        outputs = self._execute(frame, request)
        self._last = frame
        return outputs

    def _check_room(self, frame: Frame, request: Request) -> None:
        """Raises NotEnoughMemoryError where it is known before the call."""
        parts = {**needs(self.callee, frame, request), "what is kept from calls before": -self._kept_bytes}
        check_room(parts, "a call", request.bounds)

    def ir(self, level: str) -> str:
        match level:
            case "loop":
                return str(self.levels.loop)
            case "tile":
                return str(self.lowered)
            case "triton":
                from tempo_ir.lowering.triton.module import print_module

                stream = StringIO()
                print_module(for_triton(self.levels), stream)
                return stream.getvalue()
            case _:
                return super().ir(level)

    def write_triton(self, directory: Path, precision: str | None = None) -> None:
        from tempo_ir.lowering.triton.package import write_package
        from tempo_ir.lowering.triton.style import UnknownPrecisionError, style_of

        try:
            write_package(for_triton(self.levels), directory, style_of(precision))
        except UnknownPrecisionError as error:
            raise CallError(str(error)) from None

    @property
    def formed(self) -> loop.ProgramOp:
        """The loop program with its kernels formed and its storage planned, not yet compiled."""
        return program_of(self.levels.loop, loop.ProgramOp)

    @property
    def costs(self) -> Costs:
        """What a call costs, as formulas of the bounds."""
        from tempo_ir.lowering.costs import program_costs

        return program_costs(self.formed)

    @property
    def stats(self) -> Statistics:
        if self._last is None:
            return self._stats
        placed = self._last.placement
        spaces = {"device": placed.size} | ({"host": placed.host_size} if placed.host_size else {})
        return dataclasses.replace(
            self._stats, peak_bytes=placed.size, peak_by_space=spaces, bytes_by_class=dict(placed.by_class)
        )


class Native(Compiled):
    """A program as native code for this CPU: one function, called once per call."""

    target = "cpu"

    def __init__(self, program: Any, settings: Settings, cache: Cache | None = None, packed: Packed | None = None):
        self._cache = cache
        self._packed = packed
        super().__init__(program, settings)
        self._workspaces = Workspaces(self.signature.covered)

    def _made(self) -> tuple[Callee, Statistics]:
        begin = time.perf_counter()
        if self._packed is not None:
            return self._loaded(self._packed, begin)
        if self._cache is None or is_listening():  # who listens wants to hear what passes say
            return self._compiled()
        key = key_of(self.module, host_target(), process_triple(), self.settings.parts)
        packed = self._cache.read(key)
        self._keep_recording()
        if packed is not None:
            return self._loaded(packed, begin)
        made = self._compiled()
        self._cache.write(key, self._pack(made[1]))
        return made

    def _compiled(self) -> tuple[Callee, Statistics]:
        with NativeCompiler() as compiler:
            self.levels = self._lowered(compiler.kernel)
            self.native = self._coded(self.levels, compiler.program)
        return self.native.callee, self._counted(self.native.callee.program)

    def _loaded(self, packed: Packed, begin: float) -> tuple[Callee, Statistics]:
        self.native = NativeProgram.unpacked(packed)
        seconds = time.perf_counter() - begin
        return self.native.callee, Statistics.loaded(self.target, packed.header["counts"], seconds)

    def _pack(self, statistics: Statistics) -> Packed:
        packed = self.native.packed()
        return dataclasses.replace(packed, header={**packed.header, "counts": statistics.counts})

    def save(self, path: str | Path) -> None:
        packed = self._pack(self.stats)
        source = {"program": text_with_places(self.module), "settings": self.settings.parts}
        made = {"made_by": __version__, "system": process_triple()}
        write_whole(Path(path), dataclasses.replace(packed, header={**packed.header, **source, **made}).to_bytes())

    @property
    def _kept_bytes(self) -> int:
        return self._workspaces.unused

    def _execute(self, frame: Frame, request: Request) -> Outputs:
        return self.native.execute(frame, request, self._workspaces)

    def ir(self, level: str) -> str:
        return lower_module(self.lowered, self.native.target).text if level == "llvm" else super().ir(level)


class TritonInterpreted(Compiled):
    """A program as the package that a GPU would be given, run by Triton's interpreter."""

    target = "triton-interpret"

    def _made(self) -> tuple[Callee, Statistics]:
        from tempo_ir.lowering.triton.interpreter import InterpretedProgram

        self.levels = self._lowered()
        self.interpreted = self._coded(self.levels, InterpretedProgram)
        program = self.interpreted.program
        return Callee.of(program), self._counted(program)

    def _execute(self, frame: Frame, request: Request) -> Outputs:
        return self.interpreted.run(request.arrays, request.bounds, request.seed, request.hosts, request.start)


def memory_timeline(executable: Executable, **bounds: int) -> Timeline:
    """The live bytes over the schedule of a compiled program, for given bounds: `memory_timeline(exe, T=64)`.

    The result holds the numbers; `.write("memory.svg")` draws them. Raises CallError for a bound that is missing or for
    an executable that has no schedule.
    """
    check_executable(executable)
    if not isinstance(executable, Compiled):
        raise CallError(f"target '{executable.target}' schedules nothing: compile for cpu")
    return timeline(executable.formed, bounds)


def check_executable(value: Any) -> None:
    """Raises CallError for anything else, as for a program that is not compiled yet."""
    if not isinstance(value, Executable):
        raise CallError(f"an executable is needed, as tempo_ir.compile gives it: got a {type(value).__name__}")


def seed_of(seed: int) -> int:
    """The seed, an integer of 32 bits. Raises CallError for another."""
    number = whole_number(seed)
    if number is None or not 0 <= number < 1 << 32:
        raise CallError(f"the seed is {seed!r}: a seed is an integer of 0 to 2**32 - 1")
    return number


def _dict_of(argument: str, value: Any, holds: str) -> dict[str, Any]:
    """Raises CallError for what is no dict."""
    if type(value) is dict:
        return cast("dict[str, Any]", value)
    try:
        return mapping_of(argument, value, holds)
    except ValueError as error:
        raise CallError(str(error)) from None
