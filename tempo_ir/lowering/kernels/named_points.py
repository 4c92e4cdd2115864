"""Points of dims that a pass has put into blocks, named as the user names them: in what the runtime says of a point.

```mlir
loop.program @p dims(t: T, b: (T + 9) floordiv 10, j: 10) attributes {blocks = {t = #sdg.index<[10 * b + j]>}} {
  loop.host @env::@step at (b = b, j = j) ...        ->        loop.host @env::@step at (t = 10 * b + j) ...
```

Before, a leaf says at which point of its op it runs, which is what its place in the program is proved by; a program
whose kernels are launched is asked for points only by errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr

from tempo_ir.dialects.loop import CheckOp, HostOp, PointAttr, ProgramOp
from tempo_ir.dialects.sdg.attributes import BLOCKS, IndexAttr
from tempo_ir.index import Expr, Slice, free_symbols, substitute

Point = tuple[tuple[str, Expr], ...]


def name_points(program: ProgramOp) -> None:
    """Let host calls and checks of a program name the dims that are in blocks."""
    blocks = program.attributes.get(BLOCKS)
    if not isinstance(blocks, DictionaryAttr):
        return
    dims: dict[str, Expr] = {}
    for name, index in blocks.data.items():
        assert isinstance(index, IndexAttr)
        (entry,) = index.data
        assert not isinstance(entry, Slice)
        dims[name] = entry
    for op in program.walk():
        if isinstance(op, HostOp | CheckOp):
            op.point_attr = PointAttr(named(op.point, dims))


def named(point: Point, dims: Mapping[str, Expr]) -> Point:
    """A point with the dims that are in blocks in the place of the first of theirs."""
    for name, entry in dims.items():
        parts = free_symbols(entry) & dict(point).keys()
        if parts and parts == free_symbols(entry):
            first = next(n for n, (part, _) in enumerate(point) if part in parts)
            whole = name, substitute(entry, dict(point))
            left = [each for each in point if each[0] not in parts]
            point = (*left[:first], whole, *left[first:])
    return point
