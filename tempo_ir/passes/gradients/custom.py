"""Gradients that the program says itself: `sdg.custom_gradient`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from tempo_ir.dialects.operation import ops_of
from tempo_ir.dialects.sdg import (
    Access,
    CotangentOp,
    CustomGradientOp,
    HostOp,
    ProgramOp,
    RequestOp,
    SdgOp,
    domain_of,
)
from tempo_ir.graphs import reachable
from tempo_ir.passes.building import GraphBuilder
from tempo_ir.passes.utilities import erase, refuse


def custom_gradients(op: CustomGradientOp, build: GraphBuilder, gradient: Access) -> dict[int, Access]:
    """The gradients of what a value was made of, by operand number: the ops that say so, copied for `gradient`.

    `gradient` is that of the value, in its full shape, at every point at which the stand-in for it is.
    """
    stand_in = op.operands[1]
    copies: dict[SSAValue, SSAValue] = {stand_in: build.at(domain_of(stand_in)).copy(gradient).value}
    wanted = [op.operands[number] for _, number in op.pairs]
    between = _between(op, wanted)
    for one in between:
        copy = one.clone()
        _insert(build, copy)
        copies.update(zip(one.results, copy.results, strict=True))
    for one in between:
        copy = copies[one.results[0]].owner
        assert isinstance(copy, Operation)
        for number, operand in enumerate(copy.operands):
            copy.operands[number] = copies.get(operand, operand)
    reads = op.accesses
    return {number: Access(copies.get(reads[by].value, reads[by].value), reads[by].index) for number, by in op.pairs}


def _insert(build: GraphBuilder, op: Operation) -> None:
    block = build.anchor.parent
    assert block is not None
    block.insert_op_before(op, build.anchor)


def _between(custom: CustomGradientOp, ends: Sequence[SSAValue]) -> list[Operation]:
    """The ops between the stand-in of a gradient and what is made of it, in the order of the program."""

    def dependents(value: SSAValue) -> Iterator[SSAValue]:
        for use in value.uses:
            if use.operation is not custom:
                yield from use.operation.results

    start = custom.operands[1]
    behind = reachable([start], dependents)
    needed = reachable(ends, lambda value: value.owner.operands if isinstance(value.owner, SdgOp) else ())
    owners = dict.fromkeys(value.owner for value in behind if value in needed and value is not start)
    block = custom.parent
    return [] if block is None else [op for op in block.ops if op in owners]


def drop_custom_gradients(program: ProgramOp) -> None:
    """Every value with a custom gradient becomes the value itself; what only its gradient was made of goes."""
    ops = list(ops_of(program.body.block))
    for op in ops:
        if isinstance(op, CustomGradientOp):
            same = GraphBuilder(op, op.domain, op.location).copy(op.accesses[0])
            for use in list(op.result.uses):
                use.operation.operands[use.index] = same.value
            erase([op])
    stand_ins = [op for op in ops if isinstance(op, CotangentOp)]
    made = reachable((op.result for op in stand_ins), _results)
    dead = dict.fromkeys(value.owner for value in made)
    for user in (use.operation for value in made for use in value.uses):
        if isinstance(user, RequestOp):
            continue  # goes with what it is about
        if isinstance(user, HostOp) or user not in dead:
            refuse(user, "this uses the gradient that a custom gradient gets: its function may only return tensors")
    erase(op for op in program.body.block.ops if op in dead)


def _results(value: SSAValue) -> Iterable[SSAValue]:
    return (result for use in value.uses for result in use.operation.results)
