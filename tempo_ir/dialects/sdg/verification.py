"""Whole-program questions of the sdg verifier, answered with isl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tempo_ir.dialects.sdg.inference import Obligation
from tempo_ir.index.domain import Domain, Space

if TYPE_CHECKING:
    from tempo_ir.dialects.sdg.structure import ProgramOp


def prove_extents(obligations: Sequence[Obligation], space: Space, domain: Domain) -> None:
    """Each pair of extents is equal at every point of the domain; raises VerifyException otherwise."""


def verify_program(program: ProgramOp) -> None:
    """Reads stay inside their producers' domains, cases cover the domain and are each reached."""
