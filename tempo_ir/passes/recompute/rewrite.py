"""The program over blocks: each op at the points of its block, and a second time where it is computed anew.

Before, where `%g` is of the backward side:

    %s = sdg.merge {t = 0 : %x0, t > 0 : %h[t - 1]} in (t) : (!x, !x) -> !x
    %h = sdg.tanh %s[t] in (t) : (!x) -> !x
    %d = sdg.mul %g[t], %h[t] in (t) : (!x, !x) -> !x

After, with blocks of 100 steps (the points are `(b, j: 0 to min(100, T - 100 * b))`):

    %s = sdg.merge {100 * b + j = 0 : %x0, j >= 1 : %h[b, j - 1], true : %h_kept[b - 1]} in (b, j)
    %h = sdg.tanh %s[b, j] in (b, j)
    %h_kept = sdg.keep %h[b, 99] in (b: 0 to T floordiv 100)
    %s_again = sdg.merge {100 * b + j = 0 : %x0, j >= 1 : %h_again[b, j - 1], true : %h_kept[b - 1]} in (b, j)
    %h_again = sdg.tanh %s_again[b, j] in (b, j)
    %d = sdg.mul %g[b, j], %h_again[b, j] in (b, j)

Within a block, what is computed anew reads what is computed anew; at its begin it reads the last rows of the block
before: these rows are all that is kept of `%h`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, SSAValue

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    ArangeOp,
    IndexOp,
    KeepOp,
    MergeOp,
    ProgramOp,
    RandomOp,
    SdgOp,
    TokenType,
    domain_of,
)
from tempo_ir.dialects.sdg.attributes import BLOCKS, DomainAttr, EntryAttr, IndexAttr
from tempo_ir.dialects.sdg.structure import case_domain
from tempo_ir.dialects.sdg.symbols import attribute_at, type_at
from tempo_ir.index import TRUE, Cond, Const, Domain, Entry, Index, Slice, Sym, compare, conj, substitute
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.recompute.blocks import Blocks
from tempo_ir.passes.recompute.sides import Sides, shift_of
from tempo_ir.passes.recompute.totals import total_by_blocks
from tempo_ir.passes.utilities import erase, is_slice

Case = tuple[Cond, Access]


@dataclass
class Rewriter:
    """Puts the ops of two sides into blocks, in place; `again` are made a second time, for the backward side."""

    program: ProgramOp
    sides: Sides
    blocks: Blocks
    again: Mapping[SdgOp, None]
    placed: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    anew: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    kept: dict[tuple[SSAValue, int], SSAValue] = field(default_factory=dict[tuple[SSAValue, int], SSAValue])
    shifted: dict[tuple[tuple[Case, ...], Domain], Access] = field(
        default_factory=dict[tuple[tuple[Case, ...], Domain], Access]
    )

    def run(self) -> None:
        """Write the program over blocks; what is in its place is erased."""
        self.program.space = self.blocks.space
        known = self.program.attributes.get(BLOCKS, DictionaryAttr({}))
        assert isinstance(known, DictionaryAttr)
        here = {self.blocks.dim: IndexAttr((self.blocks.point,))}
        self.program.attributes[BLOCKS] = DictionaryAttr({**known.data, **here})
        made = [(op, self._copy(op, self.placed, ""), op in self.sides.backward) for op in self.sides.ops]
        made += [(op, self._copy(op, self.anew, "_again"), True) for op in self.again]
        for old, new, reads_anew in made:
            if isinstance(old, AccessOp):
                assert isinstance(new, AccessOp)
                self._set_reads(old, new, reads_anew)
        for op, whole in self.sides.totals.items():
            backwards = self.sides.is_backward(op)
            values = {**self.placed, **self.anew} if backwards else self.placed
            total_by_blocks(whole, self.blocks, values, backwards=backwards)
        for op in self.sides.ops:
            self._redirect(op)
        erase(self.sides.ops)

    def _copy(self, op: SdgOp, values: dict[SSAValue, SSAValue], suffix: str) -> SdgOp:
        """An op in blocks, before it in the program; its operands are still the old ones."""
        counts = isinstance(op, IndexOp | ArangeOp | RandomOp)
        here = self.blocks.counted if counts else self.blocks.bindings
        properties: dict[str, Attribute] = {name: attribute_at(value, here) for name, value in op.properties.items()}
        if isinstance(op, ArangeOp):  # its first number counts on from where a call starts, how many there are does not
            first, count = substitute(op.range.start, here), substitute(op.range.extent, self.blocks.bindings)
            properties["range"] = EntryAttr(Slice(first, first + count * op.range.step, op.range.step))
        if isinstance(op, RandomOp):
            properties["point"] = IndexAttr(substitute(op.point or tuple(map(Sym, op.domain.dims)), here))
        properties["domain"] = DomainAttr(self.blocks.domain(op.domain))
        types = [
            result.type if isinstance(result.type, TokenType) else type_at(result.type, self.blocks.bindings)
            for result in op.results
        ]
        new = type(op).create(
            operands=op.operands,
            result_types=types,
            properties=properties,
            attributes=op.attributes,
            location=op.location,
        )
        block = op.parent
        assert block is not None
        block.insert_op_before(new, op)
        for result, made in zip(op.results, new.results, strict=True):
            values[result] = made
            if result.name_hint is not None:
                made.name_hint = result.name_hint + suffix
        return new

    # -- reads of what is in blocks

    def _set_reads(self, old: AccessOp, new: AccessOp, reads_anew: bool) -> None:
        """Let an op in blocks read what is in blocks."""
        if isinstance(old, MergeOp):
            assert isinstance(new, MergeOp)
            conds = [substitute(cond, self.blocks.bindings) for cond in old.conds]
            cases = [
                (conj(cond, near), read)
                for cond, access in zip(conds, old.accesses, strict=True)
                for near, read in self._cases(access, reads_anew)
            ]
            new.set_cases(self._reached(new.domain, cases))
            return
        reads = [self._read(new, self._cases(access, reads_anew)) for access in old.accesses]
        new.operands = [read.value for read in reads]
        new.indices = ArrayAttr([IndexAttr(read.index) for read in reads])

    def _cases(self, access: Access, reads_anew: bool) -> list[Case]:
        """What a read is at the points of a block: a row of the same block, or, near its ends, of one beside."""
        here = self.blocks.bindings
        producer = access.value.owner
        if access.value not in self.placed or not isinstance(producer, SdgOp):
            return [(TRUE, Access(access.value, substitute(access.index, here)))]
        value = self.placed[access.value]
        dims, blocks = producer.domain.dims, self.blocks
        entry = self.sides.entry(producer, access.index)
        shift = shift_of(entry, blocks.dim)
        if shift is None or abs(shift) >= blocks.size:
            return [(TRUE, Access(value, blocks.index(dims, access.index, here)))]
        near = self.anew.get(access.value, value) if reads_anew else value
        if shift == 0:
            return [(TRUE, Access(near, self._index(dims, access.index, 0, shift)))]
        inside = (
            compare(">=", Sym(blocks.step), -shift)
            if shift < 0
            else compare("<", Sym(blocks.step), blocks.size - shift)
        )
        within = (inside, Access(near, self._index(dims, access.index, 0, shift)))
        if shift > 0:
            return [within, (TRUE, Access(near, self._index(dims, access.index, 1, shift)))]
        if access.value not in self.anew:
            return [within, (TRUE, Access(value, self._index(dims, access.index, -1, shift)))]
        outer = tuple(entry for name, entry in zip(dims, access.index, strict=True) if name != blocks.dim)
        return [within, *self._kept_cases(access.value, outer, shift)]

    def _kept_cases(self, value: SSAValue, outer: Index, shift: int) -> Iterator[Case]:
        """What the first steps of a block read of the block before: rows that are kept."""
        blocks = self.blocks
        for step in range(-shift):
            kept = self._kept(value, -shift - step)
            entries: dict[str, Entry] = {blocks.block: Sym(blocks.block) - 1}
            others = [name for name in domain_of(kept).dims if name != blocks.block]
            entries |= dict(zip(others, substitute(outer, blocks.bindings), strict=True))
            index = tuple(entries[name] for name in blocks.space.names if name in entries)
            yield TRUE if shift == -1 else compare("=", Sym(blocks.step), step), Access(kept, index)

    def _kept(self, value: SSAValue, rows: int) -> SSAValue:
        """A row of each block of a value, so many before the end, kept in memory of its own."""
        if (value, rows) not in self.kept:
            blocks, placed = self.blocks, self.placed[value]
            op = placed.owner
            assert isinstance(op, SdgOp)
            row = Const(blocks.size - rows)
            dims = tuple(name for name in op.domain.dims if name != blocks.step)
            there = substitute(op.domain.condition(blocks.space), {blocks.step: row})
            domain = normal_form(Domain(dims, (), there), blocks.space)
            read = Access(placed, tuple(row if name == blocks.step else Sym(name) for name in op.domain.dims))
            build = GraphBuilder(op, domain, op.location)
            self.kept[value, rows] = build.insert(KeepOp(read, domain=domain), f"{value.name_hint}_kept").value
        return self.kept[value, rows]

    def _index(self, dims: tuple[str, ...], index: Index, block: int, shift: int) -> Index:
        """The index of the row `shift` steps away, in the block that is `block` away; where that is one row only, it is
        named."""
        blocks = self.blocks
        step = Sym(blocks.step) + shift - block * blocks.size
        if block and abs(shift) == 1:
            step = Const(blocks.size - 1 if block < 0 else 0)
        entries: dict[str, Entry] = {blocks.block: Sym(blocks.block) + block, blocks.step: step}
        for name, entry in zip(dims, index, strict=True):
            if name != blocks.dim:
                entries[name] = substitute(entry, blocks.bindings)
        return tuple(entries[name] for name in blocks.space.names if name in entries)

    def _reached(self, domain: Domain, cases: list[Case]) -> list[Case]:
        """The cases that hold first at some point of a domain."""
        from tempo_ir.index import isl

        conds = tuple(cond for cond, _ in cases)
        held = [
            not isl.domain_set(self.blocks.space, case_domain(domain, conds, number)).is_empty()
            for number in range(len(cases))
        ]
        kept = [case for case, reached in zip(cases, held, strict=True) if reached]
        return kept or cases[:1]

    def _read(self, reader: SdgOp, cases: list[Case]) -> Access:
        """One read of a case at each point: a merge where there are several; the same merge is made once."""
        reached = self._reached(reader.domain, cases)
        if len(reached) == 1:
            return reached[0][1]
        key = tuple(reached), reader.domain
        if key not in self.shifted:
            build = GraphBuilder(reader, reader.domain, reader.location)
            merge = MergeOp(*reached, domain=reader.domain)
            self.shifted[key] = build.insert(merge, reached[0][1].value.name_hint)
        return self.shifted[key]

    # -- reads from elsewhere

    def _redirect(self, op: SdgOp) -> None:
        """Let whoever reads an op from outside of the blocks read it there."""
        for result in op.results:
            for use in list(result.uses):
                user = use.operation
                if isinstance(user, AccessOp) and user not in self.sides.ops:
                    index = user.accesses[use.index].index
                    if is_slice(self.sides.entry(op, index)):
                        user.with_access(use.index, self._row_by_row(op, result).value, index)
                    else:
                        placed = self.blocks.index(op.domain.dims, index)
                        user.with_access(use.index, self.placed[result], placed)

    def _row_by_row(self, op: SdgOp, result: SSAValue) -> Access:
        """What is in blocks at each step: who reads a range of steps reads it there."""
        dims = op.domain.dims
        build = GraphBuilder(op, op.domain, op.location)
        read = Access(self.placed[result], self.blocks.index(dims, tuple(map(Sym, dims))))
        return build.insert(MergeOp((TRUE, read), domain=op.domain), result.name_hint)
