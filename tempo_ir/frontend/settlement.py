"""What settling a recorded program gives, so that a process that records it again need neither settle nor verify it.

Domains, cases and preconditions follow from what was recorded, and so does that the program is right. A program that
was compiled has an entry on disk beside its code (`tempo_ir.kept`), named by all that was recorded, with places and
names, and by the versions of this package and its libraries. One that is refused has none: it is refused each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tempo_ir.dialects.sdg import MergeOp, ProgramOp
from tempo_ir.dialects.sdg.attributes import CondAttr, PreconditionAttr
from tempo_ir.dialects.sdg.base import Access, SdgOp
from tempo_ir.dialects.sdg.preconditions import settle
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.text import program_text
from tempo_ir.index.domain import Domain, Space, domain, space
from tempo_ir.index.expr import Cond
from tempo_ir.index.parser import cond
from tempo_ir.kept import RECORDED, Kept, digest_of, versions, where_kept

DIGEST_BYTES = 32
Case: TypeAlias = tuple[Cond, Access]


@dataclass(frozen=True)
class Settlement:
    """The difference between a recorded program and the settled one."""

    space: Space
    preconditions: tuple[tuple[Cond, str], ...]
    domains: tuple[Domain | None, ...]
    """Of each op as recorded; None of those that nothing needs."""
    cases: tuple[tuple[int, tuple[int, ...]], ...]
    """Which merges, as recorded, lose cases, and which they keep."""

    def apply(self, program: ProgramOp) -> None:
        """Settle the program that it is of, in place. Raises ValueError, and nothing is changed, for another one."""
        ops = program_ops(program)
        if len(ops) != len(self.domains):
            raise ValueError("of another program")
        for op, settled in zip(ops, self.domains, strict=True):
            if settled is not None and op.domain != settled:
                op.domain = settled
        for number, kept in self.cases:
            merge = ops[number]
            assert isinstance(merge, MergeOp)
            conds, accesses = merge.conds, merge.accesses
            merge.set_cases([(conds[case], accesses[case]) for case in kept])
        erase_all([op for op, settled in zip(ops, self.domains, strict=True) if settled is None])
        program.space = self.space
        if self.preconditions:
            stated = [PreconditionAttr(CondAttr(held), StringAttr(text)) for held, text in self.preconditions]
            program.preconditions = ArrayAttr(stated)

    def to_bytes(self) -> bytes:
        """What `of_bytes` reads."""
        domains = list(dict.fromkeys(self.domains))
        numbers = {domain: number for number, domain in enumerate(domains)}
        told = {
            "space": str(self.space),
            "preconditions": [(str(held), text) for held, text in self.preconditions],
            "domains": [None if domain is None else str(domain) for domain in domains],
            "ops": [numbers[domain] for domain in self.domains],
            "cases": self.cases,
        }
        payload = json.dumps(told).encode()
        return hashlib.sha256(payload).digest() + payload

    @staticmethod
    def of_bytes(data: bytes) -> Settlement:
        """What `to_bytes` made. Raises ValueError for anything else."""
        digest, payload = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() != digest:
            raise ValueError("damaged")
        told: dict[str, Any] = json.loads(payload)
        texts: list[str | None] = told["domains"]
        numbers: list[int] = told["ops"]
        domains = [None if text is None else domain(text) for text in texts]
        return Settlement(
            space(told["space"]),
            tuple((cond(held), text) for held, text in told["preconditions"]),
            tuple([domains[number] for number in numbers]),
            tuple((number, tuple(kept)) for number, kept in told["cases"]),
        )


@dataclass
class Known:
    """What is to be kept of a recorded program, or is: its entry, None where nothing is kept."""

    settlement: Settlement
    name: str | None
    is_kept: bool

    def keep(self) -> None:
        """Make the entry, where it is not there."""
        if self.name is None or self.is_kept or (kept := folder()) is None:
            return
        data = self.settlement.to_bytes()
        if Settlement.of_bytes(data) == self.settlement:  # text says all of an expression, but for its form
            kept.write_entry(self.name, data)
        self.is_kept = True


def settled(module: ModuleOp, program: ProgramOp) -> Known:
    """Settle and verify a recorded program, in place, or do as was found when an equal one was.

    Raises VerifyException, with the op, where the program means nothing.
    """
    kept = folder()
    name = None if kept is None else digest_of((*versions(), program_text(module))) + RECORDED
    if kept is not None and name is not None and (data := kept.read_entry(name)) is not None:
        with suppress(ValueError):
            found = Settlement.of_bytes(data)
            found.apply(program)
            return Known(found, name, is_kept=True)
    recorded = program_ops(program)
    cases = {op: cases_of(op) for op in recorded if isinstance(op, MergeOp)}
    settle(program)
    module.verify()
    return Known(difference(program, recorded, cases), name, is_kept=False)


def difference(program: ProgramOp, recorded: Sequence[SdgOp], cases: Mapping[MergeOp, Sequence[Case]]) -> Settlement:
    """What settling changed: `recorded` are the ops that there were, `cases` those of the merges."""
    lost: list[tuple[int, tuple[int, ...]]] = []
    for number, op in enumerate(recorded):
        if isinstance(op, MergeOp) and op.parent is not None and len(op.operands) < len(cases[op]):
            lost.append((number, kept_of(cases[op], cases_of(op))))
    stated = () if program.preconditions is None else program.preconditions.data
    return Settlement(
        program.space,
        tuple([(each.cond.data, each.text.data) for each in stated]),
        tuple([None if op.parent is None else op.domain for op in recorded]),
        tuple(lost),
    )


def cases_of(merge: MergeOp) -> list[Case]:
    """The cases of a merge."""
    return list(zip(merge.conds, merge.accesses, strict=True))


def kept_of(cases: Sequence[Case], kept: Iterable[Case]) -> tuple[int, ...]:
    """Which of some cases are kept, in order."""
    numbers = iter(range(len(cases)))
    return tuple([next(number for number in numbers if cases[number] == case) for case in kept])


def erase_all(ops: Sequence[SdgOp]) -> None:
    """Erase ops that only one another read."""
    for op in ops:
        op.detach()
        op.drop_all_references()
    for op in ops:
        op.erase(drop_references=False)


def folder() -> Kept | None:
    """Where entries are; None where nothing is kept, or the user's size is none, as a compile will say."""
    try:
        place = where_kept()
    except ValueError:
        return None
    return None if place is None else Kept(*place)
