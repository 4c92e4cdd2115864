"""Checkpoints: safetensors files (https://huggingface.co/docs/safetensors), one or several, read tensor by tensor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

from tempo_ir.frontend.description import Array, Initialiser


class CheckpointError(Exception):
    """A checkpoint that is not there, or lacks something; the text names the path."""


@dataclass(frozen=True)
class Checkpoint:
    """A model directory in Hugging Face layout: `config.json`, and `model.safetensors` or its shards with an index."""

    directory: Path
    config: Mapping[str, Any]
    files: Mapping[str, Path]  # tensor name -> the file that holds it
    headers: dict[Path, dict[str, tuple[int, ...]]] = field(default_factory=dict[Path, dict[str, tuple[int, ...]]])
    """The shapes of the files that were asked for one: opening a file is to read what it says of all its tensors."""

    @classmethod
    def open(cls, directory: str | PathLike[str]) -> Checkpoint:
        """Read the configuration and the names of the tensors; no tensor is read. Raises CheckpointError."""
        path = Path(directory)
        config = _json(path / "config.json")
        index = path / "model.safetensors.index.json"
        if index.exists():
            return cls(path, config, {name: path / file for name, file in _json(index)["weight_map"].items()})
        file = path / "model.safetensors"
        with opened(file) as tensors:
            return cls(path, config, dict.fromkeys(tensors.keys(), file))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor. Raises CheckpointError if the checkpoint lacks it."""
        file = self._file(name)
        if file not in self.headers:
            with opened(file) as tensors:
                self.headers[file] = {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}
        if name not in self.headers[file]:
            raise CheckpointError(f"{file} has no tensor '{name}'")
        return self.headers[file][name]

    def initialiser(self, name: str) -> Initialiser:
        """The tensor as a first value, read when it is asked for."""
        self._file(name)
        return lambda generator, shape: self.read(name)

    def read(self, name: str) -> Array:
        """One tensor."""
        with opened(self._file(name)) as tensors:
            return tensors.get_tensor(name)

    def _file(self, name: str) -> Path:
        if name not in self.files:
            raise CheckpointError(f"{self.directory} has no tensor '{name}'")
        return self.files[name]


def _json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: a checkpoint has config.json and model.safetensors") from None
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path} is no JSON: {error}") from None


def opened(path: str | PathLike[str]) -> Any:
    """An open safetensors file, to be used in a `with`. Raises CheckpointError."""
    try:
        return safe_open(str(path), framework="numpy")
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: a checkpoint has config.json and model.safetensors") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path} is no safetensors file: {error}") from None


def read_safetensors(path: str | PathLike[str]) -> dict[str, Array]:
    """All tensors of a file. Raises CheckpointError."""
    with opened(path) as tensors:
        return {name: tensors.get_tensor(name) for name in tensors.keys()}


def write_safetensors(path: str | PathLike[str], tensors: Mapping[str, Array]) -> None:
    """Write tensors by name; folders are made."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, str(path))
