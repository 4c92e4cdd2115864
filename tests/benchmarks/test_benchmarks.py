"""The programs of the benchmarks agree with their twins in jax and torch at tiny sizes; reports are written."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import tempo_ir as tp
from benchmarks import compile as compile_benchmark
from benchmarks import compile_programs, decode, harness, kernels, memory, page, rl, rnn
from benchmarks.harness import Measurement, Report, Sheet, System, bound_of, compare, finish, grown_bytes
from benchmarks.llama_torch import CompiledLlama, TorchLlama
from benchmarks.rl_programs import Settings
from benchmarks.targets import SHARES, outcomes
from tempo_ir.runtime.profile import KernelTime, Profile

TINY = decode.Model(
    "tiny", {"layers": 2, "hidden": 16, "heads": 4, "kv_heads": 2, "vocabulary": 50, "feed_forward": 24}
)


@pytest.fixture
def once(monkeypatch):
    """`compare` runs every system once and measures nothing."""

    def run(report, benchmark, case, systems, units, rounds, bound=None):
        report.notes += [system.name for system in systems if system.run() >= 0]

    for module in (decode, kernels, rl, rnn):
        monkeypatch.setattr(module, "compare", run)
    monkeypatch.setattr(decode, "bound_of", lambda *_: 0.0)
    monkeypatch.setattr(kernels, "bound_of", lambda *_: 0.0)
    monkeypatch.setattr(rnn, "bound", lambda *_: 0.0)
    monkeypatch.setattr(rl, "bound_of", lambda *_: 0.0)
    return Report()


@pytest.mark.parametrize("window", [None, 5])
def test_decoders_give_the_same_tokens(window, once, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(decode.Model, "checkpoint", lambda self: decode.llm.write_random_llama(tmp_path, **self.sizes))
    decode.decode(once, TINY, window, batch=2, lengths=(12, 19), rounds=1)
    others = ["jax", *["jax ring"] * (window is not None), "torch"]
    assert once.notes == ["tempo_ir", "tempo_ir bf16", "tempo_ir i8", *others] * 2


@pytest.mark.parametrize("window", [None, 5])
def test_the_decoder_of_fixed_shapes_gives_the_tokens_of_the_growing_one(window, tmp_path, monkeypatch) -> None:
    """Not compiled here, which takes a minute."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    path = decode.llm.write_random_llama(tmp_path, **TINY.sizes)
    weights, config = load_file(path / "model.safetensors"), json.loads((path / "config.json").read_text())
    prompt = np.array([[1, 5, 2], [3, 3, 9]])
    static, eager = CompiledLlama(weights, config, window), TorchLlama(weights, config, window)
    np.testing.assert_array_equal(static.generate(prompt, 17), eager.generate(prompt, 17))


def test_tokens_may_differ_after_logits_that_are_equal_to_rounding_only() -> None:
    logits = np.zeros((1, 12, 4))
    logits[..., 1] = logits[..., 2] = 1.0
    eager = SimpleNamespace(scores=lambda tokens: logits)
    ours = np.ones((1, 12), np.int64)
    decode.check_tokens("jax", ours, 2 * ours, eager)
    with pytest.raises(SystemExit, match="row 0, token 8"):
        decode.check_tokens("jax", ours, 3 * ours, eager)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_recurrent_networks_agree(cell: str, learn: bool) -> None:
    executable = tp.compile(rnn.recurrent(cell=cell, batch=2, width=3, learn=learn))
    systems = rnn.systems_of(executable, 0.0, cell, learn, (7, 2, 3))
    assert [system.run() for system in systems] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "settings",
    [
        Settings("reinforce", 3, hidden=5),
        pytest.param(Settings("a2c", 3, hidden=5), marks=pytest.mark.slow),
        pytest.param(Settings("ppo", 3, hidden=5), marks=pytest.mark.slow),
        Settings("ppo", 4, hidden=5, epochs=2, minibatch=20),
    ],
    ids=["reinforce", "a2c", "ppo", "ppo of minibatches"],
)
def test_agents_end_with_the_same_networks(settings: Settings) -> None:
    rl.check(settings, steps=30, iterations=2)


@pytest.mark.slow
def test_what_differs_is_an_error(monkeypatch) -> None:
    draws = rl.draws_of
    monkeypatch.setattr(rl, "draws_of", lambda *arguments: {**draws(*arguments), "first": np.zeros((3, 4), np.float32)})
    with pytest.raises(SystemExit, match="rl: "):
        rl.check(Settings("reinforce", 3, hidden=5), steps=30, iterations=2)


@pytest.mark.parametrize("vectorised", [pytest.param(False, marks=pytest.mark.slow), True])
def test_agents_run_with_gymnasium(vectorised: bool, once, monkeypatch) -> None:
    monkeypatch.setattr(rl, "STEPS", 5)
    settings = Settings("ppo", 2, hidden=5)
    case = rl.case_of(settings, "vectorised" if vectorised else "SyncVectorEnv")
    found = rl.gymnasium(once, settings, case, rounds=1)
    assert once.notes == ["tempo_ir", "jax", "torch"]
    assert all(share > 1.0 for shares in found.shares.values() for share in shares)
    assert found.profile().elsewhere > 0.0


@pytest.mark.parametrize("kernel", list(kernels.kernels(tiny=True)), ids=lambda kernel: kernel.name)
def test_kernels_agree(kernel: kernels.Kernel, once) -> None:
    kernels.measure(once, kernel, rounds=1)
    assert once.notes == ["tempo_ir", "jax", "torch"]


@pytest.mark.parametrize("size", [2, 30, 200])
def test_many_statements_compile_and_agree(size: int) -> None:
    x = np.random.default_rng(0).normal(size=(128, compile_programs.WIDTH)).astype(np.float32)
    out = tp.compile(compile_programs.statements(size=size))(x=x)
    jitted, _ = compile_programs.jax_statements(size)
    np.testing.assert_allclose(out["h"], jitted(x), rtol=1e-4, atol=1e-5)


def test_the_gradients_of_the_compile_benchmark_agree() -> None:
    x = np.random.default_rng(0).normal(size=(9, compile_programs.BATCH, compile_programs.WIDTH)).astype(np.float32)
    executable = tp.compile(compile_programs.rnn(size=9))
    state = executable.init(seed=0)
    jitted, _ = compile_programs.jax_rnn(9)
    expected = np.asarray(jitted(state["w"], x))
    np.testing.assert_allclose(executable(x=x, state=state)["gradient"], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("system", ["tempo_ir", "jax"])
def test_seconds_of_a_process_are_those_since_it_began(system: str) -> None:
    compiled = compile_benchmark.measure(system, "statements", 2, first=False)
    process = compile_benchmark.measure(system, "statements", 2, first=True)
    began = compile_benchmark.began()
    assert 0.0 < compiled["wall"] < process["wall"] <= time.time() - began + 0.1
    assert compiled["cpu"] < process["cpu"] <= compile_benchmark.used_cpu()


@pytest.mark.parametrize("n", [1, 3, None])
def test_the_policy_gradient_runs_in_jax(n: int | None) -> None:
    jitted, arguments = memory.policy_gradient(n, steps=5, envs=2, side=4)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jitted(*arguments)))


def test_reports_hold_rows_ratios_and_what_the_page_shows(tmp_path: Path) -> None:
    report = Report(only={"T": "8"})
    assert report.wants({"T": 8})
    assert report.wants({"size": 3})
    assert not report.wants({"T": 9})
    assert Report(only={"T": "7", "size": "3"}, offered=report.offered).missing == ["no case has T=7: T is 8, 9"]
    assert Report(only={"U": "7"}, offered=report.offered).missing == ["no case has U=7: they have T, size"]
    assert report.missing == []
    systems = [System("tempo_ir", lambda: finish(None), 0.5, 1000), System("torch", lambda: finish(None), 0.0)]
    slow = Profile(1e-3, (KernelTime("softmax_kernel", 4, 6e-4, 1e-4, 2000, None),))
    compare(report, "kernels", {"kernel": "softmax", "T": 8}, systems, units=2, rounds=3, bound=1e-9)
    report.add_profile("kernels", {"kernel": "softmax", "T": 8}, slow)
    sheet = Sheet("shares", ("environment", "tempo_ir"))
    sheet.add("vectorised", 1.5)
    sheet.add("none", float("nan"))
    report.sheets.append(sheet)
    report.notes.append("a note")
    report.write_json(tmp_path / "kernels.json")
    written = json.loads((tmp_path / "kernels.json").read_text())
    assert [row["system"] for row in written["rows"]] == ["tempo_ir", "torch"]
    assert [ratio["system"] for ratio in written["ratios"]] == ["torch"]
    page.write_page(tmp_path, tmp_path / "page.md", ("first", "kernels"))
    text = (tmp_path / "page.md").read_text()
    assert "## kernels" in text
    assert "## first" not in text
    assert "| kernel | T | system |" in text
    assert "| vectorised | 1.5 |" in text
    assert "| softmax_kernel | 4 | 600.0 us | 60 % | 100.0 us | 0.0 |  |" in text
    assert "| outside of kernels |  | 400.0 us | 40 % |" in text
    assert "| kernels | kernel=softmax T=8 | torch | at least 1 |" in text
    assert "a note" in text


def report_of(benchmark: str, case: dict[str, object], bound: float | None, ratios: dict[str, float]) -> Report:
    """A report of one case, in which tempo_ir takes 2 s and others so many times as long."""
    report, ours = Report(), [Measurement(2.0, 2.0)] * 3
    theirs = {name: [Measurement(2.0 * ratio, 2.0)] * 3 for name, ratio in ratios.items()}
    report.add(benchmark, case, "tempo_ir", ours, bound=bound)
    report.add_ratios(benchmark, case, {"tempo_ir": ours, **theirs})
    return report


DECODE = {"model": "4x256", "window": None, "T": 1024, "batch": 1}
OUTCOMES = [
    ("kernels", {"kernel": "softmax", "rows": 3}, None, {"torch": 0.5}, {"torch": (0.5, False)}),
    ("kernels", {"kernel": "gemm", "size": 1024}, None, {"torch": 0.5}, {}),
    (
        "rnn",
        {"hidden": 64, "batch": 9},
        None,
        {"torch": 2.0, "jax": 1.25},
        {"torch": (2.0, True), "jax": (1.25, False)},
    ),
    ("decode", DECODE, 1.5, {"jax": 2.5}, {"jax": (2.5, True), "of bound": (0.75, False)}),
    ("decode", DECODE, None, {"tempo_ir bf16": 0.5}, {"tempo_ir bf16": (2.0, True)}),
    ("compile", {"program": "decoder", "layers": 28, "start": "cold"}, None, {}, {"seconds": (2.0, True)}),
    ("compile", {"program": "decoder", "layers": 4, "start": "cold"}, None, {}, {"seconds": (2.0, False)}),
]


@pytest.mark.parametrize(("benchmark", "case", "bound", "ratios", "expected"), OUTCOMES)
def test_what_a_report_says_of_targets(benchmark, case, bound, ratios, expected) -> None:
    found = list(outcomes(report_of(benchmark, case, bound, ratios).document))
    assert {outcome.target.measure: (outcome.measured, outcome.is_met) for outcome in found} == expected
    assert all(outcome.of_bound == (None if bound is None else bound / 2.0) for outcome in found)


def test_targets_of_several_cases_and_of_sheets() -> None:
    report = Report()
    for steps, seconds in ((128, 1.0), (10**6, 1.25)):
        case = {"program": "rnn", "T": steps, "start": "cold"}
        report.add("compile", case, "tempo_ir", [Measurement(seconds, seconds)])
    sheet = Sheet(SHARES, ("environment", "tempo_ir"))
    sheet.add("vectorised, 64 environments", 1.5)
    sheet.add("vectorised, 1024 environments", 9.0)
    report.sheets.append(sheet)
    found = {outcome.target.measure: (outcome.measured, outcome.is_met) for outcome in outcomes(report.document)}
    assert found == {"spread of T": (1.25, False), SHARES: (1.5, True)}


def test_cases_that_ran_apart_are_one_report(tmp_path: Path) -> None:
    for number, (file, sizes) in enumerate({"kernels.json": (1, 2), "kernels.later.json": (2, 3)}.items()):
        report = Report(notes=["as before"])
        for size in sizes:
            times = {name: [Measurement(number + 1.0, 1.0)] for name in ("tempo_ir", "torch")}
            for name, mine in times.items():
                report.add("kernels", {"size": size}, name, mine)
            report.add_ratios("kernels", {"size": size}, times)
        report.sheets.append(Sheet("stages", ("layers", "seconds"), [(str(number), (1.0,))]))
        report.sheets.append(Sheet("stages", ("stage", f"{number} layers"), [("in all", (1.0,))]))
        report.write_json(tmp_path / file)
    merged = page.merged(page.reports_of(tmp_path, "kernels", 1))
    ours = [(row["case"]["size"], row["median_s"]) for row in merged["rows"] if row["system"] == "tempo_ir"]
    assert ours == [(1, 1.0), (2, 2.0), (3, 2.0)]
    assert [ratio["case"]["size"] for ratio in merged["ratios"]] == [1, 2, 3]
    assert merged["notes"] == ["as before"]
    apart = [["in all", [1.0]]]
    assert [sheet["lines"] for sheet in merged["sheets"]] == [[["0", [1.0]], ["1", [1.0]]], apart, apart]
    assert page.reports_of(tmp_path, "kernels", 2) == []


def test_a_case_that_misses_a_target_is_profiled() -> None:
    profiled: list[str] = []

    def system(name: str, factor: int) -> System:
        def profile() -> Profile:
            profiled.append(name)
            return Profile(1.0, ())

        def run() -> float:
            np.ones(factor * 100_000).sum()
            return 0.0

        return System(name, run, 0.0, profile=profile if name == "tempo_ir" else None)

    report = Report()
    for ours, theirs in ((1, 50), (50, 1)):
        compare(
            report,
            "kernels",
            {"kernel": "Adam", "ours": ours},
            [system("tempo_ir", ours), system("torch", theirs)],
            1,
            5,
        )
    assert profiled == ["tempo_ir"]
    assert [case["ours"] for _, case, _ in report.profiles] == [50]


def test_times_are_per_unit_and_long_cases_run_fewer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def system(name: str, units: int | None) -> System:
        def run() -> float:
            time.sleep(0.01)
            return 0.0

        return System(name, run, 0.0, 0, units=units)

    report, systems = Report(), [system("tempo_ir", None), system("jax", 2)]
    compare(report, "decode", {"T": 20}, systems, units=20, rounds=7)
    ours, theirs = report.rows
    assert (ours.runs, theirs.runs) == (7, 7)
    assert ours.min_s >= 0.01 / 20
    assert theirs.min_s >= 0.01 / 2
    assert report.ratios[0]["median_ratio"] > 5
    monkeypatch.setattr(harness, "PATIENCE", 0.02)
    compare(report, "decode", {"T": 21}, systems, units=20, rounds=7)
    assert [row.runs for row in report.rows] == [7, 7, 3, 3]


def test_ratios_are_of_runs_in_turn(tmp_path: Path) -> None:
    report = Report()
    ours = [Measurement(1.0, 1.0), Measurement(4.0, 1.0), Measurement(1.0, 1.0)]
    theirs = [Measurement(3.0, 2.0, 1.0), Measurement(9.0, 2.0, 1.0), Measurement(4.0, 2.0, 1.0)]
    report.add_ratios("kernels", {}, {"tempo_ir": ours, "jax": theirs})
    assert report.ratios[0]["median_ratio"] == 2.0
    assert report.ratios[0]["cpu_ratio"] is None  # nobody knows the processor's part of what is excluded
    report.add_ratios("kernels", {}, {"tempo_ir": ours, "torch": [Measurement(3.0, 2.0)] * 3})
    assert report.ratios[1]["cpu_ratio"] == 2.0
    report.add("kernels", {}, "tempo_ir", ours)
    report.add("kernels", {}, "jax", theirs)
    report.write_json(tmp_path / "kernels.json")
    report.print()
    page.write_page(tmp_path, tmp_path / "page.md", ("kernels",))
    assert "| jax | 3 | 3.000 s | 2.00 |  |" in (tmp_path / "page.md").read_text()


def test_what_a_process_grows_by_and_what_bounds_it() -> None:
    if not Path("/proc/self/clear_refs").exists():
        return
    assert 30e6 < grown_bytes(lambda: np.ones(5_000_000)) < 60e6
    assert bound_of(1 << 20, 0.0) < bound_of(1 << 24, 0.0)
    assert bound_of(1 << 10, 1e9) == bound_of(1 << 10, 2e9) / 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["page", "--json", "nowhere"], "nowhere has no reports, the page stays"),
        (["kernels", "--only", "softmax"], "'softmax' is no KEY=VALUE, as T=1024"),
        (["kernels", "--only", "kernel=softmaxx"], "no case has kernel=softmaxx: kernel is softmax\n"),
    ],
)
def test_what_the_command_line_refuses(arguments, message, tmp_path, monkeypatch, capsys) -> None:
    from benchmarks.__main__ import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("benchmarks.__main__.limit_threads", lambda _: None)
    monkeypatch.setattr(kernels, "run", lambda report, quick: report.wants({"kernel": "softmax"}))
    monkeypatch.setenv("TEMPO_CACHE_DIR", "")
    page_file = tmp_path / "page.md"
    page_file.write_text("as it was")
    try:
        status = main([*arguments, "--page", str(page_file)])
    except SystemExit as error:
        status = error.code
    assert status in (1, 2)
    assert message in capsys.readouterr().err
    assert page_file.read_text() == "as it was"
