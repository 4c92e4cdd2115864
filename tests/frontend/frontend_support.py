"""Shared by the tests of the front end: run a program function by the reference interpreter, or take its error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tempo_ir as tp


def record(function: Callable[..., None], **settings: Any) -> Any:
    """The program that a plain function states."""
    return tp.program(function)(**settings)


def run(function: Callable[..., None], **arguments: Any) -> Any:
    """The results of a plain function's program, by the reference interpreter."""
    return record(function).run(**arguments)


def error_of(function: Callable[..., None], **settings: Any) -> str:
    """The text of the error that recording raises, without the path of the test file."""
    with pytest.raises(tp.ProgramError) as raised:
        record(function, **settings)
    place, _, text = str(raised.value).partition(": error: ")
    assert ":" in place, f"no line: {raised.value}"
    return text
