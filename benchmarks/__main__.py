"""`python -m benchmarks NAME [--quick] [--json FILE]`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# One thread for everybody, before torch, jax or numpy start their pools.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TEMPO_NUM_THREADS="1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from benchmarks import ablation, compiling, first
from benchmarks.harness import Report

BENCHMARKS = {"ablation": ablation.run, "compiling": compiling.run, "first": first.run}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="tempo_ir beside torch and jax on the same work"
    )
    parser.add_argument("name", choices=sorted(BENCHMARKS), help="which benchmark")
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    arguments = parser.parse_args()
    report = Report()
    BENCHMARKS[arguments.name](report, quick=arguments.quick)
    report.print()
    if arguments.json is not None:
        report.write_json(arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
