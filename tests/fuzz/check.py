"""One program in every way there is to run it: all must give what the reference interpreter gives.

Outputs are named by how they may differ: `exact*` not at all, `single*` by f32 rounding, `double*` by that of f64.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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

Outputs = Mapping[str, Array]
LOOP_PASSES = ("sdg-schedule", "loop-form-kernels", "loop-plan-storage")
TOLERANCE = {"exact": 0.0, "single": 3e-4, "double": 1e-8}
SEED = 7
SLOW = "timeout"
REFUSALS = ("raises PassFailedException in refuse", "raises ScheduleError")
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
    uncertain: dict[str, float] = field(default_factory=dict[str, float])


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
            self.cases.append(Case(bounds, arguments, run(program, arguments, bounds, SEED)))

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
        apply(module, name)
        if str(module) != before:
            self.agree(name, lambda case: run(program_of(module), case.arguments, case.bounds, SEED))

    # ---- levels below ----

    def levels(self) -> None:
        """The default passes, then the loop program after each lowering, by the interpreters."""
        module = self.module.clone()
        apply(module, *default_pipeline())
        self.optimised = str(module)
        self.agree("sdg-default", lambda case: run(program_of(module), case.arguments, case.bounds, SEED))
        for name in LOOP_PASSES:
            attempt(name, lambda name=name: self.lowered(name, module))

    def lowered(self, name: str, module: ModuleOp) -> None:
        apply(module, name)
        (program,) = (op for op in module.ops if isinstance(op, loop.ProgramOp))
        self.agree(name, lambda case: run_loop(program, case.arguments, case.bounds, SEED))

    # ---- native code ----

    def compiled(self, name: str, without: Sequence[str]) -> None:
        attempt(f"{name} compile", lambda: self._compile(without))
        attempt(f"{name} call", lambda: self.agree(name, self._call))
        attempt(f"{name} call", self._again)

    def _compile(self, without: Sequence[str]) -> None:
        self.executable = tp.compile(parse(self.text), without=tuple(without))

    def _call(self, case: Case) -> Outputs:
        keys = {op.key.data: op for op in program_of(self.module).body.block.ops if isinstance(op, SourceOp)}
        state = {k: v for k, v in case.arguments.items() if keys[k].name == "sdg.parameter"}
        inputs = {k: v for k, v in case.arguments.items() if k not in state}
        copies = {k: v.copy() for k, v in case.arguments.items()}
        result = self.executable(**inputs, **case.bounds, state=state, seed=SEED)
        for key, array in case.arguments.items():
            if not np.array_equal(array, copies[key], equal_nan=array.dtype.kind == "f"):
                raise Failure("cpu call changes an argument", key)
        return {**result.state, **result}

    def _again(self) -> None:
        """The same call gives the same bits."""
        for case in self.cases[-2:]:
            first, second = self._call(case), self._call(case)
            for key, value in first.items():
                if value.tobytes() != second[key].tobytes():
                    raise Failure("cpu gives other bits the second time", f"{key} at {case.bounds}")

    def left_out(self) -> None:
        """Each optional pass left out, all of them, and planned storage; equal graphs need no second compile."""
        names = sorted(set(DEFAULT_PIPELINE) - REQUIRED)
        seen = {self.optimised}
        for without in [*((name,) for name in names), tuple(names)]:
            module = self.module.clone()
            attempt(f"without {without}", lambda module=module, w=without: apply(module, *default_pipeline(w)))
            if str(module) not in seen:
                seen.add(str(module))
                self.compiled(f"cpu without {' '.join(without)}", without)
        self.compiled("cpu without loop-plan-storage", ("loop-plan-storage",))

    # ---- comparison ----

    def agree(self, name: str, outputs: Callable[[Case], Outputs]) -> None:
        """Raises Failure where the outputs at some size are not the expected ones."""
        for case in self.cases:
            found = outputs(case)
            for key, expected in case.expected.items():
                if (problem := self.difference(key, found[key], expected, case)) is not None:
                    raise Failure(f"{name} differs", f"{key} at {case.bounds}: {problem}")

    def difference(self, key: str, found: Array, expected: Array, case: Case) -> str | None:
        """How an output differs by more than rounding; None if it does not."""
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return f"{found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
        if not expected.size or found.dtype.kind in "biu":
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
        if kind != "exact" and largest <= 100 * self.sensitivity(key, case):
            return None
        return first_difference(found, expected)

    def sensitivity(self, key: str, case: Case) -> float:
        """How far the output moves when the inputs move by rounding: what no order of operations can be blamed for."""
        if not case.uncertain:
            generator = np.random.default_rng(1)
            moved: dict[str, Array] = {}
            for name, array in case.arguments.items():
                if array.dtype.kind == "f":
                    array = (array * (1 + 2e-7 * generator.choice([-1, 1], array.shape))).astype(array.dtype)
                moved[name] = array
            other = run(program_of(self.expanded), moved, case.bounds, SEED)
            for name, value in other.items():
                with np.errstate(invalid="ignore"):
                    distance = np.abs(value.astype(np.float64) - case.expected[name].astype(np.float64))
                case.uncertain[name] = float(np.max(np.nan_to_num(distance, nan=0, posinf=0), initial=0))
        return case.uncertain[key]


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
