"""How a recurrence reads itself: along a dim either way, over windows, across dims, and with several directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tempo_ir.index.expr import (
    TRUE,
    Cond,
    Const,
    Entry,
    Expr,
    Slice,
    Sym,
    compare,
    conj,
    maximum,
    minimum,
)
from tests.fuzz.builder import Builder, NotHere


@dataclass(frozen=True)
class Step:
    """How a recurrence reads itself: the condition under which it does, and the index; else it reads a first value."""

    inside: Cond
    index: tuple[Entry, ...]

    @property
    def is_of_points(self) -> bool:
        return not any(isinstance(entry, Slice) for entry in self.index)


def forwards(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    distance = b.random.choice([1, 1, 1, 2])
    return _step(dims, dim, compare(">=", Sym(dim), distance), Sym(dim) - distance)


def backwards(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    distance = b.random.choice([1, 1, 2])
    bound = b.space.bound(dim)
    return _step(dims, dim, compare("<", Sym(dim) + distance, bound), Sym(dim) + distance)


def halving(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    return _step(dims, dim, compare(">=", Sym(dim), 1), Sym(dim) // 2)


def carried(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    """Along the dim; at its start from the end of the step of an outer dim before."""
    outer = [name for name in dims if b.space.names.index(name) < b.space.names.index(dim)]
    if not outer:
        raise NotHere
    last = b.space.bound(dim) - 1
    name = b.random.choice(outer)
    entries: list[Entry] = [Sym(d) - 1 if d == name else last if d == dim else Sym(d) for d in dims]
    return Step(conj(compare("=", Sym(dim), 0), compare(">=", Sym(name), 1)), tuple(entries))


def windowed(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    here = Sym(dim)
    if b.chance(0.3):
        bound = b.space.bound(dim)
        return _step(dims, dim, TRUE, Slice(here + 1, b.random.choice([bound, minimum(here + 3, bound)])))
    start: Expr = b.random.choice([maximum(0, here - 3), maximum(0, here - 1), here * 0])
    return _step(dims, dim, TRUE, Slice(start, here))


def _step(dims: tuple[str, ...], dim: str, inside: Cond, entry: Entry) -> Step:
    return Step(inside, tuple(entry if name == dim else Sym(name) for name in dims))


def across(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    """Of the step of an outer dim before (or after) any point of another dim."""
    others = [name for name in dims if name != dim]
    if not others:
        raise NotHere
    other = b.random.choice(others)
    here, bound, last = Sym(dim), b.space.bound(dim), b.space.bound(dim) - 1
    entries: list[tuple[Entry, Cond]] = [
        (last - here, TRUE),
        (minimum(here + 1, last), TRUE),
        (maximum(here - 2, 0), TRUE),
        (here // 2, TRUE),
        (last, TRUE),
        (Const(0), TRUE),
        (here + 1, compare("<", here + 1, bound)),
        (here - 1, compare(">=", here, 1)),
    ]
    entry, inside = b.random.choice(entries)
    shift = b.random.choice([1, 1, 2, -1])
    moved = Sym(other) - shift
    bounds = compare(">=", moved, 0) if shift > 0 else compare("<", moved, b.space.bound(other))
    read: list[Entry] = [entry if name == dim else moved if name == other else Sym(name) for name in dims]
    return Step(conj(inside, bounds), tuple(read))


def slanted(b: Builder, dims: tuple[str, ...], _: str) -> Step:
    """At a constant distance along every dim, whichever way."""
    distances = [b.random.randint(-2, 2) for _ in dims]
    if not any(distances):
        raise NotHere
    inside: list[Cond] = []
    for dim, distance in zip(dims, distances, strict=True):
        if distance > 0:
            inside.append(compare(">=", Sym(dim), distance))
        if distance < 0:
            inside.append(compare("<", Sym(dim) - distance, b.space.bound(dim)))
    return Step(conj(*inside), tuple(Sym(dim) - distance for dim, distance in zip(dims, distances, strict=True)))


def mirrored(b: Builder, dims: tuple[str, ...], dim: str) -> Step:
    """The second half reads the first, or the other way."""
    here, there = Sym(dim), b.space.bound(dim) - 1 - Sym(dim)
    return _step(dims, dim, compare(b.random.choice(["<", ">"]), here, there), there)


KINDS: tuple[Callable[[Builder, tuple[str, ...], str], Step], ...] = (
    forwards,
    forwards,
    backwards,
    backwards,
    halving,
    windowed,
    windowed,
    carried,
    across,
    across,
    slanted,
    mirrored,
)


def turning(b: Builder, dims: tuple[str, ...], dim: str) -> list[Step]:
    """Forwards up to some point and backwards after it; or both ways by parity."""
    here, bound = Sym(dim), b.space.bound(dim)
    places: list[Expr] = [*map(Sym, b.params_below(bound)), bound // 2, Const(2), *(Sym(d) for d in dims if d != dim)]
    place = b.random.choice(places)
    past = conj(compare("<", here, place), compare(">=", here, 1))
    later = conj(compare(">=", here, place), compare("<", here + 1, bound))
    if b.chance(0.3):
        past = compare("=", here % 2, 1)
        later = conj(compare("=", here % 2, 0), compare("<", here + 2, bound))
        return [_step(dims, dim, past, here - 1), _step(dims, dim, later, here + 2)]
    return [_step(dims, dim, past, here - 1), _step(dims, dim, later, here + 1)]


def steps(b: Builder, dims: tuple[str, ...]) -> list[Step]:
    """One or two ways to read the value itself; ranges stand alone."""
    dim = b.random.choice(dims)
    if b.chance(0.1):
        return turning(b, dims, dim)
    found = [b.random.choice(KINDS)(b, dims, dim)]
    if found[0].inside != TRUE and b.chance(0.4):
        kind = b.random.choice([forwards, carried, backwards, across])
        second = kind(b, dims, b.random.choice(dims))
        if second.inside != TRUE:
            found.append(second)
    return found
