"""What the programs that were tried cover: kinds of index entries, ops, and forms of programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import ProgramOp, SdgOp
from tempo_ir.dialects.types import dtype_name, element
from tempo_ir.graphs import strongly_connected
from tempo_ir.index.expr import TRUE, Const, Entry, Expr, MinMax, Slice, Sym, free_symbols


def kind_of(entry: Entry, dim: str, bound: Expr, dims: frozenset[str]) -> str:
    """The kind of an index entry that reads `dim`; `dims` are all dims of the program."""
    used = free_symbols(entry) & dims
    across = used - {dim}
    if isinstance(entry, Slice):
        return _range_kind(entry, dim, bound, used)
    if across:
        return "points of several dims" if dim in used else "point of another dim"
    return _point_kind(entry, dim, bound)


def _point_kind(entry: Expr, dim: str, bound: Expr) -> str:
    here = Sym(dim)
    if entry == here:
        return "current"
    if isinstance(entry, MinMax):
        return "clamped by min or max"
    if dim not in free_symbols(entry):
        return "constant" if isinstance(entry, Const) else "last, or by bounds alone"
    distance = entry - here
    if isinstance(distance, Const):
        return "shift back" if distance.value < 0 else "shift forward"
    if not free_symbols(entry + here) & {dim}:
        return "reversed"
    if "mod" in str(entry):
        return "modular"
    return "floordiv" if "floordiv" in str(entry) else "scaled"


def _range_kind(entry: Slice, dim: str, bound: Expr, used: frozenset[str]) -> str:
    if entry.step > 1:
        return "range with a step"
    if used - {dim}:
        return "range by another dim"
    first, last = dim in free_symbols(entry.start), dim in free_symbols(entry.stop)
    if first and last:
        return "window of one size" if isinstance(entry.stop - entry.start, Const) else "window on both sides"
    if last:
        return "prefix"
    if first:
        return "window or suffix" if entry.stop != bound else "suffix"
    return "whole range (across a dim)" if entry.stop == bound and entry.start == Const(0) else "range by bounds alone"


@dataclass
class Coverage:
    """Counts of programs by what they hold."""

    programs: int = 0
    entries: Counter[str] = field(default_factory=Counter[str])
    ops: Counter[str] = field(default_factory=Counter[str])
    forms: Counter[str] = field(default_factory=Counter[str])

    def add(self, module: ModuleOp) -> None:
        """Count a program, once for each of what it holds."""
        (program,) = (op for op in module.ops if isinstance(op, ProgramOp))
        ops = [op for op in program.body.block.ops if isinstance(op, SdgOp)]
        dims = frozenset(program.space.names)
        entries: set[str] = set()
        for op in ops:
            for access in op.accesses:
                producer = access.value.owner
                assert isinstance(producer, SdgOp)
                for dim, entry in zip(producer.domain.dims, access.index, strict=True):
                    entries.add(kind_of(entry, dim, program.space.bound(dim), dims))
        self.programs += 1
        self.entries.update(sorted(entries))
        self.ops.update(sorted({op.name for op in ops}))
        self.forms.update(sorted(_forms(program, ops)))

    def merge(self, other: Coverage) -> None:
        """Add the counts of another."""
        self.programs += other.programs
        self.entries.update(other.entries)
        self.ops.update(other.ops)
        self.forms.update(other.forms)

    def table(self) -> str:
        """The counts as text, a line each."""
        parts = [("index entries", self.entries), ("forms", self.forms), ("ops", self.ops)]
        lines: list[str] = []
        for title, counts in parts:
            lines.append(f"{title}, programs with each:")
            rows = [f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
            for start in range(0, len(rows), 6):
                lines.append("  " + ", ".join(rows[start : start + 6]))
        return "\n".join(lines)


def _forms(program: ProgramOp, ops: list[SdgOp]) -> set[str]:
    found = {f"{len(program.space.dims)} dims"}
    found |= {dtype_name(element(result.type)) for op in ops for result in op.results}
    if program.space.where != TRUE:
        found.add("conditions on bounds")
    if any("?" in str(result.type) for op in ops for result in op.results):
        found.add("dynamic extents")
    if any(isinstance(op, sdg.GradOp) for op in ops):
        found.add("gradients")
    if any(op.domain.ranges or op.domain.where != TRUE for op in ops):
        found.add("narrowed domains")
    merges = [op for op in ops if isinstance(op, sdg.MergeOp)]
    if merges:
        found.add("cases")
    edges = {op: [access.value.owner for access in op.accesses] for op in ops}
    parts = strongly_connected(ops, lambda op: [other for other in edges[op] if isinstance(other, SdgOp)])
    if any(len(part) > 1 for part in parts):
        found.add("recurrences")
    return found
