"""Random programs with a dim that ends by data: what they give is what the program without the end gives for as many
steps, and all ways of running them agree."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.types import element, is_bool, is_float, shape_of, tensor
from tempo_ir.index import Const, Domain, Slice, Sym, evaluate, free_symbols
from tempo_ir.index.expr import Expr
from tempo_ir.reference.dtypes import Array
from tempo_ir.reference.sdg import run
from tests.fuzz.arguments import SIZES, admissible, draw, sizes
from tests.fuzz.check import SEED, Failure, first_difference, program_of
from tests.fuzz.effects import Hosts

STOP = "stop"
"""The input that ends a dim where nothing in the program does."""


def ended(module: ModuleOp, chosen: random.Random) -> ModuleOp | None:
    """The program with an end of one of its dims, by a value of its own or by an input; None where none may end."""
    module = module.clone()
    program = program_of(module)
    dims = [dim for dim in program.space.names if may_end(program, dim)]
    chosen.shuffle(dims)
    for dim in dims:
        own = [op for op in program.body.block.ops if is_condition(op, dim)]
        for op in [*chosen.sample(own, min(3, len(own))), None]:
            candidate = module.clone()
            try:
                add_end(program_of(candidate), dim, None if op is None else list(program.body.block.ops).index(op))
                candidate.verify()
            except VerifyException:
                continue
            return candidate
    return None


def may_end(program: sdg.ProgramOp, dim: str) -> bool:
    """Whether the bound of a dim is a symbol, and what is declared of it holds of fewer steps too."""
    space, bound = program.space, program.space.bound(dim)
    if not isinstance(bound, Sym):
        return False
    for size in SIZES:
        for fewer in range(1, size):
            for other in (0, 1, 3, 8):
                bounds = dict.fromkeys(space.params, other) | {bound.name: size}
                if admissible(program, bounds) and not admissible(program, {**bounds, bound.name: fewer}):
                    return False
    return True


def is_condition(op: object, dim: str) -> bool:
    """Whether an op has a value at every point of a dim, and all of the others that it is over."""
    if not isinstance(op, sdg.SdgOp) or len(op.results) != 1 or dim not in op.domain.dims:
        return False
    result = op.results[0].type
    return not isinstance(result, sdg.TokenType) and op.domain == Domain(op.domain.dims)


def add_end(program: sdg.ProgramOp, dim: str, number: int | None) -> None:
    """End a dim where the greatest number of a value is greater than 1, or some truth is true; without an op, where an
    input says so."""
    block, domain = program.body.block, Domain((dim,))
    if number is None:
        source = sdg.InputOp(STOP, tensor(i1), domain=domain)
        assert block.first_op is not None
        block.insert_op_before(source, block.first_op)
        block.add_op(sdg.UntilOp(sdg.Access(source.result, (Sym(dim),)), domain=domain))
        return
    op = list(block.ops)[number]
    assert isinstance(op, sdg.SdgOp)
    others = {other: Slice(Const(0), program.space.bound(other)) for other in op.domain.dims if other != dim}
    found = sdg.Access(op.results[0], tuple(others.get(name, Sym(name)) for name in op.domain.dims))
    axes = range(len(shape_of(found.type)))
    if axes:
        block.add_op(greatest := sdg.MaxOp(found, axes, domain=domain))
        found = sdg.Access(greatest.result, (Sym(dim),))
    type_ = element(found.type)
    if not is_bool(type_):
        block.add_op(one := sdg.ConstantOp(1.0 if is_float(type_) else 1, tensor(type_)))
        block.add_op(more := sdg.GtOp(found, one.result, domain=domain))
        found = sdg.Access(more.result, (Sym(dim),))
    block.add_op(sdg.UntilOp(found, domain=domain))


def cut(program: sdg.ProgramOp, arguments: Mapping[str, Array], bounds: Mapping[str, int]) -> dict[str, Array]:
    """Arguments with the rows that there are for some bounds."""
    rows: dict[str, Array] = {}
    for op in program.body.block.ops:
        if isinstance(op, sdg.SourceOp):
            extents = [*(program.space.bound(dim) for dim in op.domain.dims), *shape_of(op.result.type)]
            shape = [max(0, evaluate(e, bounds)) if isinstance(e, Expr) else e for e in extents]
            rows[op.key.data] = arguments[op.key.data][tuple(slice(0, extent) for extent in shape)]
    return rows


def check_meaning(module: ModuleOp, with_end: ModuleOp) -> Iterator[int]:
    """The numbers of steps that ran, each with the outputs of the program without the end. Raises Failure."""
    program, other = program_of(module), program_of(with_end)
    until = next(op for op in other.body.block.ops if isinstance(op, sdg.UntilOp))
    (bound,) = free_symbols(other.space.bound(until.dim))
    for number, bounds in enumerate(sizes(other)):
        arguments = draw(other, bounds, number)
        if STOP in arguments:
            arguments[STOP] = np.arange(bounds[bound]) == number
        hosts, plain = Hosts(other), Hosts(program)
        found = run(other, arguments, bounds, SEED, hosts.factories())
        steps = {**bounds, bound: found.bounds[bound]}
        expected = run(program, cut(program, arguments, steps), steps, SEED, plain.factories())
        made, wanted = ([(*call[:2], call[2].tobytes()) for call in each.calls()] for each in (hosts, plain))
        if made != wanted:
            raise Failure("end", f"{len(made)} host calls at {bounds}, {steps[bound]} steps, {len(wanted)} are right")
        for key, array in expected.items():
            if found[key].shape != array.shape or found[key].tobytes() != array.tobytes():
                raise Failure("end", f"{key} at {bounds}, {steps[bound]} steps: {first_difference(found[key], array)}")
        yield steps[bound]
