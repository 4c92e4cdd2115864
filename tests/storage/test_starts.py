"""First rows that a program copies from the caller's arrays: one copy before the loops, and none in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import loop
from tempo_ir.index.expr import index_text
from tests.storage.storage_support import planned
from tests.storage.test_plan import agrees

PREFIX = """
sdg.program @prefix dims(t: T, p: P){where} {{
  %a = sdg.input "a" in (p) : tensor<3xf32>
  %b = sdg.input "b" : tensor<3xf32>
  %s = sdg.merge {{{cases}}} in ({domain}) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.sin %s[t] in ({following}) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t] in ({domain}) : tensor<3xf32>
}}
"""


def prefix(cases: str, where: str = "", domain: str = "t", following: str = "t: 0 to T - 1") -> str:
    return PREFIX.format(cases=cases, where=where, domain=domain, following=following)


def copies(program: loop.ProgramOp) -> Iterator[tuple[str, str, int]]:
    """What copies read and write, and how many loops stand round them."""
    for op in program.walk():
        if isinstance(op, loop.ComputeOp) and isinstance(op.body.block.first_op, loop.YieldOp):
            (read,), (write,) = op.reads, op.writes
            yield index_text(read.index), index_text(write.index), len(loops_round(op))


def loops_round(op: Operation) -> list[loop.ForOp]:
    parent = op.parent_op()
    return [] if parent is None else [*loops_round(parent), *([parent] if isinstance(parent, loop.ForOp) else [])]


AT_ONCE = {
    "prefix": (
        prefix("t < P : %a[t], t > 0 : %h[t - 1]", " where 1 <= P <= T", following="t: P - 1 to T - 1"),
        ("[0:P]", "[0:P]"),
    ),
    "prefix that may be longer": (
        prefix("t < P : %a[t], t > 0 : %h[t - 1]", " where P >= 1", following="t: P - 1 to T - 1"),
        ("[0:min(P, T)]", "[0:min(P, T)]"),
    ),
    "prefix of rows from the second on": (
        prefix("t < P - 1 : %a[t + 1], t > 0 : %h[t - 1]", " where 2 <= P <= T", following="t: P - 2 to T - 1"),
        ("[1:P]", "[0:P - 1]"),
    ),
    "end, downwards": (
        prefix("t >= T - P : %a[t - T + P], t >= 0 : %h[t + 1]", " where P >= 1", following="t: 1 to T - P + 1"),
        ("[max(0, P - T):P]", "[max(0, T - P):T]"),
    ),
    "first": (prefix("t = 0 : %b, t > 0 : %h[t - 1]"), ("", "[0]")),
    "first, of an array with rows": (
        prefix("t = 0 : %a[2], t > 0 : %h[t - 1]", " where P >= 3"),
        ("[2]", "[0]"),
    ),
    "last, downwards": (prefix("t = T - 1 : %b, t >= 0 : %h[t + 1]", following="t: 1 to T"), ("", "[T - 1]")),
    "first of those that are needed": (
        prefix("t = 2 : %b, t > 2 : %h[t - 1]", domain="t: 2 to T", following="t: 2 to T - 1"),
        ("", "[2]"),
    ),
}


@pytest.mark.parametrize("name", AT_ONCE)
@pytest.mark.parametrize("form", [False, True])
def test_rows_of_the_caller_are_copied_at_once(name: str, form: bool) -> None:
    text, accesses = AT_ONCE[name]
    program = planned(text, form=form)
    assert list(copies(program)) == [(*accesses, 0)]
    agrees(text, program)


NESTED = """
sdg.program @nested dims(i: I, t: T, p: P) where 1 <= P <= T {{
  %a = sdg.input "a" in (i, p) : tensor<3xf32>
  %s = sdg.merge {{t < P : %a[{row}], t > 0 : %h[i, t - 1]}} in (i, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.sin %s[i, t] in (i, t: P - 1 to T - 1) : (tensor<3xf32>) -> tensor<3xf32>
  {result}
}}
"""
ROWS = 'sdg.output "s" %s[i, t] in (i, t) : tensor<3xf32>'
MEAN = """%y = sdg.mean %s[i, 0:T] axes [0] in (i) : (tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[i] in (i) : tensor<3xf32>"""


@pytest.mark.parametrize(
    ("row", "result", "copied"),
    [
        ("i, t", ROWS, ("[0:I, 0:P]", "[0:I, 0:P]", 0)),
        ("i, P - 1 - t", ROWS, ("[i, P - t - 1]", "[i, t]", 2)),  # in another order
        ("0, t", ROWS, ("[0, 0:P]", "[i, 0:P]", 1)),  # the same rows for each i
        ("i, t", MEAN, ("[i, 0:P]", "[0:P]", 1)),  # the memory is that of one i
    ],
)
def test_rows_are_copied_before_as_many_loops_as_can_be(row: str, result: str, copied: tuple[str, str, int]) -> None:
    text = NESTED.format(row=row, result=result)
    program = planned(text, form=False)
    assert list(copies(program)) == [copied]
    agrees(text, program, (1, 2, 4))


LEFT_OUT = """
sdg.program @left_out dims(t: T){where} {{
  %a = sdg.input "a" in (t) : tensor<3xf32>
  %b = sdg.{begin} : tensor<3xf32>
  %h = sdg.sin %a[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %s = sdg.merge {{{first} : %b, true : %h[t]}} in (t where {shown}) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "s" %s[t] in (t where {shown}) : tensor<3xf32>
}}
"""


@pytest.mark.parametrize("begin", ['parameter "b"', "constant 1.0", "constant 0.0"])
@pytest.mark.parametrize("first", ["t = T - 1", "t = 0", "t >= 3"])
@pytest.mark.parametrize("shown", ["t ne 3", "t >= 1", "t mod 2 = 0", "t < T - 1"])
def test_rows_that_an_output_leaves_out_are_not_begun(begin: str, first: str, shown: str) -> None:
    """They stay zero, also at the sizes at which the row that is begun is one of them."""
    text = LEFT_OUT.format(begin=begin, first=first, shown=shown, where=" where T >= 1")
    agrees(text, planned(text), (1, 2, 3, 4, 5))


def test_rows_that_only_data_counts_stay_in_the_loop_that_counts_them() -> None:
    """How many steps there are, hence whether `P` are, is not known before."""
    text = prefix("t < P : %a[t], t > 0 : %h[t - 1]", " where P >= 1", following="t: P - 1 to T - 1").replace(
        "sdg.output",
        """%half = sdg.constant 0.5 : tensor<f32>
  %m = sdg.max %s[t] axes [0] in (t) : (tensor<3xf32>) -> tensor<f32>
  %done = sdg.gt %m[t], %half in (t) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  sdg.until %done[t] in (t) : tensor<i1>
  sdg.output""",
    )
    assert list(copies(planned(text, form=False))) == [("[t]", "[t]", 1)]


CONDITIONS = ("t < P", "t < P - 1", "t = 0", "t < P and t ne 1", "t mod 2 = 0", "t < P or t = T - 1", "t >= T - P")
ROWS_READ = ("%b", "%a[t]", "%a[t + 1]", "%a[P - 1 - t]", "%a[P - 1]", "%a[t floordiv 2]")


def test_all_sorts_of_first_rows() -> None:
    """Whatever is copied at once or one by one, the numbers stay; what has no meaning is refused before."""
    count = at_once = 0
    for condition, row in itertools.product(CONDITIONS, ROWS_READ):
        text = prefix(f"{condition} : {row}, t > 0 : %h[t - 1]", " where 2 <= P <= T")
        try:
            program = planned(text, form=False)
        except VerifyException:
            continue
        count += 1
        at_once += any(":" in written for _, written, _ in copies(program))
        agrees(text, program, (2, 3, 5))
    assert (count, at_once) == (26, 3)
