"""The runtime: executables, their memory, host call-backs, arguments and statistics."""

from __future__ import annotations

from tempo_ir.runtime.executable import Executable, Result, compile
from tempo_ir.runtime.statistics import Statistics

__all__ = ["Executable", "Result", "Statistics", "compile"]
