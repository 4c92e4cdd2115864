"""Executables: a compiled program as a pure function of arrays, bounds, state and seed."""

from __future__ import annotations

import dataclasses
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects import loop, sdg
from tempo_ir.index import evaluate
from tempo_ir.reference import sdg as reference
from tempo_ir.reference.calls import Outputs, mapping_of, starts_of, whole_number
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.budget import Budget, lower_within
from tempo_ir.runtime.calls import Arenas, Call, Callee, Request
from tempo_ir.runtime.compiler import (
    TARGETS,
    Levels,
    Options,
    collection_paused,
    for_triton,
    kernels,
    launches,
    lower,
    module_of,
    refusal,
    run_passes,
)
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.runtime.memory import Placement, aligned_copy, place
from tempo_ir.runtime.native import NativeProgram
from tempo_ir.runtime.room import check_room
from tempo_ir.runtime.signature import Signature
from tempo_ir.runtime.statistics import Statistics, per_step
from tempo_ir.runtime.tensors import any_torch, as_arrays, tensor_of_array
from tempo_ir.runtime.timeline import Timeline, timeline

if TYPE_CHECKING:
    from tempo_ir.lowering.costs import Costs


class Result(dict[str, Any]):
    """The outputs by name; `state` holds the last value of every state, and the parameters as they were; `extents` the
    number of points of each dim."""

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
) -> Executable:
    """Compile a program: what a function under `@tp.program` returns, or a module with one sdg.program.

    `target` is "cpu", "reference" (nothing is compiled, the numpy interpreter runs) or "triton-interpret". One compile
    serves every size. `without` names passes to leave out, `without=("sdg-vectorize",)`: the numbers stay.
    `remat={"budget": 2**20, "steps": 10_000}` computes activations anew for a backward pass, so that 1 MiB of them is
    kept where T is 10000 (see sdg-remat). `options` are those of passes on the graph, by name: with
    `options={"sdg-accumulate": {"dims": ("b",)}}` sums over b are kept as they run, so that what they are made of is
    kept for one b; `{"sdg-tile": {"static": True, "tile": 64}}` runs what is not among the default passes too. With
    `check=False` order, kernels and storage are not proved: a fault of the
    compiler may then give wrong numbers.

    With `memory_budget` a call with bounds of these `sizes`, `sizes={"T": 512}`, takes no more bytes on the device
    beside the caller's arrays: values that a later loop reads again lie with the host meanwhile, as few as do.
    Without sizes for all bounds all lie there that can. The program serves other sizes too, in more or fewer bytes.
    With both, activations are computed anew first (within the memory budget and for the sizes, where `remat={}` does
    not say other), and of what is kept even so as much lies with the host as has to.

    Raises CompileError where the program or the target is none, a pass is needed or the budget is too small, and
    ProgramError, with the line of the program, for what it asks for and no pass can do.
    """
    if sizes is not None and memory_budget is None:
        raise CompileError("sizes say for what a memory_budget is meant: give one")
    if target not in TARGETS:
        raise CompileError(f"there is no target '{target}'; use one of {', '.join(TARGETS)}")
    if target == "reference":
        if memory_budget is not None:
            raise CompileError("target 'reference' has no memory of its own to keep to a memory_budget: use cpu")
        return Interpreted(program)
    made = TritonInterpreted if target == "triton-interpret" else Native
    budget = None if memory_budget is None else Budget(memory_budget, sizes or {})
    return made(program, without, remat=remat, options=options, check=check, budget=budget)


class Executable(ABC):
    """A program on a target. A pure function: same arguments, same bits; it may be called from several threads at once.

    `exe(x=x, T=16, state=exe.init(0), seed=0)` gives the outputs by name; `.state` of the result the states after it.
    """

    target: str

    def __init__(self, program: Any):
        self.source = program
        self.module = module_of(program)
        (self.graph,) = [op for op in self.module.ops if isinstance(op, sdg.ProgramOp)]
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
        return {name: aligned_copy(array) for name, array in initial(seed).items()}

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
        numpy's or torch's; if one is a torch tensor, so are the results.

        Raises CallError for arguments that do not fit, NotEnoughMemoryError where the machine has not what the call
        takes, ExecutionError for what has no value, and what a host object raises.
        """
        seed = seed_of(seed)
        given_state = self.init(seed) if state is None else _dict_of("state", state, "arrays by name, as of init(seed)")
        in_torch = any_torch((*arguments.values(), *given_state.values()))
        checked = self.signature.arguments(as_arrays(arguments), as_arrays(given_state))
        started, made = self._start(start), self._hosts(hosts)
        outputs = self._run(Request(checked.arrays, checked.bounds, seed, started, made, donate))
        result = Result({name: _kind(outputs[name], in_torch) for name in outputs if name not in self.signature.states})
        result.state = {
            name: _kind(outputs[name], in_torch) if name in outputs else given_state[name]
            for name in self.signature.parameters
        }
        result.extents = {dim: evaluate(bound, outputs.bounds) for dim, bound in self.signature.space.dims}
        return result

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

    def write_triton(self, directory: Path) -> None:
        """Write the program as a package of Triton kernels and their driver. Raises CallError where there is none."""
        raise CallError(f"target '{self.target}' has no Triton kernels: use cpu or triton-interpret")

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
        (self.expanded,) = [op for op in expanded.ops if isinstance(op, sdg.ProgramOp)]

    def _run(self, request: Request) -> Outputs:
        return reference.run(
            self.expanded, request.arrays, request.bounds, request.seed, request.hosts, start=request.start
        )


class Compiled(Executable, ABC):
    """A program as kernels and a host program."""

    def __init__(
        self,
        program: Any,
        without: Collection[str] = (),
        *,
        remat: Mapping[str, int] | None = None,
        options: Mapping[str, Options] | None = None,
        check: bool = True,
        budget: Budget | None = None,
    ):
        super().__init__(program)
        with collection_paused():
            chosen = (self.module, self.target, without)
            if budget is None:
                self.levels: Levels = lower(*chosen, remat=remat, check=check, options=options)
            else:
                space = self.signature.space
                self.levels = lower_within(*chosen, budget, space, remat=remat, check=check, options=options)
            begin = time.perf_counter()
            try:
                self.program = self._finish(self.lowered)
            except DiagnosticException as error:
                raise refusal(error, self.lowered) from error
            self.levels.seconds["code"] = time.perf_counter() - begin
        self.callee = Callee.of(self.program)
        self._place = lru_cache(maxsize=64)(self._placed)
        self._lock = threading.Lock()
        seconds = dict(self.levels.seconds)
        sites = sum(isinstance(op, loop.AccessOperation) for op in self.program.body.walk())
        sites -= sum(isinstance(op, loop.TransferOp) for op in self.program.body.walk())
        made = len(kernels(self.lowered)), launches(self.program), sites
        self._stats = Statistics(self.target, 1, seconds, *made, *per_step(self.formed))
        asked = remat is not None or budget is not None
        kept = tuple(self.levels.kept_rows) if asked else ()
        self._stats = dataclasses.replace(self._stats, memory_passes=self.levels.memory, kept_rows=kept)

    @abstractmethod
    def _finish(self, lowered: ModuleOp) -> loop.ProgramOp:
        """Make the code; returns the loop program."""

    @abstractmethod
    def _execute(self, placement: Placement, request: Request) -> Outputs:
        """Run a call whose buffers are placed."""

    @property
    def _kept_bytes(self) -> int:
        """The memory that is kept for the next call."""
        return 0

    @property
    def lowered(self) -> ModuleOp:
        """The loop program with launches, and the kernels."""
        assert self.levels.lowered is not None
        return self.levels.lowered

    def _placed(self, bounds: tuple[int, ...]) -> Placement:
        given = dict(zip(self.program.space.params, bounds, strict=True))
        return place(self.callee.buffers, self.callee.laid_out(given))

    def _run(self, request: Request) -> Outputs:
        placement = self._place(tuple(request.bounds[name] for name in self.program.space.params))
        needs = {**self.callee.needs(placement, request), "what is kept from calls before": -self._kept_bytes}
        check_room(needs, "a call", request.bounds)
        outputs = self._execute(placement, request)
        with self._lock:
            spaces = {"device": placement.size} | ({"host": placement.host_size} if placement.host_size else {})
            used = {
                "peak_bytes": placement.size, "peak_by_space": spaces, "bytes_by_class": dict(placement.by_class)
            }  # fmt: skip
            self._stats = dataclasses.replace(self._stats, **used)
        return outputs

    def ir(self, level: str) -> str:
        match level:
            case "loop":
                return str(self.levels.loop)
            case "tile":
                return str(self.lowered)
            case "triton":
                from tempo_ir.lowering.triton import print_module

                stream = StringIO()
                print_module(for_triton(self.levels), stream)
                return stream.getvalue()
            case _:
                return super().ir(level)

    def write_triton(self, directory: Path) -> None:
        from tempo_ir.lowering.triton.package import write_package

        write_package(for_triton(self.levels), directory)

    @property
    def formed(self) -> loop.ProgramOp:
        """The loop program with its kernels formed and its storage planned, not yet compiled."""
        assert self.levels.loop is not None
        (program,) = (op for op in self.levels.loop.ops if isinstance(op, loop.ProgramOp))
        return program

    @property
    def costs(self) -> Costs:
        """What a call costs, as formulas of the bounds."""
        from tempo_ir.lowering.costs import program_costs

        return program_costs(self.formed)

    @property
    def stats(self) -> Statistics:
        with self._lock:
            return self._stats


class Native(Compiled):
    """A program as native code for this CPU: one function, called once per call."""

    target = "cpu"

    def _finish(self, lowered: ModuleOp) -> loop.ProgramOp:
        self.native = NativeProgram.compile(lowered)
        self._arenas, self._host_arenas = Arenas(), Arenas()
        return self.native.program

    @property
    def _kept_bytes(self) -> int:
        return self._arenas.kept + self._host_arenas.kept

    def _execute(self, placement: Placement, request: Request) -> Outputs:
        with self._arenas.borrow(placement.size) as device, self._host_arenas.borrow(placement.host_size) as host:
            call = Call.of(self.callee, placement, device, host, request)
            self.native.run(call)
        return call.results()

    def ir(self, level: str) -> str:
        return self.native.text if level == "llvm" else super().ir(level)


class TritonInterpreted(Compiled):
    """A program as the package that a GPU would be given, run by Triton's interpreter."""

    target = "triton-interpret"

    def _finish(self, lowered: ModuleOp) -> loop.ProgramOp:
        from tempo_ir.lowering.triton.interpreter import InterpretedProgram

        self.interpreted = InterpretedProgram(lowered)
        return self.interpreted.program

    def _execute(self, placement: Placement, request: Request) -> Outputs:
        return self.interpreted.run(request.arrays, request.bounds, request.seed, request.hosts, request.start)


def memory_timeline(executable: Executable, **bounds: int) -> Timeline:
    """The live bytes over the schedule of a compiled program, for given bounds: `memory_timeline(exe, T=64)`.

    The result holds the numbers; `.write("memory.svg")` draws them. Raises CallError for a bound that is missing or for
    an executable that has no schedule.
    """
    if not isinstance(executable, Compiled):
        raise CallError(f"target '{executable.target}' schedules nothing: compile for cpu")
    return timeline(executable.formed, bounds)


def seed_of(seed: int) -> int:
    """The seed, an integer of 32 bits. Raises CallError for another."""
    number = whole_number(seed)
    if number is None or not 0 <= number < 1 << 32:
        raise CallError(f"the seed is {seed!r}: a seed is an integer of 0 to 2**32 - 1")
    return number


def _dict_of(argument: str, value: Any, holds: str) -> dict[str, Any]:
    """Raises CallError for what is no dict."""
    try:
        return mapping_of(argument, value, holds)
    except ValueError as error:
        raise CallError(str(error)) from None


def _kind(array: Array, in_torch: bool) -> Any:
    return tensor_of_array(array) if in_torch else array
