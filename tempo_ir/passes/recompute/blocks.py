"""Points of a dim in blocks: `t` is `100 * b + j`, for blocks b and the steps j of a block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tempo_ir.dialects.sdg.symbols import call_start, position
from tempo_ir.index import (
    Const,
    Domain,
    Entry,
    Expr,
    Index,
    Slice,
    Space,
    Sym,
    compare,
    conj,
    maximum,
    minimum,
    substitute,
)
from tempo_ir.names import fresh_name
from tempo_ir.passes.building import normal_form


@dataclass(frozen=True)
class Blocks:
    """`dim` in blocks of `size` steps: `block` numbers the blocks, `step` the steps of one. `space` has all three."""

    dim: str
    block: str
    step: str
    size: int
    space: Space

    @staticmethod
    def of(space: Space, dim: str, size: int) -> Blocks:
        """Blocks of a dim of a program, with dims of fresh names behind it."""
        taken = {*space.names, *space.params}
        block, step = fresh_name("b", taken, ""), fresh_name("j", taken, "")
        blocks = (block, (space.bound(dim) + (size - 1)) // size), (step, Const(size))
        dims = [each for old in space.dims for each in ((old, *blocks) if old[0] == dim else (old,))]
        return Blocks(dim, block, step, size, Space(tuple(dims), space.where))

    @property
    def point(self) -> Expr:
        """The dim at a point of both."""
        return Sym(self.block) * self.size + Sym(self.step)

    @property
    def bindings(self) -> dict[str, Expr]:
        """What the dim is."""
        return {self.dim: self.point}

    @property
    def counted(self) -> dict[str, Expr]:
        """What the dim is where it counts on from where a call starts, as the other two do not."""
        return {self.dim: position(self.point, (self.block, self.step)) + Sym(call_start(self.dim))}

    def dims(self, dims: Iterable[str]) -> tuple[str, ...]:
        """Dims with both in the place of the dim."""
        given = set(dims)
        return self.space.order((given - {self.dim}) | ({self.block, self.step} if self.dim in given else set()))

    def domain(self, domain: Domain) -> Domain:
        """The same points of a domain, in blocks."""
        if self.dim not in domain.dims:
            return domain
        here = self.bindings
        first, end = domain.lower(self.dim, self.space), domain.upper(self.dim, self.space)
        held = [compare("<=", first, self.point), compare("<", self.point, end)]
        for name, start, stop in domain.ranges:
            if name != self.dim:
                held += [
                    compare("<=", substitute(start, here), Sym(name)),
                    compare("<", Sym(name), substitute(stop, here)),
                ]
        where = conj(substitute(domain.where, here), *held)
        return normal_form(Domain(self.dims(domain.dims), (), where), self.space)

    def index(self, dims: Iterable[str], index: Index, here: dict[str, Expr] | None = None) -> Index:
        """The index of what is over blocks where an index over `dims` was, and none of its entries is near."""
        entries: dict[str, Entry] = {}
        for name, entry in zip(dims, index, strict=True):
            moved = entry if here is None else substitute(entry, here)
            if name != self.dim:
                entries[name] = moved
                continue
            assert not isinstance(moved, Slice)
            entries[self.block], entries[self.step] = moved // self.size, moved % self.size
        return tuple(entries[name] for name in self.space.names if name in entries)

    def part(self, points: Slice) -> Slice:
        """The steps of a block that lie in a range of the dim."""
        first = self.size * Sym(self.block)
        return Slice(maximum(points.start - first, 0), minimum(points.stop - first, self.size))

    def numbers(self, points: Slice) -> Slice:
        """The blocks that a range of the dim touches."""
        return Slice(points.start // self.size, (points.stop - 1) // self.size + 1)
