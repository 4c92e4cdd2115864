"""Fixtures of all tests, and where they find the helpers that stand beside them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# a folder's tests share a module beside them, such as `frontend_support`
sys.path[:0] = [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]

os.environ.setdefault("NO_COLOR", "1")  # rich and argparse colour their output by the terminal; tests compare text


@pytest.fixture
def in_temporary_directory(tmp_path, monkeypatch):
    """Run the test in a directory of its own, which is also its value."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
