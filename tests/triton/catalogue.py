"""Programs whose kernels are looked at as compiled code: one kernel per op of the language, one per fusion."""

from __future__ import annotations

import tempo_ir as tp

WIDE = 256
"""A contiguous axis that fills the threads of a program."""


@tp.program
def ops(dtype=tp.f32):
    """Every op that has a kernel, each alone: an output per op."""
    t, _T = tp.dim("t")
    x = tp.input("x", dtype[16, WIDE], over=t)
    y = tp.input("y", dtype[16, WIDE], over=t)
    n = tp.input("n", tp.i64[16, WIDE], over=t)
    b = tp.input("b", tp.bool[16, WIDE], over=t)
    ids = tp.input("ids", tp.i64[8], over=t)
    q, k = (v.reshape(4, 4, WIDE) for v in (x, y))
    found = {
        "neg": -x, "abs": tp.abs(x), "sign": tp.sign(x), "exp": tp.exp(x), "log": tp.ln(x), "log1p": tp.log1p(x),
        "sqrt": tp.sqrt(x), "rsqrt": tp.rsqrt(x), "tanh": tp.tanh(x), "sigmoid": tp.sigmoid(x), "erf": tp.erf(x),
        "sin": tp.sin(x), "cos": tp.cos(x), "floor": tp.floor(x), "ceil": tp.ceil(x), "round": tp.round(x),
        "add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "pow": x**y, "floordiv": x // y, "mod": x % y,
        "minimum": tp.minimum(x, y), "maximum": tp.maximum(x, y), "compare": x < y, "and": n & 6, "or": n | 1,
        "xor": n ^ 5, "not": ~b, "select": tp.where(b, x, y), "cast": n.cast(tp.f32),
        "sum": tp.sum(x, axis=-1), "prod": tp.prod(x, axis=-1), "mean": tp.mean(x, axis=0), "max": tp.max(x, axis=-1),
        "min": tp.min(x, axis=0), "argmax": tp.argmax(x, axis=-1), "argmin": tp.argmin(x, axis=-1),
        "softmax": tp.softmax(x), "cumsum": tp.cumsum(x, axis=-1), "cumprod": tp.cumprod(x, axis=-1),
        "matmul": tp.einsum("mk,nk->mn", x, y), "batched": tp.einsum("bhk,bnk->bhn", q, k),
        "transpose": tp.transpose(x, (1, 0)), "slice": x[t, :, 3:67], "reverse": tp.reverse(x, axis=-1),
        "concat": tp.concat([x, y], axis=-1), "pad": tp.pad(x, 3, 5, axis=1), "reshape": x.T.reshape(8, 512),
        "broadcast": tp.broadcast_to(x[t, 0], (16, WIDE)), "take": tp.take(x, ids),
        "one_hot": tp.one_hot(ids, 24), "arange": tp.arange(WIDE) + n[t, 0], "index": x * t,
        "uniform": tp.random.uniform(0.0, 1.0, tp.f32[WIDE], over=t),
        "normal": tp.random.normal(0.0, 1.0, tp.f32[WIDE], over=t),
        "categorical": tp.random.categorical(x),
    }  # fmt: skip
    for name, value in found.items():
        tp.output(name, value)


@tp.program
def fusions(dtype=tp.f32, rows=16, width=64):
    """Chains that one kernel is to compute: an output per fusion."""
    t, _T = tp.dim("t")
    x = tp.input("x", dtype[rows, width], over=t)
    residual = tp.input("residual", dtype[rows, width], over=t)
    label = tp.input("label", tp.i64[rows], over=t)
    keep = tp.input("keep", tp.bool[rows, width], over=t)
    scale, bias = tp.parameter("scale", dtype[width]), tp.parameter("bias", dtype[width])
    w, up = tp.parameter("w", dtype[width, width]), tp.parameter("up", dtype[width, width])
    products = {name: tp.einsum("bk,nk->bn", x, each) for name, each in {"w": w, "up": up}.items()}
    q = tp.input("q", dtype[rows, width], over=t).reshape(4, 2, rows * width // 8)
    found = {
        "bias_tanh": tp.tanh(products["w"] + bias), "bias_relu": tp.relu(products["w"] + bias),
        "bias_gelu": tp.gelu(products["w"] + bias), "residual": residual + products["w"],
        "gated": tp.silu(products["w"]) * products["up"], "squares": tp.mean((x - residual) ** 2),
        "rms_norm": tp.rms_norm(x, scale), "layer_norm": tp.layer_norm(x, scale, bias),
        "masked_softmax": tp.softmax(tp.where(keep, x * 0.125, float("-inf"))),
        "cross_entropy": tp.cross_entropy(x, label), "logsumexp": tp.logsumexp(x), "entropy": tp.entropy(x),
        "clipped": tp.clip(x * scale + bias, -1.0, 1.0), "variance": tp.var(x, axis=-1),
        "scaled_queries": q * 0.125, "greedy": tp.argmax(x * 2.0 + bias, axis=-1),
    }  # fmt: skip
    for name, value in found.items():
        tp.output(name, value)


@tp.program
def attention(dtype=tp.f32, heads=2, group=4, width=64, window=None):
    """Decode attention with grouped queries over a growing cache, or over a window of it."""
    t, _T = tp.dim("t")
    q = tp.input("q", dtype[heads, group, width], over=t)
    k, v = (tp.input(name, dtype[heads, width], over=t) for name in "kv")
    past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)
    weights = tp.softmax(tp.einsum("hgd,nhd->hgn", q, k[past]))
    tp.output("mixed", tp.einsum("hgn,nhd->hgd", weights, v[past]))


@tp.program
def matmul(dtype=tp.f32, m=64, n=64, k=128):
    """A product of matrices: of f16 and bf16 on tensor cores."""
    t, _T = tp.dim("t")
    a, b = tp.input("a", dtype[m, k], over=t), tp.input("b", dtype[k, n], over=t)
    tp.output("c", tp.einsum("mk,kn->mn", a, b))


@tp.program
def adam(width=64):
    """An optimiser's update of one parameter."""
    from tempo_ir import optim

    i, _I = tp.dim("i")
    x = tp.input("x", tp.f32[16, width], over=i)
    w = tp.state("w", tp.f32[width, width], steps=i)
    optim.Adam(1e-2).minimize(tp.mean((x @ w[i]) ** 2), w)


@tp.program
def prefill(dtype=tp.f32, heads=2, group=4, width=64, window=None):
    """Causal attention of all queries of a prompt at once, or over a window."""
    p, P = tp.dim("p")
    q = tp.input("q", dtype[heads, group, width], over=p)[0:P]
    k, v = (tp.input(name, dtype[heads, width], over=p)[0:P] for name in "kv")
    m, n = tp.arange(P).reshape(-1, 1), tp.arange(P).reshape(1, -1)
    seen = n <= m if window is None else (n <= m) & (n > m - window)
    scores = tp.where(seen, tp.einsum("mhgd,nhd->hgmn", q, k) * width**-0.5, float("-inf"))
    tp.output("mixed", tp.einsum("hgmn,nhd->mhgd", tp.softmax(scores), v))
