# pyright: basic
"""Inverse accesses: for each point of a producer, the points that read it, as an index.

The gradient of a read needs it: `x[s]`, read by `y[t]` through `x[0:t + 1]`, is read by `y[s:T]`. isl inverts the map,
each dim of the readers becomes a range with a constant step, and the product of the ranges is proved equal to the map.
"""

from __future__ import annotations

from collections.abc import Sequence

from tempo_ir.index.expr import TRUE, Cond, Entry, Expr, Index, Slice, maximum, minimum
from tempo_ir.index.isl import (
    DIM,
    Inexact,
    Map,
    PwAff,
    Set,
    Writer,
    affine,
    coalesced,
    condition,
    dim_names,
    encode,
    entry_text,
    expression,
    read_map,
    same_function,
    tuple_text,
)


def inverse(access: Map, within: Set) -> list[tuple[Cond, Index]]:
    """Who reads each point of a producer, in pieces: a guard over the producer's dims, and an index.

    `access` maps consumer points to producer points (`access_map`); `within` is the producer's domain.
    For `y[t] = x[t - 1]` on `0 <= s < T` one piece: guard `s < T - 1`, index `[s + 1]`. The guard is `TRUE` where the
    slices of the index are empty outside of it anyway. No reader is in two pieces; guards of two pieces may overlap.

    Raises:
        Inexact: the readers of a point are no product of ranges with constant steps.
    """
    relation = coalesced(access.intersect_range(_renamed(within, access)).reverse())
    if relation.is_empty():
        return []
    whole = _piece(relation, within)
    if whole is not None:
        return [whole]
    basic_maps = [Map.from_basic_map(basic) for basic in coalesced(relation.make_disjoint()).get_basic_maps()]
    cells = _cells([basic.domain() for basic in basic_maps])
    for parts in ([coalesced(relation.intersect_domain(cell)) for cell in cells], basic_maps):
        found = _pieces(parts, within)
        if found is not None:
            return found
    raise Inexact(f"the points that read each point are no ranges: {relation}")


def _pieces(parts: Sequence[Map], within: Set) -> list[tuple[Cond, Index]] | None:
    """The pieces of disjoint relations, joined where two are one piece; None where one is no piece."""
    joined: list[tuple[Map, tuple[Cond, Index]]] = []
    for part in parts:
        piece = _piece(part, within)
        if piece is None:
            return None
        for position, (other, _) in enumerate(joined):
            union = coalesced(other.union(part))
            both = _piece(union, within)
            if both is not None:
                joined[position] = (union, both)
                break
        else:
            joined.append((part, piece))
    return [piece for _, piece in joined]


def _renamed(points: Set, access: Map) -> Set:
    """`points` with the tuple name that the range of `access` has."""
    points = points.reset_tuple_id()
    return points.set_tuple_name(access.get_tuple_name(DIM.out)) if access.has_tuple_id(DIM.out) else points


def _cells(domains: Sequence[Set]) -> list[Set]:
    """The coarsest disjoint sets of which every given set is a union."""
    cells: list[Set] = []
    for domain in domains:
        rest = domain
        split: list[Set] = []
        for cell in cells:
            split += [cell.intersect(domain), cell.subtract(domain)]
            rest = rest.subtract(cell)
        cells = [coalesced(cell) for cell in [*split, rest] if not cell.is_empty()]
    return cells


def _piece(relation: Map, within: Set) -> tuple[Cond, Index] | None:
    """Guard and index of a relation from a producer's points to boxes of readers; None where they are no boxes."""
    domain = relation.domain()
    index: list[Entry] = []
    try:
        for position in range(relation.dim(DIM.out)):
            index.append(_entry(relation, position))
    except Inexact:
        return None
    names = dim_names(domain)
    entries = tuple(index)
    box = _box(relation, names, entries)
    everywhere = box.intersect_domain(_renamed_like(within, domain))
    if everywhere.is_equal(relation):
        return TRUE, entries
    if not box.intersect_domain(domain).is_equal(relation):
        return None
    return condition(domain.reset_tuple_id(), within.reset_tuple_id()), entries


def _renamed_like(points: Set, other: Set) -> Set:
    points = points.reset_tuple_id()
    return points.set_tuple_name(other.get_tuple_name()) if other.has_tuple_id() else points


def _entry(relation: Map, position: int) -> Entry:
    start = _extreme(relation, position, relation.dim_min(position), "min")
    end = _extreme(relation, position, relation.dim_max(position), "max")
    if start == end:
        return start
    step = relation.get_range_stride_info(position).get_stride().to_python()
    return Slice(start, end + 1, step)


def _extreme(relation: Map, position: int, function: PwAff, which: str) -> Expr:
    """The least or greatest value of one dim of the readers. Raises Inexact.

    isl gives it in pieces that need not be those of any `min` or `max`; the sides of the relation then say it.
    """
    domain = relation.domain()
    try:
        return expression(function, domain)
    except Inexact:
        ends = _sides(relation, position, which)
        extreme = maximum if which == "min" else minimum
        if ends and same_function(extreme(*ends), function, domain):
            return extreme(*ends)
        raise


def _sides(relation: Map, position: int, which: str) -> list[Expr]:
    """The expressions that bound one dim of the readers from below (`min`) or above; none where they are several."""
    flat = relation.project_out(DIM.out, position + 1, relation.dim(DIM.out) - position - 1)
    flat = flat.project_out(DIM.out, 0, position)
    count = flat.dim(DIM.in_)
    points = flat.reset_tuple_id(DIM.in_).move_dims(DIM.in_, count, DIM.out, 0, 1).domain()
    points = coalesced(points.set_dim_name(DIM.set, count, "reader'")).compute_divs()
    parts = points.get_basic_sets()
    if len(parts) != 1:
        return []
    found: list[Expr] = []
    for constraint in parts[0].get_constraints():
        aff = constraint.get_aff()
        factor = constraint.get_coefficient_val(DIM.set, count).to_python()
        rest = aff.set_coefficient_val(DIM.in_, count, 0)
        if factor == 0 or (not constraint.is_equality() and (factor > 0) != (which == "min")):
            continue
        if rest.involves_dims(DIM.in_, count, 1):
            return []
        found.append(-(affine(rest) // factor) if factor > 0 else affine(rest) // -factor)
    return found


def _box(relation: Map, names: Sequence[str], index: Index) -> Map:
    """The relation from any point to the box that an index describes, in the space of `relation`."""
    writer = Writer(names, ())
    outputs = [f"o{position}'" for position in range(len(index))]
    held = " and ".join(entry_text(writer, entry, output) for entry, output in zip(index, outputs, strict=True))
    source = tuple_text(relation.get_tuple_name(DIM.in_) if relation.has_tuple_id(DIM.in_) else "", map(encode, names))
    target = tuple_text(relation.get_tuple_name(DIM.out) if relation.has_tuple_id(DIM.out) else "", outputs)
    return read_map(writer.declared(f"{source} -> {target} : {held or 'true'}"))
