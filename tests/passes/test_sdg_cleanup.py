"""sdg-dce, sdg-cse, sdg-fold-constants: what goes, what stays, and that no value changes."""

from __future__ import annotations

import pytest
from passes_support import SIZES, apply, check_unchanged, parse, program_of, transformed

V = "tensor<3xf64>"
BOUNDS = [{"T": size} for size in SIZES]


def program(body: str, dims: str = "t: T") -> str:
    text = f"""
    sdg.program @p dims({dims}) {{
      %x = sdg.input "x" in (t) : {V}
      %zero = sdg.constant 0.0 : {V}
      {body}
    }}"""
    return text.replace("{V}", V)


def ops(text: str, *passes: str) -> list[str]:
    module = apply(parse(text), *passes)
    return [op.name.removeprefix("sdg.") for op in program_of(module).body.block.ops]


TWO_RECURRENCES = program("""
      %a = sdg.exp %x[t] in (t) : ({V}) -> {V}
      %b = sdg.exp %x[t] in (t) : ({V}) -> {V}
      %s = sdg.merge {t = 0 : %zero, t > 0 : %g[t - 1]} in (t) : ({V}, {V}) -> {V}
      %g = sdg.add %s[t], %a[t] in (t) : ({V}, {V}) -> {V}
      %r = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : ({V}, {V}) -> {V}
      %h = sdg.add %b[t], %r[t] in (t) : ({V}, {V}) -> {V}
      %y = sdg.sub %g[t], %h[t] in (t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[t] in (t) : {V}
      sdg.output "h" %h[t] in (t) : {V}""")


def test_isomorphic_recurrences_merge():
    assert ops(TWO_RECURRENCES, "sdg-cse") == ["input", "constant", "exp", "merge", "add", "sub", "output", "output"]
    check_unchanged(TWO_RECURRENCES, "sdg-cse", bounds=BOUNDS, exact=True)


KEPT_APART = {
    "sides of a select": """
      %c = sdg.lt %x[t], %zero in (t) : ({V}, {V}) -> tensor<3xi1>
      %a = sdg.exp %x[t] in (t) : ({V}) -> {V}
      %y = sdg.select %c[t], %a[t], %x[t] in (t) : (tensor<3xi1>, {V}, {V}) -> {V}
      %z = sdg.select %c[t], %x[t], %a[t] in (t) : (tensor<3xi1>, {V}, {V}) -> {V}""",
    "reads at other points": """
      %y = sdg.add %x[t], %x[max(t - 1, 0)] in (t) : ({V}, {V}) -> {V}
      %z = sdg.add %x[t], %x[t] in (t) : ({V}, {V}) -> {V}""",
    "random ops of two ids": """
      %y = sdg.random uniform id 1 in (t) : {V}
      %z = sdg.random uniform id 2 in (t) : {V}""",
    "recurrences with other starts": """
      %one = sdg.constant 1.0 : {V}
      %y = sdg.merge {t = 0 : %zero, t > 0 : %a[t - 1]} in (t) : ({V}, {V}) -> {V}
      %a = sdg.add %y[t], %x[t] in (t) : ({V}, {V}) -> {V}
      %z = sdg.merge {t = 0 : %one, t > 0 : %b[t - 1]} in (t) : ({V}, {V}) -> {V}
      %b = sdg.add %z[t], %x[t] in (t) : ({V}, {V}) -> {V}""",
    "recurrences with other steps": """
      %y = sdg.merge {t = 0 : %zero, t > 0 : %a[t - 1]} in (t) : ({V}, {V}) -> {V}
      %a = sdg.add %y[t], %x[t] in (t) : ({V}, {V}) -> {V}
      %z = sdg.merge {t = 0 : %zero, t > 0 : %b[t - 1]} in (t) : ({V}, {V}) -> {V}
      %b = sdg.add %z[t], %a[t] in (t) : ({V}, {V}) -> {V}""",
    "operands of an op that does not commute": """
      %a = sdg.exp %x[t] in (t) : ({V}) -> {V}
      %y = sdg.sub %a[t], %x[t] in (t) : ({V}, {V}) -> {V}
      %z = sdg.sub %x[t], %a[t] in (t) : ({V}, {V}) -> {V}""",
}


@pytest.mark.parametrize("name", KEPT_APART)
def test_cse_keeps_apart(name):
    outputs = '\n      sdg.output "y" %y[t] in (t) : {V}\n      sdg.output "z" %z[t] in (t) : {V}'
    text = program(KEPT_APART[name] + outputs)
    assert ops(text, "sdg-cse") == ops(text)
    check_unchanged(text, "sdg-cse", bounds=BOUNDS, exact=True)


def test_cse_keeps_what_a_gradient_is_taken_by():
    text = program("""
      %a = sdg.exp %x[t] in (t) : ({V}) -> {V}
      %b = sdg.exp %x[t] in (t) : ({V}) -> {V}
      %p = sdg.mul %a[t], %b[t] in (t) : ({V}, {V}) -> {V}
      %loss = sdg.sum %p[t] axes [0] in (t) : ({V}) -> tensor<f64>
      %y = sdg.grad %loss wrt %a in (t) : (tensor<f64>, {V}) -> {V}
      sdg.output "y" %y[t] in (t) : {V}""")
    plain, merged = apply(parse(text), "sdg-autodiff"), apply(parse(text), "sdg-cse", "sdg-autodiff")
    assert str(plain) == str(merged)


def test_cse_keeps_host_calls():
    text = program("""
      %e0 = sdg.host_state @a : !sdg.token
      %f0 = sdg.host_state @b : !sdg.token
      %e = sdg.merge {t = 0 : %e0, t > 0 : %e1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
      %f = sdg.merge {t = 0 : %f0, t > 0 : %f1[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
      %y, %e1 = sdg.host @a::@m(%x[t]) after %e[t] in (t) : ({V}, !sdg.token) -> ({V}, !sdg.token)
      %z, %f1 = sdg.host @b::@m(%x[t]) after %f[t] in (t) : ({V}, !sdg.token) -> ({V}, !sdg.token)""")
    assert ops(text, "sdg-cse") == ops(text)
    assert ops(text, "sdg-dce") == [name for name in ops(text) if name != "constant"]


def test_dce_erases_cycles_and_keeps_the_signature():
    text = program("""
      %k = sdg.parameter "k" : {V}
      %h = sdg.tanh %s[t] in (t) : ({V}) -> {V}
      %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : ({V}, {V}) -> {V}
      %y = sdg.exp %x[t] in (t) : ({V}) -> {V}
      sdg.output "y" %y[t] in (t) : {V}""")
    assert ops(text, "sdg-dce") == ["input", "parameter", "exp", "output"]
    check_unchanged(text, "sdg-dce", bounds=BOUNDS, exact=True)


FOLDED = program("""
      %two = sdg.constant 2.0 : {V}
      %three = sdg.constant 3.0 : tensor<f64>
      %c = sdg.mul %two, %three in (t) : ({V}, tensor<f64>) -> {V}
      %n = sdg.index 7 in (t) : tensor<i64>
      %m = sdg.cast %n[t] in (t) : (tensor<i64>) -> tensor<f64>
      %d = sdg.constant dense<[1.0, 2.0, 3.0]> : {V}
      %r = sdg.reverse %d axis 0 in (t) : ({V}) -> {V}
      %s = sdg.add %r[t], %m[t] in (t) : ({V}, tensor<f64>) -> {V}
      %a = sdg.mul %x[t], %c[t] in (t) : ({V}, {V}) -> {V}
      %y = sdg.add %a[t], %s[t] in (t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[t] in (t) : {V}""")


def test_folding():
    assert ops(FOLDED, "sdg-fold-constants", "sdg-dce") == ["input", "constant", "constant", "mul", "add", "output"]
    text = transformed(FOLDED, "sdg-fold-constants")
    assert "sdg.constant 6.0 : tensor<3xf64>" in text
    assert "dense<[10.0, 9.0, 8.0]>" in text or "dense<[1.000000e+01, 9.000000e+00, 8.000000e+00]>" in text
    check_unchanged(FOLDED, "sdg-fold-constants", bounds=BOUNDS, exact=True)


NOT_FOLDED = program("""
      %n = sdg.index t in (t) : tensor<i64>
      %z = sdg.constant 0 : tensor<i64>
      %big = sdg.constant dense<[1.0, 2.0]> : tensor<2xf64>
      %b = sdg.broadcast %big in (t) : (tensor<2xf64>) -> tensor<64x2xf64>
      %s = sdg.sum %b[t] axes [0, 1] in (t) : (tensor<64x2xf64>) -> tensor<f64>
      %i = sdg.cast %n[t] in (t) : (tensor<i64>) -> tensor<f64>
      %y = sdg.add %i[t], %s[t] in (t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      sdg.output "y" %y[t] in (t) : tensor<f64>""")


def test_not_folded():
    assert ops(NOT_FOLDED, "sdg-fold-constants") == ops(NOT_FOLDED)


def test_division_by_zero_is_left_to_the_run():
    text = program("""
      %z = sdg.constant 0 : tensor<i64>
      %y = sdg.floordiv %z, %z in (t) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      sdg.output "y" %y[t] in (t) : tensor<i64>""")
    assert ops(text, "sdg-fold-constants") == ops(text)
