"""sdg-accumulate: a sum over all steps, of rows that a loop makes, is kept as it runs, so that the rows need not be.

Before (gradients of weights that all steps share; `%x` recurs along t, all of its rows are kept):

    %g = sdg.contract "bk,bn->kn" %x[t], %d[t] in (t) : (!x, !d) -> !w
    %s = sdg.sum %g[0:T] axes [0] : (!w) -> !w
    sdg.output "s" %s : !w

After (one sum, updated in place; of `%x` as many rows are kept as `%d[t]` looks ahead):

    %0 = sdg.constant 0.0 : !w
    %s = sdg.merge {t = 0 : %0, t > 0 : %s_1[t - 1]} in (t) : (!w, !w) -> !w
    %s_1 = sdg.add %s[t], %g[t] in (t) : (!w, !w) -> !w
    %s_2 = sdg.merge {T = 0 : %0, T > 0 : %s_1[T - 1]} : (!w, !w) -> !w
    sdg.output "s" %s_2 : !w

So learning from returns over n steps runs n - 1 steps after acting, in one loop, and storage is n rows and not T. Any
reduction will do, and contractions over a range, `"tbk,tbn->kn" %x[0:T], %d[0:T]`.

It applies where the rows are made of what recurs along the dim, for which there is a loop anyway; where each can be had
a fixed number of steps after its own, however many there are (not where a row needs a return to the end, `r[t:T]`); and
where it pays: where the rows that a step keeps for the sums, those that nothing else keeps, are more bytes than the
sums, which each step reads and writes, or are more than `memory` bytes in `steps` steps. sdg-vectorize leaves alone
what makes such rows. It does not apply to a dim that ends by data.

It applies too along a dim that nothing recurs along, micro-batches b of a batch, where it makes the loop: then what
is between the products of all b at once would be kept, so only where that is more than `memory` bytes, and a step has
more of it than of the sums, so that reading weights and sums again is no more than as much work. Each step is one of
the micro-batch then, from its activations to its share of the gradients, and activations of one are kept. Of a batch of
sequences too, whose gradients come from the last step to the first: it is summed sequence by sequence, whatever the
order in which the dims are declared, since the program asks for the loops over b to be outermost then (`attributes
{outermost = ["b"]}`). `dims=b` accumulates along b whatever it costs.

Rows that a recurrence from later to earlier steps makes, as back-propagation through time does, are summed as that goes
down, `s[t] = s[t + 1] + row[t]`, read at the first point. What the way back reads of the way there is kept anyway; so
that is done where what the way back makes is more than `memory` bytes, and where each step adds `products` products or
more to every element of a sum, as many as there are rows in a batch: reading and writing it is little beside them then,
while what they are made of still lies in a cache (measured on GRU and LSTM, batch 64: 1.1 to 1.25 times as fast as one
product at the end, which with a batch of 1 takes a quarter off). Products between the recurrence and the sum are
quicker for all steps at once, and so are those of a recurrence that has none itself, as returns and advantages.
`products=0` is for machines with other loops: on a GPU a loop of one launch mixes no rows.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias, TypedDict

from xdsl.context import Context
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    ContractOp,
    DivOp,
    MeanOp,
    MergeOp,
    OutputOp,
    ProgramOp,
    ReduceOp,
    SdgOp,
    SourceOp,
    SumOp,
    TokenType,
    domain_of,
)
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.sdg.until import until_of
from tempo_ir.dialects.types import Extent, element, shape_of, tensor
from tempo_ir.graphs import reachable
from tempo_ir.index import (
    TRUE,
    Const,
    Domain,
    Entry,
    Index,
    Slice,
    Space,
    Sym,
    compare,
    free_symbols,
    negate,
    substitute,
)
from tempo_ir.passes.building import GraphBuilder, normal_form
from tempo_ir.passes.recurrences.interleaving import Falling, Lookahead, looped
from tempo_ir.passes.recurrences.reductions import accumulator, combining, identity
from tempo_ir.passes.remarks import collecting, count, remark
from tempo_ir.passes.sdg_dce import remove_dead_ops
from tempo_ir.passes.sdg_vectorize import choose
from tempo_ir.passes.utilities import check_counts, dims_to_try, erase, programs

OPEN_EXTENT = 64
"""Elements that an axis of no fixed extent is taken to have."""


@dataclass(frozen=True)
class SdgAccumulatePass(ModulePass):
    """Keep sums over all steps as they run."""

    name = "sdg-accumulate"

    steps: int = 256
    """How many points a dim is expected to have where nothing says so."""

    memory: int = 2**26
    """The bytes that may be kept for a sum where that moves fewer bytes."""

    products: int = 32
    """From how many products a step and element on a sum over the way back is kept as that runs; 0: from none."""

    dims: tuple[str, ...] = ()
    """The dims to accumulate along whatever it costs; along the others where it pays."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        for program in programs(op):
            until = until_of(program_ops(program))
            names = [name for name in program.space.names if until is None or name != until.dim]
            asked = dims_to_try(self.name, program, self.dims) if self.dims else ()
            costs = [
                Costs(dim, self.steps, 0 if dim in asked else self.memory, self.products, dim in asked) for dim in names
            ]
            done = Accumulation(program).run(costs)
            count(self, "accumulated", done)
            if done:
                remove_dead_ops(program)


@dataclass(frozen=True)
class Costs:
    """What is expected of a dim, and what may be kept for its points."""

    dim: str
    steps: int
    memory: int
    products: int
    asked: bool

    def points(self, space: Space) -> int:
        """How many points the dim is taken to have."""
        bound = space.bound(self.dim)
        return bound.value if isinstance(bound, Const) else self.steps


Reduction: TypeAlias = ReduceOp | ContractOp


class Place(TypedDict, total=False):
    """Which axis, or which letter."""

    axis: int
    letter: str


@dataclass(frozen=True)
class Whole:
    """A reduction of the rows at a range of points of a dim that its own domain lacks: `axis` of a reduction's operand,
    `letter` of a contraction. With `down` the rows come from the last to the first."""

    op: Reduction
    dim: str
    points: Slice
    axis: int = 0
    letter: str = ""
    down: bool = False

    @property
    def space(self) -> Space:
        """The dims of the program."""
        return self.op.space

    @property
    def rows(self) -> list[Access]:
        """What the op reads, at one point of the range."""
        return [Access(access.value, self._row(access)) for access in self.op.accesses]

    def _row(self, access: Access) -> Index:
        dims = domain_of(access.value).dims
        here: dict[tuple[str, Entry], Entry] = {(self.dim, self.points): Sym(self.dim)}
        return tuple(here.get((name, entry), entry) for name, entry in zip(dims, access.index, strict=True))


@dataclass
class Accumulation:
    """Accumulates the reductions of one program, in place."""

    program: ProgramOp
    batches: dict[str, None] = field(default_factory=dict[str, None])
    """The dims that nothing recurs along whose points are summed one after the other."""

    def run(self, costs: Sequence[Costs]) -> int:
        """First batches where that is asked for, then what a loop makes as it goes on, batches by cost, and what a loop
        makes on the way back; how many."""
        asked = [each for each in costs if each.asked]
        done = sum(map(self.batch_by_batch, asked))
        done += sum(self.step_by_step(each, down=False) for each in costs)
        done += sum(self.batch_by_batch(each) for each in costs if not each.asked)
        return done + sum(self.step_by_step(each, down=True) for each in costs)

    def batch_by_batch(self, costs: Costs) -> int:
        """Accumulate what is made of no recurrence along a dim, if it pays; how many."""
        space, dim = self.program.space, costs.dim
        ops = program_ops(self.program)
        found = wholes_of(ops, dim)
        if not found:
            return 0
        ahead = Lookahead(ops, dim, space)
        after = reachable(looped(ops, dim, space), ahead.readers.__getitem__)
        sums: dict[SdgOp, Whole] = {}
        for whole in found:
            if whole.op not in after and lag(whole, ahead) < inf:
                sums.setdefault(whole.op, whole)
        rows = sum(map(value_bytes, rows_between_products(dim, sums, ahead)))
        few = rows * costs.points(space) <= costs.memory or rows < sum(map(result_bytes, sums))
        if not sums or (few and not costs.asked):
            return 0
        self.batches[dim] = None
        outer = set(space.names[: space.names.index(dim)])
        if any(outer & set(op.domain.dims) for op in ahead.within(sums)):
            self.program.outermost = tuple(dict.fromkeys((*self.program.outermost, dim)))
        return accumulate_all(sums)

    def step_by_step(self, costs: Costs, *, down: bool) -> int:
        """Accumulate what a loop over a dim makes, as it goes on or on the way back, if it pays; how many."""
        space, dim = self.program.space, costs.dim
        ops = program_ops(self.program)
        found = wholes_of(ops, dim)
        loop = looped(ops, dim, space) if found else {}
        if not loop:
            return 0
        ahead = Lookahead(ops, dim, space)
        after = reachable(loop, ahead.readers.__getitem__)
        falling = Falling(ops, ahead)
        inside = self.batches.keys() & set(space.names[space.names.index(dim) :])
        sums: dict[SdgOp, Whole] = {}
        for whole in found:
            if whole.op not in after:
                continue
            if inside & set(whole.op.domain.dims):
                if down:
                    remark(whole.op, f"not accumulated over {dim}: the sums over {min(inside)} have loops of their own")
            elif lag(whole, ahead) < inf:
                if not down:
                    sums.setdefault(whole.op, whole)
            elif whole.op in falling.after and falling.serves(whole.op):
                if down:
                    sums.setdefault(whole.op, replace(whole, down=True))
            elif down:
                remark(whole.op, f"not accumulated over {dim}: what it reduces waits for the last step")
        reason = self.reason_not_to(costs, sums, falling, down=down)
        if reason is not None and not costs.asked:
            quick = {op: whole for op, whole in sums.items() if down and is_quick(whole, costs, falling)}
            for op in sums:
                if op not in quick:
                    remark(op, f"not accumulated over {dim}: {reason}")
            return accumulate_all(quick)
        return accumulate_all(sums)

    def reason_not_to(self, costs: Costs, sums: dict[SdgOp, Whole], falling: Falling, *, down: bool) -> str | None:
        """Why it does not pay to accumulate what a loop makes; None if it does."""
        if down:
            rows = sum(map(value_bytes, rows_of_the_way_back(self.program, costs.dim, sums, falling)))
            few = costs.points(self.program.space) * rows <= costs.memory
            return f"there is memory for its rows, {rows} bytes a step" if few else None
        rows = sum(map(value_bytes, kept_rows(self.program, costs.dim, sums, falling.ahead)))
        kept = sum(map(result_bytes, sums))
        few = rows < kept and rows * costs.steps <= costs.memory
        return f"its rows are {rows} bytes a step, the sums {kept}" if few else None


def accumulate_all(sums: dict[SdgOp, Whole]) -> int:
    """Accumulate reductions, in place; how many."""
    for whole in sums.values():
        accumulate_one(whole, backwards=whole.down)
    return len(sums)


def wholes_of(ops: Sequence[SdgOp], dim: str) -> list[Whole]:
    """The ranges of a dim, the same at all points, whose rows some op reduces."""
    return [whole for op in ops if isinstance(op, Reduction) for whole in wholes(op, dim)]


def wholes(op: Reduction, dim: str) -> Iterator[Whole]:
    """The ranges of a dim, the same at all points, whose rows an op reduces."""
    if dim in op.domain.dims or not any(Slice in map(type, access.index) for access in op.accesses):
        return
    found = reduced_axes(op) if isinstance(op, ReduceOp) else reduced_letters(op)
    for (name, points), place in found:
        if name == dim and points.step == 1 and not free_symbols(points) & set(op.space.names):
            yield Whole(op, dim, points, **place)


def ranges_of(access: Access) -> list[tuple[str, Slice]]:
    """The ranges that an access reads, by dims, one for each of its first axes."""
    dims = domain_of(access.value).dims
    return [(name, entry) for name, entry in zip(dims, access.index, strict=True) if isinstance(entry, Slice)]


def reduced_axes(op: ReduceOp) -> Iterator[tuple[tuple[str, Slice], Place]]:
    """The ranges whose axes an op reduces."""
    for axis, points in enumerate(ranges_of(op.accesses[0])):
        if axis in op.axes:
            yield points, {"axis": axis}


def reduced_letters(op: ContractOp) -> Iterator[tuple[tuple[str, Slice], Place]]:
    """The ranges that are read by all operands of a contraction that have a letter, which the result has not; of a dim
    that no other letter stands for: a row would need all rows of that one."""
    inputs, output = op.letters
    letters_of: dict[str, set[str]] = {}
    for letters, access in zip(inputs, op.accesses, strict=True):
        for letter, (name, _) in zip(letters, ranges_of(access), strict=False):
            letters_of.setdefault(name, set()).add(letter)
    for letter in dict.fromkeys("".join(inputs)):
        ranges: set[tuple[str, Slice] | None] = set()
        for letters, access in zip(inputs, op.accesses, strict=True):
            if letter in letters:
                own = dict(enumerate(ranges_of(access)))
                ranges.add(own.get(letters.index(letter)) if letters.count(letter) == 1 else None)
        if letter not in output and len(ranges) == 1 and (only := next(iter(ranges))) is not None:
            if len(letters_of[only[0]]) == 1:
                yield only, {"letter": letter}


# ---- whether it can be, and pays ----


def lag(whole: Whole, ahead: Lookahead) -> float:
    """How many steps after its own the latest row of a reduction can be had; `inf` where that is no fixed number, or
    as many as there are."""
    latest = 0.0
    for access in whole.op.accesses:
        producer = access.value.owner
        if isinstance(producer, SdgOp):
            latest = max(latest, ahead.steps[producer])
    bound = whole.space.bound(whole.dim)
    return inf if isinstance(bound, Const) and 2 * latest >= bound.value else latest


def kept_rows(program: ProgramOp, dim: str, sums: dict[SdgOp, Whole], ahead: Lookahead) -> list[SSAValue]:
    """What has a row of each point of a dim in memory for the sums alone."""
    readers = readers_of_all(program, dim, sums, ahead.within(sums))
    kept: dict[SSAValue, None] = {}
    for reader in readers:
        assert isinstance(reader, AccessOp)
        for access in reader.accesses:
            producer = access.value.owner
            if not isinstance(producer, SdgOp) or isinstance(producer, SourceOp) or dim not in producer.domain.dims:
                continue
            if all(use.operation in readers or runs_along(use.operation, ahead) for use in access.value.uses):
                kept[access.value] = None
    return list(kept)


def rows_of_the_way_back(program: ProgramOp, dim: str, sums: dict[SdgOp, Whole], falling: Falling) -> list[SSAValue]:
    """What a recurrence from the last point to the first makes that has a row of each point in memory for the sums. A
    sum of products is one product of what they are made of."""
    behind = falling.rows(sums)
    kept: dict[SSAValue, None] = {}
    for reader in readers_of_all(program, dim, sums, behind):
        for access in reader.accesses:
            producer = access.value.owner
            is_product = isinstance(reader, SumOp) and isinstance(producer, ContractOp)
            if producer in behind and dim in domain_of(access.value).dims and not is_product:
                kept[access.value] = None
    return list(kept)


def readers_of_all(
    program: ProgramOp, dim: str, sums: dict[SdgOp, Whole], behind: Container[SdgOp]
) -> dict[SdgOp, None]:
    """What reads all points of a dim at once for some sums, which are made of what is `behind` them: the sums, and what
    sdg-vectorize makes at all points."""
    with collecting():  # what sdg-vectorize would remark is not said twice
        vectorised = choose(program, dim, take_all=False)
    return {**dict.fromkeys(sums), **{op: None for op in vectorised if op in behind}}


def is_quick(whole: Whole, costs: Costs, falling: Falling) -> bool:
    """Whether the steps of a recurrence add so many products to each element of a sum that they are no slower than one
    product at the end: the recurrence is of products itself, and none is between it and the sum."""
    products = [op for op in falling.rows([whole.op]) if isinstance(op, ContractOp)]
    between, inner = [op for op in products if op not in falling.loop], made_in_steps(whole.op)
    if len(between) == len(products):
        return False
    return 0 < costs.products <= added_products(whole) and all(op is inner for op in between)


def made_in_steps(op: Reduction) -> ContractOp | None:
    """The products that a sum is of, one at each step; None where it is of something else."""
    producer = op.accesses[0].value.owner
    return producer if isinstance(op, SumOp) and isinstance(producer, ContractOp) else None


def added_products(whole: Whole) -> int:
    """How many products, or elements, are added to each element of a reduction at one step."""
    op, inner = whole.op, made_in_steps(whole.op)
    product = op if isinstance(op, ContractOp) else inner
    if product is None:
        shape = shape_of(op.accesses[0].tensor)
        extents = [shape[axis] for axis in op.axes if axis != whole.axis] if isinstance(op, ReduceOp) else []
        return math.prod(sizes(extents))
    (inputs, output), summed = product.letters, dict[str, Extent]()
    for letters, access in zip(inputs, product.accesses, strict=True):
        summed.update(zip(letters, shape_of(access.tensor), strict=True))
    return math.prod(sizes(extent for letter, extent in summed.items() if letter not in output + whole.letter))


def rows_between_products(dim: str, sums: dict[SdgOp, Whole], ahead: Lookahead) -> list[SSAValue]:
    """What would have a row of each point of a dim in memory for the sums alone, if each product and sum were made at
    all points at once: what they read. A sum of products is one product, and what is made element by element is no
    more than what is read of it."""
    products = [op for op in ahead.within(sums) if isinstance(op, ContractOp) and dim in op.domain.dims]
    readers = dict.fromkeys([*sums, *products])
    kept: dict[SSAValue, None] = {}
    for reader in readers:
        for access in reader.accesses:
            producer = access.value.owner
            if isinstance(producer, SourceOp) or dim not in domain_of(access.value).dims:
                continue
            if isinstance(reader, SumOp) and isinstance(producer, ContractOp):
                continue
            if all(use.operation in readers or runs_along(use.operation, ahead) for use in access.value.uses):
                kept[access.value] = None
    return list(kept)


def runs_along(user: Operation, ahead: Lookahead) -> bool:
    """Whether a reader needs no more than a fixed number of rows; an output keeps all."""
    return isinstance(user, SdgOp) and not isinstance(user, OutputOp) and ahead.steps[user] < inf


def value_bytes(value: SSAValue) -> int:
    """The bytes of one row of a value."""
    if isinstance(value.type, TokenType):
        return 0
    kind = element(value.type)
    assert isinstance(kind, FixedBitwidthType)
    return kind.size * math.prod(sizes(shape_of(value.type)))


def sizes(extents: Iterable[Extent]) -> Iterator[int]:
    """The extents of axes, as far as they are known."""
    return (extent if isinstance(extent, int) else OPEN_EXTENT for extent in extents)


def result_bytes(op: SdgOp) -> int:
    """The bytes of an op's result."""
    return value_bytes(op.results[0])


# ---- how ----


def accumulate_one(whole: Whole, *, backwards: bool = False) -> None:
    """Make a reduction the last value of a recurrence; `backwards` from the last point to the first."""
    from tempo_ir.index import isl

    op, dim = whole.op, whole.dim
    shape = shape_of(op.results[0].type)
    wide = accumulator(type(op), element(op.results[0].type))
    outside = GraphBuilder(op, op.domain, op.location)
    inside = outside.at(steps_of(whole))
    nothing = outside.constant(identity(type(op), wide), wide, shape)
    row = inside.cast(row_of(whole, inside, wide), wide)
    here = tuple(map(Sym, inside.domain.dims))
    before = MergeOp((TRUE, nothing), domain=inside.domain, result_type=tensor(wide, shape))
    inside.insert(before, op.results[0].name_hint)
    step = combining(type(op), wide)(Access(before.result, here), row, domain=inside.domain)
    total = inside.insert(step, op.results[0].name_hint)
    begin, end = whole.points.start, whole.points.stop - 1
    if backwards:
        begin, end = end, begin
    previous = substitute(here, {dim: Sym(dim) + (1 if backwards else -1)})
    later = compare("<" if backwards else ">", Sym(dim), begin)
    if not isl.prove(negate(later), whole.space, Domain(inside.domain.dims)):  # there may be more than one point
        before.set_cases([(compare("=", Sym(dim), begin), nothing), (later, Access(total.value, previous))])
    last = Access(total.value, substitute(here, {dim: end}))
    result = outside.cast(averaged(whole, outside, or_nothing(whole, outside, last, nothing)), kind_of(op))
    op.results[0].replace_all_uses_with(result.value)
    erase([op])


def kind_of(op: SdgOp) -> Attribute:
    """The element type of an op's result."""
    return element(op.results[0].type)


def steps_of(whole: Whole) -> Domain:
    """The op's points, at each point of the range."""
    domain = whole.op.domain
    dims = whole.space.order({*domain.dims, whole.dim})
    ranges = {name: (first, end) for name, first, end in domain.ranges}
    ranges[whole.dim] = (whole.points.start, whole.points.stop)
    ordered = tuple((name, *ranges[name]) for name in dims if name in ranges)
    return normal_form(Domain(dims, ordered, domain.where), whole.space)


def row_of(whole: Whole, build: GraphBuilder, wide: Attribute) -> Access:
    """What one row adds."""
    op, rows = whole.op, whole.rows
    if isinstance(op, ContractOp):
        inputs, output = op.letters
        spec = ",".join(letters.replace(whole.letter, "") for letters in inputs)
        return build.contract(f"{spec}->{output}", *(build.cast(row, wide) for row in rows))
    others = [axis - (axis > whole.axis) for axis in op.axes if axis != whole.axis]
    kind = SumOp if isinstance(op, MeanOp) else type(op)
    return build.reduce(kind, build.cast(rows[0], wide), others)


def averaged(whole: Whole, build: GraphBuilder, total: Access) -> Access:
    """A total over the number of elements, where that is asked for."""
    op = whole.op
    if not isinstance(op, MeanOp):
        return total
    shape = shape_of(op.accesses[0].tensor)
    return build.build(DivOp, total, build.count([shape[axis] for axis in op.axes], element(total.type)))


def or_nothing(whole: Whole, build: GraphBuilder, last: Access, nothing: Access) -> Access:
    """The last value; what the reduction of nothing gives where there are no rows."""
    from tempo_ir.index import isl

    first, end = whole.points.start, whole.points.stop
    if isl.prove(compare(">", end, first), whole.space, build.domain):
        return build.copy(last)
    if isl.prove(compare("<=", end, first), whole.space, build.domain):
        return build.copy(nothing)
    never_negative = isl.prove(compare(">=", end, first), whole.space, build.domain)
    cases = ((compare("=" if never_negative else "<=", end, first), nothing), (compare(">", end, first), last))
    return build.insert(MergeOp(*cases, domain=build.domain, result_type=last.tensor), whole.op.results[0].name_hint)
