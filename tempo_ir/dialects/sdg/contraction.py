"""The one contraction op: matrix products, batched or not, dot products, outer products and sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import LocationAttr, StringAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.sdg.base import AccessOp, Operand, as_access
from tempo_ir.dialects.sdg.inference import Extents, check_element, shape_text, widest_element
from tempo_ir.dialects.types import Extent, Tensor, shape_of, tensor
from tempo_ir.index.domain import Domain


@irdl_op_definition
class ContractOp(AccessOp):
    """An einsum: axes of one letter are aligned, letters that the result lacks are summed over.

    `sdg.contract "bk,kn->bn" %x[t], %w in (t) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>`

    One operand or more, numeric; the result has the element type of one of them that holds the values of all exactly
    (f32 where others are bf16 or i8), as which they are multiplied. f16 and bf16 accumulate in f32.
    """

    name = "sdg.contract"

    spec = prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$spec custom<Accesses>(operands, $indices) custom<InDomain>($domain) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        spec: str,
        *operands: Operand,
        domain: Domain,
        result_type: Tensor | None = None,
        location: LocationAttr | None = None,
    ):
        result = result_type or self.infer(spec, [as_access(operand).tensor for operand in operands])
        self.setup(operands, (result,), domain, {"spec": StringAttr(spec)}, location)

    @staticmethod
    def infer(spec: str, types: Sequence[Tensor], extents: Extents | None = None) -> Tensor:
        """The extents of the letters of the result, with the widest element type of the operands."""
        inputs, output = parse_spec(spec)
        if len(inputs) != len(types):
            raise VerifyException(f'sdg.contract "{spec}" names {len(inputs)} operands, got {len(types)}')
        common = widest_element(types, "sdg.contract")
        check_element(common, "number", "sdg.contract")
        extents = extents or Extents()
        found: dict[str, Extent] = {}
        for number, (letters, operand) in enumerate(zip(inputs, types, strict=True)):
            shape = shape_of(operand)
            if len(letters) != len(shape):
                raise VerifyException(
                    f'sdg.contract "{spec}": operand #{number} has {len(letters)} letters "{letters}" '
                    f"and shape {shape_text(shape)}"
                )
            for letter, extent in zip(letters, shape, strict=True):
                known = found.get(letter, extent)
                found[letter] = extents.same(known, extent, f'sdg.contract "{spec}", letter {letter}')
        return tensor(common, [found[letter] for letter in output])

    @property
    def letters(self) -> tuple[tuple[str, ...], str]:
        """The letters of each operand, and of the result."""
        return parse_spec(self.spec.data)

    def inferred_types(self, extents: Extents) -> Sequence[Attribute]:
        return (self.infer(self.spec.data, [access.tensor for access in self.accesses], extents),)


@lru_cache(maxsize=1024)
def parse_spec(spec: str) -> tuple[tuple[str, ...], str]:
    """`"bk,kn->bn"` as `(("bk", "kn"), "bn")`; raises VerifyException where it is no contraction."""
    left, arrow, output = spec.partition("->")
    inputs = tuple(left.split(","))
    letters = set("".join(inputs))
    if not arrow or not all(letter.isascii() and letter.isalpha() for letter in letters.union(output)):
        raise VerifyException(f'"{spec}" is no contraction: write letters per operand and result, as in "bk,kn->bn"')
    if len(set(output)) != len(output):
        raise VerifyException(f'"{spec}" names an axis of the result twice')
    if missing := sorted(set(output) - letters):
        raise VerifyException(f'"{spec}" has letter {missing[0]} in the result and in no operand')
    return inputs, output
