"""What a program takes and gives: `tp.input`, `tp.output`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tempo_ir.dialects import sdg
from tempo_ir.frontend import elementwise
from tempo_ir.frontend.description import InputInfo, OutputInfo
from tempo_ir.frontend.dims import Dim, dim_names
from tempo_ir.frontend.dtypes import Spec, spec_of
from tempo_ir.frontend.errors import ProgramError, here
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.tensor import Tensor, Value
from tempo_ir.frontend.trees import leaves
from tempo_ir.index.domain import Domain


def input(name: str, spec: Spec, over: Dim | Sequence[Dim] = ()) -> Tensor:
    """An array of the caller: its leading axes are the dims of `over`, then come those of `spec`."""
    recording = current()
    recording.claim("argument", "input", name)
    spec = spec_of(spec, f"input '{name}'")
    dims = dim_names(over, f"input '{name}'")
    op = recording.add(sdg.InputOp(name, spec.type, domain=Domain(dims)), here(), name)
    recording.inputs[name] = InputInfo(name, spec, dims, here())
    return Tensor(recording, op.results[0])


def output(name: str, value: Value | Sequence[Any] | Mapping[str, Any]) -> None:
    """An array for the caller, with the dims that the value varies over as leading axes.

    Of a module, record, list or dict of tensors, every tensor is an output, named `name.path`.
    Raises ProgramError where there is none.
    """
    if isinstance(value, Sequence | Mapping) or hasattr(value, "__dict__"):
        found = leaves(value)
        if not found:
            raise ProgramError(f"output '{name}': there is no tensor in the {type(value).__name__} that is given")
        for path, leaf in found:
            output(f"{name}.{path}" if path else name, leaf)
        return
    recording = current()
    recording.claim("output", "output", name)
    tensor = elementwise.as_tensor(value)
    op = sdg.OutputOp(name, tensor.access, domain=Domain(tensor.dims))
    recording.add(op, here())
    recording.outputs[name] = OutputInfo(name, tensor.spec, tensor.dims, here())
