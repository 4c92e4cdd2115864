"""Work in processes of its own: a crash or an endless loop of native code is a failure like any other."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from tests.fuzz.check import SLOW, Failure, failure_of

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
WALL = 30
"""Seconds of the clock for each of the processor's: machines are busy, and code may wait for ever."""
Found = tuple[str, str] | None
"""The kind and the text of a failure."""


@dataclass
class Job(Generic[Answer]):
    """A call in a forked process, which is ended after some seconds of processor time."""

    function: Callable[..., Answer]
    arguments: tuple[object, ...]
    seconds: float
    start: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self.receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=_answer, args=(sender, self.function, self.arguments, self.seconds))
        self.process.start()
        sender.close()

    def left(self) -> float:
        """The seconds of the clock that it still has."""
        return max(0.0, self.start + WALL * self.seconds - time.monotonic())

    def answer(self) -> Answer | Failure:
        """What the function returned, once there is something or the time is up; else how the process ended."""
        try:
            if self.receiver.poll(self.left()):
                return self.receiver.recv()
            return Failure(SLOW, f"more than {WALL * self.seconds} s of the clock")
        except EOFError:
            self.process.join()
            code = self.process.exitcode or 0
            if code == -signal.SIGXCPU:
                return Failure(SLOW, f"more than {self.seconds} s")
            name = signal.Signals(-code).name if code < 0 else str(code)
            return Failure(f"crash {name}", "the process ended without an answer")
        finally:
            self.process.kill()
            self.process.join()
            self.receiver.close()


def answers(
    function: Callable[[Argument], Answer], arguments: Iterable[Argument], jobs: int, seconds: float
) -> Iterator[tuple[Argument, Answer | Failure]]:
    """The answer for each argument as it comes, several at a time; arguments are taken when a process is free."""
    left = iter(arguments)
    running: dict[Connection, tuple[Argument, Job[Answer]]] = {}
    more = True
    while more or running:
        while more and len(running) < jobs:
            try:
                argument = next(left)
            except StopIteration:
                more = False
                break
            job = Job(function, (argument,), seconds)
            running[job.receiver] = argument, job
        if not running:
            continue
        ready = wait(list(running), min(job.left() for _, job in running.values()))
        late = [receiver for receiver, (_, job) in running.items() if not job.left()]
        for receiver in dict.fromkeys([*(each for each in running if each in ready), *late]):
            argument, job = running.pop(receiver)
            yield argument, job.answer()


def isolated_failure(text: str, *, thorough: bool = True, seconds: float = 60) -> Failure | None:
    """What fails about a program, found in a process of its own."""
    found = Job(_found, (text, thorough), seconds).answer()
    if isinstance(found, Failure):
        return found
    return None if found is None else Failure(*found)


def _found(text: str, thorough: bool) -> Found:
    failure = failure_of(text, thorough=thorough)
    return None if failure is None else (failure.kind, failure.text)


def _answer(sender: Connection, function: Callable[..., object], arguments: tuple[object, ...], seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds) + 5))
    sender.send(function(*arguments))
    sender.close()
