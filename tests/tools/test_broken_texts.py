"""Texts that break off or are not text: every message is `file:line:col: error: ...`, the line, a caret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tempo_ir.tools import tempo_opt, tempo_run

ROOT = Path(__file__).parents[2]
TEXTS = [*sorted((ROOT / "examples" / "ir").glob("*.mlir")), ROOT / "lit_tests" / "dialects" / "loop" / "ops.mlir"]
MESSAGE = re.compile(r"(?P<place>\S+:\d+:\d+): error: (?P<text>\S.*)\n(?P<line>.*\S.*)\n(?P<margin>\s*)\^~*\n")
PROGRAM = """sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  sdg.output "y" %x[t] in (t) : tensor<f32>
}
"""
PYTHON = """import tempo_ir as tp


@tp.program
def p():
    t, T = tp.dim("t")
    tp.output("y", tp.input("x", tp.f32, over=t))
"""


def message_of(path, capsys, *arguments):
    """The parts of the one message about a file; None where there is none."""
    status = tempo_opt.main([str(path), *arguments])
    shown = capsys.readouterr().err
    if status == 0:
        assert shown == ""
        return None
    found = MESSAGE.fullmatch(shown)
    assert found is not None, shown
    assert found["place"].startswith(f"{path}:"), shown
    return found


@pytest.mark.parametrize("source", TEXTS, ids=lambda path: path.parent.name)
def test_a_text_that_is_cut_off(source, tmp_path, capsys):
    data = source.read_bytes()
    path = tmp_path / "cut.mlir"
    messages = 0
    for length in range(1, len(data), 37):
        path.write_bytes(data[:length])
        messages += message_of(path, capsys) is not None
    assert messages > len(data) // 37 // 3


@pytest.mark.parametrize(
    ("text", "place", "message", "caret"),
    [
        ("sdg.program @p dims(t: T) {\n\n  \n", "1:27", "the text ends inside of a region", 26),
        ("sdg.program @p dims(t: T) {\n  5\n}\n", "2:3", "an operation or `}` is expected", 2),
        ("sdg.program @p\n\n", "1:14", "Expected region", 13),
        ('// \N{SNOWMAN}\nsdg.program "\n', "2:13", "", 12),
    ],
)
def test_what_is_missing(text, place, message, caret, tmp_path, capsys):
    path = tmp_path / "missing.mlir"
    path.write_text(text, "utf-8")
    found = message_of(path, capsys)
    assert found is not None
    assert found["place"] == f"{path}:{place}"
    assert message in found["text"]
    assert len(found["margin"]) == caret


def test_bytes_that_are_no_text(tmp_path, capsys):
    path = tmp_path / "bytes.mlir"
    path.write_bytes("// one\n// \N{SNOWMAN} ".encode() + b"\xff two\n")
    found = message_of(path, capsys)
    assert found is not None
    assert found["place"] == f"{path}:2:6"
    assert found["text"] == "not a text file: byte 14 is not UTF-8"
    assert len(found["margin"]) == 5


@pytest.mark.parametrize(("name", "text"), [("p.mlir", PROGRAM), ("p.py", PYTHON)])
def test_a_byte_order_mark_is_skipped(name, text, tmp_path, capsys):
    plain, marked = tmp_path / name, tmp_path / f"marked_{name}"
    plain.write_text(text, "utf-8")
    marked.write_text(text, "utf-8-sig")
    shown = []
    for path in (plain, marked):
        assert tempo_opt.main([str(path)]) == 0
        shown.append(capsys.readouterr().out)
        assert tempo_run.main([str(path), "--set", "T=2", "--check"]) == 0
        capsys.readouterr()
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", ["p.mlir", "p.py"])
def test_columns_count_from_behind_a_byte_order_mark(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_text("? = 1\n", "utf-8-sig")
    found = message_of(path, capsys)
    assert found is not None
    assert (found["place"], found["line"], found["margin"]) == (f"{path}:1:1", "? = 1", "")
