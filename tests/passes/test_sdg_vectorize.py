"""sdg-vectorize: what becomes an axis, what must not, and the same values with it and without."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import (
    SIZES,
    apply,
    check_unchanged,
    check_values_stay,
    draw,
    outputs,
    parse,
    program_of,
    transformed,
)
from test_sdg_autodiff import ATTENTION_OVER_STATES, BACKWARDS, CAUSAL_ATTENTION, RECURRENT, WINDOW_OF_STATES
from test_sdg_autodiff import program as gradient_program
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects.sdg import SdgOp

V, M = "tensor<3xf64>", "tensor<3x4xf64>"
BOUNDS = [{"B": outer, "T": size} for outer in (0, 1, 3) for size in SIZES]


def program(body: str) -> str:
    text = f"""
    sdg.program @p dims(b: B, t: T) {{
      %x = sdg.input "x" in (b, t) : {V}
      %w = sdg.input "w" : {M}
      %k = sdg.input "k" in (b) : {V}
      %zero = sdg.constant 0.0 : {V}
      {body}
    }}"""
    return text.replace("{V}", V).replace("{M}", M).replace("{S}", "tensor<f64>")


def domains(text: str, *passes: str, **options: object) -> dict[str, str]:
    module = apply(parse(text), *passes, **options)
    return {
        op.results[0].name_hint: str(op.domain)
        for op in program_of(module).body.block.ops
        if isinstance(op, SdgOp) and op.results and op.results[0].name_hint
    }


PROJECTION = program("""
      %p = sdg.contract "a,ac->c" %x[b, t], %w in (b, t) : ({V}, {M}) -> tensor<4xf64>
      %q = sdg.tanh %p[b, t] in (b, t) : (tensor<4xf64>) -> tensor<4xf64>
      %y = sdg.contract "c,ac->a" %q[b, t], %w in (b, t) : (tensor<4xf64>, {M}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""")


def test_a_projection_becomes_one_product():
    text = transformed(PROJECTION, "sdg-vectorize")
    assert '"bta,ac->btc" %x[0:B, 0:T], %w' in text
    assert domains(PROJECTION, "sdg-vectorize", dims=("t",))["q"] == "(b)"
    check_unchanged(PROJECTION, "sdg-vectorize", bounds=BOUNDS)


RNN = program("""
      %s = sdg.merge {t = 0 : %zero, t > 0 : %h[b, t - 1]} in (b, t) : ({V}, {V}) -> {V}
      %p = sdg.contract "a,ac->c" %x[b, t], %w in (b, t) : ({V}, {M}) -> tensor<4xf64>
      %i = sdg.slice %p[b, t] take [0:3] in (b, t) : (tensor<4xf64>) -> {V}
      %q = sdg.add %s[b, t], %i[b, t] in (b, t) : ({V}, {V}) -> {V}
      %h = sdg.tanh %q[b, t] in (b, t) : ({V}) -> {V}
      %o = sdg.contract "a,ac->c" %h[b, t], %w in (b, t) : ({V}, {M}) -> tensor<4xf64>
      sdg.output "o" %o[b, t] in (b, t) : tensor<4xf64>""")


def test_a_recurrence_keeps_its_dim_and_loses_the_batch():
    along_time = domains(RNN, "sdg-vectorize", dims=("t",))
    assert along_time["h"] == along_time["s"] == "(b, t)"
    assert along_time["p"] == along_time["o"] == "(b)"
    both = domains(RNN, "sdg-vectorize")
    assert both["h"] == both["s"] == "(t)"
    assert both["p"] == both["o"] == "()"
    check_unchanged(RNN, "sdg-vectorize", bounds=BOUNDS)
    check_unchanged(RNN, "sdg-vectorize", "sdg-simplify", "sdg-reduce-domain", bounds=BOUNDS)


EVERYTHING = {
    "shifts": """
      %a = sdg.exp %x[b, t] in (b, t) : ({V}) -> {V}
      %n = sdg.neg %a[b, t - 1] in (b, t: 1 to T) : ({V}) -> {V}
      %m = sdg.merge {t = 0 : %zero, t > 0 : %n[b, t]} in (b, t) : ({V}, {V}) -> {V}
      %y = sdg.add %m[b, t], %a[b, T - 1 - t] in (b, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
    "ranges of both dims": """
      %a = sdg.exp %x[b, t] in (b, t) : ({V}) -> {V}
      %r = sdg.sum %a[0:B, 0:T] axes [0, 2] : ({V}) -> tensor<?xf64, #sdg.size<T>>
      %c = sdg.sum %a[0:B, t] axes [0] in (t) : ({V}) -> {V}
      %d = sdg.sum %a[b, 0:t + 1] axes [0] in (b, t) : ({V}) -> {V}
      sdg.output "r" %r : tensor<?xf64, #sdg.size<T>>
      sdg.output "c" %c[t] in (t) : {V}
      sdg.output "d" %d[b, t] in (b, t) : {V}""",
    "broadcasting": """
      %f = sdg.sum %x[b, t] axes [0] in (b, t) : ({V}) -> {S}
      %g = sdg.mul %f[b, t], %x[b, t] in (b, t) : ({S}, {V}) -> {V}
      %h = sdg.mul %f[b, t], %w in (b, t) : ({S}, {M}) -> {M}
      %i = sdg.add %k[b], %g[b, t] in (b, t) : ({V}, {V}) -> {V}
      %j = sdg.broadcast %f[b, t] in (b, t) : ({S}) -> {V}
      %y = sdg.maximum %i[b, t], %j[b, t] in (b, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}
      sdg.output "h" %h[b, t] in (b, t) : {M}""",
    "shapes": """
      %a = sdg.concat %x[b, t], %k[b] axis 0 in (b, t) : ({V}, {V}) -> tensor<6xf64>
      %c = sdg.reshape %a[b, t] in (b, t) : (tensor<6xf64>) -> tensor<2x3xf64>
      %d = sdg.transpose %c[b, t] permutation [1, 0] in (b, t) : (tensor<2x3xf64>) -> tensor<3x2xf64>
      %e = sdg.slice %d[b, t] take [0:3:2, 1] in (b, t) : (tensor<3x2xf64>) -> tensor<2xf64>
      %f = sdg.pad %e[b, t] low [1] high [0] value 2.0 in (b, t) : (tensor<2xf64>) -> {V}
      %g = sdg.softmax %f[b, t] axis 0 in (b, t) : ({V}) -> {V}
      %h = sdg.cumsum %g[b, t] axis 0 reverse in (b, t) : ({V}) -> {V}
      %y = sdg.sort %h[b, t] axis 0 descending in (b, t) : ({V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
    "integers": """
      %a = sdg.argmax %x[b, t] axis 0 in (b, t) : ({V}) -> tensor<i64>
      %o = sdg.one_hot %a[b, t] depth 3 in (b, t) : (tensor<i64>) -> {V}
      %r = sdg.gather %w, %a[b, t] axis 0 in (b, t) : ({M}, tensor<i64>) -> tensor<4xf64>
      %n = sdg.index t + 2 in (t) : tensor<i64>
      %f = sdg.cast %n[t] in (t) : (tensor<i64>) -> {S}
      %p = sdg.mul %f[t], %o[b, t] in (b, t) : ({S}, {V}) -> {V}
      sdg.output "p" %p[b, t] in (b, t) : {V}
      sdg.output "r" %r[b, t] in (b, t) : tensor<4xf64>""",
    "cases of the other dim": """
      %a = sdg.exp %x[b, t] in (b, t) : ({V}) -> {V}
      %y = sdg.merge {b = 0 : %zero, b > 0 : %a[b - 1, t]} in (b, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
    "a triangle": """
      %a = sdg.exp %x[b, t] in (b, t where t < b) : ({V}) -> {V}
      %y = sdg.merge {t < b : %a[b, t], t >= b : %zero} in (b, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
    "a neighbour of the next row": """
      %y = sdg.merge {b = 0 : %x[0, t], t = T - 1 : %x[b, t], t < T - 1 : %z[b - 1, t + 1]} in (b, t) :
        ({V}, {V}, {V}) -> {V}
      %z = sdg.neg %y[b, t] in (b, t) : ({V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
    "random draws": """
      %u = sdg.random uniform id 0 in (b, t) : {V}
      %y = sdg.add %u[b, t], %x[b, t] in (b, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_same_values(name):
    text = program(EVERYTHING[name])
    for dims in ((), ("t",), ("b",)):
        module = apply(parse(text), "sdg-vectorize", all=True, dims=dims)
        check_same(text, module)


WHERE_THERE_IS_A_POINT = {
    "one of a row": """
      %d = sdg.contract "a,ac->ac" %x[b, t], %w in (b, t) : ({V}, {M}) -> {M}
      %y = sdg.sum %d[1, t + 1:T] axes [0] in (t where T <= B) : ({M}) -> {M}
      sdg.output "y" %y[t] in (t where T <= B) : {M}""",
    "some of a row": """
      %d = sdg.contract "a,ac->ac" %x[b, t], %w in (b, t) : ({V}, {M}) -> {M}
      %y = sdg.sum %d[b + 2:B, 1:3] axes [0, 1] in (b where B <= T) : ({M}) -> {M}
      sdg.output "y" %y[b] in (b where B <= T) : {M}""",
    "a step past the end": """
      %d = sdg.contract "a,ac->ac" %x[b, t], %w in (b, t) : ({V}, {M}) -> {M}
      %y = sdg.sum %d[b, 0:T + 1:2] axes [0] in (b where T mod 2 = 1) : ({M}) -> {M}
      sdg.output "y" %y[b] in (b where T mod 2 = 1) : {M}""",
    "the last of an axis": """
      %d = sdg.contract "a,rc->rac" %x[b, t], %a in (b, t) : ({V}, {A}) -> {R}
      %y = sdg.slice %d[b, t] take [T - 1, 0:3, 0:3] in (b, t) : ({R}) -> tensor<3x3xf64>
      sdg.output "y" %y[b, t] in (b, t) : tensor<3x3xf64>""",
    "a greatest of an axis": """
      %d = sdg.contract "a,rc->rac" %x[b, t], %a in (b, t) : ({V}, {A}) -> {R}
      %y = sdg.max %d[b, t] axes [0] in (b, t) : ({R}) -> tensor<3x3xf64>
      %m = sdg.mean %d[b, t] axes [0] in (b, t) : ({R}) -> tensor<3x3xf64>
      %z = sdg.argmax %d[b, t] axis 0 in (b, t) : ({R}) -> tensor<3x3xi64>
      sdg.output "y" %y[b, t] in (b, t) : tensor<3x3xf64>
      sdg.output "m" %m[b, t] in (b, t) : tensor<3x3xf64>
      sdg.output "z" %z[b, t] in (b, t) : tensor<3x3xi64>""",
    "axes that are equal": """
      %d = sdg.contract "a,rc->rac" %x[b, t], %a in (b, t) : ({V}, {A}) -> {R}
      %y = sdg.contract "rac,rc->ac" %d[b, t], %n in (b, t) : ({R}, {N}) -> tensor<3x3xf64>
      sdg.output "y" %y[b, t] in (b, t) : tensor<3x3xf64>""",
    "an axis that is said to be": """
      %d = sdg.contract "a,rc->rc" %x[b, t], %a in (b, t) : ({V}, {A}) -> {N}
      %y = sdg.add %d[b, t], %n in (b, t) : ({N}, {N}) -> {N}
      sdg.output "y" %y[b, t] in (b, t) : {N}""",
    "cases that cover": """
      %d = sdg.contract "a,ac->c" %x[b, t], %w in (b, t) : ({V}, {M}) -> tensor<4xf64>
      %s = sdg.slice %d[b, t] take [1:4] in (b, t) : (tensor<4xf64>) -> {V}
      %y = sdg.merge {T >= 2 : %s[b, t], T = 1 : %x[b, t]} in (b, t) : ({V}, {V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""",
}
"""What is so only where there is a point of a dim, or of a range of the other."""


@pytest.mark.parametrize("name", WHERE_THERE_IS_A_POINT)
def test_what_holds_only_where_there_is_a_point(name):
    text = program(
        """
      %a = sdg.input "a" : {A}
      %n = sdg.input "n" : {N}"""
        + WHERE_THERE_IS_A_POINT[name]
    )
    text = text.replace("{A}", "tensor<?x3xf64, #sdg.size<T>>").replace("{N}", "tensor<?x3xf64, #sdg.size<max(1, T)>>")
    text = text.replace("{R}", "tensor<?x3x3xf64, #sdg.size<T>>")
    for dims in ((), ("t",), ("b",)):
        check_same(text, apply(parse(text), "sdg-vectorize", all=True, dims=dims))


def check_same(text, module):
    plain = parse(text)
    for point in BOUNDS:
        arrays = draw(program_of(plain), point)
        want, have = outputs(plain, arrays, point), outputs(module, arrays, point)
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=1e-12, atol=1e-12, err_msg=f"{key} at {point}")


def test_a_random_draw_stays_and_its_reader_reads_all_of_it():
    found = domains(program(EVERYTHING["random draws"]), "sdg-vectorize", all=True)
    assert found["u"] == "(b, t)"
    assert found["y"] == "()"


def test_small_chains_alone_stay():
    text = program("""
      %a = sdg.exp %x[b, t] in (b, t) : ({V}) -> {V}
      %y = sdg.neg %a[b, t] in (b, t) : ({V}) -> {V}
      sdg.output "y" %y[b, t] in (b, t) : {V}""")
    assert transformed(text, "sdg-vectorize") == transformed(text)
    assert domains(text, "sdg-vectorize", all=True)["y"] == "()"


ROWS = """
    sdg.program @p dims(t: T) {
      %x = sdg.input "x" in (t) : tensor<2x3xf64>
      %w = sdg.input "w" : tensor<5x3xf64>
      %u = sdg.input "u" : tensor<2x5xf64>
      %p = sdg.contract "bk,nk->bn" %x[t], %w in (t) : (tensor<2x3xf64>, tensor<5x3xf64>) -> tensor<2x5xf64>
      %q = sdg.add %p[t], %u in (t) : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5xf64>
      %zero = sdg.constant 0.0 : tensor<2x5xf64>
      %s = sdg.merge {t = 0 : %zero, t > 0 : %h[t - 1]} in (t) : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5xf64>
      %i = sdg.add %s[t], %q[t] in (t) : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5xf64>
      %h = sdg.tanh %i[t] in (t) : (tensor<2x5xf64>) -> tensor<2x5xf64>
      %all = sdg.sum %h[0:T] axes [0] : (tensor<2x5xf64>) -> tensor<2x5xf64>
      sdg.output "all" %all : tensor<2x5xf64>
      {more}
    }"""
READ = {
    "by the recurrence alone": "",
    "by an output too": 'sdg.output "q" %q[t] in (t) : tensor<2x5xf64>',
    "whole too": """%z = sdg.sum %q[0:T] axes [0] : (tensor<2x5xf64>) -> tensor<2x5xf64>
      sdg.output "z" %z : tensor<2x5xf64>""",
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("rows", [2, 3, 0])
def test_many_rows_for_a_recurrence_stay_in_its_loop(name: str, rows: int) -> None:
    """`p` has two rows at each point: where two are many, and nobody but the recurrence reads it, it stays."""
    text = ROWS.replace("{more}", READ[name])
    stays = rows == 2 and name == "by the recurrence alone"
    assert ('"tbk,nk->tbn" %x[0:T]' in transformed(text, "sdg-vectorize", rows=rows)) == (not stays)
    check_values_stay(parse(text), apply(parse(text), "sdg-vectorize", rows=rows), SIZES, 1e-12)


@pytest.mark.parametrize("body", [RECURRENT, BACKWARDS, CAUSAL_ATTENTION, WINDOW_OF_STATES, ATTENTION_OVER_STATES])
def test_gradients_are_those_of_the_plain_program(body):
    text, bounds = gradient_program(body), [{"T": size} for size in SIZES]
    check_unchanged(text, "sdg-vectorize", before=["sdg-autodiff"], bounds=bounds)
    full = ("sdg-simplify", "sdg-vectorize", "sdg-simplify", "sdg-fold-constants", "sdg-cse", "sdg-reduce-domain")
    check_unchanged(text, *full, before=["sdg-autodiff"], bounds=bounds)


@pytest.mark.parametrize("body", [RECURRENT, BACKWARDS, CAUSAL_ATTENTION])
def test_vectorised_programs_have_the_same_gradients(body):
    text = gradient_program(body)
    plain, early = apply(parse(text), "sdg-autodiff"), apply(parse(text), "sdg-vectorize", "sdg-autodiff")
    for size in SIZES:
        arrays = draw(program_of(plain), {"T": size})
        want, have = outputs(plain, arrays, {"T": size}), outputs(early, arrays, {"T": size})
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=1e-12, atol=1e-12)


def test_host_calls_stay():
    text = program("""
      %e0 = sdg.host_state @h : !sdg.token
      %e = sdg.merge {b = 0 and t = 0 : %e0, t > 0 : %e1[b, t - 1], b > 0 : %e1[b - 1, T - 1]} in (b, t) :
        (!sdg.token, !sdg.token, !sdg.token) -> !sdg.token
      %y, %e1 = sdg.host @h::@f(%x[b, t]) after %e[b, t] in (b, t) : ({V}, !sdg.token) -> ({V}, !sdg.token)
      %z = sdg.contract "a,ac->c" %y[b, t], %w in (b, t) : ({V}, {M}) -> tensor<4xf64>
      sdg.output "z" %z[b, t] in (b, t) : tensor<4xf64>""")
    found = domains(text, "sdg-vectorize")
    assert found["e"] == found["y"] == "(b, t)"
    assert found["z"] == "()"


def test_an_unknown_dim_is_refused():
    with pytest.raises(PassFailedException, match="has no dim `s`; it declares b, t"):
        apply(parse(PROJECTION), "sdg-vectorize", dims=("s",))
