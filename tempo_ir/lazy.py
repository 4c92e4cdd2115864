"""Factories that import what they make on first call: registries list everything and load nothing."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy(path: str) -> Callable[[], Any]:
    """A factory for the object at `path`, written `package.module:name` as in an entry point."""
    module, _, name = path.partition(":")

    def load() -> Any:
        return getattr(import_module(module), name)

    return load
