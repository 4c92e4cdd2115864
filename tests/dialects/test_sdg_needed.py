"""Needed points, preconditions and causality, against enumeration at small sizes."""

from __future__ import annotations

import itertools

import pytest
from sdg_support import needed_by_hand, op_named, parse_program
from xdsl.utils.exceptions import VerifyException

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg.base import OpError
from tempo_ir.dialects.sdg.causality import check_causality
from tempo_ir.dialects.sdg.needed import narrow
from tempo_ir.dialects.sdg.points import Analysis
from tempo_ir.dialects.sdg.preconditions import preconditions, settle
from tempo_ir.index import evaluate

S = "(tensor<f32>) -> tensor<f32>"
SS = "(tensor<f32>, tensor<f32>) -> tensor<f32>"
REST = "tensor<?xf32, #sdg.size<T - 3>>"

CHAIN = f"""
sdg.program @chain dims(t: T) {{
  %x = sdg.input "x" in (t) : tensor<f32>
  %a = sdg.neg %x[t] in (t) : {S}
  %b = sdg.exp %a[t] in (t) : {S}
  %unused = sdg.exp %b[t] in (t) : {S}
  sdg.output "y" %b[t + 1] in (t: 0 to T - 1) : tensor<f32>
}}"""
RECURRENCE = f"""
sdg.program @recurrence dims(t: T, p: P) where 1 <= P <= T {{
  %zero = sdg.constant 0.0 : tensor<f32>
  %x = sdg.input "x" in (t) : tensor<f32>
  %h = sdg.merge {{t = 0 : %zero, t > 0 : %n[t - 1]}} in (t) : {SS}
  %n = sdg.add %h[t], %x[t] in (t) : {SS}
  sdg.output "y" %h[P - 1] : tensor<f32>
}}"""
FIRST = f"""
sdg.program @first dims(t: T) where T >= 1 {{
  %zero = sdg.constant 0.0 : tensor<f32>
  %h = sdg.merge {{t = 0 : %zero, t > 0 : %n[t - 1]}} in (t) : {SS}
  %n = sdg.exp %h[t] in (t) : {S}
  sdg.output "y" %h[0] : tensor<f32>
}}"""
BACKWARDS = f"""
sdg.program @backwards dims(i: I, t: T) where T >= 1 {{
  %r = sdg.input "r" in (i, t) : tensor<f32>
  %later = sdg.merge {{t = T - 1 : %r[i, t], t < T - 1 : %g[i, t + 1]}} in (i, t) : {SS}
  %g = sdg.add %r[i, t], %later[i, t] in (i, t) : {SS}
  sdg.output "y" %g[i, T floordiv 2] in (i) : tensor<f32>
}}"""
WINDOW = f"""
sdg.program @window dims(t: T, p: P) where 1 <= P <= T {{
  %x = sdg.input "x" in (t) : tensor<f32>
  %k = sdg.exp %x[t] in (t) : {S}
  %l = sdg.exp %k[t] in (t) : {S}
  %s = sdg.sum %l[max(0, t - 3):t + 1] axes [0] in (t) : {S}
  sdg.output "y" %s[t] in (t: P - 1 to T) : tensor<f32>
}}"""
STRIDED = f"""
sdg.program @strided dims(t: T, m: M) where 2 * M <= T {{
  %x = sdg.input "x" in (t) : tensor<f32>
  %k = sdg.exp %x[t] in (t) : {S}
  sdg.output "y" %k[2 * m] in (m) : tensor<f32>
}}"""
HOST = """
sdg.program @host dims(t: T) where T >= 1 {
  %env = sdg.host_state @env : !sdg.token
  %et = sdg.merge {t = 0 : %env, t > 0 : %e[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
  %o, %e = sdg.host @env::@step() after %et[t] in (t) : (!sdg.token) -> (tensor<f32>, !sdg.token)
  sdg.output "y" %o[0] : tensor<f32>
}"""
PROGRAMS = [CHAIN, RECURRENCE, FIRST, BACKWARDS, WINDOW, STRIDED, HOST]


@pytest.mark.parametrize("text", PROGRAMS)
def test_needed_points_are_exactly_those_that_enumeration_finds(text: str) -> None:
    program = parse_program(text)
    analysis = Analysis(program)
    for sizes in itertools.product(range(6), repeat=len(program.space.params)):
        bounds = dict(zip(program.space.params, sizes, strict=True))
        if not evaluate(program.space.where, bounds):
            continue
        for op, points in needed_by_hand(program, bounds).items():
            domain = analysis.domain(op)
            found = set() if domain is None else {tuple(p.values()) for p in domain.points(program.space, bounds)}
            assert found == points, f"{sdg.op_text(op)} at {bounds}"


@pytest.mark.parametrize("text", PROGRAMS)
def test_narrowed_programs_are_valid_and_stay_as_they_are(text: str) -> None:
    program = parse_program(text)
    narrow(program)
    program.verify()
    once = str(program)
    narrow(program)
    assert str(program) == once


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (CHAIN, "a", "(t: 1 to T)"),
        (RECURRENCE, "h", "(t: 0 to P)"),
        (RECURRENCE, "n", "(t: 0 to P - 1)"),
        (WINDOW, "k", "(t: max(0, P - 4) to T)"),
        (HOST, "o", "(t: 0 to 1)"),
    ],
)
def test_narrowed_domains_read_well(text: str, name: str, expected: str) -> None:
    program = parse_program(text)
    narrow(program)
    assert str(op_named(program, name).domain) == expected


def test_what_nobody_needs_is_erased_and_interfaces_stay() -> None:
    program = parse_program(CHAIN)
    narrow(program)
    assert "unused" not in str(program)
    assert 'sdg.input "x" in (t)' in str(program)


def test_cases_without_points_are_dropped() -> None:
    program = parse_program(FIRST)
    narrow(program)
    (merge,) = [op for op in program.body.ops if isinstance(op, sdg.MergeOp)]
    assert [str(cond) for cond in merge.conds] == ["t = 0"]
    assert "sdg.exp" not in str(program)


def test_pure_ops_keep_more_points_where_that_is_simpler() -> None:
    program = parse_program(f"""
    sdg.program @gap dims(t: T) where T >= 9 {{
      %x = sdg.input "x" in (t) : tensor<f32>
      %a = sdg.exp %x[t] in (t) : {S}
      sdg.output "low" %a[t] in (t: 0 to 3) : tensor<f32>
      sdg.output "high" %a[t] in (t: 6 to T) : tensor<f32>
    }}""")
    narrow(program)
    assert str(op_named(program, "a").domain) == "(t)"


def test_more_points_are_not_kept_where_a_read_would_leave() -> None:
    program = parse_program(f"""
    sdg.program @gap dims(t: T) where T >= 9 {{
      %x = sdg.input "x" in (t where t < 3 or t >= 6) : tensor<f32>
      %a = sdg.exp %x[t] in (t) : {S}
      sdg.output "low" %a[t] in (t: 0 to 3) : tensor<f32>
      sdg.output "high" %a[t] in (t: 6 to T) : tensor<f32>
    }}""")
    narrow(program)
    program.verify()
    assert "t < 6" not in str(op_named(program, "a").domain)


def test_host_calls_for_effect_run_at_all_points() -> None:
    program = parse_program("""
    sdg.program @log dims(t: T) {
      %x = sdg.input "x" in (t) : tensor<f32>
      %env = sdg.host_state @log : !sdg.token
      %et = sdg.merge {t = 0 : %env, t > 0 : %e[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
      %e = sdg.host @log::@show(%x[t]) after %et[t] in (t) : (tensor<f32>, !sdg.token) -> (!sdg.token)
    }""")
    narrow(program)
    assert str(op_named(program, "e").domain) == "(t)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"%y = sdg.sum %x[0:4] axes [0] : {S}", ["T >= 4"]),
        (f"%y = sdg.neg %x[T - 1] : {S}", ["T >= 1"]),
        (f"%y = sdg.mean %x[0:T] axes [0] : {S}", ["T >= 1"]),
        (f"%y = sdg.mean %x[2:5] axes [0] : {S}", ["T >= 5"]),
        (f"%y = sdg.sum %x[0:P] axes [0] : {S}", []),
        (
            f"%o = sdg.broadcast %x[0] : (tensor<f32>) -> {REST}\n%y = sdg.sum %o axes [0] : ({REST}) -> tensor<f32>",
            ["T >= 3"],
        ),
        (f"%y = sdg.merge {{P > 0 : %x[0]}} : {S}", ["T >= 1", "P >= 1"]),
    ],
)
def test_reads_that_fail_for_small_bounds_become_preconditions(body: str, expected: list[str]) -> None:
    program = parse_program(f"""
    sdg.program @p dims(t: T, p: P) {{
      %x = sdg.input "x" in (t) : tensor<f32>
      {body}
      sdg.output "y" %y : tensor<f32>
    }}""")
    found = preconditions(program)
    assert [str(precondition.cond) for precondition in found] == expected or {
        str(precondition.cond) for precondition in found
    } == set(expected)


def test_settled_programs_state_what_they_need_and_why() -> None:
    program = parse_program(f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : tensor<f32>
      %y = sdg.sum %x[0:4] axes [0] : {S}
      sdg.output "y" %y : tensor<f32>
    }}""")
    with pytest.raises(VerifyException):
        program.verify()
    settle(program)
    program.verify()
    assert str(program.space.where) == "T >= 4"
    assert program.preconditions is not None
    assert "sdg.sum %y reads %x[0:4]" in str(program.preconditions)


def test_unguarded_reads_stay_errors() -> None:
    program = parse_program(f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : tensor<f32>
      %y = sdg.neg %x[t - 1] in (t) : {S}
      sdg.output "y" %y[t] in (t) : tensor<f32>
    }}""")
    assert settle(program) == []
    with pytest.raises(VerifyException, match="reads at t = -1"):
        program.verify()


@pytest.mark.parametrize(
    "body",
    [
        f"%y = sdg.merge {{i > 0 and t < T - 1 : %y[i - 1, t + 1], true : %z}} in (i, t) : {SS}",
        "%y = sdg.merge {t > 0 : %y[i, t - 1], i > 0 : %y[i - 1, T - 1], true : %z} in (i, t) : "
        "(tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>",
        "%y = sdg.merge {t < T - 1 : %y[i, t + 1], i > 0 : %y[i - 1, 0], true : %z} in (i, t) : "
        "(tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>",
        f"%s = sdg.sum %y[i, 0:t] axes [0] in (i, t) : {S}\n  %y = sdg.exp %s[i, t] in (i, t) : {S}",
    ],
)
def test_recurrences_are_causal(body: str) -> None:
    program = parse_program(f"""
    sdg.program @p dims(i: I, t: T) {{
      %z = sdg.constant 0.0 : tensor<f32>
      {body}
    }}""")
    check_causality(program)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"%y = sdg.exp %y[i, t] in (i, t) : {S}", "%y at i = 0, t = 0 needs %y at i = 0, t = 0"),
        (f"%s = sdg.sum %y[i, 0:t + 1] axes [0] in (i, t) : {S}\n  %y = sdg.exp %s[i, t] in (i, t) : {S}", "needs"),
        (f"%y = sdg.exp %y[i, T - 1 - t] in (i, t) : {S}", r"\(I = 1, T = 1\)"),
        (f"%y = sdg.merge {{t = 77 : %y[i, t], true : %z}} in (i, t) : {SS}", "t = 77"),
    ],
)
def test_values_that_need_themselves_are_refused(body: str, message: str) -> None:
    program = parse_program(f"""
    sdg.program @p dims(i: I, t: T) {{
      %z = sdg.constant 0.0 : tensor<f32>
      {body}
    }}""")
    with pytest.raises(VerifyException, match=message):
        check_causality(program)


QUOTIENTS = """
    sdg.program @p dims(i: N, j: N, t: N) {
      %env = sdg.host_state @log : !sdg.token
      %x = sdg.input "x" in (i, j, t) : tensor<f32>
      %a = sdg.sin %x[i, j, t] in (i, j, t) : (tensor<f32>) -> tensor<f32>
      %b = sdg.sin %a[(i + t) floordiv 3, (i + j) floordiv 2, (j + t) floordiv 2] in (i, j, t)
          : (tensor<f32>) -> tensor<f32>
      %c = sdg.sin %b[(i + j) floordiv 2, (j + t) floordiv 3, (t + i) floordiv 2] in (i, j, t)
          : (tensor<f32>) -> tensor<f32>
      sdg.output "y" %c[i, j, t] in (i, j, t) : tensor<f32>
    }"""


def test_points_that_are_much_work_to_find_are_not_narrowed() -> None:
    """The points of three quotients of pairs of dims, of which isl takes minutes to find the pieces."""
    program = parse_program(QUOTIENTS)
    analysis = Analysis(program)
    exact = {op.results[0].name_hint: analysis.needed[op].exact for op in analysis.ops if op.name == "sdg.sin"}
    assert not exact["a"]
    assert exact["c"]
    narrow(program)
    (first, *_) = [op for op in program.body.block.ops if isinstance(op, sdg.SinOp)]
    assert str(first.domain) == "(i, j, t)"


def test_a_cycle_that_is_much_work_in_many_small_steps_is_not_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`n` of the recurrence is needed at `(t: 0 to P - 1)`, which takes some thousand operations of isl to see."""
    monkeypatch.setattr("tempo_ir.dialects.sdg.points.MOST_OPERATIONS", 200)
    program = parse_program(RECURRENCE)
    narrow(program)
    program.verify()
    (made,) = [op for op in program.body.block.ops if isinstance(op, sdg.AddOp)]
    assert str(made.domain) == "(t)"


def test_a_call_at_points_that_are_much_work_to_find_is_refused() -> None:
    call = """%et = sdg.merge {i = 0 and j = 0 and t = 0 : %env, t > 0 : %e[i, j, t - 1], j > 0 : %e[i, j - 1, N - 1],
          i > 0 : %e[i - 1, N - 1, N - 1]} in (i, j, t)
          : (!sdg.token, !sdg.token, !sdg.token, !sdg.token) -> !sdg.token
      %a, %e = sdg.host @log::@step(%x[i, j, t]) after %et[i, j, t] in (i, j, t)
          : (tensor<f32>, !sdg.token) -> (tensor<f32>, !sdg.token)"""
    text = QUOTIENTS.replace("%a = sdg.sin %x[i, j, t] in (i, j, t) : (tensor<f32>) -> tensor<f32>", call)
    with pytest.raises(OpError, match="cannot be found exactly, and it must run at no others"):
        narrow(parse_program(text))


@pytest.mark.parametrize(
    ("declared", "index", "expected"),
    [
        ("P <= T", "3", "T >= 4"),
        ("T >= A", "3", "T >= 4"),
        ("2 * P <= T", "5", "T >= 6"),
        ("P <= T and Z <= T", "T - 4", "T >= 4"),
        ("T <= P", "3", "T >= 4"),
    ],
)
def test_a_precondition_excludes_as_few_sizes_as_can_be(declared: str, index: str, expected: str) -> None:
    program = parse_program(f"""sdg.program @p dims(t: T) where {declared} {{
      %x = sdg.input "x" in (t) : tensor<f64>
      %y = sdg.neg %x[{index}] in (t) : (tensor<f64>) -> tensor<f64>
      sdg.output "y" %y[t] in (t) : tensor<f64>
    }}""")
    assert [str(precondition.cond) for precondition in settle(program)] == [expected]
