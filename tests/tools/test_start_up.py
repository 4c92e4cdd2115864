"""What the tools and `import tempo_ir` import before they have anything to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

TUNING = "tempo_ir.lowering.triton.tuning"
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


def test_a_compile_for_the_cpu_imports_what_it_needs_alone():
    """Each module that is imported is a millisecond of every compile."""
    code = """
import os, sys
os.environ["TEMPO_CACHE_DIR"] = ""
import tempo_ir as tp

@tp.program
def double():
    t, T = tp.dim("t")
    tp.output("y", tp.input("x", tp.f32[4], over=t) * 2.0)

tp.compile(double())
print(*(name for name in sys.modules if name.startswith("tempo_ir.lowering.triton.")), file=sys.stderr)
"""
    imported = imported_by(code)
    assert not imported & {"torch", "triton", "jax", "sympy", "transformers", "rich"}
    assert not {name for name in imported if name.startswith("tempo_ir.lowering.triton.")} - {TUNING}
