"""Choices that were measured, on disk: by kernel, device and bucket of sizes the warps and stages that ran fastest.

A file holds those of one kernel on one kind of device, named by all that they depend on: the text of the kernel, the
device, the version of Triton and the candidates. It is written whole; what is damaged, or names no candidate, counts as
not measured.
"""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tempo_ir.kept import TUNED, write_whole
from tempo_ir.lowering.triton.device import Device, triton_version
from tempo_ir.lowering.triton.style import KernelSource

Pair = tuple[int, int]
"""Warps and stages."""


@dataclass
class Choices:
    """The choices of a folder; without one, of this process."""

    directory: Path | None
    _known: dict[str, dict[str, Pair]] = field(default_factory=dict[str, dict[str, Pair]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, kernel: KernelSource, device: Device, bucket: str) -> Pair | None:
        """The choice for launches of a bucket, None where it was not measured yet."""
        key = key_of(kernel, device)
        with self._lock:
            if bucket not in self._known.get(key, {}):
                self._known[key] = self._read(key, kernel) | self._known.get(key, {})
            return self._known[key].get(bucket)

    def keep(self, kernel: KernelSource, device: Device, bucket: str, choice: Pair) -> None:
        """Keep a choice, on disk where the folder can be written."""
        key = key_of(kernel, device)
        with self._lock:
            known = self._known[key] = self._read(key, kernel) | self._known.get(key, {}) | {bucket: choice}
            if self.directory is None:
                return
            with suppress(OSError):
                self.directory.mkdir(parents=True, exist_ok=True)
                told = {"kernel": kernel.name, "device": device.name, "choices": known}
                write_whole(self._path(key), json.dumps(told, indent=1, sort_keys=True).encode())

    def _path(self, key: str) -> Path:
        assert self.directory is not None
        return self.directory / f"{key}{TUNED}"

    def _read(self, key: str, kernel: KernelSource) -> dict[str, Pair]:
        """What the file says, as far as it makes sense."""
        if self.directory is None:
            return {}
        try:
            told: dict[str, Any] = json.loads(self._path(key).read_bytes())["choices"]
            found = {bucket: (warps, stages) for bucket, (warps, stages) in told.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
        return {bucket: choice for bucket, choice in found.items() if choice in kernel.choices}


def key_of(kernel: KernelSource, device: Device) -> str:
    """The name of the file of a kernel on a device."""
    parts = (kernel.alone, kernel.parameters, sorted(kernel.aligned), kernel.choices)
    whole = (*parts, device.name, device.machine, triton_version())
    return hashlib.sha256(repr(whole).encode()).hexdigest()
