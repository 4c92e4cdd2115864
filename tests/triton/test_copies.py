"""Rows that lie with the host meanwhile: copies on a stream of their own, in an order that the loops ask for.

The device that records says what is asked of which stream. What each launch and each copy reads and writes is taken
from the loop program before its kernels are lowered, element by element: all that touches one must have an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tempo_ir as tp
from tempo_ir.dialects import loop
from tempo_ir.dialects.loop.transfers import is_copied
from tempo_ir.index import Slice, evaluate
from tempo_ir.lowering.kernels.layout import Layout, array_of, element_bytes
from tempo_ir.lowering.kernels.loop_lower_kernels import lower_kernels
from tempo_ir.lowering.triton.package import write_package
from tempo_ir.runtime.compiler import lower
from tests.storage.test_swaps import AGAIN, BACK, SEVERAL, text_of
from tests.triton.launch_recorder import STREAM
from tests.triton.races import Order
from tests.triton.test_driver import record
from tests.triton.test_programs import parsed

PROGRAMS = {"back": (BACK, "h 2"), "again": (AGAIN, "h 1"), "several": (SEVERAL, "h 2", "b 1")}
BOUNDS = {"back": {"I": 2, "T": 7}, "again": {"T": 7}, "several": {"T": 6}}


@dataclass
class Walk:
    """The work of a loop program in order: what each operation reads and writes, as addresses of elements."""

    program: loop.ProgramOp
    values: dict[str, int]
    addresses: dict[object, int]

    def work(self, block) -> Iterator[tuple[str, list[int], list[int]]]:
        for op in block.ops:
            match op:
                case loop.ForOp():
                    steps = range(evaluate(op.lower, self.values), evaluate(op.upper, self.values), op.step)
                    for step in reversed(steps) if op.down else steps:
                        self.values[op.iterator] = step
                        yield from self.work(op.body.block)
                case loop.IfOp():
                    region = op.then if evaluate(op.condition, self.values) else op.otherwise
                    if region is not None:
                        yield from self.work(region.block)
                case loop.AccessOperation():
                    reads, writes = map(self.all_touched, (op.reads, op.writes))
                    yield f"{op.name} at {self.values}", reads, writes
                case _:
                    pass

    def all_touched(self, accesses: Iterable[loop.BufferAccess]) -> list[int]:
        """The addresses of the elements of all accesses."""
        return [address for access in accesses for address in self.touched(access)]

    def touched(self, access: loop.BufferAccess) -> list[int]:
        """The addresses of the elements of some rows."""
        layout = Layout.of(access.buffer.type, self.program.space)
        array = array_of(access, layout)
        shape = [extent if isinstance(extent, int) else evaluate(extent, self.values) for extent in self.shape(access)]
        width, first = element_bytes(layout.element), evaluate(array.offset, self.values)
        found: list[int] = []
        for place in product(*map(range, shape)):
            element = first
            for position, axis in zip(place, array.axes, strict=True):
                assert axis.wrap is None
                element += position * evaluate(axis.stride, self.values)
            found.append(self.addresses[access.buffer] + width * element)
        return found

    def shape(self, access: loop.BufferAccess) -> list:
        """The extents of what is accessed."""
        ranges = [entry.extent for entry in access.index if isinstance(entry, Slice)]
        return [*ranges, *Layout.of(access.buffer.type, self.program.space).room]


def lowered_both_ways(name: str) -> tuple[ModuleOp, ModuleOp]:
    """A program as loops with leaves, and with a launch for each of these."""
    module = lower(parsed(text_of(*PROGRAMS[name])), "sm_90").loop
    assert module is not None
    lowered = module.clone()
    lower_kernels(lowered, "sm_90", join=False)
    return module, lowered


def order_of(name: str, package: Path) -> Order:
    """What a recorded call of a program does, stream by stream."""
    module, lowered = lowered_both_ways(name)
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    bounds = BOUNDS[name]
    shape = [*([bounds["I"]] if "I" in bounds else []), bounds["T"], 3]
    if not package.exists():
        write_package(lowered, package)
    found = record(package, program.sym_name.data, {"x": shape}, {**bounds, "streams": True})
    addresses: dict[object, int] = {}
    for op in (op for op in program.operations() if isinstance(op, loop.NamedBufferOperation)):
        given = found["outputs" if isinstance(op, loop.OutputOp) else "arrays"]
        addresses[op.buffer] = given[op.key.data]
    allocs = [op.buffer for op in program.operations() if isinstance(op, loop.AllocOp)]
    places = {key: place for key, place in found["memory"].items() if key != "scalars"}
    addresses |= dict(zip(allocs, places.values(), strict=True))
    for buffer in allocs:
        inside = any(start <= addresses[buffer] < start + size for start, size in found["pinned"])
        assert inside == loop.is_host(buffer)  # rows of the host lie in pinned memory, and no others
    return followed(found["events"], Walk(program, dict(bounds), addresses))


def followed(events: list, walk: Walk) -> Order:
    """The events of streams, with what the loops say that launches and copies touch."""
    order, work = Order(), walk.work(walk.program.body.block)
    for event in events:
        match event:
            case ["record", number, stream]:
                order.record(number, stream)
            case ["wait", number, stream]:
                order.wait(number, stream)
            case ["launch", kernel, _, _, stream, *_] if not kernel.startswith(("next_", "first_")):
                what, reads, writes = next(work)
                assert not what.startswith(("loop.offload", "loop.fetch"))
                order.access(stream, what, reads, writes)
            case ["copy", source, target, _, stream]:
                what, reads, writes = next(work)
                assert what.startswith(("loop.offload", "loop.fetch"))
                assert (min(reads), min(writes)) == (source, target)
                assert stream != STREAM
                order.access(stream, what, reads, writes)
            case _:
                pass
    assert next(work, None) is None
    return order


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_that_touches_a_row_has_an_order(name, tmp_path):
    order = order_of(name, tmp_path / name)
    assert not order.races, order.races[:3]
    assert order.is_done(STREAM)
    assert len(order.clocks) == 2


WAITS = "        self.stream.wait_stream(torch.cuda.current_stream(self.device))\n"
FAULTS = {
    "a row is overwritten before it is copied": ("driver.py", "copies.wait(h, 0)\n            add", "add"),
    "a row is read before it is back": ("driver.py", "            copies.wait(h_back, 3 * (t % 4))\n", ""),
    "memory passes on before it is copied": ("driver.py", "        copies.wait(h)\n", ""),
    "a copy begins before the row is written": ("support.py", WAITS, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_event_that_is_left_out_is_a_race(fault, tmp_path):
    package = tmp_path / "back"
    write_package(lowered_both_ways("back")[1], package)
    file, old, new = FAULTS[fault]
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new))
    assert order_of("back", package).races


def test_a_call_that_does_not_wait_for_its_copies_is_seen(tmp_path):
    package = tmp_path / "again"
    write_package(lowered_both_ways("again")[1], package)
    support = package / "support.py"
    text = support.read_text()
    for wait in (".wait_event(rows.pop(known))", ".wait_stream(self.stream)"):
        assert f"torch.cuda.current_stream(self.device){wait}" in text
        text = text.replace(f"torch.cuda.current_stream(self.device){wait}", "pass")
    support.write_text(text)
    order = order_of("again", package)
    assert order.races
    assert not order.is_done(STREAM)


def test_launches_keep_the_rows_that_they_touch():
    module = lower(parsed(text_of(*PROGRAMS["several"])), "sm_90").lowered
    assert module is not None
    copied = [op for op in module.walk() if isinstance(op, loop.LaunchOp) and any(map(is_copied, op.buffers))]
    assert copied
    for launch in copied:  # joined with others or not
        assert {buffer for buffer, _, _ in launch.touched or ()} == {*filter(is_copied, launch.buffers)}
    first = next(launch for launch in copied if len(launch.buffers) > 1 and launch.touched)
    known = list(first.touched or ())
    gone = first.buffers[0]
    first.remove_buffer(0)
    assert list(first.touched or ()) == [row for row in known if row[0] is not gone]


def test_copies_in_the_interpreter_give_the_same_numbers():
    from tempo_ir.lowering.triton.interpreter import run_interpreted

    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    module = lower(parsed(text_of(BACK, "h 2")), "triton-interpret").lowered
    assert module is not None
    got = run_interpreted(module, {"x": x}, {"I": 2, "T": 5})
    expected = tp.compile(parsed(text_of(BACK)), "reference")(x=x)
    np.testing.assert_allclose(got["b"], expected["b"], rtol=1e-5)
