"""Optimisers. `optim.Adam(1e-3).minimize(loss, net)` takes the gradient and sets `next` of every state in `net`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tempo_ir import index as ix
from tempo_ir.frontend import elementwise as el
from tempo_ir.frontend import reductions
from tempo_ir.frontend.dims import Dim
from tempo_ir.frontend.dtypes import DType, f64
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.gradients import grad
from tempo_ir.frontend.state import State, state
from tempo_ir.frontend.tensor import Tensor
from tempo_ir.frontend.trees import leaves

Rate = float | Dim | Tensor


@dataclass(frozen=True)
class Optimiser(ABC):
    """Base of the optimisers; `max_norm` clips the gradients by their common norm before the step (Pascanu et al.
    2013)."""

    learning_rate: Rate

    def minimize(self, loss: Tensor, parameters: Any) -> None:
        """Set the update of every state in the tree `parameters` to one step down the gradient of `loss`."""
        states = states_in(parameters)
        gradients = [grad(loss, one) for one in states]
        self.update(states, gradients)

    def update(self, states: Sequence[State], gradients: Sequence[Tensor]) -> None:
        """Set the update of the states for gradients at hand, one per state."""
        for one, gradient in zip(states, clipped(gradients, self.limit), strict=True):
            one.next = self.step(one, gradient)

    @property
    @abstractmethod
    def limit(self) -> float | None:
        """The greatest common norm of the gradients, if they are clipped."""

    @abstractmethod
    def step(self, parameter: State, gradient: Tensor) -> Tensor:
        """The value after the step."""


@dataclass(frozen=True)
class SGD(Optimiser):
    """Stochastic gradient descent with momentum, as torch.optim.SGD: `v = momentum * v + g; w = w - lr * v`."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    max_norm: float | None = None

    @property
    def limit(self) -> float | None:
        return self.max_norm

    def step(self, parameter: State, gradient: Tensor) -> Tensor:
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameter
        if self.momentum:
            velocity = moment("sgd.velocity", parameter)
            gradient = self.momentum * velocity + gradient
            velocity.next = gradient
        return parameter - typed(self.learning_rate, parameter.dtype) * gradient


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma and Ba 2015) with bias correction, as torch.optim.Adam; `weight_decay` is decoupled, as in AdamW.

    The corrections `1 - beta ** step` are taken in f64, where f32 would lose four digits of the first ones.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_norm: float | None = None

    @property
    def limit(self) -> float | None:
        return self.max_norm

    def step(self, parameter: State, gradient: Tensor) -> Tensor:
        first, second = self.betas
        mean, power = moment("adam.m", parameter), moment("adam.v", parameter)
        mean.next = first * mean + (1 - first) * gradient
        power.next = second * power + (1 - second) * (gradient * gradient)
        rate, root = self.corrections(parameter)
        step = mean.next / (el.sqrt(power.next) / root + self.eps)
        kept: Tensor = parameter
        if self.weight_decay:
            kept = parameter * (1.0 - typed(self.learning_rate, parameter.dtype) * self.weight_decay)
        return kept - rate * step

    def corrections(self, parameter: State) -> tuple[Tensor, Tensor]:
        """The learning rate over the first correction, and the root of the second; equal ones are recorded once."""
        recording, (first, second) = parameter.recording, self.betas
        rate = self.learning_rate
        rate_key = ("tensor", id(rate.value), rate.index) if isinstance(rate, Tensor) else str(rate)
        key = ("adam", rate_key, self.betas, parameter.steps, parameter.dtype)
        if (*key, "rate") not in recording.constants:
            count = step_number(parameter)
            scaled = el.cast(rate, f64) / (1.0 - first**count)
            root = el.sqrt(1.0 - second**count)
            recording.constants[(*key, "rate")] = el.cast(scaled, parameter.dtype).value
            recording.constants[(*key, "root")] = el.cast(root, parameter.dtype).value
        return Tensor(recording, recording.constants[(*key, "rate")]), Tensor(
            recording, recording.constants[(*key, "root")]
        )


def states_in(parameters: Any) -> list[State]:
    """The states of a tree; raises ProgramError for a parameter, which has no steps, and for an empty tree."""
    found = [leaf for _, leaf in leaves(parameters)]
    if not found:
        raise ProgramError("there is nothing to minimise over: give a state, or a module made with steps=...")
    states: list[State] = []
    for leaf in found:
        if not isinstance(leaf, State):
            raise ProgramError(
                f"{leaf.name} cannot be updated: make it a tp.state, or the module with steps=..., and give the "
                "module itself, "
                "not net[i]"
            )
        states.append(leaf)
    return states


def moment(prefix: str, parameter: State) -> State:
    """A state of zeros beside a parameter: `adam.m.weight` of `weight`."""
    steps = [Dim(ix.Sym(name)) for name in parameter.steps]
    return state(f"{prefix}.{parameter.label}", parameter.wanted, 0.0, steps=steps)


def step_number(parameter: State) -> Tensor:
    """How many steps there are up to and including this one, as an f64 scalar over the steps of the parameter."""
    position: ix.Expr = ix.Const(0)
    for name in parameter.steps:
        position = position * parameter.recording.dims[name] + ix.Sym(name)
    return el.cast(Dim(position + 1), f64)


def typed(rate: Rate, dtype: DType) -> Tensor | float:
    """A learning rate in the type of a parameter; a number stays weak."""
    return rate if isinstance(rate, float | int) else el.cast(rate, dtype)


def clipped(gradients: Sequence[Tensor], limit: float | None) -> list[Tensor]:
    """The gradients scaled so that their common norm is at most `limit`, as torch's clip_grad_norm_."""
    if limit is None:
        return list(gradients)
    total: Tensor | None = None
    for gradient in gradients:
        power = reductions.sum(gradient * gradient)
        total = power if total is None else total + power
    if total is None:
        return []
    scale = el.minimum(limit / (el.sqrt(total) + 1e-6), 1.0)
    return [gradient * el.cast(scale, gradient.dtype) for gradient in gradients]
