"""From a read of the program to the reads of its adjoint: a read of `x` contributes at every point that it reads.

`y[t] = f(x[t - 1])` for `t > 0` contributes `a[t + 1]` to the adjoint of `x` at `t`, where `t < T - 1`; `a` is the
gradient of the read. `y[t] = f(x[0:t + 1])` contributes the rows `t` of `a[t:T]`, summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir import Operation

from tempo_ir.dialects.sdg import Access, domain_of, value_text
from tempo_ir.index import (
    TRUE,
    Cond,
    Domain,
    Index,
    IndexExpressionError,
    Slice,
    Space,
    Sym,
    conj,
    disj,
    index_text,
    negate,
)
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.gradients.readers import Readers
from tempo_ir.passes.gradients.zeros import guarded
from tempo_ir.passes.remarks import remark
from tempo_ir.passes.utilities import refuse

Piece: TypeAlias = tuple[Cond, Index]
"""A guard over the dims of a producer, and the box of consumer points that read each point where it holds."""


@dataclass(frozen=True)
class Contribution:
    """What a read adds to an adjoint, by cases over the dims of the value read: nothing where none holds.

    Conditions exclude each other. The shapes broadcast to that of the value. `mask`, if any, says where the term can
    differ from zero; `selected` says that an unselected side of a select may lie downstream of which no mask is known.
    """

    cases: tuple[tuple[Cond, Access], ...]
    mask: Access | None = None
    selected: bool = False

    @property
    def where(self) -> Cond:
        """Where the read adds anything."""
        return disj(*(cond for cond, _ in self.cases))


def contributions(
    reader: Operation, build: GraphBuilder, space: Space, read: Access, gradient: Access, mask: Access | None = None
) -> list[Contribution]:
    """What a read by `reader`, at every point of `build.domain`, adds to the adjoint of the value read.

    `gradient` is the gradient of what is read, over the dims of `build.domain`; its shape broadcasts to that of the
    read. Where the readers of a point are no ranges they are sought among all points of the dims, and where they are no
    ranges there, each point asks all of them whether they read it.
    Raises PassFailedException where rows of several extents have none that bounds them all.
    """
    producer = domain_of(read.value)
    try:
        pieces = inverse_pieces(space, build.domain, read.index, producer)
    except IndexExpressionError as error:
        return _among_all(reader, build, space, read, gradient, error)
    if not pieces:
        return []
    readers = Readers(build, space, read, gradient, _ragged(build.domain, pieces))
    return _by_pieces(_settled(reader, readers), pieces, mask)


def _ragged(consumer: Domain, pieces: Sequence[Piece]) -> frozenset[str]:
    """The consumer dims over which a box has several points."""
    return frozenset(
        dim for _, box in pieces for dim, entry in zip(consumer.dims, box, strict=True) if isinstance(entry, Slice)
    )


def _by_pieces(readers: Readers, pieces: Sequence[Piece], mask: Access | None = None) -> list[Contribution]:
    """The terms of readers in boxes, whose rows are settled."""
    read, build, producer = readers.read, readers.build, domain_of(readers.read.value)
    kept = mask if pieces and read.index == pieces[0][1] == tuple(Sym(dim) for dim in producer.dims) else None
    found: list[Contribution] = []
    for group in _exclusive_groups(readers.space, producer, pieces):
        cases: list[tuple[Cond, Access]] = []
        for guard, box in group:
            points = Domain(producer.dims, producer.ranges, conj(producer.where, guard))
            cases.append((guard, readers.term(build.at(points), box)))
        found.append(Contribution(tuple(cases), kept))
    return found


def _settled(reader: Operation, readers: Readers) -> Readers:
    """Rows of several readers are added up as one tensor, so they need one shape."""
    try:
        return readers.settled()
    except IndexExpressionError as error:
        read = readers.read
        refuse(
            reader,
            f"no gradient through the read {value_text(read.value)}{index_text(read.index)}: points are read several "
            f"times, in rows that have no greatest extent ({error}); pad the rows to one extent, or put stop_gradient "
            "round the read",
        )


def _among_all(
    reader: Operation, build: GraphBuilder, space: Space, read: Access, gradient: Access, reason: IndexExpressionError
) -> list[Contribution]:
    """The readers of a point among all points of their dims, the gradient being zero where there is no read."""
    from tempo_ir.index import isl

    dims, producer = build.domain.dims, domain_of(read.value)
    settled = _settled(reader, Readers(build, space, read, gradient, frozenset(dims), grown=True))
    everywhere = build.at(Domain(dims))
    gradient = settled.gradient
    if domain_of(gradient.value) != everywhere.domain:
        inside = build.domain.condition(space)
        always = isl.prove(inside, space, everywhere.domain)
        gradient = guarded(everywhere, TRUE if always else inside, gradient)
    readers = replace(settled, build=everywhere, gradient=gradient)
    try:
        return _by_pieces(readers, inverse_pieces(space, everywhere.domain, read.index, producer))
    except IndexExpressionError:
        remark(
            reader,
            f"the gradient through the read {value_text(read.value)}{index_text(read.index)} looks at every reader for "
            f"every point: {reason}",
        )
        return [Contribution(((TRUE, readers.chosen(build.at(producer))),))]


def _exclusive_groups(space: Space, producer: Domain, pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The pieces of an inverse in groups, in each of which no two guards hold at once: cases of one term.

    Pieces whose guards overlap (no reader is in both) are terms of their own.
    """
    groups: list[list[Piece]] = []
    for piece in pieces:
        for group in groups:
            if all(_exclude(space, producer, piece[0], guard) for guard, _ in group):
                group.append(piece)
                break
        else:
            groups.append([piece])
    return groups


def _exclude(space: Space, domain: Domain, first: Cond, second: Cond) -> bool:
    from tempo_ir.index import isl
    from tempo_ir.index.limits import TooLarge, limited

    try:
        with limited():
            return isl.prove(negate(conj(first, second)), space, domain)
    except TooLarge:
        return False


@lru_cache(maxsize=4096)
def inverse_pieces(space: Space, consumer: Domain, index: Index, producer: Domain) -> tuple[Piece, ...]:
    """`inverse` of a read, on values alone, so that the thousand equal reads of a deep network cost one answer. Raises
    IndexExpressionError where it has no form, or takes isl more work than a question is worth."""
    current = tuple(Sym(dim) for dim in producer.dims)
    if index == current and consumer == producer:
        return ((TRUE, current),)
    from tempo_ir.index import isl
    from tempo_ir.index.inverse import inverse
    from tempo_ir.index.limits import limited

    with limited():
        access = isl.access_map(space, consumer, index, producer)
        pieces = inverse(access, isl.domain_set(space, producer))
    return tuple((guard, tuple(producer.simplify(entry, space) for entry in box)) for guard, box in pieces)
