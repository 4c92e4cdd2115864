"""One program in every way there is to run it: all must give what the reference interpreter gives.

Outputs are named by how they may differ: `exact*` not at all, `half*` by the rounding of f16 or bf16, `single*` by that
of f32, `double*` by that of f64. Host objects are to be called as often, in the same order, with the same arguments.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.dialects.sdg import GradOp, ProgramOp, Sdg, SourceOp
from tempo_ir.lowering import get_all_passes as lowerings
from tempo_ir.passes import get_all_passes
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE, REQUIRED, default_pipeline
from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tests.fuzz.arguments import draw, sizes
from tests.fuzz.effects import Hosts
from tests.fuzz.rounding import is_float, rounded_otherwise

Outputs = Mapping[str, Array]
Factories = Mapping[str, Callable[[], object]]
LOOP_PASSES = ("sdg-schedule", "loop-form-kernels", "loop-fuse-rows", "loop-plan-storage")
TOLERANCE = {"exact": 0.0, "half": 4e-2, "single": 3e-4, "double": 1e-8}
MOVED = {"half": 4e-3, "single": 2e-7, "double": 1e-15}
"""By how much inputs are moved to see what rounding may do to outputs of each kind."""
MOST = {"half": 4, "single": 30, "double": 30}
"""How much further than that an output may be away: other roundings add up otherwise."""
OPTIONS: Mapping[str, Mapping[str, object]] = {"sdg-tile": {"tile": 3}, "sdg-remat": {"block": 2}}
"""Options of passes that would do nothing at small sizes without."""
SEED = 7
SLOW = "timeout"
MOST_SECONDS = 10
"""Of processor time, to compile a program of a dozen ops."""
REFUSALS = ("raises PassFailedException in refuse", "raises ScheduleError", "raises ProgramError")
"""How the kinds of failures begin that are errors for the user."""


class Failure(Exception):
    """A program that one of the ways does not run as the others do. `kind` names the way and the sort of failure."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text

    @property
    def is_refusal(self) -> bool:
        """Whether it is an error for the user that a pass raises on purpose, with a way out, and no fault."""
        return any(name in self.kind for name in REFUSALS)


def parse(text: str) -> ModuleOp:
    """The module, unverified."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sdg)
    return Parser(context, text).parse_module()


def program_of(module: ModuleOp) -> ProgramOp:
    (program,) = (op for op in module.ops if isinstance(op, ProgramOp))
    return program


def attempt(kind: str, action: Callable[[], object]) -> None:
    """Run part of the check; what it raises is a failure of that kind."""
    try:
        action()
    except Failure:
        raise
    except Exception as error:  # whatever goes wrong is what the fuzzer looks for
        lines = traceback.format_exception(error)
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{kind} raises {type(error).__name__} in {place.name}"
        raise Failure(name, " ".join("".join(lines[-1:]).split())[:600]) from error


@dataclass
class Case:
    """A size, its arguments, and what the reference makes of them."""

    bounds: dict[str, int]
    arguments: dict[str, Array]
    expected: Outputs
    calls: Sequence[tuple[str, str, Array]]
    uncertain: dict[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])


@dataclass
class Check:
    """The checks of one program. `thorough` also leaves out each pass in turn, and compiles what is left."""

    text: str
    thorough: bool = True
    native: bool = True
    cases: list[Case] = field(default_factory=list[Case])

    def run(self) -> None:
        """Raises Failure for the first way that fails."""
        attempt("verify", self.read)
        attempt("reference", self.reference)
        self.passes()
        attempt("optimise", self.levels)
        if self.native:
            self.compiled("cpu", ())
        if self.thorough:
            attempt("sdg-tile", self.tiled)
            self.left_out()

    def read(self) -> None:
        """Parse, verify; print, parse and print again."""
        self.module = parse(self.text)
        self.module.verify()
        printed = str(self.module)
        if str(parse(printed)) != printed:
            raise Failure("print", "print, parse, print gives another text")
        self.expanded = self.module.clone()
        if any(isinstance(op, GradOp) for op in self.module.walk()):
            apply(self.expanded, "sdg-autodiff")

    def reference(self) -> None:
        """The outputs at several sizes, and with NaN and infinities at the last."""
        program = program_of(self.expanded)
        found = sizes(program)
        if not found:
            raise Failure("sizes", "no small size is admitted")
        for number, bounds in enumerate([*found, found[-1]]):
            special = number == len(found)
            arguments = draw(program, bounds, number, special=special)
            hosts = Hosts(program)
            outputs = run(program, arguments, bounds, SEED, hosts.factories())
            self.cases.append(Case(bounds, arguments, outputs, hosts.calls()))

    # ---- passes on the graph ----

    def passes(self) -> None:
        """Each pass alone."""
        before = str(self.expanded)
        for name in get_all_passes():
            if name in REQUIRED:
                continue
            attempt(name, lambda name=name: self.one_pass(name, before))

    def one_pass(self, name: str, before: str) -> None:
        module = self.expanded.clone()
        apply(module, name, **OPTIONS.get(name, {}))
        if str(module) != before:
            self.agree_on_graph(name, module)

    # ---- levels below ----

    def levels(self) -> None:
        """The default passes, then the loop program after each lowering, by the interpreters."""
        module = self.module.clone()
        apply(module, *default_pipeline())
        self.optimised = str(module)
        self.agree_on_graph("sdg-default", module)
        for name in LOOP_PASSES:
            attempt(name, lambda name=name: self.lowered(name, module))

    def lowered(self, name: str, module: ModuleOp) -> None:
        apply(module, name)
        (program,) = (op for op in module.ops if isinstance(op, loop.ProgramOp))
        self.agree(name, lambda case, hosts: run_loop(program, case.arguments, case.bounds, SEED, hosts))

    def tiled(self) -> None:
        """The program in tiles of 3, whose loops become loops of kernels, after each lowering."""
        module = self.expanded.clone()
        apply(module, "sdg-tile", tile=3)
        if str(module) == str(self.expanded):
            return
        apply(module, "sdg-reduce-domain")
        for name in LOOP_PASSES:
            attempt(f"sdg-tile {name}", lambda name=name: self.lowered(name, module))

    # ---- native code ----

    def compiled(self, name: str, without: Sequence[str]) -> None:
        begin = time.process_time()
        attempt(f"{name} compile", lambda: self._compile(without))
        if (seconds := time.process_time() - begin) > MOST_SECONDS:
            raise Failure(SLOW, f"{name} compile takes {seconds:.0f} s")
        attempt(f"{name} call", lambda: self.agree(name, self._call))
        attempt(f"{name} call", self._again)

    def _compile(self, without: Sequence[str]) -> None:
        self.executable = tp.compile(parse(self.text), without=tuple(without), cache=False)

    def _call(self, case: Case, hosts: Factories, *, donate: bool = False) -> Outputs:
        keys = {op.key.data: op for op in program_of(self.module).body.block.ops if isinstance(op, SourceOp)}
        state = {k: v for k, v in case.arguments.items() if keys[k].name == "sdg.parameter"}
        inputs = {k: v for k, v in case.arguments.items() if k not in state}
        copies = {k: v.copy() for k, v in case.arguments.items()}
        given = {k: v.copy() for k, v in state.items()} if donate else state
        result = self.executable(**inputs, **case.bounds, state=given, seed=SEED, donate=donate, hosts=hosts)
        for key, array in case.arguments.items():
            if array.tobytes() != copies[key].tobytes():
                raise Failure("cpu call changes an argument", key)
        return {**result.state, **result}

    def _again(self) -> None:
        """The same call gives the same bits, and so does one that may overwrite the parameters."""
        for case in self.cases[-2:]:
            first, second, donated = (
                self._call(case, Hosts(program_of(self.module)).factories(), donate=donate)
                for donate in (False, False, True)
            )
            for key, value in first.items():
                if value.tobytes() != second[key].tobytes():
                    raise Failure("cpu gives other bits the second time", f"{key} at {case.bounds}")
                if value.tobytes() != donated[key].tobytes():
                    raise Failure("cpu gives other bits with donated parameters", f"{key} at {case.bounds}")

    def left_out(self) -> None:
        """
        Each optional pass left out, on the graph; compiled with one of them left out (which, the text decides), with
        none of them, and without planned storage. Equal graphs are looked at once.
        """
        names = sorted(set(DEFAULT_PIPELINE) - REQUIRED)
        distinct: dict[str, str] = {self.optimised: ""}
        for name in names:
            attempt(f"without {name}", lambda name=name: self.graph_without(name, distinct))
        rest = [name for name in distinct.values() if name]
        if rest:
            name = rest[crc32(self.text.encode()) % len(rest)]
            self.compiled(f"cpu without {name}", (name,))
        self.compiled("cpu without passes", tuple(names))
        self.compiled("cpu without loop-plan-storage", ("loop-plan-storage",))

    def graph_without(self, name: str, seen: dict[str, str]) -> None:
        """Compare the graph of the default passes but one, unless it was seen, and note that it was."""
        module = self.module.clone()
        apply(module, *default_pipeline((name,)))
        if seen.setdefault(str(module), name) == name:
            self.agree_on_graph(f"without {name}", module)

    # ---- comparison ----

    def agree_on_graph(self, name: str, module: ModuleOp) -> None:
        """Compare what the interpreter makes of a graph, at every other size: which ones differs between names."""
        program = program_of(module)
        some = self.cases[crc32(name.encode()) % 2 :: 2] or self.cases
        self.agree(name, lambda case, hosts: run(program, case.arguments, case.bounds, SEED, hosts), some)

    def agree(
        self, name: str, outputs: Callable[[Case, Factories], Outputs], cases: Sequence[Case] | None = None
    ) -> None:
        """Raises Failure where the outputs, or the calls of host objects, at some size are not the expected ones."""
        for case in self.cases if cases is None else cases:
            hosts = Hosts(program_of(self.module))
            found = outputs(case, hosts.factories())
            for key, expected in case.expected.items():
                if (problem := self.difference(key, found[key], expected, case)) is not None:
                    raise Failure(f"{name} differs", f"{key} at {case.bounds}: {problem}")
            calls = hosts.calls()
            if [call[:2] for call in calls] != [call[:2] for call in case.calls]:
                raise Failure(f"{name} calls differ", f"{len(calls)} at {case.bounds}, not {len(case.calls)}")
            for number, (call, wanted) in enumerate(zip(calls, case.calls, strict=True)):
                if not np.allclose(call[2], wanted[2], 1e-3, 1e-3, equal_nan=True):
                    raise Failure(f"{name} calls differ", f"the argument of call {number} at {case.bounds}")

    def difference(self, key: str, found: Array, expected: Array, case: Case) -> str | None:
        """How an output differs by more than rounding; None if it does not."""
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return f"{found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
        if not expected.size or not is_float(found):
            return None if np.array_equal(found, expected) else first_difference(found, expected)
        wide, theirs = found.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(theirs)
        if not np.array_equal(np.where(finite, 0, wide), np.where(finite, 0, theirs), equal_nan=True):
            return first_difference(found, expected)
        largest = float(np.max(np.abs(np.where(finite, wide, 0) - np.where(finite, theirs, 0)), initial=0))
        scale = float(np.max(np.abs(theirs), where=finite, initial=1))
        kind = next((kind for kind in TOLERANCE if key.startswith(kind)), "single")
        if largest <= TOLERANCE[kind] * scale:
            return None
        if kind != "exact" and largest <= MOST[kind] * self.sensitivity(key, case, MOVED[kind]):
            return None
        return first_difference(found, expected)

    def sensitivity(self, key: str, case: Case, amount: float) -> float:
        """How far the output moves when inputs and the results of ops move by rounding: no order of operations can be
        blamed for less."""
        if str(amount) not in case.uncertain:
            program = program_of(self.expanded)
            hosts = Hosts(program).factories()
            other = rounded_otherwise(program, case.arguments, case.bounds, SEED, hosts, amount)
            distances: dict[str, float] = {}
            for name, value in other.items():
                with np.errstate(invalid="ignore"):
                    distance = np.abs(value.astype(np.float64) - case.expected[name].astype(np.float64))
                distances[name] = float(np.max(np.nan_to_num(distance, nan=0, posinf=0), initial=0))
            case.uncertain[str(amount)] = distances
        return case.uncertain[str(amount)][key]


def first_difference(found: Array, expected: Array) -> str:
    """How many elements differ beyond a little, and the first of them."""
    with np.errstate(invalid="ignore"):
        near = np.isclose(found.astype(np.float64), expected.astype(np.float64), 1e-6, 0, equal_nan=True)
    wrong = np.argwhere(~near)
    if not len(wrong):
        return f"{expected.size} values, by rounding only"
    place = tuple(int(axis) for axis in wrong[0])
    return f"{len(wrong)} of {expected.size} values, first at {list(place)}: {found[place]}, not {expected[place]}"


def apply(module: ModuleOp, *names: str, **options: object) -> None:
    """Run passes by name, in place, verifying after each; options go to all of them."""
    known = {**get_all_passes(), **lowerings()}
    for name in names:
        known[name]()(**options).apply(Context(), module)
        module.verify()


def failure_of(text: str, *, thorough: bool = True, native: bool = True) -> Failure | None:
    """What fails about a program; None if nothing does."""
    try:
        Check(text, thorough, native).run()
    except Failure as failure:
        return failure
    return None
