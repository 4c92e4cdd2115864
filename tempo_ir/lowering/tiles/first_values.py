"""Tiles that are another one in the first iteration of a loop: one tile that begins as that one."""

from __future__ import annotations

from xdsl.ir import BlockArgument, SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import structure
from tempo_ir.index import compare, conj, negate
from tempo_ir.lowering.tiles.indices import is_within
from tempo_ir.lowering.tiles.places import Places


def begin_with_first_values(kernel: structure.KernelOp, places: Places) -> int:
    """Let loops carry what begins as the value of the first iteration; gives how many choices between them went.

    Before: `for t = 0 to T init(%a = %zeros, %b = %s) { %c = select t != 0, %a, %b ... yield %h, %c }`, after:
    `for t = 0 to T init(%a = %s) { ... yield %h }`, if nothing else reads `%a`, after the loop neither.
    """
    loops = [op for op in kernel.walk() if isinstance(op, structure.ForOp) and op.carried]
    choices = [(loop, op) for loop in loops for op in loop.body.block.ops if isinstance(op, ew.SelectOp)]
    return sum(_begin(loop, choice, places) for loop, choice in choices)


def _begin(loop: structure.ForOp, choice: ew.SelectOp, places: Places) -> bool:
    first, later = _sides(loop, choice, places)
    if first is None or later is None or first.type != later.type or not isinstance(later, BlockArgument):
        return False
    number = later.index - 1
    if later.owner is not loop.body.block or number < 0 or len(list(later.uses)) != 1:
        return False
    if loop.carried[number].first_use is not None and not places.indices.trips(loop):
        return False
    begin = _before(first, loop)
    if begin is None:
        return False
    loop.operands = [*loop.operands[:2], *(begin if n == number else value for n, value in enumerate(loop.init))]
    choice.result.replace_all_uses_with(later)
    choice.detach()
    choice.erase()
    return True


def _sides(loop: structure.ForOp, op: ew.SelectOp, places: Places) -> tuple[SSAValue | None, SSAValue | None]:
    """What a choice gives in the first iteration, and in all others; nothing where that is not proved."""
    indices = places.indices
    condition = indices.condition(op.condition)
    if condition is None:
        return None, None
    counter, low = indices.counter(loop), indices.of(loop.low)
    following = compare(">=", counter, low + loop.step_size)
    match indices.decide_at(condition, counter, low):
        case False if places.cannot_hold(conj(following, negate(condition))):
            return op.rhs, op.lhs
        case True if places.cannot_hold(conj(following, condition)):
            return op.lhs, op.rhs
        case _:
            return None, None


def _before(value: SSAValue, loop: structure.ForOp) -> SSAValue | None:
    """A value in the first iteration, as it is known before the loop."""
    block = loop.body.block
    if isinstance(value, BlockArgument) and value.owner is block:
        return loop.init[value.index - 1] if value.index else None
    return None if is_within(value, block) else value
