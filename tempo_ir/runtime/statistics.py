"""What compiling a program took, what it made, and what the last call used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Statistics:
    """Counts of an executable.

    `compile_seconds` by stage; `kernels` are distinct, `launches` the places in the program that launch one,
    `host_sites` the places where Python is called. `peak_bytes` is the memory of the last call beside the caller's
    arrays; `bytes_by_class` that of the buffers by owner or storage class, before they share memory.
    """

    target: str
    compiles: int
    compile_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    kernels: int = 0
    launches: int = 0
    host_sites: int = 0
    peak_bytes: int = 0
    bytes_by_class: Mapping[str, int] = field(default_factory=dict[str, int])
    cached: bool = False
