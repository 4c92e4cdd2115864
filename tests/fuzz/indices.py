"""Index entries by kind: how a dim of a producer may be read from a consumer, and where that read is inside."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tempo_ir.index.expr import TRUE, Cond, Const, Entry, Expr, Slice, Sym, as_expr, compare, conj, maximum, minimum


@dataclass(frozen=True)
class Read:
    """An entry, and the condition under which what it reads is there. `simple` ones need none."""

    entry: Entry
    inside: Cond = TRUE


@dataclass(frozen=True)
class Place:
    """A dim of a producer, of size `bound`, that is read; `others` are the other dims of the consumer, `params` bounds
    that are known not to exceed `bound`."""

    dim: str
    bound: Expr
    others: tuple[str, ...]
    params: tuple[str, ...]
    random: random.Random

    @property
    def here(self) -> Expr:
        return Sym(self.dim)

    def amount(self, most: int = 3) -> int:
        return self.random.randint(1, most)

    def between(self, expression: Expr) -> Read:
        """A point that may lie outside."""
        return Read(expression, conj(compare(">=", expression, 0), compare("<", expression, self.bound)))


def _slice(start: Expr | int, stop: Expr | int, step: int = 1) -> Read:
    return Read(Slice(as_expr(start), as_expr(stop), step))


def _exact_window(p: Place) -> Read:
    before, after = p.random.randint(0, 2), p.random.randint(0, 1)
    inside = conj(compare(">=", p.here - before, 0), compare("<", p.here + after, p.bound))
    return Read(Slice(p.here - before, p.here + (after + 1)), inside)


def _block(p: Place) -> Read:
    size = p.random.randint(2, 4)
    start = (p.here // size) * size
    stop = p.here + 1 if p.random.random() < 0.5 else minimum(start + size, p.bound)
    return _slice(start, stop)


def _stepped(p: Place) -> Read:
    step = p.random.randint(2, 3)
    pairs: list[tuple[Expr | int, Expr]] = [(0, p.bound), (0, p.here + 1), (p.here, p.bound), (p.here % step, p.bound)]
    return _slice(*p.random.choice(pairs), step)


def _window_both(p: Place) -> Read:
    return _slice(maximum(0, p.here - p.amount()), minimum(p.here + p.amount() + 1, p.bound))


HERE: dict[str, Callable[[Place], Read]] = {
    "current": lambda p: Read(p.here),
    "shift back": lambda p: p.between(p.here - p.amount()),
    "shift forward": lambda p: p.between(p.here + p.amount()),
    "reversed": lambda p: Read(p.bound - 1 - p.here),
    "modular": lambda p: Read((p.here + p.random.choice([0, 0, 1, 2])) % (1 + p.amount())),
    "floordiv": lambda p: p.between((p.here + p.random.choice([0, 0, 1, -1])) // (1 + p.amount())),
    "scaled": lambda p: p.between(p.here * 2 + p.random.randint(0, 1)),
    "clamped below": lambda p: Read(maximum(p.here - p.amount(), 0)),
    "clamped above": lambda p: Read(minimum(p.here + p.amount(), p.bound - 1)),
    "prefix": lambda p: _slice(0, p.here + p.random.randint(0, 1)),
    "suffix": lambda p: _slice(p.here + p.random.randint(0, 1), p.bound),
    "window back": lambda p: _slice(maximum(0, p.here - p.amount()), p.here + p.random.randint(0, 1)),
    "window forward": lambda p: _slice(p.here, minimum(p.here + p.amount(), p.bound)),
    "window on both sides": _window_both,
    "window of one size": _exact_window,
    "block": _block,
    "stepped": _stepped,
    "whole": lambda p: _slice(0, p.bound),
    "empty": lambda p: _slice(*[p.random.choice([p.here, p.bound])] * 2),
    "reversed prefix": lambda p: _slice(0, p.bound - p.here),
}
"""Where the consumer varies over the dim too."""


def _constant(p: Place) -> Read:
    entry = p.random.choice([Const(0), Const(0), p.bound - 1, p.bound - 1, Const(p.amount())])
    return Read(entry)


def _other(p: Place) -> Read:
    other = Sym(p.random.choice(p.others))
    return p.between(p.random.choice([other, other, p.bound - 1 - other, other // 2, other + 1]))


def _mixed(p: Place) -> Read:
    other = Sym(p.random.choice(p.others))
    return p.between(p.random.choice([p.here + other, p.here - other]))


def _mixed_range(p: Place) -> Read:
    other = Sym(p.random.choice(p.others))
    return _slice(minimum(other, p.here), p.here + 1)


ELSEWHERE: dict[str, Callable[[Place], Read]] = {
    "constant": _constant,
    "whole": lambda p: _slice(0, p.bound),
    "stepped": lambda p: _slice(p.random.randint(0, 1), p.bound, p.random.randint(2, 3)),
}
"""Where it does not."""
WITH_OTHERS: dict[str, Callable[[Place], Read]] = {
    "another dim": _other,
    "range to another dim": lambda p: _slice(0, minimum(Sym(p.random.choice(p.others)) + 1, p.bound)),
}
HERE_AND_OTHERS: dict[str, Callable[[Place], Read]] = {"sum of dims": _mixed, "range from another dim": _mixed_range}
WITH_PARAMS: dict[str, Callable[[Place], Read]] = {
    "range to a bound": lambda p: _slice(0, Sym(p.random.choice(p.params))),
    "range from a bound": lambda p: _slice(Sym(p.random.choice(p.params)), p.bound),
}


def read(place: Place, varies: bool, *, points_only: bool = False) -> Read:
    """A random entry for the dim; the current point is the likeliest where the consumer varies over it."""
    if varies and place.random.random() < 0.45:
        return Read(place.here)
    kinds = dict(HERE if varies else ELSEWHERE)
    if place.others:
        kinds |= WITH_OTHERS
        if varies:
            kinds |= HERE_AND_OTHERS
    if place.params:
        kinds |= WITH_PARAMS
    for _ in range(20):
        made = place.random.choice(list(kinds.values()))(place)
        if not (points_only and isinstance(made.entry, Slice)):
            return made
    return Read(place.here if varies else Const(0))


def condition(dim: str, bound: Expr, others: Sequence[str], params: Sequence[str], chosen: random.Random) -> Cond:
    """A condition on a dim for a case."""
    here, k = Sym(dim), chosen.randint(1, 3)
    kinds: list[Cond] = [
        compare("=", here, 0),
        compare("<", here, k),
        compare(">=", here, k),
        compare("=", here, bound - 1),
        compare("<", here, bound - k),
        compare("=", here % 2, 0),
        compare("=", here // 2, 1),
        compare("!=", here, k),
        compare("<", here * 2, bound),
    ]
    if others:
        other = Sym(chosen.choice(list(others)))
        kinds += [compare("<", here, other), compare("=", here, other), compare("<=", here + other, 3)]
    if params:
        kinds += [compare("<", here, Sym(chosen.choice(list(params))))] * 2
    return chosen.choice(kinds)
