# pyright: basic
"""
Proof that a storage plan keeps every value that is read: on every compile, with no code in common with the planner.

It is given what the program read and wrote before, and the claim in which cell of which buffer each row lies now. It
reads loops, guards, order and accesses back from the program and proves, for all sizes that the program admits:

- every operation runs as before, on the rows that the claim names, host calls in their order; what is no longer written
  was a copy onto itself;
- no cell is written twice, and each that is read is written before;
- between the write of a cell and a read of it nothing is written where it lies: not by a ring that comes round, not in
  place by an operation that may still read;
- a buffer made in a loop passes nothing on to the next iteration; an array of the caller ends with all its rows, and
  with nothing in those that the program leaves out;
- what is freed is there, and not read any more.

Questions are asked once per pattern, so that equal layers cost one. Liveness on schedules as in Feautrier (1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.loop import (
    BufferAccess,
    BufferDim,
    FreeOp,
    HostOp,
    InputOp,
    OutputOp,
    ParameterOp,
    ProgramOp,
)
from tempo_ir.index.domain import Space
from tempo_ir.index.expr import (
    TRUE,
    Cond,
    Const,
    Expr,
    Index,
    Slice,
    Sym,
    compare,
    conj,
    free_symbols,
    negate,
    substitute,
)
from tempo_ir.index.isl import (
    DIM,
    Map,
    Set,
    Writer,
    coalesced,
    counterexample,
    encode,
    params_set,
    read_map,
    read_set,
    tuple_text,
)
from tempo_ir.lowering.instances import Instance, instances
from tempo_ir.lowering.proofs import IllegalError
from tempo_ir.lowering.storage.contents import Content, Touch, first_and_last, loops_round
from tempo_ir.lowering.storage.pointwise import reads_in_place
from tempo_ir.lowering.storage.start_check import writes_the_same


class IllegalStorageError(IllegalError):
    """A plan that loses a value: a fault of the compiler. `op` is the operation concerned."""

    def __init__(self, message: str, op: Operation):
        super().__init__(f"internal error, illegal storage: {message}", op)


@dataclass(frozen=True)
class Memory:
    """Where the rows of a buffer are said to lie: cell `cells` (over `dims`, those of the buffer) of another buffer.

    `stored` are the positions of the cell's coordinates that the other buffer stores, in its order.
    """

    buffer: SSAValue
    dims: tuple[str, ...]
    cells: tuple[Expr, ...]
    stored: tuple[int, ...]

    def at(self, index: Index) -> Index:
        """The cells of rows: a point, or of one slice along each dim that is sliced."""
        points = {d: e for d, e in zip(self.dims, index, strict=True) if not isinstance(e, Slice)}
        slices = {d: e for d, e in zip(self.dims, index, strict=True) if isinstance(e, Slice)}
        entries: list = []
        for cell in self.cells:
            sliced = sorted(free_symbols(cell) & slices.keys())
            if not sliced:
                entries.append(substitute(cell, points))
                continue
            moved, taken = cell - Sym(sliced[0]), slices[sliced[0]]
            entries.append(Slice(taken.start + moved, taken.stop + moved, taken.step))
        return tuple(entries)


@dataclass(frozen=True)
class Claim:
    """
    What the program did before, and what is said to have become of it.

    `origins` holds for each operation that replaced another that other one, and which of its results are left;
    `memories` where each buffer lies, those that are not in it are as they were; `freed` the cells that a free names;
    `starts` the operations that write cells before others did, and those others; `donated` the pairs of buffers of the
    caller that may be one array.
    """

    before: Sequence[Instance]
    memories: Mapping[SSAValue, Memory]
    origins: Mapping[Operation, tuple[Operation, tuple[int, ...]]]
    freed: Mapping[Operation, Index]
    starts: Mapping[Operation, tuple[Index, tuple[Operation, ...]]] = field(default_factory=dict)
    donated: Sequence[tuple[SSAValue, SSAValue]] = ()


def check_storage(program: ProgramOp, claim: Claim, read: Sequence[Instance] | None = None) -> None:
    """
    Prove that a program with planned storage, of which `read` was read, reads what it read before.

    Raises IllegalStorageError.
    """
    read = instances(program) if read is None else read
    after = [instance for instance in read if not isinstance(instance.op, FreeOp)]
    frees = [instance for instance in read if isinstance(instance.op, FreeOp)]
    checker = _Checker(program, claim)
    checker.check_operations(after)
    for memory in checker.contents(after, frees):
        checker.check_memory(memory)
    for source, target in claim.donated:
        checker.check_donation(source, target, after)


@dataclass
class _Checker:
    program: ProgramOp
    claim: Claim
    answers: dict[object, str | None] = field(default_factory=dict)

    @property
    def space(self) -> Space:
        """The dims and bounds of the program."""
        return self.program.space

    # -- operations

    def check_operations(self, after: Sequence[Instance]) -> None:
        """Every operation of before runs where it ran, on the rows that the claim names, but for copies onto itself."""
        before = {instance.op: instance for instance in self.claim.before}
        kept: dict[Operation, tuple[int, ...]] = {}
        for instance in after:
            if instance.op in self.claim.starts:
                for origin in self._check_start(instance, before):
                    kept[origin.op] = (0,)
                continue
            everything = (instance.op, tuple(range(len(instance.writes))))
            op, numbers = self.claim.origins.get(instance.op, everything)
            if op not in before:
                raise IllegalStorageError("an operation is new", instance.op)
            kept[op] = numbers
            self._check_frame(before[op], instance)
            self._check_accesses(before[op], instance, numbers)
        hosts = [[one.op for one in some if isinstance(one.op, HostOp)] for some in (self.claim.before, after)]
        if hosts[0] != hosts[1]:
            raise IllegalStorageError("host calls run in another order", self.program)
        for origin in self.claim.before:
            for number in range(len(origin.writes)):
                if number not in kept.get(origin.op, ()):
                    self._check_dropped(origin, number)

    def _check_start(self, instance: Instance, before: Mapping[Operation, Instance]) -> list[Instance]:
        """An operation that writes earlier what others wrote: the same value, into the same cell wherever they ran."""
        cells, ops = self.claim.starts[instance.op]
        for origin in [before[op] for op in ops]:
            write, *others = origin.writes
            memory = self.claim.memories[write.buffer]
            place = memory.buffer, tuple(cells[position] for position in memory.stored)
            there = [(access.buffer, access.index) for access in instance.writes]
            read = [access.buffer for access in origin.reads]
            same = origin.formula == instance.formula and read == [access.buffer for access in instance.reads]
            if not same or there != [place] or others:
                raise IllegalStorageError("a memory begins with another value", instance.op)
            if any(not isinstance(buffer.owner, InputOp | ParameterOp) for buffer in read):
                raise IllegalStorageError("a memory begins with a value that changes", instance.op)
            if not writes_the_same(origin, memory.at(write.index), instance, cells, self.space):
                raise IllegalStorageError("a memory begins with another row", instance.op)
        return [before[op] for op in ops]

    def _check_frame(self, origin: Instance, instance: Instance) -> None:
        if origin.frame == instance.frame:
            return
        if origin.frame.iterators != instance.frame.iterators or not self._runs(origin).is_equal(self._runs(instance)):
            raise IllegalStorageError("an operation runs at other points", instance.op)

    def _check_accesses(self, origin: Instance, instance: Instance, numbers: Sequence[int]) -> None:
        arguments = [origin.arguments.index(argument) for argument in instance.arguments]
        reads = [origin.reads[number] for number in arguments] if instance.arguments else origin.reads
        writes = [origin.writes[number] for number in numbers]
        if [self._place(access) for access in (*reads, *writes)] != [*instance.reads, *instance.writes]:
            raise IllegalStorageError("an operation works on rows other than those planned", instance.op)
        if list(instance.results) != [origin.results[number] for number in numbers if origin.results]:
            raise IllegalStorageError("an operation writes other results", instance.op)

    def _place(self, access: BufferAccess) -> BufferAccess:
        """The same rows where they lie now."""
        memory = self.claim.memories.get(access.buffer)
        if memory is None:
            return access
        cells = memory.at(access.index)
        return BufferAccess(memory.buffer, tuple([cells[position] for position in memory.stored]), access.type)

    def _check_dropped(self, origin: Instance, number: int) -> None:
        """A result that is no longer written was a copy of what lies in the same cell."""
        result = origin.results[number] if origin.results else None
        if result in origin.arguments:
            read, written = origin.reads[origin.arguments.index(result)], origin.writes[number]
            here, there = self.claim.memories.get(read.buffer), self.claim.memories.get(written.buffer)
            if here is not None and there is not None and here.buffer is there.buffer:
                if self._coincide(origin, here.at(read.index), there.at(written.index)):
                    return
        raise IllegalStorageError("a result is lost", self.program)

    def _coincide(self, instance: Instance, left: Index, right: Index) -> bool:
        if any(isinstance(entry, Slice) for entry in (*left, *right)):
            return False
        pairs = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
        differ = [negate(compare("=", a, b)) for a, b in pairs if isinstance(a, Expr) and isinstance(b, Expr)]
        return all(self._runs(instance, condition).is_empty() for condition in differ)

    # -- contents

    def contents(self, after: Sequence[Instance], frees: Sequence[Instance]) -> list[Content]:
        """What happens to the cells of each buffer that the claim names."""
        found: dict[SSAValue, Content] = {}
        for memory in self.claim.memories.values():
            found.setdefault(memory.buffer, Content(memory.buffer, len(memory.cells), memory.stored))
        for source, memory in self.claim.memories.items():
            if isinstance(source.owner, OutputOp):
                rows = tuple(self._rows(dim) for dim in source.owner.buffer_type.dims)
                found[memory.buffer].kept.append(memory.at(rows))
                found[memory.buffer].shown += [
                    Touch(origin, memory.at(write.index), 1)
                    for origin in self.claim.before
                    for write in origin.writes
                    if write.buffer is source
                ]
        before = {instance.op: instance for instance in self.claim.before}
        for instance in after:
            if instance.op in self.claim.starts:
                found[instance.writes[0].buffer].writes.append(Touch(instance, self.claim.starts[instance.op][0], 1))
                continue
            op, numbers = self.claim.origins.get(instance.op, (instance.op, tuple(range(len(instance.writes)))))
            self._add(found, before[op], instance, numbers)
        for free in frees:
            (access,) = free.reads
            content = found.get(access.buffer)
            if content is None:
                continue
            cells = self.claim.freed.get(free.op)
            if cells is None or tuple(cells[position] for position in content.stored) != access.index:
                raise IllegalStorageError("a free names other rows than those planned", free.op)
            content.frees.append(Touch(free, cells, 0))
        return list(found.values())

    def _rows(self, dim: BufferDim) -> Slice:
        """All rows of a dim of an array of the caller."""
        return Slice(Const(0), self.space.bound(dim.name) if dim.extent is None else dim.extent)

    def _add(
        self, found: Mapping[SSAValue, Content], origin: Instance, instance: Instance, numbers: Sequence[int]
    ) -> None:
        arguments = [origin.arguments.index(argument) for argument in instance.arguments]
        reads = arguments if instance.arguments else range(len(origin.reads))
        for position, number in enumerate(reads):
            read = origin.reads[number]
            if (memory := self.claim.memories.get(read.buffer)) is not None:
                content = found[memory.buffer]
                own = any(write.buffer is memory.buffer for write in instance.writes)
                late = own and not reads_in_place(instance, position)
                content.reads.append(Touch(instance, memory.at(read.index), 2 if late else 0))
        for number in numbers:
            write = origin.writes[number]
            if (memory := self.claim.memories.get(write.buffer)) is not None:
                found[memory.buffer].writes.append(Touch(instance, memory.at(write.index), 1))

    # -- memory

    def check_memory(self, content: Content) -> None:
        """No value of a buffer is lost while it is read. Raises IllegalStorageError."""
        if not content.writes:
            for touch in content.reads:
                raise IllegalStorageError("a row is read that is never written", touch.instance.op)
            return
        content.reads = first_and_last(content.reads)
        key = content.key()
        if key not in self.answers:
            self.answers[key] = self._fault(content)
        fault = self.answers[key]
        if fault is not None:
            raise IllegalStorageError(fault, content.writes[0].instance.op)

    def _fault(self, content: Content) -> str | None:
        """What is wrong with a buffer; None if nothing is."""
        times = _Times(self.space, content)
        written = times.union(content.writes)
        if not _is_single(content.writes, times) or not written.is_single_valued():
            return f"a cell is written twice{_example(written)}"
        shown = [times.after(kept) for kept in content.kept]
        if (fault := self._shown_fault(content, times, written, shown)) is not None:
            return fault
        reads = [times.of(touch) for touch in content.reads]
        for read in reads:
            if not read.domain().is_subset(written.domain()):
                return f"a row is read that is never written{_example(read.subtract_domain(written.domain()))}"
        reads += shown
        for read in reads:
            if (fault := self._read_fault(content, times, written, read)) is not None:
                return fault
        return self._free_fault(content, times, written, reads)

    @staticmethod
    def _shown_fault(content: Content, times: _Times, written: Map, shown: Sequence[Map]) -> str | None:
        """Whether the caller finds something in rows that were left out, which hold zeros."""
        for rows in shown:
            more = written.intersect_domain(rows.domain())
            for touch in content.shown:
                more = more.subtract_domain(times.of(touch).domain())
            if not more.is_empty():
                return f"a row of the caller's array is written that was left out{_example(more)}"
        return None

    def _read_fault(self, content: Content, times: _Times, written: Map, read: Map) -> str | None:
        read = coalesced(read.intersect_domain(written.domain()))
        if (late := _not_before(written, read)) is not None:
            return f"a row is read before it is written{_example(late)}"
        if (clash := self._overwritten(times, written, read)) is not None:
            return f"a row is overwritten while it is still read{_example(clash)}"
        passed = written.reverse().apply_range(read)
        depth = len(loops_round(content.buffer))
        if not passed.is_empty() and not passed.is_subset(times.same_iteration(passed, depth)):
            return "a buffer made in a loop is read in another iteration than it is written"
        return None

    @staticmethod
    def _overwritten(times: _Times, written: Map, read: Map) -> Map | None:
        """Pairs of a cell and another one that is written where it lies, after it and before it is read."""
        if times.content.keeps_all:
            return None
        places = times.same_place()
        later, before = (
            coalesced(places.intersect(m)) for m in (written.lex_le_map(written), read.lex_gt_map(written))
        )
        clash = later.intersect(before)
        return None if clash.is_empty() else clash

    def _free_fault(self, content: Content, times: _Times, written: Map, reads: Sequence[Map]) -> str | None:
        for number, touch in enumerate(content.frees):
            freed = times.of(touch)
            if not freed.domain().is_subset(written.domain()):
                return f"a row is freed that is never written{_example(freed)}"
            if _not_before(written, freed) is not None:
                return f"a row is freed before it is written{_example(freed)}"
            if (clash := self._overwritten(times, written, freed)) is not None:
                return f"a row is freed that is overwritten before{_example(clash)}"
            if any(_not_before(read, freed) is not None for read in reads):
                return f"a row is read after it is freed{_example(freed)}"
            others = [times.of(other).domain() for other in content.frees[:number]]
            if not freed.is_single_valued() or any(not freed.domain().is_disjoint(other) for other in others):
                return f"a row is freed twice{_example(freed)}"
        return None

    def check_donation(self, source: SSAValue, target: SSAValue, after: Sequence[Instance]) -> None:
        """Once anything but a copy of itself is written to the array of two buffers, the first is not read any more."""
        content = Content(target, 0, ())
        for instance in after:
            written = [number for number, write in enumerate(instance.writes) if write.buffer is target]
            read = [number for number, read in enumerate(instance.reads) if read.buffer is source]
            if not instance.formula and [(one.buffer, one.index) for one in instance.reads] == [(source, ())]:
                written = []
            content.writes += [Touch(instance, (), 1) for _ in written]
            late = [bool(written) and not reads_in_place(instance, number) for number in read]
            content.reads += [Touch(instance, (), 2 if held else 0) for held in late]
        if not content.writes or not content.reads:
            return
        content.reads = first_and_last(content.reads)
        key = ("donation", content.key())
        if key not in self.answers:
            times = _Times(self.space, content)
            late = times.union(content.reads).lex_gt_map(times.union(content.writes))
            self.answers[key] = None if late.is_empty() else "late"
        if self.answers[key] is not None:
            raise IllegalStorageError(
                "a parameter is read after its array is overwritten", content.writes[0].instance.op
            )

    # -- sets

    def _runs(self, instance: Instance, condition: Cond = TRUE) -> Set:
        """The iterations in which an operation runs and a condition holds."""
        iterators = instance.frame.iterators
        writer = Writer(iterators, self.space.params)
        held = writer.cond(conj(instance.frame.holds, condition))
        names = [encode(name) for name in iterators]
        points = read_set(writer.declared(f"{tuple_text('', names)} : {held} and {writer.natural()}"))
        return points.intersect_params(params_set(self.space))


@dataclass
class _Times:
    """Relations between the cells of a buffer and the times at which they are touched."""

    space: Space
    content: Content

    def __post_init__(self) -> None:
        self.ranks = self.content.ranks()
        self.length = max(2 * len(touch.instance.time) for touch in self.content.touches)
        self.cells = [f"c{number}'" for number in range(self.content.rank)]
        self.admitted = params_set(self.space)
        self.known: dict[int, Map] = {}  # by the identity of touches, which the content keeps

    def of(self, touch: Touch) -> Map:
        """From each cell to the times at which it is touched."""
        if id(touch) not in self.known:
            self.known[id(touch)] = self._of(touch)
        return self.known[id(touch)]

    def _of(self, touch: Touch) -> Map:
        instance, frame = touch.instance, touch.instance.frame
        writer = Writer(frame.iterators, self.space.params)
        time: list = []
        for number, (name, _, down) in zip(instance.time, frame.loops, strict=False):
            time += [Const(self.ranks[number]), Sym(name) * (-1 if down else 1)]
        time += [Const(self.ranks[instance.time[-1]]), Const(touch.moment)]
        outputs = [f"z{number}'" for number in range(self.length)]
        parts = [writer.cond(frame.holds), writer.natural(), *self._inside(writer, touch.cells)]
        parts += [f"{output} = {writer.expr(value)}" for output, value in zip(outputs, time, strict=False)]
        parts += [f"{output} = 0" for output in outputs[len(time) :]]
        held = " and ".join(f"({part})" for part in parts)
        if frame.iterators:
            held = f"exists ({', '.join(map(encode, frame.iterators))} : {held})"
        relation = read_map(writer.declared(f"{tuple_text('', self.cells)} -> {tuple_text('', outputs)} : {held}"))
        return coalesced(relation.intersect_params(self.admitted))

    def _inside(self, writer: Writer, cells: Index) -> Iterator[str]:
        for entry, cell in zip(cells, self.cells, strict=True):
            if not isinstance(entry, Slice):
                yield f"{cell} = {writer.expr(entry)}"
                continue
            yield f"{writer.expr(entry.start)} <= {cell} < {writer.expr(entry.stop)}"
            if entry.step != 1:
                yield f"({cell} - ({writer.expr(entry.start)})) mod {entry.step} = 0"

    def after(self, cells: Index) -> Map:
        """The cells of a box, touched after the program."""
        writer = Writer((), self.space.params)
        time = ", ".join([str(len(self.ranks)), *["0"] * (self.length - 1)])
        held = " and ".join([*self._inside(writer, cells), writer.natural()])
        relation = read_map(writer.declared(f"{tuple_text('', self.cells)} -> [{time}] : {held}"))
        return relation.intersect_params(self.admitted)

    def union(self, touches: Sequence[Touch]) -> Map:
        """The relations of several touches as one."""
        whole = self.of(touches[0])
        for touch in touches[1:]:
            whole = whole.union(self.of(touch))
        return coalesced(whole)

    def same_place(self) -> Map:
        """Pairs of different cells that lie in one place."""
        others = [f"d{number}'" for number in range(self.content.rank)]
        same = ["true"]
        for position, dim in zip(self.content.stored, self.content.dims, strict=True):
            left, right = self.cells[position], others[position]
            ring = dim.storage == "ring"
            same.append(f"({left} - {right}) mod {dim.slots} = 0" if ring else f"{left} = {right}")
        different = " or ".join(f"{a} != {b}" for a, b in zip(self.cells, others, strict=True)) or "false"
        text = f"{tuple_text('', self.cells)} -> {tuple_text('', others)} : {' and '.join(same)} and ({different})"
        return read_map(f"{{ {text} }}")

    @staticmethod
    def same_iteration(passed: Map, depth: int) -> Map:
        """Pairs of times in one iteration of the `depth` outermost loops."""
        length = passed.dim(DIM.in_)
        left, right = ([f"{name}{number}" for number in range(length)] for name in "ab")
        same = " and ".join(f"a{2 * number + 1} = b{2 * number + 1}" for number in range(depth)) or "true"
        return read_map(f"{{ {tuple_text('', left)} -> {tuple_text('', right)} : {same} }}")


def _is_single(writes: Sequence[Touch], times: _Times) -> bool:
    """Whether no two operations write one cell."""
    domains = [times.of(touch).domain() for touch in writes]
    return all(domain.is_disjoint(other) for number, domain in enumerate(domains) for other in domains[:number])


def _not_before(first: Map, second: Map) -> Map | None:
    """
    The cells that the first touches when the second has touched them or does; None if there are none.

    Times of one cell are few pairs, all pairs of cells that the orders of times allow are many.
    """
    together = first.reverse().apply_range(second)
    if together.intersect(Map.lex_ge(together.range().get_space())).is_empty():
        return None
    return first.lex_ge_map(second).intersect(first.domain().identity())


def _example(relation: Map) -> str:
    found = counterexample(relation.domain())
    return f": {found}" if found else ""
