"""Errors of a call."""

from __future__ import annotations


class CallError(ValueError):
    """An argument of a call is missing or does not fit; the message names it and says what is expected."""


class NotEnoughMemoryError(CallError, MemoryError):
    """A call needs more memory than there is; the message says how much, how much there is, and the ways out."""


class CompileError(ValueError):
    """A program cannot be compiled as asked; the message says why."""
