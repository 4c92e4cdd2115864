"""numpy arrays and torch tensors: what comes in without a copy, and results in the kind of the arguments.

torch is never imported here: whoever passes a tensor has imported it.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from tempo_ir.reference.dtypes import Array


def is_torch(value: Any) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> Any:
    """The memory of a tensor, or of whatever else has `__dlpack__`, as an array; other values as they are.

    Nothing is copied of what lies row by row in the memory of this machine. Raises ValueError for a tensor that makes
    no array.
    """
    if is_torch(value):
        return array_of_tensor(value)
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack__"):
        return cast("Any", value)
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return value  # of a type that dlpack has not, or on another device: numpy is asked as for any value


def as_tensor(value: Any) -> Any:
    """A tensor over the memory of what has `__dlpack__`, wherever it lies; arrays of numpy and other values as they
    are."""
    if is_torch(value) or isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack__"):
        return cast("Any", value)
    torch = sys.modules["torch"]
    try:
        return torch.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return value


def array_of_tensor(tensor: Any) -> Array:
    """The memory of a tensor on the CPU, without gradients, as an array; bf16 as that of ml_dtypes. Raises ValueError
    for one that has no such memory: on 'meta', sparse, quantized, nested, under vmap, of 8-bit floats."""
    import ml_dtypes

    torch = sys.modules["torch"]
    try:
        plain = tensor.detach().cpu().resolve_neg()
        if plain.dtype == torch.bfloat16:
            return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return plain.numpy()
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"a tensor of {tensor.dtype} on '{tensor.device}' that makes no array: {error}") from None


def outline_of(tensor: Any) -> Array:
    """An array of the element type and the shape of a tensor that lies anywhere, with no elements of its own. Raises
    ValueError for a tensor whose elements lie nowhere, or not row by row."""
    torch = sys.modules["torch"]
    if tensor.is_meta or tensor.is_nested or tensor.layout is not torch.strided:
        raise ValueError(
            f"a tensor on '{tensor.device}' of layout {tensor.layout}, whose elements do not lie in memory"
        )
    one = array_of_tensor(torch.empty((), dtype=tensor.dtype))
    return np.broadcast_to(one, tuple(tensor.shape))


def tensor_of_array(array: Array) -> Any:
    """A tensor over the memory of an array."""
    torch = sys.modules["torch"]
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)
