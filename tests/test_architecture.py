"""The rules of the tree: imports go one way, untyped libraries have one home, files stay short."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tempo_ir"
FILES = sorted(PACKAGE.rglob("*.py"))

# each level may import itself and what stands before it
LEVELS = {
    "index": 0,
    "dialects": 1,
    "reference": 2,
    "passes": 3,
    "frontend": 3,
    "lowering": 4,
    "runtime": 5,
    "tools": 6,
}
WRAPPERS = {
    "islpy": {"index/isl.py"},
    "llvmlite": {"lowering/llvm/engine.py"},
    "triton": {"lowering/triton"},
    "scipy": {"passes/ilp.py"},
}
LONGEST_FILE = 620


def imported(tree: ast.AST) -> list[tuple[str, int]]:
    """Modules that a file imports, anywhere in it, with their lines."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.append((node.module, node.lineno))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way_and_untyped_libraries_have_one_home(path: Path) -> None:
    relative = path.relative_to(PACKAGE)
    level = LEVELS.get(relative.parts[0])
    faults: list[str] = []
    for module, line in imported(ast.parse(path.read_text())):
        parts = module.split(".")
        if parts[0] in WRAPPERS and not any(str(relative).startswith(home) for home in WRAPPERS[parts[0]]):
            faults.append(f"{relative}:{line} imports {parts[0]}, which belongs to {sorted(WRAPPERS[parts[0]])}")
        if level is not None and parts[0] == "tempo_ir" and len(parts) > 1 and LEVELS.get(parts[1], 0) > level:
            faults.append(f"{relative}:{line} imports {module}, a later level")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE, "split it by idea"
