"""Layers: trees of parameters, or of states when `steps` is given; `net[i]` reads every state of the tree at one point.

    policy = nn.MLP(4, 64, 2, name="policy", steps=i)
    logits = policy[i](obs)

Names are paths: `policy.0.weight`. Weights of linear layers are (out, in), as torch and Hugging Face store them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np

from tempo_ir.frontend import contractions, reductions
from tempo_ir.frontend import elementwise as el
from tempo_ir.frontend.checkpoint import read_safetensors, write_safetensors
from tempo_ir.frontend.description import Array
from tempo_ir.frontend.dims import Dim
from tempo_ir.frontend.dtypes import DType, f32
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.initialisers import constant, fan_in_uniform, normal, ones, orthogonal, uniform, zeros
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.shapes import split, take
from tempo_ir.frontend.state import Init, parameter_or_state
from tempo_ir.frontend.tensor import Tensor
from tempo_ir.frontend.trees import Node, leaves, tree_map
from tempo_ir.names import fresh_name

__all__ = [
    "MLP",
    "ActorCritic",
    "Embedding",
    "GRUCell",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "Module",
    "RMSNorm",
    "Sequential",
    "constant",
    "fan_in_uniform",
    "load",
    "normal",
    "ones",
    "orthogonal",
    "save",
    "uniform",
    "zeros",
]

Steps = Dim | Sequence[Dim] | None
Activation = Callable[[Tensor], Tensor]


class Module(Node):
    """Base of layers. Attributes that are tensors, modules, lists or dicts of them are the tree.

    A module of your own is a subclass that makes its parts in `__init__` and computes in `__call__`.
    """

    def __getitem__(self, key: Any) -> Any:
        """The module with every tensor read at one point of its steps: `net[i]`, `net[i, 0, 0]`."""
        return tree_map(lambda leaf: leaf[key], self)

    def named_tensors(self) -> dict[str, Tensor]:
        """The parameters or states by their path in the tree."""
        return dict(leaves(self))


def scope(name: str | None, default: str) -> str:
    """The name of a module: the given one, or a default that no other module of the program has."""
    names = current().module_names
    chosen = fresh_name(default, names, "") if name is None else name
    names.add(chosen)
    return chosen


class Linear(Module):
    """`x @ weight.T + bias`: (..., inputs) -> (..., outputs). First values as torch's."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        bias: bool = True,
        name: str | None = None,
        steps: Steps = None,
        dtype: DType = f32,
        init: Init | None = None,
    ):
        path = scope(name, "linear")
        first = fan_in_uniform(inputs)
        self.weight = parameter_or_state(f"{path}.weight", dtype[outputs, inputs], init or first, steps)
        self.bias = parameter_or_state(f"{path}.bias", dtype[outputs], first, steps) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's output."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight.T + bias` as one contraction: (..., k) and (n, k) -> (..., n)."""
    product = contractions.einsum("...k,nk->...n", x, weight)
    return product if bias is None else product + bias


class Embedding(Module):
    """Rows of a table at integer positions: (...) -> (..., width)."""

    def __init__(
        self,
        count: int,
        width: int,
        *,
        name: str | None = None,
        steps: Steps = None,
        dtype: DType = f32,
        init: Init | None = None,
    ):
        path = scope(name, "embedding")
        self.weight = parameter_or_state(f"{path}.weight", dtype[count, width], init or normal(), steps)

    def __call__(self, ids: Tensor) -> Tensor:
        """The rows."""
        return take(self.weight, ids, 0)


class RMSNorm(Module):
    """The last axis over its root mean square, times a weight (Zhang and Sennrich 2019)."""

    def __init__(
        self,
        width: int,
        *,
        eps: float = 1e-6,
        name: str | None = None,
        steps: Steps = None,
        dtype: DType = f32,
        init: Init | None = None,
    ):
        path = scope(name, "rmsnorm")
        self.weight = parameter_or_state(f"{path}.weight", dtype[width], ones() if init is None else init, steps)
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        """The normalised tensor."""
        return reductions.rms_norm(x, self.weight, self.eps)


class LayerNorm(Module):
    """The last axis shifted to mean 0, scaled to variance 1, times a weight, plus a bias (Ba et al. 2016)."""

    def __init__(
        self, width: int, *, eps: float = 1e-5, name: str | None = None, steps: Steps = None, dtype: DType = f32
    ):
        path = scope(name, "layernorm")
        self.weight = parameter_or_state(f"{path}.weight", dtype[width], ones(), steps)
        self.bias = parameter_or_state(f"{path}.bias", dtype[width], zeros(), steps)
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        """The normalised tensor."""
        return reductions.layer_norm(x, self.weight, self.bias, self.eps)


class Sequential(Module):
    """Modules and functions, one after the other."""

    def __init__(self, *parts: Callable[[Tensor], Tensor]):
        self.parts = list(parts)

    def __call__(self, x: Tensor) -> Tensor:
        """The output of the last part."""
        for part in self.parts:
            x = part(x)
        return x


class MLP(Module):
    """Linear layers of the given widths with an activation between them: `nn.MLP(4, 64, 2)` is 4 -> 64 -> 2."""

    def __init__(
        self,
        *widths: int,
        activation: Activation = el.tanh,
        name: str | None = None,
        steps: Steps = None,
        dtype: DType = f32,
    ):
        if len(widths) < 2:
            raise ProgramError(f"an MLP has two widths at least, its inputs and its outputs, got {list(widths)}")
        path = scope(name, "mlp")
        pairs = pairwise(widths)
        self.layers = [
            Linear(inputs, outputs, name=f"{path}.{position}", steps=steps, dtype=dtype)
            for position, (inputs, outputs) in enumerate(pairs)
        ]
        self.activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        """The output of the last layer, without activation."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


class GRUCell(Module):
    """A gated recurrent unit (Cho et al. 2014) with torch's gates: x (..., inputs), h (..., width) -> h (...,
    width)."""

    def __init__(self, inputs: int, width: int, *, name: str | None = None, steps: Steps = None, dtype: DType = f32):
        path = scope(name, "gru")
        first = fan_in_uniform(width)
        make = partial(_recurrent, path=path, dtype=dtype, steps=steps, init=first)
        self.weight_ih, self.bias_ih = make("ih", 3 * width, inputs)
        self.weight_hh, self.bias_hh = make("hh", 3 * width, width)

    def __call__(self, x: Tensor, h: Tensor) -> Tensor:
        """The next hidden state."""
        reset_x, update_x, new_x = split(linear(x, self.weight_ih, self.bias_ih), 3, -1)
        reset_h, update_h, new_h = split(linear(h, self.weight_hh, self.bias_hh), 3, -1)
        reset, update = el.sigmoid(reset_x + reset_h), el.sigmoid(update_x + update_h)
        new = el.tanh(new_x + reset * new_h)
        return (1.0 - update) * new + update * h


class LSTMCell(Module):
    """A long short-term memory (Hochreiter and Schmidhuber 1997) with torch's gates: x, (h, c) -> (h, c)."""

    def __init__(self, inputs: int, width: int, *, name: str | None = None, steps: Steps = None, dtype: DType = f32):
        path = scope(name, "lstm")
        first = fan_in_uniform(width)
        make = partial(_recurrent, path=path, dtype=dtype, steps=steps, init=first)
        self.weight_ih, self.bias_ih = make("ih", 4 * width, inputs)
        self.weight_hh, self.bias_hh = make("hh", 4 * width, width)

    def __call__(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The next hidden state and the next cell."""
        h, c = state
        gates = linear(x, self.weight_ih, self.bias_ih) + linear(h, self.weight_hh, self.bias_hh)
        enter, forget, new, leave = split(gates, 4, -1)
        cell = el.sigmoid(forget) * c + el.sigmoid(enter) * el.tanh(new)
        return el.sigmoid(leave) * el.tanh(cell), cell


def _recurrent(
    kind: str, outputs: int, inputs: int, *, path: str, dtype: DType, steps: Steps, init: Init
) -> tuple[Tensor, Tensor]:
    """The weight and the bias of one side of a recurrent cell, named as torch names them."""
    return (
        parameter_or_state(f"{path}.weight_{kind}", dtype[outputs, inputs], init, steps),
        parameter_or_state(f"{path}.bias_{kind}", dtype[outputs], init, steps),
    )


class ActorCritic(Module):
    """A policy and a value over one body: `nn.ActorCritic(4, 64, 64, 2)` gives logits (..., 2) and a value (...)."""

    def __init__(
        self,
        *widths: int,
        activation: Activation = el.tanh,
        name: str | None = None,
        steps: Steps = None,
        dtype: DType = f32,
    ):
        if len(widths) < 3:
            raise ProgramError(f"an ActorCritic has three widths at least, got {list(widths)}: inputs, hidden, actions")
        path = scope(name, "actorcritic")
        *body, actions = widths
        self.body = MLP(*body, activation=activation, name=f"{path}.body", steps=steps, dtype=dtype)
        self.policy = Linear(body[-1], actions, name=f"{path}.policy", steps=steps, dtype=dtype)
        self.value = Linear(body[-1], 1, name=f"{path}.value", steps=steps, dtype=dtype)
        self.activation = activation

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the actions, and the value."""
        hidden = self.activation(self.body(x))
        return self.policy(hidden), self.value(hidden)[..., 0]


def save(state: Mapping[str, Array], path: str | PathLike[str]) -> None:
    """Write arrays by name, such as `out.state`, as a safetensors file."""
    write_safetensors(path, {name: np.asarray(array) for name, array in state.items()})


def load(path: str | PathLike[str]) -> dict[str, Array]:
    """Read arrays by name from a safetensors file, to be given as `state`."""
    return dict(read_safetensors(path))
