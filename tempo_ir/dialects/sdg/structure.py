"""Ops that give a program its structure: the program itself, cases, outputs, calls of host objects, gradients."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import lru_cache
from typing import NoReturn

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    LocationAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.operation import NominalOperation
from tempo_ir.dialects.sdg.attributes import (
    CondAttr,
    PreconditionAttr,
    SpaceAttr,
    TokenType,
    Vectorized,
    VectorizedAttr,
)
from tempo_ir.dialects.sdg.base import (
    NO_DIMS,
    Access,
    AccessOp,
    Operand,
    SdgOp,
    as_access,
    check_type,
    domain_of,
    domain_problem,
    index_attr,
    raise_at,
    scope_problem,
    space_of,
)
from tempo_ir.dialects.sdg.directives import DIRECTIVES
from tempo_ir.dialects.sdg.inference import Extents, check_element
from tempo_ir.dialects.types import (
    Tensor,
    as_tensor,
    element,
    is_float,
    shape_of,
)
from tempo_ir.index.domain import Domain, Space
from tempo_ir.index.expr import TRUE, Cond, compare, conj, free_symbols, negate


@irdl_op_definition
class ProgramOp(NominalOperation):
    """A recurrent-tensor program: declared dims and bounds, and a graph of ops in any order, cycles included.

    ```mlir
    sdg.program @sum dims(t: T) where T >= 1 {
      %x = sdg.input "x" in (t) : tensor<4xf32>
      %y = sdg.sum %x[0:T] axes [0] : (tensor<4xf32>) -> tensor<4xf32>
      sdg.output "y" %y : tensor<4xf32>
    }
    ```

    `attributes {outermost = ["b"]}` asks for an order in which the loops over b stand round all others, where there is
    one: a request as those about memory are, which changes no value.
    """

    name = "sdg.program"

    sym_name = prop_def(SymbolNameConstraint())
    space_attr = prop_def(SpaceAttr, prop_name="space")
    preconditions = opt_prop_def(ArrayAttr[PreconditionAttr])
    outermost_attr = opt_prop_def(ArrayAttr[StringAttr], prop_name="outermost")
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), IsolatedFromAbove(), SymbolOpInterface())
    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = DIRECTIVES
    assembly_format = "$sym_name custom<Dims>($space) attr-dict-with-keyword $body"

    def __init__(self, name: str, space: Space, body: Region, *, location: LocationAttr | None = None):
        super().__init__(properties={"sym_name": StringAttr(name), "space": SpaceAttr(space)}, regions=[body])
        if location is not None:
            self.location = location

    @property
    def space(self) -> Space:
        """The declared dims and what is known of the bounds."""
        return self.space_attr.data

    @space.setter
    def space(self, space: Space) -> None:
        self.space_attr = SpaceAttr(space)

    @property
    def outermost(self) -> tuple[str, ...]:
        """The dims whose loops are asked to stand round those over others."""
        return () if self.outermost_attr is None else tuple(name.data for name in self.outermost_attr.data)

    @outermost.setter
    def outermost(self, dims: Sequence[str]) -> None:
        self.outermost_attr = ArrayAttr([StringAttr(dim) for dim in dims]) if dims else None

    def emit_error(self, message: str, underlying_error: Exception) -> NoReturn:
        """Raise the error with `op` set to the op it is about."""
        raise_at(self, underlying_error)

    def verify(self, verify_nested_ops: bool = True) -> None:
        """Of ops in the body that are alike the first is verified."""
        if verify_nested_ops:
            from tempo_ir.dialects.sdg.alike import Alike

            alike = Alike()
            for op in self.body.block.ops:
                if alike.is_new(op):
                    op.verify()
        super().verify(verify_nested_ops=False)

    def verify_(self) -> None:
        from tempo_ir.dialects.sdg.verification import verify_program

        if unknown := [dim for dim in self.outermost if dim not in self.space.names]:
            raise VerifyException(f"outermost names {unknown[0]}, the program declares {', '.join(self.space.names)}")
        verify_program(self)


@irdl_op_definition
class MergeOp(AccessOp):
    """A value defined by cases; the first case that holds at a point wins, and every point has one:
    `sdg.merge {t = 0 : %init, t > 0 : %h[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`."""

    name = "sdg.merge"

    cases = prop_def(ArrayAttr[CondAttr])
    branches = var_operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = (
        "custom<Cases>(operands, $cases, $indices) custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        *cases: tuple[Cond, Operand],
        domain: Domain,
        result_type: Attribute | None = None,
        location: LocationAttr | None = None,
    ):
        operands = [operand for _, operand in cases]
        result = result_type or self.infer([as_access(operand).type for operand in operands], Extents())
        properties = {"cases": ArrayAttr([CondAttr(cond) for cond, _ in cases])}
        self.setup(operands, (result,), domain, properties, location)

    @staticmethod
    def infer(types: Sequence[Attribute], extents: Extents) -> Attribute:
        """The common type of the cases."""
        if not types:
            raise VerifyException("a merge needs at least one case")
        for number, case in enumerate(types[1:], 1):
            check_type(case, types[0], f"case #{number} is a {case}, case #0 a {types[0]}", extents)
        return types[0]

    @property
    def conds(self) -> tuple[Cond, ...]:
        """The conditions, in order."""
        return tuple(case.data for case in self.cases.data)

    def set_cases(self, cases: Sequence[tuple[Cond, Access]]) -> None:
        """Replace all cases, in place."""
        self.operands = [access.value for _, access in cases]
        self.cases = ArrayAttr([CondAttr(cond) for cond, _ in cases])
        self.indices = ArrayAttr([index_attr(access) for _, access in cases])

    def verify_types(self, space: Space | None) -> None:
        """Each case has the type of the result at the points where it applies."""
        for number, access in enumerate(self.accesses):
            extents = Extents()
            what = f"case #{number} reads a {access.type}, the merge makes {self.result.type}"
            check_type(access.type, self.result.type, what, extents)
            self.verify_extents(extents, space, self.case_domain(number))

    def case_domain(self, number: int) -> Domain:
        """The points at which case `number` is the first that holds; past the last case, those that none covers."""
        return case_domain(self.domain, self.conds, number)

    def verify_(self) -> None:
        if len(self.cases.data) != len(self.operands):
            raise VerifyException(f"{len(self.operands)} values need {len(self.operands)} cases, got {len(self.cases)}")
        if not self.operands:
            raise VerifyException("a merge needs at least one case")
        super().verify_()

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        for number, cond in enumerate(self.conds):
            if (problem := scope_problem(cond, self.domain, space)) is not None:
                raise VerifyException(f"case #{number}: {problem}")


@lru_cache(maxsize=4096)
def case_domain(domain: Domain, conds: tuple[Cond, ...], number: int) -> Domain:
    """The points of `domain` at which case `number` is the first that holds; past the last, those without a case."""
    earlier = [negate(cond) for cond in conds[:number]]
    held = conds[number] if number < len(conds) else TRUE
    return Domain(domain.dims, domain.ranges, conj(domain.where, *earlier, held))


@irdl_op_definition
class OutputOp(AccessOp):
    """An array for the caller, with the dims of the domain as leading axes:
    `sdg.output "y" %y[t] in (t) : tensor<4xf32>`.

    `sdg.output "w" donates %w : tensor<4xf32>` asks to lie in the array of the parameter of that key, which a call may
    then overwrite.
    """

    name = "sdg.output"

    key = prop_def(StringAttr)
    donates = opt_prop_def(UnitAttr)
    value = operand_def(TensorType)

    assembly_format = (
        "$key (`donates` $donates^)? custom<Accesses>(operands, $indices) custom<InDomain>($domain) attr-dict "
        "`:` type($value)"
    )

    def __init__(self, key: str, value: Operand, *, domain: Domain = NO_DIMS, location: LocationAttr | None = None):
        self.setup((value,), (), domain, {"key": StringAttr(key)}, location)

    def verify_(self) -> None:
        super().verify_()
        (access,) = self.accesses
        for extent in shape_of(access.type):
            if not isinstance(extent, int) and (varying := free_symbols(extent) & set(self.domain.dims)):
                raise VerifyException(
                    f'output "{self.key.data}" has the extent {extent}, another at each {min(varying)}: an array has '
                    "rows of one shape, pad them"
                )


@irdl_op_definition
class UntilOp(AccessOp):
    """Ends a dim by data: its bound is the number of steps to the first at which the value is true, that step included:
    `sdg.until %done[t] in (t) : tensor<i1>`. What the caller gives as the bound is only the most that there may be."""

    name = "sdg.until"

    value = operand_def(TensorType)

    assembly_format = "custom<Accesses>(operands, $indices) custom<InDomain>($domain) attr-dict `:` type($value)"

    def __init__(self, value: Operand, *, domain: Domain, location: LocationAttr | None = None):
        self.setup((value,), (), domain, {}, location)

    def verify_(self) -> None:
        super().verify_()
        if len(self.domain.dims) != 1 or self.domain != Domain(self.domain.dims):
            raise VerifyException(f"sdg.until ends one dim and looks at all of its points, its domain is {self.domain}")
        (access,) = self.accesses
        if shape_of(access.type) or element(access.type) != i1:
            raise VerifyException(f"sdg.until reads {access.type}, expected tensor<i1>: is one of them true, or all?")

    @property
    def dim(self) -> str:
        """The dim that ends."""
        return self.domain.dims[0]


@irdl_op_definition
class HostStateOp(SdgOp):
    """A Python object of the caller, made anew for each call: `sdg.host_state @env : !sdg.token`."""

    name = "sdg.host_state"

    object_attr = prop_def(FlatSymbolRefAttrConstr, prop_name="object")
    result = result_def(TokenType)

    traits = traits_def(Pure())
    assembly_format = "$object custom<InDomain>($domain) attr-dict `:` type($result)"

    def __init__(self, name: str, *, domain: Domain = NO_DIMS, location: LocationAttr | None = None):
        self.setup((), (TokenType(),), domain, {"object": SymbolRefAttr(name)}, location)

    @property
    def object(self) -> str:
        """The name of the object."""
        return self.object_attr.root_reference.data

    def verify_(self) -> None:
        if self.domain != NO_DIMS:
            raise VerifyException(f"host object @{self.object} is made once for the whole call, so it has no domain")
        super().verify_()


@irdl_op_definition
class HostOp(AccessOp):
    """A call of a method of a host object: runs exactly once per point, in the order of the tokens.

    `%obs, %next = sdg.host @env::@step(%action[t]) after %token[t] in (t) :
    (tensor<i64>, !sdg.token) -> (tensor<4xf32>, !sdg.token)`

    With `gradient @step_gradient`, written behind the token, sdg-autodiff goes through the call: that method of the
    object gets the arguments and the gradients of the float results, and gives those of the float arguments.

    With `vectorized @step_all along (b)`, written behind that, sdg-vectorize may make an axis of the dim b: one call of
    that method does what the calls at all points of b do, one by one in order. The points stand there then,
    `over (b: 0 to 8)`, and are a leading axis of each argument and result. There is at least one: no call without.
    """

    name = "sdg.host"

    callee = prop_def(SymbolRefAttr)
    gradient_attr = opt_prop_def(FlatSymbolRefAttrConstr, prop_name="gradient")
    vectorized_attr = opt_prop_def(VectorizedAttr, prop_name="vectorized")
    arguments = var_operand_def(TensorType)
    token = operand_def(TokenType)
    outputs = var_result_def(TensorType)
    next_token = result_def(TokenType)

    assembly_format = (
        "$callee custom<HostAccesses>(operands, $indices) (`gradient` $gradient^)? "
        "custom<VectorizedBy>($vectorized) custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        object_name: str,
        method: str,
        *arguments: Operand,
        after: Operand,
        returns: Sequence[Tensor],
        domain: Domain,
        gradient: str | None = None,
        vectorized: Vectorized | None = None,
        location: LocationAttr | None = None,
    ):
        properties: dict[str, Attribute] = {"callee": SymbolRefAttr(object_name, [method])}
        if gradient is not None:
            properties["gradient"] = SymbolRefAttr(gradient)
        if vectorized is not None:
            properties["vectorized"] = VectorizedAttr(vectorized)
        self.setup((*arguments, after), (*returns, TokenType()), domain, properties, location)

    @property
    def object(self) -> str:
        """The name of the object."""
        return self.callee.root_reference.data

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.callee.nested_references.data[0].data

    @property
    def gradient(self) -> str | None:
        """The method that carries gradients back, if there is one."""
        return None if self.gradient_attr is None else self.gradient_attr.root_reference.data

    @property
    def vectorized(self) -> Vectorized | None:
        """The vectorised form of the method, if there is one."""
        return None if self.vectorized_attr is None else self.vectorized_attr.data

    @property
    def over(self) -> Domain:
        """The dims whose points one call makes, by the vectorised form; none for a call of the method itself."""
        return NO_DIMS if (form := self.vectorized) is None else form.over

    def claims(self) -> Sequence[tuple[Cond, str]]:
        form = self.vectorized
        if form is None:
            return ()
        conds = [(dim, compare(">=", points.stop, points.start + 1)) for dim, points in form.points(self.space)]
        return [(cond, f"a call over the points of {dim}, of which there may be none") for dim, cond in conds]

    def verify_scope(self, space: Space) -> None:
        super().verify_scope(space)
        if (form := self.vectorized) is not None:
            check_vectorized(form, self.domain, space)

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        if self.over.dims and (space := space_of(self)) is not None:
            assert self.vectorized is not None
            axes = self.vectorized.extents(space)
            for what, values in (("argument", self.accesses[:-1]), ("result", map(Access, self.outputs))):
                for number, value in enumerate(values):
                    shape = shape_of(value.type)
                    name = f"{what} #{number} of a call over the points of {', '.join(self.over.dims)}"
                    extents.same_shape(axes, shape[: len(axes)], name)
        return [result.type for result in self.results]

    def verify_(self) -> None:
        if len(self.callee.nested_references.data) != 1:
            raise VerifyException(f"a host call names an object and a method, @object::@method, got {self.callee}")
        if self.vectorized is not None and not self.arguments:
            text = f"@{self.vectorized.method} is given no argument, whose leading axes would say of how many points"
            raise VerifyException(f"{text}: pass the number of the point")
        if self.gradient is not None:
            for what, values in (("argument", self.arguments), ("result", self.outputs)):
                if not any(is_float(element(value.type)) for value in values):
                    raise VerifyException(f"the call of @{self.method} has no float {what}, so it needs no gradient")
        super().verify_()


def check_vectorized(form: Vectorized, domain: Domain, space: Space) -> None:
    """The dims of a vectorised form are dims of the program, each once, those of one call are among them and ranges
    beside the domain; raises VerifyException otherwise. It may take dims that the calls do not vary over."""
    over = form.over.dims
    if both := [dim for dim in over if dim in domain.dims]:
        raise VerifyException(f"the call varies over {both[0]}, and is over its points too")
    if list(form.along) != list(space.order(set(form.along))) or set(over) - set(form.along):
        named, names = ", ".join(form.along), ", ".join(space.names)
        raise VerifyException(
            f"@{form.method} vectorises along ({named}), expected dims of the program, ({names}), each once, in order, "
            "and those of one call among them"
        )
    problem = domain_problem(Domain(over), space)
    ranges = [part for _, *parts in form.over.ranges for part in parts]
    problem = problem or next((text for part in ranges if (text := scope_problem(part, domain, space))), None)
    if problem is not None or form.over.where != TRUE:
        raise VerifyException(problem or f"a call is over ranges of points, got {form.over}")


@irdl_op_definition
class GradOp(SdgOp):
    """The gradient of a loss, summed over its whole domain, with respect to `wrt`; expanded by sdg-autodiff:
    `sdg.grad %loss wrt %w in (i) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>`.

    Both operands are named whole, without an index; the result has the domain and type of `wrt`. With `allow_unused`,
    written after `wrt`, a loss that does not depend on `wrt` has the gradient zero; without, that is an error.
    """

    name = "sdg.grad"

    loss = operand_def(TensorType)
    wrt = operand_def(TensorType)
    allow_unused_attr = opt_prop_def(UnitAttr, prop_name="allow_unused")
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$loss `wrt` $wrt (`allow_unused` $allow_unused^)? custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        loss: SSAValue,
        wrt: SSAValue,
        *,
        allow_unused: bool = False,
        domain: Domain | None = None,
        location: LocationAttr | None = None,
    ):
        properties = {"allow_unused": UnitAttr()} if allow_unused else {}
        self.setup((loss, wrt), (wrt.type,), domain_of(wrt) if domain is None else domain, properties, location)

    @property
    def allow_unused(self) -> bool:
        """Whether a loss that does not depend on `wrt` has the gradient zero."""
        return self.allow_unused_attr is not None

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        loss, wrt = self.loss.type, self.wrt.type
        check_element(element(loss), "float", "the loss of sdg.grad")
        check_element(element(wrt), "float", "sdg.grad with respect to a value")
        if as_tensor(loss).get_num_dims():
            raise VerifyException(f"the loss of sdg.grad is a scalar at each point, got {loss}: take a mean or a sum")
        return (wrt,)

    def verify_(self) -> None:
        super().verify_()
        if self.domain.dims != domain_of(self.wrt).dims:
            raise VerifyException(
                f"the gradient varies over the dims of wrt, {domain_of(self.wrt)}, its domain says {self.domain}"
            )


class _SameOp(AccessOp, ABC):
    """The operand as it is; what the op says about it is for passes."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        operand: Operand,
        *,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        access = as_access(operand)
        self.setup((access,), (result_type or access.tensor,), domain, {}, location)

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.accesses[0].tensor,)


@irdl_op_definition
class StopGradientOp(_SameOp):
    """The operand as it is; no gradient flows through:
    `sdg.stop_gradient %x[t] in (t) : (tensor<f32>) -> tensor<f32>`."""

    name = "sdg.stop_gradient"


@irdl_op_definition
class KeepOp(_SameOp):
    """The operand as it is, kept in memory of its own; who reads it does not keep what it is of. sdg-remat makes one of
    the last row of each block: `sdg.keep %h[b, 99] in (b: 0 to T floordiv 100) : (tensor<4xf32>) -> tensor<4xf32>`."""

    name = "sdg.keep"
