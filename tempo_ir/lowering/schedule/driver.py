"""Scheduling of one program: statements, the best of some orders of them, loops, and the proof that they are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice, permutations

from tempo_ir.dialects.loop import ProgramOp as LoopProgramOp
from tempo_ir.dialects.sdg import ProgramOp
from tempo_ir.index.isl import IslError, is_own_fault
from tempo_ir.lowering.bounds import check_bounds
from tempo_ir.lowering.instances import instances
from tempo_ir.lowering.proofs import proving
from tempo_ir.lowering.schedule.cost import MACHINES, Estimator
from tempo_ir.lowering.schedule.diagnosis import ScheduleError, no_order
from tempo_ir.lowering.schedule.distances import Distances
from tempo_ir.lowering.schedule.emit import loop_program
from tempo_ir.lowering.schedule.fusion import Choices
from tempo_ir.lowering.schedule.graph import Graph
from tempo_ir.lowering.schedule.isl_tree import loop_nest
from tempo_ir.lowering.schedule.legality import Claim, check_schedule
from tempo_ir.lowering.schedule.named_dims import UnorderedError, schedule
from tempo_ir.lowering.schedule.nest import Nest
from tempo_ir.lowering.schedule.order import Node
from tempo_ir.lowering.schedule.pieces import in_pieces
from tempo_ir.lowering.schedule.requests import carry_requests
from tempo_ir.lowering.schedule.statements import Statements

WORTH_IT = 0.9
"""An order must take less than this share of the time of the plain one, or the plain one stays: estimates are rough."""


@dataclass(frozen=True, slots=True)
class Options:
    """
    What a user chooses: the machine to schedule for, how many orders to try, loops apart (`Choices.apart`), and whether
    the result is proved.
    """

    target: str = "cpu"
    max_candidates: int = 4
    apart: bool = False
    check: bool = True


DEFAULTS = Options()
PLAIN = Choices()


def schedule_program(program: ProgramOp, options: Options = DEFAULTS) -> LoopProgramOp:
    """
    The loop program of an sdg program, which is left as it is.

    Raises ScheduleError where the program has no order, with the shortest cycle.
    """
    distances = Distances(program.space)
    statements, order = _asked(program, distances, Choices(apart=options.apart))
    order = _best(statements, order, distances, options)
    emitted = loop_program(statements, _nest(program, statements, order))
    if options.check:
        with proving():
            read = instances(emitted.program)
            check_bounds(emitted.program, read)
            check_schedule(emitted.program, Claim(program, emitted.origins, emitted.memory), read)
    carry_requests(program, emitted.memory)
    return emitted.program


def _nest(program: ProgramOp, statements: Statements, order: list[Node]) -> Nest:
    """The loops of an order. Raises ScheduleError where isl does not find them by a fault of its own."""
    try:
        return loop_nest(statements.graph, order)
    except IslError as error:
        if not is_own_fault(error):
            raise
        message = "isl, which makes the loops, stops at a fault of its own: leave out 'sdg-tile', or give another tile"
        raise ScheduleError(message, program) from error


def _asked(program: ProgramOp, distances: Distances, choices: Choices) -> tuple[Statements, list[Node]]:
    """The plain order, with the loops outermost that the program asks for, if there is one. Raises ScheduleError."""
    statements = Statements.of(program)
    if outermost := program.outermost:
        others = (dim for dim in program.space.names if dim not in outermost)
        try:
            return ordered(statements, distances, replace(choices, dims=(*outermost, *others)))
        except ScheduleError:
            statements = Statements.of(program)
    return ordered(statements, distances, choices)


def ordered(statements: Statements, distances: Distances, choices: Choices = PLAIN) -> tuple[Statements, list[Node]]:
    """
    The order of the statements that the choices ask for; with statements in pieces, or isl's help, where needed.

    Returns the statements as they were split, too. Raises ScheduleError where there is no order.
    """
    try:
        found = in_pieces(statements, lambda graph, resort: schedule(graph, distances, choices, resort))
    except UnorderedError as error:
        raise no_order(statements, error) from error
    return found.statements, found.order


def _best(statements: Statements, plain: list[Node], distances: Distances, options: Options) -> list[Node]:
    """The order that the cost model of the target likes best; the plain one unless another is clearly faster and keeps
    no more."""
    estimator = Estimator(statements.graph, distances, MACHINES[options.target])
    first = estimator.estimate(plain)
    best, least = plain, first.seconds * WORTH_IT
    for choices in islice(_choices(statements.graph, options.apart), options.max_candidates - 1):
        try:
            order = schedule(statements.graph, distances, choices)
        except UnorderedError:
            continue
        found = estimator.estimate(order)
        if found.seconds < least and found.peak_bytes <= first.peak_bytes:
            best, least = order, found.seconds
    return best


def _choices(graph: Graph, apart: bool) -> Iterator[Choices]:
    """What else to try: other orders of the dims that some statement has together, then loops that are not fused."""
    together = {pair for statement in graph.statements for pair in combinations(statement.dims, 2)}
    seen: set[frozenset[tuple[str, str]]] = set()
    for dims in permutations(graph.space.names):
        order = frozenset(pair for pair in combinations(dims, 2) if pair in together or pair[::-1] in together)
        if seen and order not in seen:
            yield Choices(dims=dims, apart=apart)
        seen.add(order)
    yield Choices(fuse=False)
