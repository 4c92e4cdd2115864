"""The GPU target: the emitted package of Triton kernels and their driver, run in this process on the GPU that torch
sees.

The package is the one that `--emit-triton` writes. It lies in the cache of compiled programs, in a folder named after
its text; Triton compiles a kernel when it is first launched, and keeps it in a cache of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from tempo_ir.dialects import loop
from tempo_ir.lowering.llvm.host import Site
from tempo_ir.lowering.triton.compiling import TritonCompileError, compile_binaries
from tempo_ir.lowering.triton.device import (
    CompiledFiles,
    Device,
    DeviceError,
    FailedError,
    LoadedPackage,
    OutOfDeviceMemoryError,
    current_device,
    on_device,
    triton_version,
)
from tempo_ir.lowering.triton.machines import Machine, UnknownMachineError, machine_of
from tempo_ir.lowering.triton.module import print_module
from tempo_ir.lowering.triton.package import Package
from tempo_ir.lowering.triton.style import Style, UnknownPrecisionError, style_of
from tempo_ir.passes.remarks import is_listening
from tempo_ir.reference.calls import Outputs
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime.cache import Cache, key_of
from tempo_ir.runtime.calls import Request
from tempo_ir.runtime.errors import CallError, CompileError, NotEnoughMemoryError
from tempo_ir.runtime.executable import Compiled
from tempo_ir.runtime.frames import Callee, Frame
from tempo_ir.runtime.packed import Packed, packed_calls, parse_module, text_with_places, unpacked_calls
from tempo_ir.runtime.room import bytes_text, check_room
from tempo_ir.runtime.saved import BINARIES, PACKAGE, SavedProgram, check_unchanged, read_saved, write_saved
from tempo_ir.runtime.settings import Settings
from tempo_ir.runtime.statistics import Statistics
from tempo_ir.runtime.tensors import array_of_tensor, as_tensor
from tempo_ir.runtime.tuned import Choices

WAYS_OUT = (
    'use target="cpu"; or machine="sm_90" to compile for a GPU that is elsewhere and exe.save(DIR) for it; or '
    "tempo-run --emit-triton DIR for the Triton source"
)


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """What a compile for a GPU is asked for besides: the machine, the precision of f32 products, whether
    choices of warps and stages are measured."""

    machine: str
    precision: str
    autotune: bool = False

    @staticmethod
    def of(machine: str | None, precision: str | None, autotune: bool = False) -> GpuSettings:
        """The settings, by default for the GPU that is here. Raises CompileError where there is none, and for a machine
        or a precision that there is not."""
        try:
            name = machine_here() if machine is None else machine
            return GpuSettings(machine_of(name).name, style_of(precision).precision, autotune)
        except DeviceError as error:
            raise CompileError(
                f"target 'triton' runs on a GPU, and there is none: {error}. Ways out: {WAYS_OUT}"
            ) from None
        except (UnknownMachineError, UnknownPrecisionError) as error:
            raise CompileError(str(error)) from None

    @property
    def style(self) -> Style:
        """How kernels are printed."""
        return Style(precision=self.precision, machine=self.record if self.autotune else None)

    @property
    def record(self) -> Machine:
        """The machine."""
        return machine_of(self.machine)


def machine_here() -> str:
    """The machine of the device of this process; in Triton's interpreter any, which is then sm_80. Raises
    DeviceError."""
    return current_device().machine or "sm_80"


class TritonProgram(Compiled):
    """A program as Triton kernels and a driver in Python, on the GPU that torch computes on.

    Tensors may lie on the GPU, and then stay there; other arrays are copied. If one of the arguments is a tensor, the
    results are tensors on the GPU.
    """

    target = "triton"

    def __init__(
        self,
        program: Any,
        settings: Settings,
        gpu: GpuSettings,
        cache: Cache | None = None,
        saved: tuple[Path, SavedProgram] | None = None,
        recompile: bool = False,
    ):
        self._gpu, self._cache, self._saved, self._recompile = gpu, cache, saved, recompile
        self._imported: LoadedPackage | None = None
        self._ready = set[Any]()
        self._lock = threading.Lock()
        super().__init__(program, settings)

    # -- making it

    @property
    def _blocks(self) -> str:
        return self._gpu.record.blocks

    def _made(self) -> tuple[Callee, Statistics]:
        begin = time.perf_counter()
        if self._saved is not None:
            return self._unpacked(self._saved[1].header, begin)
        if self._cache is None or is_listening():
            return self._compiled()
        key = key_of(self.module, self.target, dataclasses.astuple(self._gpu), self.settings.parts)
        packed = self._cache.read(key)
        self._keep_recording()
        if packed is not None:
            return self._unpacked(packed.header, begin)
        made = self._compiled()
        self._cache.write(key, Packed(self._header(*made), ()))
        return made

    def _compiled(self) -> tuple[Callee, Statistics]:
        self.levels = self._lowered()
        self.package = self._coded(self.levels, lambda module: Package.of(module, self._gpu.style))
        (program,) = [op for op in self.lowered.ops if isinstance(op, loop.ProgramOp)]
        return Callee.of(program), self._counted(program)

    def _header(self, callee: Callee, statistics: Statistics) -> dict[str, Any]:
        """All that a process needs to run the program, but for the kernels' binaries: numbers and texts."""
        ending = callee.program.ending
        sites = [] if ending is None else [Site(ending, ())]
        return {
            "package": self.package.parts,
            "counts": statistics.counts,
            "gpu": dataclasses.asdict(self._gpu),
            **packed_calls(callee.program, callee.buffers, sites),
        }

    def _unpacked(self, header: Mapping[str, Any], begin: float) -> tuple[Callee, Statistics]:
        self.package = Package.of_parts(header["package"])
        program, buffers, _ = unpacked_calls(header)
        return Callee.of(program, buffers), Statistics.loaded(
            self.target, header["counts"], time.perf_counter() - begin
        )

    def save(self, path: str | Path) -> None:
        """Write a folder from which `tempo_ir.load` runs the program with no compile: its kernels as machine code for
        the machine that it is compiled for, which need not be here, and the package as source.

        Raises CompileError where Triton is not here or cannot compile a kernel, CallError where something else is in
        the folder, and OSError.
        """
        kernels = self.package.kernels
        try:
            binaries = compile_binaries(kernels, self._gpu.machine)
            made_with = triton_version()
        except (TritonCompileError, DeviceError) as error:
            raise CompileError(str(error)) from None
        header = {
            **self._header(self.callee, self.stats),
            "program": text_with_places(self.module),
            "settings": self.settings.parts,
            "triton": made_with,
        }
        named = {kernel.name: binary for kernel, binary in zip(kernels, binaries, strict=True)}
        write_saved(Path(path), SavedProgram(header, named), self.package.files)

    # -- calls

    def _taken(self, value: Any) -> Any:
        return as_tensor(value)

    def _given(self, outputs: Outputs, in_torch: bool) -> Mapping[str, Any]:
        return outputs if in_torch else {name: array_of_tensor(tensor) for name, tensor in outputs.items()}

    def _check_room(self, frame: Frame, request: Request) -> None:
        """The GPU is asked as memory is taken; rows that wait with the host are the host's."""
        check_room({"rows with the host": frame.placement.host_size}, "a call", request.bounds)

    def _device(self) -> Device:
        """Where a call runs. Raises CallError where there is no GPU."""
        try:
            return current_device()
        except DeviceError as error:
            raise CallError(
                f"the program is compiled for a GPU, and there is none: {error}. Ways out: {WAYS_OUT}"
            ) from None

    def _loaded(self, device: Device) -> LoadedPackage:
        """The package in this process, imported once, with the kernels that were saved for the device."""
        with self._lock:
            if self._imported is None:
                self._imported = LoadedPackage(self._directory(), self.package.function)
                if self._gpu.autotune and device.machine is not None and (self._saved is None or self._recompile):
                    folder = None if self._cache is None else self._cache.directory
                    self._imported.tune(self.package.kernels, Choices(folder))
            if self._saved is not None and not self._recompile and device.torch_device not in self._ready:
                self._imported.adopt(device, self._binaries(device, *self._saved))
                self._ready.add(device.torch_device)
            return self._imported

    def _binaries(self, device: Device, path: Path, saved: SavedProgram) -> dict[str, CompiledFiles]:
        """The files of the kernels that were saved. Raises CallError for another device than they were saved for."""
        if (reason := misfit(device, path, saved)) is not None:
            raise CallError(reason)
        files: dict[str, CompiledFiles] = {}
        for kernel in self.package.kernels:
            binary = saved.binaries[kernel.name]
            code, metadata = f"{BINARIES}/{kernel.name}.{binary.kind}", f"{BINARIES}/{kernel.name}.json"
            check_unchanged(path, {code: binary.code, metadata: binary.metadata})
            types = dict(kernel.parameters)
            files[kernel.name] = CompiledFiles(path / code, path / metadata, types, kernel.divisible)
        return files

    def _directory(self) -> Path:
        """The folder of the package, which is written where it is not there or another than it should be."""
        if self._saved is not None:
            check_unchanged(self._saved[0], {f"{PACKAGE}/{path}": text for path, text in self.package.files.items()})
            return self._saved[0] / PACKAGE
        files = self.package.files
        digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        kept = None if self._cache is None else self._cache.folder(digest, files)
        if kept is not None:
            return kept
        self._temporary = tempfile.TemporaryDirectory(prefix="tempo_ir_")
        self.package.write(Path(self._temporary.name))
        return Path(self._temporary.name)

    def _execute(self, frame: Frame, request: Request) -> Outputs:
        device = self._device()
        package = self._loaded(device)
        arrays = {name: on_device(array, device) for name, array in request.arrays.items()}
        bounds = {self.package.parameters[name]: value for name, value in request.bounds.items()}
        extents: dict[str, int] = {}
        told = {"extents": extents} if self.package.ends else {}
        arguments = {**bounds, "seed": request.seed, "start": request.start, "hosts": request.hosts, **told}
        try:
            outputs = package.run(device, arrays, **arguments)
        except FailedError as error:
            raise ExecutionError(str(error), None, error.point) from None
        except OutOfDeviceMemoryError as error:
            at = ", ".join(f"{name} = {value}" for name, value in request.bounds.items())
            raise NotEnoughMemoryError(
                f"a call{' with ' if at else ''}{at} needs about {bytes_text(frame.placement.size)} beside its arrays, "
                f"and {device.name} has not so much to give ({error}): compile with memory_budget= or remat=, give "
                "smaller bounds"
            ) from None
        kept = {name: arrays[name] for name in self.signature.parameters} if request.in_torch else {}
        return Outputs.of({**kept, **outputs}, {**request.bounds, **extents})

    # -- text

    def ir(self, level: str) -> str:
        if level != "triton":
            return super().ir(level)
        stream = StringIO()
        print_module(self.lowered, stream, self._gpu.style)
        return stream.getvalue()

    def write_triton(self, directory: Path, precision: str | None = None) -> None:
        if precision not in (None, self._gpu.precision):
            raise CallError(f"the program is compiled with precision '{self._gpu.precision}', not '{precision}'")
        self.package.write(directory)


def load_folder(path: Path, recompile: bool) -> TritonProgram:
    """The program that `TritonProgram.save` wrote. With `recompile` its kernels are compiled when they are launched
    first, from their source, for whatever device is here.

    Raises CompileError for a folder that is none, is damaged, is of another version, or was saved for another device
    than the one that is here.
    """
    path = path.resolve()
    saved = read_saved(path)
    header = saved.header
    if not recompile:
        with suppress(DeviceError):  # a call says so
            if (reason := misfit(current_device(), path, saved)) is not None:
                raise CompileError(reason)
    settings, gpu = Settings.of(header["settings"]), GpuSettings(**header["gpu"])
    return TritonProgram(parse_module(header["program"]), settings, gpu, saved=(path, saved), recompile=recompile)


def misfit(device: Device, path: Path, saved: SavedProgram) -> str | None:
    """Why a device cannot run the kernels that were saved, None if it can."""
    machine, made_with, here = saved.header["gpu"]["machine"], saved.header["triton"], triton_version()
    ways_out = f"compile the program for it and save that, or load({str(path)!r}, recompile=True)"
    if device.machine != machine:
        is_what = "runs no machine code" if device.machine is None else f"is {device.machine}"
        return f"{path} was saved for {machine}, and {device.name} {is_what}: {ways_out}"
    if here != made_with:
        return f"{path} was saved with triton {made_with}, and here is {here}, which may launch otherwise: {ways_out}"
    return None
