"""The text of `library.py`, function by function: kernels take what they call along."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

HEADER = "import triton\nimport triton.language as tl\n"
"""What every file with kernels, or functions that they call, begins with."""


def _functions() -> dict[str, tuple[str, frozenset[str]]]:
    """The text of each function and the names that it uses, in the order of the file."""
    text = Path(__file__).with_name("library.py").read_text()
    lines = text.splitlines()
    functions: dict[str, tuple[str, frozenset[str]]] = {}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        source = "\n".join(lines[node.decorator_list[0].lineno - 1 : node.end_lineno]) + "\n"
        used = frozenset(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
        functions[node.name] = source, used
    return functions


_FUNCTIONS = _functions()
LIBRARY_NAMES = tuple(_FUNCTIONS)
"""Every function, in the order of the file."""


def library_sources(names: Iterable[str]) -> list[str]:
    """The text of functions and of those that they call, in the order of the file."""
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [used for used in _FUNCTIONS[name][1] if used in _FUNCTIONS]
    return [text for name, (text, _) in _FUNCTIONS.items() if name in needed]


def library_file(names: Iterable[str]) -> str:
    """The file `library.py` of a package: what its kernels call."""
    head = '"""What the kernels call where Triton\'s own operation means something else, or is missing."""\n\n'
    return head + "\n\n".join([HEADER, *library_sources(names)])
