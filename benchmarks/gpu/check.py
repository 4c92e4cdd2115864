# pyright: basic
"""Runs the packages that `benchmarks.gpu.write` wrote on a GPU: `python check.py DIR`; needs torch, triton and numpy.

Each package is compared with what the CPU target gave, then measured beside the same in torch, eager and compiled. One
table is printed. The status is 1 where a result differs, 2 where there is no GPU. With `--interpret`, and
TRITON_INTERPRET=1 in the environment, the same comparison runs without one.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

LIMIT = 420
"""Seconds after which nothing more is begun."""
ROUNDS = 5


def main():
    parser = argparse.ArgumentParser(description="Compare and measure Triton packages on a GPU.")
    parser.add_argument("directory", type=Path, nargs="?", help="what benchmarks.gpu.write wrote")
    parser.add_argument("--interpret", action="store_true", help="in Triton's interpreter, to try the check itself")
    parser.add_argument("--device-only", action="store_true", help="say whether there is a GPU, and which")
    arguments = parser.parse_args()
    device = "Triton's interpreter" if arguments.interpret else gpu()
    if device is None:
        print("gpu-check: there is no GPU that torch and triton could use here; nothing was checked", file=sys.stderr)
        return 2
    print(f"gpu-check: {device}")
    if arguments.device_only:
        return 0
    begin, rows = time.perf_counter(), []
    sys.path.insert(0, str(arguments.directory.resolve()))
    for case in json.loads((arguments.directory / "cases.json").read_text()):
        if time.perf_counter() - begin > LIMIT:
            rows.append((case["name"], "not begun: the time is up", "", "", ""))
            continue
        rows.append(row_of(case, arguments.directory, "cpu" if arguments.interpret else "cuda"))
    print_table(("program", "beside the CPU target", "ours, ms", "torch, ms", "torch.compile, ms"), rows)
    return int(any(row[1].startswith("differs") for row in rows))


def gpu():
    """The name of the GPU, None where there is none."""
    try:
        import torch
        import triton  # noqa: F401
    except ImportError:
        return None
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def row_of(case, directory, device):
    """A line of the table."""
    import numpy as np
    import torch

    package = importlib.import_module(case["package"])
    run = getattr(package, case["function"])
    arrays = {}
    with np.load(directory / f"{case['package']}.inputs.npz") as given:
        for name, kind in case["types"].items():
            arrays[name] = torch.from_numpy(np.array(given[name])).to(device, getattr(torch, kind))
    outputs = run(arrays, **case["small"])
    said = "equal"
    with np.load(directory / f"{case['package']}.outputs.npz") as expected:
        for name in expected.files:
            got, want = outputs[name].float().cpu().numpy(), np.asarray(expected[name], np.float32)
            error = float(np.max(np.abs(got - want), initial=0.0)) / max(1.0, float(np.max(np.abs(want), initial=0.0)))
            if not error <= case["tolerance"]:
                return case["name"], f"differs: {name} by {error:.1e}", "", "", ""
            said = f"within {error:.1e}" if error else said
    if not case["large"] or device == "cpu":
        return case["name"], said, "", "", ""
    large = {name: enlarged(array, case, name) for name, array in arrays.items()}
    ours = measured(lambda: run(large, **case["large"]))
    plain, compiled = beside(case, large)
    return case["name"], said, ours, plain, compiled


def enlarged(array, case, name):
    """An input over the steps that are measured; a parameter as it is."""
    import torch

    steps = case["small"]["T"]
    if array.dim() < 2 or array.shape[0] != steps:
        return array
    return torch.randn((case["large"]["T"], *array.shape[1:]), device="cuda").to(array.dtype)


def beside(case, arrays):
    """Milliseconds of torch, eager and compiled, for the programs that torch has in a few lines."""
    import torch

    step = TORCH.get(case["function"])
    if step is None:
        return "", ""
    window = 64 if "window" in case["name"] else None
    plain = measured(lambda: step(arrays, window))
    if case["function"] == "recurrence":
        return plain, ""
    compiled = torch.compile(step, dynamic=True)
    return plain, measured(lambda: compiled(arrays, window))


def normed_product(arrays, window):
    import torch

    for x in arrays["x"]:
        normed = torch.nn.functional.rms_norm(x, (x.shape[-1],), arrays["scale"], 1e-6)
        y = normed @ arrays["w"].T
    return y


def attention(arrays, window):
    """The last step alone, times the number of steps, would be more than the loop: each step reads its own past."""
    import torch

    q, k, v = (arrays[name] for name in "qkv")
    for t in range(0, q.shape[0]):
        low = 0 if window is None else max(0, t - window + 1)
        past_k, past_v = (x[low : t + 1].permute(1, 0, 2)[None] for x in (k, v))
        mixed = torch.nn.functional.scaled_dot_product_attention(q[t][None], past_k, past_v)
    return mixed


def recurrence(arrays, window):
    import torch

    h = torch.tanh(arrays["x"][0])
    for x in arrays["x"][1:]:
        h = torch.tanh(x + h @ arrays["w"])
    return h


TORCH = {"normed_product": normed_product, "attention": attention, "recurrence": recurrence}


def measured(run):
    """The best of some rounds, in milliseconds."""
    import torch

    run()
    best = float("inf")
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return f"{best * 1e3:.2f}"


def print_table(heads, rows):
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, tuple("-" * width for width in widths), *rows):
        print(" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
