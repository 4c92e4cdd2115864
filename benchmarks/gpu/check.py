# pyright: basic
"""Runs the packages that `benchmarks.gpu.write` wrote on a GPU: `python check.py DIR`; needs torch, triton and numpy.

Each package is compared with what the CPU target gave, then measured beside the same in torch, eager and compiled, and
in Triton written by hand. One table is printed. The status is 1 where a result differs, 2 where there is no GPU. With
`--interpret`, and TRITON_INTERPRET=1 in the environment, the same comparison runs without one.
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
            rows.append((case["name"], "not begun: the time is up", "", "", "", ""))
            continue
        rows.append(row_of(case, arguments.directory, "cpu" if arguments.interpret else "cuda"))
    print_table(
        ("program", "beside the CPU target", "ours, ms", "torch, ms", "torch.compile, ms", "Triton by hand, ms"), rows
    )
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
    package = importlib.import_module(case["package"])
    run = getattr(package, case["function"])
    said = compared(case, directory, device, run) if case["small"] else "not compared"
    if said.startswith("differs") or not case["large"] or device == "cpu":
        return case["name"], said, "", "", "", ""
    arrays = {name: drawn(array, case["large"]) for name, array in case["arrays"].items()}
    if case["longer"]:
        steps = [case[name]["T"] for name in ("large", "longer")]
        ours = per_step(lambda T: run(arrays, **{**case["large"], "T": T}), steps)
        return case["name"], said, ours, *decoding(case, arrays, steps)
    return case["name"], said, measured(lambda: run(arrays, **case["large"])), *beside(case, arrays)


def compared(case, directory, device, run):
    """Whether the outputs at the small bounds are those of the CPU target, in words."""
    import numpy as np
    import torch

    arrays = {}
    with np.load(directory / f"{case['package']}.inputs.npz") as given:
        for name, array in case["arrays"].items():
            arrays[name] = torch.from_numpy(np.array(given[name])).to(device, getattr(torch, array["type"]))
    outputs = run(arrays, **case["small"])
    said = "equal"
    with np.load(directory / f"{case['package']}.outputs.npz") as expected:
        for name in expected.files:
            got, want = outputs[name].float().cpu().numpy(), np.asarray(expected[name], np.float32)
            error = float(np.max(np.abs(got - want), initial=0.0)) / max(1.0, float(np.max(np.abs(want), initial=0.0)))
            if not error <= case["tolerance"]:
                return f"differs: {name} by {error:.1e}"
            said = f"within {error:.1e}" if error else said
    return said


def drawn(array, bounds):
    """An array at some bounds: vectors of ones, matrices of small numbers, token 0."""
    import torch

    shape = [bounds.get(extent, extent) for extent in array["shape"]]
    kind = getattr(torch, array["type"])
    if not kind.is_floating_point:
        return torch.zeros(shape, dtype=kind, device="cuda")
    if len(shape) == 1:
        return torch.ones(shape, dtype=kind, device="cuda")
    return torch.randn(shape, dtype=kind, device="cuda") * 0.1


def beside(case, arrays):
    """Milliseconds of torch, eager and compiled, and of Triton written by hand, where somebody wrote it."""
    import by_hand
    import by_torch
    import torch

    step = getattr(by_torch, case["beside"], None)
    if step is None:
        return "", "", ""
    plain, compiled = measured(lambda: step(arrays, case["settings"])), ""
    if case["beside"] in ("normed_product", "decode_attention", "prompt_attention"):
        faster = torch.compile(step, dynamic=False)
        compiled = measured(lambda: faster(arrays, case["settings"]))
    elif case["beside"] in ("recurrence", "rollout"):  # a step is compiled: as many in one graph would take minutes
        faster = torch.compile(step.step, dynamic=False)
        compiled = measured(lambda: step(arrays, case["settings"], faster))
    own = getattr(by_hand, case["beside"], None)
    return (
        plain,
        compiled,
        "" if own is None else measured(lambda: own(*(arrays[name] for name in ORDER[case["beside"]]))),
    )


ORDER = {
    "normed_product": ("x", "scale", "w"),
    "decode_attention": "qkv",
    "prompt_attention": "qkv",
    "recurrence": "xw",
    "rollout": ("policy.0.weight", "policy.0.bias", "policy.1.weight", "policy.1.bias"),
}
"""The arrays that kernels written by hand are given."""


def decoding(case, arrays, steps):
    """The same of a step of decoding; a layer is compiled, which all layers share."""
    import by_torch
    import torch

    plain = per_step(by_torch.decoder(arrays, case["settings"]), steps)
    layer = torch.compile(by_torch.layer, dynamic=False)
    return plain, per_step(by_torch.decoder(arrays, case["settings"], layer), steps), ""


def per_step(run, steps):
    """Milliseconds of a step: what more of them take, over how many more there are."""
    few, many = (float(measured(lambda count=count: run(count))) for count in steps)
    return f"{(many - few) / (steps[1] - steps[0]):.3f}"


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
    return f"{best * 1e3:.3f}"


def print_table(heads, rows):
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, tuple("-" * width for width in widths), *rows):
        print(" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
