"""A program for a GPU on disk: a folder that another process runs with no compile.

DIR/program.json        what the program is, what it was compiled for, and a digest of each file
DIR/package/            kernels and driver as source, as `--emit-triton` writes them
DIR/binaries/NAME.cubin the machine code of a kernel (hsaco for AMD's), and NAME.json, what Triton says of it
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempo_ir import __version__
from tempo_ir.lowering.triton.compiling import Binary
from tempo_ir.runtime.errors import CallError, CompileError

FORMAT = 1
MANIFEST, PACKAGE, BINARIES = "program.json", "package", "binaries"
AGAIN = "save it again"


@dataclass(frozen=True)
class SavedProgram:
    """What a folder holds: a header of numbers and texts, and the binaries of kernels by name."""

    header: Mapping[str, Any]
    binaries: Mapping[str, Binary]


def write_saved(directory: Path, saved: SavedProgram, package: Mapping[str, str]) -> None:
    """Write a folder, in the place of one that was saved there before, so that no process sees a part of it.

    Raises CallError where something else is in its place, and OSError.
    """
    if directory.exists() and not (directory / MANIFEST).exists() and (directory.is_file() or any(directory.iterdir())):
        raise CallError(f"{directory} is no folder of a saved program: name one that is not there yet")
    directory.parent.mkdir(parents=True, exist_ok=True)
    contents = {f"{PACKAGE}/{path}": text.encode() for path, text in package.items()}
    for name, binary in saved.binaries.items():
        contents[f"{BINARIES}/{name}.{binary.kind}"] = binary.code
        contents[f"{BINARIES}/{name}.json"] = binary.metadata.encode()
    kinds = {name: binary.kind for name, binary in saved.binaries.items()}
    digests = {path: _digest(data) for path, data in contents.items()}
    header = {**saved.header, "format": FORMAT, "made_by": __version__, "kinds": kinds, "digests": digests}
    text = json.dumps(header, indent=1)
    contents[MANIFEST] = json.dumps({"digest": _digest(text.encode()), "header": text}).encode()
    with tempfile.TemporaryDirectory(".part", directory.name, directory.parent) as part:
        whole = Path(part) / "whole"
        for path, data in contents.items():
            (whole / path).parent.mkdir(parents=True, exist_ok=True)
            (whole / path).write_bytes(data)
        if directory.exists():
            shutil.move(directory, Path(part) / "before")
        os.replace(whole, directory)


def read_saved(directory: Path) -> SavedProgram:
    """What a folder holds, all of it as it was written. Raises CompileError for one that is none, is damaged, or is of
    another version."""
    header = _header(directory)
    if header.get("format") != FORMAT or header.get("made_by") != __version__:
        made_by = header.get("made_by", "another version")
        raise CompileError(f"{directory} was saved by tempo_ir {made_by}, this is {__version__}: {AGAIN}")
    contents: dict[str, bytes] = {}
    for path, digest in header["digests"].items():
        contents[path] = _read(directory / path)
        if _digest(contents[path]) != digest:
            raise CompileError(f"{directory / path} is not what was saved there: {AGAIN}")
    binaries: dict[str, Binary] = {}
    for name, kind in header["kinds"].items():
        stem = f"{BINARIES}/{name}"
        binaries[name] = Binary(kind, contents[f"{stem}.{kind}"], contents[f"{stem}.json"].decode())
    return SavedProgram(header, binaries)


def check_unchanged(directory: Path, contents: Mapping[str, str | bytes]) -> None:
    """Raises CallError where files of a folder are not what they were when it was loaded."""
    for path, data in contents.items():
        whole = data.encode() if isinstance(data, str) else data
        if not (directory / path).exists() or (directory / path).read_bytes() != whole:
            raise CallError(f"{directory / path} has changed since the program was loaded: load it again")


def _header(directory: Path) -> dict[str, Any]:
    data = _read(directory / MANIFEST)
    try:
        manifest = json.loads(data)
        text = manifest["header"]
        if _digest(text.encode()) == manifest["digest"]:
            return json.loads(text)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise CompileError(f"{directory / MANIFEST} is not what was saved there: {AGAIN}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror}: {AGAIN}") from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
