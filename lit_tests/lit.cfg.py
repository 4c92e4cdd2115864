"""lit's configuration: `lit lit_tests`, or `lit --param external=1 lit_tests` for a process per command."""

import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))  # lit's workers find the format by its module's name

from in_process import InProcessTest  # noqa: E402

external = lit_config.params.get("external", "0") == "1"  # noqa: F821

config.name = "tempo_ir"  # noqa: F821
config.test_format = lit.formats.ShTest() if external else InProcessTest()  # noqa: F821
config.suffixes = [".mlir", ".py"]  # noqa: F821
config.excludes = ["lit.cfg.py", "in_process.py", "Inputs"]  # noqa: F821
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = str(here.parent / "build" / "lit")  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # noqa: F821
config.environment["TEMPO_CACHE_DIR"] = ""  # noqa: F821
config.substitutions += [  # noqa: F821
    ("TEMPO_ROUNDTRIP", "tempo-opt %s --split-input-file | tempo-opt --split-input-file | filecheck %s"),
    (
        "TEMPO_GENERIC_ROUNDTRIP",
        "tempo-opt %s --print-op-generic --split-input-file | tempo-opt --split-input-file | filecheck %s",
    ),
]
