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
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from tempo_ir.lowering.triton.machines import name_of
from tempo_ir.lowering.triton.scalars import PLACE
from tempo_ir.lowering.triton.style import KernelSource

ROUNDS, LAUNCHES = 3, 5
"""Of a choice that is measured."""


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


class Choices(Protocol):
    """Where choices are kept that were measured."""

    def find(self, kernel: KernelSource, device: Device, bucket: str) -> tuple[int, int] | None:
        """Warps and stages for launches of a bucket of sizes, None where they are not known."""

    def keep(self, kernel: KernelSource, device: Device, bucket: str, choice: tuple[int, int]) -> None:
        """Know them from now on."""


class Tuned:
    """A kernel in the place of the one that a driver has bound, launched with the choice that is the fastest for
    launches of its sizes: what is not known is measured at the first launch, on copies of what it is given."""

    def __init__(self, bound: Any, kernel: KernelSource, choices: Choices):
        self.kernel, self.choices = kernel, choices
        self.bounds = {choice: _bound_with(bound, *choice) for choice in kernel.choices}
        self.sizes = [n for n, (name, kind) in enumerate(kernel.parameters) if kind == "i64" and name != PLACE]
        self.chosen: dict[Any, Any] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return partial(self.launch, grid)

    def launch(self, grid: tuple[int, ...], *arguments: Any) -> None:
        """Launch programs on the device of the first argument."""
        bucket = ", ".join(str(bucket_of(size)) for size in (*grid, *(arguments[n] for n in self.sizes)))
        place = arguments[0].device, bucket
        chosen = self.chosen.get(place)
        if chosen is None:
            chosen = self._choose(grid, arguments, bucket)
            if chosen is None:  # not now
                self.bounds[self.kernel.choices[0]][grid](*arguments)
                return
            self.chosen[place] = chosen
        chosen[grid](*arguments)

    def _choose(self, grid: tuple[int, ...], arguments: Sequence[Any], bucket: str) -> Any:
        """The kernel with the choice for a bucket; None where it cannot be measured now."""
        device = current_device()
        found = self.choices.find(self.kernel, device, bucket)
        if found is None:
            found = self._measured(grid, arguments)
            if found is None:
                return None
            self.choices.keep(self.kernel, device, bucket, found)
        return self.bounds[found]

    def _measured(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> tuple[int, int] | None:
        """The fastest choice; None while a graph is made, or where there is no memory for copies."""
        import torch
        from triton.runtime.errors import OutOfResources, PTXASError

        on_gpu = arguments[0].device.type == "cuda"
        if on_gpu and torch.cuda.is_current_stream_capturing():
            return None
        try:
            copies = [each.clone() if isinstance(each, torch.Tensor) else each for each in arguments]
        except torch.cuda.OutOfMemoryError:
            return None
        seconds: dict[tuple[int, int], float] = {}
        for choice, bound in self.bounds.items():
            with suppress(OutOfResources, PTXASError):  # a choice that the device has no room for
                bound[grid](*copies)  # compiles it
                seconds[choice] = measured(lambda bound=bound: bound[grid](*copies), on_gpu)
        return min(seconds, key=seconds.__getitem__, default=None)


def bucket_of(size: int) -> int:
    """Sizes of a bucket have the same power of two above them."""
    return max(0, size - 1).bit_length()


def measured(launch: Callable[[], None], on_gpu: bool) -> float:
    """The seconds that a launch takes: the least of a few rounds, of a few launches each."""
    import torch

    found: list[float] = []
    for _ in range(ROUNDS):
        if on_gpu:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(LAUNCHES):
                launch()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) / 1000 / LAUNCHES)
        else:
            start = time.perf_counter()
            for _ in range(LAUNCHES):
                launch()
            found.append((time.perf_counter() - start) / LAUNCHES)
    return min(found)


def _bound_with(bound: Any, warps: int, stages: int) -> Any:
    """A bound kernel with another choice, compiled for no device yet."""
    other = copy(bound)
    other.options, other.compiled = {"num_warps": warps, "num_stages": stages}, {}
    return other


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

    def tune(self, kernels: Iterable[KernelSource], choices: Choices) -> None:
        """Let launches of kernels take the choice of warps and stages that is known for their sizes, or measure it."""
        for kernel in kernels:
            bound = getattr(self.driver, kernel.name, None)
            if bound is not None and len(kernel.choices) > 1:
                setattr(self.driver, kernel.name, Tuned(bound, kernel, choices))

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
