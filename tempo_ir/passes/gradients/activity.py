"""What carries a gradient: the values between the leaves and the loss, in the order of the reverse pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from xdsl.ir import Operation, SSAValue, Use

from tempo_ir.dialects.sdg import (
    AccessOp,
    CustomGradientOp,
    GradOp,
    HostOp,
    MergeOp,
    SdgOp,
    StopGradientOp,
    TokenType,
    op_text,
    value_text,
)
from tempo_ir.dialects.types import element, is_float
from tempo_ir.graphs import is_cyclic, reachable, shortest_path, strongly_connected
from tempo_ir.passes.utilities import refuse


@dataclass(frozen=True)
class Problem:
    """A loss, the values that it is differentiated by, and the ops through which nothing flows.

    `cut` holds the gradients of the same loss (an update that uses one does not make it depend on itself); `leaves` are
    the values whose own definition is ignored.
    """

    loss: SSAValue
    wrt: tuple[SSAValue, ...]
    cut: frozenset[Operation] = frozenset()
    leaves: frozenset[SSAValue] = frozenset()
    active: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    positions: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def find_active(self) -> None:
        """Fill `active`: what some wrt reaches and what reaches the loss, through differentiable operands."""
        forward = reachable(self.wrt, self.dependents)
        backward = reachable([self.loss], self.dependencies)
        self.active.clear()
        self.active.update({value: None for value in forward if value in backward})

    def dependents(self, value: SSAValue) -> Iterator[SSAValue]:
        """The results that change smoothly with a value, leaves excepted."""
        for use in value.uses:
            op = use.operation
            if op in self.cut or not is_smooth(op, value):
                continue
            for result in op.results:
                if carries_gradient(result) and result not in self.leaves:
                    yield result

    def dependencies(self, value: SSAValue) -> Iterator[SSAValue]:
        """The operands with which a value changes smoothly; none of a leaf."""
        op = value.owner
        if not isinstance(op, Operation) or value in self.leaves or op in self.cut or not carries_gradient(value):
            return
        for operand in op.operands:
            if is_smooth(op, operand):
                yield operand

    def active_dependents(self, value: SSAValue) -> Iterator[SSAValue]:
        """The dependents that lie on a path to the loss."""
        return (dependent for dependent in self.dependents(value) if dependent in self.active)

    def active_uses(self, value: SSAValue) -> Iterator[tuple[AccessOp, int]]:
        """The uses of a value through which the loss depends on it, as op and operand number."""
        for use in self.sorted_uses(value):
            op = use.operation
            if op in self.cut or not isinstance(op, AccessOp) or not is_smooth(op, value):
                continue
            if any(result in self.active and result not in self.leaves for result in op.results):
                yield op, use.index

    def sorted_uses(self, value: SSAValue) -> list[Use]:
        """The uses of a value in the order of the program text, whatever the order of the use list."""
        uses = list(value.uses)
        if len(uses) < 2:
            return uses
        block = uses[0].operation.parent
        if not self.positions and block is not None:
            self.positions.update({op: number for number, op in enumerate(block.ops)})
        return sorted(uses, key=lambda use: (self.positions.get(use.operation, 0), use.index))

    def components(self) -> list[list[SSAValue]]:
        """The active values in the order of the reverse pass, those that depend on each other together."""
        return strongly_connected(self.active, self.active_dependents)

    def is_recurrent(self, component: list[SSAValue]) -> bool:
        """Whether the values of a component depend on themselves at other points."""
        return is_cyclic(component, self.active_dependents)

    def opened(self, component: list[SSAValue]) -> list[SSAValue]:
        """The values of a component without which it has no cycle: its merges, and one value of each cycle without."""
        opened = [value for value in component if isinstance(value.owner, MergeOp)]
        while True:
            left = [value for value in component if value not in opened]
            parts = strongly_connected(left, self.active_dependents)
            inner = [part for part in parts if is_cyclic(part, self.active_dependents)]
            if not inner:
                return opened
            opened += [part[0] for part in inner]

    def reverse_order(self, component: list[SSAValue], opened: frozenset[SSAValue]) -> list[SSAValue]:
        """A component in the order of the reverse pass, given that the adjoints of `opened` are known from the start.

        Raises PassFailedException where a cycle passes through none of them.
        """
        members = set(component)
        graph: dict[SSAValue, list[SSAValue]] = {
            value: [d for d in self.active_dependents(value) if d in members and d not in opened] for value in component
        }
        sorter = TopologicalSorter(graph)
        for value, dependents in graph.items():
            if value in dependents:
                assert isinstance(value.owner, Operation)
                refuse(value.owner, f"{value_text(value)} needs its own value")
        return list(sorter.static_order())

    def path(self, start: SSAValue, goal: SSAValue) -> list[SSAValue] | None:
        """A shortest differentiable path between two values."""
        return shortest_path(start, lambda value: value == goal, self.dependents)


def carries_gradient(value: SSAValue) -> bool:
    """Whether a value is made of floating-point numbers."""
    return not isinstance(value.type, TokenType) and is_float(element(value.type))


def is_smooth(op: Operation, operand: SSAValue) -> bool:
    """Whether the results of `op` may change smoothly with an operand; a host call is taken to.

    What has a custom gradient does so with what that gradient is by.
    """
    if isinstance(op, CustomGradientOp):
        return carries_gradient(operand) and any(op.operands[number] == operand for number, _ in op.pairs)
    return isinstance(op, SdgOp) and not isinstance(op, StopGradientOp) and carries_gradient(operand)


def refuse_hosts(problem: Problem) -> None:
    """Raise PassFailedException, by name, where a gradient would have to flow through a host function."""
    reached = reachable(problem.wrt, problem.dependents)
    needed = reachable([problem.loss], lambda value: _needs(problem, value))
    for value in reached:
        for use in value.uses:
            op = use.operation
            if not isinstance(op, HostOp) or op.gradient is not None or not carries_gradient(value):
                continue
            if any(result in needed for result in op.results):
                refuse(
                    op,
                    f"the gradient of {value_text(problem.loss)} would flow through the host function "
                    f"@{op.object}::@{op.method}, by its argument {value_text(value)}, and a host function has no "
                    "derivative: name the method that carries gradients back (gradient=...), or put stop_gradient "
                    "round the argument or round what the function returns",
                )


def _needs(problem: Problem, value: SSAValue) -> Iterator[SSAValue]:
    """`dependencies`, and through host calls by the token, for an earlier call may have changed the object.

    A call that says its gradient depends on its arguments alone.
    """
    yield from problem.dependencies(value)
    op = value.owner
    if isinstance(op, HostOp) and op.gradient is None:
        yield from (v for v in op.operands if carries_gradient(v) or isinstance(v.type, TokenType))
    elif isinstance(op, MergeOp) and isinstance(value.type, TokenType):
        yield from op.operands


def pending_gradients(problem: Problem) -> list[GradOp]:
    """The gradients, of other losses, that lie between the leaves and the loss and so must be expanded first."""
    found = (value.owner for value in problem.active)
    return [op for op in found if isinstance(op, GradOp)]


def path_text(values: Iterable[SSAValue]) -> str:
    """`%w -> %h (rnn.py:7) -> %loss (rnn.py:9)`."""
    return " -> ".join(value_text(value) + _line(value) for value in values)


def _line(value: SSAValue) -> str:
    text = _owner_text(value)
    return text[text.index(" (") :] if " (" in text else ""


def _owner_text(value: SSAValue) -> str:
    owner = value.owner
    return op_text(owner) if isinstance(owner, Operation) else value_text(value)
