"""Every op of the tile dialect, and every fusion, has a lit test of the Triton text that it becomes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tempo_ir.dialects.tile import Tile

FOLDER = Path(__file__).parents[2] / "lit_tests" / "lowering" / "triton"
SILENT = {"tile.view", "tile.yield"}
"""Ops that are no text of their own: pointers and masks have the sizes and strides, names what a loop carries on."""
FUSIONS = (
    "a norm before a product",
    "a bias and an activation after a product",
    "a residual after a product",
    "heads of a product, in a cache",
    "keys that are rotated into a cache",
    "queries that are scaled before attention",
    "a concatenation",
    "a softmax",
    "a greedy choice",
    "a running sum",
    "rows by their ids",
    "sums into rows",
    "a draw",
    "an update of a parameter",
    "weights of 16 bits",
    "a tail",
    "a guard",
)


def parts(file: Path) -> tuple[str, str]:
    """What a test checks, and the rest of it."""
    lines = file.read_text().splitlines()
    checks = [line for line in lines if line.startswith("// CHECK")]
    return "\n".join(checks), "\n".join(line for line in lines if not line.startswith("// CHECK"))


@pytest.mark.parametrize("op", sorted(op.name for op in Tile.operations if op.name not in SILENT))
def test_op(op):
    kernels: list[str] = []
    for file in FOLDER.glob("*.mlir"):
        checks, source = parts(file)
        for kernel in re.split(r"(?m)^(?=tile\.kernel )", source)[1:]:
            name = re.match(r"tile\.kernel @(\w+)", kernel)
            assert name is not None
            if re.search(rf"{re.escape(op)}\b", kernel) and re.search(rf"def {name[1]}\(", checks):
                kernels.append(name[1])
    assert kernels, f"no kernel in {FOLDER.name}/*.mlir has {op} and its text checked"


@pytest.mark.parametrize("fusion", FUSIONS)
def test_fusion(fusion):
    sections = [section for file in FOLDER.glob("fusions*.mlir") for section in file.read_text().split("// -----")]
    found = [section for section in sections if re.search(rf"(?i)^// {re.escape(fusion)}:", section, re.MULTILINE)]
    assert len(found) == 1, f"no section of {FOLDER.name}/fusions*.mlir begins with '{fusion}:'"
    assert "// CHECK:       # ---- " in found[0]
