"""`python -m tests.faults.mutants --count 200 --seed 1`: random small edits of the code; which does no test notice?

Each mutant is a copy of the tree with one edit, on which the suite runs until its first failure (a test that does not
end is one), or until `--seconds` of processor time are used up. Results are kept in build/mutants/, so that a later
command with the same seed goes on where this one stopped; `--again` runs those once more that nothing noticed. The
exit status is 1 where a mutant survives that `survivors.md` does not name.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from tests.faults.copies import TREE, snapshot
from tests.faults.mutations import Mutant, draw
from tests.faults.sessions import CAUGHT, MISSED, Outcome, Pool, Trial, check_of, outcome_of
from tests.faults.suite import sessions_for

PACKAGES = ("tempo_ir/index", "tempo_ir/passes", "tempo_ir/lowering/schedule")
SURVIVORS = Path(__file__).parent / "survivors.md"


def main(args: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__, allow_abbrev=False)
    parser.add_argument("--count", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice (default: 1)")
    parser.add_argument("--package", action="append", help=f"what to edit (default: {', '.join(PACKAGES)})")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default: 2)")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="of processor time for each mutant (default: the whole suite)"
    )
    parser.add_argument("--limit", type=float, default=180, help="seconds for one test (default: 180)")
    parser.add_argument("--again", action="store_true", help="run survivors again, the other results stand")
    parser.add_argument("--deselect", action="append", default=[], metavar="TEST", help="leave out, as pytest does")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    arguments = parser.parse_args(args)
    folder = TREE / "build" / "mutants"
    base = snapshot(folder / "base")
    mutants = draw(base, arguments.package or PACKAGES, arguments.count, arguments.seed)
    if arguments.list:
        print(*(f"{mutant.path}:{mutant.line}: {mutant.kind}\n{diff(base, mutant)}" for mutant in mutants), sep="\n")
        return 0
    results = Results(folder / "results.json")
    trials = {name_of(base, mutant): mutant for mutant in mutants}
    waiting = [
        Trial(
            name,
            {m.path: m.apply((base / m.path).read_text())},
            sessions_for([m.path]),
            seconds=arguments.seconds,
            without=tuple(arguments.deselect),
        )
        for name, m in trials.items()
        if name not in results.known or (arguments.again and results.known[name].status == MISSED)
    ]
    pool = Pool(base, folder / "copies", arguments.jobs, arguments.limit)
    for number, (trial, outcome) in enumerate(pool.run(waiting), 1):
        results.add(trial.name, outcome)
        mutant = trials[trial.name]
        where = f"{mutant.path}:{mutant.line} {mutant.kind}"
        print(f"{number}/{len(waiting)} {where}: {outcome.status} {outcome.test} ({outcome.seconds:.0f} s)", flush=True)
    caught = [results.known[name].test for name in trials if results.known[name].status == CAUGHT]
    for _, outcome in pool.run([check_of(caught)]):
        for name, mutant in [(name, m) for name, m in trials.items() if results.known[name].test in outcome.failed]:
            print(f"{mutant.path}:{mutant.line}: {results.known.pop(name).test} fails without a mutant too")
            del trials[name]
        results.write()
    return report(base, {name: (mutant, results.known[name]) for name, mutant in trials.items()})


class Results:
    """What became of mutants, by name, in a file."""

    def __init__(self, path: Path):
        self.path = path
        self.known: dict[str, Outcome] = {}
        if path.exists():
            self.known = {name: outcome_of(told) for name, told in json.loads(path.read_text()).items()}

    def add(self, name: str, outcome: Outcome) -> None:
        self.known[name] = outcome
        self.write()

    def write(self) -> None:
        """Bring the file up to date."""
        self.path.write_text(json.dumps({name: asdict(outcome) for name, outcome in self.known.items()}, indent=1))


def name_of(base: Path, mutant: Mutant) -> str:
    """A name that stays as long as the file does."""
    text = mutant.apply((base / mutant.path).read_text())
    return f"{Path(mutant.path).stem}-{mutant.line}-{sha256(text.encode()).hexdigest()[:10]}"


def diff(base: Path, mutant: Mutant) -> str:
    """The edit, as a diff without context."""
    old = (base / mutant.path).read_text()
    lines = difflib.unified_diff(old.splitlines(), mutant.apply(old).splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def is_explained(explanations: str, path: str, change: str) -> bool:
    """Whether `survivors.md` has an edit: below the name of its file, with the line before and after."""
    for part in explanations.split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        if name == path and change.partition("\n")[2] in rest:
            return True
    return False


def report(base: Path, outcomes: dict[str, tuple[Mutant, Outcome]]) -> int:
    """Print what survived; 1 where some of it is not explained."""
    counts = Counter(outcome.status for _, outcome in outcomes.values())
    explained = SURVIVORS.read_text() if SURVIVORS.exists() else ""
    unexplained = 0
    for name, (mutant, outcome) in outcomes.items():
        if outcome.status == MISSED:
            known = is_explained(explained, mutant.path, diff(base, mutant))
            unexplained += not known
            print(f"\n{name} survives{', as survivors.md says' if known else ''}: {mutant.path}:{mutant.line}")
            print(diff(base, mutant))
    print(f"\n{len(outcomes)} mutants: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
