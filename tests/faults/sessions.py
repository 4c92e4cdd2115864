"""Running the suite against copies of the tree, each in a process of its own, a few at a time.

A process is forked from this one, which has loaded the libraries (but nothing of the compiler): that saves their start.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.faults.copies import TREE, Edits, edited_copy

LIBRARIES = ("numpy", "xdsl.parser", "xdsl.dialects.builtin", "islpy", "llvmlite.binding", "sympy", "torch", "jax")
CAUGHT, MISSED, BROKEN, STOPPED = "caught", "missed", "broken", "stopped"
REPORT = "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """What became of a copy, and the processor time that it took: `caught` by a test, `missed`, `broken` (it cannot be
    imported), `stopped` in a test that did not end."""

    status: str
    test: str = ""
    message: str = ""
    seconds: float = 0.0
    failed: tuple[str, ...] = ()
    """All tests that failed, where the trial was to go on after the first."""


@dataclass(frozen=True)
class Trial:
    """A copy with some edits, and the sessions of the suite to run on it until the first failure.

    A session is a list of paths, all for pytest or all for lit. `hint` is a test to try first. No test begins after
    `seconds` of processor time. `without` are tests that do not run. It `goes_on` after a failure.
    """

    name: str
    edits: Edits
    sessions: Sequence[Sequence[str]]
    hint: str = ""
    seconds: float = math.inf
    without: tuple[str, ...] = ()
    goes_on: bool = False


@dataclass(eq=False)
class Watcher:
    """A plugin of pytest that writes down which test runs and which failed, and stops at a time."""

    report: Path
    end: float = math.inf
    parent: int = field(default_factory=os.getppid)
    failed: dict[str, str] = field(default_factory=dict[str, str])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if os.getppid() != self.parent:
            raise pytest.exit.Exception("nobody waits for the outcome", 0)
        write(self.report, Outcome(STOPPED, nodeid, "it did not end"))

    def pytest_runtest_logfinish(self) -> None:
        if processor_seconds() > self.end:
            raise pytest.exit.Exception("no time is left", 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.setdefault(report.nodeid, _last_line(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.setdefault(report.nodeid, _last_line(report))


def _last_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return " ".join(text.split())[:300]


def outcome_of(told: dict[str, Any]) -> Outcome:
    """An outcome as `write` wrote it."""
    return Outcome(**{**told, "failed": tuple(told["failed"])})


def write(path: Path, outcome: Outcome) -> None:
    path.write_text(json.dumps(asdict(outcome)))


def read(path: Path) -> Outcome:
    return outcome_of(json.loads(path.read_text()))


# ---- in the process of one copy ----


def processor_seconds() -> float:
    """What this process and those that it started have worked: other jobs of the machine do not count."""
    return sum(os.times()[:4])


def run_trial(base: Path, folder: Path, trial: Trial) -> None:
    """Make the copy, run the sessions on it, and write the outcome to its folder."""
    os.setsid()
    edited_copy(base, folder, trial.edits)
    _enter(folder)
    outcome = _import_problem(folder, trial.edits) or _first_failure(folder, trial)
    write(folder / REPORT, Outcome(outcome.status, outcome.test, outcome.message, processor_seconds(), outcome.failed))


def _enter(folder: Path) -> None:
    """Make this process one that was started in the copy."""
    os.chdir(folder)
    os.environ.update(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1")
    sys.dont_write_bytecode = True
    sys.path[:] = [str(folder), *(entry for entry in sys.path if entry not in ("", str(TREE)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "tempo_ir")]:
        del sys.modules[name]
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _import_problem(folder: Path, edits: Edits) -> Outcome | None:
    """Why the edited modules cannot be imported from the copy; None if they can."""
    import tempo_ir

    assert str(tempo_ir.__file__).startswith(str(folder)), f"the copy is not what is tested: {tempo_ir.__file__}"
    try:
        for path in edits:
            importlib.import_module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    except Exception as error:  # whatever an edit does to a module
        return Outcome(BROKEN, "import", f"{type(error).__name__}: {error}"[:300])
    return None


def _first_failure(folder: Path, trial: Trial) -> Outcome:
    hinted = trial.hint and (folder / trial.hint.partition("::")[0]).exists()
    sessions = [[trial.hint], *trial.sessions] if hinted else trial.sessions
    found: dict[str, str] = {}
    for session in sessions:
        if processor_seconds() > trial.seconds:
            break
        write(folder / REPORT, Outcome(STOPPED, session[0], "it did not end"))
        if session[0].startswith("lit_tests"):
            found |= _lit(folder, trial, session)
        else:
            found |= _pytest(folder, trial, session)
        if found and not trial.goes_on:
            break
    test, message = next(iter(found.items()), ("", ""))
    return Outcome(CAUGHT if found else MISSED, test, message, failed=tuple(found))


def _pytest(folder: Path, trial: Trial, paths: Sequence[str]) -> dict[str, str]:
    """The first test that fails, with what it says. A test that is no more has not failed."""
    watcher = Watcher(folder / REPORT, trial.seconds)
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *(f"--deselect={test}" for test in trial.without),
    ]
    status = pytest.main([*options, *paths], plugins=[watcher])
    understood = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    if status not in understood and not watcher.failed and "::" not in paths[0]:
        raise RuntimeError(f"pytest does not run: {status!r}")
    return watcher.failed


def _lit(folder: Path, trial: Trial, paths: Sequence[str]) -> dict[str, str]:
    """The first lit test that fails, if any."""
    first = [] if trial.goes_on else ["--max-failures=1"]
    command = [str(Path(sys.executable).parent / "lit"), "-v", "-j1", *first, "--order=lexical", *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL: ")]
    if done.returncode and not failed:
        raise RuntimeError(f"lit does not run in {folder}: {done.stdout}{done.stderr}")
    return {f"lit_tests/{line.split()[3]}": "another text" for line in failed}


# ---- in the process of all ----


def check_of(tests: Iterable[str]) -> Trial:
    """The trial of a copy without a fault: tests that caught something must pass there."""
    lit = sorted({test for test in tests if test.startswith("lit_tests")})
    others = sorted({test for test in tests if test.startswith("tests")})
    return Trial("unchanged", {}, [session for session in (lit, others) if session], goes_on=True)


@dataclass
class Pool:
    """Trials in processes, `jobs` at a time, stopped where one test takes `limit` seconds; copies stand in `folder`."""

    base: Path
    folder: Path
    jobs: int
    limit: float
    running: dict[BaseProcess, tuple[Trial, Path, float]] = field(default_factory=dict[BaseProcess, tuple])
    keep: bool = False

    def run(self, trials: Sequence[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        """Trials and what became of them, in the order in which they end."""
        for library in LIBRARIES:
            importlib.import_module(library)
        waiting = list(reversed(trials))
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self.jobs:
                    self._start(waiting.pop())
                wait([process.sentinel for process in self.running], timeout=1)
                yield from self._ended()
        finally:
            for process in list(self.running):
                self._end(process)

    def _start(self, trial: Trial) -> None:
        folder = self.folder / trial.name.replace("/", "_")
        process = multiprocessing.get_context("fork").Process(target=run_trial, args=(self.base, folder, trial))
        process.start()
        self.running[process] = (trial, folder, time.monotonic())

    def _ended(self) -> Iterator[tuple[Trial, Outcome]]:
        for process, (trial, folder, start) in list(self.running.items()):
            seconds = time.monotonic() - start
            if process.is_alive() and not self._is_stuck(folder, seconds):
                continue
            crashed = not process.is_alive() and process.exitcode != 0
            code = process.exitcode or 0
            self._end(process)
            outcome = read(folder / REPORT) if (folder / REPORT).exists() else Outcome(BROKEN, "", "no report")
            if crashed:
                name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                status = CAUGHT if outcome.test and code < 0 else BROKEN
                outcome = Outcome(status, outcome.test, f"the process ended by {name}", seconds)
            elif outcome.status == STOPPED:
                outcome = Outcome(STOPPED, outcome.test, f"no end after {seconds:.0f} s", seconds)
            if not self.keep and outcome.status != BROKEN:
                shutil.rmtree(folder, ignore_errors=True)
            yield trial, outcome

    def _is_stuck(self, folder: Path, seconds: float) -> bool:
        report = folder / REPORT
        begun = report.stat().st_mtime if seconds > self.limit and report.exists() else time.time()
        return time.time() - begun > self.limit or seconds > 10 * self.limit

    def _end(self, process: BaseProcess) -> None:
        """End a process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.kill()
        process.join()
        del self.running[process]
