# pyright: basic
"""Compiles kernels ahead of time, on a machine without a GPU: `python compile_process.py < jobs > results`.

Each line of the input is a job, each line of the output a result, both JSON, in order. A job holds the file of a
kernel, its name, its signature, the numbers of the arguments that are multiples of 16, the machine (backend, arch and
threads of a warp, as Triton has them), the warps and the stages; a result holds the figures, or an error. Where a job
names a place, the machine code is written there, and beside it what Triton says of it (`.json`). This file imports
nothing of tempo_ir.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import time
from pathlib import Path

os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # as is Triton's default up to 3.9
os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"
os.environ["TRITON_ALWAYS_COMPILE"] = "1"  # the log comes only from compiling
os.environ.pop("TRITON_INTERPRET", None)

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TENSOR_CORES = re.compile(r"wgmma|mma\.sync|tcgen05|v_mfma")
LOADS = re.compile(
    r"ld\.global[.\w:]*?(?:\.v(?P<count>\d))?\.[bfsu](?P<bits>\d+)"
    r"|cp\.async\.c[ag]\.shared\.global [^;]*?, (?P<copied>0x\w+)"
    r"|(?:global|buffer)_load_(?P<word>dword|ushort|ubyte)(?:x(?P<words>\d))?"
)
WORDS = {"dword": 4, "ushort": 2, "ubyte": 1}


def number(pattern, text):
    """The greatest of the numbers that a pattern finds, 0 where it finds none."""
    return max((int(found) for found in re.findall(pattern, text)), default=0)


def widest_load(assembly):
    """The most bytes that a thread reads of memory by one instruction."""
    found = [0]
    for load in LOADS.finditer(assembly):
        if load["bits"]:
            found.append(int(load["bits"]) // 8 * int(load["count"] or 1))
        elif load["copied"]:
            found.append(int(load["copied"], 16))
        else:
            found.append(WORDS[load["word"]] * int(load["words"] or 1))
    return max(found)


def figures(compiled, log):
    """Registers of a thread, bytes spilt, stack, shared memory, whether tensor cores are used, the widest load."""
    assembly = compiled.asm.get("ptx") or compiled.asm["amdgcn"]
    nvidia = "ptx" in compiled.asm
    return {
        "registers": number(r"Used (\d+) registers", log) if nvidia else number(r"\.vgpr_count:\s*(\d+)", assembly),
        "spilled": number(r"(\d+) bytes spill (?:stores|loads)", log)
        if nvidia
        else 4 * number(r"\.[vs]gpr_spill_count:\s*(\d+)", assembly),
        "stack": number(r"(\d+) bytes stack frame", log)
        if nvidia
        else number(r"\.private_segment_fixed_size:\s*(\d+)", assembly),
        "shared": compiled.metadata.shared,
        "tensor_cores": TENSOR_CORES.search(assembly) is not None,
        "widest_load": widest_load(assembly),
    }


def load_kernel(path, name):
    """The kernel of a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def compile_one(job):
    """The figures of a compiled kernel."""
    begin = time.perf_counter()
    attributes = {(index,): [["tt.divisibility", 16]] for index in job["aligned"]}
    source = ASTSource(load_kernel(job["path"], job["name"]), job["signature"], {}, attributes)
    log = io.StringIO()
    with contextlib.redirect_stdout(log):
        options = {"num_warps": job["warps"], "num_stages": job["stages"]}
        compiled = triton.compile(source, target=GPUTarget(*job["machine"]), options=options)
    if job.get("place"):
        kind = "cubin" if "cubin" in compiled.asm else "hsaco"
        Path(f"{job['place']}.{kind}").write_bytes(compiled.asm[kind])
        told = next(path for name, path in compiled.metadata_group.items() if name.endswith(".json"))
        Path(f"{job['place']}.json").write_text(Path(told).read_text())
    return {**figures(compiled, log.getvalue()), "seconds": time.perf_counter() - begin}


def main():
    for line in sys.stdin:
        job = json.loads(line)
        try:
            result = compile_one(job)
        except Exception as error:  # whatever a compiler raises is the answer to the job
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
