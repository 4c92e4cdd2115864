"""A check in a process of its own: a crash or an endless loop of native code is a failure like any other."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection

from tests.fuzz.check import SLOW, Failure, failure_of

Found = tuple[str, str] | None
"""The kind and the text of a failure."""


def isolated_failure(text: str, *, thorough: bool = True, seconds: float = 60) -> Failure | None:
    """What fails about a program, found in a forked process, which is ended after some seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, text, thorough))
    process.start()
    sender.close()
    try:
        found: Found = receiver.recv() if receiver.poll(seconds) else (SLOW, f"more than {seconds} s")
    except EOFError:
        process.join()
        code = process.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else str(code)
        found = (f"crash {name}", "the process ended without an answer")
    finally:
        process.kill()
        process.join()
        receiver.close()
    return None if found is None else Failure(*found)


def _answer(sender: Connection, text: str, thorough: bool) -> None:
    failure = failure_of(text, thorough=thorough)
    sender.send(None if failure is None else (failure.kind, failure.text))
    sender.close()
