"""sdg-tile: known values, the same values with it and without at all sizes, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import apply, check_unchanged, draw, outputs, parse, program_of, transformed
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.passes.remarks import collecting

SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 17)


def program(body: str, *, where: str = "") -> str:
    text = f"""
    sdg.program @p dims(t: T){where} {{
      %a = sdg.input "a" in (t) : {{S}}
      %x = sdg.input "x" in (t) : {{V}}
      %q = sdg.input "q" in (t) : tensor<2x3x4xf64>
      %k = sdg.input "k" in (t) : tensor<2x4xf64>
      %v = sdg.input "v" in (t) : tensor<2x5xf64>
      {body}
    }}"""
    return typed(text)


TYPES = {
    "S": "tensor<f64>",
    "V": "tensor<3xf64>",
    "N": "tensor<?xf64, #sdg.size<t + 1>>",
    "I": "tensor<?xi64, #sdg.size<t + 1>>",
    "M": "tensor<?x3xf64, #sdg.size<t + 1>>",
    "W": "tensor<?x2x5xf64, #sdg.size<t + 1>>",
    "D": "tensor<2x3x?xf64, #sdg.size<t + 1>>",
    "K": "tensor<4xf64>",
}


def typed(text: str) -> str:
    for name, type_ in TYPES.items():
        text = text.replace(f"{{{name}}}", type_)
    return text


def reduced(kind: str, read: str) -> str:
    return program(f"""
      %y = sdg.{kind} %a[{read}] axes [0] in (t) : ({{S}}) -> {{S}}
      sdg.output "y" %y[t] in (t) : {{S}}""")


RANGES = ["0:t + 1", "t:T", "max(0, t - 5):t + 1", "t:min(t + 6, T)", "max(0, t - 3):min(T, t + 4)", "0:T", "0:t + 1:2",
          "t floordiv 2:t + 1", "t:t", "0:t", "t:T:3"]  # fmt: skip


@pytest.mark.parametrize("read", RANGES)
def test_reductions_over_ranges(read):
    body = "".join(
        f"""
      %{kind} = sdg.{kind} %x[{read}] axes [0] in (t) : ({{V}}) -> {{V}}
      sdg.output "{kind}" %{kind}[t] in (t) : {{V}}"""
        for kind in ("sum", "max", "min", "prod")
    )
    assert ("m: " in str(tiled(program(body), 3))) is (read != "t:t")
    same(program(body), 3)
    same(program(body), 4, sizes=(8, 9))


@pytest.mark.parametrize("read", [read for read in RANGES if read not in ("t:t", "0:t")])
def test_means_and_positions(read):
    body = f"""
      %mean = sdg.mean %x[{read}] axes [0, 1] in (t) : ({{V}}) -> {{S}}
      %first = sdg.argmax %a[{read}] axis 0 in (t) : ({{S}}) -> tensor<i64>
      %least = sdg.argmin %x[{read}] axis 0 in (t) : ({{V}}) -> tensor<3xi64>
      sdg.output "mean" %mean[t] in (t) : {{S}}
      sdg.output "first" %first[t] in (t) : tensor<i64>
      sdg.output "least" %least[t] in (t) : tensor<3xi64>"""
    same(program(body), 3)


def tiled(text: str, tile: int, *before: str, **options: object):
    return apply(apply(parse(text), *before), "sdg-tile", tile=tile, **options)


def same(text: str, tile: int, *before: str, sizes=SIZES, special: bool = False, **options: object) -> None:
    """The outputs with and without tiling agree at all sizes, reduced domains included."""
    plain, changed = apply(parse(text), *before), tiled(text, tile, *before, **options)
    shorter = apply(changed.clone(), "sdg-reduce-domain", "sdg-cse")
    for size in sizes:
        bounds = {"T": size}
        arrays = draw(program_of(plain), bounds, size)
        if special:
            generator = np.random.default_rng(size)
            for array in arrays.values():
                array[generator.random(array.shape) < 0.2] = np.nan
                array[generator.random(array.shape) < 0.2] = -np.inf
                array[generator.random(array.shape) < 0.3] = 1.0
        with np.errstate(all="ignore"):
            want = outputs(plain, arrays, bounds)
            for module in (changed, shorter):
                have = outputs(module, arrays, bounds)
                for key in want:
                    np.testing.assert_allclose(have[key], want[key], rtol=1e-12, atol=1e-12, err_msg=f"{key} at {size}")


def test_known_values_of_suffix_sums():
    for size, tile, expected in [
        (8, 4, [28, 28, 27, 25, 22, 18, 13, 7]),
        (7, 3, [21, 21, 20, 18, 15, 11, 6]),
    ]:
        module = tiled(reduced("sum", "t:T"), tile)
        arrays = {**draw(program_of(module), {"T": size}), "a": np.arange(size, dtype=np.float64)}
        assert list(outputs(module, arrays, {"T": size})["y"]) == expected


def test_known_values_of_prefixes():
    body = """
      %sum = sdg.sum %a[0:t + 1] axes [0] in (t) : ({S}) -> {S}
      %max = sdg.max %a[0:t + 1] axes [0] in (t) : ({S}) -> {S}
      %dot = sdg.contract "n,n->" %a[0:t + 1], %a[0:t + 1] in (t) : ({S}, {S}) -> {S}
      %p = sdg.softmax %a[0:t + 1] axis 0 in (t) : ({S}) -> tensor<?xf64, #sdg.size<t + 1>>
      %mix = sdg.contract "n,n->" %p[t], %a[0:t + 1] in (t) : (tensor<?xf64, #sdg.size<t + 1>>, {S}) -> {S}
      sdg.output "sum" %sum[t] in (t) : {S}
      sdg.output "max" %max[t] in (t) : {S}
      sdg.output "dot" %dot[t] in (t) : {S}
      sdg.output "mix" %mix[t] in (t) : {S}"""
    for size in (1, 6, 9):
        for tile in (3, 4, 64):
            module = tiled(program(body.replace("{S}", "tensor<f64>")), tile)
            assert (tile == 64) or "sdg.softmax" not in str(module)
            negative = -1.0 - np.arange(size)[::-1]
            arrays = {**draw(program_of(module), {"T": size}), "a": negative}
            found = outputs(module, arrays, {"T": size})
            np.testing.assert_allclose(found["sum"], np.cumsum(negative), rtol=1e-14)
            np.testing.assert_array_equal(found["max"], np.maximum.accumulate(negative))
            np.testing.assert_allclose(found["dot"], np.cumsum(negative**2), rtol=1e-14)
            weights = np.exp(negative)
            np.testing.assert_allclose(found["mix"], np.cumsum(weights * negative) / np.cumsum(weights), rtol=1e-13)


def test_a_long_axis():
    size = 300
    for read, expected in (("0:t + 1", np.cumsum), ("t:T", lambda a: np.cumsum(a[::-1])[::-1])):
        text = reduced("sum", read)
        module = apply(tiled(text, 64), "sdg-reduce-domain")
        values = np.random.default_rng(0).normal(size=size)
        arrays = {**draw(program_of(module), {"T": size}), "a": values}
        np.testing.assert_allclose(outputs(module, arrays, {"T": size})["y"], expected(values), rtol=1e-9, atol=1e-12)


ATTENTION = """
      %s = sdg.contract "hgd,nhd->hgn" %q[t], %k[0:t + 1] in (t) : (tensor<2x3x4xf64>, tensor<2x4xf64>) -> {D}
      {between}
      %p = sdg.softmax %{scores}[t] axis 2 in (t) : ({D}) -> {D}
      %o = sdg.contract "hgn,nhd->hgd" %p[t], %v[0:t + 1] in (t) : ({D}, tensor<2x5xf64>) -> tensor<2x3x5xf64>
      sdg.output "o" %o[t] in (t) : tensor<2x3x5xf64>"""
BETWEEN = {
    "s": "",
    "scaled": """
      %scale = sdg.constant 0.25 : tensor<f64>
      %scaled = sdg.mul %s[t], %scale in (t) : ({D}, tensor<f64>) -> {D}""",
    "biased": """
      %now = sdg.index t in (t) : tensor<i64>
      %places = sdg.arange [0:t + 1] in (t) : {I}
      %back = sdg.sub %places[t], %now[t] in (t) : ({I}, tensor<i64>) -> {I}
      %far = sdg.cast %back[t] in (t) : ({I}) -> {N}
      %biased = sdg.add %s[t], %far[t] in (t) : ({D}, {N}) -> {D}""",
    "masked": """
      %zero = sdg.constant 0.0 : tensor<f64>
      %never = sdg.constant -inf : tensor<f64>
      %keep = sdg.gt %a[0:t + 1], %zero in (t) : (tensor<f64>, tensor<f64>) -> tensor<?xi1, #sdg.size<t + 1>>
      %masked = sdg.select %keep[t], %s[t], %never in (t) : (tensor<?xi1, #sdg.size<t + 1>>, {D}, {S}) -> {D}""",
}


def attention(scores: str) -> str:
    body = ATTENTION.replace("{between}", BETWEEN[scores]).replace("{scores}", scores)
    return program(body)


@pytest.mark.parametrize("scores", BETWEEN)
def test_softmax_weighted_sums_run_online(scores):
    text = attention(scores)
    assert "sdg.softmax" not in str(tiled(text, 3))
    same(text, 3)
    same(text, 4, sizes=(8, 9))
    same(text, 3, sizes=(5, 9), special=True)


def test_rows_of_minus_infinity_give_zeros():
    module = tiled(attention("masked"), 3)
    arrays = draw(program_of(module), {"T": 8})
    arrays["a"] = np.array([-1.0, -1, -1, -1, 1, -1, -1, -1])
    found = outputs(module, arrays, {"T": 8})["o"]
    assert not found[:4].any()
    np.testing.assert_allclose(found[4:], np.broadcast_to(arrays["v"][4][:, None], (4, 2, 3, 5)), rtol=1e-15)


def test_nan_and_ties():
    text = program("""
      %first = sdg.argmax %a[0:t + 1] axis 0 in (t) : ({S}) -> tensor<i64>
      %last = sdg.argmin %a[t:T] axis 0 in (t) : ({S}) -> tensor<i64>
      %max = sdg.max %a[0:t + 1] axes [0] in (t) : ({S}) -> {S}
      sdg.output "first" %first[t] in (t) : tensor<i64>
      sdg.output "last" %last[t] in (t) : tensor<i64>
      sdg.output "max" %max[t] in (t) : {S}""")
    same(text, 3, special=True)


def test_any_and_all():
    text = program("""
      %zero = sdg.constant 0.0 : {S}
      %c = sdg.gt %a[t], %zero in (t) : ({S}, {S}) -> tensor<i1>
      %any = sdg.max %c[0:t + 1] axes [0] in (t) : (tensor<i1>) -> tensor<i1>
      %all = sdg.min %c[t:T] axes [0] in (t) : (tensor<i1>) -> tensor<i1>
      %where = sdg.argmax %c[0:t + 1] axis 0 in (t) : (tensor<i1>) -> tensor<i64>
      sdg.output "any" %any[t] in (t) : tensor<i1>
      sdg.output "all" %all[t] in (t) : tensor<i1>
      sdg.output "where" %where[t] in (t) : tensor<i64>""")
    same(text, 3)


CHAINS = {
    "elementwise, a number and a transpose": """
      %half = sdg.constant 0.5 : {S}
      %e = sdg.exp %x[0:t + 1] in (t) : ({V}) -> {M}
      %h = sdg.add %e[t], %half in (t) : ({M}, {S}) -> {M}
      %r = sdg.transpose %h[t] permutation [1, 0] in (t) : ({M}) -> tensor<3x?xf64, #sdg.size<t + 1>>
      %y = sdg.sum %r[t] axes [1] in (t) : (tensor<3x?xf64, #sdg.size<t + 1>>) -> {V}""",
    "a reshape and a reduction of another axis": """
      %r = sdg.reshape %v[0:t + 1] in (t) : (tensor<2x5xf64>) -> tensor<?x10xf64, #sdg.size<t + 1>>
      %m = sdg.max %r[t] axes [1] in (t) : (tensor<?x10xf64, #sdg.size<t + 1>>) -> {N}
      %o = sdg.contract "n,nd->d" %m[t], %x[0:t + 1] in (t) : ({N}, {V}) -> {V}
      %y = sdg.neg %o[t] in (t) : ({V}) -> {V}""",
    "what has no rule is sliced": """
      %c = sdg.cumsum %x[0:t + 1] axis 0 in (t) : ({V}) -> {M}
      %y = sdg.contract "nd,nd->d" %c[t], %x[0:t + 1] in (t) : ({M}, {V}) -> {V}""",
    "a value of the step before": """
      %zero = sdg.constant 0.0 : {V}
      %e = sdg.exp %x[0:t + 1] in (t) : ({V}) -> {M}
      %z = sdg.sum %e[t - 1] axes [0] in (t: 1 to T) : ({M}) -> {V}
      %y = sdg.merge {t = 0 : %zero, t > 0 : %z[t]} in (t) : ({V}, {V}) -> {V}""",
    "a recurrence through the range": """
      %s = sdg.sum %y[0:t] axes [0] in (t) : ({V}) -> {V}
      %y = sdg.add %s[t], %x[t] in (t) : ({V}, {V}) -> {V}""",
    "weights that others read too": """
      %p = sdg.softmax %x[0:t + 1] axis 0 in (t) : ({V}) -> {M}
      %m = sdg.max %p[t] axes [0] in (t) : ({M}) -> {V}
      %o = sdg.contract "nd,nd->d" %p[t], %x[0:t + 1] in (t) : ({M}, {V}) -> {V}
      %y = sdg.add %m[t], %o[t] in (t) : ({V}, {V}) -> {V}""",
    "weights of several rows": """
      %p = sdg.softmax %x[0:t + 1] axis 0 in (t) : ({V}) -> {M}
      %y = sdg.contract "nd,ne->e" %p[t], %x[0:t + 1] in (t) : ({M}, {V}) -> {V}""",
    "weights that are scaled, in another order": """
      %p = sdg.softmax %v[0:t + 1] axis 0 in (t) : (tensor<2x5xf64>) -> {W}
      %w = sdg.mul %p[t], %a[t] in (t) : ({W}, {S}) -> {W}
      %o = sdg.contract "nhd,nc->dhc" %w[t], %x[0:t + 1] in (t) : ({W}, {V}) -> tensor<5x2x3xf64>
      %y = sdg.sum %o[t] axes [0, 1] in (t) : (tensor<5x2x3xf64>) -> {V}""",
}


SLICED = ("what has no rule is sliced", "weights that others read too", "weights of several rows")


@pytest.mark.parametrize("name", CHAINS)
def test_what_an_operand_is_made_of(name):
    text = program(CHAINS[name] + '\n      sdg.output "y" %y[t] in (t) : {V}')
    for tile in (3, 4):
        changed = str(tiled(text, tile))
        assert ", m: " in changed
        assert ("sdg.slice" in changed) is (
            name in ("what has no rule is sliced", "weights that others read too", "weights of several rows")
        )
        same(text, tile)


def test_two_open_axes():
    text = """
    sdg.program @p dims(i: I, t: T) {
      %c = sdg.input "c" in (i, t) : tensor<f64>
      %y = sdg.sum %c[0:i + 1, t:T] axes [0, 1] in (i, t) : (tensor<f64>) -> tensor<f64>
      %z = sdg.max %c[i, 0:t + 1] axes [0] in (i, t) : (tensor<f64>) -> tensor<f64>
      sdg.output "y" %y[i, t] in (i, t) : tensor<f64>
      sdg.output "z" %z[i, t] in (i, t) : tensor<f64>
    }"""
    bounds = [{"I": i, "T": t} for i in (1, 4, 7) for t in (0, 1, 7)]
    plain, changed = parse(text), tiled(text, 3)
    for point in bounds:
        arrays = draw(program_of(plain), point)
        want, have = outputs(plain, arrays, point), outputs(changed, arrays, point)
        for key in want:
            np.testing.assert_allclose(have[key], want[key], rtol=1e-12)


def test_tiles_are_the_same_at_all_points():
    for read in ("0:t + 1", "t:T"):
        module = apply(tiled(reduced("sum", read), 4), "sdg-reduce-domain")
        sums = [op for op in program_of(module).body.block.ops if op.name == "sdg.sum"]
        assert [op.domain.dims for op in sums] == [("t",), ("m",)], read


def test_sixteen_bits_are_summed_in_f32():
    text = """
    sdg.program @p dims(t: T) {
      %a = sdg.input "a" in (t) : tensor<bf16>
      %y = sdg.sum %a[0:T] axes [0] : (tensor<bf16>) -> tensor<bf16>
      sdg.output "y" %y : tensor<bf16>
    }"""
    ones = np.ones(1000, dtype=np.float32).astype("bfloat16")
    assert outputs(tiled(text, 4), {"a": ones}, {"T": 1000})["y"] == 1000


def test_fixed_axes_only_where_asked():
    text = program("""
      %y = sdg.sum %v[t] axes [1] in (t) : (tensor<2x5xf64>) -> tensor<2xf64>
      sdg.output "y" %y[t] in (t) : tensor<2xf64>""")
    assert transformed(text, "sdg-tile", tile=2) == transformed(text)
    assert "take [0:2, 2 * m:2 * m + 2]" in transformed(text, "sdg-tile", tile=2, static=True)
    same(text, 2, sizes=(0, 1, 3), static=True)
    same(attention("scaled"), 3, sizes=(0, 1, 5, 8), static=True)


@pytest.mark.parametrize("read", ["max(0, t - 3):t + 1", "t:min(t + 4, T)", "t:t"])
def test_no_more_than_a_tile_stays(read):
    text = reduced("sum", read)
    assert transformed(text, "sdg-tile", tile=4) == transformed(text)


def test_once_is_enough():
    text = attention("biased")
    once = tiled(text, 4)
    assert str(apply(once.clone(), "sdg-tile", tile=4)) == str(once)


def test_the_length_of_a_tile_is_chosen_by_the_bytes_of_a_row():
    assert "256 * m:256 * m + 256" in transformed(reduced("sum", "0:t + 1"), "sdg-tile")
    wide = reduced("sum", "0:t + 1").replace("tensor<f64>", "tensor<512xf64>")
    assert "16 * m:16 * m + 16" in transformed(wide, "sdg-tile")


def test_remarks_say_what_is_not_computed_tile_by_tile():
    text = program(CHAINS["what has no rule is sliced"] + '\n      sdg.output "y" %y[t] in (t) : {V}')
    with collecting() as collector:
        tiled(text, 3)
    assert [remark.message for remark in collector.remarks] == [
        "%c[t] is not computed tile by tile: its value is sliced"
    ]


def test_a_tile_of_nothing_is_refused():
    with pytest.raises(PassFailedException, match="a tile has at least one element, got tile=0"):
        tiled(reduced("sum", "0:t + 1"), 0)
    with pytest.raises(PassFailedException, match=r"a tile has at most 2\*\*40 elements"):
        tiled(reduced("sum", "0:t + 1"), 10**20)


GRADIENT = typed("""
    sdg.program @p dims(t: T) {
      %q = sdg.input "q" in (t) : {K}
      %k = sdg.input "k" in (t) : {K}
      %s = sdg.contract "d,nd->n" %q[t], %k[0:t + 1] in (t) : ({K}, {K}) -> {N}
      %p = sdg.softmax %s[t] axis 0 in (t) : ({N}) -> {N}
      %o = sdg.contract "n,nd->d" %p[t], %k[0:t + 1] in (t) : ({N}, {K}) -> {K}
      %loss = sdg.sum %o[t] axes [0] in (t) : ({K}) -> tensor<f64>
      %dq = sdg.grad %loss wrt %q in (t) : (tensor<f64>, {K}) -> {K}
      %dk = sdg.grad %loss wrt %k in (t) : (tensor<f64>, {K}) -> {K}
      sdg.output "loss" %loss[t] in (t) : tensor<f64>
      sdg.output "dq" %dq[t] in (t) : {K}
      sdg.output "dk" %dk[t] in (t) : {K}
    }""")


def test_gradients_are_tiled_after_they_are_expanded():
    same(GRADIENT, 3, "sdg-autodiff", sizes=(0, 1, 3, 8))
    check_unchanged(GRADIENT, "sdg-tile", before=["sdg-autodiff"], bounds=[{"T": 5}])


HOST = """
    sdg.program @p dims(t: T) {
      %a = sdg.input "a" in (t) : tensor<f64>
      %start = sdg.host_state @log : !sdg.token
      %before = sdg.merge {t = 0 : %start, t > 0 : %after[t - 1]} in (t) : (!sdg.token, !sdg.token) -> !sdg.token
      %got, %after = sdg.host @log::@call(%a[t]) after %before[t] in (t)
          : (tensor<f64>, !sdg.token) -> (tensor<5xf64>, !sdg.token)
      %y = sdg.sum %got[t] axes [0] in (t) : (tensor<5xf64>) -> tensor<f64>
      %z = sdg.max %y[0:t + 1] axes [0] in (t) : (tensor<f64>) -> tensor<f64>
      sdg.output "z" %z[t] in (t) : tensor<f64>
    }"""


def test_what_a_host_gives_is_sliced():
    text = transformed(HOST, "sdg-tile", tile=2, static=True)
    assert "sdg.slice %got[t, m] take" in text or "sdg.slice %got[t] take" in text
    assert "2 * m:2 * m + 2" in text
