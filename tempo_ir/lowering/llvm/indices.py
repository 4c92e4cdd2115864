"""Scalars of type `index`: sums where the arithmetic allows it, registers with known bounds where not."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile.attributes import element_of
from tempo_ir.dialects.tile.shape import ConstOp
from tempo_ir.lowering.llvm import elementwise
from tempo_ir.lowering.llvm.access import number_of
from tempo_ir.lowering.llvm.address import ZERO, Linear, linear, materialize, product
from tempo_ir.lowering.llvm.evaluate import Evaluator, is_index


def index_value(evaluator: Evaluator, value: SSAValue) -> Linear:
    """The result of an op that gives an `index`."""
    op, text = value.owner, evaluator.text
    if isinstance(op, ConstOp):
        return Linear(int(number_of(op.number)))
    if isinstance(op, ew.BinaryOp) and is_index(op.lhs):
        a, b = evaluator.index(op.lhs), evaluator.index(op.rhs)
        match op:
            case ew.AddOp():
                return a + b
            case ew.SubOp():
                return a - b
            case ew.MulOp():
                return product(text, a, b)
            case ew.MinOp() | ew.MaxOp():
                return _extremum(evaluator, op, a, b)
            case ew.FloorDivOp() | ew.ModOp():
                return _division(evaluator, op, a, b)
            case _:
                return _register(evaluator, op)
    if isinstance(op, ew.CastOp) and is_index(op.value):
        return evaluator.index(op.value)
    assert isinstance(op, ew.ElementwiseOp)
    return _register(evaluator, op)


def _register(evaluator: Evaluator, op: ew.ElementwiseOp) -> Linear:
    operands = [
        materialize(evaluator.text, evaluator.index(operand)) if is_index(operand) else evaluator.scalar(operand)
        for operand in op.operands
    ]
    if isinstance(op, ew.CastOp):
        return linear(elementwise.convert(operands[0], element_of(op.value), element_of(op.result)))
    return linear(elementwise.apply(op, operands))


def _extremum(evaluator: Evaluator, op: ew.MinOp | ew.MaxOp, a: Linear, b: Linear) -> Linear:
    """A register that is known to be at most (at least) both; just one of them where the order is known."""
    smaller = isinstance(op, ew.MinOp)
    difference = b - a
    if difference.is_constant:
        return a if (difference.constant >= 0) is smaller else b
    register = materialize(evaluator.text, _register(evaluator, op))
    if smaller:
        evaluator.bounds.learn(register, upper=[a, b])
    else:
        evaluator.bounds.learn(register, lower=[a, b])
    return linear(register)


def _division(evaluator: Evaluator, op: ew.FloorDivOp | ew.ModOp, a: Linear, b: Linear) -> Linear:
    if b.is_constant and b.constant > 0:
        n = b.constant
        if a.is_constant:
            return Linear(a.constant // n if isinstance(op, ew.FloorDivOp) else a.constant % n)
        if all(factor % n == 0 for factor in a.terms.values()):
            quotient = Linear(a.constant // n, {register: factor // n for register, factor in a.terms.items()})
            return quotient if isinstance(op, ew.FloorDivOp) else Linear(a.constant % n)
        register = materialize(evaluator.text, _register(evaluator, op))
        if isinstance(op, ew.ModOp):
            evaluator.bounds.learn(register, lower=[ZERO], upper=[Linear(n - 1)])
        elif evaluator.bounds.known(a):
            evaluator.bounds.learn(register, lower=[ZERO], upper=[a])
        return linear(register)
    return _register(evaluator, op)
