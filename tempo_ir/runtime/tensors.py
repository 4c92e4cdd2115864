"""numpy arrays and torch tensors: what comes in without a copy, and results in the kind of the arguments.

torch is never imported here: whoever passes a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tempo_ir.reference.dtypes import Array


def is_torch(value: Any) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def any_torch(values: Iterable[Any]) -> bool:
    """Whether results are to be torch tensors: one of the arguments is."""
    return any(map(is_torch, values))


def as_arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors as arrays over the same memory; other values as they are."""
    return {name: array_of_tensor(value) if is_torch(value) else value for name, value in values.items()}


def array_of_tensor(tensor: Any) -> Array:
    """The memory of a tensor on the CPU, without gradients, as an array; bf16 as that of ml_dtypes."""
    import ml_dtypes

    torch = sys.modules["torch"]
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def outline_of(tensor: Any) -> Array:
    """An array of the element type and the shape of a tensor that lies anywhere, with no elements of its own."""
    torch = sys.modules["torch"]
    one = array_of_tensor(torch.empty((), dtype=tensor.dtype))
    return np.broadcast_to(one, tuple(tensor.shape))


def tensor_of_array(array: Array) -> Any:
    """A tensor over the memory of an array."""
    torch = sys.modules["torch"]
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)
