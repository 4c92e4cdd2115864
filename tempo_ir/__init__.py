"""tempo_ir: a multi-level IR compiler for recurrent-tensor programs.

This module is the public API and nothing else. Every name loads on first use (PEP 562), so `import tempo_ir` costs nothing and
a tool that needs only the dialects never imports numpy, islpy or llvmlite.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it
_EXPORTS = MappingProxyType(
    {
        "Executable": "tempo_ir.runtime",
        "compile": "tempo_ir.runtime",
    }
)

# public name -> submodule that it stands for
_SUBMODULES: MappingProxyType[str, str] = MappingProxyType({})


def __getattr__(name: str) -> Any:
    """Import the public name `name` from the module that defines it, and keep it for the next use."""
    if name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    elif name in _SUBMODULES:
        value = import_module(_SUBMODULES[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_EXPORTS, *_SUBMODULES})
