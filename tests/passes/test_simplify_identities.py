"""Every row of the tables of identities, on every element type it is said of, for every kind of number there is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from xdsl.ir import Attribute
from xdsl.utils.test_value import create_ssa_value

from tempo_ir.dialects.sdg import NO_DIMS, BinaryOp, NegOp, NotOp, UnaryOp
from tempo_ir.dialects.types import DTYPES, dtype_name, element, tensor
from tempo_ir.passes.simplify.identities import (
    NEGATED,
    NESTED,
    WITH_ITSELF,
    WITH_NUMBER,
    Nested,
    Number,
    WithItself,
    WithNumber,
    X,
    kind_of,
)
from tempo_ir.reference.dtypes import Array, numpy_dtype
from tempo_ir.reference.operations import evaluate


def values(element_type: Attribute, finite: bool) -> Array:
    """All of the 8-bit types and bool; of the others zeros, ones, fractions, denormals, extremes, NaN, infinities."""
    dtype = numpy_dtype(element_type)
    kind = kind_of(element_type)
    if kind == "bool":
        return np.array([False, True])
    if kind != "float":
        limits = np.iinfo(dtype)
        if dtype.itemsize == 1:
            return np.arange(limits.min, limits.max + 1).astype(dtype)
        ends = [limits.min, limits.min + 1, -7, -2, -1, 0, 1, 2, 3, 1 << 8, limits.max - 1, limits.max]
        return np.array(ends, dtype)
    if dtype.itemsize == 2:  # every bit pattern
        every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    else:
        info = np.finfo(dtype)
        some = [
            0.0,
            -0.0,
            0.5,
            1,
            1.5,
            2.5,
            3,
            1e4,
            info.max,
            info.tiny,
            info.smallest_subnormal,
            np.inf,
            np.nan,
            1 / 3,
        ]
        every = np.array([*some, *(-value for value in some)], dtype)
    return every[np.isfinite(every.astype(np.float64))] if finite else every


def types_of(row: WithNumber | WithItself | Nested) -> list[Attribute]:
    return [each for each in DTYPES.values() if kind_of(each) in row.kinds]


def applied(op: type[UnaryOp | BinaryOp], *operands: Array, element_type: Attribute) -> tuple[Array, Attribute]:
    """What an op makes of arrays of an element type, and the element type of that."""
    reads = [create_ssa_value(tensor(element_type, operand.shape)) for operand in operands]
    built = op(*reads, domain=NO_DIMS)
    return evaluate(built, operands, {})[0], element(built.results[0].type)


def same(found: Array, expected: Array) -> bool:
    """Equal, whatever the sign of a zero."""
    return np.array_equal(*np.broadcast_arrays(found, expected), equal_nan=found.dtype.kind not in "biu")


def full(number: bool | float, like: Array) -> Array:
    return np.full(like.shape, number).astype(like.dtype)


def row_id(row: WithNumber | WithItself | Nested) -> str:
    parts = [getattr(part, "name", part) for part in vars(row).values() if not isinstance(part, frozenset)]
    return " ".join(str(part) for part in parts)


def result_of(row: WithNumber | WithItself, x: Array, element_type: Attribute, made: Attribute) -> Array:
    if isinstance(row.result, Number):
        number = row.result.of(made)
        assert number is not None
        return full(number, np.empty(x.shape, numpy_dtype(made)))
    if row.result is X:
        return x
    return applied(NegOp if row.result is NEGATED else NotOp, x, element_type=element_type)[0]


@pytest.mark.parametrize("row", WITH_NUMBER, ids=row_id)
def test_with_a_number(row: WithNumber):
    tried = 0
    for element_type in types_of(row):
        number = row.number.of(element_type)
        if number is None:
            continue
        x = values(element_type, finite=row.fast_math)
        if row.fast_math and row.side == "left":
            x = x[x != 0]  # 0 / 0 is no finite number
        constant = full(number, x)
        sides = {"left": [(constant, x)], "right": [(x, constant)], "either": [(constant, x), (x, constant)]}
        for operands in sides[row.side]:
            found, made = applied(row.op, *operands, element_type=element_type)
            assert same(found, result_of(row, x, element_type, made)), dtype_name(element_type)
            tried += 1
    assert tried


@pytest.mark.parametrize("row", WITH_ITSELF, ids=row_id)
def test_with_itself(row: WithItself):
    for element_type in types_of(row):
        x = values(element_type, finite=row.fast_math)
        x = x[x != 0] if row.fast_math and row.op.name == "sdg.div" else x
        found, made = applied(row.op, x, x, element_type=element_type)
        assert same(found, result_of(row, x, element_type, made)), dtype_name(element_type)


@pytest.mark.parametrize("row", NESTED, ids=row_id)
def test_nested(row: Nested):
    for element_type in types_of(row):
        x = values(element_type, finite=row.fast_math)
        if row.fast_math:  # exp and log of what neither loses, to rounding
            x = np.array([-2, -1, 0, 0.5, 1, 2], x.dtype)
        inner, _ = applied(row.inner, x, element_type=element_type)
        outer, _ = applied(row.outer, inner, element_type=element_type)
        expected = {"x": x, "inner": inner, "outer": applied(row.outer, x, element_type=element_type)[0]}[row.result]
        if row.fast_math:
            np.testing.assert_allclose(outer.astype(np.float64), expected.astype(np.float64), 0.05, 0.05)
        else:
            assert same(outer, expected), dtype_name(element_type)


EVERYWHERE: Sequence[WithNumber | WithItself] = (*WITH_NUMBER, *WITH_ITSELF)


def test_what_is_said_of_finite_numbers_alone_is_true_of_no_others():
    """A row under `fast_math` fails somewhere: else it should not be under it."""
    for row in EVERYWHERE:
        if not row.fast_math:
            continue
        x = values(DTYPES["f32"], finite=False)
        number = row.number.of(DTYPES["f32"]) if isinstance(row, WithNumber) else None
        constant = x if number is None else full(number, x)
        left = isinstance(row, WithNumber) and row.side == "left"
        found, made = applied(row.op, *((constant, x) if left else (x, constant)), element_type=DTYPES["f32"])
        assert not same(found, result_of(row, x, DTYPES["f32"], made)), row_id(row)


def test_casts_that_are_joined():
    """A cast by way of another type is the cast at once, for every value."""
    from tempo_ir.passes.simplify.elementwise import is_one_cast
    from tempo_ir.reference.operations import cast

    joined = 0
    for source, between, target in product(DTYPES, repeat=3):
        if not is_one_cast(source, between, target):
            continue
        x = values(DTYPES[source], finite=False)
        types = [numpy_dtype(DTYPES[name]) for name in (between, target)]
        with np.errstate(all="ignore"):
            assert same(cast(cast(x, types[0]), types[1]), cast(x, types[1])), (source, between, target)
        joined += 1
    assert joined > 100
