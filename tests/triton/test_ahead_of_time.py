"""Kernels as the compiled code of three GPUs: nothing spilt, shared memory that there is, tensor cores, wide loads.

Figures are kept on disk by content, so that only what changed is compiled. A table of them is written to
`build/triton/`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdsl.context import Context

import tempo_ir as tp
from tempo_ir.lowering.targets import GPU_PASSES
from tempo_ir.lowering.triton.compiling import Figures, compile_kernels
from tempo_ir.lowering.triton.machines import machine_of
from tempo_ir.lowering.triton.module import kernel_sources
from tempo_ir.lowering.triton.style import PRECISIONS, KernelSource, Style
from tempo_ir.runtime.compiler import LOOP_PASSES, PERSIST, Levels, lower, module_of, run_passes
from tempo_ir.tools import programs
from tempo_ir.tools.parsing import own_context, parse_module
from tests.triton import catalogue, recurrences

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "semantics" / "programs"
TARGETS = ("sm_80", "sm_90", "gfx942")
REGISTERS = 65_536
"""Of a multiprocessor, hence of a program (NVIDIA)."""
CATALOGUE = {
    "ops": lambda: catalogue.ops(),
    "fusions": lambda: catalogue.fusions(),
    "fusions bf16": lambda: catalogue.fusions(dtype=tp.bf16),
    "attention": lambda: catalogue.attention(),
    "attention, 2 heads a group": lambda: catalogue.attention(group=2),
    "attention, 1 head a group": lambda: catalogue.attention(group=1, dtype=tp.bf16),
    "attention, width 80, window": lambda: catalogue.attention(width=80, window=8),
    "attention, width 24": lambda: catalogue.attention(width=24, dtype=tp.bf16),
    "attention, width 8": lambda: catalogue.attention(width=8, dtype=tp.f16),
    "attention, width 128": lambda: catalogue.attention(group=3, width=128, dtype=tp.bf16),
    "attention, width 256": lambda: catalogue.attention(width=256),
    "attention, 300 heads": lambda: catalogue.attention(heads=300, width=128, dtype=tp.bf16),
    "attention, long window": lambda: catalogue.attention(width=256, window=4096, dtype=tp.bf16),
    "prefill": lambda: catalogue.prefill(),
    "prefill, width 128": lambda: catalogue.prefill(group=3, width=128, dtype=tp.bf16),
    "prefill, width 80, window": lambda: catalogue.prefill(group=8, width=80, dtype=tp.f16, window=256),
    "matmul": lambda: catalogue.matmul(),
    "matmul bf16": lambda: catalogue.matmul(dtype=tp.bf16),
    "matmul f16, 37 columns": lambda: catalogue.matmul(dtype=tp.f16, n=37),
    "gemv": lambda: catalogue.matmul(m=1, dtype=tp.bf16),
    "gemv, 37 columns": lambda: catalogue.matmul(m=1, n=37),
    "5 rows, 37 columns of bf16": lambda: catalogue.matmul(m=5, n=37, dtype=tp.bf16),
    "2 rows of 8 in f16": lambda: catalogue.matmul(m=2, n=8, k=80, dtype=tp.f16),
    "3 rows of f32": lambda: catalogue.matmul(m=3, n=37, k=24),
    "adam": lambda: catalogue.adam(),
}
RECURRENCES = {
    "recurrent": lambda: recurrences.rnn(batch=1024, width=64),
    "recurrent bf16": lambda: recurrences.rnn(batch=1024, width=64, dtype=tp.bf16),
    "recurrent bf16, 256 wide": lambda: recurrences.rnn(batch=1024, width=256, dtype=tp.bf16),
    "gru": lambda: recurrences.gru(batch=1024, inputs=32, width=64),
    "lstm": lambda: recurrences.lstm(batch=1024, inputs=32, width=64),
    "back through time": lambda: recurrences.back_through_time(batch=1024, width=64),
    "windows of a recurrence": lambda: recurrences.windows(batch=4096),
    "a recurrence of all rows": lambda: recurrences.of_all_rows(batch=64),
    "a recurrence of heads": lambda: recurrences.heads(batch=1024, count=4, width=16),
}
"""Of which one launch runs all steps."""
CATALOGUE |= RECURRENCES
EXAMPLES = {
    "rnn": {},
    "reinforce": {},
    "rollout": {},
    "llama": {"layers": 2},
    "llama with a window": {"layers": 2, "window": 8},
}
NARROW = {
    "a scan walks its axis": "cumsum cumprod",
    "reads begin anywhere": "slice reverse pad",
    "there is the counter of a step": "next first_scalars",
    "there is one number a row, or a few": "random reshape_arange_eq_cast index_cast",
    "booleans are of one byte": "not",
    "a warp of 64 has one number a thread": "reshape_contract",
    "a few numbers of 16 bits": "broadcast reshape_add reshape_mul",
}
"""Kernels of the catalogue that read less than 8 bytes at once, by the beginnings of their names, and why."""


@cache
def loops(name: str) -> Levels:
    """A program of the catalogue, or an example, as loops and kernels of no target."""
    if name in CATALOGUE:
        program = CATALOGUE[name]()
    else:
        program, _ = programs.load_python(ROOT / "examples" / f"{name.split()[0]}.py", None, EXAMPLES[name])
        program = program.source
    return lower(module_of(program), "sm_80")


def sources_of(name: str, target: str) -> list[KernelSource]:
    """The kernels of a program for a target."""
    levels = loops(name)
    assert levels.loop is not None
    work = levels.loop.clone()
    if name in RECURRENCES or name in EXAMPLES:
        run_passes(Context(allow_unregistered=False), work, (PERSIST,), {})
    options = {"target": target, "join": not name.startswith(("ops", "fusions"))}  # there each kernel is looked at
    run_passes(Context(allow_unregistered=False), work, LOOP_PASSES[-1:], {}, options)
    run_passes(Context(allow_unregistered=False), work, GPU_PASSES, {})
    return kernel_sources(work)


def write_table(target: str, rows: list[tuple[str, KernelSource, Figures]]) -> None:
    """`build/triton/sm_80.md`: a line per kernel."""
    lines = [
        f"# {target}: {len(rows)} kernels\n",
        "| program | kernel | warps | registers | spilled | stack | shared | tensor cores | widest load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for program, source, found in rows:
        cores = "yes" if found.tensor_cores else ""
        cells = (program, source.name, source.warps, found.registers, found.spilled, found.stack, found.shared, cores)
        lines.append(f"| {' | '.join(map(str, cells))} | {found.widest_load} |")
    place = ROOT / "build" / "triton" / f"{target}.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines) + "\n")


def promises_tensor_cores(source: KernelSource, target: str) -> bool:
    """Whether a kernel has a product that the matrix units of the target compute: of f32 too on AMD."""
    return source.tensor_cores or (target == "gfx942" and "tl.dot(" in source.text)


def check(source: KernelSource, found: Figures, target: str) -> None:
    assert found.spilled == 0, (source.name, found)
    assert found.shared <= machine_of(target).shared, (source.name, found)
    if promises_tensor_cores(source, target):
        assert found.tensor_cores, (source.name, found)
    if target.startswith("sm_"):
        assert found.registers * 32 * source.warps <= REGISTERS, (source.name, found)


def compiled_as(source: KernelSource) -> object:
    """All of a kernel that its code depends on."""
    return source.text, source.warps, source.aligned


def like_those_of_another(target: str) -> set[object]:
    """The kernels without a product that sm_90 has too: of these the compiler of the same maker makes the same."""
    if target != "sm_80":
        return set()
    sources = [source for name in (*CATALOGUE, *EXAMPLES) for source in sources_of(name, "sm_90")]
    return {compiled_as(source) for source in sources if "tl.dot(" not in source.text}


@pytest.mark.parametrize(
    ("target", "every"),
    [*((target, False) for target in TARGETS), pytest.param("sm_80", True, marks=pytest.mark.slow)],
)
def test_ops_fusions_and_examples(target, every, tmp_path, monkeypatch, record_property):
    """Of sm_80 those alone, but for `every`, that are not compiled for sm_90 as they are."""
    monkeypatch.chdir(tmp_path)  # llama writes its random model there
    named = [(name, source) for name in (*CATALOGUE, *EXAMPLES) for source in sources_of(name, target)]
    assert len(named) >= 150
    known = set() if every else like_those_of_another(target)
    named = [(name, source) for name, source in named if compiled_as(source) not in known]
    figures = compile_kernels([source for _, source in named], target)
    rows = [(name, source, found) for (name, source), found in zip(named, figures, strict=True)]
    write_table(target, rows)
    record_property(f"kernels compiled ahead of time: for {target}", len(rows))
    narrow = tuple(" ".join(NARROW.values()).split())
    for name, source, found in rows:
        check(source, found, target)
        if name in ("ops", "fusions", "matmul", "matmul bf16", "gemv") and not source.name.startswith(narrow):
            assert found.widest_load >= 8, (name, source.name, found)
    assert sum(promises_tensor_cores(source, target) for _, source, _ in rows) >= 3


@pytest.mark.parametrize(
    ("name", "cores"),
    [("5 rows, 37 columns of bf16", True), ("2 rows of 8 in f16", True), ("3 rows of f32", False), ("gemv", False)],
)
def test_a_few_rows_of_16_bits_are_padded_for_tensor_cores(name, cores):
    (source, *_) = sources_of(name, "sm_90")
    assert source.tensor_cores is cores
    assert ("tl.dot(" in source.text) is cores


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_tensor_cores_multiply_f32_where_tf32_is_asked_for(target):
    module = lower(module_of(catalogue.matmul()), target).lowered
    for precision in PRECISIONS:
        (source,) = kernel_sources(module, Style(precision=precision))
        (found,) = compile_kernels([source], target)
        assert found.tensor_cores is (precision == "tf32")
        assert found.spilled == 0


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.mlir") if "refused" not in path.stem))
def test_every_program_of_the_suite(name, target, record_property):
    file = PROGRAMS / f"{name}.mlir"
    module = lower(module_of(parse_module(own_context(), file.read_text(), file.name)), target).lowered
    assert module is not None
    sources = kernel_sources(module)
    record_property(f"kernels compiled ahead of time: of the suite for {target}", len(sources))
    for source, found in zip(sources, compile_kernels(sources, target), strict=True):
        check(source, found, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [tp.f16, tp.bf16, tp.f64], ids=str)
def test_ops_in_other_types(dtype, target, record_property):
    module = lower(module_of(catalogue.ops(dtype=dtype)), target).lowered
    assert module is not None
    sources = kernel_sources(module)
    record_property(f"kernels compiled ahead of time: in other types for {target}", len(sources))
    for source, found in zip(sources, compile_kernels(sources, target), strict=True):
        check(source, found, target)
