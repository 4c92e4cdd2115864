"""Arrays that the caller owns: parameters, which never change, and states, which a program carries from step to step.

`w = tp.state("w", spec, init, steps=(i,))` becomes a parameter, a merge and an output of one key:

    %w0 = sdg.parameter "w"
    %w = sdg.merge {i = 0 : %w0, i > 0 : %w1[i - 1]} in (i)         w[i], the value before step i; %w1 is `w.next`
    %wI = sdg.merge {I = 0 : %w0, I > 0 : %w1[I - 1]}               the value after the last step
    sdg.output "w" %wI
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir import index as ix
from tempo_ir.dialects import sdg
from tempo_ir.frontend import elementwise, shapes
from tempo_ir.frontend.description import Array, Initialiser, StateInfo
from tempo_ir.frontend.dims import Dim, dim_names
from tempo_ir.frontend.dtypes import Spec, spec_of
from tempo_ir.frontend.errors import Place, ProgramError, here
from tempo_ir.frontend.recording import Recording, current
from tempo_ir.frontend.tensor import Tensor, Value
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import Cond, Expr

Init = Initialiser | Array | float | int | bool


class State(Tensor):
    """A value carried through steps: reading it gives the value before the step, setting `next` the one after it."""

    __slots__ = ("_next", "first", "label", "place", "steps", "wanted")

    def __init__(self, recording: Recording, label: str, wanted: Spec, steps: tuple[str, ...], first: SSAValue):
        merge = sdg.MergeOp(domain=Domain(steps), result_type=wanted.type)
        recording.add(merge, here(), hint(label))
        super().__init__(recording, merge.result)
        self.label = label
        self.wanted = wanted
        self.steps = steps
        self.first = first
        self.place = here()
        self._next: Tensor | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"'{self.label}'"

    @property
    def next(self) -> Tensor:
        """The value after the step."""
        if self._next is None:
            raise ProgramError(
                f"the state {self.name} has no update yet: write {self.label}.next = ... before reading it"
            )
        return self._next

    @next.setter
    def next(self, value: Value) -> None:
        if self._next is not None:
            raise ProgramError(f"the state {self.name} is updated twice: join the two with tp.where")
        given = elementwise.as_tensor(value, self.wanted.dtype)
        if given.dtype != self.wanted.dtype:
            raise ProgramError(
                f"the state {self.name} is {self.wanted.dtype} ({self.place}), its update is {given.dtype}: "
                f"write .cast(tp.{self.wanted.dtype})"
            )
        if foreign := [name for name in given.dims if name not in self.steps]:
            raise ProgramError(
                f"the state {self.name} is carried through ({', '.join(self.steps)}), its update also varies over "
                f"{foreign[0]}: "
                f"reduce it over {foreign[0]}, or add {foreign[0]} to steps"
            )
        extents = Tensor(self.recording, self.value).extents
        if given.extents != extents and given.extents != ():
            raise ProgramError(
                f"the state {self.name} has the shape {shapes.shape_text(extents)} ({self.place}), its update "
                f"{shapes.shape_text(given.extents)}"
            )
        given = shapes.broadcast_to(given, extents)
        if given.value.name_hint is None and SSAValue.is_valid_name(name := hint(f"{self.label}_next")):
            given.value.name_hint = name
        self._next = given

    def complete(self) -> None:
        """Give the merge its cases, and the program the last value."""
        if self._next is None:
            raise ProgramError(
                f"the state {self.name} has no update: write {self.label}.next = ..., give it to an optimiser's "
                "minimize, "
                "or make it a tp.parameter (no steps)",
                self.place,
            )
        recording, update = self.recording, self._next
        bounds = {name: recording.dims[name] for name in self.steps}
        merge = self.value.owner
        assert isinstance(merge, sdg.MergeOp)
        merge.set_cases(carried(self.steps, bounds, self.first, update))
        none = ix.disj(*(ix.compare("=", bound, 0) for bound in bounds.values()))
        some = ix.conj(*(ix.compare(">", bound, 0) for bound in bounds.values()))
        after = previous(update, {name: bound - 1 for name, bound in bounds.items()})
        cases = [case for case in ((none, sdg.Access(self.first)), (some, after)) if case[0] != ix.FALSE]
        last = sdg.MergeOp(*cases, domain=Domain(), result_type=self.value.type)
        recording.add(last, self.place, hint(f"{self.label}_last"))
        recording.add(sdg.OutputOp(self.label, last.result), self.place)


def carried(
    steps: Sequence[str], bounds: dict[str, Expr], first: SSAValue, update: Tensor
) -> list[tuple[Cond, sdg.Access]]:
    """The cases of a value before each step, steps taken in lexicographic order.

    Before the very first step it is `first`; otherwise the update of the step before: one back in the innermost
    dim, or, at its start, the last point of the inner dims one back in the dim outside.
    """
    cases: list[tuple[Cond, sdg.Access]] = [
        (ix.conj(*(ix.compare("=", ix.Sym(name), 0) for name in steps)), sdg.Access(first)),
    ]
    for position in reversed(range(len(steps))):
        name, inner = steps[position], steps[position + 1 :]
        if bounds[name] == ix.Const(1):
            continue  # a dim of one point has no step before
        cond = ix.conj(ix.compare(">", ix.Sym(name), 0), *(ix.compare("=", ix.Sym(other), 0) for other in inner))
        point: dict[str, Expr] = {name: ix.Sym(name) - 1}
        point.update({other: bounds[other] - 1 for other in inner})
        cases.append((cond, previous(update, point)))
    return cases


def previous(update: Tensor, point: dict[str, Expr]) -> sdg.Access:
    """The update read at another step."""
    return sdg.Access(update.value, ix.substitute(update.index, point))


def hint(label: str) -> str:
    """A name as a hint for printing: `policy.0.weight` is `policy_0_weight`."""
    return label.replace(".", "_")


def parameter(name: str, spec: Spec, init: Init = 0.0) -> Tensor:
    """A constant that the caller owns: an array of `spec`, first made by `init` (a function of a generator and a
    shape, an array or a number)."""
    recording = current()
    return Tensor(recording, _first(recording, name, spec_of(spec, f"parameter '{name}'"), init, ()))


def state(name: str, spec: Spec, init: Init = 0.0, *, steps: Dim | Sequence[Dim]) -> State:
    """An array carried through `steps` in lexicographic order: `w[i]` is its value before step i, `w.next = ...`
    the update.

    The call takes the first value in `state` and returns the last one.
    """
    recording = current()
    names = dim_names(steps, f"state '{name}'")
    spec = spec_of(spec, f"state '{name}'")
    if not names:
        raise ProgramError(f"the state '{name}' has no steps: give the dims that carry it, or make it a tp.parameter")
    carried_state = State(recording, name, spec, names, _first(recording, name, spec, init, names))
    recording.finishers.append(carried_state.complete)
    return carried_state


def parameter_or_state(name: str, spec: Spec, init: Init, steps: Dim | Sequence[Dim] | None) -> Tensor:
    """A parameter, or a state where `steps` is given."""
    return parameter(name, spec, init) if steps is None else state(name, spec, init, steps=steps)


def _first(recording: Recording, name: str, spec: Spec, init: Init, steps: tuple[str, ...]) -> SSAValue:
    """The value that the caller gives."""
    recording.claim("state", "state" if steps else "parameter", name)
    if steps:
        recording.claim("output", "state", name)
    if not all(isinstance(extent, int) for extent in spec.shape):
        raise ProgramError(f"'{name}' has the shape {spec}: an array that the caller owns has a shape of numbers")
    op = recording.add(sdg.ParameterOp(name, spec.type), here(), hint(f"{name}_first" if steps else name))
    place = here()
    recording.states[name] = StateInfo(name, spec, initialiser(name, spec, init, place), steps, place)
    return op.results[0]


def initialiser(name: str, spec: Spec, init: Any, place: Place | None) -> Initialiser:
    """`init` as a function of a generator and a shape."""
    if callable(init):
        function: Any = init
        return function
    array = np.asarray(init)
    if array.ndim and array.shape != spec.shape:
        raise ProgramError(f"'{name}' is {spec}, its first value has the shape {array.shape}", place)
    return lambda generator, shape: np.broadcast_to(array, shape)


def initial(info: StateInfo, seed: int) -> Array:
    """The first value of a state: a function of the seed and of its name, not of the other states."""
    generator = np.random.default_rng([seed, *info.name.encode()])
    shape = tuple(extent for extent in info.spec.shape if isinstance(extent, int))
    array = np.asarray(info.initialiser(generator, shape))
    if array.shape != shape:
        raise ProgramError(
            f"'{info.name}' is {info.spec}, its initialiser made an array of shape {array.shape}", info.place
        )
    return np.array(array, dtype=info.spec.dtype.numpy, order="C")
