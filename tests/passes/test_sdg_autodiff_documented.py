"""docs/gradients.md says what is: the tests that it names exist, its guards and slices are right, its errors real."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from pathlib import Path

import pytest

from tempo_ir.index import Cond, Domain, Index, IndexExpressionError, Space, Sym, cond, evaluate, index
from tempo_ir.passes.gradients.inverse_reads import inverse_pieces

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gradients.md").read_text()
READS = "tests/passes/test_sdg_autodiff_reads.py"
LARGEST = {1: 9, 2: 5}
"""The largest bound that the rows of a table are checked at, by the dims of the reader."""

ASKED = "asks each reader"


def sections() -> dict[str, str]:
    """The text under each heading."""
    parts = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section: str) -> list[list[str]]:
    """The cells of the rows of a section's table."""
    lines = [line for line in sections()[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


class Collected:
    """A pytest plug-in that keeps the node ids of what is collected."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.nodes = [item.nodeid for item in session.items]


def test_the_tests_that_the_page_names_exist() -> None:
    named = {
        name if "::" in name else f"{READS}::{name}" for name in re.findall(r"`((?:tests/[^`]*::)?test_[^`]*)`", PAGE)
    }
    assert len(named) > 100
    collected = Collected()
    files = sorted({str(ROOT / name.partition("::")[0]) for name in named})
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *files], [collected])
    known = {*collected.nodes, *(node.partition("[")[0] for node in collected.nodes)}
    assert sorted(named - known) == []


TABLES = {
    "A point, over one dim": ("t", "t"),
    "A range, over one dim": ("t", "t"),
    "Over two dims": ("it", "it"),
    "Across dims": ("it", "t"),
}


@pytest.mark.parametrize(
    ("dims", "own", "row"),
    [
        pytest.param(dims, own, row, id=row[0].replace("`", ""))
        for table, (dims, own) in TABLES.items()
        for row in rows(table)
    ],
)
def test_guards_and_slices(dims: str, own: str, row: list[str]) -> None:
    """At every point of `x`, the boxes whose guard holds cover each of its readers once, and nothing else."""
    read, _, where = row[0].replace("`", "").partition(" where ")
    entries = index(read.removeprefix("x"))
    if row[1] == ASKED:
        readers, points = (Domain(tuple(names)) for names in (dims, own))
        with pytest.raises(IndexExpressionError):
            inverse_pieces(Space(tuple((dim, Sym(dim.upper())) for dim in dims)), readers, entries, points)
        return
    pieces = documented(row[1])
    for bounds in itertools.product(range(LARGEST[len(dims)] + 1), repeat=len(dims)):
        named = {dim.upper(): bound for dim, bound in zip(dims, bounds, strict=True)}
        if where and not evaluate(cond(where), named):
            continue
        points = [dict(zip(dims, point, strict=True)) for point in itertools.product(*map(range, bounds))]
        for place in itertools.product(*(range(named[dim.upper()]) for dim in own)):
            readers = [p for p in points if covers(evaluate(entries, {**named, **p}), place)]
            here = {**named, **dict(zip(own, place, strict=True))}
            boxes = [evaluate(box, here) for guard, box in pieces if evaluate(guard, here)]
            found = [p for p in points for box in boxes if covers(box, tuple(p.values()))]
            assert sorted(map(str, found)) == sorted(map(str, readers)), (named, place)


def documented(text: str) -> list[tuple[Cond, Index]]:
    """The guards and boxes of "`t = 0`: `[0:T]`; `[t + 1]`"."""
    pieces = [] if text == "none" else text.replace("`", "").split("; ")
    parts = [("true", piece) if piece.startswith("[") else piece.split(": ", 1) for piece in pieces]
    return [(cond(guard), index(box)) for guard, box in parts]


def covers(entries: tuple[int | range, ...], point: tuple[int, ...]) -> bool:
    """Whether a box, or what a read reads, holds a point."""
    return all(n == entry if isinstance(entry, int) else n in entry for entry, n in zip(entries, point, strict=True))


def test_the_errors_that_the_page_quotes_are_tested() -> None:
    quoted = [(text, node) for _, error, node in rows("Refused") for text in re.findall(r'"([^"]*)"', error)]
    assert len(quoted) >= 5
    for text, node in quoted:
        file, _, _ = node.strip("`").partition("::")
        assert text in (ROOT / file).read_text(), (text, file)
