"""What settling a recorded program gives is kept beside its code, and a program that is recorded again settles so."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import tempo_ir as tp
from tempo_ir.dialects.text import program_text
from tempo_ir.frontend import settlement
from tempo_ir.frontend.settlement import Settlement
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Binary, Compare, Const, Sym
from tempo_ir.kept import DIRECTORY, SIZE, where_kept
from tempo_ir.runtime.errors import CompileError

ROOT = Path(__file__).parents[2]


@tp.program
def first_alone():
    """The case of later steps has no point, and nothing needs what it reads."""
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[3], over=t)
    y = tp.tensor("y", tp.f32[3], over=t)
    y[0] = x[0] * 2.0
    y[t + 1] = tp.exp(x[t + 1]) + y[t]
    tp.output("y", y[0])


@tp.program
def small_sizes_fail():
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[3], over=t)
    tp.output("y", tp.mean(x[0:4], axis=0))


@tp.program
def reads_the_future(shift=1):
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[3], over=t)
    y = tp.tensor("y", tp.f32[3], over=t)
    y[t] = y[t + shift] + x
    tp.output("y", y)


PROGRAMS = {
    "cases": first_alone,
    "preconditions": small_sizes_fail,
    **dict.fromkeys(("bptt", "llama", "n_step", "reinforce", "rnn", "rollout"), tp.load_program),
}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    return tmp_path


@pytest.fixture
def unsettled(monkeypatch):
    """Called, no program can be settled any more."""
    return lambda: monkeypatch.setattr(settlement, "settle", None)


def recorded(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.recorded"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_recorded_again_is_the_same(name, directory, unsettled, monkeypatch):
    monkeypatch.chdir(directory)
    arguments = (ROOT / "examples" / f"{name}.py",) if PROGRAMS[name] is tp.load_program else ()
    first = PROGRAMS[name](*arguments)
    first.keep()
    assert len(recorded(directory)) == 1
    unsettled()
    again = PROGRAMS[name](*arguments)
    again.module.verify()
    assert program_text(again.module) == program_text(first.module)
    assert str(again) == str(first)
    assert again.bounds == first.bounds


def test_what_settling_changes(directory):
    program = first_alone()
    found = program._known.settlement
    assert len(found.cases) == 1
    assert None in found.domains
    stated = small_sizes_fail()._known.settlement
    assert [str(held) for held, _ in stated.preconditions] == ["T >= 4"]
    for each in (found, stated):
        assert Settlement.of_bytes(each.to_bytes()) == each


def test_compiled_programs_alone_are_kept(directory, monkeypatch):
    first_alone()
    tp.compile(first_alone(), cache=False)
    tp.compile(first_alone(), "reference")
    assert recorded(directory) == []
    tp.compile(first_alone())
    (entry,) = recorded(directory)
    begin = entry.stat().st_ino
    tp.compile(first_alone())
    assert [path.stat().st_ino for path in recorded(directory)] == [begin]
    entry.unlink()
    assert tp.compile(first_alone()).stats.cached  # the code is there, what is known of the program is not
    assert recorded(directory) == [entry]
    monkeypatch.setenv(DIRECTORY, "")
    first_alone().keep()


def test_a_program_that_is_refused_is_refused_again(directory):
    messages: list[str] = []
    for _ in range(2):
        with pytest.raises(tp.ProgramError) as raised:
            reads_the_future()
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "test_settlement.py:" in messages[0]
    assert list(directory.iterdir()) == []


def test_another_program_or_version_is_settled_anew(directory, monkeypatch):
    small_sizes_fail().keep()
    first_alone().keep()
    assert len(recorded(directory)) == 2
    versions = settlement.versions()
    for number in range(len(versions)):
        newer = (*versions[:number], "newer", *versions[number + 1 :])
        monkeypatch.setattr(settlement, "versions", lambda newer=newer: newer)
        first_alone().keep()
    assert len(recorded(directory)) == 2 + len(versions)


@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_a_damaged_entry_is_made_anew(directory, damage):
    first = first_alone()
    first.keep()
    (entry,) = recorded(directory)
    whole = entry.read_bytes()
    entry.write_bytes({"cut": whole[:-1], "empty": b"", "changed": whole[:-3] + b"8" + whole[-2:]}[damage])
    again = first_alone()
    assert program_text(again.module) == program_text(first.module)
    again.keep()
    assert entry.read_bytes() == whole


def test_what_another_program_gave_changes_nothing():
    program = first_alone()
    text = program_text(program.module)
    other = dataclasses.replace(small_sizes_fail()._known.settlement, domains=())
    with pytest.raises(ValueError, match="of another program"):
        other.apply(program.op)
    assert program_text(program.module) == text


def test_what_text_does_not_say_whole_is_not_kept(directory):
    program, T = first_alone(), Sym("T")
    unsimplified = Space((("t", T),), Compare(">=", Binary("+", T, Const(0)), Const(1)))
    program._known.settlement = dataclasses.replace(program._known.settlement, space=unsimplified)
    program.keep()
    assert recorded(directory) == []


def test_a_size_that_is_none_is_left_to_a_compile(directory, monkeypatch):
    monkeypatch.setenv(SIZE, "much")
    program = first_alone()
    program.keep()
    with pytest.raises(ValueError, match="TEMPO_CACHE_BYTES is 'much'"):
        where_kept()
    with pytest.raises(CompileError, match="TEMPO_CACHE_BYTES is 'much': give the bytes"):
        tp.compile(program)
