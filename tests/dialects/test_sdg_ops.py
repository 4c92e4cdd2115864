"""Constructors of sdg ops, inferred types, attributes, locations."""

from __future__ import annotations

import pytest
from sdg_support import generic_text, parse_module, parse_program
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FusedLoc,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
    f32,
    i1,
    i64,
)
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.types import dtype, shape_of, tensor
from tempo_ir.index import cond, domain, expr, index

T = domain("(t)")
NOW = index("[t]")


@pytest.fixture
def x() -> sdg.Access:
    return sdg.Access(sdg.InputOp("x", tensor(f32, [4, 8]), domain=T).result, NOW)


@pytest.fixture
def n() -> sdg.Access:
    return sdg.Access(sdg.InputOp("n", tensor(i64, [4]), domain=T).result, NOW)


def test_elementwise_ops_broadcast(x) -> None:
    row = sdg.ParameterOp("r", tensor(f32, [8])).result
    assert shape_of(sdg.AddOp(x, row, domain=T).result.type) == (4, 8)
    assert sdg.LtOp(x, row, domain=T).result.type == tensor(i1, [4, 8])
    assert sdg.CastOp(x, dtype("bf16"), domain=T).result.type == tensor(dtype("bf16"), [4, 8])
    mask = sdg.GtOp(row, row, domain=T).result
    assert sdg.SelectOp(sdg.Access(mask, NOW), x, row, domain=T).result.type == tensor(f32, [4, 8])


def test_reductions_drop_axes(x) -> None:
    past = sdg.Access(x.value, index("[0:t + 1]"))
    assert sdg.SumOp(past, [0, 2], domain=T).result.type == tensor(f32, [4])
    assert shape_of(sdg.MeanOp(past, [1], domain=T).result.type) == (expr("t + 1"), 8)
    assert sdg.ArgmaxOp(x, 1, domain=T).result.type == tensor(i64, [4])
    assert sdg.CumsumOp(x, 0, reverse=True, domain=T).reverse
    assert sdg.SoftmaxOp(x, 1, domain=T).axis == 1


def test_contractions(x) -> None:
    w = sdg.ParameterOp("w", tensor(f32, [8, 2])).result
    assert sdg.ContractOp("bk,kn->bn", x, w, domain=T).result.type == tensor(f32, [4, 2])
    assert sdg.ContractOp("bk->", x, domain=T).result.type == tensor(f32)
    past = sdg.Access(x.value, index("[max(0, t - 3):t + 1]"))
    assert shape_of(sdg.ContractOp("bk,nbk->n", x, past, domain=T).result.type) == (expr("min(t + 1, 4)"),)
    for wrong in ("bk,kn->bm", "bk,kn", "bk->bb", "b.->b"):
        with pytest.raises(VerifyException):
            sdg.ContractOp(wrong, x, w, domain=T)


def test_shape_ops(x, n) -> None:
    assert shape_of(sdg.ReshapeOp(x, [2, 16], domain=T).result.type) == (2, 16)
    assert shape_of(sdg.TransposeOp(x, [1, 0], domain=T).result.type) == (8, 4)
    assert shape_of(sdg.BroadcastOp(x, [3, 4, 8], domain=T).result.type) == (3, 4, 8)
    assert shape_of(sdg.SliceOp(x, index("[1:3, 0]"), domain=T).result.type) == (2,)
    assert shape_of(sdg.PadOp(x, [0, 1], [1, expr("t")], 0.0, domain=T).result.type) == (5, expr("t + 9"))
    assert shape_of(sdg.ConcatOp(x, x, x, axis=1, domain=T).result.type) == (4, 24)
    assert shape_of(sdg.GatherOp(x, n, 1, domain=T).result.type) == (4, 4)
    assert shape_of(sdg.ScatterAddOp(n, x, 0, shape=[10, 8], domain=T).result.type) == (10, 8)
    assert shape_of(sdg.OneHotOp(n, 5, domain=T).result.type) == (4, 5)
    assert sdg.ArgsortOp(x, 0, descending=True, domain=T).result.type == tensor(i64, [4, 8])
    with pytest.raises(VerifyException, match=r"sdg.scatter_add: updates \(4, 8\) where \(4, 9\) is needed"):
        sdg.ScatterAddOp(n, x, 0, shape=[10, 9], domain=T)


def test_reshape_of_a_dynamic_extent(x) -> None:
    past = sdg.Access(x.value, index("[0:t + 1]"))
    assert shape_of(sdg.ReshapeOp(past, [expr("t + 1"), 32], domain=T).result.type) == (expr("t + 1"), 32)
    flat = sdg.ReshapeOp(past, [expr("32 * t + 32")], domain=T)
    assert shape_of(flat.result.type) == (expr("32 * t + 32"),)


def test_constants_are_written_in_their_dtype() -> None:
    assert str(sdg.ConstantOp(1, tensor(f32)).value) == "1.0"
    assert sdg.ConstantOp(1, tensor(i1)).number is True
    assert sdg.ConstantOp(2.0, tensor(i64)).number == 2
    dense = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [2]), [1, 2])
    assert sdg.ConstantOp(dense, tensor(i64, [2])).number is None
    with pytest.raises(VerifyException, match="300 does not fit dtype u8"):
        sdg.ConstantOp(300, tensor(dtype("u8")))


def test_numbers_are_equal_if_they_print_alike() -> None:
    nan = sdg.NumberAttr(float("nan"))
    assert nan == sdg.NumberAttr(float("nan"))
    assert hash(nan) == hash(sdg.NumberAttr(float("nan")))
    assert len({sdg.NumberAttr(value) for value in (0, 0.0, -0.0, False, 1, True, 1.0)}) == 7
    assert [str(sdg.NumberAttr(value)) for value in (1e-5, -1e30, 0.1, float("-inf"))] == [
        "1.0e-05",
        "-1.0e+30",
        "0.1",
        "-inf",
    ]


def test_accesses_are_replaced_in_place(x) -> None:
    other = sdg.InputOp("y", tensor(f32, [4, 8]), domain=T)
    add = sdg.AddOp(x, x, domain=T)
    add.with_access(1, other.result, index("[t - 1]"))
    assert [str(access.index[0]) for access in add.accesses] == ["t", "t - 1"]
    assert add.rhs is other.result
    assert not any(use.operation is add and use.index == 1 for use in x.value.uses)


def test_cases_of_a_merge_are_set_later(x) -> None:
    merge = sdg.MergeOp(domain=T, result_type=tensor(f32, [4, 8]))
    merge.set_cases([(cond("t = 0"), sdg.Access(x.value, index("[0]"))), (cond("t > 0"), x)])
    assert len(merge.conds) == len(merge.accesses) == 2
    assert str(merge.case_domain(1)) == "(t where t ne 0 and t > 0)"


def test_locations_have_a_text() -> None:
    here = sdg.file_location("model.py", 12, 4)
    op = sdg.ParameterOp("w", tensor(f32), location=here)
    assert op.location == here
    assert sdg.location_text(NameLoc(StringAttr("w"), here)) == "model.py:12"
    assert sdg.location_text(FusedLoc(ArrayAttr([UNKNOWN_LOC, here]), NoneAttr())) == "model.py:12"
    assert sdg.location_text(UNKNOWN_LOC) == ""
    op.result.name_hint = "w"
    assert sdg.op_text(op) == "sdg.parameter %w (model.py:12)"


def test_errors_know_their_op_and_line() -> None:
    program = parse_program('sdg.program @p dims(t: T) { %x = sdg.input "x" in (t) : tensor<f32> }')
    (source,) = program.body.ops
    read = sdg.NegOp(
        sdg.Access(source.results[0], index("[t - 1]")), domain=T, location=sdg.file_location("model.py", 3)
    )
    program.body.block.add_op(read)
    with pytest.raises(VerifyException) as caught:
        program.verify()
    assert vars(caught.value)["op"] is read
    assert sdg.error_text(caught.value).startswith("model.py:3: sdg.neg: operand #0 %x[t - 1] reads at t = -1")


def test_generic_form_parses_back() -> None:
    text = """
    sdg.program @p dims(t: T) where T >= 1 {
      %x = sdg.input "x" in (t) : tensor<4xf32>
      %y = sdg.merge {t = 0 : %x[0], t > 0 : %y[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    }"""
    module = parse_module(text)
    again = parse_module(generic_text(module))
    again.verify()
    assert str(again) == str(module)
