# pyright: basic
"""
Loops and guards for an order, from isl: the order becomes a schedule tree, isl's code generator makes an AST of the
tree.

Neighbouring leaves with equal domains and shifts are one isl statement (a *group*), so that isl sees a handful of
statements however many ops a program has. Each loop of the order is a band under a mark that names it; a loop
downwards is a band of the negated dim, and its iterator is negated back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tempo_ir.index.domain import Space
from tempo_ir.index.expr import (
    FALSE,
    TRUE,
    Cond,
    Const,
    Expr,
    Index,
    Relation,
    Sym,
    Truth,
    compare,
    conj,
    disj,
    free_symbols,
    maximum,
    minimum,
)
from tempo_ir.index.isl import (
    DIM,
    AstBuild,
    AstExpr,
    AstNode,
    Id,
    MultiUnionPwAff,
    Schedule,
    ScheduleNode,
    UnionPwAff,
    UnionSet,
    UnionSetList,
    ast_expr_op_type,
    ast_expr_type,
    ast_loop_type,
    ast_node_type,
    context,
    decode,
    domain_set,
    params_set,
    prove,
    pw_aff,
)
from tempo_ir.index.rules import PROGRAM_FACTS, at_least_zero
from tempo_ir.lowering.schedule.conditions import solved
from tempo_ir.lowering.schedule.graph import Graph
from tempo_ir.lowering.schedule.nest import Call, For, If, Nest, NestNode
from tempo_ir.lowering.schedule.order import Leaf, Loop, Node, Wave, statements
from tempo_ir.names import fresh_name


def loop_nest(graph: Graph, order: Sequence[Node]) -> Nest:
    """The loops and guards that run the statements of a graph in an order."""
    grouping = _Grouping(graph)
    tree = grouping.grouped(order, {})
    if not grouping.groups:
        return Nest((), ())
    builder = _TreeBuilder(graph, grouping.groups)
    build = AstBuild.from_context(params_set(graph.space))
    node = build.node_from_schedule(builder.schedule(tree))
    reader = _AstReader(graph.space, builder.loops)
    return Nest(reader.read(node, _Scope({})), grouping.groups)


@dataclass(slots=True)
class _Grouping:
    """Replaces runs of leaves with equal domains and shifts by one leaf, whose number is that of the group."""

    graph: Graph
    groups: list[list[int]] = field(default_factory=list[list[int]])

    def grouped(self, nodes: Sequence[Node], iterations: Mapping[int, Index]) -> list[Node]:
        """The same tree over groups; `iterations` holds those of the loops outside."""
        result: list[Node] = []
        previous = None
        for node in nodes:
            if not isinstance(node, Leaf):
                result.append(self._loop(node, iterations))
                previous = None
                continue
            signature = (self.graph.statements[node.statement].domain, iterations.get(node.statement, ()))
            if signature == previous:
                self.groups[-1].append(node.statement)
                continue
            previous = signature
            result.append(Leaf(len(self.groups)))
            self.groups.append([node.statement])
        return result

    def _loop(self, loop: Loop | Wave, iterations: Mapping[int, Index]) -> Loop | Wave:
        numbers = list(statements(loop.body))
        inner = {number: (*iterations.get(number, ()), loop.iteration(number)) for number in numbers}
        body = self.grouped(loop.body, inner)
        first = {group: self.groups[group][0] for group in statements(body)}
        if isinstance(loop, Wave):
            return Wave({group: loop.iterations[number] for group, number in first.items()}, body)
        shifts = {group: loop.shifts[number] for group, number in first.items()}
        still = frozenset(group for group, number in first.items() if number in loop.still)
        return Loop(loop.dim, loop.direction, shifts, body, still, loop.gives)


class _TreeBuilder:
    """Builds the isl schedule tree of an order over groups."""

    def __init__(self, graph: Graph, groups: Sequence[Sequence[int]]) -> None:
        self.loops: list[Loop | Wave] = []
        self._space = graph.space
        self._domains = [graph.statements[group[0]].domain for group in groups]
        self._sets = [domain_set(graph.space, domain, f"G{number}") for number, domain in enumerate(self._domains)]

    def schedule(self, nodes: Sequence[Node]) -> Schedule:
        """The schedule of the whole tree."""
        root = Schedule.from_domain(self._union(statements(nodes))).get_root()
        return self._sequence(root.child(0), nodes).get_schedule()

    def _union(self, groups: Iterator[int]) -> UnionSet:
        union = UnionSet.from_set(self._sets[next(groups)])
        for group in groups:
            union = union.union(UnionSet.from_set(self._sets[group]))
        return union

    def _sequence(self, place: ScheduleNode, nodes: Sequence[Node]) -> ScheduleNode:
        """The tree with some nodes, one after another, put at a leaf of it; returns that place."""
        if len(nodes) == 1:
            return self._node(place, nodes[0])
        filters = UnionSetList.alloc(context(), len(nodes))
        for node in nodes:
            filters = filters.add(self._union(statements([node])))
        place = place.insert_sequence(filters)
        for position, node in enumerate(nodes):
            place = self._node(place.child(position).child(0), node).parent().parent()
        return place

    def _node(self, place: ScheduleNode, node: Node) -> ScheduleNode:
        if isinstance(node, Leaf):
            return place
        # atomic: a body stands in the code once, guarded; isl would otherwise peel iterations off
        place = place.insert_partial_schedule(self._band(node)).band_member_set_ast_loop_type(0, ast_loop_type.atomic)
        place = place.insert_mark(Id.read_from_str(context(), f"L{len(self.loops)}"))
        self.loops.append(node)
        return self._sequence(place.child(0).child(0), node.body).parent().parent()

    def _band(self, loop: Loop | Wave) -> MultiUnionPwAff:
        """The iteration of each group's points: `[{ G0[t] -> [(t)]; G1[t] -> [(t + 3)] }]`."""
        groups = statements(loop.body)
        whole = self._iteration(loop, next(groups))
        for group in groups:
            whole = whole.union_add(self._iteration(loop, group))
        return MultiUnionPwAff.from_union_pw_aff(whole)

    def _iteration(self, loop: Loop | Wave, group: int) -> UnionPwAff:
        function = pw_aff(self._space, self._domains[group].dims, loop.iteration(group))
        return UnionPwAff.from_pw_aff(function.set_tuple_id(DIM.in_, Id.read_from_str(context(), f"G{group}")))


@dataclass(frozen=True, slots=True)
class _Scope:
    """
    Where the reader is: what isl's iterators stand for, the iterators of ours in scope, the loop that comes next, and
    what the guards outside have decided of conditions inside expressions.
    """

    names: Mapping[str, Expr]
    iterators: tuple[str, ...] = ()
    loop: Loop | Wave | None = None
    decided: tuple[tuple[Cond, bool], ...] = ()


class _UndecidedError(Exception):
    """An expression has a value that depends on a condition, which index expressions cannot say: a guard must."""

    def __init__(self, condition: Cond):
        super().__init__(str(condition))
        self.condition = condition


@dataclass(frozen=True, slots=True)
class _AstReader:
    """Reads isl's AST; `loops` are those that its marks name."""

    space: Space
    loops: Sequence[Loop | Wave]

    def read(self, node: AstNode, scope: _Scope) -> tuple[NestNode, ...]:
        """The nest of an AST node, which may be a block; guarded twice where its expressions depend on a condition."""
        try:
            return self._read(node, scope)
        except _UndecidedError as undecided:
            condition = undecided.condition
        parts = [
            self.read(node, replace(scope, decided=(*scope.decided, (condition, holds)))) for holds in (True, False)
        ]
        return (If(solved(condition, scope.iterators), *parts),)

    def _read(self, node: AstNode, scope: _Scope) -> tuple[NestNode, ...]:
        kind = ast_node_type(node.get_type()).name
        if kind == "block":
            children = node.block_get_children()
            nodes = (children.get_at(number) for number in range(children.n_ast_node()))
            return tuple(inner for child in nodes for inner in self.read(child, scope))
        if kind == "mark":
            marked = self.loops[int(node.mark_get_id().get_name()[1:])]
            return self.read(node.mark_get_node(), replace(scope, loop=marked))
        if kind == "for_":
            return self._for(node, scope)
        if kind == "if_":
            otherwise = self.read(node.if_get_else_node(), scope) if node.if_has_else_node() else ()
            condition = solved(self._cond(node.if_get_cond(), scope), scope.iterators)
            return (If(condition, self.read(node.if_get_then_node(), scope), otherwise),)
        call = node.user_get_expr()
        point = tuple(self._expr(call.get_op_arg(number), scope) for number in range(1, call.get_op_n_arg()))
        return (Call(int(call.get_op_arg(0).get_id().get_name()[1:]), point),)

    def _for(self, node: AstNode, scope: _Scope) -> tuple[NestNode, ...]:
        counter = node.for_get_iterator().get_id().get_name()
        first = self._expr(node.for_get_init(), scope)
        if node.for_is_degenerate():
            return self.read(node.for_get_body(), replace(scope, names={**scope.names, counter: first}, loop=None))
        condition = node.for_get_cond()
        end = self._expr(condition.get_op_arg(1), scope)
        if _operation(condition) == "le":
            end = end + 1
        named = scope.loop if isinstance(scope.loop, Loop) else None
        iterator = fresh_name("wave" if named is None else named.dim, {*scope.iterators, *self.space.params})
        down = named is not None and named.direction == -1
        lower, upper = (1 - end, 1 - first) if down else (first, end)
        base = Const(0) if self._is_natural(lower) else lower
        value = -(base + Sym(iterator)) if down else base + Sym(iterator)
        names, iterators = {**scope.names, counter: value}, (*scope.iterators, iterator)
        body = self.read(node.for_get_body(), _Scope(names, iterators, None, scope.decided))
        step = node.for_get_inc().get_val().to_python()
        if down and step > 1:
            # steps count from the first iteration, which is the last one in the range: begin the range at one
            lower = lower + (upper - 1 - lower) % step
        gives = None if named is None else named.gives
        return (For(iterator, lower - base, upper - base, step, down, body, gives),)

    def _is_natural(self, lower: Expr) -> bool:
        """Whether a loop from `lower` has no negative iterations: all that follows takes names to be at least 0."""
        if at_least_zero(lower, PROGRAM_FACTS):
            return True
        return free_symbols(lower) <= set(self.space.params) and prove(compare(">=", lower, 0), self.space)

    def _cond(self, expression: AstExpr, scope: _Scope) -> Cond:
        if expression.get_type() == ast_expr_type.int:
            return TRUE if expression.get_val().to_python() else FALSE
        operation = _operation(expression)
        arguments = [expression.get_op_arg(n) for n in range(expression.get_op_n_arg())]
        if operation in ("and_", "and_then"):
            return conj(*(self._cond(argument, scope) for argument in arguments))
        if operation in ("or_", "or_else"):
            return disj(*(self._cond(argument, scope) for argument in arguments))
        left, right = (self._expr(argument, scope) for argument in arguments)
        return compare(_RELATIONS[operation], left, right)

    def _expr(self, expression: AstExpr, scope: _Scope) -> Expr:
        kind = expression.get_type()
        if kind == ast_expr_type.id:
            name = expression.get_id().get_name()
            return scope.names[name] if name in scope.names else decode(name)
        if kind == ast_expr_type.int:
            return Const(expression.get_val().to_python())
        if _operation(expression) in ("cond", "select"):
            return self._choice(expression, scope)
        arguments = [self._expr(expression.get_op_arg(n), scope) for n in range(expression.get_op_n_arg())]
        return _EXPRESSIONS[_operation(expression)](*arguments)

    def _choice(self, expression: AstExpr, scope: _Scope) -> Expr:
        condition = self._cond(expression.get_op_arg(0), scope)
        holds = condition.value if isinstance(condition, Truth) else dict(scope.decided).get(condition)
        if holds is None:
            raise _UndecidedError(condition)
        return self._expr(expression.get_op_arg(1 if holds else 2), scope)


_RELATIONS: Mapping[str, Relation] = {"eq": "=", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}
_EXPRESSIONS: Mapping[str, Callable[..., Expr]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "minus": lambda value: -value,
    "div": lambda left, right: left // right,
    "fdiv_q": lambda left, right: left // right,
    "pdiv_q": lambda left, right: left // right,
    "pdiv_r": lambda left, right: left % right,
    "zdiv_r": lambda left, right: left % right,
    "min": minimum,
    "max": maximum,
}


def _operation(expression: AstExpr) -> str:
    """The name of isl's operation, as in `and_then`."""
    return ast_expr_op_type(expression.get_op_type()).name
