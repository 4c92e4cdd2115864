"""What the function of a driver, its parameters and the symbols of its index expressions are called."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.lowering.kernels.draws import SEED, start_of
from tempo_ir.lowering.kernels.layout import most_of
from tempo_ir.lowering.triton.values import identifier_of
from tempo_ir.lowering.triton.writer import RESERVED, Names, identifier

SUPPORT = (
    *"Arena Bound Buffer Copies ProgramError Rows Steps".split(),
    *"argsort call_host check make_host placed scatter_add sort".split(),
)
"""What `support.py` gives."""
LOCALS = (
    *"arena arrays buffers copies device extents graphs hosts".split(),
    *"kernels memory scalars seed start steps torch".split(),
)
"""What drivers call things that have no name of the program's."""


def program_of(module: ModuleOp) -> loop.ProgramOp:
    """The one loop program of a module."""
    (program,) = [op for op in module.ops if isinstance(op, loop.ProgramOp)]
    return program


def program_name(program: loop.ProgramOp) -> str:
    """The name of the driver's function."""
    own = identifier(program.sym_name.data)
    return f"{own}_" if own in {*RESERVED, *SUPPORT, *LOCALS} else own


def parameter_names(module: ModuleOp) -> dict[str, str]:
    """The parameter of the driver for each bound: the bound's own name, where it means nothing else there."""
    program = program_of(module)
    kernels = (identifier_of(op) for op in module.ops if isinstance(op, KernelOp))
    taken = {*RESERVED, *SUPPORT, *LOCALS, *kernels, program_name(program)}
    names = {name: identifier(name) for name in program.space.params}
    return {name: f"{own}_" if own in taken else own for name, own in names.items()}


def symbol_names(module: ModuleOp, names: Names) -> dict[str, str]:
    """What stands for bounds and for scalars of the call in the driver, and in the kernels that it tells them."""
    program, found = program_of(module), parameter_names(module)
    found[str(SEED)] = "seed"
    found |= {str(start_of(name)): names.unique(f"start_{name}") for name in program.space.names}
    return found | {str(symbol): names.unique(f"most_{bound}") for bound, symbol in most_of(program)}
