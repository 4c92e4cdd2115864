"""What tempo_ir is meant to reach in each benchmark, and what a report says of it.

A target that a report misses has the bound beside it, and `compare` adds a profile of the case to the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ANY: Mapping[str, tuple[Any, ...]] = {}


@dataclass(frozen=True)
class Target:
    """`measure` of every case with these values is at least, or at most, a number.

    A measure is a system (its time over tempo_ir's), `"tempo_ir bf16"` (tempo_ir's time over that of it), `"of bound"`
    (the bound over tempo_ir's time), `"seconds"` (tempo_ir's), `"spread of T"` (the slowest over the quickest of
    tempo_ir's cases that differ in T), or the title of a sheet (a number of tempo_ir's in it).
    """

    benchmark: str
    measure: str
    case: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: ANY)
    at_least: float | None = None
    at_most: float | None = None

    def fits(self, benchmark: str, case: Mapping[str, Any]) -> bool:
        """Whether this is asked of a case."""
        return benchmark == self.benchmark and all(
            name in case and case[name] in values for name, values in self.case.items()
        )

    def is_met(self, number: float) -> bool:
        """Whether a measured number reaches it."""
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)

    def __str__(self) -> str:
        return f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:g}"


@dataclass(frozen=True)
class Outcome:
    """A target in a case: the number measured, and the share of the bound that the case reaches, if it has one."""

    target: Target
    case: Mapping[str, Any]
    measured: float
    of_bound: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether it is reached."""
        return self.target.is_met(self.measured)


SMALL, LARGE = ("4x256",), ("12x768",)
SHARES = "seconds of an iteration of PPO over the seconds inside of gymnasium"
TARGETS = (
    Target("decode", "jax", {"model": SMALL, "window": (None,), "T": (1024,)}, 2.5),
    Target("decode", "torch", {"model": SMALL, "window": (None,), "T": (1024,)}, 2.0),
    Target("decode", "of bound", {"model": SMALL, "window": (None,), "T": (1024,), "batch": (1,)}, 0.85),
    Target("decode", "jax", {"model": SMALL, "window": (64,), "T": (4096,), "batch": (4, 16)}, 7.0),
    Target("decode", "jax", {"model": SMALL, "window": (64,), "T": (4096,), "batch": (1,)}, 5.0),
    Target("decode", "jax ring", {"model": SMALL, "window": (64,), "T": (4096,)}, 1.5),
    Target("decode", "tempo_ir bf16", {"model": SMALL, "window": (None,), "batch": (1,)}, 1.6),
    Target("decode", "of bound", {"model": LARGE, "window": (None,), "batch": (1,)}, 0.85),
    Target("decode", "jax", {"model": LARGE}, 1.0),
    Target("decode", "torch", {"model": LARGE}, 1.0),
    Target("decode", "tempo_ir bf16", {"model": LARGE, "batch": (1,)}, 1.6),
    Target("rl", "jax", {"environment": ("compiled",)}, 3.0),
    Target("rl", "stable-baselines3", {"environment": ("compiled",), "algorithm": ("ppo",)}, 100.0),
    Target("rl", SHARES, {"environment": ("SyncVectorEnv, 64 environments",)}, at_most=1.15),
    Target("rl", SHARES, {"environment": ("vectorised, 64 environments",)}, at_most=1.6),
    *(
        Target("rnn", system, case, least)
        for case in ({"hidden": (64,)}, {"hidden": (256,), "batch": (1,)})
        for system, least in (("torch", 2.0), ("jax", 1.5))
    ),
    *(Target("rnn", system, {"hidden": (256,), "batch": (64,)}, 1.1) for system in ("torch", "jax")),
    Target("kernels", "torch", {"kernel": ("gemm",), "size": (128, 256, 512)}, 1.0),
    Target("kernels", "torch", {"kernel": ("attention", "softmax", "RMSNorm", "Adam")}, 1.0),
    Target("compile", "seconds", {"program": ("decoder",), "layers": (4,), "start": ("cold",)}, at_most=1.0),
    Target("compile", "seconds", {"program": ("decoder",), "layers": (4,), "start": ("warm",)}, at_most=0.06),
    Target("compile", "seconds", {"program": ("decoder",), "layers": (28,), "start": ("cold",)}, at_most=2.0),
    Target("compile", "spread of T", {"program": ("rnn",), "start": ("cold",)}, at_most=1.1),
    Target("compile", "jax", {"start": ("cold",)}, 2.0),
    Target("compile", "torch.compile", {"start": ("cold",)}, 15.0),
)


def outcomes(report: Mapping[str, Any]) -> Iterator[Outcome]:
    """What a report, in the form of its JSON, says of each target; nothing of those that it has no case of."""
    mine = [row for row in report["rows"] if row["system"] == "tempo_ir"]
    for target in TARGETS:
        fitting = [row for row in mine if target.fits(row["benchmark"], row["case"])]
        if target.measure == "spread of T":
            times = [row["median_s"] for row in fitting]
            if len(times) > 1:
                yield Outcome(target, {"program": "rnn"}, max(times) / min(times))
            continue
        for row in fitting:
            for number in _measured(target, row, report["ratios"]):
                of_bound = None if row["bound_s"] is None else row["bound_s"] / row["median_s"]
                yield Outcome(target, row["case"], number, of_bound)
        for sheet in report["sheets"]:
            for name, numbers in sheet["lines"] if sheet["title"] == target.measure else ():
                if target.fits("rl", {"environment": name}):
                    yield Outcome(target, {"environment": name}, numbers[0])


def _measured(target: Target, row: Mapping[str, Any], ratios: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    match target.measure:
        case "of bound":
            yield from () if row["bound_s"] is None else (row["bound_s"] / row["median_s"],)
        case "seconds":
            yield row["median_s"]
        case system:
            for ratio in ratios:
                here = ratio["benchmark"] == row["benchmark"] and ratio["case"] == row["case"]
                if here and ratio["system"] == system:
                    ours = system.startswith("tempo_ir")
                    yield 1 / ratio["median_ratio"] if ours else ratio["median_ratio"]
