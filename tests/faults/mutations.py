"""Random small edits of Python code: the kinds of slips that a test suite should notice."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
TWINS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "conj": "disj",
    "disj": "conj",
    "lexmin": "lexmax",
    "lexmax": "lexmin",
    "union": "intersect",
    "intersect": "union",
    "lower": "upper",
    "upper": "lower",
    "dim_min": "dim_max",
    "dim_max": "dim_min",
}
SPEAKING = (
    "refuse",
    "remark",
    "IndexExpressionError",
    "Inexact",
    "NotAffine",
    "ScheduleError",
    "VerifyException",
    "count",
)
"""Calls whose arguments are words for users."""
CONVERSIONS = ("isinstance", "next", "tuple", "list", "dict", "frozenset", "set", "cast", "iter", "lazy")


@dataclass(frozen=True)
class Mutant:
    """One edit: in `path`, the text between two offsets becomes `new`."""

    path: str
    line: int
    kind: str
    start: int
    stop: int
    new: str

    def apply(self, text: str) -> str:
        encoded = text.encode()
        return (encoded[: self.start] + self.new.encode() + encoded[self.stop :]).decode()


Proposal = tuple[ast.AST, str, str]
"""The node to replace, the kind of the edit, the new text."""


def _comparison(node: ast.AST) -> Iterator[Proposal]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                ops = [*node.ops[:number], other(), *node.ops[number + 1 :]]
                yield node, "comparison", ast.unparse(ast.Compare(node.left, ops, node.comparators))


def _constant(node: ast.AST) -> Iterator[Proposal]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield node, "truth", str(not node.value)
    elif isinstance(node.value, int):
        yield node, "constant", str(node.value + 1)
        yield node, "constant", f"({node.value - 1})" if node.value < 1 else str(node.value - 1)


def _arithmetic(node: ast.AST) -> Iterator[Proposal]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if not isinstance(node.op, ast.BitOr) or not isinstance(node.left, ast.Name | ast.Attribute):
            yield node, "operator", f"({ast.unparse(ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))})"
        if isinstance(node.op, ast.Sub | ast.FloorDiv | ast.Mod):
            yield node, "operands", f"({ast.unparse(ast.BinOp(node.right, node.op, node.left))})"


def _logic(node: ast.AST) -> Iterator[Proposal]:
    if isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield node, "and/or", f"({ast.unparse(ast.BoolOp(other, node.values))})"
        for number in range(len(node.values)):
            left = [*node.values[:number], *node.values[number + 1 :]]
            value = left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
            yield node, "dropped term", f"({ast.unparse(value)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "dropped not", f"({ast.unparse(node.operand)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield node, "dropped minus", f"({ast.unparse(node.operand)})"


def _twin(node: ast.AST) -> Iterator[Proposal]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TWINS:
        yield node.func, "twin", TWINS[node.func.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TWINS:
        yield node.func, "twin", f"{ast.unparse(node.func.value)}.{TWINS[node.func.attr]}"


def _choice(node: ast.AST) -> Iterator[Proposal]:
    if isinstance(node, ast.IfExp):
        yield node, "choice", f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
    if isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield test, "dropped filter", "True"


def _statement(node: ast.AST) -> Iterator[Proposal]:
    if isinstance(node, ast.If):
        yield node.test, "condition", "True"
        yield node.test, "condition", "False"
    if isinstance(node, ast.AugAssign | ast.Continue | ast.Break):
        yield node, "dropped statement", "pass"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "dropped statement", "pass"
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
        name, args = ast.unparse(node.value.func).split(".")[-1], node.value.args
        if name.lstrip("_").islower() and name not in CONVERSIONS and args and not isinstance(args[0], ast.Starred):
            yield node.value, "returned early", ast.unparse(args[0])


KINDS: Sequence[Callable[[ast.AST], Iterator[Proposal]]] = (
    _comparison,
    _constant,
    _arithmetic,
    _logic,
    _twin,
    _choice,
    _statement,
)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run, without annotations, texts for users and what type checkers alone see."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import):
                continue
            if isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[-1] in SPEAKING:
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.FunctionDef) and any(ast.unparse(d) == "overload" for d in child.decorator_list):
                continue
            yield child
            yield from _executed(child)


def mutants_of(path: str, text: str) -> list[Mutant]:
    """All mutants of one file that change it."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    for node in _executed(ast.parse(text)):
        for kind in KINDS:
            for place, name, new in kind(node):
                start, stop = (
                    starts[place.lineno - 1] + place.col_offset,
                    starts[place.end_lineno - 1] + place.end_col_offset,
                )
                if text.encode()[start:stop].decode() != new:
                    found.append(Mutant(path, place.lineno, name, start, stop, new))
    return found


def draw(base: Path, packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Random mutants of some packages, no two of one place; each file as often as it has places."""
    places: dict[tuple[str, int, int], list[Mutant]] = {}
    for package in packages:
        for path in sorted((base / package).rglob("*.py")):
            name = str(path.relative_to(base))
            for mutant in mutants_of(name, path.read_text()):
                places.setdefault((name, mutant.start, mutant.stop), []).append(mutant)
    generator = random.Random(seed)
    chosen = generator.sample(sorted(places), min(count, len(places)))
    return [generator.choice(places[place]) for place in chosen]
