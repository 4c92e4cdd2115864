"""Contractions over a letter whose axis grows, as recurrences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tempo_ir.dialects.sdg import Access, ContractOp
from tempo_ir.dialects.types import Extent, as_tensor, element, shape_of, tensor
from tempo_ir.passes.building import GraphBuilder, symbols_of
from tempo_ir.passes.recurrences.axes import Places, letter_places
from tempo_ir.passes.recurrences.growth import Growth
from tempo_ir.passes.recurrences.reductions import accumulator
from tempo_ir.passes.recurrences.rows import SAME, Rows, Scaled
from tempo_ir.passes.recurrences.running import Recurrence


def unlifted_contraction(op: ContractOp, growth: Growth, steps: int) -> Access | None:
    """A contraction over a letter whose axis grows as a recurrence, inserted before it; None, and nothing done, where
    its rows do not stay, or where the running sum is too large for what it saves."""
    inputs, output = op.letters
    if growth.walk.dim in symbols_of(shape_of(op.result.type)):
        return None
    extents = {
        letter: extent
        for letters, access in zip(inputs, op.accesses, strict=True)
        for letter, extent in zip(letters, shape_of(access.tensor), strict=True)
    }
    for letter, extent in extents.items():
        if extent != growth.extent or letter in output:
            continue
        places = letter_places(inputs, letter)
        if places is not None and (found := _Sum(op, growth, letter, places, extents).recurrence(steps)) is not None:
            return found
    return None


class _Sum:
    """A contraction as a sum over one letter: operands that have it, or do not vary (`inner`), and the others, which
    are multiplied with the running sum (`outer`)."""

    def __init__(self, op: ContractOp, growth: Growth, letter: str, places: Places, extents: dict[str, Extent]) -> None:
        self.op, self.growth, self.letter, self.places, self.extents = op, growth, letter, places, extents
        self.rows = Rows(growth)
        self.changes = [self.rows.change(access, place.axis) for access, place in zip(op.accesses, places, strict=True)]
        numbers = range(len(places))
        self.outer = [n for n in numbers if self.changes[n] != SAME and places[n].axis is None]
        self.inner = [n for n in numbers if n not in self.outer]

    def recurrence(self, steps: int) -> Access | None:
        """The result; None where it cannot be, or should not."""
        changes = [self.changes[n] for n in self.inner]
        if any(change != SAME and not isinstance(change, Scaled) for change in changes):
            return None
        scaled = [change for change in changes if isinstance(change, Scaled)]
        if any(change.alone for change in scaled) or not self._pays(steps):
            return None
        op, wide = self.op, accumulator(ContractOp, element(self.op.result.type))
        kept = tensor(wide, [self.extents[letter] for letter in self._kept()])

        def part(build: GraphBuilder) -> Access:
            operands = [op.accesses[n] for n in self.inner]
            rows = self.rows.rows(build, operands, [self.places[n] for n in self.inner])
            spec = [letters.replace(self.letter, "") for letters in self._letters(self.inner)]
            return build.contract(_spec(spec, self._kept()), *(build.cast(row, wide) for row in rows))

        def whole(build: GraphBuilder) -> Access:
            operands = [build.cast(op.accesses[n], wide) for n in self.inner]
            return build.contract(_spec(self._letters(self.inner), self._kept()), *operands)

        def earlier(build: GraphBuilder, total: Access) -> Access:
            for change in scaled:
                total = change.apply(build, total)
            return total

        running = Recurrence(op, self.growth, part, whole, earlier, kept).build()
        return self._finished(GraphBuilder(op, op.domain, op.location), running)

    def _finished(self, build: GraphBuilder, running: Access) -> Access:
        wide = element(running.type)
        if self.outer:
            operands = [build.cast(self.op.accesses[n], wide) for n in self.outer]
            spec = _spec([*self._letters(self.outer), self._kept()], self.op.letters[1])
            result = tensor(wide, shape_of(self.op.result.type))
            running = build.insert(ContractOp(spec, *operands, running, domain=build.domain, result_type=result))
        return build.cast(running, element(as_tensor(self.op.result.type)))

    def _letters(self, numbers: Sequence[int]) -> list[str]:
        return [self.op.letters[0][n] for n in numbers]

    def _kept(self) -> str:
        """The letters of the running sum: those of the result, in order, then what the outer operands need."""
        inside = "".join(self._letters(self.inner)).replace(self.letter, "")
        output = self.op.letters[1]
        needed = "".join(self._letters(self.outer))
        rest = [letter for letter in dict.fromkeys(inside) if letter in needed and letter not in output]
        return "".join([*(letter for letter in output if letter in inside), *rest])

    def _pays(self, steps: int) -> bool:
        """Whether a step of the recurrence is less work than the sum: `steps / 2` rows, on average."""
        if not self.outer:
            return True
        every = dict.fromkeys("".join(self.op.letters[0]).replace(self.letter, ""))
        row, kept = self._size(every), self._size(self._kept())
        outer = self._size(dict.fromkeys(self._kept() + "".join(self._letters(self.outer))))
        return 2 * kept + outer < row * steps / 2

    def _size(self, letters: Sequence[str] | dict[str, None]) -> float:
        extents = [self.extents[letter] for letter in letters]
        return math.prod(extent if isinstance(extent, int) else 64 for extent in extents)


def _spec(inputs: Sequence[str], output: str) -> str:
    return f"{','.join(inputs)}->{output}"
