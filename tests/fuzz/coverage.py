"""What the programs that were tried cover: kinds of index entries, ops, and forms of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import ProgramOp, SdgOp, domain_of
from tempo_ir.dialects.types import dtype_name, element
from tempo_ir.graphs import strongly_connected
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import TRUE, And, Const, Entry, Expr, MinMax, Or, Slice, Sym, free_symbols


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
    if entry.start == entry.stop:
        return "empty range"
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
                if sum(isinstance(entry, Slice) for entry in access.index) > 1:
                    entries.add("ranges of several dims")
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
    found = {f"{len(program.space.dims)} dims"} | _types(ops) | _conditions(ops)
    if program.space.where != TRUE:
        found.add("conditions on bounds")
    if any(op.domain.ranges for op in ops):
        found.add("narrowed domains")
    if any(op.domain.where != TRUE for op in ops):
        found.add("domains with conditions")
    gradients = [op for op in ops if isinstance(op, sdg.GradOp)]
    if gradients:
        found.add("gradients")
    if len(gradients) > len({op.loss for op in gradients}):
        found.add("gradients by several")
    if len({op.loss for op in gradients}) > 1:
        found.add("gradients of gradients")
    if any(isinstance(op, sdg.HostOp) for op in ops):
        found.add("host calls")
    if any(isinstance(op, sdg.HostOp) and op.vectorized is not None for op in ops):
        found.add("vectorised host calls")
    if any(isinstance(op, sdg.OutputOp) and op.domain != Domain(op.domain.dims) for op in ops):
        found.add("outputs that leave rows out")
    if any(isinstance(op, sdg.ContractOp) and _has_range_of_two_letters(op) for op in ops):
        found.add("ranges of two letters")
    outputs = {op.key.data for op in ops if isinstance(op, sdg.OutputOp)}
    states = {op for op in ops if isinstance(op, sdg.ParameterOp) and op.key.data in outputs}
    if states:
        found.add("states")
    edges = {op: [access.value.owner for access in op.accesses] for op in ops}
    parts = strongly_connected(ops, lambda op: [other for other in edges[op] if isinstance(other, SdgOp)])
    for part in parts:
        if len(part) > 1:
            found |= {"recurrences", *_directions(part)}
        read = {other for op in part if isinstance(op, sdg.MergeOp) for other in edges[op]}
        if len(part) > 1 and len(states & read) > 1:
            found.add("states that change places")
    return found


def _has_range_of_two_letters(op: sdg.ContractOp) -> bool:
    """Whether two operands of a contraction are read through a range of one dim, with a letter each."""
    letters_of: dict[tuple[str, Entry], set[str]] = {}
    for letters, access in zip(op.letters[0], op.accesses, strict=True):
        dims = domain_of(access.value).dims
        ranges = [key for key in zip(dims, access.index, strict=True) if isinstance(key[1], Slice)]
        for key, letter in zip(ranges, letters, strict=False):
            letters_of.setdefault(key, set()).add(letter)
    return any(len(letters) > 1 for letters in letters_of.values())


def _types(ops: list[SdgOp]) -> set[str]:
    types = [result.type for op in ops for result in op.results if not isinstance(result.type, sdg.TokenType)]
    found = {dtype_name(element(type_)) for type_ in types}
    return found | {"dynamic extents"} if any("?" in str(type_) for type_ in types) else found


def _conditions(ops: list[SdgOp]) -> set[str]:
    found: set[str] = set()
    for op in ops:
        if isinstance(op, sdg.MergeOp):
            found.add("cases")
            found |= {"cases with 'and'" for cond in op.conds if isinstance(cond, And)}
            found |= {"cases with 'or'" for cond in op.conds if isinstance(cond, Or)}
    return found


def _directions(part: Sequence[SdgOp]) -> set[str]:
    """How the values of a recurrence read each other."""
    members = set(part)
    found: set[str] = set()
    if sum(isinstance(op, sdg.MergeOp) for op in part) > 1:
        found.add("recurrences of several values")
    distances: set[tuple[str, int]] = set()
    for op in part:
        for access in op.accesses:
            producer = access.value.owner
            if not isinstance(producer, SdgOp) or producer not in members:
                continue
            moved = 0
            for dim, entry in zip(producer.domain.dims, access.index, strict=True):
                distance = None if isinstance(entry, Slice) else Sym(dim) - entry
                moved += distance != Const(0)
                if isinstance(distance, Const) and distance.value:
                    distances.add((dim, 1 if distance.value > 0 else -1))
            if moved > 1:
                found.add("recurrences over several dims")
    found |= {"recurrences forwards" for _, sign in distances if sign > 0}
    found |= {"recurrences backwards" for _, sign in distances if sign < 0}
    if any((dim, -sign) in distances for dim, sign in distances):
        found.add("recurrences both ways")
    return found
