"""`python -m tests.faults`: plants each fault of `planted/` in a copy of the compiler; which test notices it?

The suite runs on each copy until its first failure, and every test that found something must pass on a copy without a
fault. Results are kept in build/faults/ as long as compiler, tests and diff stay as they are; after that the test that
noticed a fault is tried first. The exit status is 1 where a fault is missed, does not apply or cannot be imported.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.faults.copies import TREE, DiffError, Planted, fingerprint, planted, snapshot
from tests.faults.sessions import BROKEN, CAUGHT, MISSED, Outcome, Pool, Trial, check_of
from tests.faults.suite import sessions_for

FOLDER = TREE / "build" / "faults"
PENDING = Path(__file__).parent / "planted" / "pending.toml"
LIMIT = 300
"""Seconds after which a test that does not end is stopped."""


def main(args: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", action="append", metavar="NAME", help="plant this one")
    parser.add_argument("--jobs", type=int, default=2, help="copies at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="say what the faults are, and run nothing")
    parser.add_argument("--again", action="store_true", help="run also what is known")
    arguments = parser.parse_args(args)
    faults = [fault for fault in planted() if not arguments.only or fault.name in arguments.only]
    if arguments.only and len(faults) < len(set(arguments.only)):
        parser.error(f"no such fault; the faults are {', '.join(fault.name for fault in planted())}")
    if arguments.list:
        for fault in faults:
            print(f"{fault.name:34} {fault.subject}")
        return 0
    board = Scoreboard(faults)
    if arguments.again:
        board.known = {}
    board.run(arguments.jobs)
    print(board.table())
    return 0 if board.is_complete else 1


def pending() -> Mapping[str, str]:
    """The faults that wait for a pass, with its name."""
    return tomllib.loads(PENDING.read_text())


@dataclass
class Scoreboard:
    """What became of each fault. `known` holds earlier results: the key that they are good for, and the outcome."""

    faults: Sequence[Planted]
    known: dict[str, tuple[str, Outcome]] = field(default_factory=dict[str, tuple[str, Outcome]])
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    unsound: str = ""
    """What failed without a fault."""

    def __post_init__(self) -> None:
        path = FOLDER / "results.json"
        if path.exists():
            self.known = {name: (key, Outcome(**told)) for name, (key, told) in json.loads(path.read_text()).items()}

    @property
    def is_complete(self) -> bool:
        """Whether every fault was noticed."""
        return not self.unsound and all(outcome.status == CAUGHT for outcome in self.outcomes.values())

    def run(self, jobs: int) -> None:
        """Plant what is not known."""
        base = snapshot(FOLDER / "base")
        sources = fingerprint(base)
        keys = {fault.name: sha256(f"{sources}{fault.text}".encode()).hexdigest() for fault in self.faults}
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
            trials.append(Trial(fault.name, edits, sessions_for(edits), outcome.test))
        pool = Pool(base, FOLDER / "copies", jobs, LIMIT)
        fresh: dict[str, Outcome] = {}
        for trial, outcome in pool.run(trials):
            fresh[trial.name] = outcome
            print(f"{trial.name:34} {outcome.status}: {outcome.test} ({outcome.seconds:.0f} s)", flush=True)
        for _, outcome in pool.run([check_of(outcome.test for outcome in fresh.values())] if fresh else []):
            if outcome.status != MISSED:
                self.unsound = f"{outcome.test} fails without a fault: {outcome.message}"
        self.outcomes.update(fresh)
        if not self.unsound:
            self.known.update({name: (keys[name], outcome) for name, outcome in fresh.items()})
            told = {name: (key, asdict(outcome)) for name, (key, outcome) in self.known.items()}
            (FOLDER / "results.json").write_text(json.dumps(told, indent=1))

    def table(self) -> str:
        """What noticed each fault, and the score."""
        lines = [f"{'fault':34} {'s':>4}  noticed by"]
        for fault in self.faults:
            outcome = self.outcomes[fault.name]
            by = outcome.test if outcome.status == CAUGHT else f"{outcome.status.upper()} {outcome.test}"
            lines.append(f"{fault.name:34} {outcome.seconds:4.0f}  {by}")
        lines += [f"{name:34}    -  pending: there is no {wanted} yet" for name, wanted in pending().items()]
        for fault in self.faults:
            if (outcome := self.outcomes[fault.name]).status != CAUGHT:
                lines.append(f"\n{fault.name}: {fault.subject} It is {outcome.status}: {outcome.message}")
        if self.unsound:
            lines.append(f"\nThe score is worth nothing: {self.unsound}")
        caught = sum(outcome.status == CAUGHT for outcome in self.outcomes.values())
        return "\n".join([*lines, f"\nplanted faults: {caught}/{len(self.faults)} noticed, {len(pending())} pending"])


if __name__ == "__main__":
    sys.exit(main())
