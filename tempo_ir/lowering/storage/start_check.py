# pyright: basic
"""Proof that an operation before a loop writes what others wrote in its iterations, with no code of the planner."""

from __future__ import annotations

from tempo_ir.index.domain import Space
from tempo_ir.index.expr import Index, Slice
from tempo_ir.index.isl import Map, Writer, encode, params_set, read_map, tuple_text
from tempo_ir.lowering.instances import Instance


def writes_the_same(origin: Instance, origin_cells: Index, start: Instance, cells: Index, space: Space) -> bool:
    """
    Whether what one operation writes to any of its cells another writes there too, in the same iteration of the loops
    round the other.

    Both have one body. What they read has one row, or is copied: then the rows of a slice go to those of the slice
    written in order, so that each cell is to have the row that it had.
    """
    depth = len(start.loops)
    fixed = origin.reads == start.reads and not any(read.index for read in origin.reads)
    if origin.loops[:depth] != start.loops or not (fixed or (_is_copy(origin) and _is_copy(start))):
        return False
    moved = _moves(origin, depth, origin_cells, () if fixed else origin.reads[0].index, space)
    moves = _moves(start, depth, cells, () if fixed else start.reads[0].index, space)
    return moved is not None and moves is not None and moved.is_subset(moves)


def _is_copy(instance: Instance) -> bool:
    return not instance.formula and len(instance.reads) == 1 and instance.results == instance.arguments


def _moves(instance: Instance, depth: int, cells: Index, rows: Index, space: Space) -> Map | None:
    """From the iterations of the `depth` outermost loops, with a cell that is written, to the row that goes there."""
    sliced = [[entry for entry in some if isinstance(entry, Slice)] for some in (cells, rows)]
    if len(sliced[0]) != len(sliced[1]):
        return None
    iterators = instance.frame.iterators
    writer = Writer(iterators, space.params)
    steps = [f"s{number}'" for number in range(len(sliced[0]))]
    parts = [writer.cond(instance.frame.holds), writer.natural(), *(f"{step} >= 0" for step in steps)]
    outer = [f"o{number}'" for number in range(depth)]
    parts += [f"{name} = {encode(iterator)}" for name, iterator in zip(outer, iterators, strict=False)]
    names: list[list[str]] = []
    for letter, some in (("c", cells), ("r", rows)):
        names.append([f"{letter}{number}'" for number in range(len(some))])
        step = iter(steps)
        for name, entry in zip(names[-1], some, strict=True):
            if not isinstance(entry, Slice):
                parts.append(f"{name} = {writer.expr(entry)}")
                continue
            parts.append(f"{name} = {writer.expr(entry.start)} + {entry.step} * {next(step)}")
            parts.append(f"{name} < {writer.expr(entry.stop)}")
    held = " and ".join(f"({part})" for part in parts)
    if hidden := [*map(encode, iterators), *steps]:
        held = f"exists ({', '.join(hidden)} : {held})"
    relation = f"{tuple_text('', [*outer, *names[0]])} -> {tuple_text('', names[1])} : {held}"
    return read_map(writer.declared(relation)).intersect_params(params_set(space))
