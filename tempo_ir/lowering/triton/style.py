"""How kernels are printed, and a kernel that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tempo_ir.lowering.triton.library_text import HEADER, library_sources
from tempo_ir.lowering.triton.machines import Machine
from tempo_ir.lowering.triton.tuning import WARPS
from tempo_ir.lowering.triton.writer import WIDTH, wrapped

PRECISIONS = ("ieee", "tf32")
"""Of products of f32: all 24 bits of the factors, or the first 11 of each, which tensor cores multiply."""


@dataclass(frozen=True, slots=True)
class Style:
    """How kernels are printed.

    `precision` is the `input_precision` of f32 dots, one of PRECISIONS. `checked` asserts the element type of every
    value, for tests. With a `machine` kernels know what choices are worth a try there.
    """

    precision: str = "ieee"
    checked: bool = False
    machine: Machine | None = None


DEFAULT_STYLE = Style()


class UnknownPrecisionError(ValueError):
    """There is no precision of a name; the message says which there are."""


def style_of(precision: str | None) -> Style:
    """The style of a precision, or of none in particular. Raises UnknownPrecisionError."""
    if precision is None:
        return DEFAULT_STYLE
    if precision not in PRECISIONS:
        raise UnknownPrecisionError(f"there is no precision '{precision}'; use one of {', '.join(PRECISIONS)}")
    return Style(precision=precision)


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A printed kernel: the name of its function, the text of its file, and its parameters with their types.

    `aligned` names the scalars that are multiples of 16 in every launch; a program is run by `warps`, loops with dots
    have `stages`, and some dots `tensor_cores` compute; `computes` names the ops that the kernel comes from; `calls`
    the functions that it imports from `library.py`, which the kernels of a package share; `choices` are warps and
    stages that are worth a try, those of the text first.
    """

    name: str
    text: str
    parameters: tuple[tuple[str, str], ...]
    aligned: frozenset[str]
    warps: int = WARPS
    computes: str = ""
    stages: int = 1
    calls: tuple[str, ...] = ()
    choices: tuple[tuple[int, int], ...] = ()
    tensor_cores: bool = False

    @property
    def divisible(self) -> list[int]:
        """The numbers of the arguments that are multiples of 16: addresses, and the scalars that are."""
        kinds = enumerate(self.parameters)
        return [number for number, (name, kind) in kinds if kind.startswith("*") or name in self.aligned]

    @property
    def alone(self) -> str:
        """The text of a file that stands alone, with the functions that the kernel calls."""
        return "\n\n".join([self.text.replace(import_lines(self.calls), ""), *library_sources(self.calls)])


def file_head(calls: Sequence[str], blocks: Mapping[str, int], warps: int, stages: int) -> str:
    """The lines above a kernel: imports; the sizes of its blocks and how its programs run, which are changed there."""
    sizes = [f"{name} = tl.constexpr({extent})" for name, extent in blocks.items()]
    return HEADER + import_lines(calls) + "\n".join(["", *sizes, f"num_warps = {warps}", f"num_stages = {stages}", ""])


def import_lines(calls: Sequence[str]) -> str:
    """The lines that import functions of the library."""
    if not calls:
        return ""
    line = f"from .library import {', '.join(calls)}"
    lines = [line] if len(line) <= WIDTH else wrapped(f"from .library import ({', '.join(calls)})")
    return "\n" + "\n".join(lines) + "\n"
