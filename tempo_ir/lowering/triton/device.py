# pyright: basic
"""The GPU of this process, as torch and Triton see it, and packages that run on it.

Nothing here is imported before somebody asks for a GPU. Where the environment has `TRITON_INTERPRET=1` the device is
Triton's interpreter, which computes on the CPU.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from tempo_ir.lowering.triton.machines import name_of


class DeviceError(RuntimeError):
    """There is no GPU here that torch and Triton can use; the message says why."""


class OutOfDeviceMemoryError(RuntimeError):
    """The GPU has not the memory that a call takes."""


class FailedError(RuntimeError):
    """What a package raises for what has no value: the message, and the point."""

    def __init__(self, message: str, point: Mapping[str, int | range]):
        super().__init__(message)
        self.point = point


@dataclass(frozen=True)
class Device:
    """Where kernels run: torch's device, its name in words, and the machine it is (None in the interpreter)."""

    torch_device: Any
    name: str
    machine: str | None


def current_device() -> Device:
    """The device that torch computes on now. Raises DeviceError."""
    try:
        import torch
        from triton import knobs
        from triton.runtime import driver as drivers
    except ImportError as error:
        raise DeviceError(f"{error.name or 'torch or triton'} is not installed here") from None
    if knobs.runtime.interpret:
        mend_interpreter()
        return Device(torch.device("cpu"), "Triton's interpreter", None)
    try:
        driver: Any = drivers.active
        target, place = driver.get_current_target(), driver.get_active_torch_device()
    except (RuntimeError, AssertionError) as error:  # Triton finds no driver, or more than one; no libcuda
        seen = "sees no GPU" if not torch.cuda.is_available() else "sees one that Triton has no driver for"
        raise DeviceError(f"torch {torch.__version__} {seen} ({str(error).splitlines()[0]})") from None
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else str(place)
    return Device(place, name, name_of(target.backend, target.arch))


@cache
def mend_interpreter() -> None:
    """Let Triton's interpreter in this process compute with bf16 as GPUs do."""
    from tempo_ir.lowering.triton.interpreter_process import mend_bfloat16

    mend_bfloat16()


# ---- arrays ----


def on_device(value: Any, device: Device) -> Any:
    """An array of numpy's or a tensor, as a tensor on the device: the caller's own memory where it lies there."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().to(device.torch_device)
    plain = np.require(value, requirements=["C", "A"])
    plain = plain if plain.flags.writeable else plain.copy()  # torch warns of tensors over what is read only
    if plain.dtype.name == "bfloat16":
        tensor = torch.from_numpy(plain.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(plain)
    return tensor.to(device.torch_device)


# ---- packages ----


@dataclass(frozen=True)
class CompiledFiles:
    """A kernel that was compiled: the files of its code and of what Triton says of it, the types of its arguments by
    name, and the numbers of those that are multiples of 16."""

    code: Path
    metadata: Path
    signature: Mapping[str, str]
    aligned: Sequence[int]


def triton_version() -> str:
    """The version of Triton that is here, whose launches go with what it compiled. Raises DeviceError."""
    try:
        return version("triton")
    except PackageNotFoundError:
        raise DeviceError("triton is not installed here") from None


class LoadedPackage:
    """A package of kernels and their driver, imported from a directory under a name of its own."""

    def __init__(self, directory: Path, function: str):
        self.name = f"tempo_program_{uuid4().hex}"
        weakref.finalize(self, _forget, self.name)
        _import_package(directory / "__init__.py", self.name)
        self.driver: Any = importlib.import_module(f"{self.name}.driver")
        self.support: Any = importlib.import_module(f"{self.name}.support")
        self.function: Callable[..., Any] = getattr(self.driver, function)

    def adopt(self, device: Device, kernels: Mapping[str, CompiledFiles]) -> None:
        """Launch kernels on a device by their machine code, so that Triton compiles none of them there."""
        from triton.compiler import ASTSource, CompiledKernel

        for name, files in kernels.items():
            bound = getattr(self.driver, name, None)
            if bound is None:  # of no launch
                continue
            attributes: dict[Any, Any] = {(index,): [["tt.divisibility", 16]] for index in files.aligned}
            source = ASTSource(bound.kernel, dict(files.signature), {}, attributes)
            group = {path.name: str(path) for path in (files.metadata, files.code)}
            digest = hashlib.sha256(files.code.read_bytes()).hexdigest()
            bound.compiled[device.torch_device] = CompiledKernel(source, group, digest)

    def run(self, device: Device, arrays: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
        """The outputs by name, as tensors on the device.

        Raises FailedError for what has no value, OutOfDeviceMemoryError, and what a host object raises.
        """
        import torch

        # a program that is given no arrays computes on torch's default device
        place = nullcontext() if arrays else torch.device(device.torch_device)
        try:
            with place:
                return self.function(arrays, **arguments)
        except self.support.ProgramError as error:
            raise FailedError(error.message, error.point) from None
        except torch.cuda.OutOfMemoryError as error:
            raise OutOfDeviceMemoryError(str(error).splitlines()[0]) from None


def _import_package(path: Path, name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[str(path.parent)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _forget(name: str) -> None:
    """Let the modules of a package go."""
    for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[module]
