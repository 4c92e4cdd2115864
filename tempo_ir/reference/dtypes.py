"""Element types in numpy: bf16 is that of ml_dtypes, bool is numpy's own, integers and floats by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from tempo_ir.dialects.types import DTYPES, dtype_name

Array: TypeAlias = NDArray[Any]
DType: TypeAlias = np.dtype[Any]

NUMPY_DTYPES: Mapping[str, DType] = MappingProxyType(
    {
        "bool": np.dtype(np.bool_),
        "i8": np.dtype(np.int8),
        "i16": np.dtype(np.int16),
        "i32": np.dtype(np.int32),
        "i64": np.dtype(np.int64),
        "u8": np.dtype(np.uint8),
        "f16": np.dtype(np.float16),
        "bf16": np.dtype(ml_dtypes.bfloat16),
        "f32": np.dtype(np.float32),
        "f64": np.dtype(np.float64),
    }
)
_NAMES: Mapping[DType, str] = MappingProxyType({dtype: name for name, dtype in NUMPY_DTYPES.items()})


def numpy_dtype(element_type: Attribute) -> DType:
    """The numpy dtype of an element type; raises VerifyException for a foreign type."""
    return NUMPY_DTYPES[dtype_name(element_type)]


def element_type(dtype: DType) -> Attribute:
    """The element type of a numpy dtype; raises TypeError where arrays of it cannot be tensors."""
    if (name := _NAMES.get(dtype)) is not None:
        return DTYPES[name]
    raise TypeError(f"arrays of dtype {dtype} cannot be tensors; use one of {', '.join(NUMPY_DTYPES)}")


def wide(dtype: DType) -> DType:
    """The dtype in which elements are computed and accumulated: f32 for f16 and bf16, else the dtype itself."""
    return np.dtype(np.float32) if dtype in (NUMPY_DTYPES["f16"], NUMPY_DTYPES["bf16"]) else dtype
