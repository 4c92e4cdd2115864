"""tempo_ir: a multi-level IR compiler for recurrent-tensor programs.

This module is the public API and nothing else. Every name loads on first use (PEP 562), so `import tempo_ir` costs
nothing and a tool that needs only the dialects never imports numpy, islpy or llvmlite.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any

__version__ = "0.1.0"

# module -> the public names that it defines
_PUBLIC = MappingProxyType(
    {
        "tempo_ir.runtime": "Executable compile load memory_timeline",
        "tempo_ir.runtime.profile": "profile",
        "tempo_ir.frontend.cases": "tensor",
        "tempo_ir.frontend.contractions": "einsum matmul",
        "tempo_ir.frontend.declarations": "input output",
        "tempo_ir.frontend.dims": "Dim dim dims",
        "tempo_ir.frontend.dtypes": "DType Spec bf16 f16 f32 f64 i8 i16 i32 i64 u8",
        "tempo_ir.frontend.elementwise": (
            "abs cast ceil clip cos equal erf exp floor gelu ln log1p logical_and logical_not logical_or "
            "maximum minimum not_equal relu round rsqrt sigmoid sign silu sin softplus sqrt "
            "stop_gradient tanh where"
        ),
        "tempo_ir.frontend.errors": "ProgramError",
        "tempo_ir.frontend.gradients": "custom_gradient grad value_and_grad",
        "tempo_ir.frontend.host": "host log",
        "tempo_ir.frontend.program": "Program load_program program",
        "tempo_ir.frontend.reductions": (
            "all any argmax argmin cross_entropy cumprod cumsum entropy layer_norm log_prob log_softmax "
            "logsumexp max mean min prod rms_norm select_last softmax std sum var"
        ),
        "tempo_ir.frontend.shapes": (
            "arange argsort broadcast_to concat expand_dims flatten full one_hot ones pad reshape "
            "reverse scatter_add sort split squeeze stack take transpose unstack zeros"
        ),
        "tempo_ir.frontend.state": "State parameter state",
        "tempo_ir.frontend.tensor": "Tensor",
        "tempo_ir.frontend.trees": "record",
    }
)

# public name -> where it is, `module:name`
_EXPORTS = MappingProxyType(
    {name: f"{module}:{name}" for module, names in _PUBLIC.items() for name in names.split()}
    | {"bool": "tempo_ir.frontend.dtypes:bool_", "print": "tempo_ir.frontend.host:log", "pi": "math:pi"}
)

# public name -> submodule that it stands for
_SUBMODULES: MappingProxyType[str, str] = MappingProxyType(
    {name: f"tempo_ir.frontend.{name}" for name in ("llm", "nn", "optim", "random", "rl")}
)


def __getattr__(name: str) -> Any:
    """Import the public name `name` from the module that defines it, and keep it for the next use."""
    if name in _EXPORTS:
        module, _, attribute = _EXPORTS[name].partition(":")
        value = getattr(import_module(module), attribute)
    elif name in _SUBMODULES:
        value = import_module(_SUBMODULES[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_EXPORTS, *_SUBMODULES})
