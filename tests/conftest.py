"""Fixtures of all tests."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("NO_COLOR", "1")  # rich and argparse colour their output by the terminal; tests compare text


@pytest.fixture
def in_temporary_directory(tmp_path, monkeypatch):
    """Run the test in a directory of its own, which is also its value."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
