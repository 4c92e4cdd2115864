"""sdg-cse: equal computations are done once, isomorphic recurrences included.

Before:

    %a = sdg.exp %x[t] in (t) : (!v) -> !v
    %b = sdg.exp %x[t] in (t) : (!v) -> !v
    %s = sdg.merge {t = 0 : %zero, t > 0 : %g[t - 1]} in (t) : (!v, !v) -> !v
    %g = sdg.add %s[t], %a[t] in (t) : (!v, !v) -> !v
    %r = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (!v, !v) -> !v
    %h = sdg.add %b[t], %r[t] in (t) : (!v, !v) -> !v

After: `%a`, `%s` and `%g` stand for the others.

Ops are equal if they agree in kind, properties, domain and types, and read equal values at equal indices; the operands
of a commutative op in any order. Which ops are equal is found by refining a partition (Hopcroft 1971; Alpern, Wegman
and Zadeck 1988): all ops that look alike start together and are told apart only by operands that were, so that cycles
that cannot be told apart are one.

It does not merge host objects and calls, random ops of different ids, and what a gradient is taken by, since the
gradient counts the uses of that value alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Commutative

from tempo_ir.dialects.operation import Numbering
from tempo_ir.dialects.sdg import AccessOp, GradOp, HostOp, HostStateOp, OutputOp, UntilOp
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import erase, programs


@dataclass
class Partition:
    """Ops by class; classes are split until equal class means equal key."""

    ops: list[Operation]
    class_of: dict[Operation, int] = field(default_factory=dict[Operation, int])
    members: dict[int, list[Operation]] = field(default_factory=dict[int, list[Operation]])
    _said: Callable[[Attribute], int] = field(default_factory=lambda: Numbering().of)

    def refine(self) -> None:
        """Split classes by what their members read, until nothing changes."""
        numbers: dict[Hashable, int] = {}
        wanted = {op.wrt for op in self.ops if isinstance(op, GradOp)}
        for op in self.ops:
            number = numbers.setdefault(self._own_key(op, wanted), len(numbers))
            self.class_of[op] = number
            self.members.setdefault(number, []).append(op)
        suspects: dict[int, None] = dict.fromkeys(self.members)
        while suspects:
            number = next(iter(suspects))
            del suspects[number]
            for user in self._users(self._split(number)):
                if user in self.class_of:
                    suspects[self.class_of[user]] = None

    def _split(self, number: int) -> list[Operation]:
        """Split one class by the keys of its members; those that left it. The largest part keeps the number."""
        if len(self.members[number]) == 1:
            return []
        parts: dict[Hashable, list[Operation]] = {}
        for op in self.members[number]:
            parts.setdefault(self._key(op), []).append(op)
        if len(parts) == 1:
            return []
        largest = max(parts.values(), key=len)
        moved: list[Operation] = []
        for part in parts.values():
            if part is largest:
                self.members[number] = part
                continue
            fresh = len(self.members)
            self.members[fresh] = part
            self.class_of.update(dict.fromkeys(part, fresh))
            moved += part
        return moved

    def _key(self, op: Operation) -> Hashable:
        """What an op reads, by class."""
        if not isinstance(op, AccessOp):
            return tuple([self._value(value) for value in op.operands])
        indices = op.indices.data
        reads = [(*self._value(value), self._said(index)) for value, index in zip(op.operands, indices, strict=True)]
        if len(reads) > 1 and op.has_trait(Commutative):
            reads.sort()
        return tuple(reads)

    def _own_key(self, op: Operation, wanted: Container[SSAValue]) -> Hashable:
        """What an op says apart from what it reads; ops that must stay apart say who they are. `wanted` is what
        gradients are taken by."""
        said = self._said
        properties = frozenset([(name, said(value)) for name, value in op.properties.items() if name != "indices"])
        attributes = frozenset([(name, said(value)) for name, value in op.attributes.items()])
        types = tuple([said(result.type) for result in op.results])
        return (op.name, properties, attributes, types, id(op) if is_unique(op, wanted) else None)

    def _value(self, value: SSAValue) -> tuple[int, int]:
        if isinstance(value, OpResult) and value.op in self.class_of:
            return self.class_of[value.op], value.index
        return -1, id(value)

    @staticmethod
    def _users(ops: Iterable[Operation]) -> list[Operation]:
        return [use.operation for op in ops for result in op.results for use in result.uses]


def is_unique(op: Operation, wanted: Container[SSAValue]) -> bool:
    """Whether an op stands for itself alone."""
    alone = isinstance(op, HostOp | HostStateOp | OutputOp | UntilOp) or bool(op.regions)
    return alone or any(result in wanted for result in op.results)


def congruence_classes(ops: Iterable[Operation]) -> list[list[Operation]]:
    """The classes of equal ops, members in the order given."""
    partition = Partition(list(ops))
    partition.refine()
    return list(partition.members.values())


@dataclass(frozen=True)
class SdgCsePass(ModulePass):
    """Do equal computations once."""

    name = "sdg-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs(op):
            duplicates: list[Operation] = []
            for kept, *others in congruence_classes(program.body.block.ops):
                for other in others:
                    merge(other, kept)
                duplicates += others
            erase(duplicates)
            count(self, "merged", len(duplicates))


def merge(duplicate: Operation, kept: Operation) -> None:
    """Use the results of `kept` for those of an equal op, names included where it has none."""
    for old, new in zip(duplicate.results, kept.results, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
