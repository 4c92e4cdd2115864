"""What sums weighted by a softmax have in common, whether all at once (loop.attend) or in shares (loop.shares)."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects.loop.structure import LoopOperation
from tempo_ir.dialects.sdg.contraction import ContractOp, parse_spec
from tempo_ir.dialects.types import Tensor, is_float


class WeightedSumOperation(LoopOperation, ABC):
    """A contraction of scores, as weights by a softmax along the one axis that is summed, with what is summed."""

    spec = prop_def(StringAttr)
    scores = operand_def(TensorType)
    summed = operand_def(TensorType)

    @property
    def inputs(self) -> tuple[SSAValue, SSAValue]:
        """The scores, and what is summed, as the operands of a contraction."""
        return self.scores, self.summed

    @property
    def letters(self) -> tuple[tuple[str, ...], str]:
        """The letters of the operands, and of the sum."""
        return parse_spec(self.spec.data)

    @property
    def axis(self) -> int:
        """The axis of the scores that is summed."""
        inputs, output = self.letters
        return next(number for number, letter in enumerate(inputs[0]) if letter not in output)

    @classmethod
    def product(cls, spec: str, scores: Tensor, summed: Tensor) -> Tensor:
        """The type of the sum. Raises VerifyException where the letters do not fit: one is summed, that both operands
        have; and for what are no floats."""
        inputs, output = parse_spec(spec)
        product = ContractOp.infer(spec, [scores, summed])
        letters = [set(each) - set(output) for each in inputs]
        if len(inputs) != 2 or letters[0] != letters[1] or len(letters[0]) != 1:
            raise VerifyException(f'{cls.name} "{spec}" sums no one axis of both operands')
        if not is_float(product.element_type):
            raise VerifyException(f"{cls.name} of {product.element_type}, expected floats")
        return product
