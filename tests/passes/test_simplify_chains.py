"""sdg-simplify: groups of operands, and chains of ops that move elements: what becomes of them, and the same values.

Each program is run with finite numbers and with NaN and infinities, before and after.
"""

from __future__ import annotations

import numpy as np
import pytest
from passes_support import apply, parse, program_of

from tempo_ir.reference.sdg import run
from tests.fuzz.arguments import draw

M, N, I, C = "tensor<3x4xf64>", "tensor<3x4xi8>", "tensor<3x4xi32>", "tensor<3x4xi1>"


def program(body: str, result: str) -> str:
    text = f"""
    sdg.program @p dims(t: T) {{
      %x = sdg.input "x" in (t) : {M}
      %z = sdg.input "z" : {M}
      %n = sdg.input "n" in (t) : {N}
      %m = sdg.input "m" : {N}
      %c = sdg.input "c" in (t) : {C}
      %d = sdg.input "d" : {C}
      {body}
      sdg.output "y" %y[t] in (t) : {result}
    }}"""
    return text.replace("{M}", M).replace("{N}", N).replace("{C}", C)


def ops(text: str, *passes: str, **options: object) -> list[str]:
    module = apply(parse(text), *passes, **options)
    names = [op.name.removeprefix("sdg.") for op in program_of(module).body.block.ops]
    return [name for name in names if name not in ("input", "output", "constant")]


def binary(name: str, lhs: str, rhs: str, kind: str, result: str = "", op: str = "y") -> str:
    types = [kind if side.endswith("[t]") or side in ("%z", "%m", "%d") else element_of(kind) for side in (lhs, rhs)]
    return f"%{op} = sdg.{name} {lhs}, {rhs} in (t) : ({', '.join(types)}) -> {result or kind}\n"


def element_of(kind: str) -> str:
    return f"tensor<{kind.removesuffix('>').split('x')[-1]}>"


def constant(name: str, number: str, kind: str) -> str:
    return f"%{name} = sdg.constant {number} : {element_of(kind)}\n"


def chain(kind: str, *steps: str) -> str:
    """Ops in a row from `x` on, each with the type that it makes: `chain(M, "sum {} axes [1]", U, ...)`."""
    text, operand = "", "x"
    for place in range(0, len(steps), 2):
        op, result = steps[place].format(f"%{operand}[t]"), steps[place + 1]
        made = "y" if place == len(steps) - 2 else f"i{place or ''}"
        text += f"%{made} = sdg.{op} in (t) : ({kind}) -> {result}\n"
        kind, operand = result, made
    return text


def both(name: str, first: str, second: str, kind: str) -> str:
    """`(x op a) op b`, with constants."""
    x = {M: "%x[t]", N: "%n[t]", C: "%c[t]"}[kind]
    return (
        constant("a", first, kind)
        + constant("b", second, kind)
        + binary(name, x, "%a", kind, op="i")
        + binary(name, "%i[t]", "%b", kind)
    )


def grown(columns: str) -> str:
    """The type of `x` with other columns."""
    return f"tensor<3x{columns}xf64>" if columns.isdigit() else f"tensor<3x?xf64, #sdg.size<{columns}>>"


def padded(name: str, source: str, low: str, high: str, columns: str, value: str = "0.0") -> str:
    shape = f"low {low} high {high} value {value} in (t) : ({M}) -> {grown(columns)}"
    return f"%{name} = sdg.pad {source} {shape}\n"


def summed(lhs: str, rhs: str, columns: str, name: str = "y") -> str:
    kind = grown(columns)
    return f"%{name} = sdg.add {lhs}, {rhs} in (t) : ({kind}, {kind}) -> {kind}\n"


TWO = constant("a", "100", N) + constant("b", "90", N)
REGROUPED = {
    "(n + 100) + 90 wraps": (both("add", "100", "90", N), N, ["add"]),
    "(n * 100) * 90": (both("mul", "100", "90", N), N, ["mul"]),
    "max(max(x, 1), 2)": (both("maximum", "1.0", "2.0", M), M, ["maximum"]),
    "min(min(x, nan), 2)": (both("minimum", "nan", "2.0", M), M, ["minimum"]),
    "n and 12 and 10": (both("and", "12", "10", N), N, ["and"]),
    "n xor 12 xor 10": (both("xor", "12", "10", N), N, ["xor"]),
    "(n - 100) + 90": (TWO + binary("sub", "%n[t]", "%a", N, op="i") + binary("add", "%i[t]", "%b", N), N, ["add"]),
    "(100 - n) - 90": (TWO + binary("sub", "%a", "%n[t]", N, op="i") + binary("sub", "%i[t]", "%b", N), N, ["sub"]),
    "90 - (n + 100)": (TWO + binary("add", "%n[t]", "%a", N, op="i") + binary("sub", "%b", "%i[t]", N), N, ["sub"]),
    "90 - (100 - n)": (TWO + binary("sub", "%a", "%n[t]", N, op="i") + binary("sub", "%b", "%i[t]", N), N, ["add"]),
    "90 - (n - 100)": (TWO + binary("sub", "%n[t]", "%a", N, op="i") + binary("sub", "%b", "%i[t]", N), N, ["sub"]),
    "(n + m) - m": (binary("add", "%n[t]", "%m", N, op="i") + binary("sub", "%i[t]", "%m", N), N, []),
    "(m + n) - m": (binary("add", "%m", "%n[t]", N, op="i") + binary("sub", "%i[t]", "%m", N), N, []),
    "(n - m) + m": (binary("sub", "%n[t]", "%m", N, op="i") + binary("add", "%m", "%i[t]", N), N, []),
    "m - (m - n)": (binary("sub", "%m", "%n[t]", N, op="i") + binary("sub", "%m", "%i[t]", N), N, []),
    "n * m + n * n": (
        binary("mul", "%n[t]", "%m", N, op="i") + binary("mul", "%n[t]", "%n[t]", N, op="j")
        + binary("add", "%i[t]", "%j[t]", N), N, ["add", "mul"],
    ),
    "m * n - n * n": (
        binary("mul", "%m", "%n[t]", N, op="i") + binary("mul", "%n[t]", "%n[t]", N, op="j")
        + binary("sub", "%i[t]", "%j[t]", N), N, ["sub", "mul"],
    ),
    "(-x) * (-z)": (
        f"%i = sdg.neg %x[t] in (t) : ({M}) -> {M}\n%j = sdg.neg %z : ({M}) -> {M}\n"
        f"%y = sdg.mul %i[t], %j in (t) : ({M}, {M}) -> {M}", M, ["mul"],
    ),
    "-(x - z)": (
        binary("sub", "%x[t]", "%z", M, op="i") + f"%y = sdg.neg %i[t] in (t) : ({M}) -> {M}", M, ["sub"],
    ),
    "not (x = z)": (
        binary("eq", "%x[t]", "%z", M, C, op="i") + f"%y = sdg.not %i[t] in (t) : ({C}) -> {C}", C, ["ne"],
    ),
    "not (n < m)": (
        binary("lt", "%n[t]", "%m", N, C, op="i") + f"%y = sdg.not %i[t] in (t) : ({C}) -> {C}", C, ["ge"],
    ),
    "c and (c or d)": (binary("or", "%d", "%c[t]", C, op="i") + binary("and", "%c[t]", "%i[t]", C), C, []),
    "max(max(x, z), z)": (binary("maximum", "%x[t]", "%z", M, op="i") + binary("maximum", "%i[t]", "%z", M), M,
                          ["maximum"]),
    "max(n, min(n, m))": (binary("minimum", "%n[t]", "%m", N, op="i") + binary("maximum", "%n[t]", "%i[t]", N), N,
        []),
    "c ? (c ? x : z) : z + x": (
        f"%i = sdg.select %c[t], %x[t], %z in (t) : ({C}, {M}, {M}) -> {M}\n" + binary("add", "%x[t]", "%z", M, op="j")
        + f"%y = sdg.select %c[t], %i[t], %j[t] in (t) : ({C}, {M}, {M}) -> {M}", M, ["add", "select"],
    ),
}  # fmt: skip
V, W, U = "tensor<4xf64>", "tensor<4x3xf64>", "tensor<3xf64>"
MOVED = {
    "sum of a transpose": (chain(M, "transpose {} permutation [1, 0]", W, "sum {} axes [0]", U), U, ["sum"]),
    "max of a transpose, transposed": (
        chain(M, "broadcast {}", "tensor<2x3x4xf64>", "transpose {} permutation [2, 0, 1]", "tensor<4x2x3xf64>",
        "max {} axes [1]", W), W, ["transpose"],
    ),
    "min of a reversal": (chain(M, "reverse {} axis 1", M, "min {} axes [1]", U), U, ["min"]),
    "max of a sort": (
        chain(M, "sort {} axis 0 descending", M, "max {} axes [0, 1]", "tensor<f64>"), "tensor<f64>", ["max"],
    ),
    "sum of a pad": (
        chain(M, "pad {} low [0, t] high [0, 2] value 0.0", "tensor<3x?xf64, #sdg.size<t + 6>>", "sum {} axes [1]",
        U), U, ["sum"],
    ),
    "unit axes transposed": (
        chain(M, "reshape {}", "tensor<3x1x4xf64>", "transpose {} permutation [1, 0, 2]", "tensor<1x3x4xf64>"),
        "tensor<1x3x4xf64>", ["reshape"],
    ),
    "leading axes broadcast": (
        chain(M, "reshape {}", "tensor<1x3x4xf64>", "broadcast {}", "tensor<5x3x4xf64>"), "tensor<5x3x4xf64>",
        ["broadcast"],
    ),
    "cumsum of one": (
        chain(M, "reshape {}", "tensor<12x1xf64>", "cumsum {} axis 1", "tensor<12x1xf64>"), "tensor<12x1xf64>",
        ["reshape"],
    ),
    "sort of a sort": (chain(M, "sort {} axis 0 descending", M, "sort {} axis 0", M), M, ["sort"]),
    "slice of a transpose": (
        chain(M, "transpose {} permutation [1, 0]", W, "slice {} take [2, 0:2]", "tensor<2xf64>"), "tensor<2xf64>",
        ["slice"],
    ),
    "slice of a broadcast, smaller": (
        f"%i = sdg.broadcast %z : ({M}) -> tensor<5x3x4xf64>\n"
        "%y = sdg.slice %i take [0:2, 1:3, 0:4] in (t) : (tensor<5x3x4xf64>) -> tensor<2x2x4xf64>",
        "tensor<2x2x4xf64>", ["slice", "broadcast"],
    ),
    "slice of a broadcast, undone": (
        chain(M, "broadcast {}", "tensor<5x3x4xf64>", "slice {} take [4, 1, 0:4]", V), V, ["slice"],
    ),
    "slice of a stretched axis": (
        chain(M, "reshape {}", "tensor<12x1xf64>", "broadcast {}", "tensor<12x7xf64>", "slice {} take [3:8, 2]",
        "tensor<5xf64>"), "tensor<5xf64>", ["reshape", "slice"],
    ),
    "element of a reversal": (chain(M, "reverse {} axis 0", M, "slice {} take [0, 0:4]", V), V, ["slice"]),
    "slice of a concatenation": (
        f"%i = sdg.concat %x[t], %z axis 0 in (t) : ({M}, {M}) -> tensor<6x4xf64>\n"
        f"%y = sdg.slice %i[t] take [4:6, 1] in (t) : (tensor<6x4xf64>) -> tensor<2xf64>", "tensor<2xf64>", ["slice"],
    ),
    "slice inside a pad": (
        chain(M, "pad {} low [0, t] high [1, 2] value 5.0", "tensor<4x?xf64, #sdg.size<t + 6>>",
        "slice {} take [0:3, t + 1]", U), U, ["slice"],
    ),
    "concatenation of concatenations": (
        f"%i = sdg.concat %x[t], %z axis 1 in (t) : ({M}, {M}) -> tensor<3x8xf64>\n"
        f"%y = sdg.concat %z, %i[t] axis 1 in (t) : ({M}, tensor<3x8xf64>) -> tensor<3x12xf64>", "tensor<3x12xf64>",
        ["concat"],
    ),
    "neighbouring slices": (
        f"%i = sdg.slice %x[t] take [0:3, 0:1] in (t) : ({M}) -> tensor<3x1xf64>\n"
        f"%j = sdg.slice %x[t] take [0:3, 1:3] in (t) : ({M}) -> tensor<3x2xf64>\n"
        "%y = sdg.concat %i[t], %j[t] axis 1 in (t) : (tensor<3x1xf64>, tensor<3x2xf64>) -> tensor<3x3xf64>",
        "tensor<3x3xf64>", ["slice"],
    ),
    "pad of a pad": (
        chain(M, "pad {} low [0, 1] high [0, 2] value 1.0", "tensor<3x7xf64>",
        "pad {} low [1, 1] high [0, 0] value 1.0", "tensor<4x8xf64>"), "tensor<4x8xf64>", ["pad"],
    ),
    "pads side by side": (
        padded("i", "%x[t]", "[0, 4]", "[0, T]", "T + 8") + padded("j", "%z", "[0, 0]", "[0, T + 4]", "T + 8")
        + summed("%i[t]", "%j[t]", "T + 8"), grown("T + 8"), ["concat", "pad"],
    ),
    "pads side by side, in any order": (
        padded("i", "%x[t]", "[0, 8]", "[0, 0]", "12") + padded("j", "%z", "[0, 0]", "[0, 8]", "12")
        + padded("k", "%x[t]", "[0, 4]", "[0, 4]", "12") + summed("%i[t]", "%j[t]", "12", "l")
        + summed("%l[t]", "%k[t]", "12"), grown("12"), ["concat"],
    ),
    "product of what lost an axis": (
        chain(M, "slice {} take [0:1, 0:4]", "tensor<1x4xf64>", "reshape {}", V)
        .replace("%y", "%v") + f'%y = sdg.contract "ab,b->a" %z, %v[t] in (t) : ({M}, {V}) -> {U}', U,
        ["slice", "contract"],
    ),
    "outer product of what lost an axis": (
        f"%i = sdg.slice %x[t] take [0:1, 0:4] in (t) : ({M}) -> tensor<1x4xf64>\n"
        f"%j = sdg.slice %z take [0:1, 0:3] : ({M}) -> tensor<1x3xf64>\n"
        f"%k = sdg.reshape %j : (tensor<1x3xf64>) -> {U}\n"
        f'%y = sdg.contract "ab,c->bc" %i[t], %k in (t) : (tensor<1x4xf64>, {U}) -> {W}', W,
        ["slice", "slice", "contract"],
    ),
    "sum of what lost an axis": (
        chain(M, "slice {} take [0:3, 1:2]", "tensor<3x1xf64>", "reshape {}", U, "sum {} axes [0]", "tensor<f64>"),
        "tensor<f64>", ["slice", "sum"],
    ),
    "product with ones": (
        f"%o = sdg.constant 1.0 : {V}\n"
        f'%y = sdg.contract "ab,b->a" %x[t], %o in (t) : ({M}, {V}) -> {U}', U, ["sum"],
    ),
    "product with a broadcast": (
        f"%i = sdg.slice %z take [0, 0:4] : ({M}) -> {V}\n%r = sdg.broadcast %i : ({V}) -> {M}\n"
        f'%y = sdg.contract "ab,ab->a" %x[t], %r in (t) : ({M}, {M}) -> {U}', U, ["slice", "contract"],
    ),
    "product that sums nothing": (
        f"%i = sdg.slice %z take [0, 0:4] : ({M}) -> {V}\n"
        f'%y = sdg.contract "b,ab->ab" %i, %x[t] in (t) : ({V}, {M}) -> {M}', M, ["slice", "mul"],
    ),
    "integers by threes": (
        f"%o = sdg.constant 3 : tensor<4xi8>\n"
        f'%y = sdg.contract "ab,b->a" %n[t], %o in (t) : ({N}, tensor<4xi8>) -> tensor<3xi8>', "tensor<3xi8>",
        ["sum", "mul"],
    ),
    "identity matrix": (
        "%o = sdg.constant dense<[[1, 0, 0], [0, 1, 0], [0, 0, 1]]> : tensor<3x3xi8>\n"
        f'%y = sdg.contract "kb,ka->ab" %n[t], %o in (t) : ({N}, tensor<3x3xi8>) -> {N}', N, [],
    ),
    "cut to fewer bits twice": (
        chain(M, "cast {}", "tensor<3x4xi64>", "cast {}", "tensor<3x4xi16>", "cast {}", N), N, ["cast", "cast"],
    ),
}  # fmt: skip
APPLIES = {**REGROUPED, **MOVED}


def check(text: str, **options: object) -> None:
    """The pass changes no output, at a few sizes, NaN and infinities included unless told to forget them."""
    before = program_of(parse(text))
    after = program_of(apply(parse(text), "sdg-simplify", **options))
    for size in (0, 1, 2, 3, 5):
        for special in (False,) if options else (False, True):
            arguments = draw(before, {"T": size}, size, special=special)
            with np.errstate(all="ignore"):
                expected = run(before, arguments, {"T": size})["y"]
                found = run(after, arguments, {"T": size})["y"]
            np.testing.assert_allclose(found, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("name", APPLIES)
def test_applies(name: str):
    body, result, expected = APPLIES[name]
    text = program(body, result)
    assert ops(text, "sdg-simplify") == expected
    check(text)


FLOATS_STAY = {
    "(x + 0.1) + 0.2": (both("add", "0.1", "0.2", M), ["add"]),
    "(x + z) - z": (binary("add", "%x[t]", "%z", M, op="i") + binary("sub", "%i[t]", "%z", M), []),
    "z - (z - x)": (binary("sub", "%z", "%x[t]", M, op="i") + binary("sub", "%z", "%i[t]", M), []),
    "0 * x": (constant("a", "0.0", M) + binary("mul", "%a", "%x[t]", M), []),
    "x - x": (binary("sub", "%x[t]", "%x[t]", M), []),
    "x * z + x * x": (
        binary("mul", "%x[t]", "%z", M, op="i") + binary("mul", "%x[t]", "%x[t]", M, op="j")
        + binary("add", "%i[t]", "%j[t]", M), ["add", "mul"],
    ),
    "max(x, min(x, z))": (binary("minimum", "%x[t]", "%z", M, op="i") + binary("maximum", "%x[t]", "%i[t]", M), []),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS_STAY)
def test_floats_are_regrouped_on_request_alone(name: str):
    body, fast = FLOATS_STAY[name]
    text = program(body, M)
    assert ops(text, "sdg-simplify") == ops(text, "sdg-dce")
    assert ops(text, "sdg-simplify", fast_math=True) == fast
    check(text)
    check(text, fast_math=True)


LEFT_ALONE = {
    "not (x < z)": binary("lt", "%x[t]", "%z", M, C, op="i") + f"%y = sdg.not %i[t] in (t) : ({C}) -> {C}",
    "slice across a concatenation": f"%i = sdg.concat %x[t], %z axis 0 in (t) : ({M}, {M}) -> tensor<6x4xf64>\n"
    "%y = sdg.slice %i[t] take [2:5, 0:4] in (t) : (tensor<6x4xf64>) -> {M}",
    "slice into a pad": (
        chain(M, "pad {} low [1, 0] high [0, 0] value 5.0", "tensor<4x4xf64>", "slice {} take [0:3, 0:4]", M)
    ),
    "max of a pad by 0": chain(M, "pad {} low [1, 0] high [0, 0] value 0.0", "tensor<4x4xf64>", "max {} axes [0]", V),
    "sum across a reversal": chain(M, "reverse {} axis 0", M, "sum {} axes [1]", U),
    "pad by another number": (
        chain(M, "pad {} low [0, 1] high [0, 0] value 1.0", "tensor<3x5xf64>",
        "pad {} low [0, 1] high [0, 0] value 2.0", "tensor<3x6xf64>")
    ),
    "slices apart": f"%i = sdg.slice %x[t] take [0:3, 0:1] in (t) : ({M}) -> tensor<3x1xf64>\n"
    f"%j = sdg.slice %x[t] take [0:3, 2:4] in (t) : ({M}) -> tensor<3x2xf64>\n"
    "%y = sdg.concat %i[t], %j[t] axis 1 in (t) : (tensor<3x1xf64>, tensor<3x2xf64>) -> tensor<3x3xf64>",
    "pads that overlap": padded("i", "%x[t]", "[0, 3]", "[0, 1]", "8")
    + padded("j", "%z", "[0, 0]", "[0, 4]", "8") + summed("%i[t]", "%j[t]", "8").rstrip(),
    "pads apart": padded("i", "%x[t]", "[0, 5]", "[0, 0]", "9")
    + padded("j", "%z", "[0, 0]", "[0, 5]", "9") + summed("%i[t]", "%j[t]", "9").rstrip(),
    "pads side by side, one by another number": padded("i", "%x[t]", "[0, 4]", "[0, 0]", "8", "1.0")
    + padded("j", "%z", "[0, 0]", "[0, 4]", "8") + summed("%i[t]", "%j[t]", "8").rstrip(),
    "a pad at one point and at another": "%i = sdg.slice %x[t] take [0:3, 0:2] in (t) : ({M}) -> tensor<3x2xf64>\n"
    "%j = sdg.pad %i[t] low [0, 2] high [0, 0] value 0.0 in (t) : (tensor<3x2xf64>) -> {M}\n"
    "%y = sdg.add %x[t], %j[t] in (t) : ({M}, {M}) -> {M}",
    "dot product with zeros": f"%o = sdg.constant 0.0 : {V}\n"
    f'%y = sdg.contract "ab,b->a" %x[t], %o in (t) : ({M}, {V}) -> {U}',
    "identity matrix of floats": "%o = sdg.constant dense<[[1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf64>\n"
    f"%i = sdg.slice %x[t] take [0:2, 0:2] in (t) : ({M}) -> tensor<2x2xf64>\n"
    '%y = sdg.contract "ab,bc->ac" %i[t], %o in (t) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>',
    "a contraction with a number that is not 1": constant("o", "0.5", M)
    + f'%y = sdg.contract "ab,->a" %x[t], %o in (t) : ({M}, tensor<f64>) -> {U}',
    "outer product": f'%y = sdg.contract "ab,cd->abcd" %x[t], %z in (t) : ({M}, {M}) -> tensor<3x4x3x4xf64>',
    "a product with two uses": binary("mul", "%n[t]", "%m", N, op="i") + binary("mul", "%n[t]", "%n[t]", N, op="j")
    + binary("add", "%i[t]", "%j[t]", N, op="k") + binary("xor", "%k[t]", "%i[t]", N),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name: str):
    body = LEFT_ALONE[name].replace("{M}", M)
    result = body.rsplit("-> ", 1)[1].strip()
    text = program(body, result)
    assert ops(text, "sdg-simplify") == ops(text, "sdg-dce")
    check(text)


def test_a_sum_of_ones_along_an_axis_that_ends_before_it_begins():
    check("""
    sdg.program @p dims(t: T) {
      %o = sdg.constant 1.0 : tensor<f64>
      %i = sdg.broadcast %o in (t) : (tensor<f64>) -> tensor<?xf64, #sdg.size<max(0, T - 2 * t)>>
      %y = sdg.sum %i[t] axes [0] in (t) : (tensor<?xf64, #sdg.size<max(0, T - 2 * t)>>) -> tensor<f64>
      sdg.output "y" %y[t] in (t) : tensor<f64>
    }""")
