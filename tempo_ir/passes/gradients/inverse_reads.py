"""From a read of the program to the reads of its adjoint: a read of `x` contributes at every point that it reads.

`y[t] = f(x[t - 1])` for `t > 0` contributes `a[t + 1]` to the adjoint of `x` at `t`, where `t < T - 1`; `a` is the
gradient of the read. `y[t] = f(x[0:t + 1])` contributes the rows `t` of `a[t:T]`, summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir import Operation

from tempo_ir.dialects.sdg import Access, ArangeOp, PadOp, ScatterAddOp, domain_of, value_text
from tempo_ir.dialects.types import Extent, shape_of, tensor
from tempo_ir.index import (
    TRUE,
    Cond,
    Const,
    Domain,
    Entry,
    Expr,
    Index,
    IndexExpressionError,
    Slice,
    Space,
    Sym,
    as_expr,
    compare,
    compose,
    conj,
    disj,
    free_symbols,
    index_text,
    maximum,
    minimum,
    negate,
    substitute,
)
from tempo_ir.passes.building import GraphBuilder, full
from tempo_ir.passes.utilities import refuse

Piece: TypeAlias = tuple[Cond, Index]
"""A guard over the dims of a producer, and the box of consumer points that read each point where it holds."""


@dataclass(frozen=True)
class Contribution:
    """What a read adds to an adjoint, by cases over the dims of the value read: nothing where none holds.

    Conditions exclude each other. The shapes broadcast to that of the value. `mask`, if any, says where the term can
    differ from zero.
    """

    cases: tuple[tuple[Cond, Access], ...]
    mask: Access | None = None

    @property
    def where(self) -> Cond:
        """Where the read adds anything."""
        return disj(*(cond for cond, _ in self.cases))


def contributions(
    reader: Operation, build: GraphBuilder, space: Space, read: Access, gradient: Access, mask: Access | None = None
) -> list[Contribution]:
    """What a read by `reader`, at every point of `build.domain`, adds to the adjoint of the value read.

    `gradient` is the gradient of what is read, over the dims of `build.domain`; its shape broadcasts to that of the
    read. Raises PassFailedException where the readers of a point are no ranges.
    """
    producer = domain_of(read.value)
    pieces = _inverse(reader, space, build.domain, read, producer)
    if not pieces:
        return []
    ragged = frozenset[str]().union(*(_sliced(build.domain, box) for _, box in pieces))
    readers = _Readers(build, space, read, gradient, ragged).settled()
    _refuse_ragged(reader, read, readers)
    kept = mask if read.index == pieces[0][1] == tuple(Sym(dim) for dim in producer.dims) else None
    found: list[Contribution] = []
    for group in _exclusive_groups(space, producer, pieces):
        cases: list[tuple[Cond, Access]] = []
        for guard, box in group:
            points = Domain(producer.dims, producer.ranges, conj(producer.where, guard))
            cases.append((guard, readers.term(build.at(points), box)))
        found.append(Contribution(tuple(cases), kept))
    return found


def _refuse_ragged(reader: Operation, read: Access, readers: _Readers) -> None:
    """Rows of several readers are added up as one tensor, so they need one shape."""
    for extent in shape_of(readers.gradient.tensor):
        if isinstance(extent, Expr) and (dims := free_symbols(extent) & readers.ragged):
            refuse(
                reader,
                f"no gradient through the read {value_text(read.value)}{index_text(read.index)}: points are read for "
                f"several {min(dims)}, at which the extent is {extent}; pad the rows to one extent that names no "
                f"{min(dims)}, or put stop_gradient round the read",
            )


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

    return isl.prove(negate(conj(first, second)), space, domain)


def _inverse(reader: Operation, space: Space, consumer: Domain, read: Access, producer: Domain) -> tuple[Piece, ...]:
    """Who reads each point of the producer, as guards over its dims and boxes of consumer points."""
    try:
        return inverse_pieces(space, consumer, read.index, producer)
    except IndexExpressionError as error:
        refuse(
            reader,
            f"no gradient through the read {value_text(read.value)}{index_text(read.index)} in {consumer}: {error}; "
            "split the read into cases, each of which reads a range, or put stop_gradient round it",
        )


@lru_cache(maxsize=4096)
def inverse_pieces(space: Space, consumer: Domain, index: Index, producer: Domain) -> tuple[Piece, ...]:
    """`isl.inverse` of a read, on values alone, so that the thousand equal reads of a deep network cost one answer."""
    current = tuple(Sym(dim) for dim in producer.dims)
    if index == current and consumer == producer:
        return ((TRUE, current),)
    from tempo_ir.index import isl
    from tempo_ir.index.inverse import inverse

    access = isl.access_map(space, consumer, index, producer)
    pieces = inverse(access, isl.domain_set(space, producer))
    return tuple((guard, tuple(producer.simplify(entry, space) for entry in box)) for guard, box in pieces)


def _sliced(consumer: Domain, box: Index) -> frozenset[str]:
    """The consumer dims over which a box has several points."""
    return frozenset(dim for dim, entry in zip(consumer.dims, box, strict=True) if isinstance(entry, Slice))


@dataclass(frozen=True)
class _Readers:
    """The gradients of a read at all points of its consumer, to be added up at each point of the value read.

    `ragged` are the consumer dims along which several readers of one point lie.
    """

    build: GraphBuilder
    space: Space
    read: Access
    gradient: Access
    ragged: frozenset[str]

    def leading(self) -> list[tuple[str, Slice, int]]:
        """The axes that the slices of the read added: producer dim, slice, axis of the gradient.

        The axis is negative where the gradient, being the same along it, does not have it.
        """
        missing = self.read.tensor.get_num_dims() - self.gradient.tensor.get_num_dims()
        dims = domain_of(self.read.value).dims
        slices = [(dim, entry) for dim, entry in zip(dims, self.read.index, strict=True) if isinstance(entry, Slice)]
        return [(dim, entry, number - missing) for number, (dim, entry) in enumerate(slices)]

    def settled(self) -> _Readers:
        """Every leading axis grown to all points of its dim, where the slice moves with a `ragged` dim.

        Rows that belong to no point of the slice become zeros, so that equal rows of several readers can be added.
        """
        gradient = self.gradient
        for dim, entry, axis in self.leading():
            if self._varies(axis) and free_symbols(entry) & self.ragged:
                gradient = self._grown(gradient, dim, entry, axis)
        return replace(self, gradient=gradient)

    def _varies(self, axis: int) -> bool:
        """Whether the gradient has an axis, with more than the one row that stands for all."""
        return axis >= 0 and shape_of(self.gradient.tensor)[axis] != 1

    def _grown(self, gradient: Access, dim: str, entry: Slice, axis: int) -> Access:
        bound = self.space.bound(dim)
        shape = shape_of(gradient.tensor)
        symbols = free_symbols(entry)
        if entry.step != 1:
            ids = self.build.build(ArangeOp, symbols=symbols, values=entry)
            grown = (*shape[:axis], bound, *shape[axis + 1 :])
            return self.build.build(ScatterAddOp, ids, gradient, symbols=symbols, axis=axis, shape=grown)
        before: list[Extent] = [0] * len(shape)
        after: list[Extent] = [0] * len(shape)
        first = self._rows_before(entry, bound)
        before[axis], after[axis] = first, bound - as_expr(shape[axis]) - first
        # the extent is stated: minima and maxima of a window do not cancel, though isl proves their sum to be the bound
        whole = tensor(gradient.tensor.element_type, (*shape[:axis], bound, *shape[axis + 1 :]))
        amounts = {"low": before, "high": after, "value": 0.0}
        return self.build.build(PadOp, gradient, symbols=symbols, result_type=whole, **amounts)

    def _rows_before(self, entry: Slice, bound: Expr) -> Expr:
        """The start of a slice, kept inside of the axis where the slice may be empty and lie outside."""
        from tempo_ir.index import isl

        inside = conj(compare("<=", 0, entry.start), compare("<=", entry.start + entry.extent, bound))
        if isl.prove(inside, self.space, self.build.domain):
            return entry.start
        return maximum(0, minimum(entry.start, bound - entry.extent))

    def term(self, producer: GraphBuilder, box: Index) -> Access:
        """The sum over the readers in `box` of their gradients of the row that is the producer's current point."""
        readers, repeated = self._at(box)
        count = sum(isinstance(entry, Slice) for entry in box) - len(repeated)
        total = producer.sum(self._rows(producer, readers, box, count), range(count))
        if not repeated:
            return total
        return producer.mul(total, producer.count(repeated, total.tensor.element_type))

    def _at(self, box: Index) -> tuple[Access, list[Extent]]:
        """The gradient read at a box of consumer points, and how often the box repeats each of the points read."""
        dims = self.build.domain.dims
        used = free_symbols(self.gradient.index)
        repeated: list[Extent] = []
        entries: list[Entry] = []
        for dim, entry in zip(dims, box, strict=True):
            if isinstance(entry, Slice) and dim not in used:
                repeated.append(entry.extent)
                entries.append(entry.start)
            else:
                entries.append(entry)
        composed = compose(self.gradient.index, dims, tuple(entries))
        if composed is not None:
            return Access(self.gradient.value, composed), repeated
        return Access(self.build.copy(self.gradient).value, box), []

    def _rows(self, producer: GraphBuilder, readers: Access, box: Index, count: int) -> Access:
        """`readers` without the axes that the slices of the read added: of each, the row of the current point."""
        present = [(dim, entry, axis) for dim, entry, axis in self.leading() if axis >= 0]
        if not present:
            return readers
        dims = self.build.domain.dims
        points = {dim: entry for dim, entry in zip(dims, box, strict=True) if not isinstance(entry, Slice)}
        take: list[Entry] = [full(extent) for extent in shape_of(readers.tensor)]
        for dim, entry, axis in present:
            take[count + axis] = self._position(dim, entry, axis, points)
        return producer.slice(readers, tuple(take))

    def _position(self, dim: str, entry: Slice, axis: int, points: Mapping[str, Expr]) -> Expr:
        """Which row of a leading axis belongs to the current point of `dim`."""
        if not self._varies(axis):
            return Const(0)
        if free_symbols(entry) & self.ragged:
            return Sym(dim)
        return (Sym(dim) - substitute(entry.start, points)) // entry.step
