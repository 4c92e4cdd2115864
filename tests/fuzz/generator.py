"""One random program per seed: dims, inputs, random steps, gradients, outputs; only what the verifier accepts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access, causality
from tempo_ir.dialects.sdg.preconditions import settle
from tempo_ir.dialects.sdg.reads import program_ops
from tempo_ir.dialects.types import dtype, tensor
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import Compare, Cond, Const, Entry, Expr, IndexExpressionError, Sym, conj, free_symbols
from tests.fuzz import effects, elementwise, recurrences, tensors
from tests.fuzz.arguments import sizes
from tests.fuzz.builder import Builder, NotHere
from tests.fuzz.values import WILD, Numbers, Value, coarsest

Step = Callable[[Builder], Value]
STEPS: tuple[tuple[int, Step], ...] = (
    (6, elementwise.unary),
    (8, elementwise.binary),
    (2, elementwise.divided),
    (3, elementwise.compared),
    (3, elementwise.selected),
    (3, elementwise.cast),
    (1, elementwise.stopped),
    (8, tensors.reduced),
    (3, tensors.scanned),
    (3, tensors.softmax),
    (5, tensors.contracted),
    (2, tensors.reshaped),
    (2, tensors.broadcast),
    (2, tensors.transposed),
    (2, tensors.sliced),
    (2, tensors.padded),
    (2, tensors.joined),
    (2, tensors.turned),
    (2, tensors.ordered),
    (3, tensors.gathered),
    (2, tensors.scattered),
    (1, tensors.one_hot),
    (6, recurrences.merged),
    (12, recurrences.recurrence),
    (6, recurrences.mutual),
    (2, effects.hosted),
    (2, effects.state),
)
FURTHER: tuple[tuple[int, Step], ...] = (
    *STEPS,
    (6, tensors.of_two_letters),
    (6, recurrences.partly_shown),
    (6, effects.exchanged),
)
"""Steps for seeds that no test counts on: those of the tests keep their programs when a step is added here."""
MOST_ATTEMPTS = 200


class Refused(Exception):
    """An attempt that made no valid program."""


def generate(seed: int | str, steps: int = 12, table: Sequence[tuple[int, Step]] = STEPS) -> ModuleOp:
    """The program of a seed: verified, domains narrowed, preconditions stated. The same under any PYTHONHASHSEED.

    `table` holds the steps it is made of, with their weights.
    """
    for attempt in range(MOST_ATTEMPTS):
        try:
            return attempted(random.Random(f"{seed}/{attempt}"), steps, table)
        except Refused:
            continue
    raise RuntimeError(f"no valid program for seed {seed} in {MOST_ATTEMPTS} attempts")


def attempted(chosen: random.Random, steps: int, table: Sequence[tuple[int, Step]]) -> ModuleOp:
    """One attempt. Raises Refused where the verifier refuses the program, or nothing is left of it."""
    b = Builder(chosen, random_space(chosen))
    sources(b)
    count = chosen.randint(min(2, steps), steps)
    weights = [weight for weight, _ in table]
    functions = [step for _, step in table]
    made = 0
    for _ in range(4 * steps):
        (step,) = chosen.choices(functions, weights)
        try:
            step(b)
        except (NotHere, VerifyException):
            continue
        made += 1
        if made == count:
            break
    finish(b)
    program = sdg.ProgramOp("random", b.space, Region(b.block))
    module = ModuleOp([program])
    try:
        settle(program)
        module.verify()
    except (VerifyException, IndexExpressionError) as error:
        raise Refused(str(error)) from error
    if needs_itself(program):
        raise Refused("a value needs itself")
    return module


def needs_itself(program: sdg.ProgramOp) -> bool:
    """Whether a point needs itself at a size at which the program will run; the verifier looks at a few small ones."""
    ops = program_ops(program)
    edges = [edge for op in ops for edge in causality.edges_of(op)]
    tried = sizes(program)
    for component, inside in causality.cyclic_components(ops, edges):
        if causality.is_ordered(component, inside, program.space):
            continue
        outgoing = {op: [edge for edge in inside if edge.consumer is op] for op in component}
        if any(causality.cycle_of_points(component, outgoing, program.space, bounds) is not None for bounds in tried):
            return True
    return False


# ---- the frame ----


def random_space(chosen: random.Random) -> Space:
    """One to three dims; bounds of their own, shared, fixed, or made of others; perhaps a bound below another."""
    names = chosen.choice([("t",), ("t",), ("i", "t"), ("i", "t"), ("b", "t"), ("b", "i", "t")])
    dims: list[tuple[str, Expr]] = []
    for name in names:
        own: Expr = Sym(name.upper())
        bound = own
        draw = chosen.random()
        if dims and draw < 0.12:
            bound = dims[0][1]
        elif draw < 0.2:
            bound = Const(chosen.randint(1, 4))
        elif draw < 0.26:
            bound = chosen.choice([own + 1, own * 2, own // 2])
        dims.append((name, bound))
    where: list[Cond] = []
    symbols = [bound for _, bound in dims if isinstance(bound, Sym)]
    if symbols and chosen.random() < 0.3:
        where.append(Compare("<=", Sym("P"), chosen.choice(symbols)))
    if symbols and chosen.random() < 0.15:
        where.append(Compare(">=", chosen.choice(symbols), Const(chosen.randint(1, 2))))
    return Space(tuple(dims), conj(*where))


def sources(b: Builder) -> None:
    """Inputs over some dims, a parameter or two, an index, random numbers."""
    width = b.random.choice([1, 2, 3, 3, 5])
    shapes: list[list[int | Expr]] = [[], [], [width], [width], [width, width], [b.extent()], [2, width]]
    main = b.random.choice(["f32", "f32", "f32", "f64", "f64", "bf16", "f16"])
    for number in range(b.random.randint(2, 4)):
        name = b.random.choice([main, main, main, "i64", "bool", "f32"])
        shape = b.random.choice(shapes)
        if b.chance(0.08):
            shape = [b.space.bound(b.random.choice(b.space.names)), *shape[:1]]
        type_ = tensor(dtype(name), shape)
        if b.chance(0.2) and number and all(isinstance(extent, int) for extent in shape):
            op = sdg.ParameterOp(f"w{number}", type_)
        else:
            op = sdg.InputOp(f"x{number}", type_, domain=Domain(b.some_dims()))
        b.add(op, input_numbers(name))
    if b.chance(0.3):
        b.add(sdg.ParameterOp("square", tensor(dtype(main), [width, width])), input_numbers(main))
    if b.chance(0.3):
        dim = b.random.choice(b.space.names)
        expression = b.random.choice([Sym(dim), Sym(dim) % 3, b.space.bound(dim) - Sym(dim), Sym(dim) * 2 - 3])
        used = b.space.order(free_symbols(expression))
        b.add(sdg.IndexOp(expression, domain=Domain(used)), WILD)
    if b.chance(0.2):
        kind = b.random.choice(["uniform", "uniform", "normal", "bits"])
        drawn = tensor(dtype("i64" if kind == "bits" else main), b.random.choice([[], [width], [3]]))
        op = sdg.RandomOp(kind, b.random.randint(0, 99), drawn, domain=Domain(b.some_dims()))
        grid = None if kind == "normal" or main != "f32" else 20
        b.add(op, WILD if kind == "bits" else Numbers(-7, 7, None) if kind == "normal" else Numbers(0, 1, grid))


def input_numbers(name: str) -> Numbers:
    """What `arguments.draw` gives: floats in quarters up to 3."""
    return {"bool": Numbers(0, 1), "i64": Numbers(-4, 4)}.get(name, Numbers(-3, 3, 2))


def finish(b: Builder) -> None:
    """Gradients of a loss for some programs, and the outputs."""
    floats = [v for v in b.values if v.is_float and not isinstance(v.ssa.owner, sdg.SourceOp)]
    gradients: list[Value] = []
    if floats and b.chance(0.3):
        gradients = differentiated(b, floats)
        if gradients and b.chance(0.15):
            gradients += differentiated(b, gradients)
    made = [v for v in b.values if not isinstance(v.ssa.owner, sdg.SourceOp)] or b.values
    # what nothing else reads, and the last
    ends = [v for v in made if not v.ssa.uses] or made
    chosen = dict.fromkeys([ends[-1], *b.random.sample(ends, min(len(ends), b.random.randint(1, 3))), *gradients[-3:]])
    for number, value in enumerate(chosen):
        output(b, value, number)


def differentiated(b: Builder, floats: list[Value]) -> list[Value]:
    """`sdg.grad` of the sum of a value or two, by the inputs and parameters of its element type and others."""
    loss: Value | None = None
    for value in dict.fromkeys([floats[-1], b.random.choice(floats)]):
        term = scalar_loss(b, value)
        if loss is None or term.type != loss.type:
            loss = term
            continue
        accesses = (b.at(loss), b.at(term))
        loss = b.place(sdg.AddOp(*accesses, domain=b.domain(*accesses)), term.numbers)
    assert loss is not None
    made: list[Value] = []
    for value in [v for v in b.values if isinstance(v.ssa.owner, sdg.SourceOp) and v.is_float]:
        op = sdg.GradOp(loss.ssa, value.ssa, allow_unused=True)
        made.append(b.place(op, Numbers(-(10.0**4), 10.0**4, None, coarsest([v.numbers for v in b.values]))))
    return made


def scalar_loss(b: Builder, value: Value) -> Value:
    """The value with all axes summed."""
    if not value.shape:
        return value
    op = sdg.SumOp(b.at(value), list(range(len(value.shape))), domain=Domain(value.dims))
    return b.place(op, Numbers(-(10.0**3), 10.0**3, None, value.numbers.rounding))


def output(b: Builder, value: Value, number: int) -> None:
    """An output named by how it may differ: `exact0`, `half1` (rounding of f16 and bf16), `single2`, `double3`."""
    access, numbers = b.flat(b.at(value), value.numbers)
    access, domain = _output_read(b, Value(access.value, numbers))
    # what is read may be a merge that guards the read
    numbers = next((v.numbers for v in b.values if v.ssa is access.value), numbers)
    flat = Value(access.value, numbers)
    kind = "exact" if flat.is_exact else numbers.rounding.name.lower()
    b.block.add_op(sdg.OutputOp(f"{kind}{number}", access, domain=domain))


def _output_read(b: Builder, value: Value) -> tuple[Access, Domain]:
    """All points, mostly; else one row, a range, or the points where a condition holds."""
    draw = b.random.random()
    if draw < 0.6 or not value.dims:
        return b.at(value), Domain(value.dims)
    dim = b.random.choice(value.dims)
    bound = b.space.bound(dim)
    if draw < 0.7:
        shift = b.random.randint(1, 2)
        if b.chance(0.5):
            return b.at(value), Domain(value.dims, ((dim, Const(shift), bound),))
        entries: list[Entry] = [Sym(name) + shift if name == dim else Sym(name) for name in value.dims]
        return b.at(value, *entries), Domain(value.dims, ((dim, Const(0), bound - shift),))
    if draw < 0.8:
        return b.at(value), Domain(value.dims, (), recurrences.random_condition(b, value.dims))
    access = b.read(value, steady=True)
    return access, b.domain(access)


def text_of(module: ModuleOp) -> str:
    """The program as an .mlir file."""
    return str(module) + "\n"
