"""What one process keeps on disk for the next ones: a folder of entries, files named by digests of all that they follow
from.

Files are written beside their place and renamed, so that no process sees a part of one. The entries used least recently
go when all together take more than `TEMPO_CACHE_BYTES`.

`TEMPO_CACHE_DIR` says where they lie, by default `tempo_ir` in the user's cache (XDG); empty, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import tempo_ir

DIRECTORY, SIZE = "TEMPO_CACHE_DIR", "TEMPO_CACHE_BYTES"
DEFAULT_BYTES = 1 << 29
PROGRAM, FOLDER, TUNED, RECORDED = ".tempo", ".triton", ".tuned", ".recorded"
"""How entries end: compiled programs, source for GPUs, what was measured, what is known of programs as recorded."""
PART = ".part"


@dataclass(frozen=True)
class Kept:
    """The entries of a folder."""

    directory: Path
    most_bytes: int

    def read_entry(self, name: str) -> bytes | None:
        """The bytes of an entry, which is then the one used last; None where there is none."""
        path = self.directory / name
        try:
            with open(path, "rb") as file:
                data = file.read()
            os.utime(path)
        except OSError:
            return None
        return data

    def write_entry(self, name: str, data: bytes) -> None:
        """Make an entry, or nothing where the folder cannot be written."""
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            write_whole(self.directory / name, data)
            self.shrink()

    def shrink(self) -> None:
        """Remove the entries used least recently until the others fit."""
        entries: list[tuple[float, int, Path]] = []
        ends = (PROGRAM, FOLDER, TUNED, RECORDED)
        for path in [path for path in self.directory.iterdir() if path.name.endswith(ends)]:
            with suppress(OSError):  # another process has just removed it
                status = path.stat()
                size = _folder_bytes(path) if path.is_dir() else status.st_size
                entries.append((status.st_mtime, size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries)[:-1]:
            if total <= self.most_bytes:
                return
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            total -= size


def _folder_bytes(folder: Path) -> int:
    """The bytes of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all. Raises OSError, of that file."""
    part: str | None = None
    try:
        handle, part = tempfile.mkstemp(PART, path.name, path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError as error:
        if part is not None:
            Path(part).unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def where_kept() -> tuple[Path, int] | None:
    """The folder that the environment names and the most bytes in it; None where nothing is kept. Raises ValueError for
    a size that is none."""
    given = os.environ.get(DIRECTORY)
    if given == "":
        return None
    text = os.environ.get(SIZE) or str(DEFAULT_BYTES)
    if not text.isdecimal():
        raise ValueError(f"{SIZE} is '{text}': give the bytes that compiled programs may take on disk")
    if given is not None:
        return _expanded(given), int(text)
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return Path(home) / "tempo_ir", int(text)


def _expanded(given: str) -> Path:
    """A folder whose `~` is the user's home, where there is one: no shell has replaced it in a file of settings."""
    try:
        return Path(given).expanduser()
    except RuntimeError:  # a user without a home
        return Path(given)


def digest_of(parts: Iterable[str]) -> str:
    """The name of what follows from some texts in this order and from nothing else."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


@cache
def versions() -> tuple[str, ...]:
    """What says what a program means: this package, as its files are, xDSL and isl."""
    root = os.path.dirname(tempo_ir.__file__)
    sources = hashlib.sha256(repr(sorted(_sources(root, ""))).encode())
    return tempo_ir.__version__, sources.hexdigest(), version("xdsl"), version("islpy")


def _sources(root: str, folder: str) -> Iterator[tuple[str, int, int]]:
    """The files of Python in a folder of the root, and below: path, bytes and time of the last change."""
    with os.scandir(os.path.join(root, folder)) as entries:
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield path, status.st_size, status.st_mtime_ns
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(root, path)
