"""What every registered pass has: a docstring that shows it, a lit file beside the reference, a twin that refuses."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tempo_ir import lowering, passes
from tempo_ir.tools.opt_arguments import spelled_out
from tempo_ir.tools.pipeline import NAMED_PIPELINES

LIT = Path(__file__).parents[2] / "lit_tests"
ALL_PASSES = {**passes.get_all_passes(), **lowering.get_all_passes()}
REFERENCE_HAS_NO_MEANING = {"sdg-autodiff", "loop-lower-kernels", "tile-forward-stores"}
"""Before or after these the interpreter has nothing to run: gradients that are not expanded, kernels that are compiled.
A test of their numbers stands in for `--check-each`."""
NUMBERS = {
    "sdg-autodiff": Path("tests/passes/test_sdg_autodiff.py"),
    "loop-lower-kernels": Path("lit_tests/lowering/kernels/loop_lower_kernels_run.mlir"),
    "tile-forward-stores": Path("tests/tiles/test_tile_forward_stores.py"),
}


@dataclass(frozen=True)
class RunLine:
    """A RUN line of a lit file that calls tempo-opt."""

    words: tuple[str, ...]

    @property
    def passes(self) -> set[str]:
        """The passes it runs."""
        text = "".join(
            after.removeprefix("--pass-pipeline=")
            for word, after in zip(self.words, (*self.words[1:], ""), strict=True)
            if word == "-p" or after.startswith("--pass-pipeline=")
        )
        names = re.sub(r"\{[^}]*\}", "", text.strip("'\"")).split(",")
        return {name for found in names for name in NAMED_PIPELINES.get(found, (found,))}

    @property
    def checks_each(self) -> bool:
        """Whether the reference runs before and after each pass."""
        return any(word.startswith("--check-each") for word in self.words) and self.words[0] != "not"


def run_lines(file: Path) -> list[RunLine]:
    """The calls of tempo-opt in a lit file."""
    found = re.findall(r"^// RUN: (.*tempo-opt .*)$", file.read_text(), re.MULTILINE)
    return [RunLine(tuple(re.findall(r"'[^']*'|\S+", line.replace("='", "=").replace("' ", " ")))) for line in found]


def files_of(name: str) -> list[Path]:
    """The lit files of a pass: those whose RUN lines run it."""
    return [file for file in sorted(LIT.rglob("*.mlir")) if any(name in line.passes for line in run_lines(file))]


@pytest.mark.parametrize("name", ALL_PASSES)
def test_the_docstring_shows_the_rewrite_and_where_it_does_not_apply(name: str) -> None:
    found = ALL_PASSES[name]()
    module = ast.parse(Path(inspect.getfile(found)).read_text())
    text = f"{ast.get_docstring(module)}\n{found.__doc__}"
    assert "->" in text or ("Before:" in text and "After" in text), f"{name}: show before -> after"
    assert re.search(r"\bdoes not\b|\bstays?\b|\bkeeps\b|\bis an error\b", text), f"{name}: say when it does not apply"


@pytest.mark.parametrize("name", ALL_PASSES)
def test_a_twin_shows_what_it_refuses(name: str) -> None:
    twins = [file for file in files_of(name) if file.stem == f"{name.replace('-', '_')}_fail"]
    assert len(twins) == 1, f"{name}: write lit_tests/.../{name.replace('-', '_')}_fail.mlir"
    (twin,) = twins
    text = twin.read_text()
    refused = "expected-error@" in text or "RUN: not tempo-opt" in text
    left_alone = re.search(r"^// CHECK", text, re.MULTILINE)
    assert refused or left_alone, f"{twin.name} expects neither an error nor what is left alone"


@pytest.mark.parametrize("name", sorted(ALL_PASSES.keys() - REFERENCE_HAS_NO_MEANING))
def test_the_reference_runs_before_and_after_it(name: str) -> None:
    lines = [line for file in files_of(name) for line in run_lines(file)]
    assert any(name in line.passes and line.checks_each for line in lines), f"{name}: add a RUN line with --check-each"


@pytest.mark.parametrize("name", sorted(REFERENCE_HAS_NO_MEANING))
def test_its_numbers_are_compared_in_another_way(name: str) -> None:
    file = LIT.parent / NUMBERS[name]
    assert re.search(r"tempo-run .* --check\b|torch\.autograd|assert_allclose|assert_array_equal", file.read_text())


def test_every_lit_file_of_a_graph_pass_is_named_after_it() -> None:
    stems = {file.stem for file in (LIT / "passes").glob("*.mlir")}
    names = {name.replace("-", "_") for name in passes.get_all_passes()}
    assert names <= stems
    assert not [stem for stem in stems if not any(stem.startswith(name) for name in names)]


def test_run_lines_are_read_as_the_shell_reads_them() -> None:
    line = RunLine(("tempo-opt", "%s", "--check-each", "--pass-pipeline=sdg-cse{a=1,b=2},sdg-dce"))
    assert line.passes == {"sdg-cse", "sdg-dce"}
    assert RunLine(("tempo-opt", "-p", "'sdg-vectorize{all=true}'")).passes == {"sdg-vectorize"}
    assert spelled_out(["--check-each"]) == ["--check-each=interp"]
