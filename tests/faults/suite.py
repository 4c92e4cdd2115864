"""Which tests run for an edit, in which order: those of the package first, then those that see most for their time.

That order is all that is known here; what an edit does is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Session = tuple[str, ...]

LIT_PASSES: Session = ("lit_tests/passes",)

OWN: dict[str, tuple[Session, ...]] = {
    "tempo_ir/index": (
        ("lit_tests/passes", "lit_tests/dialects/sdg", "lit_tests/lowering/schedule"),
        ("tests/index", "tests/dialects/test_sdg_needed.py", "tests/frontend/test_indexing.py"),
        ("tests/frontend/test_gradients.py", "tests/semantics/test_indexing_and_domains.py"),
    ),
    "tempo_ir/dialects": (("lit_tests/dialects", "lit_tests/passes"), ("tests/dialects",)),
    "tempo_ir/reference": (("tests/reference",),),
    "tempo_ir/frontend": (
        ("tests/frontend/test_indexing.py", "tests/frontend/test_cases.py", "tests/frontend/test_hosts_and_random.py"),
        ("tests/frontend/test_state.py", "tests/frontend"),
    ),
    "tempo_ir/passes": (
        LIT_PASSES,
        (
            *("tests/passes/test_sdg_cleanup.py", "tests/passes/test_sdg_reduce_domain.py"),
            *("tests/passes/test_utilities.py", "tests/passes/test_sdg_simplify.py"),
        ),
        ("tests/semantics/test_types_and_numerics.py", "tests/passes/test_sdg_vectorize.py"),
    ),
    "tempo_ir/passes/gradients": (
        LIT_PASSES,
        ("tests/frontend/test_gradients.py", "tests/passes/test_sdg_autodiff_rules.py"),
        ("tests/passes/test_sdg_autodiff_losses.py", "tests/passes/test_sdg_autodiff.py"),
        ("tests/semantics/test_gradients_everywhere.py",),
    ),
    "tempo_ir/passes/vectorize": (LIT_PASSES, ("tests/passes/test_sdg_vectorize.py",)),
    "tempo_ir/passes/simplify": (
        LIT_PASSES,
        ("tests/passes/test_sdg_simplify.py", "tests/semantics/test_optimisation_soundness.py"),
    ),
    "tempo_ir/lowering/schedule": (("lit_tests/lowering/schedule",), ("tests/schedule",)),
    "tempo_ir/lowering/formation": (("lit_tests/lowering/formation",), ("tests/formation",)),
    "tempo_ir/lowering/storage": (
        ("lit_tests/lowering/storage",),
        ("tests/storage/test_plan.py", "tests/storage", "tests/semantics/test_storage_and_memory.py"),
    ),
    "tempo_ir/lowering/kernels": (
        ("lit_tests/lowering/kernels",),
        ("tests/kernels/test_scans.py", "tests/kernels/test_bodies.py", "tests/frontend/test_hosts_and_random.py"),
        ("tests/kernels",),
    ),
    "tempo_ir/lowering/llvm": (("lit_tests/lowering/llvm",), ("tests/llvm",)),
    "tempo_ir/lowering/triton": (("lit_tests/lowering/triton",), ("tests/triton/test_memory.py", "tests/triton")),
    "tempo_ir/runtime": (
        ("tests/runtime/test_calls.py", "tests/frontend/test_program.py", "tests/runtime"),
        ("tests/semantics/test_adversaries.py", "tests/semantics/test_storage_and_memory.py"),
    ),
    "tempo_ir/tools": (("lit_tests/tools",), ("tests/tools",)),
    "examples": (("tests/frontend/test_llm.py", "tests/frontend/test_examples.py"),),
}
"""Sessions by the package edited: its own tests, short ones first."""

NEXT: tuple[Session, ...] = (
    ("lit_tests/passes", "lit_tests/lowering", "lit_tests/dialects"),
    (
        *("tests/semantics/test_indexing_and_domains.py", "tests/semantics/test_cases_and_recurrences.py"),
        *("tests/fuzz/test_programs.py", "tests/semantics", "tests/passes", "tests/schedule", "tests/storage"),
    ),
)
"""Sessions for every edit, by what they find in their time."""

REST: tuple[Session, ...] = (
    (
        *("tests/runtime", "tests/fuzz", "tests/index", "tests/dialects", "tests/reference", "tests/frontend"),
        *("tests/formation", "tests/kernels", "tests/llvm", "tests/tools", "tests/triton", "tests/outside"),
        "tests/examples",
    ),
    ("lit_tests/tools",),
)
"""What is left of the suite."""


def sessions_for(paths: Iterable[str]) -> Sequence[Session]:
    """The sessions to run when these files were edited, in order; those of an inner package come first."""
    packages = [package for package in OWN if any(path.startswith(f"{package}/") for path in paths)]
    packages.sort(key=len, reverse=True)
    found = (*(session for package in packages for session in OWN[package]), *NEXT, *REST)
    return list(dict.fromkeys(found))
