"""Random programs for storage: few results, many values that are read late, copied, or overwritten in place."""

from __future__ import annotations

import random
from collections.abc import Sequence

POINTS = ("{d} - 1", "{d} - 2", "{d}", "{d} + 1", "{d} + 3", "{D} - 1 - {d}", "{d} floordiv 2", "0", "{D} - 1")
SLICES = (
    "max(0, {d} - 2):{d} + 1",
    "0:{d}",
    "0:{d} + 1",
    "{d} + 1:{D}",
    "0:{D}",
    "{d}:min({d} + 2, {D})",
    "{d}:{d} + 1",
)
ALWAYS_INSIDE = ("{d}", "{D} - 1 - {d}", "{d} floordiv 2", "0", "{D} - 1")
ROW = "tensor<3xf32>"
ELEMENTWISE = ("tanh", "neg", "sin")


def index(entries: Sequence[str]) -> str:
    """`[i, t]`, nothing for no entries."""
    return f"[{', '.join(entries)}]" if entries else ""


def random_read(
    generator: random.Random,
    dims: Sequence[str],
    producer_dims: Sequence[str],
    slices: Sequence[str] = SLICES,
    often: float = 0.2,
) -> tuple[str, list[str], bool]:
    """An index, the conditions under which it is inside, and whether it has a slice (of which there is at most one)."""
    entries: list[str] = []
    conditions: list[str] = []
    sliced = False
    for dim in producer_dims:
        names = {"d": dim, "D": dim.upper()}
        if not sliced and generator.random() < often:
            entries.append(generator.choice(slices if dim in dims else ["0:{D}"]).format(**names))
            sliced = True
            continue
        pattern = generator.choice(POINTS if dim in dims else ["0", "{D} - 1"])
        entries.append(pattern.format(**names))
        if pattern not in ALWAYS_INSIDE:
            conditions.append(f"0 <= {entries[-1]} < {dim.upper()}")
    return index(entries), conditions, sliced


def random_program(seed: int) -> str:
    """Some rows over some dims that read each other anywhere; most such programs are refused by the verifier."""
    generator = random.Random(seed)
    dims = generator.choice([["t"], ["i", "t"]])
    domains = [generator.choice([dims, dims, dims, dims[:1], dims[-1:], []]) for _ in range(generator.randint(2, 6))]
    declared = ", ".join(f"{dim}: {dim.upper()}" for dim in dims)
    lines = [f"sdg.program @random dims({declared}) where {' and '.join(f'{dim.upper()} >= 1' for dim in dims)} {{"]
    for domain in sorted({tuple(domain) for domain in domains}):
        name = "x" + "".join(domain)
        lines.append(f'  %{name} = sdg.input "{name}" in ({", ".join(domain)}) : {ROW}')
    for number, domain in enumerate(domains):
        lines += _value(generator, number, domain, domains)
    for number, domain in enumerate(domains):
        if number == len(domains) - 1 or generator.random() < 0.2:
            lines.append(f'  sdg.output "v{number}" %v{number}{index(domain)} in ({", ".join(domain)}) : {ROW}')
    return "\n".join([*lines, "}"])


def _value(generator: random.Random, number: int, domain: Sequence[str], domains: Sequence[Sequence[str]]) -> list[str]:
    producer = generator.randrange(len(domains))
    where, conditions, sliced = random_read(generator, domain, domains[producer])
    here, over = index(domain), f"in ({', '.join(domain)})"
    own, read = f"%x{''.join(domain)}{here}", f"%v{producer}{where}"
    lines: list[str] = []
    if sliced:
        lines.append(f"  %s{number} = sdg.sum {read} axes [0] {over} : ({ROW}) -> {ROW}")
        read = f"%s{number}{here}"
    if conditions:
        cases = f"{{{' and '.join(conditions)} : {read}, 0 < 1 : {own}}}"
        lines.append(f"  %m{number} = sdg.merge {cases} {over} : ({ROW}, {ROW}) -> {ROW}")
    else:
        lines.append(f"  %m{number} = sdg.add {read}, {own} {over} : ({ROW}, {ROW}) -> {ROW}")
    kind = generator.choice((*ELEMENTWISE, "reverse", "add"))
    value = f"%m{number}{here}"
    if kind == "add":
        lines.append(f"  %v{number} = sdg.add {value}, {own} {over} : ({ROW}, {ROW}) -> {ROW}")
    else:
        axis = " axis 0" if kind == "reverse" else ""
        lines.append(f"  %v{number} = sdg.{kind} {value}{axis} {over} : ({ROW}) -> {ROW}")
    return lines
