"""The table in README.md: every case has tests, every numbered test and every program stands in the row of its case."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CASES = range(1, 47)


@dataclass(frozen=True)
class Row:
    """What the table says of a case."""

    tests: frozenset[str]
    programs: frozenset[str]


def rows() -> dict[int, Row]:
    """The table by number of the case."""
    found = re.findall(r"^\| (\d+) \|[^|]+\|([^|]+)\|([^|]+)\|$", (HERE / "README.md").read_text(), re.MULTILINE)
    return {int(case): Row(_names(tests), _names(programs)) for case, tests, programs in found}


def _names(cell: str) -> frozenset[str]:
    return frozenset(name.strip() for name in cell.split(","))


def names_below(folder: Path) -> set[str]:
    """The names of the test functions below a folder."""
    return {
        name for file in folder.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }


def numbers(name: str) -> list[int]:
    """The cases that a test is named after: 27 and 28 of `test_27_28_reads_in_pieces`."""
    match = re.match(r"test_((?:\d\d_)+)", name)
    return [int(number) for number in match[1].split("_") if number] if match else []


def test_every_case_has_tests() -> None:
    assert list(rows()) == list(CASES)
    known = names_below(HERE.parent)
    missing = {case: name for case, row in rows().items() for name in row.tests if name not in known}
    assert not missing


def test_every_numbered_test_stands_in_the_row_of_its_case() -> None:
    table = rows()
    numbered = {(case, name) for name in names_below(HERE) for case in numbers(name)}
    assert not [(case, name) for case, name in sorted(numbered) if case not in table or name not in table[case].tests]
    # and each case has a test that is named after it
    assert {case for case, _ in numbered} == {*CASES}


def test_every_program_stands_in_the_row_of_its_case() -> None:
    listed = {program for row in rows().values() for program in row.programs}
    assert listed == {file.stem for file in (HERE / "programs").glob("*.mlir")}
    assert all(int(program[:2]) == case for case, row in rows().items() for program in row.programs)
