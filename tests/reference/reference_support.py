"""Text to programs, and the interpreters on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from tempo_ir.dialects import loop, sdg
from tempo_ir.reference.calls import HostFactories
from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run


def program(text: str) -> sdg.ProgramOp | loop.ProgramOp:
    """The one program of a text, verified."""
    context = Context()
    for dialect in (Builtin, sdg.Sdg, loop.Loop):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    (found,) = module.ops
    assert isinstance(found, sdg.ProgramOp | loop.ProgramOp)
    return found


def interpret(
    text: str,
    bounds: Mapping[str, int] | None = None,
    arguments: Mapping[str, Any] | None = None,
    seed: int = 0,
    hosts: HostFactories | None = None,
    start: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """The outputs of a program text."""
    parsed = program(text)
    if isinstance(parsed, loop.ProgramOp):
        return run_loop(parsed, arguments or {}, bounds or {}, seed, hosts, start)
    return run(parsed, arguments or {}, bounds or {}, seed, hosts, start)
