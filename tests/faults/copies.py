"""Copies of the tree that faults are planted in."""

from __future__ import annotations

import compileall
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

TREE = Path(__file__).parents[2]
PARTS = ("tempo_ir", "tests", "lit_tests", "examples", "benchmarks", "docs")
FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile")

Edits = Mapping[str, str]
"""The new text of files, by path from the root of the tree."""


class DiffError(Exception):
    """A diff that does not apply."""


def snapshot(folder: Path) -> Path:
    """A copy of the tree as it is now, which later edits of the tree do not change, with the bytecode that is there, of
    tests too, and all of the compiler's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    unwanted = shutil.ignore_patterns("Output", ".lit_test_times.txt")
    for part in PARTS:
        shutil.copytree(TREE / part, folder / part, ignore=unwanted)
    for name in FILES:
        shutil.copy2(TREE / name, folder / name)
    compileall.compile_dir(str(folder / "tempo_ir"), quiet=1)
    return folder


def edited_copy(base: Path, folder: Path, edits: Edits) -> Path:
    """A copy of a snapshot with some files changed; the others are its very files, by other names."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder, copy_function=os.link)
    for path, text in edits.items():
        file = folder / path
        for bytecode in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            bytecode.unlink()
        file.unlink()
        file.write_text(text)
    return folder


def fingerprint(base: Path) -> str:
    """A hash of the sources of compiler and tests; the faults are no part of it, nor what runs them."""
    digest = sha256()
    for part in ("tempo_ir", "tests", "lit_tests"):
        for path in sorted((base / part).rglob("*")):
            relative = path.relative_to(base)
            if path.is_file() and "__pycache__" not in relative.parts and relative.parts[:2] != ("tests", "faults"):
                digest.update(f"{relative}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Planted:
    """A fault that somebody thought of: one unified diff, after a line that says what is wrong."""

    name: str
    text: str

    @property
    def subject(self) -> str:
        """What is wrong."""
        return self.text.splitlines()[0]

    def edits(self, base: Path) -> Edits:
        """The files of a snapshot as the diff changes them.

        Line numbers count for nothing: the lines of a hunk must stand in the file once. Raises DiffError otherwise.
        """
        changed: dict[str, str] = {}
        path = ""
        for line in self.text.splitlines()[1:]:
            if line.startswith("+++ "):
                path = line.removeprefix("+++ ").removeprefix("b/")
        for before, after in _hunks(self.text):
            old = "\n" + (changed.get(path) or (base / path).read_text())
            count = len(re.findall(f"(?={re.escape(before)})", old))
            if count != 1:
                raise DiffError(
                    f"{self.name}.diff: what it changes stands {count} times in {path}: refresh the diff, "
                    f"that it plants the same fault (`{self.subject}`) in the code as it is now. It looks for{before}"
                )
            changed[path] = old.replace(before, after)[1:]
        return changed


def _hunks(text: str) -> list[tuple[str, str]]:
    """Before and after of each hunk of a diff of one file, as whole lines: from the end of the line before."""
    hunks: list[tuple[str, str]] = []
    for part in text.split("\n@@")[1:]:
        lines = part.split("\n")[1:]
        before, after = (
            "\n" + "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", sign)) for sign in ("-", "+")
        )
        hunks.append((before, after))
    return hunks


def planted(folder: Path = Path(__file__).parent / "planted") -> list[Planted]:
    """All planted faults, by name."""
    return [Planted(path.stem, path.read_text()) for path in sorted(folder.glob("*.diff"))]
