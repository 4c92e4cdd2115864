"""Helpers of the sdg tests: parse a text, verify it, and enumerate the needed points by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from tempo_ir.dialects import get_all_dialects, sdg
from tempo_ir.dialects.sdg.points import is_root
from tempo_ir.index import evaluate


def parse_module(text: str) -> ModuleOp:
    """The module of a text."""
    context = Context()
    context.load_dialect(Builtin)
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    return Parser(context, text).parse_module()


def parse_program(text: str) -> sdg.ProgramOp:
    """The one program of a text."""
    (program,) = parse_module(text).body.ops
    assert isinstance(program, sdg.ProgramOp)
    return program


def generic_text(module: ModuleOp) -> str:
    """The module in generic form."""
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def op_named(program: sdg.ProgramOp, name: str) -> sdg.SdgOp:
    """The op whose first result has a name."""
    return next(
        op for op in program.body.ops if isinstance(op, sdg.SdgOp) and op.results and op.results[0].name_hint == name
    )


def needed_by_hand(program: sdg.ProgramOp, bounds: Mapping[str, int]) -> dict[sdg.SdgOp, set[tuple[int, ...]]]:
    """The needed points of each op at one choice of sizes, by following reads from the roots, point by point."""
    space = program.space
    ops = [op for op in program.body.ops if isinstance(op, sdg.SdgOp)]
    everywhere = {op: {tuple(point.values()) for point in op.domain.points(space, bounds)} for op in ops}
    found: dict[sdg.SdgOp, set[tuple[int, ...]]] = {op: set() for op in ops}
    waiting = [(op, point) for op in ops if is_root(op) for point in everywhere[op]]
    while waiting:
        op, point = waiting.pop()
        if point in found[op]:
            continue
        found[op].add(point)
        env = {**bounds, **dict(zip(op.domain.dims, point, strict=True))}
        for access in applying(op, env):
            producer = access.value.owner
            assert isinstance(producer, sdg.SdgOp)
            entries = [evaluate(entry, env) for entry in access.index]
            for there in itertools.product(*((e,) if isinstance(e, int) else e for e in entries)):
                if there in everywhere[producer]:
                    waiting.append((producer, there))
    return found


def applying(op: sdg.SdgOp, env: Mapping[str, int]) -> tuple[sdg.Access, ...]:
    """The reads of an op at one point: for a merge, that of the first case that holds."""
    if not isinstance(op, sdg.MergeOp):
        return op.accesses
    cases = zip(op.conds, op.accesses, strict=True)
    return tuple(access for cond, access in cases if evaluate(cond, env))[:1]
