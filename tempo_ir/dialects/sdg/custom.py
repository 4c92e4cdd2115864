"""Values whose gradient the user says: how a result goes back to what it was made of is part of the program.

```mlir
%dy = sdg.cotangent in (t) : tensor<4xf32>
%gx = sdg.mul %dy[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
%y = sdg.custom_gradient %f[t], %dy[t], %x[t], %gx[t] in (t) : (...) -> tensor<4xf32>
```

`%y` is `%f`. Where a gradient `%a` of `%y` is wanted, sdg-autodiff puts it for `%dy` in a copy of the ops between `%dy`
and `%gx`, and the result of the copy is the gradient of `%x`. Nothing flows into `%f`. After sdg-autodiff none is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.sdg.base import Access, AccessOp, Operand, SdgOp, check_type
from tempo_ir.dialects.sdg.inference import Extents
from tempo_ir.dialects.types import Tensor
from tempo_ir.index.domain import Domain


@irdl_op_definition
class CotangentOp(SdgOp):
    """Stands for the gradient of one value with a custom gradient: `sdg.cotangent in (t) : tensor<4xf32>`."""

    name = "sdg.cotangent"

    result = result_def(TensorType)

    def __init__(self, result_type: Tensor, *, domain: Domain, location: LocationAttr | None = None):
        self.setup((), (result_type,), domain, {}, location)


@irdl_op_definition
class CustomGradientOp(AccessOp):
    """A value, its cotangent, then in pairs what it was made of and the gradient by that."""

    name = "sdg.custom_gradient"

    parts = var_operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        *parts: Operand,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        value = parts[0]
        inferred = result_type or (value.tensor if isinstance(value, Access) else Access(value).tensor)
        self.setup(parts, (inferred,), domain, {}, location)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The operand numbers of what the value was made of, each with that of its gradient."""
        return [(number, number + 1) for number in range(2, len(self.operands), 2)]

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        if len(self.operands) < 4 or len(self.operands) % 2:
            raise VerifyException(
                f"sdg.custom_gradient takes a value, its cotangent and pairs, got {len(self.operands)} operands"
            )
        types = [access.type for access in self.accesses]
        for first, second in ((0, 1), *self.pairs):
            what = f"operand #{second} is a {types[second]}, the gradient of a {types[first]}"
            check_type(types[second], types[first], what, extents)
        return (types[0],)

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(self.operands[1].owner, CotangentOp):
            raise VerifyException("operand #1 of sdg.custom_gradient is made by sdg.cotangent")
