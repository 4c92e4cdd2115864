"""Compiled programs on disk: a program that was compiled before, by whatever process, is loaded and no pass runs.

An entry is a file named by all that its code depends on: the text of the program with its places, what the compile was
asked for, the machine, and the versions of this package, of xDSL and of LLVM. Files are written beside their place and
renamed, so that no process sees a part of one; what is damaged is written anew. A program for a GPU has a folder of
source beside its entry, named by its text. The entries used least recently go when
all together take more than `TEMPO_CACHE_BYTES`.

`TEMPO_CACHE_DIR` says where they lie, by default `tempo_ir` in the user's cache (XDG); empty, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, FileLineColLoc, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer

import tempo_ir
from tempo_ir.dialects.sdg.attributes import DomainAttr, IndexAttr
from tempo_ir.lowering.llvm.engine import llvm_version
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.packed import Damaged, Packed

DIRECTORY, SIZE = "TEMPO_CACHE_DIR", "TEMPO_CACHE_BYTES"
DEFAULT_BYTES = 1 << 29
SUFFIX, FOLDER_SUFFIX, TUNED_SUFFIX = ".tempo", ".triton", ".tuned"
PART_SUFFIX = ".part"


@dataclass(frozen=True)
class Cache:
    """The entries of a folder."""

    directory: Path
    most_bytes: int

    def path(self, key: str) -> Path:
        """The file of an entry."""
        return self.directory / f"{key}{SUFFIX}"

    def read(self, key: str) -> Packed | None:
        """An entry, which is then the one used last; None where there is none, or it is damaged."""
        path = self.path(key)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        with suppress(Damaged):
            return Packed.of_bytes(data)
        return None

    def write(self, key: str, packed: Packed) -> None:
        """Make an entry, or nothing where the folder cannot be written."""
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            write_whole(self.path(key), packed.to_bytes())
            self._shrink()

    def folder(self, key: str, files: Mapping[str, str]) -> Path | None:
        """A folder that has these files, of which none is written that is there; None where it cannot be made."""
        folder = self.directory / f"{key}{FOLDER_SUFFIX}"
        try:
            for path, text in files.items():
                if not _holds(folder / path, text):
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    write_whole(folder / path, text.encode())
            os.utime(folder)
        except OSError:
            return None
        self._shrink()
        return folder

    def _shrink(self) -> None:
        """Remove the entries used least recently until the others fit."""
        entries: list[tuple[float, int, Path]] = []
        for path in [path for end in (SUFFIX, FOLDER_SUFFIX, TUNED_SUFFIX) for path in self.directory.glob(f"*{end}")]:
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


def _holds(path: Path, text: str) -> bool:
    """Whether a file is there and has a text."""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all. Raises OSError."""
    handle, part = tempfile.mkstemp(PART_SUFFIX, path.name, path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise


def default_cache() -> Cache | None:
    """The cache that the environment names; None where there is none. Raises CompileError for a size that is none."""
    given = os.environ.get(DIRECTORY)
    if given == "":
        return None
    text = os.environ.get(SIZE) or str(DEFAULT_BYTES)
    if not text.isdecimal():
        raise CompileError(f"{SIZE} is '{text}': give the bytes that compiled programs may take on disk")
    if given is not None:
        return Cache(_expanded(given), int(text))
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return Cache(Path(home) / "tempo_ir", int(text))


def _expanded(given: str) -> Path:
    """A folder whose `~` is the user's home, where there is one: no shell has replaced it in a file of settings."""
    try:
        return Path(given).expanduser()
    except RuntimeError:  # a user without a home
        return Path(given)


def key_of(module: ModuleOp, *others: object) -> str:
    """The name of an entry: a digest of a program and of whatever else its code depends on, as text."""
    digest = hashlib.sha256()
    for part in (*versions(), *map(repr, others), program_text(module)):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


@cache
def versions() -> tuple[str, ...]:
    """What makes code: this package, as its files are, xDSL and LLVM."""
    root = os.path.dirname(tempo_ir.__file__)
    sources = hashlib.sha256(repr(sorted(_sources(root, ""))).encode())
    return tempo_ir.__version__, sources.hexdigest(), version("xdsl"), llvm_version()


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


def program_text(module: ModuleOp) -> str:
    """All that a module says, with its places and the names of its values, as a text that no other module has."""
    text = _Text()
    text.operation(module)
    return "\n".join(text.parts)


REMEMBERED: tuple[type[Attribute], ...] = (DomainAttr, IndexAttr, TensorType, FileLineColLoc)
"""Attributes that a program repeats, and whose texts differ where they do; `0.0` and `-0.0` are equal numbers."""


class _Text:
    """
    The parts of a module one by one: of an op its name, operands, results with their types and names, properties,
    attributes, successors, place, and its regions. Values and blocks are numbers. It is a quarter of the work of
    printing, and as far as a warm start is concerned all that is left of it.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._numbers: dict[int, int] = {}
        self._same: dict[int, str] = {}
        self._equal: dict[Attribute, str] = {}
        self._printer = Printer()

    def operation(self, op: Operation) -> None:
        """An op and what is in it."""
        add, attribute = self.parts.append, self._attribute
        add(op.name)
        add(" ".join([self._number(value) for value in op.operands]))
        for result in op.results:
            add(f"{self._number(result)} {result.name_hint}")
            add(attribute(result.type))
        for named in (op.properties, op.attributes):
            add(str(len(named)))
            for name, value in named.items():
                add(name)
                add(attribute(value))
        add(" ".join([self._number(block) for block in op.successors]))
        add(attribute(op.location))
        add(str(len(op.regions)))
        for region in op.regions:
            for block in region.blocks:
                add(f"block {self._number(block)} {len(block.args)}")
                for argument in block.args:
                    add(f"{self._number(argument)} {argument.name_hint}")
                    add(attribute(argument.type))
                for inner in block.ops:
                    self.operation(inner)
            add("end")

    def _number(self, value: SSAValue | Block) -> str:
        return str(self._numbers.setdefault(id(value), len(self._numbers)))

    def _attribute(self, attribute: Attribute) -> str:
        text = self._same.get(id(attribute))
        if text is None:
            remembered = isinstance(attribute, REMEMBERED)
            text = self._equal.get(attribute) if remembered else None
            if text is None:
                text = self._printed(attribute)
            if remembered:
                self._equal[attribute] = text
            self._same[id(attribute)] = text
        return text

    def _printed(self, attribute: Attribute) -> str:
        if isinstance(attribute, DenseIntOrFPElementsAttr):  # a text of numbers says 0.0 of one that begins with it
            kind, data = attribute.parameters
            assert isinstance(data, BytesAttr)
            return f"{self._attribute(kind)} {data.data.hex()}"
        self._printer.stream = StringIO()
        self._printer.print_attribute(attribute)
        return self._printer.stream.getvalue()
