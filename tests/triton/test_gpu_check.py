"""The check that runs on GPUs: without one it says so; its comparison is tried in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import tempo_ir as tp
from benchmarks.gpu.programs import decode
from tempo_ir.dialects.sdg import ParameterOp
from tempo_ir.reference.operations import concrete_shape

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "benchmarks" / "gpu" / "check.py"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    own = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment}
    return subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)


def test_without_a_gpu_nothing_is_checked_and_that_is_said():
    done = run(CHECK, "--device-only")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpu-check: there is no GPU that torch and triton could use here; nothing was checked\n"


def test_a_comparison_in_the_interpreter(tmp_path):
    names = ("normed product f32", "draws", "decode attention f32", "prompt's attention f16, group of 3")
    written = run("-m", "benchmarks.gpu.write", tmp_path, *names)
    assert written.returncode == 0, written.stderr
    done = run(CHECK, tmp_path, "--interpret", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    _, heads, _, normed, draws, *attention = done.stdout.splitlines()
    assert heads.split(" | ")[0].strip() == "program"
    assert "within" in normed
    assert "equal" in draws
    assert len(attention) == 2
    assert all("within" in line for line in attention)
    with np.load(tmp_path / "draws.outputs.npz") as file:
        outputs = dict(file)
    np.savez(tmp_path / "draws.outputs.npz", **{**outputs, "bits": outputs["bits"] + 1})
    done = run(CHECK, tmp_path, "--interpret", TRITON_INTERPRET="1")
    assert done.returncode == 1
    assert "differs: bits" in done.stdout


BY_HAND = """
import by_hand, by_torch, torch
torch.manual_seed(0)
for steps, heads, group, width in ((70, 2, 4, 16), (300, 1, 3, 32), (1, 2, 1, 16)):
    q, k, v = torch.randn(heads, group, width), *(torch.randn(steps, heads, width) for _ in "kv")
    torch.testing.assert_close(by_hand.decode_attention(q, k, v), by_torch.decode_attention(dict(q=q, k=k, v=v), {}))
    q = torch.randn(steps, heads, group, width)
    torch.testing.assert_close(by_hand.prompt_attention(q, k, v), by_torch.prompt_attention(dict(q=q, k=k, v=v), {}))
x, scale, w = torch.randn(5, 128), torch.randn(128), torch.randn(70, 128)
expected = by_torch.normed_product(dict(x=x, scale=scale, w=w), {})
torch.testing.assert_close(by_hand.normed_product(x, scale, w), expected, rtol=1e-4, atol=1e-4)
print("equal")
"""


def test_what_is_measured_beside_computes_the_same():
    folder = str(CHECK.parent)
    done = run("-c", BY_HAND, TRITON_INTERPRET="1", PYTHONPATH=os.pathsep.join([str(ROOT), folder]))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "equal\n"


def test_torch_decodes_what_the_program_does():
    """At a small shape, in f32: token after token, from the token 0."""
    sys.path.insert(0, str(CHECK.parent))
    import by_torch  # pyright: ignore[reportMissingImports]
    import torch

    sys.path.remove(str(CHECK.parent))
    shape = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "feed_forward": 96, "vocabulary": 50}
    executable = tp.compile(decode(batch=3, dtype=tp.f32, **shape))
    random = np.random.default_rng(0)
    parameters = [op for op in executable.graph.body.block.ops if isinstance(op, ParameterOp)]
    shapes = {op.key.data: concrete_shape(op.result.type, {}) for op in parameters}
    state = {name: random.normal(0, 0.3, extents).astype(np.float32) for name, extents in shapes.items()}
    token = executable(prompt=np.zeros((1, 3), np.int64), T=9, state=state)["token"]
    arrays = {name: torch.from_numpy(array) for name, array in state.items()}
    last = by_torch.decoder(arrays, {**shape, "batch": 3})(8)
    assert last.tolist() == token[8].tolist()
    assert len(set(token[:, 0].tolist())) > 2
