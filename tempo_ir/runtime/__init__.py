"""The runtime: executables, their memory, host call-backs, arguments and statistics."""

from __future__ import annotations

from tempo_ir.runtime.executable import Executable, Result, compile, load, memory_timeline
from tempo_ir.runtime.statistics import Statistics
from tempo_ir.runtime.timeline import Timeline

__all__ = ["Executable", "Result", "Statistics", "Timeline", "compile", "load", "memory_timeline"]
