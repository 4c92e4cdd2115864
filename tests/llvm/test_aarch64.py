"""Code for 64-bit Arm, made here and only looked at: kernels, whole programs, and the threads that run them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pytest

from examples import bptt, llama, n_step, reinforce, rnn, rollout
from tempo_ir import Program, llm
from tempo_ir.lowering.llvm.engine import compile_assembly, compile_object, relax_instruction
from tempo_ir.lowering.llvm.kernel import lower_kernel, module_text
from tempo_ir.lowering.llvm.module import ModuleLowering
from tempo_ir.lowering.llvm.target import NEON
from tempo_ir.lowering.llvm.team import FORK, INITIALISE, STOP, WORKER, team_text
from tempo_ir.runtime.compiler import lower
from tests.llvm.test_kernels import CASES

AARCH64, RELOCATABLE, SYMBOLS, UNDEFINED = 183, 1, 2, 0
"""Numbers of ELF: the machine, the kind of file, the kind of section, and the section of what lies elsewhere."""
FROM_C = {"memcpy", "memmove", "memset", "cosf", "pow", "sinf"}
THREADS = {
    "pthread_cond_broadcast", "pthread_cond_init", "pthread_cond_wait", "pthread_mutex_init", "pthread_mutex_lock",
    "pthread_mutex_unlock", "sched_yield",
}  # fmt: skip


@dataclass(frozen=True)
class Object:
    """The symbols of an object file: those that it has, and those that it needs."""

    defined: frozenset[str]
    needed: frozenset[str]

    @staticmethod
    def of(code: bytes) -> Object:
        """Read the tables of an ELF file of 64 bits, which has to be code for this machine."""
        assert code[:6] == b"\x7fELF\x02\x01"
        kind, machine = struct.unpack_from("<HH", code, 16)
        assert (kind, machine) == (RELOCATABLE, AARCH64)
        (start,) = struct.unpack_from("<Q", code, 40)
        size, count = struct.unpack_from("<HH", code, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + size * n) for n in range(count)]
        names: tuple[set[str], set[str]] = set(), set()
        for _, kind, _, _, offset, length, link, *_, entry in sections:
            if kind == SYMBOLS:
                for at in range(offset + entry, offset + length, entry):
                    name, info, _, section = struct.unpack_from("<IBBH", code, at)
                    begin = sections[link][4] + name
                    text = code[begin : code.index(b"\0", begin)].decode()
                    if info >> 4:  # not local
                        names[section == UNDEFINED].add(text)
        return Object(frozenset(names[0]), frozenset(names[1]))


def unresolved(objects: Iterable[Object]) -> set[str]:
    """What none of the objects has and some need."""
    objects = list(objects)
    return {name for each in objects for name in each.needed} - {name for each in objects for name in each.defined}


def vectors(assembly: str, instruction: str) -> int:
    """How often an instruction works on four floats at once."""
    return len(re.findall(rf"\b{instruction}\s+v\d+\.4s", assembly))


@pytest.mark.parametrize("name", CASES)
def test_kernels_keep_their_sums_in_vector_registers(name: str) -> None:
    code = lower_kernel(CASES[name](np.random.default_rng(0)).kernel, NEON)
    text = module_text([code], NEON)
    found = Object.of(compile_object(text, NEON))
    assert code.name in found.defined
    assert found.needed <= FROM_C
    assembly = compile_assembly(text, NEON)
    assert vectors(assembly, "fmla") > 0
    assert not re.search(r"\bq\d+,.*Folded", assembly)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(llm.write_random_llama(tmp_path_factory.mktemp("llama"), layers=2, hidden=64, heads=4, kv_heads=2))


PROGRAMS: dict[str, Callable[[str], Program]] = {
    "llama": lambda model: llama.decode(model=model),
    "llama, a batch": lambda model: llama.decode(model=model, batch=4),
    "bptt": lambda _: bptt.bptt(),
    "n_step": lambda _: n_step.n_step(),
    "reinforce": lambda _: reinforce.reinforce(),
    "rnn": lambda _: rnn.rnn(),
    "rollout": lambda _: rollout.rollout(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_whole(name: str, model: str) -> None:
    parts: list[tuple[str, int]] = []
    lowering = ModuleLowering(NEON, lambda text, level: parts.append((text, level)))
    lowering.module(lower(PROGRAMS[name](model).module, "cpu").lowered)
    objects = [Object.of(compile_object(text, NEON, level)) for text, level in parts]
    assert unresolved(objects) <= FROM_C
    assert sum("host" in each.defined for each in objects) == 1
    assert sum(vectors(compile_assembly(text, NEON, level), "fmla") for text, level in parts) > 0


def test_a_team_of_threads() -> None:
    relax = relax_instruction(NEON.triple)
    text = team_text(relax)
    found = Object.of(compile_object(text, NEON))
    assert found.needed == THREADS
    assert found.defined == {FORK, WORKER, INITIALISE, STOP}
    assert re.search(r"\b(yield|hint\s+#0*1)\b", compile_assembly(text, NEON))
