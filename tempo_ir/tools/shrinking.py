"""Smaller programs from a failing one: the edits that `tempo-reduce` tries, and the search over them.

An edit changes a copy of an sdg program; what is not valid afterwards is dropped, what is still interesting becomes the
program to go on from. Every program taken is less than the one before in one order (ops that compute, ops, length of
the text), so the search ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access, AccessOp, CondAttr, EntryAttr, IndexAttr, ProgramOp, SdgOp, TokenType
from tempo_ir.dialects.sdg.attributes import DomainAttr, NumberAttr
from tempo_ir.dialects.sdg.inference import Extents
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.types import DTYPES, Extent, as_tensor, is_float, shape_of, tensor
from tempo_ir.index import (
    TRUE,
    And,
    Cond,
    Const,
    Domain,
    Entry,
    Expr,
    Index,
    IndexExpressionError,
    Or,
    Slice,
    Space,
    Sym,
    as_expr,
    conj,
    free_symbols,
    simplify,
    substitute,
)
from tempo_ir.names import fresh_name
from tempo_ir.passes.sdg_dce import remove_dead_ops
from tempo_ir.passes.utilities import erase, replace_proved

Edit = Callable[[ProgramOp], None]
"""Changes a program in place; raises Inapplicable where it cannot."""
Interesting = Callable[[ModuleOp], bool]
Size = tuple[int, int, int, str]


class Inapplicable(Exception):
    """An edit that this program has no place for."""


@dataclass
class Shrinker:
    """The search. `verified` says that only programs that verify count; `tries` how many were tested.

    `on_smaller` is called with each smaller program that is taken: whoever interrupts the search has the last one.
    """

    interesting: Interesting
    verified: bool = True
    most_tries: int = 5000
    on_smaller: Callable[[ModuleOp], None] = lambda smaller: None
    tries: int = 0
    taken: int = 0

    def shrink(self, module: ModuleOp) -> ModuleOp:
        """The smallest program found; the module itself where no edit keeps it interesting."""
        best = module.clone()
        while self.tries < self.most_tries:
            smaller = self._round(best)
            if smaller is best:
                break
            best = smaller
        return best

    def _round(self, module: ModuleOp) -> ModuleOp:
        """Try all edits, each on the smallest program so far."""
        best = module
        for family in FAMILIES:
            number = 0
            while self.tries < self.most_tries:
                edits = list(family(_program(best)))
                if number >= len(edits):
                    break
                candidate = self._edited(best, edits[number])
                if candidate is None:
                    number += 1
                else:
                    best = candidate
        return best

    def _edited(self, module: ModuleOp, edit: Edit) -> ModuleOp | None:
        """The module after an edit, if it is smaller, valid and interesting."""
        candidate = module.clone()
        program = _program(candidate)
        try:
            edit(program)
            _infer_types(program)
            remove_dead_ops(program)
            if not size(candidate) < size(module):
                return None
            if self.verified:
                candidate.verify()
        except (Inapplicable, IndexExpressionError, VerifyException, DiagnosticException):
            return None
        self.tries += 1
        if not self.interesting(candidate):
            return None
        self.taken += 1
        self.on_smaller(candidate)
        return candidate


def size(module: ModuleOp) -> Size:
    """What is made less: ops that compute, ops, the length of the text, at last its letters (`2` is below `T`)."""
    ops = list(module.walk())
    text = str(module)
    sources = sum(isinstance(op, sdg.SourceOp | sdg.ConstantOp) for op in ops)
    return len(ops) - sources, len(ops), len(text), text


def _program(module: ModuleOp) -> ProgramOp:
    return next(op for op in module.ops if isinstance(op, ProgramOp))


def _infer_types(program: ProgramOp) -> None:
    """Give every op the result types that its operands imply. Raises VerifyException where they do not fit."""
    ops = program_ops(program)
    for _ in range(len(ops) + 1):
        changed = False
        for op in ops:
            for result, expected in zip(op.results, _inferred(op), strict=False):
                if result.type != expected:
                    Rewriter.replace_value_with_new_type(result, expected)
                    changed = True
        if not changed:
            return


def _inferred(op: SdgOp) -> tuple[Attribute, ...]:
    if isinstance(op, sdg.MergeOp):
        (first, *others) = [access.type for access in op.accesses if access.value is not op.result] or [op.result.type]
        agreed = all(other == first for other in others)
        return (first,) if agreed else (op.result.type,)
    if isinstance(op, sdg.ToShapeOp | sdg.ScatterAddOp):
        return ()
    return tuple(op.inferred_types(Extents()) or ())


# ---- edits that remove ----


def _at(number: int, change: Callable[[SdgOp], None]) -> Edit:
    """The edit of op `number` of the program."""
    return lambda program: change(program_ops(program)[number])


def outputs(program: ProgramOp) -> Iterator[Edit]:
    """Leave out half of the outputs, then one."""
    numbers = [n for n, op in enumerate(program_ops(program)) if isinstance(op, sdg.OutputOp)]
    half = len(numbers) // 2
    groups = [numbers[:half], numbers[half:]] if half > 1 else []
    for group in [*groups, *([number] for number in numbers)]:
        if len(group) < len(numbers):
            yield partial(_without, frozenset(group))


def _without(numbers: frozenset[int], program: ProgramOp) -> None:
    erase([op for number, op in enumerate(program_ops(program)) if number in numbers])


def unused_sources(program: ProgramOp) -> Iterator[Edit]:
    """Leave out inputs and parameters that nothing reads."""
    for number, op in enumerate(program_ops(program)):
        if isinstance(op, sdg.SourceOp) and not op.results[0].uses:
            yield partial(_without, frozenset([number]))


def later_ops_first(program: ProgramOp) -> Iterator[Edit]:
    """Replace an op by one of its operands, by an input, or by a constant."""
    for number, op in reversed(list(enumerate(program_ops(program)))):
        if len(op.results) != 1 or isinstance(op.results[0].type, TokenType) or isinstance(op, sdg.SourceOp):
            continue
        for position in range(len(op.accesses)):
            yield _at(number, partial(_by_operand, position))
        if not isinstance(op, sdg.ConstantOp):
            yield _at(number, _by_constant)
            yield _at(number, _by_input)


def _by_operand(position: int, op: SdgOp) -> None:
    if not replace_proved(op, op.accesses[position]):
        raise Inapplicable


def _by_constant(op: SdgOp) -> None:
    type_ = as_tensor(op.results[0].type)
    if any(isinstance(extent, Expr) for extent in shape_of(type_)) or _named_whole(op):
        raise Inapplicable
    constant = sdg.ConstantOp(1, type_)
    _insert(op, constant)
    if not replace_proved(op, Access(constant.result)):
        raise Inapplicable


def _by_input(op: SdgOp) -> None:
    program = op.parent_op()
    assert isinstance(program, ProgramOp)
    type_ = as_tensor(op.results[0].type)
    if any(isinstance(extent, Expr) and free_symbols(extent) & set(op.domain.dims) for extent in shape_of(type_)):
        raise Inapplicable
    keys = {other.key.data for other in program_ops(program) if isinstance(other, sdg.SourceOp)}
    key = fresh_name("in", keys, "")
    source = sdg.InputOp(key, type_, domain=Domain(op.domain.dims))
    _insert(op, source)
    op.results[0].replace_all_uses_with(source.result)
    erase([op])


def _insert(before: SdgOp, op: SdgOp) -> None:
    block = before.parent
    assert block is not None
    assert block.first_op is not None
    block.insert_op_before(op, block.first_op)


def _named_whole(op: SdgOp) -> bool:
    return any(not isinstance(use.operation, AccessOp) for use in op.results[0].uses)


def cases(program: ProgramOp) -> Iterator[Edit]:
    """Leave out a case of a merge, or keep one alone."""
    for number, op in enumerate(program_ops(program)):
        if not isinstance(op, sdg.MergeOp) or len(op.conds) < 2:
            continue
        for case in range(len(op.conds)):
            yield _at(number, partial(_only_case, case))
            yield _at(number, partial(_without_case, case))


def _only_case(case: int, op: SdgOp) -> None:
    assert isinstance(op, sdg.MergeOp)
    op.set_cases([(TRUE, op.accesses[case])])


def _without_case(case: int, op: SdgOp) -> None:
    assert isinstance(op, sdg.MergeOp)
    left = [pair for number, pair in enumerate(zip(op.conds, op.accesses, strict=True)) if number != case]
    op.set_cases([*left[:-1], (TRUE, left[-1][1])] if case == len(left) else left)


# ---- edits that simplify ----


def entries(program: ProgramOp) -> Iterator[Edit]:
    """Read the current point, the first one, or a shorter range, where an index says more."""
    for number, op in enumerate(program_ops(program)):
        for position, access in enumerate(op.accesses):
            for axis, entry in enumerate(access.index):
                producer = access.value.owner
                assert isinstance(producer, SdgOp)
                for simpler in _simpler_entries(entry, producer.domain.dims[axis], program.space):
                    yield _at(number, partial(_with_entry, position, axis, simpler))


def _simpler_entries(entry: Entry, dim: str, space: Space) -> Iterator[Entry]:
    here = Sym(dim)
    if not isinstance(entry, Slice):
        simpler: tuple[Expr, ...] = (here, Const(0), here - 1, here + 1, space.bound(dim) - 1)
        yield from (e for e in simpler if e != entry)
        return
    yield from (here, Const(0))
    stops: tuple[Expr, ...] = (here, here + 1, space.bound(dim), entry.stop)
    for stop in stops:
        yield from (Slice(Const(0), stop), Slice(entry.start, stop))
    yield from (Slice(here, space.bound(dim)), Slice(Const(0), Const(1)))


def _with_entry(position: int, axis: int, entry: Entry, op: SdgOp) -> None:
    assert isinstance(op, AccessOp)
    access = op.accesses[position]
    op.with_access(position, access.value, (*access.index[:axis], entry, *access.index[axis + 1 :]))


def conditions(program: ProgramOp) -> Iterator[Edit]:
    """Parts of conditions alone; `t = 0` instead of a condition."""
    for number, op in enumerate(program_ops(program)):
        if not isinstance(op, sdg.MergeOp):
            continue
        for case, cond in enumerate(op.conds):
            for simpler in _parts(cond):
                yield _at(number, partial(_with_cond, case, simpler))


def _parts(cond: Cond) -> tuple[Cond, ...]:
    match cond:
        case And(parts) | Or(parts):
            return parts
        case _:
            return ()


def _with_cond(case: int, cond: Cond, op: SdgOp) -> None:
    assert isinstance(op, sdg.MergeOp)
    pairs = list(zip(op.conds, op.accesses, strict=True))
    pairs[case] = (cond, pairs[case][1])
    op.set_cases(pairs)


def domains(program: ProgramOp) -> Iterator[Edit]:
    """All points of the dims; else without the condition, or with one range less."""
    for number, op in enumerate(program_ops(program)):
        domain = op.domain
        if domain.ranges or domain.where != TRUE:
            yield _at(number, partial(_with_domain, Domain(domain.dims)))
        if domain.ranges and domain.where != TRUE:
            yield _at(number, partial(_with_domain, Domain(domain.dims, domain.ranges)))
        for left_out in range(len(domain.ranges)):
            ranges = tuple(r for position, r in enumerate(domain.ranges) if position != left_out)
            yield _at(number, partial(_with_domain, Domain(domain.dims, ranges, domain.where)))
        for part in _parts(domain.where):
            yield _at(number, partial(_with_domain, Domain(domain.dims, domain.ranges, part)))


def all_domains(program: ProgramOp) -> Iterator[Edit]:
    """All points everywhere."""

    def widen(program: ProgramOp) -> None:
        for op in program_ops(program):
            op.domain = Domain(op.domain.dims)

    yield widen


def _with_domain(domain: Domain, op: SdgOp) -> None:
    op.domain = domain


def numbers(program: ProgramOp) -> Iterator[Edit]:
    """Constants are 1 or 0, and splats."""
    for position, op in enumerate(program_ops(program)):
        if isinstance(op, sdg.ConstantOp) and op.number not in (0, 1):
            yield from (_at(position, partial(_with_number, number)) for number in (1, 0))
        if isinstance(op, sdg.PadOp):
            yield _at(position, _pad_by_zeros)


def _with_number(number: int, op: SdgOp) -> None:
    assert isinstance(op, sdg.ConstantOp)
    type_ = as_tensor(op.result.type)
    op.properties["value"] = sdg.ConstantOp(number, type_).value


def _pad_by_zeros(op: SdgOp) -> None:
    assert isinstance(op, sdg.PadOp)
    value = op.value
    op.properties["value"] = NumberAttr(False if isinstance(value, bool) else 0.0 if isinstance(value, float) else 0)


# ---- edits of the whole ----


def bounds(program: ProgramOp) -> Iterator[Edit]:
    """A number instead of a bound."""
    for name in program.space.params:
        yield from (partial(_substituted, {name: Const(value)}) for value in (1, 2, 3))


def _substituted(bindings: Mapping[str, Expr], program: ProgramOp) -> None:
    rename = partial(_in_attribute, bindings)
    space = program.space
    dims = tuple((name, substitute(bound, bindings)) for name, bound in space.dims)
    program.space = Space(dims, simplify(substitute(space.where, bindings)))
    for op in program_ops(program):
        for key, value in list(op.properties.items()):
            op.properties[key] = rename(value)
        for result in op.results:
            if not isinstance(result.type, TokenType):
                shape = [_extent(bindings, extent) for extent in shape_of(result.type)]
                type_ = tensor(as_tensor(result.type).element_type, shape)
                if type_ != result.type:
                    Rewriter.replace_value_with_new_type(result, type_)


def _extent(bindings: Mapping[str, Expr], extent: Extent) -> Extent:
    return extent if isinstance(extent, int) else substitute(extent, bindings)


def _in_attribute(bindings: Mapping[str, Expr], attribute: Attribute) -> Attribute:
    match attribute:
        case IndexAttr(data):
            return IndexAttr(substitute(data, bindings))
        case EntryAttr(data):
            return EntryAttr(substitute(data, bindings))
        case CondAttr(data):
            return CondAttr(simplify(substitute(data, bindings)))
        case DomainAttr(data):
            ranges = ((d, substitute(lo, bindings), substitute(hi, bindings)) for d, lo, hi in data.ranges)
            return DomainAttr(Domain(data.dims, tuple(ranges), simplify(substitute(data.where, bindings))))
        case ArrayAttr(items):
            return ArrayAttr([_in_attribute(bindings, item) for item in items])
        case _:
            return attribute


def dims(program: ProgramOp) -> Iterator[Edit]:
    """One dim less: its point 0 alone is left."""
    if len(program.space.dims) > 1:
        yield from (partial(_without_dim, name) for name in program.space.names)


def _without_dim(name: str, program: ProgramOp) -> None:
    for op in program_ops(program):
        for position, access in enumerate(op.accesses):
            producer = access.value.owner
            if not isinstance(producer, SdgOp) or name not in producer.domain.dims:
                continue
            assert isinstance(op, AccessOp)
            axis = producer.domain.dims.index(name)
            if isinstance(access.index[axis], Slice):
                raise Inapplicable
            op.with_access(position, access.value, _dropped(access.index, axis))
    for op in program_ops(program):
        domain = op.domain
        kept = tuple(dim for dim in domain.dims if dim != name)
        op.domain = Domain(kept, tuple(r for r in domain.ranges if r[0] != name), domain.where)
    program.space = Space(tuple(dim for dim in program.space.dims if dim[0] != name), program.space.where)
    _substituted({name: Const(0)}, program)


def _dropped(index: Index, axis: int) -> Index:
    return (*index[:axis], *index[axis + 1 :])


def declarations(program: ProgramOp) -> Iterator[Edit]:
    """Bounds of their own, and no conditions on them."""
    space = program.space
    if program.preconditions is not None:
        yield _unconditional
    if space.where != TRUE:
        yield partial(_declared, Space(space.dims))
        parts = space.where.args if isinstance(space.where, And) else ()
        for left_out in parts:
            rest = conj(*(part for part in parts if part != left_out))
            yield partial(_declared, Space(space.dims, rest))


def _unconditional(program: ProgramOp) -> None:
    del program.properties["preconditions"]


def _declared(space: Space, program: ProgramOp) -> None:
    program.space = space


def element_types(program: ProgramOp) -> Iterator[Edit]:
    """One element type less: f32 for f64 and f16, i64 for the other integers."""
    found = {
        as_tensor(r.type).element_type: None for op in program_ops(program) for r in op.results if _is_tensor(r.type)
    }
    for element in found:
        plain = DTYPES["f32"] if is_float(element) else DTYPES["i64"]
        if element not in (plain, DTYPES["bool"]):
            yield partial(_retyped, element, plain)


def _is_tensor(type_: Attribute) -> bool:
    return not isinstance(type_, TokenType)


def _retyped(old: Attribute, new: Attribute, program: ProgramOp) -> None:
    for op in program_ops(program):
        for result in op.results:
            if _is_tensor(result.type) and as_tensor(result.type).element_type == old:
                Rewriter.replace_value_with_new_type(result, tensor(new, shape_of(result.type)))
        if isinstance(op, sdg.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            raise Inapplicable


def extents(program: ProgramOp) -> Iterator[Edit]:
    """1 or 2 instead of a static extent, wherever it stands."""
    shapes = [shape_of(r.type) for op in program_ops(program) for r in op.results if _is_tensor(r.type)]
    found = dict.fromkeys(e for shape in shapes for e in shape if isinstance(e, int) and e > 1)
    for extent in sorted(found, reverse=True):
        yield from (partial(_resized, extent, smaller) for smaller in (1, 2) if smaller < extent)


def _resized(old: int, new: int, program: ProgramOp) -> None:
    for op in program_ops(program):
        for result in op.results:
            if not _is_tensor(result.type):
                continue
            shape = [new if extent == old else extent for extent in shape_of(result.type)]
            Rewriter.replace_value_with_new_type(result, tensor(as_tensor(result.type).element_type, shape))
        if isinstance(op, sdg.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            raise Inapplicable
        if isinstance(op, sdg.SliceOp):
            op.take_attr = IndexAttr(tuple(_shortened(entry, old, new) for entry in op.take))


def _shortened(entry: Entry, old: int, new: int) -> Entry:
    if isinstance(entry, Slice) and entry.stop == as_expr(old):
        return Slice(entry.start, Const(new), entry.step)
    return entry


def names(program: ProgramOp) -> Iterator[Edit]:
    """Values without the names that their text had."""

    def forget(program: ProgramOp) -> None:
        for op in program.walk():
            for result in op.results:
                result.name_hint = None

    yield forget


FAMILIES: tuple[Callable[[ProgramOp], Iterator[Edit]], ...] = (
    outputs,
    all_domains,
    declarations,
    later_ops_first,
    unused_sources,
    cases,
    dims,
    bounds,
    domains,
    entries,
    conditions,
    numbers,
    element_types,
    extents,
    names,
)
"""Kinds of edits, in the order in which they are tried."""


def has_program(module: ModuleOp) -> bool:
    """Whether there is something here that can be made smaller: one sdg.program."""
    return sum(isinstance(op, ProgramOp) for op in module.ops) == 1


def verifies(module: Operation) -> bool:
    """Whether the verifier accepts an op and all inside."""
    try:
        module.verify()
    except (VerifyException, DiagnosticException):
        return False
    return True


__all__ = ["Inapplicable", "Shrinker", "has_program", "size", "verifies"]
