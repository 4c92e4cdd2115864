"""Prints a hash of everything that the compiler makes of some programs: run under several values of PYTHONHASHSEED."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tempo_ir as tp
from examples.reinforce import reinforce
from examples.rnn import rnn
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.passes import get_all_passes
from tempo_ir.passes.pipeline import DEFAULT_PIPELINE
from tempo_ir.runtime.compiler import run_passes
from tempo_ir.tools.programs import LoadedProgram, load_text

WINDOW = Path(__file__).parents[2] / "examples" / "ir" / "window_attention.mlir"


class Cart:
    """An environment that gymnasium need not be installed for."""

    def reset(self, seed: Any) -> Any:
        return np.full((2, 4), 0.1 * int(seed), np.float32)

    def step(self, action: Any) -> Any:
        moved = np.asarray(action, np.float64)
        ended = moved > 5
        return np.tile(moved[:, None], (1, 4)).astype(np.float32), 1.0 + moved, ended, ended


class Monitor:
    """Keeps nothing."""

    def show(self, *values: Any) -> None:
        return None


HOSTS = {"cart": Cart, "monitor": Monitor}


@tp.program
def cases():
    t, T = tp.dim("t")
    a = tp.input("a", tp.f32[3], over=t)
    x, y = tp.tensor("x", tp.f32[3], over=t), tp.tensor("y", tp.f32[3], over=t)
    y[T - 1] = a
    y[...] = y[t + 1] * 0.5 + a
    x[t % 3 == 1] = a * 10
    x[t < 4] = y + tp.random.normal(spec=tp.f32[3], over=t)
    x[...] = x[t - 1] + y[T - 1 - t]
    tp.output("x", x)
    tp.output("windows", x[tp.maximum(0, t - 2) : tp.minimum(t + 2, T)].sum(0) + x[0:T:2].sum(0))


@tp.program
def sums():
    t, T = tp.dim("t")
    a, w = tp.input("a", tp.f32[3], over=t), tp.input("w", tp.f32[()], over=t)
    suffix, weighted = a[t:T].sum(0), tp.einsum("n,nd->d", tp.softmax(w[0 : t + 1]), a[0 : t + 1])
    tp.output("suffix", suffix)
    tp.output("weighted", weighted)
    tp.output("g", tp.grad((suffix * weighted)[0:T].sum(), a))


def in_tiles(program: ProgramOp) -> LoadedProgram:
    """A program in tiles of four."""
    module = ModuleOp([program.clone()])
    for name, options in (("sdg-autodiff", {}), ("sdg-tile", {"tile": 4})):
        get_all_passes()[name]()(**options).apply(Context(), module)
    (tiled,) = (op for op in module.ops if isinstance(op, ProgramOp))
    return LoadedProgram(tiled, module)


def programs() -> Iterator[tuple[str, LoadedProgram, dict[str, Any]]]:
    """A program, and the inputs and bounds of a call."""
    x = np.linspace(-1, 1, 9 * 256, dtype=np.float32).reshape(9, 256)
    yield "window attention", load_text(WINDOW.read_text(), WINDOW.name), {"x": x}
    wave = np.linspace(-1, 1, 2 * 5 * 3 * 4, dtype=np.float32).reshape(2, 5, 3, 4)
    trained, acting, merged = rnn(width=4, batch=3), reinforce(envs=2, make=Cart, monitor=Monitor), cases()
    yield "rnn", LoadedProgram(trained.op, trained), {"x": wave, "y": np.sin(wave)}
    yield "reinforce", LoadedProgram(acting.op, acting), {"I": 2, "T": 4}
    yield "cases", LoadedProgram(merged.op, merged), {"a": wave.reshape(40, 3)[:11]}
    yield "tiles", in_tiles(sums().op), {"a": wave.reshape(40, 3)[:11], "w": wave.ravel()[:11]}


def told(program: str, what: str, content: str | bytes) -> None:
    """A line: the program, what of it, its hash."""
    data = content.encode() if isinstance(content, str) else content
    print(program, what, hashlib.sha256(data).hexdigest(), sep=": ")


def main(chosen: Collection[str]) -> None:
    """Every level of IR of every program as text, and the bits of its outputs and states."""
    for name, program, arguments in programs():
        if name not in chosen:
            continue
        work = ModuleOp([program.op.clone()])
        told(name, "sdg", str(work))
        for number, compiler_pass in enumerate(DEFAULT_PIPELINE):
            run_passes(Context(), work, (compiler_pass,), {})
            told(name, f"{number} {compiler_pass}", str(work))
        executable = tp.compile(work)
        for level in ("loop", "tile", "llvm", "triton"):
            told(name, level, executable.ir(level))
        hosts = HOSTS if name == "reinforce" else {}
        result = executable(**arguments, state=program.initial(0), seed=1, hosts=hosts)
        for key, array in sorted({**result, **result.state}.items()):
            told(name, f"bits of {key}", array.tobytes())


if __name__ == "__main__":
    main(sys.argv[1:])
