"""Fixtures of all tests, and where they find the helpers that stand beside them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

# a folder's tests share a module beside them, such as `frontend_support`
sys.path[:0] = [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]

os.environ.setdefault("TEMPO_NUM_THREADS", "1")  # tests run side by side; those of threads say how many
os.environ.setdefault("NO_COLOR", "1")  # rich and argparse colour their output by the terminal; tests compare text


def pytest_terminal_summary(terminalreporter):
    """The sums of what tests counted with `record_property("subject: what", number)`, one line per subject."""
    totals: dict[str, Counter[str]] = {}
    for report in terminalreporter.getreports("passed"):
        for key, value in report.user_properties:
            subject, _, what = key.partition(": ")
            totals.setdefault(subject, Counter())[what] += value
    for subject, counts in totals.items():
        told = ", ".join(f"{count} {what}" for what, count in counts.items())
        terminalreporter.write_line(f"{subject}: {told}")


@pytest.fixture
def in_temporary_directory(tmp_path, monkeypatch):
    """Run the test in a directory of its own, which is also its value."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
