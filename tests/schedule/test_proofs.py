"""Proofs run on every compile, can be switched off, and are measured by themselves."""

from __future__ import annotations

from collections import Counter

import pytest

import tempo_ir as tp
from tempo_ir.lowering import bounds
from tempo_ir.lowering.formation import loop_form_kernels
from tempo_ir.lowering.proofs import proving, timed_proofs
from tempo_ir.lowering.schedule import driver as scheduling
from tempo_ir.lowering.schedule import legality
from tempo_ir.lowering.storage import check
from tempo_ir.lowering.storage import driver as storage
from tests.schedule.schedule_programs import RNN, layers
from tests.schedule.schedule_support import parse

PROOFS = [
    (scheduling, "check_schedule"),
    (loop_form_kernels, "check_folds"),
    (loop_form_kernels, "check_kernels"),
    (storage, "check_storage"),
]


class WrongProgramError(Exception):
    """What a checker here finds in every program."""


@pytest.mark.parametrize(("module", "name"), PROOFS)
def test_each_compile_proves_unless_told_not_to(module: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise WrongProgramError

    monkeypatch.setattr(module, name, refuse)
    with pytest.raises(WrongProgramError):
        tp.compile(parse(RNN))
    tp.compile(parse(RNN), check=False)


def questions(text: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each question that isl is asked in the proofs of a compile is asked."""
    asked: Counter[str] = Counter()

    def counted(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def ask(*arguments: object, **options: object) -> object:
            asked[f"{owner.__module__}.{name}"] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, ask)

    with monkeypatch.context() as monkeypatch:
        for name in ("_not_once", "_late"):
            counted(legality._Checker, name)  # pyright: ignore[reportPrivateUsage]
        counted(check._Checker, "_fault")  # pyright: ignore[reportPrivateUsage]
        counted(bounds._Checker, "_example")  # pyright: ignore[reportPrivateUsage]
        tp.compile(parse(text))
    return asked


def test_equal_layers_ask_no_more_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = questions(layers(3), monkeypatch), questions(layers(9), monkeypatch)
    assert few == many
    assert len(few) == 4
    assert all(few.values())


def test_proofs_are_measured_by_themselves() -> None:
    seconds = dict(tp.compile(parse(RNN)).stats.compile_seconds)
    for name in ("sdg-schedule", "loop-form-kernels", "loop-plan-storage"):
        assert seconds[name] > 0
        assert seconds[f"{name}: proof"] > 0
    assert not [name for name in tp.compile(parse(RNN), check=False).stats.compile_seconds if "proof" in name]


def test_times_of_stage_and_proof_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 10.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    seconds: dict[str, float] = {}
    with timed_proofs(seconds, "pass"), proving():
        pass
    assert seconds == {"pass": 8.0, "pass: proof": 2.0}
