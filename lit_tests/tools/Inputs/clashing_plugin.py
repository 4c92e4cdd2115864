"""A plug-in without a Universe: just a pass, whose name is taken."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class OtherCse(ModulePass):
    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise AssertionError("this pass must not run")


@dataclass(frozen=True)
class FreshPass(ModulePass):
    name = "test-fresh"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass
