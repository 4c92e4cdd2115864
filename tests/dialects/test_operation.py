"""What all ops have in common."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import (
    BaseAccessor,
    BaseAttrAccessor,
    get_accessors_from_op_def,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop import Loop
from tempo_ir.dialects.operation import NominalOperation, Numbering, ops_of
from tempo_ir.dialects.sdg import Access, AddOp, InputOp, NegOp, OutputOp, Sdg
from tempo_ir.dialects.sdg.alike import Alike
from tempo_ir.dialects.tile import Tile
from tempo_ir.dialects.tile.attributes import INDEX, PointerType
from tempo_ir.dialects.tile.memory import ViewOp
from tempo_ir.dialects.types import DTYPES, tensor
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import Sym
from tests.dialects.sdg_support import parse_module

OVER_T = Domain(("t",))
HERE = (Sym("t"),)
PLACE = FileLineColLoc(StringAttr("model.py"), IntAttr(3), IntAttr(1))


@irdl_op_definition
class NumberOp(NominalOperation):
    name = "test.number"
    result = result_def()

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class TakesOp(NominalOperation):
    name = "test.takes"
    first = operand_def()
    others = var_operand_def()
    made = var_result_def()
    note = opt_prop_def()


@irdl_op_definition
class HoldsOp(NominalOperation):
    name = "test.holds"
    body = region_def()


def an_input(key: str = "x", rows: int = 4, domain: Domain = OVER_T) -> InputOp:
    return InputOp(key, tensor(DTYPES["f32"], [rows]), domain=domain)


def uses(op: Operation) -> list[tuple[Operation, int]]:
    return [(use.operation, use.index) for result in op.results for use in result.uses]


@pytest.mark.parametrize("dialect", [Sdg, Loop, Tile], ids=lambda dialect: dialect.name)
def test_all_ops_are_nominal(dialect) -> None:
    """Their kind and their identity are Python's own."""
    for op in dialect.operations:
        assert issubclass(op, NominalOperation), op.name
        assert op.__hash__ is object.__hash__, op.name


def test_kinds_are_those_of_the_bases() -> None:
    assert issubclass(NegOp, NominalOperation)
    assert not issubclass(int, NominalOperation)
    assert not isinstance(3, NegOp)


def test_an_op_is_as_xdsl_makes_it() -> None:
    """Operands know their users, in xDSL's order, and what is not given is empty."""
    x = an_input()
    properties = AddOp(Access(x.result, HERE), Access(x.result, HERE), domain=OVER_T).properties
    given = {"operands": [x.result, x.result], "result_types": [x.result.type], "properties": properties}
    made, plain = AddOp.create(**given, location=PLACE), AddOp.__new__(AddOp)
    Operation.__init__(plain, **given, location=PLACE)
    for one in (made, plain):
        one.verify()
        assert [op.op is one for op in one.results] == [True]
        assert (one.properties, one.attributes, one.location) == (properties, {}, PLACE)
        assert (list(one.successors), one.regions, one.parent) == ([], (), None)
    both = uses(x)
    assert [index for op, index in both if op is made] == [index for op, index in both if op is plain] == [1, 0]
    made.operands = [x.result]
    assert uses(x).count((made, 0)) == 1
    assert (made, 1) not in uses(x)


def test_a_copy_says_the_same_and_reads_itself_where_the_op_did() -> None:
    x = an_input()
    op = AddOp(Access(x.result, HERE), Access(x.result, HERE), domain=OVER_T, location=PLACE)
    op.operands[1] = op.result
    op.result.name_hint = "y"
    op.attributes["kept"] = UnitAttr()
    copy = op.clone()
    assert list(copy.operands) == [x.result, copy.result]
    assert (copy.result.name_hint, copy.location, copy.attributes) == ("y", PLACE, op.attributes)
    assert copy.properties == op.properties
    assert copy.properties is not op.properties
    other = an_input("z")
    assert next(iter(op.clone({x.result: other.result}).operands)) is other.result
    assert list(op.clone(clone_operands=False).operands) == []


def test_equal_attributes_have_one_number() -> None:
    number = Numbering().of
    assert number(StringAttr("a")) == number(StringAttr("a")) != number(StringAttr("b"))


def test_ops_are_alike_if_they_say_the_same_of_equal_types_and_domains() -> None:
    x, y, wide, still = an_input("x"), an_input("y"), an_input("wide", 8), an_input("still", 4, Domain())
    alike = Alike()

    def neg(of: InputOp, domain: Domain = OVER_T) -> NegOp:
        return NegOp(Access(of.result, tuple(map(Sym, of.domain.dims))), domain=domain)

    assert [alike.is_new(neg(of)) for of in (x, x, y, wide, still)] == [True, False, False, True, True]
    assert alike.is_new(neg(still, Domain()))
    marked = neg(x)
    marked.attributes["marked"] = UnitAttr()
    assert alike.is_new(marked)
    output = OutputOp("y", Access(x.result, HERE), domain=OVER_T)
    assert alike.is_new(output)
    assert alike.is_new(output)


def test_an_op_that_is_wrong_among_equal_ones_is_found() -> None:
    module = parse_module(
        """
        sdg.program @p dims(t: T) {
          %x = sdg.input "x" in (t) : tensor<4xf32>
          %a = sdg.neg %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
          %b = sdg.neg %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
          %c = sdg.neg %x[t - 1] in (t) : (tensor<4xf32>) -> tensor<4xf32>
          %y = sdg.add %a[t], %b[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %z = sdg.add %c[t], %y[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          sdg.output "z" %z[t] in (t) : tensor<4xf32>
        }
        """
    )
    with pytest.raises(VerifyException, match=r"%x\[t - 1\] reads"):
        module.verify()


@pytest.mark.parametrize("dialect", [Sdg, Loop, Tile], ids=lambda dialect: dialect.name)
def test_accessors_are_xdsls(dialect) -> None:
    """Their kinds are known to xDSL's parser, and they answer as its own do."""
    for op in dialect.operations:
        given = get_accessors_from_op_def(op.get_irdl_definition(), None)
        for name, accessor in given.items():
            if isinstance(accessor, BaseAccessor | BaseAttrAccessor):
                assert isinstance(op.__dict__[name], type(accessor)), (op.name, name)


def test_segments_are_those_of_the_operands() -> None:
    pointer = PointerType(DTYPES["f32"])
    block = Block(arg_types=[pointer, INDEX, INDEX])
    base, size, stride = block.args
    view = ViewOp(base, [4, size], [stride, 1], offset=size)
    assert (view.pointer, view.offset, list(view.dynamic), view.result) == (base, size, [size, stride], view.results[0])
    bare = ViewOp(base, [4, 4], [4, 1])
    assert (bare.pointer, bare.offset, list(bare.dynamic)) == (base, None, [])


def test_an_op_is_made_of_what_xdsl_takes() -> None:
    """Values, ops that have one, sequences; what is missing, or too much, is refused as by xDSL."""
    block = Block(arg_types=[PointerType(DTYPES["f32"])])
    one = NumberOp()
    taken = TakesOp(operands=[one, [block.args[0], one.result]], result_types=[[INDEX, INDEX]])
    assert list(taken.operands) == [one.result, block.args[0], one.result]
    assert [result.type for result in taken.results] == [INDEX, INDEX]
    plain = TakesOp(operands=[one.result, ()], result_types=[()], properties={"note": None})
    assert (len(plain.operands), len(plain.results), plain.properties) == (1, 0, {})
    for operands in ([one], [[one, one], []], [None, []]):
        with pytest.raises(ValueError, match=r"Error in test\.takes builder|Expected 2"):
            TakesOp(operands=operands, result_types=[()])


def test_a_walk_is_xdsls_and_what_it_is_at_may_go() -> None:
    inner = Region(Block([NumberOp(), NumberOp()]))
    outer = HoldsOp(regions=[Region(Block([NumberOp(), HoldsOp(regions=[inner]), NumberOp()]))])
    for form in ({}, {"reverse": True}, {"region_first": True}):
        assert list(outer.walk(**form)) == list(Operation.walk(outer, **form))
    block = outer.regions[0].block
    seen = 0
    for op in ops_of(block):
        op.detach()
        seen += 1
    assert (seen, list(block.ops)) == (3, [])
