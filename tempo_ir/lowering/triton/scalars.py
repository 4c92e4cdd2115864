"""Scalars that change from step to step: kernels read them from memory of the device, so that a graph may repeat them.

    next_t[(1,)](scalars, T, start_t)                    # counts t, and computes what the launches of its step take
    mul_mean_add[(1,)](buffer, total, scalars, 4)        # its scalars stand at 4

A CUDA graph repeats launches with the arguments that they had. So an argument that names an iterator in some launch of
a kernel is none: the kernel loads it from a table, and a kernel per loop, launched at the start of each step, adds to
the counter and writes what the launches of the step take. What depends on no iterator stays an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tempo_ir.dialects import loop
from tempo_ir.dialects.loop.ending import before_end
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import Binary, Const, Expr, MinMax, free_symbols, simplify
from tempo_ir.index.rules import PROGRAM_FACTS, at_least_zero
from tempo_ir.lowering.triton.library_text import LIBRARY_NAMES
from tempo_ir.lowering.triton.python_text import expression_text
from tempo_ir.lowering.triton.style import file_head
from tempo_ir.lowering.triton.values import identifier_of
from tempo_ir.lowering.triton.writer import INDENT, RESERVED, Names, identifier
from tempo_ir.names import fresh_name

TABLE = "scalars"
"""The parameter of kernels that is the table, and the name of the table in the driver."""
PLACE = "at"
"""The parameter of kernels that says where in the table theirs stand."""


def own_scalars(launch: loop.LaunchOp, kernel: KernelOp) -> tuple[Expr, ...]:
    """The scalars that a kernel is given, without those that are extents of its grid."""
    return launch.scalars[: len(kernel.body.block.args) - len(launch.buffers)]


def stepped_arguments(module: ModuleOp) -> dict[str, tuple[int, ...]]:
    """By kernel the numbers of the arguments that change from step to step in some launch of the module."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    found: dict[str, set[int]] = {}
    for launch in (op for op in module.walk() if isinstance(op, loop.LaunchOp)):
        name = launch.kernel.root_reference.data
        if name not in kernels:
            continue
        iterators = {each.iterator for each in loop.enclosing_loops(launch)}
        for number, scalar in enumerate(own_scalars(launch, kernels[name]), len(launch.buffers)):
            if free_symbols(scalar) & iterators:
                found.setdefault(name, set()).add(number)
    return {name: tuple(sorted(numbers)) for name, numbers in found.items()}


@dataclass
class Level:
    """What is computed at once: at the start of each step of a loop or, of no loop, at the start of the program or
    where the bound is known that a loop gives. `entries` are what stands where in the table."""

    kernel: str
    loop: loop.ForOp | None
    late: bool = False
    entries: list[tuple[int, Expr]] = field(default_factory=list[tuple[int, Expr]])
    groups: dict[tuple[Expr, ...], int] = field(default_factory=dict[tuple[Expr, ...], int])


class ScalarTable:
    """The table of one program: a counter for each iterator that a launch names, then the scalars of launches, equal
    ones once."""

    def __init__(self, module: ModuleOp, taken: Iterable[str] = ()):
        (self.program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
        self.kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
        self.stepped = stepped_arguments(module)
        self._taken = {*RESERVED, *LIBRARY_NAMES, *taken, *map(identifier_of, self.kernels.values())}
        launches = [op for op in self.program.walk() if isinstance(op, loop.LaunchOp)]
        self.iterators = frozenset(each.iterator for each in self.program.loops())
        self.counters: dict[str, int] = {}
        for launch in launches:
            for name in self._iterators(launch):
                self.counters.setdefault(name, len(self.counters))
        self.size = len(self.counters)
        ending = self.program.ending
        self._bound = None if ending is None else ending.gives
        self._early: frozenset[Operation] = frozenset(() if ending is None else before_end(ending))
        self.levels: dict[tuple[loop.ForOp | None, bool], Level] = {}
        for each in self.program.loops():
            if each.iterator in self.counters and self._is_counted(each):
                self._level(each, late=False)
        self.places = {launch: self._place(launch) for launch in launches if self.given(launch)}

    def grid(self, launch: loop.LaunchOp) -> tuple[Expr, ...]:
        """The extents of the grid that a launch is given."""
        return launch.scalars[len(own_scalars(launch, self.kernels[launch.kernel.root_reference.data])) :]

    def given(self, launch: loop.LaunchOp) -> tuple[Expr, ...]:
        """The scalars of a launch that its kernel loads from the table."""
        name = launch.kernel.root_reference.data
        scalars = own_scalars(launch, self.kernels[name])
        return tuple(scalars[number - len(launch.buffers)] for number in self.stepped.get(name, ()))

    def plain(self, launch: loop.LaunchOp) -> tuple[Expr, ...]:
        """The scalars of a launch that are arguments."""
        name = launch.kernel.root_reference.data
        scalars, stepped = own_scalars(launch, self.kernels[name]), self.stepped.get(name, ())
        return tuple(scalar for number, scalar in enumerate(scalars, len(launch.buffers)) if number not in stepped)

    def level_of(self, each: loop.ForOp | None, *, late: bool = False) -> Level | None:
        """What is computed at the start of each step of a loop, or of the program."""
        return self.levels.get((each, late))

    def symbols(self, level: Level) -> tuple[str, ...]:
        """What the kernel of a level is told: symbols that are no counters."""
        named = {symbol for _, expression in level.entries for symbol in free_symbols(expression)}
        return tuple(sorted(named - self._inside(level).keys()))

    def _iterators(self, launch: loop.LaunchOp) -> list[str]:
        """The iterators that the scalars of a launch name, outermost first."""
        named = {symbol for scalar in self.given(launch) for symbol in free_symbols(scalar)}
        return [each.iterator for each in loop.enclosing_loops(launch) if each.iterator in named]

    def _is_counted(self, each: loop.ForOp) -> bool:
        """Whether a launch in a loop names its iterator."""
        return any(isinstance(op, loop.LaunchOp) and each.iterator in self._iterators(op) for op in each.walk())

    def _inside(self, level: Level) -> dict[str, int]:
        """The counters that a level may read: its own, and those of the loops round it."""
        if level.loop is None:
            return {}
        names = [level.loop.iterator, *(each.iterator for each in loop.enclosing_loops(level.loop))]
        return {name: self.counters[name] for name in names if name in self.counters}

    def _level(self, each: loop.ForOp | None, *, late: bool) -> Level:
        if (each, late) not in self.levels:
            name = "first_scalars" if each is None else f"next_{identifier(each.iterator)}"
            name = fresh_name(name, self._taken)
            self._taken.add(name)
            self.levels[each, late] = Level(name, each, late)
        return self.levels[each, late]

    def _place(self, launch: loop.LaunchOp) -> int:
        """Where the scalars of a launch stand: with the innermost loop whose iterator they name."""
        scalars = self.given(launch)
        named = {symbol for scalar in scalars for symbol in free_symbols(scalar)}
        owner = next((each for each in reversed(loop.enclosing_loops(launch)) if each.iterator in named), None)
        late = owner is None and self._bound in named and launch not in self._early
        level = self._level(owner, late=late)
        if scalars not in level.groups:
            level.groups[scalars] = self.size
            level.entries += enumerate(scalars, self.size)
            self.size += len(scalars)
        return level.groups[scalars]

    def before_first(self, each: loop.ForOp) -> Expr:
        """What a counter holds before the first step of its loop."""
        return simplify(each.first + each.step if each.down else each.first - each.step, PROGRAM_FACTS)

    def kernel_text(self, level: Level, hints: Mapping[str, str]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The file of the kernel of a level, its parameters after the table, and what it calls of the library; `hints`
        says what symbols are called in the driver."""
        names = Names((*LIBRARY_NAMES, f"{TABLE}_ptr", level.kernel))
        given = {symbol: names.unique(hints[symbol]) for symbol in self.symbols(level)}
        read = self._read(level)
        spelled = given | {name: names.unique(name) for name in sorted(read, key=read.__getitem__)}
        body = [f"{name} = {name}.to(tl.int64)" for name in given.values()]
        divides: list[str] = []
        for name, slot in sorted(read.items(), key=lambda item: item[1]):
            counter = f"{spelled[name]} = tl.load({TABLE}_ptr + {slot})"
            if level.loop is not None and name == level.loop.iterator:
                counter = f"{counter} {'-' if level.loop.down else '+'} {level.loop.step}"
                body += [counter, f"tl.store({TABLE}_ptr + {slot}, {spelled[name]})"]
            else:
                body.append(counter)
        for slot, expression in level.entries:
            body.append(f"tl.store({TABLE}_ptr + {slot}, {_triton_text(expression, spelled, divides)})")
        plain = f"(do_not_specialize=[{', '.join(f'{chr(34)}{name}{chr(34)}' for name in given.values())}])"
        lines = [
            "# the scalars of the program" if level.loop is None else f"# a step of {level.loop.iterator}: its scalars",
            "# grid: one program",
            f"@triton.jit{plain if given else ''}",
            f"def {level.kernel}({TABLE}_ptr{''.join(f', {name}: {chr(34)}i64{chr(34)}' for name in given.values())}):",
            *(f"{INDENT}{line}" for line in body),
        ]
        calls = tuple(sorted({*divides}))
        return "\n\n".join([file_head(calls, {}, 1, 1), "\n".join(lines) + "\n"]), (*given.values(),), calls

    def _read(self, level: Level) -> dict[str, int]:
        """The counters that the kernel of a level reads: its own, and those that its scalars name."""
        named = {symbol for _, expression in level.entries for symbol in free_symbols(expression)}
        own = set[str]() if level.loop is None else {level.loop.iterator}
        return {name: slot for name, slot in self._inside(level).items() if name in named | own}


def _triton_text(expression: Expr, names: Mapping[str, str], divides: list[str]) -> str:
    """An index expression in Triton; `divides` gathers the functions of the library that it calls."""

    def operand(part: Expr) -> str:
        """An operand of a function, of 64 bits if it is a number."""
        return f"tl.full((), {part.value}, tl.int64)" if isinstance(part, Const) else text(part)

    def called(part: Expr) -> str | None:
        match part:
            case MinMax(op, args):
                return reduce(lambda one, other: f"tl.{op}imum({one}, {other})", map(operand, args))
            case Binary("//" | "%" as op, lhs, rhs):
                if isinstance(rhs, Const) and rhs.value > 0 and at_least_zero(lhs, PROGRAM_FACTS):
                    return None
                divides.append("floor_divide" if op == "//" else "floor_modulo")
                return f"{divides[-1]}({operand(lhs)}, {operand(rhs)})"
            case _:
                return None

    def text(part: Expr) -> str:
        return expression_text(part, names, called=called)

    return text(expression)
