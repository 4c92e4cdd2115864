"""loop-join-siblings: random sequences of launches leave in memory what they left before."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, f32
from xdsl.parser import Parser

from tempo_ir.dialects import loop
from tempo_ir.dialects.loop import Loop
from tempo_ir.dialects.tile import Tile
from tempo_ir.dialects.tile.attributes import DYNAMIC, INDEX
from tempo_ir.dialects.tile.builder import KernelBuilder
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import evaluate
from tempo_ir.lowering.kernels.loop_join_siblings import LoopJoinSiblingsPass
from tempo_ir.reference.tile import run_kernel
from tempo_ir.runtime.compiler import lower, module_of
from tempo_ir.tools import programs
from tests.tile.programs import F32, Array

ROWS, COLUMNS = 6, 8


def scale() -> KernelOp:
    """Rows times two, each by a program, as many as the launch says."""
    k = KernelBuilder("scale", {"x": F32, "y": F32, "n": INDEX}, grid=[None])
    x, y = (k.view(k[name], [k["n"], COLUMNS]) for name in "xy")
    at = k.program_id(0), (0, COLUMNS)
    k.store(k.load(x, *at) * 2.0 + 1.0, y, *at)
    return k.finish()


def blocks() -> KernelOp:
    """Blocks of a table of two axes, each halved by a program of a grid of two axes, one of which is open."""
    k = KernelBuilder("blocks", {"x": F32, "y": F32}, grid=[None, 2])
    x, y = (k.view(k[name], [ROWS, COLUMNS]) for name in "xy")
    at = k.program_id(0), (k.program_id(1) * 4, 4)
    k.store(k.load(x, *at) * 0.5, y, *at)
    return k.finish()


def sums() -> KernelOp:
    """The sum of all rows, in every row."""
    k = KernelBuilder("sums_2", {"x": F32, "y": F32, "n": INDEX}, grid=[])
    x, y = (k.view(k[name], [ROWS, COLUMNS]) for name in "xy")
    with k.loop(0, k["n"], 1, [k.const(0.0, f32, [COLUMNS])]) as rows:
        rows.carry(rows.carried[0] + k.load(x, rows.index, (0, COLUMNS)))
    with k.loop(0, ROWS) as rows_of_y:
        k.store(rows.results[0] * 0.1, y, rows_of_y.index, (0, COLUMNS))
    return k.finish()


def update() -> KernelOp:
    """One buffer in place, by three programs, with a step that the launch passes."""
    k = KernelBuilder("update", {"w": F32, "g": F32, "step": INDEX}, grid=[3])
    w, g = (k.view(k[name], [ROWS, COLUMNS]) for name in "wg")
    at = (k.program_id(0) * 2, 2), (0, COLUMNS)
    k.store(k.load(w, *at) - k.load(g, *at) * 0.1 * k["step"].to(f32), w, *at)
    return k.finish()


MEMBERS = {"scale": scale, "blocks": blocks, "sums_2": sums, "update": update}
SCALARS = {
    "scale": ["T, T", "T, T - 1", f"T, {ROWS - 1}"],
    "blocks": ["T", "4"],
    "sums_2": ["T", "2"],
    "update": ["T + 1", "3"],
}
"""What launches pass: the scalars of the kernel, then the open extents of its grid."""
BUFFERS = "abcde"
STEPS = 5
EXAMPLES = Path(__file__).parents[2] / "examples"


def program(seed: int) -> ModuleOp:
    """Launches on five buffers, some of them in a guard."""
    rng = random.Random(seed)

    def launch() -> str:
        name = rng.choice(list(MEMBERS))
        buffers = ", ".join(f"%{buffer}" for buffer in rng.sample(BUFFERS, 2))
        return f"loop.launch @{name}({buffers})[{rng.choice(SCALARS[name])}]"

    declared = [f'%{name} = loop.input "{name}" : !loop.buffer<{ROWS}x{COLUMNS}xf32>' for name in BUFFERS]
    first, guarded, last = ([launch() for _ in range(number)] for number in (4, 5, 4))
    body = "\n".join([*declared, *first, "loop.if T >= 1 {", *guarded, "}", *last])
    module = Parser(context(), f"loop.program @program dims(t: T) {{\n{body}\n}}").parse_module()
    module.body.block.add_ops([make() for make in MEMBERS.values()])
    return module


def context() -> Context:
    found = Context()
    for dialect in (Builtin, Loop, Tile):
        found.load_dialect(dialect)
    return found


def run(module: ModuleOp, arrays: dict[str, Array]) -> int:
    """Run the launches of a program one after the other; gives how many there were."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    launches = [op for op in module.walk() if isinstance(op, loop.LaunchOp)]
    for launch in launches:
        kernel = kernels[launch.kernel.root_reference.data]
        scalars = [evaluate(scalar, {"T": STEPS}) for scalar in launch.scalars]
        own = len(kernel.body.block.args) - len(launch.buffers)
        open_axes = iter(scalars[own:])
        grid = [next(open_axes) if extent == DYNAMIC else extent for extent in kernel.grid.data]
        buffers = [arrays[buffer.name_hint or ""] for buffer in launch.buffers]
        run_kernel(kernel, [*buffers, *scalars[:own]], grid)
    return len(launches)


@pytest.mark.parametrize("seed", range(20))
def test_random_launches(seed):
    before = program(seed)
    after = before.clone()
    LoopJoinSiblingsPass("sm_90").apply(context(), after)
    after.verify()
    rng = np.random.default_rng(seed)
    given = {name: rng.standard_normal((ROWS, COLUMNS)).astype(np.float32) for name in BUFFERS}
    results = [{name: array.copy() for name, array in given.items()} for _ in range(2)]
    launched = [run(module, arrays) for module, arrays in zip((before, after), results, strict=True)]
    assert launched[1] <= launched[0]
    for name in BUFFERS:
        np.testing.assert_array_equal(results[0][name], results[1][name], name)


def test_updates_of_parameters_are_few_launches():
    """Of REINFORCE with Adam: the copies before the loop are one; of the eight updates at the end of an iteration some
    run with a gradient that the others need, and one has programs of more warps."""
    loaded, _ = programs.load_python(EXAMPLES / "reinforce.py", None, {})
    module = lower(module_of(loaded.source), "sm_90").lowered
    assert module is not None
    launches = [op for op in module.walk() if isinstance(op, loop.LaunchOp)]
    names = {id(op): [buffer.name_hint or "" for buffer in op.buffers] for op in launches}
    copies = [op for op in launches if any(name.endswith("_first") for name in names[id(op)])]
    updates = [op for op in launches if any(name.startswith("adam_m") for name in names[id(op)]) and op not in copies]
    assert (len(copies), len(updates)) == (1, 3)
    assert sum(name.startswith("adam_m") for op in updates for name in names[id(op)]) == 8


def test_an_output_that_takes_the_memory_of_a_parameter_is_that_parameter():
    """The second launch writes what the first one reads, if the caller donated it."""
    text = """
    loop.program @donated dims() {
      %w = loop.parameter "w" : !loop.buffer<6x8xf32>
      %x = loop.input "x" : !loop.buffer<6x8xf32>
      %y = loop.output "y" : !loop.buffer<6x8xf32>
      %w_last = loop.output "w" {donates} : !loop.buffer<6x8xf32>
      loop.launch @sums_2(%w, %y)[6]
      loop.launch @sums_2(%x, %w_last)[6]
    }"""
    module = Parser(context(), text).parse_module()
    module.body.block.add_op(sums())
    LoopJoinSiblingsPass("sm_90").apply(context(), module)
    assert sum(isinstance(op, loop.LaunchOp) for op in module.walk()) == 2
