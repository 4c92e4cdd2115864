"""Random recurrences: whatever the verifier accepts is scheduled, proved, and computes what it means."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from schedule_support import arguments, parse
from xdsl.utils.exceptions import VerifyException

from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.schedule.statements import ScheduleError
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run
from tests.storage.storage_programs import index, random_read

SLICES = ["max(0, {d} - 2):{d} + 1", "0:{d}", "{d} + 1:{D}", "0:{D}", "{d}:min({d} + 2, {D})"]
SCALAR = "tensor<f32>"


def random_program(seed: int) -> str:
    """Some values over some dims that read each other anywhere; most such programs are refused by the verifier."""
    generator = random.Random(seed)
    dims = generator.choice([["t"], ["i", "t"]])
    domains = [generator.choice([dims, dims, dims, dims[:1], dims[-1:], []]) for _ in range(generator.randint(2, 6))]
    declared = ", ".join(f"{dim}: {dim.upper()}" for dim in dims)
    lines = [f"sdg.program @random dims({declared}) where {' and '.join(f'{dim.upper()} >= 1' for dim in dims)} {{"]
    for domain in sorted({tuple(domain) for domain in domains}):
        name = "x" + "".join(domain)
        lines.append(f'  %{name} = sdg.input "{name}" in ({", ".join(domain)}) : {SCALAR}')
    for number, domain in enumerate(domains):
        producer = generator.randrange(len(domains))
        where, conditions, sliced = random_read(generator, domain, domains[producer], SLICES, 0.25)
        here, over = index(domain), f"in ({', '.join(domain)})"
        own, read = f"%x{''.join(domain)}{here}", f"%v{producer}{where}"
        if sliced:
            lines.append(f"  %s{number} = sdg.sum {read} axes [0] {over} : ({SCALAR}) -> {SCALAR}")
            read = f"%s{number}{here}"
        if conditions:
            cases = f"{{{' and '.join(conditions)} : {read}, 0 < 1 : {own}}}"
            lines.append(f"  %m{number} = sdg.merge {cases} {over} : ({SCALAR}, {SCALAR}) -> {SCALAR}")
        else:
            lines.append(f"  %m{number} = sdg.add {read}, {own} {over} : ({SCALAR}, {SCALAR}) -> {SCALAR}")
        lines.append(f"  %v{number} = sdg.tanh %m{number}{here} {over} : ({SCALAR}) -> {SCALAR}")
        lines.append(f'  sdg.output "v{number}" %v{number}{here} {over} : {SCALAR}')
    return "\n".join([*lines, "}"])


def accepted(seeds: range) -> list[int]:
    """The seeds of programs that the verifier accepts."""
    found: list[int] = []
    for seed in seeds:
        try:
            parse(random_program(seed))
        except VerifyException:
            continue
        found.append(seed)
    return found


def check(seeds: range) -> tuple[int, int]:
    """Schedule and compare the programs of the seeds; how many there were, and how many turn out to have a cycle."""
    found, refused = accepted(seeds), 0
    for seed in found:
        program = parse(random_program(seed))
        try:
            scheduled = schedule_program(program)
        except ScheduleError as error:
            if "needs itself" not in str(error):
                raise
            refused += 1
            continue
        scheduled.verify()
        for sizes in itertools.product((1, 2, 5), repeat=len(program.space.params)):
            bounds = dict(zip(program.space.params, sizes, strict=True))
            given = arguments(program, bounds)
            expected, computed = run(program, given, bounds), run_loop(scheduled, given, bounds)
            for key, value in expected.items():
                np.testing.assert_array_equal(computed[key], value, err_msg=f"seed {seed}, {key} at {bounds}")
    return len(found), refused


def test_random_programs() -> None:
    found, refused = check(range(60))
    assert found > 5
    assert refused == 0


@pytest.mark.slow
def test_many_random_programs() -> None:
    found, refused = check(range(1000, 3000))
    assert found > 100
    assert refused < found / 20
