"""torch's operator database as an oracle: samples of a torch operator, and one program that runs many of them.

A sample is a call of a torch operator with tensors, numbers and options. A *counterpart* is a function that makes the
same call on tensors of a program; it raises `Absent` for an option that this language does not have, and such samples
are counted apart. The samples of an operator are recorded into one program, every tensor as an input, so that one
compile serves them all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

import tempo_ir as tp
from tempo_ir.frontend.dtypes import DType
from tempo_ir.frontend.program import Program

DTYPES: dict[torch.dtype, DType] = {
    torch.bool: tp.bool,
    torch.uint8: tp.u8,
    torch.int8: tp.i8,
    torch.int16: tp.i16,
    torch.int32: tp.i32,
    torch.int64: tp.i64,
    torch.float16: tp.f16,
    torch.bfloat16: tp.bf16,
    torch.float32: tp.f32,
    torch.float64: tp.f64,
}
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
"""Relative, and absolute by the greatest number of an array."""
STEPS = 2
"""The bound of the dim that samples may be spread over."""


class Absent(Exception):
    """The sample uses an option of the torch operator that has no counterpart; says which."""


@dataclass(frozen=True)
class Counterpart:
    """What stands for a torch operator: `call` takes the arguments of the operator."""

    call: Callable[..., Any]
    gradient: bool = True
    same_type: bool = True  # the results have torch's types
    results: int | None = None  # how many of torch's results are compared; None is all
    dtypes: tuple[torch.dtype, ...] | None = None  # None: all that torch and the language have
    tolerance: float = 1.0  # times TOLERANCE
    spread: bool = True  # each step may have its own numbers


@dataclass(frozen=True)
class Sample:
    """One call of a torch operator, its arguments flat."""

    theirs: Callable[..., Any]
    leaves: tuple[Any, ...]
    structure: TreeSpec

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def call(self, function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
        """`function` with other tensors in the place of the sample's."""
        remaining = iter(tensors)
        leaves = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        first, rest, named = tree_unflatten(leaves, self.structure)
        return function(first, *rest, **named)

    def expected(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results of the torch operator."""
        return results_of(self.call(self.theirs, tensors))

    def rolled(self, step: int) -> list[torch.Tensor]:
        """The tensors of another time step: their elements moved round, which keeps them in the operator's domain."""
        return [tensor.roll(step, -1) if tensor.ndim else tensor for tensor in self.tensors]

    def __str__(self) -> str:
        shown = [f"{DTYPES.get(x.dtype)}{list(x.shape)}" if isinstance(x, torch.Tensor) else x for x in self.leaves]
        return f"{shown}"


def results_of(value: Any) -> list[Any]:
    """The tensors of a result, which may be a list or a named tuple of some."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in results_of(part)]
    return [value]


@cache
def operators() -> dict[str, list[Any]]:
    """The operator database by name, `name` or `name:variant`."""
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for entry in op_db:
        variant = f":{entry.variant_test_name}" if entry.variant_test_name else ""
        found.setdefault(entry.name + variant, []).append(entry)
    return found


def samples_of(name: str, dtype: torch.dtype, largest: int, thorough: bool = False) -> Iterator[Sample]:
    """The samples of an operator in one element type, of at most `largest` elements; the same on each run."""
    for entry in operators()[name]:
        if dtype not in entry.dtypes:
            continue
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        draw = entry.reference_inputs if thorough else entry.sample_inputs
        for drawn in draw("cpu", dtype, requires_grad=False):
            leaves, structure = tree_flatten((drawn.input, tuple(drawn.args), dict(drawn.kwargs)))
            sample = Sample(entry.op, tuple(leaves), structure)
            if sum(tensor.numel() for tensor in sample.tensors) <= largest:
                yield sample


@dataclass
class Recorded:
    """A sample in a program: the tensors of each step, and whether its gradients are taken."""

    key: str
    sample: Sample
    steps: list[list[torch.Tensor]]
    cotangents: list[torch.Tensor] = field(default_factory=list)
    over: tuple[Any, ...] = ()

    def arguments(self) -> dict[str, np.ndarray]:
        """The inputs of the program that this sample needs."""
        found = {
            f"{self.key}_in{number}": self._array(values) for number, values in enumerate(zip(*self.steps, strict=True))
        }
        return found | {f"{self.key}_cot{number}": array_of(value) for number, value in enumerate(self.cotangents)}

    def _array(self, values: Sequence[torch.Tensor]) -> np.ndarray:
        return np.stack([array_of(value) for value in values]) if self.over else array_of(values[0])


@dataclass
class Batch:
    """Samples in one program, and why others are not in it."""

    counterpart: Counterpart
    recorded: list[Recorded]
    absent: list[str] = field(default_factory=list[str])
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        """Record the program of all samples: inputs, results, and the gradients of a weighted sum of the results."""
        kept: list[Recorded] = []

        def samples() -> None:
            dims = {"over": tp.dim("t")[0]} if any(one.over for one in self.recorded) else {}
            for one in self.recorded:
                try:
                    self._record(one, dims)
                    kept.append(one)
                except Absent as reason:
                    self.absent.append(str(reason))

        self.program = tp.program(samples)()
        self.recorded = kept

    @property
    def gradients(self) -> int:
        """The samples whose gradients are taken."""
        return sum(bool(one.cotangents) for one in self.recorded)

    def _record(self, one: Recorded, dims: dict[str, Any]) -> None:
        tensors = [
            tp.input(f"{one.key}_in{number}", DTYPES[tensor.dtype][tuple(tensor.shape)], **dims)
            for number, tensor in enumerate(one.steps[0])
        ]
        found = results_of(one.sample.call(self.counterpart.call, tensors))
        for number, value in enumerate(found):
            tp.output(f"{one.key}_out{number}", value)
        if not one.cotangents:
            return
        floats = [value for value in found if isinstance(value, tp.Tensor) and value.dtype.kind == "float"]
        terms = [
            tp.sum(value * tp.input(f"{one.key}_cot{number}", tp.f64[tuple(cotangent.shape)]))
            for number, (value, cotangent) in enumerate(zip(floats, one.cotangents, strict=True))
        ]
        loss = sum(terms[1:], terms[0])
        for number, tensor in enumerate(tensors):
            if tensor.dtype.kind == "float":
                tp.output(f"{one.key}_grad{number}", tp.grad(loss, tensor, allow_unused=True))

    def arguments(self) -> dict[str, np.ndarray]:
        """All inputs; those of samples that are left out are zeros."""
        given = {name: array for one in self.recorded for name, array in one.arguments().items()}
        for name, info in self.program.inputs.items():
            if name not in given:
                shape: list[Any] = [*(STEPS for _ in info.over), *info.spec.shape]
                given[name] = np.zeros(shape, info.spec.dtype.numpy)
        return given

    def check(self, outputs: Any, what: str) -> None:
        """Every result and gradient is torch's."""
        for one in self.recorded:
            self._check_results(one, outputs, what)
            if one.cotangents:
                self._check_gradients(one, outputs, what)

    def _check_results(self, one: Recorded, outputs: Any, what: str) -> None:
        by_step = [one.sample.expected(tensors) for tensors in one.steps]
        count = len(by_step[0]) if self.counterpart.results is None else self.counterpart.results
        assert f"{one.key}_out{count - 1}" in outputs or count == 0, (what, str(one.sample), "fewer results")
        assert f"{one.key}_out{count}" not in outputs, (what, str(one.sample), "more results")
        for number in range(count):
            actual = outputs[f"{one.key}_out{number}"]
            for step, expected in enumerate(results[number] for results in by_step):
                varies = bool(one.over) and actual.ndim == expected.ndim + 1
                where = f"{what}, result {number}, step {step} of {one.sample}"
                self.same(actual[step] if varies else actual, expected, where)

    def _check_gradients(self, one: Recorded, outputs: Any, what: str) -> None:
        tensors = [tensor.detach().clone() for tensor in one.steps[0]]
        wanted = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
        results = one.sample.expected(tensors)[: self.counterpart.results]
        pairs = [pair for pair in zip(floating(results), one.cotangents, strict=True) if pair[0].requires_grad]
        values, weights = ([pair[side] for pair in pairs] for side in (0, 1))
        found = torch.autograd.grad(values, wanted, weights, allow_unused=True) if pairs else [None] * len(wanted)
        gradients = iter(found)
        for number, tensor in enumerate(tensors):
            if tensor.is_floating_point():
                gradient = next(gradients)
                expected = torch.zeros_like(tensor) if gradient is None else gradient
                where = f"{what}, gradient of argument {number} of {one.sample}"
                self.same(outputs[f"{one.key}_grad{number}"], expected, where)

    def same(self, actual: np.ndarray, theirs: Any, where: str) -> None:
        """Equal to torch's result: shape, type unless the table says otherwise, and numbers to rounding."""
        theirs = theirs.detach() if isinstance(theirs, torch.Tensor) else torch.tensor(theirs)
        expected = array_of(theirs.resolve_conj())
        assert actual.shape == expected.shape, (where, actual.shape, expected.shape)
        assert not self.counterpart.same_type or actual.dtype == expected.dtype, (where, actual.dtype, expected.dtype)
        if expected.dtype.kind in "biu" and actual.dtype.kind in "biu":
            np.testing.assert_array_equal(actual, expected, err_msg=where)
            return
        close(actual, expected, TOLERANCE.get(theirs.dtype, 1e-9) * self.counterpart.tolerance, where)


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float, where: str) -> None:
    """Equal floats: relative to each number, and to the greatest one."""
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = min(float(finite.max(initial=0.0)), 1e6)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * max(scale, 1e-3), err_msg=where)


def floating(tensors: Iterable[Any]) -> list[torch.Tensor]:
    """The tensors of floats."""
    return [tensor for tensor in tensors if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()]


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """A torch tensor as numpy, bf16 too."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(tp.bf16.numpy)
    return tensor.numpy(force=True)  # torch has tensors of zeros without memory


def record(
    counterpart: Counterpart, samples: Iterable[Sample], *, gradients: bool = False, spread: bool = False
) -> Batch:
    """The samples in one program: with gradients, or over a dim whose steps have different numbers."""
    found: list[Recorded] = []
    for number, sample in enumerate(samples):
        if spread and not (counterpart.spread and sample.tensors):
            continue
        steps = [sample.rolled(step) for step in range(STEPS if spread else 1)]
        one = Recorded(f"s{number}", sample, steps, over=("t",) if spread else ())
        if gradients and counterpart.gradient:
            one.cotangents = cotangents(counterpart, sample)
        found.append(one)
    return Batch(counterpart, found)


def varied(samples: Iterable[Sample], count: int) -> list[Sample]:
    """So many samples, as different as they come: scalars, empty and broadcast operands, other options."""
    kinds: dict[Any, list[Sample]] = {}
    for sample in samples:
        shapes = [tensor.shape for tensor in sample.tensors]
        kind = (0 in map(len, shapes), any(0 in shape for shape in shapes), len(set(shapes)) > 1, sample.structure)
        kinds.setdefault(repr(kind), []).append(sample)
    rows = zip_longest(*kinds.values())
    return [sample for row in rows for sample in row if sample is not None][:count]


def cotangents(counterpart: Counterpart, sample: Sample) -> list[torch.Tensor]:
    """Weights for the float results of a sample; none where no argument is a float."""
    if not floating(sample.tensors):
        return []
    generator = torch.Generator().manual_seed(1)
    results = floating(sample.expected(sample.tensors)[: counterpart.results])
    return [torch.rand(result.shape, generator=generator, dtype=torch.float64) + 0.5 for result in results]
