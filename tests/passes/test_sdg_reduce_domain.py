"""sdg-reduce-domain: what runs less often, what must not, and the same values."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import SIZES, apply, check_unchanged, parse, program_of
from xdsl.dialects.builtin import ModuleOp

from tempo_ir.dialects.sdg import SdgOp

V = "tensor<3xf64>"
BOUNDS = [{"I": outer, "T": size} for outer in (0, 1, 2) for size in SIZES]


def program(body: str) -> str:
    text = f"""
    sdg.program @p dims(i: I, t: T) {{
      %w = sdg.input "w" in (i) : {V}
      %x = sdg.input "x" in (i, t) : {V}
      %zero = sdg.constant 0.0 : {V}
      {body}
    }}"""
    return text.replace("{V}", V)


def domains(text: str, *passes: str) -> dict[str, str]:
    return domains_of(apply(parse(text), *passes))


def domains_of(module: ModuleOp) -> dict[str, str]:
    found = {}
    for op in program_of(module).body.block.ops:
        if isinstance(op, SdgOp) and op.results and op.results[0].name_hint:
            found[op.results[0].name_hint] = str(op.domain)
    return found


HOISTED = program("""
      %d = sdg.exp %w[i] in (i, t) : ({V}) -> {V}
      %f = sdg.neg %d[i, t] in (i, t) : ({V}) -> {V}
      %e = sdg.mul %f[i, t], %x[i, t] in (i, t) : ({V}, {V}) -> {V}
      sdg.output "e" %e[i, t] in (i, t) : {V}""")


def test_hoisted():
    found = domains(HOISTED, "sdg-reduce-domain")
    assert found["d"] == found["f"] == "(i)"
    assert found["e"] == "(i, t)"
    check_unchanged(HOISTED, "sdg-reduce-domain", bounds=BOUNDS, exact=True)


NARROWED = program("""
      %h = sdg.merge {t = 0 : %zero, t > 0 : %g[i, t - 1]} in (i, t) : ({V}, {V}) -> {V}
      %g = sdg.add %h[i, t], %x[i, t] in (i, t) : ({V}, {V}) -> {V}
      %e = sdg.exp %x[i, t] in (i, t) : ({V}) -> {V}
      %y = sdg.mul %e[i, max(t - 1, 0)], %g[i, t] in (i, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[i, t] in (i, t) : {V}""")


def test_narrowed():
    found = domains(NARROWED, "sdg-reduce-domain")
    assert found["g"] == "(i, t)"
    check_unchanged(NARROWED, "sdg-reduce-domain", bounds=BOUNDS, exact=True)


KEPT = {
    "a range is read": """
      %d = sdg.exp %w[i] in (i, t) : ({V}) -> {V}
      %y = sdg.sum %d[i, 0:T] axes [0] in (i) : ({V}) -> {V}
      sdg.output "y" %y[i] in (i) : {V}""",
    "random draws": """
      %d = sdg.random uniform id 0 in (i, t) : {V}
      sdg.output "d" %d[i, t] in (i, t) : {V}""",
    "the index is a value": """
      %n = sdg.index t in (i, t) : tensor<i64>
      %d = sdg.cast %n[i, t] in (i, t) : (tensor<i64>) -> tensor<f64>
      sdg.output "d" %d[i, t] in (i, t) : tensor<f64>""",
    "the shape varies": """
      %d = sdg.arange [0:t] in (i, t) : tensor<?xi64, #sdg.size<t>>
      %y = sdg.sum %d[i, t] axes [0] in (i, t) : (tensor<?xi64, #sdg.size<t>>) -> tensor<i64>
      sdg.output "y" %y[i, t] in (i, t) : tensor<i64>""",
    "the case varies": """
      %d = sdg.merge {t = 0 : %zero, t > 0 : %w[i]} in (i, t) : ({V}, {V}) -> {V}
      sdg.output "d" %d[i, t] in (i, t) : {V}""",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name):
    text = program(KEPT[name])
    varying = [domain for domain in domains(text, "sdg-reduce-domain").values() if "t" in domain]
    assert len(varying) >= 2 if name == "the shape varies" else varying
    check_unchanged(text, "sdg-reduce-domain", bounds=BOUNDS, exact=True)


def test_index_that_ignores_a_dim_loses_it():
    text = program("""
      %n = sdg.index i in (i, t) : tensor<i64>
      sdg.output "n" %n[i, t] in (i, t) : tensor<i64>""")
    assert domains(text, "sdg-reduce-domain")["n"] == "(i)"
    check_unchanged(text, "sdg-reduce-domain", bounds=BOUNDS, exact=True)


def test_what_runs_once_runs_only_where_it_reads_something():
    """`%x[0, T - 1]` is there where the dims that go had a point, and else nowhere."""
    text = program("""
      %d = sdg.exp %x[0, T - 1] in (i, t) : ({V}) -> {V}
      %e = sdg.mul %d[i, t], %x[i, t] in (i, t) : ({V}, {V}) -> {V}
      sdg.output "e" %e[i, t] in (i, t) : {V}""")
    assert domains(text, "sdg-reduce-domain")["d"] == "(where I >= 1 and T >= 1)"
    check_unchanged(text, "sdg-reduce-domain", bounds=BOUNDS, exact=True)


WHERE_THERE_IS_A_POINT = {
    "equal axes": "%d = sdg.add %a, %b in (t) : ({A}, {B}) -> {A}",
    "an axis that is said to be equal": "%d = sdg.neg %a in (t) : ({A}) -> {B}",
    "cases": "%d = sdg.merge {T >= 2 : %a, T = 1 : %a} in (t) : ({A}, {A}) -> {A}",
}


@pytest.mark.parametrize("name", WHERE_THERE_IS_A_POINT)
def test_what_runs_once_runs_only_where_what_it_needs_holds(name):
    text = program(f"""
      %a = sdg.input "a" : {{A}}
      %b = sdg.input "b" : {{B}}
      {WHERE_THERE_IS_A_POINT[name]}
      %s = sdg.sum %d[t] axes [0] in (t) : ({"{B}" if "-> {B}" in WHERE_THERE_IS_A_POINT[name] else "{A}"}) -> {{V}}
      %y = sdg.mul %s[t], %x[i, t] in (i, t) : ({{V}}, {{V}}) -> {{V}}
      sdg.output "y" %y[i, t] in (i, t) : {{V}}""")
    text = text.replace("{A}", "tensor<?x3xf64, #sdg.size<T>>").replace("{B}", "tensor<?x3xf64, #sdg.size<max(1, T)>>")
    assert domains(text, "sdg-reduce-domain")["d"] == "(where I >= 1 and T >= 1)"
    check_unchanged(text, "sdg-reduce-domain", bounds=BOUNDS, exact=True)


def test_host_calls_keep_their_number():
    text = program("""
      %e0 = sdg.host_state @h : !sdg.token
      %e = sdg.merge {i = 0 and t = 0 : %e0, t > 0 : %e1[i, t - 1], i > 0 : %e1[i - 1, T - 1]} in (i, t) :
        (!sdg.token, !sdg.token, !sdg.token) -> !sdg.token
      %y, %e1 = sdg.host @h::@f(%w[i]) after %e[i, t] in (i, t) : ({V}, !sdg.token) -> ({V}, !sdg.token)
      sdg.output "y" %y[i, t] in (i, t) : {V}""")
    calls: list[int] = []

    class Host:
        def f(self, w):
            calls.append(1)
            return np.asarray(w)

    from tempo_ir.reference.sdg import run

    module = apply(parse(text), "sdg-reduce-domain")
    run(program_of(module), {"w": np.ones((2, 3)), "x": np.ones((2, 3, 3))}, {"I": 2, "T": 3}, hosts={"h": Host})
    assert len(calls) == 6


def test_gradients_are_those_of_the_plain_program():
    from test_sdg_autodiff import ATTENTION_OVER_STATES, BACKWARDS, CAUSAL_ATTENTION, RECURRENT
    from test_sdg_autodiff import program as gradient_program

    for body in (RECURRENT, BACKWARDS, CAUSAL_ATTENTION, ATTENTION_OVER_STATES):
        bounds = [{"T": size} for size in SIZES]
        check_unchanged(gradient_program(body), "sdg-reduce-domain", before=["sdg-autodiff"], bounds=bounds)


ENDS = {
    "points that come with this step, and others with the next": """
      %y = sdg.exp %x[i, t] in (i, t) : ({V}) -> {V}
      %m = sdg.merge {t >= 1 and i = 0 : %y[0, t - 1], i >= 1 : %y[i, t], true : %zero} in (i, t) :
        ({V}, {V}, {V}) -> {V}
      %s = sdg.sum %m[0:I, t] axes [0, 1] in (t) : ({V}) -> tensor<f64>""",
    "a triangle that needs no step": """
      %d = sdg.exp %w[i] in (i, t where t >= i) : ({V}) -> {V}
      %m = sdg.merge {t >= i : %d[i, t], t < i : %zero} in (i, t) : ({V}, {V}) -> {V}
      %s = sdg.sum %m[0:I, t] axes [0, 1] in (t) : ({V}) -> tensor<f64>""",
}


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_a_dim_is_known_in_time(name):
    text = program(
        ENDS[name]
        + """
      %two = sdg.constant 2.0 : tensor<f64>
      %e = sdg.gt %s[t], %two in (t) : (tensor<f64>, tensor<f64>) -> tensor<i1>
      sdg.until %e[t] in (t) : tensor<i1>
      sdg.output "s" %s[t] in (t) : tensor<f64>"""
    )
    module = check_unchanged(text, "sdg-reduce-domain", bounds=BOUNDS, exact=True)
    for key, domain in {"y": "(i, t)", "d": "(i, t where t >= i)", "s": "(t)"}.items():
        assert domains_of(module).get(key, domain) == domain
