"""`expected-error` comments: which line they name and which message they take."""

from __future__ import annotations

import pytest

from tempo_ir.tools.diagnostics import Diagnostic, Place, Severity
from tempo_ir.tools.expected import mismatches


def error(line: int, message: str, severity: Severity = "error") -> Diagnostic:
    return Diagnostic(severity, message, Place("a.mlir", line, 1))


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("op // expected-error {{wrong}}", error(1, "it is wrong")),
        ("// expected-error@+1 {{wrong}}\nop", error(2, "wrong")),
        ("op\n// expected-error@-1 {{wrong}}", error(1, "wrong")),
        ("op\n// expected-error@above {{wrong}}", error(1, "wrong")),
        ("// expected-error@below {{wrong}}\nop", error(2, "wrong")),
        ("// expected-error@unknown {{wrong}}", Diagnostic("error", "wrong")),
        ("// expected-error@unknown {{wrong}}", Diagnostic("error", "wrong", Place("rnn.py", 1))),
        ("op // expected-remark {{fused}}", error(1, "fused", "remark")),
        ("op // expected-warning {{a}}", error(1, "a", "warning")),
        ("op // expected-error-re {{got {{[0-9]+}} of (x)}}", error(1, "got 42 of (x)")),
        ("op // expected-error {{a {b}}}", error(1, "a {b}")),
    ],
)
def test_expected_messages(text, diagnostic):
    assert mismatches(text, "a.mlir", [diagnostic]) == []


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("op // expected-error {{wrong}}", error(1, "right")),
        ("op // expected-error {{wrong}}", error(2, "wrong")),
        ("op // expected-error {{wrong}}", error(1, "wrong", "warning")),
        ("op // expected-error {{wrong}}", Diagnostic("error", "wrong")),
        ("op // expected-error {{wrong}}", Diagnostic("error", "wrong", Place("b.mlir", 1))),
        ("op // expected-error-re {{{{[a-z]}} of (x)}}", error(1, "9 of (x)")),
    ],
)
def test_one_missing_and_one_unexpected(text, diagnostic):
    found = [mismatch.message for mismatch in mismatches(text, "a.mlir", [diagnostic])]
    assert len(found) == 2
    assert found[0].startswith("unexpected")
    assert found[1].endswith("was not produced")


def test_comments_above_one_line_may_be_several():
    text = "// expected-error@below {{one}}\n// expected-error@below {{two}}\nop"
    assert mismatches(text, "a.mlir", [error(3, "two"), error(3, "one")]) == []


def test_a_number_expects_that_many():
    text = "op // expected-error 2 {{again}}"
    assert mismatches(text, "a.mlir", [error(1, "again"), error(1, "again")]) == []
    assert [m.message for m in mismatches(text, "a.mlir", [error(1, "again")])] == [
        'expected error "again" was not produced'
    ]


def test_notes_are_expected_at_the_place_of_their_message():
    text = "op // expected-error {{a}}\n// expected-note@-1 {{b}}"
    with_note = Diagnostic("error", "a", Place("a.mlir", 1), ("b",))
    assert mismatches(text, "a.mlir", [with_note]) == []
