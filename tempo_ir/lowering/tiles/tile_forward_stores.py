"""tile-forward-stores: what a program of a kernel stored and loads again stays in registers.

Before, a recurrence whose state lies in memory:
```mlir
tile.for %t = %zero to %n step 1 {
  %s = tile.load %state[%row, %zero] block [16, 64] : ...
  %w = tile.load %weight[%zero, %zero] block [64, 64] : ...
  %h = tile.dot %s, %w, %x : ...
  tile.store %h, %state[%row, %zero] block [16, 64] : ...
}
```
After:
```mlir
%runs = tile.lt %zero, %n : (index, index) -> i1
tile.if %runs {
  %w = tile.load %weight[%zero, %zero] block [64, 64] : ...
  %first = tile.load %state[%row, %zero] block [16, 64] : ...
  %last = tile.for %t = %zero to %n step 1 init(%s = %first) : !tile.tile<16x64xf32> {
    %h = tile.dot %s, %w, %x : ...
    tile.store %h, %state[%row, %zero] block [16, 64] : ...
    tile.yield %h : !tile.tile<16x64xf32>
  }
}
```
Short loops in a loop are written out first where values go from one to another. In turn, until nothing changes:

- A load of a place whose tile is known, since it was stored or loaded and nothing wrote there since, is that tile. In
  lanes outside of the view's sizes it is what the load says, by a select, unless there are none.
- A loop carries the tile of a place that each iteration loads and the one before stored: the same place, or that of
  `t - 1`. The first one is known, or loaded before the loop, in a branch if the loop may not run. Where the load stands
  in a branch that the first iteration does not take, the first tile is zeros that nobody uses. After a branch that
  stores, the place holds a select, and what is computed in the branch then is before it; what the last iteration alone
  does not store needs none. What a branch loads and the program loads behind it too is loaded before it.
- What does not vary in a loop and lies where the loop does not write is loaded before it, up to `limit` elements; that
  not every iteration loads too, where all launches pass a buffer that surely has it.
- A loop whose first iteration does nothing begins with the second; a tile that is another one in the first iteration
  alone begins as that one (`first_values.py`). Stores that nobody reads go, with their arguments and buffers; so do
  kernels that write nothing, and dead code.

Places are compared as index expressions; two are apart where their distance is proved to be greater than what they
span. Distinct pointers never lead to the same memory (`tile.kernel`). A kernel's programs run in any order and at the
same time, so that one that reads what another one writes has no meaning: what is loaded is what the program itself
stored or what was there before the launch. A load stays where the places of writes in between are not proved apart,
where it is a gather, or where its block differs from what was stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import cse

from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.tiles.branches import raise_loads, skip_first
from tempo_ir.lowering.tiles.dead_code import remove_dead_buffers, remove_dead_code, remove_idle_kernels
from tempo_ir.lowering.tiles.first_values import begin_with_first_values
from tempo_ir.lowering.tiles.hoisting import hoist_loads
from tempo_ir.lowering.tiles.indices import Indices
from tempo_ir.lowering.tiles.known import Walk
from tempo_ir.lowering.tiles.launches import Launched, launched, launches_of
from tempo_ir.lowering.tiles.places import Places
from tempo_ir.lowering.tiles.rewriting import Rewriting
from tempo_ir.lowering.tiles.unrolling import unroll_short_loops
from tempo_ir.passes.remarks import count
from tempo_ir.passes.utilities import check_counts

LIMIT = 4096
"""Elements of weights that a loop keeps, and of the largest tile that one carries: with more of them the gates of an
LSTM spill (compiled ahead of time)."""
ROUNDS = 8
NOTHING_SAID = Launched()


@dataclass(frozen=True)
class TileForwardStoresPass(ModulePass):
    """Loads of what a program stored become tiles -> state of a loop in registers. A load that is not proved to give
    such a tile stays."""

    name = "tile-forward-stores"
    limit: int = LIMIT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_counts(self)
        kernels = [inner for inner in op.ops if isinstance(inner, KernelOp)]
        launches = launches_of(op)
        for kernel in kernels:
            told = launched(kernel, launches[kernel.sym_name.data])
            count(self, "forwarded", forward_stores(kernel, self.limit, told))
        count(self, "buffers removed", remove_dead_buffers(op))
        count(self, "kernels removed", remove_idle_kernels(op))
        for kernel in [kernel for kernel in kernels if kernel.parent is not None]:
            _begin_with_first_values(kernel, NOTHING_SAID)


def forward_stores(kernel: KernelOp, limit: int = LIMIT, told: Launched = NOTHING_SAID) -> int:
    """Rewrite one kernel, of whose arguments the launches say something; gives how many loads went or moved."""
    total = unroll_short_loops(kernel, 2 * limit)
    for _ in range(ROUNDS):
        changed = skip_first(kernel, _places(kernel, told))
        changed += raise_loads(kernel, Walk(_places(kernel, told), limit))
        walk = Walk(_places(kernel, told), limit)
        walk.block(kernel.body.block, {})
        Rewriting(walk.places, walk.found).apply()
        changed += len(walk.found.loads) + hoist_loads(kernel, _places(kernel, told), limit)
        remove_dead_code(kernel)
        total += changed
        if not changed:
            break
        cse(kernel)
    return total + _begin_with_first_values(kernel, told)


def _begin_with_first_values(kernel: KernelOp, told: Launched) -> int:
    changed = begin_with_first_values(kernel, _places(kernel, told))
    if changed:
        remove_dead_code(kernel)
    return changed


def _places(kernel: KernelOp, told: Launched) -> Places:
    return Places(Indices(kernel, told.given), told.room)
