"""What the tools and `import tempo_ir` import before they have anything to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "triton", "sympy", "llvmlite", "jax", "numpy", "islpy", "transformers", "rich")


def imported_by(code: str) -> set[str]:
    """The top-level modules loaded after `code` ran in a fresh interpreter."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return set(run.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import tempo_ir",
        "import tempo_ir.universe",
        "from tempo_ir.tools.tempo_opt import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from tempo_ir.tools.tempo_opt import main\nmain(['--show-dialects'])",
        "from tempo_ir.tools.tempo_run import main\ntry: main(['--help'])\nexcept SystemExit: pass",
    ],
)
def test_nothing_heavy_is_imported(code):
    assert not imported_by(code) & set(HEAVY)


def test_parsing_sdg_imports_no_library():
    code = """
from tempo_ir.tools.parsing import parse_module
from xdsl.context import Context
from tempo_ir.dialects import get_all_dialects
context = Context()
for name, factory in get_all_dialects().items():
    context.register_dialect(name, factory)
    context.get_optional_dialect(name)
"""
    assert not imported_by(code) & set(HEAVY)
