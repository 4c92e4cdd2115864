"""Reading a value whose dim became an axis: what was an index entry becomes a slice of the axis."""

from __future__ import annotations

from tempo_ir.dialects.sdg import Access, TransposeOp
from tempo_ir.dialects.types import shape_of
from tempo_ir.index import Const, Entry, Index, Slice
from tempo_ir.passes.building import GraphBuilder, full
from tempo_ir.passes.utilities import is_slice
from tempo_ir.passes.vectorize.batching import Batch, on_axis


def view(build: GraphBuilder, batched: Access, dims: tuple[str, ...], batch: Batch, index: Index) -> Access:
    """What `%x[index]` read when `%x` was over `dims`, now that its dim of the batch is axis 0 of `batched`.

    Before: `%x[i, t - 1]`; after: `sdg.slice %x[i] take [t - 1, ...]`. A range of all points is the axis itself, moved
    to where the range put it.
    """
    position = dims.index(batch.dim)
    entry, others = index[position], (*index[:position], *index[position + 1 :])
    read = Access(batched.value, others)
    axis = sum(map(is_slice, others))
    taken = on_axis(entry, batch)
    if not isinstance(taken, Slice):
        return _taken(build, read, axis, taken)
    if not _is_whole(build, taken, batch):
        read = _taken(build, read, axis, taken)
    return _moved(build, read, axis, sum(map(is_slice, index[:position])))


def _is_whole(build: GraphBuilder, taken: Slice, batch: Batch) -> bool:
    """Whether a range is the axis: `0:T - 1` of `max(0, T - 1)` rows."""
    return taken.start == Const(0) and taken.step == 1 and build.is_equal(taken.extent, batch.count)


def _taken(build: GraphBuilder, read: Access, axis: int, entry: Entry) -> Access:
    """One entry taken of an axis, all of the others."""
    take: list[Entry] = [full(extent) for extent in shape_of(read.tensor)]
    take[axis] = entry
    return build.slice(read, tuple(take))


def _moved(build: GraphBuilder, read: Access, axis: int, wanted: int) -> Access:
    """An axis moved to the front, to where it is wanted."""
    if axis == wanted:
        return read
    permutation = [number for number in range(read.tensor.get_num_dims()) if number != axis]
    permutation.insert(wanted, axis)
    return build.build(TransposeOp, read, permutation=permutation)
