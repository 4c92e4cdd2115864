"""Compiled programs on disk: a program that was compiled before, by whatever process, is loaded and no pass runs.

An entry is a file named by all that its code depends on: the text of the program with its places, what the compile was
asked for, the machine, and the versions of this package, of its libraries and of LLVM. What is damaged is written anew.
A program for a GPU has a folder of source beside its entry, named by its text. `tempo_ir.kept` says where they lie.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tempo_ir import kept
from tempo_ir.dialects.text import program_text
from tempo_ir.kept import FOLDER, PROGRAM, Kept, write_whole
from tempo_ir.lowering.llvm.engine import llvm_version
from tempo_ir.runtime.errors import CompileError
from tempo_ir.runtime.packed import Damaged, Packed


@dataclass(frozen=True)
class Cache(Kept):
    """The compiled programs of a folder."""

    def path(self, key: str) -> Path:
        """The file of an entry."""
        return self.directory / f"{key}{PROGRAM}"

    def read(self, key: str) -> Packed | None:
        """An entry, which is then the one used last; None where there is none, or it is damaged."""
        data = self.read_entry(f"{key}{PROGRAM}")
        if data is not None:
            with suppress(Damaged):
                return Packed.of_bytes(data)
        return None

    def write(self, key: str, packed: Packed) -> None:
        """Make an entry, or nothing where the folder cannot be written."""
        self.write_entry(f"{key}{PROGRAM}", packed.to_bytes())

    def folder(self, key: str, files: Mapping[str, str]) -> Path | None:
        """A folder that has these files, of which none is written that is there; None where it cannot be made."""
        folder = self.directory / f"{key}{FOLDER}"
        try:
            for path, text in files.items():
                if not _holds(folder / path, text):
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    write_whole(folder / path, text.encode())
            os.utime(folder)
        except OSError:
            return None
        self.shrink()
        return folder


def _holds(path: Path, text: str) -> bool:
    """Whether a file is there and has a text."""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def default_cache() -> Cache | None:
    """The cache that the environment names; None where there is none. Raises CompileError for a size that is none."""
    try:
        place = kept.where_kept()
    except ValueError as error:
        raise CompileError(str(error)) from None
    return None if place is None else Cache(*place)


def key_of(module: ModuleOp, *others: object) -> str:
    """The name of an entry: a digest of a program and of whatever else its code depends on, as text."""
    return kept.digest_of((*versions(), *map(repr, others), program_text(module)))


def versions() -> tuple[str, ...]:
    """What makes code: this package, as its files are, its libraries and LLVM."""
    return *kept.versions(), llvm_version()
