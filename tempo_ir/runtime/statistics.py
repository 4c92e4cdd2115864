"""What compiling a program took, what it made, and what the last call used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Block, Operation

from tempo_ir.dialects import loop

COUNTS = (
    "kernels",
    "launches",
    "host_sites",
    "launches_per_step",
    "copies_per_step",
    "transfers_per_step",
    "memory_passes",
    "kept_rows",
)


@dataclass(frozen=True)
class Statistics:
    """Counts of an executable.

    `compile_seconds` by stage; `kernels` are distinct, `launches` the places in the program that launch one,
    `host_sites` the places where Python is called. By loop, `launches_per_step` and `copies_per_step` count what one
    iteration launches, and which of that only copies rows; `transfers_per_step` counts rows that are swapped.
    `peak_bytes` is the memory of the last call beside the caller's arrays; `peak_by_space` has it for the device and,
    if rows are swapped, for the host; `bytes_by_class` that of the buffers by owner or storage class, before they
    share memory. `memory_passes` says what was done about memory: how often each pass about it did what; `kept_rows`
    why rows are kept on the device although they were to be computed anew or to wait with the host. `cached` says
    that the code came from disk: then no compile was made, and `load` is its one stage.
    """

    target: str
    compiles: int
    compile_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    kernels: int = 0
    launches: int = 0
    host_sites: int = 0
    launches_per_step: Mapping[str, int] = field(default_factory=dict[str, int])
    copies_per_step: Mapping[str, int] = field(default_factory=dict[str, int])
    transfers_per_step: Mapping[str, int] = field(default_factory=dict[str, int])
    peak_bytes: int = 0
    peak_by_space: Mapping[str, int] = field(default_factory=dict[str, int])
    bytes_by_class: Mapping[str, int] = field(default_factory=dict[str, int])
    cached: bool = False
    memory_passes: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    kept_rows: tuple[str, ...] = ()

    @staticmethod
    def loaded(target: str, counts: Mapping[str, Any], seconds: float) -> Statistics:
        """Those of a program that was loaded in some seconds, with the `counts` of the process that compiled it."""
        told: dict[str, Any] = {**counts, "kept_rows": tuple(counts["kept_rows"])}
        return Statistics(target, 0, {"load": seconds}, **told, cached=True)

    @property
    def counts(self) -> dict[str, Any]:
        """What was made, by name: all that neither a compile nor a call measures."""
        return {field: getattr(self, field) for field in COUNTS}


PerStep: TypeAlias = tuple[dict[str, int], dict[str, int], dict[str, int]]
"""Launches, those that only copy, and rows that are swapped, by loop."""


def per_step(program: loop.ProgramOp) -> PerStep:
    """
    What one iteration of each loop of a formed program does beside its inner loops: launches, those that only copy, and
    rows that are swapped.

    A loop is named by its iterators, `i > t down`. Of what guards let run all is counted; loops that do nothing are
    left out.
    """
    counts: PerStep = ({}, {}, {})
    for name, op in _inside_of_loops(program.body.block, ""):
        launches = isinstance(op, loop.BodyOperation)
        copies = launches and all(isinstance(inner, loop.YieldOp) for inner in op.body.block.ops)
        for counter, number in zip(counts, (launches, copies, isinstance(op, loop.TransferOp)), strict=True):
            counter[name] = counter.get(name, 0) + number
    return counts


def _inside_of_loops(block: Block, name: str) -> Iterator[tuple[str, Operation]]:
    names: dict[str, int] = {}
    for op in block.ops:
        match op:
            case loop.ForOp():
                own = f"{name} > " * bool(name) + op.iterator + " down" * op.down
                names[own] = names.get(own, 0) + 1
                yield from _inside_of_loops(op.body.block, own + f" #{names[own]}" * (names[own] > 1))
            case loop.IfOp():
                for region in op.regions:
                    yield from (inner for one in region.blocks for inner in _inside_of_loops(one, name))
            case loop.AccessOperation() if name:
                yield name, op
            case _:
                continue
