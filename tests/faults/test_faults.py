"""Every planted fault is noticed; what plants them does what it says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tempo_ir.lowering import get_all_passes as lowerings
from tempo_ir.passes import get_all_passes
from tests.faults.__main__ import pending
from tests.faults.copies import TREE, DiffError, Planted, planted
from tests.faults.mutations import mutants_of


def test_every_planted_fault_is_noticed(record_property):
    """By a process of its own, which has not loaded the compiler; the table is in its output."""
    command = [sys.executable, "-m", "tests.faults"]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    count = len(planted())
    assert f"planted faults: {count}/{count} noticed" in done.stdout
    record_property(f"planted faults: of {count} noticed", count)
    record_property("planted faults: pending", len(pending()))


@pytest.mark.parametrize("fault", planted(), ids=lambda fault: fault.name)
def test_a_diff_applies_and_leaves_python(fault):
    for path, text in fault.edits(TREE).items():
        assert text != (TREE / path).read_text()
        compile(text, path, "exec")


def test_pending_faults_wait_for_passes_that_are_not_there():
    there = {**get_all_passes(), **lowerings()}
    landed = {name: wanted for name, wanted in pending().items() if wanted in there}
    assert not landed, f"these passes are there now: plant the faults that waited for them, {landed}"


def test_a_diff_that_no_longer_applies_says_so(tmp_path):
    (tmp_path / "module.py").write_text("a = 1\na = 1\nb = 2\n")
    head = "Wrong.\n--- a/module.py\n+++ b/module.py\n@@ -9,1 +9,1 @@\n"
    assert Planted("good", f"{head}-b = 2\n+b = 3\n").edits(tmp_path) == {"module.py": "a = 1\na = 1\nb = 3\n"}
    for lines in ("-c = 2\n+c = 3\n", "-a = 1\n+a = 2\n"):
        with pytest.raises(DiffError, match=r"bad\.diff.*refresh the diff"):
            Planted("bad", f"{head}{lines}").edits(tmp_path)


def test_mutants_are_python_and_leave_words_alone():
    lines = [
        "def f(a: int) -> int:",
        '    """Says `a < 1`."""',
        "    if a < 1:",
        '        raise ValueError(f"{a + 1}")',
    ]
    text = "\n".join([*lines, "    return a - 1", ""])
    mutants = mutants_of("module.py", text)
    for mutant in mutants:
        compile(mutant.apply(text), "module.py", "exec")
    assert {mutant.kind for mutant in mutants} == {"comparison", "condition", "constant", "operator", "operands"}
    assert not [mutant for mutant in mutants if mutant.line in (1, 2, 4)]
