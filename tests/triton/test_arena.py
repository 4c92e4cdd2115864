"""The memory of a driver's calls: one piece, in which nothing lies over what is needed at the same time."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from tempo_ir.lowering.triton.package_support import ALIGNMENT, Arena, Buffer, Memory, arena_bytes, offsets

CPU = torch.device("cpu")


def drawn(seed: int) -> dict[str, Buffer]:
    """Buffers of random extents, needed at random places."""
    draw = random.Random(seed)
    found: dict[str, Buffer] = {}
    for number in range(12):
        first = draw.randrange(20)
        shape = tuple(draw.randrange(5) for _ in range(draw.randrange(4)))
        dtype = draw.choice([torch.float32, torch.bool, torch.int64, torch.bfloat16])
        found[f"b{number}"] = Buffer(shape, dtype, first, first + draw.randrange(8))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_is_needed_at_once_lies_apart(seed):
    buffers = drawn(seed)
    places, size = offsets(buffers)
    for name, buffer in buffers.items():
        assert places[name] % ALIGNMENT == 0
        assert places[name] + buffer.bytes <= size
    for one, other in itertools.combinations(buffers, 2):
        if buffers[one].meets(buffers[other]):
            ends = [(places[name], places[name] + buffers[name].bytes) for name in (one, other)]
            assert ends[0][1] <= ends[1][0] or ends[1][1] <= ends[0][0], (one, other)
    together = [sum(b.bytes for b in buffers.values() if b.first <= place <= b.last) for place in range(30)]
    assert max(together) <= size <= sum(b.bytes for b in buffers.values())


def test_buffers_of_different_times_share_their_bytes():
    first, second = Buffer((64,), torch.float32, 0, 3), Buffer((8, 16), torch.int64, 4, 9)
    assert arena_bytes({"first": first, "second": second}) == 1024
    assert arena_bytes({"first": first, "second": Buffer((8, 16), torch.int64, 3, 9)}) == 1280


def test_tensors_have_their_shapes_and_types():
    buffers = drawn(3)
    memory = Memory(buffers, CPU)
    assert len(memory.tensors) == len(buffers)
    for tensor, buffer in zip(memory.tensors, buffers.values(), strict=True):
        assert (tuple(tensor.shape), tensor.dtype) == (buffer.shape, buffer.dtype)
    pieces = {tensor.untyped_storage().data_ptr() for tensor in memory.tensors}
    assert len(pieces) == 1


def test_a_call_takes_what_the_one_before_has_given_back():
    arena, buffers = Arena(), drawn(4)
    memory = arena.take(buffers, CPU)
    assert arena.take(buffers, CPU) is not memory  # while it is in use
    arena.give(memory)
    assert arena.take(drawn(4), CPU) is memory
    arena.give(memory)
    assert arena.take(drawn(5), CPU).buffers == drawn(5)  # other bounds
