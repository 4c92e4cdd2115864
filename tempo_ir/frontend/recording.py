"""The program that is being recorded: its declarations, its ops, and what is left to do when the user's function
returns."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir import index as ix
from tempo_ir.frontend.description import HostInfo, InputInfo, OutputInfo, StateInfo
from tempo_ir.frontend.errors import Place, ProgramError, here
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import RESERVED_WORDS, Cond, Expr

if TYPE_CHECKING:
    from tempo_ir.frontend.cases import Case
    from tempo_ir.frontend.host import Host

CALL_WORDS = ("state", "seed", "start", "donate", "target")
"""Argument names of every call, which no input or bound may have."""


@dataclass
class Recording:
    """A program under construction. Ops stand in one block, in the order of their recording."""

    name: str
    settings: dict[str, object]
    dims: dict[str, Expr] = field(default_factory=dict[str, Expr])
    where: Cond = ix.TRUE
    block: Block = field(default_factory=Block)
    inputs: dict[str, InputInfo] = field(default_factory=dict[str, InputInfo])
    outputs: dict[str, OutputInfo] = field(default_factory=dict[str, OutputInfo])
    states: dict[str, StateInfo] = field(default_factory=dict[str, StateInfo])
    hosts: dict[str, HostInfo] = field(default_factory=dict[str, HostInfo])
    endings: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    finishers: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    constants: dict[tuple[object, ...], SSAValue] = field(default_factory=dict[tuple[object, ...], SSAValue])
    definitions: dict[Operation, list[Case]] = field(default_factory=dict[Operation, "list[Case]"])
    random_count: int = 0
    log: tuple[Host, list[list[str]]] | None = None
    module_names: set[str] = field(default_factory=set[str])
    _taken: dict[tuple[str, str], tuple[str, Place | None]] = field(
        default_factory=dict[tuple[str, str], tuple[str, Place | None]]
    )
    _last_named: tuple[Place, SSAValue] | None = None
    _space: Space | None = None
    _domains: dict[frozenset[str], Domain] = field(default_factory=dict[frozenset[str], Domain])

    @property
    def space(self) -> Space:
        """The declared dims and relations between bounds."""
        if self._space is None:
            self._space = Space(tuple(self.dims.items()), self.where)
        return self._space

    def declare_dim(self, name: str, bound: Expr) -> None:
        """Add the next inner dim. Its name and the bound it brings must be new."""
        is_word = name.isidentifier() and name.isascii() and name not in RESERVED_WORDS
        if not is_word or name != name.lower() or name == name.upper():
            raise ProgramError(f"'{name}' cannot name a dim: use a lower-case word such as \"t\" (its bound is then T)")
        self.claim("symbol", "dim", name)
        if bound == ix.Sym(name.upper()):
            self.claim("symbol", "bound", name.upper())
            self.claim("argument", "bound", name.upper())
        self.dims[name] = bound
        self._space = None
        self._domains.clear()

    def assume(self, cond: Cond) -> None:
        """Declare a relation between bounds, which every call checks."""
        self.where = ix.conj(self.where, cond)
        self._space = None

    def claim(self, space: str, kind: str, name: str) -> None:
        """Take a name in a name space; raises ProgramError if something else has it, naming both places."""
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(f"the name of {'an' if kind[0] in 'aeiou' else 'a'} {kind} is a text, got {name!r}")
        if space == "argument" and name in CALL_WORDS:
            raise ProgramError(
                f"the {kind} '{name}' has the name of a call's own argument ({', '.join(CALL_WORDS)}): rename it"
            )
        if (other := self._taken.get((space, name))) is not None:
            other_kind, place = other
            where = f" ({place})" if place is not None else ""
            raise ProgramError(
                f"the {kind} '{name}' has the name of the {other_kind} '{name}'{where}: rename one of them"
            )
        self._taken[space, name] = (kind, here())

    def in_order(self, names: frozenset[str]) -> tuple[str, ...]:
        """Those of the names that are dims, in the order of their declaration."""
        return self.domain(names).dims

    def domain(self, names: frozenset[str]) -> Domain:
        """All points of those of the names that are dims."""
        found = self._domains.get(names)
        if found is None:
            found = self._domains[names] = Domain(tuple([name for name in self.dims if name in names]))
        return found

    def add(self, op: Operation, place: Place | None = None, name: str | None = None) -> Operation:
        """Append an op, with the user's line on it.

        Its first result prints under `name`, or else under the variable that the user's line assigns it to.
        """
        place = here() if place is None else place
        if place is not None:
            op.location = place.location
        self.block.add_op(op)
        if name is not None:
            op.results[0].name_hint = name if SSAValue.is_valid_name(name) else None
        elif place is not None and place.target is not None and op.results:
            self._name(op.results[0], place)
        return op

    def _name(self, result: SSAValue, place: Place) -> None:
        """Of the ops that one expression records, only the last is what the variable holds."""
        if self._last_named is not None and self._last_named[0] == place:
            self._last_named[1].name_hint = None
        if place.target is not None and SSAValue.is_valid_name(place.target):
            result.name_hint = place.target
        self._last_named = (place, result)


_current: ContextVar[Recording | None] = ContextVar("tempo_ir_recording", default=None)


def current() -> Recording:
    """The program that is being recorded; raises ProgramError outside of a `@tp.program` function."""
    if (recording := _current.get()) is None:
        raise ProgramError("this stands outside of a program: use it inside a function under @tp.program")
    return recording


@contextmanager
def recorded(recording: Recording) -> Generator[Recording]:
    """Make `recording` the current one."""
    if (outer := _current.get()) is not None:
        raise ProgramError(f"program '{recording.name}' is made inside program '{outer.name}': call it outside")
    token = _current.set(recording)
    try:
        yield recording
    finally:
        _current.reset(token)
