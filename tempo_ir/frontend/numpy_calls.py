"""numpy's functions called on tensors: operators with an array on their left, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import MappingProxyType

from tempo_ir.frontend import contractions, elementwise
from tempo_ir.frontend.errors import ValueUnknownError
from tempo_ir.frontend.tensor import Tensor, Value

_OTHER_NAMES = MappingProxyType(
    {"log": "ln", "absolute": "abs", "concatenate": "concat", "dot": "matmul", "flip": "reverse"}
)
"""numpy's name of a function -> that of tp."""


def _operators() -> dict[str, Callable[[Value, Value], Tensor]]:
    """The ufuncs that Python's operators of two arrays are."""
    return {
        "add": elementwise.add,
        "subtract": elementwise.subtract,
        "multiply": elementwise.multiply,
        "divide": elementwise.divide,
        "floor_divide": elementwise.floor_divide,
        "remainder": elementwise.mod,
        "power": elementwise.power,
        "matmul": contractions.matmul,
        "bitwise_and": elementwise.logical_and,
        "bitwise_or": elementwise.logical_or,
        "bitwise_xor": elementwise.logical_xor,
        "less": elementwise.less,
        "less_equal": elementwise.less_equal,
        "greater": elementwise.greater,
        "greater_equal": elementwise.greater_equal,
        "equal": elementwise.equal,
        "not_equal": elementwise.not_equal,
    }


def ufunc(name: str, method: str, inputs: Sequence[Value], options: Collection[str]) -> Tensor:
    """`array + x`, which asks numpy first: `np.add(array, x)`. Raises ValueUnknownError for what is no operator."""
    if method != "__call__":
        raise refusal(f"{name}.{method}")
    if "out" in options:
        raise ValueUnknownError(
            f"np.{name} cannot write a tensor into an array, which the program does not change: `y = a + x`, not "
            "`a += x`"
        )
    operator = _operators().get(name)
    if options or operator is None:
        raise refusal(name)
    return operator(*inputs)


def refusal(name: str) -> ValueUnknownError:
    """The error for a function of numpy's that is called on a tensor."""
    import tempo_ir

    ours = _OTHER_NAMES.get(name, name)
    instead = f"use tp.{ours}" if ours in dir(tempo_ir) else "use the functions and operators of tp"
    return ValueUnknownError(
        f"np.{name} cannot compute with a tensor, which has no value while the program is recorded: {instead}"
    )
