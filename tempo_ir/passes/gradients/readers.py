"""The gradients of a read at all points of its reader, brought to one shape and added up at each point of the value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tempo_ir.dialects.sdg import Access, ArangeOp, PadOp, ScatterAddOp, domain_of
from tempo_ir.dialects.types import Extent, shape_of, tensor
from tempo_ir.index import (
    Const,
    Entry,
    Expr,
    Index,
    Slice,
    Space,
    Sym,
    as_expr,
    compare,
    compose,
    conj,
    free_symbols,
    maximum,
    minimum,
    substitute,
)
from tempo_ir.passes.building import GraphBuilder, full
from tempo_ir.passes.gradients.membership import reads_point


@dataclass(frozen=True)
class Readers:
    """The gradients of a read at all points of its consumer, to be added up at each point of the value read.

    `ragged` are the consumer dims along which several readers of one point lie. `grown` says that every row of every
    reader is wanted; `padded` are the axes, from the last, that were brought to one extent for all points of the value.
    """

    build: GraphBuilder
    space: Space
    read: Access
    gradient: Access
    ragged: frozenset[str]
    grown: bool = False
    padded: frozenset[int] = frozenset()

    def leading(self) -> list[tuple[str, Slice, int]]:
        """The axes that the slices of the read added: producer dim, slice, axis of the gradient.

        The axis is negative where the gradient, being the same along it, does not have it.
        """
        missing = self.read.tensor.get_num_dims() - self.gradient.tensor.get_num_dims()
        dims = domain_of(self.read.value).dims
        slices = [(dim, entry) for dim, entry in zip(dims, self.read.index, strict=True) if isinstance(entry, Slice)]
        return [(dim, entry, number - missing) for number, (dim, entry) in enumerate(slices)]

    def settled(self) -> Readers:
        """Every axis brought to an extent that is the same for all readers of a point, so that they can be added.

        A leading axis whose slice moves with a `ragged` dim grows to all points of its own dim, an axis of the value
        whose extent does, or is another at points that are not read, to the greatest extent of the value; what is put
        in is zero. Raises Inexact, NotAffine.
        """
        gradient = self.gradient
        for dim, entry, axis in self.leading():
            if self._varies(axis) and self._is_grown(entry):
                gradient = self._spread(gradient, dim, entry, axis)
        padded: list[int] = []
        for axis, (extent, own) in enumerate(self._own_extents(gradient), 1):
            differs = self.grown and extent != 1 and free_symbols(as_expr(own)) & set(domain_of(self.read.value).dims)
            if differs or free_symbols(as_expr(extent)) & self.ragged:
                gradient = self._lengthened(gradient, axis, extent, own)
                padded.append(axis)
        return replace(self, gradient=gradient, padded=frozenset(padded))

    def _own_extents(self, gradient: Access) -> list[tuple[Extent, Extent]]:
        """From the last axis on: the extent of the gradient, and that of the value at the point read."""
        return list(zip(reversed(shape_of(gradient.tensor)), reversed(shape_of(self.read.value.type)), strict=False))

    def _lengthened(self, gradient: Access, axis: int, extent: Extent, own: Extent) -> Access:
        """An axis, counted from the last, padded to the greatest extent that the value has at any point."""
        from tempo_ir.index import isl

        longest = isl.ceiling(as_expr(own), self.space, domain_of(self.read.value))
        shape = list(shape_of(gradient.tensor))
        after: list[Extent] = [0] * len(shape)
        after[-axis] = longest - as_expr(extent)
        shape[-axis] = longest
        whole = tensor(gradient.tensor.element_type, shape)
        symbols = free_symbols(as_expr(extent))
        amounts = {"low": [0] * len(shape), "high": after, "value": 0.0}
        return self.build.build(PadOp, gradient, symbols=symbols, result_type=whole, **amounts)

    def _is_grown(self, entry: Slice) -> bool:
        """Whether the axis of a slice stands for all points of its dim."""
        return self.grown or bool(free_symbols(entry) & self.ragged)

    def _varies(self, axis: int) -> bool:
        """Whether the gradient has an axis, with more than the one row that stands for all."""
        return axis >= 0 and shape_of(self.gradient.tensor)[axis] != 1

    def _spread(self, gradient: Access, dim: str, entry: Slice, axis: int) -> Access:
        """Rows put where their points are among all points of the dim."""
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
        if repeated:
            total = producer.mul(total, producer.count(repeated, total.tensor.element_type))
        return self._restated(producer, self._shortened(producer, total))

    def chosen(self, producer: GraphBuilder) -> Access:
        """The sum over all readers of their gradients of the producer's current point, 0 for those that do not read it.

        The gradient is over every point of the reader's dims, and `grown`.
        """
        dims = self.build.domain.dims
        box = tuple(full(self.space.bound(dim)) for dim in dims)
        rows = self._rows(producer, Access(self.gradient.value, box), box, len(dims))
        mask = reads_point(producer, self.space, dims, self.read)
        beside = rows.tensor.get_num_dims() - len(dims)
        mask = producer.reshape(mask, (*shape_of(mask.tensor), *[1] * beside))
        return self._shortened(producer, producer.sum(producer.where(mask, rows), range(len(dims))))

    def _shortened(self, producer: GraphBuilder, total: Access) -> Access:
        """Padded axes cut to the extent that the value has at the producer's current point."""
        if not self.padded:
            return total
        take: list[Entry] = [full(extent) for extent in shape_of(total.tensor)]
        own = shape_of(self.read.value.type)
        for axis in self.padded:
            take[-axis] = full(own[-axis])
        return producer.slice(total, tuple(take))

    def _restated(self, producer: GraphBuilder, total: Access) -> Access:
        """Extents as the type of the value has them: those of a reader are equal where it reads, `7` for `t + 4` at 3.

        An axis along which the gradient is the same has extent 1 everywhere, and stays.
        """
        shape = list(shape_of(total.tensor))
        varying = list(reversed(shape_of(self.gradient.tensor)))
        for axis, own in enumerate(reversed(shape_of(self.read.value.type)), 1):
            if axis <= len(shape) and varying[axis - 1] != 1 and not producer.is_equal(shape[-axis], own):
                shape[-axis] = own
        return producer.broadcast(total, shape)

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
        if self._is_grown(entry):
            return Sym(dim)
        return (Sym(dim) - substitute(entry.start, points)) // entry.step
