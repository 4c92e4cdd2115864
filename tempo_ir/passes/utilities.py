"""What every pass over a cyclic graph needs and xDSL's generic helpers get wrong there.

- `replace_with_access`: replacing a value composes index maps at its uses; a bare replacement would drop them.
- `run_patterns`: a pattern that moves something round a cycle never ends; here it does, at the budget, with an error.
- `erase`: ops that use each other can only be erased together.
- `structural_key`: two regions with forward references are compared by number, not by order of definition.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import NoReturn

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import (
    Access,
    AccessOp,
    MergeOp,
    ProgramOp,
    RequestOp,
    SdgOp,
    op_text,
    requests_about,
)
from tempo_ir.index import Entry, Index, Slice, Sym, compose
from tempo_ir.passes.remarks import remark

MOST = 2**62
"""What an option that counts something is below."""

REWRITES_PER_OP = 50
"""How often, on average, an op may be rewritten before `run_patterns` takes the patterns to go round a cycle."""


def programs(module: ModuleOp) -> Iterator[ProgramOp]:
    """The sdg programs of a module, in order."""
    return (op for op in module.ops if isinstance(op, ProgramOp))


def check_counts(given: ModulePass, **least: int) -> None:
    """Raise PassFailedException where an option of a pass that is a number is none of a count: all of them count
    things, from 0 on or from what is said here."""
    for option in fields(given):
        value, first = getattr(given, option.name), least.get(option.name, 0)
        if isinstance(value, int) and not first <= value < MOST:
            name = option.name.replace("_", "-")
            raise PassFailedException(f"{given.name}: {name} is a count of {first} to 2**62, got {name}={value}")


def dims_to_try(name: str, program: ProgramOp, dims: Sequence[str]) -> list[str]:
    """The dims of a program that a pass was given, or all where it was given none, in declared order.

    Raises PassFailedException for a name that is no dim.
    """
    names = program.space.names
    if unknown := [dim for dim in dims if dim not in names]:
        refuse(
            program,
            f"{name}: @{program.sym_name.data} has no dim `{unknown[0]}`; it declares {', '.join(names) or 'none'}",
        )
    return [dim for dim in names if not dims or dim in dims]


def identity(op: SdgOp) -> Index:
    """The index that reads a value of `op` at the current point: `[i, t]` over (i, t)."""
    return tuple(Sym(dim) for dim in op.domain.dims)


def current(op: SdgOp, number: int = 0) -> Access:
    """The read of a result of `op` at the current point of its own domain."""
    return Access(op.results[number], identity(op))


def replace_with_access(op: SdgOp, access: Access, rewriter: PatternRewriter | None = None) -> bool:
    """Replace the one result of `op` by a read `%value[index]`, given over the dims of `op`, and erase `op`.

    Before: `%a = sdg.add %x[t - 1], %zero in (t: 1 to T)` and a use `%a[t + 3]`; after: the use is `%x[t + 2]`.

    Every use composes its index with the new one. Nothing changes, and the answer is False, where a use cannot be
    composed (a slice through `t floordiv 2`), where the types differ, where `op` reads its own result, where a use
    names the whole value (`sdg.grad`), or where the read is not known to be inside the domain of its source: it is
    known when `op` itself, not being a merge, makes it at every point. `rewriter` is that of the running pattern.
    """
    if access not in op.accesses or isinstance(op, MergeOp):
        return False
    return replace_proved(op, access, rewriter)


def replace_proved(op: SdgOp, access: Access, rewriter: PatternRewriter | None = None) -> bool:
    """`replace_with_access` where the caller knows that the read stays inside the domain of its source."""
    result = op.results[0]
    if access.value is result or access.type != result.type or not is_readable(op, access.index):
        return False
    for request in requests_about(op):
        remark(request, f"{op_text(op)} is replaced by what it reads, and nothing is asked of that")
        erase([request]) if rewriter is None else rewriter.erase(request)
    users = dict.fromkeys(use.operation for use in result.uses)
    for use in list(result.uses):
        user = use.operation
        if isinstance(user, AccessOp):
            index = compose(access.index, op.domain.dims, user.accesses[use.index].index)
            assert index is not None
            user.with_access(use.index, access.value, index)
    if access.value.name_hint is None:
        access.value.name_hint = result.name_hint
    if rewriter is None:
        erase([op])
        return True
    for user in users:
        rewriter.notify_op_modified(user)
    rewriter.erase(op)
    return True


def is_readable(op: SdgOp, index: Index) -> bool:
    """Whether every use of the result of `op`, none of them its own, can read through an index over its dims."""
    for use in op.results[0].uses:
        user = use.operation
        if isinstance(user, RequestOp):
            continue
        if user is op or not isinstance(user, AccessOp):
            return False
        if compose(index, op.domain.dims, user.accesses[use.index].index) is None:
            return False
    return True


def refuse(op: Operation, message: str) -> NoReturn:
    """Raise PassFailedException about an op, whose place in the user's program the driver then shows."""
    error = PassFailedException(message)
    error.op = op  # pyright: ignore[reportAttributeAccessIssue]
    raise error


def erase(ops: Iterable[Operation]) -> None:
    """Erase ops that may use each other, with the requests about their memory; nothing else may still use their
    results."""
    ops = list(ops)
    asked = [request for op in ops if isinstance(op, SdgOp) for request in requests_about(op)]
    doomed = list(dict.fromkeys([*asked, *ops]))
    for op in doomed:
        op.detach()
    for op in doomed:
        op.drop_all_references()
    for op in doomed:
        op.erase(drop_references=False)


@dataclass
class _Budgeted(RewritePattern):
    """Applies `inner`; new ops take the location of the op that was matched; the budget ends endless rewriting."""

    inner: RewritePattern
    left: int
    location: LocationAttr = field(default=UNKNOWN_LOC)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        self.location = op.location
        name = "" if self.left else op_text(op)  # which the last rewrite may erase
        self.inner.match_and_rewrite(op, rewriter)
        if not rewriter.has_done_action:
            return
        self.left -= 1
        if self.left < 0:
            raise PassFailedException(
                f"the rewrite budget is used up at {name}: a pattern undoes another, or moves something round a cycle "
                "for ever"
            )

    def keep_location(self, op: Operation) -> None:
        if op.location == UNKNOWN_LOC:
            op.location = self.location


def run_patterns(region: Region, *patterns: RewritePattern, budget: int | None = None) -> bool:
    """Apply the patterns until none applies; whether anything changed.

    New ops get the location of the op that was matched. Raises PassFailedException, naming the op, after `budget`
    rewrites (by default REWRITES_PER_OP for each op of the region, and for a hundred more).
    """
    if budget is None:
        budget = REWRITES_PER_OP * (100 + sum(1 for _ in region.walk()))
    budgeted = _Budgeted(GreedyRewritePatternApplier(list(patterns), dce_enabled=False), budget)
    listener = PatternRewriterListener(operation_insertion_handler=[budgeted.keep_location])
    return PatternRewriteWalker(budgeted, listener=listener).rewrite_region(region)


def structural_key(region: Region) -> Hashable:
    """Equal for two regions with the same ops in the same order, whatever the names of their values.

    Operands count by the number of what they name, forward references included (xDSL's `is_structurally_equivalent` is
    false as soon as there is one). A value from outside counts as itself.
    """
    numbers: dict[SSAValue, int] = {}
    for op in region.walk():
        for value in (*op.results, *(arg for inner in op.regions for block in inner.blocks for arg in block.args)):
            numbers[value] = len(numbers)
    for block in region.blocks:
        for arg in block.args:
            numbers[arg] = len(numbers)
    return _region_key(region, numbers)


def _region_key(region: Region, numbers: dict[SSAValue, int]) -> Hashable:
    return tuple(
        (
            tuple(arg.type for arg in block.args),
            tuple(_op_key(op, numbers) for op in block.ops),
        )
        for block in region.blocks
    )


def _op_key(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    operands = tuple(numbers.get(operand, operand) for operand in op.operands)
    inner = tuple(_region_key(region, numbers) for region in op.regions)
    return (op.name, own_key(op), operands, inner)


def own_key(op: Operation) -> Hashable:
    """What an op says apart from its operands and regions: properties, attributes, result types."""
    return (
        op.name,
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()),
        tuple(result.type for result in op.results),
    )


def equivalent(first: Region, second: Region) -> bool:
    """Whether two regions are equal in the sense of `structural_key`."""
    return structural_key(first) == structural_key(second)


def point_entries(index: Index) -> bool:
    """Whether an index adds no axis."""
    return not any(is_slice(entry) for entry in index)


def is_slice(entry: Entry) -> bool:
    """Whether an entry adds an axis."""
    return isinstance(entry, Slice)
