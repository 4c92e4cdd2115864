"""`python -m tests.faults`: plants each fault of `planted/` in a copy of the compiler; which test notices it?

The suite runs on each copy until its first failure, and every test that found something must pass on a copy without a
fault. The test that noticed a fault before is tried first: that of `planted/first.toml`, which `--remember` writes, or
of the last run. Results are kept in build/faults/ as long as compiler, tests and diff stay as they are. The exit status
is 1 where a fault is missed, does not apply or cannot be imported.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.faults.copies import TREE, DiffError, Planted, fingerprint, planted, snapshot
from tests.faults.sessions import BROKEN, CAUGHT, MISSED, Outcome, Pool, Trial, check_of, outcome_of
from tests.faults.suite import sessions_for

FOLDER = TREE / "build" / "faults"
RESULTS = FOLDER / "results.json"
PENDING = Path(__file__).parent / "planted" / "pending.toml"
FIRST = Path(__file__).parent / "planted" / "first.toml"
LIMIT = 300
"""Seconds after which a test that does not end is stopped."""


def main(args: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", action="append", metavar="NAME", help="plant this one")
    parser.add_argument("--jobs", type=int, default=2, help="copies at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="say what the faults are, and run nothing")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="of processor time for each (default: all it takes)"
    )
    parser.add_argument("--deselect", action="append", default=[], metavar="TEST", help="leave out, as pytest does")
    parser.add_argument("--again", action="store_true", help="run also what is known")
    parser.add_argument("--remember", action="store_true", help="write down what noticed each fault, to be tried first")
    arguments = parser.parse_args(args)
    faults = [fault for fault in planted() if not arguments.only or fault.name in arguments.only]
    if arguments.only and len(faults) < len(set(arguments.only)):
        parser.error(f"no such fault; the faults are {', '.join(fault.name for fault in planted())}")
    if arguments.list:
        for fault in faults:
            print(f"{fault.name:36} {fault.subject}")
        return 0
    board = Scoreboard(faults)
    if arguments.again:
        board.known = {}
    board.run(arguments.jobs, arguments.seconds, arguments.deselect)
    print(board.table())
    if arguments.remember:
        board.remember()
    return 0 if board.noticed == len(faults) else 1


def pending() -> Mapping[str, str]:
    """The faults that wait for a pass, with its name."""
    return tomllib.loads(PENDING.read_text())


def tried_first() -> Mapping[str, str]:
    """The test that noticed each fault when this was written down. It only comes first: where it passes, all run."""
    return tomllib.loads(FIRST.read_text())


@dataclass
class Scoreboard:
    """What became of each fault. `known` holds results by name: the key that each is good for, and the outcome."""

    faults: Sequence[Planted]
    known: dict[str, tuple[str, Outcome]] = field(default_factory=dict[str, tuple[str, Outcome]])
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])

    def __post_init__(self) -> None:
        if RESULTS.exists():
            told = json.loads(RESULTS.read_text())
            self.known = {name: (key, outcome_of(outcome)) for name, (key, outcome) in told.items()}

    @property
    def noticed(self) -> int:
        """How many were."""
        return sum(outcome.status == CAUGHT for outcome in self.outcomes.values())

    def run(self, jobs: int, seconds: float, without: Sequence[str]) -> None:
        """Plant what is not known, and run the suite for some seconds; `without` are tests to leave out."""
        base = snapshot(FOLDER / "base")
        sources = fingerprint(base)
        keys = {fault.name: sha256(f"{sources}{fault.text}".encode()).hexdigest() for fault in self.faults}
        first = tried_first()
        trials: list[Trial] = []
        for fault in self.faults:
            key, outcome = self.known.get(fault.name, ("", Outcome(MISSED)))
            if key == keys[fault.name] and outcome.status == CAUGHT:
                self.outcomes[fault.name] = outcome
                continue
            try:
                edits = fault.edits(base)
            except DiffError as error:
                self.outcomes[fault.name] = Outcome(BROKEN, "diff", str(error))
                continue
            hint = outcome.test or first.get(fault.name, "")
            trials.append(Trial(fault.name, edits, sessions_for(edits), hint, seconds, tuple(without)))
        pool = Pool(base, FOLDER / "copies", jobs, LIMIT)
        for trial, outcome in pool.run(trials):
            print(f"{trial.name:36} {outcome.status}: {outcome.test} ({outcome.seconds:.0f} s)", flush=True)
            self._learn(trial.name, keys[trial.name], outcome)
        self._check(pool, [trial.name for trial in trials], keys)

    def _learn(self, name: str, key: str, outcome: Outcome) -> None:
        self.outcomes[name] = outcome
        self.known[name] = key, outcome
        told = {name: (key, asdict(outcome)) for name, (key, outcome) in self.known.items()}
        RESULTS.write_text(json.dumps(told, indent=1))

    def _check(self, pool: Pool, names: Sequence[str], keys: Mapping[str, str]) -> None:
        """What fails without a fault has noticed none."""
        tests = [self.outcomes[name].test for name in names if self.outcomes[name].status == CAUGHT]
        for _, without_fault in pool.run([check_of(tests)] if tests else []):
            for name in names:
                if (outcome := self.outcomes[name]).test in without_fault.failed:
                    message = f"{outcome.test} fails without a fault too: mend that first"
                    self._learn(name, keys[name], Outcome(BROKEN, "", message, outcome.seconds))

    def remember(self) -> None:
        """Write down what noticed each fault; of faults that were not planted, or missed, what is written stays."""
        tests = {**tried_first(), **{name: it.test for name, it in self.outcomes.items() if it.status == CAUGHT}}
        names = {fault.name for fault in planted()}
        lines = [f"{name} = {json.dumps(tests[name])}\n" for name in sorted(tests) if name in names]
        FIRST.write_text("".join(["# The test that is tried first on each fault.\n", *lines]))

    def table(self) -> str:
        """What noticed each fault, and the score."""
        lines = [f"{'fault':36} {'s':>4}  noticed by"]
        for fault in self.faults:
            outcome = self.outcomes[fault.name]
            by = outcome.test if outcome.status == CAUGHT else f"{outcome.status.upper()} {outcome.test}"
            lines.append(f"{fault.name:36} {outcome.seconds:4.0f}  {by}")
        lines += [f"{name:36}    -  pending: there is no {wanted} yet" for name, wanted in pending().items()]
        for fault in self.faults:
            if (outcome := self.outcomes[fault.name]).status != CAUGHT:
                lines.append(f"\n{fault.name}: {fault.subject} It is {outcome.status}: {outcome.message}")
        score = f"planted faults: {self.noticed}/{len(self.faults)} noticed, {len(pending())} pending"
        return "\n".join([*lines, "", score])


if __name__ == "__main__":
    sys.exit(main())
