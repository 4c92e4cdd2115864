"""The programs that a GPU runs beside the CPU target: the bounds to check each at, and those to measure it at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tempo_ir as tp
from tempo_ir import llm, nn
from tempo_ir.tools import programs


@dataclass(frozen=True)
class Case:
    """A program: with the bounds `small` it is compared with the CPU target, with `large` it is measured.

    `longer` are bounds with more steps: what is measured is a step, the difference over their number; `small` may be
    none then. `beside` says what it is measured beside, `settings` how that is called.
    """

    make: Callable[[], Any]
    small: dict[str, int]
    large: dict[str, int] = field(default_factory=dict)
    tolerance: float = 1e-4
    longer: dict[str, int] = field(default_factory=dict)
    beside: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


@tp.program
def normed_product(dtype=tp.f32, width=256, columns=512):
    """RMSNorm and a product in one kernel."""
    t, _T = tp.dim("t")
    x = tp.input("x", dtype[width], over=t)
    scale, w = tp.parameter("scale", dtype[width]), tp.parameter("w", dtype[columns, width])
    tp.output("y", tp.einsum("k,nk->n", tp.rms_norm(x, scale), w))


@tp.program
def attention(dtype=tp.f32, heads=8, group=4, width=128, window=None):
    """Decode attention with grouped queries over a growing cache."""
    t, _T = tp.dim("t")
    q = tp.input("q", dtype[heads, group, width], over=t)
    k, v = (tp.input(name, dtype[heads, width], over=t) for name in "kv")
    past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)
    weights = tp.softmax(tp.einsum("hgd,nhd->hgn", q * width**-0.5, k[past]))
    tp.output("mixed", tp.einsum("hgn,nhd->hgd", weights, v[past]))


@tp.program
def decode_attention(dtype=tp.bf16, heads=8, group=4, width=128):
    """Attention of one step with grouped queries over a cache of all steps."""
    t, T = tp.dim("t")
    q = tp.input("q", dtype[heads, group, width])
    k, v = (tp.input(name, dtype[heads, width], over=t)[0:T] for name in "kv")
    weights = tp.softmax(tp.einsum("hgd,nhd->hgn", q * width**-0.5, k))
    tp.output("mixed", tp.einsum("hgn,nhd->hgd", weights, v))


@tp.program
def prompt_attention(dtype=tp.bf16, heads=8, group=4, width=128):
    """Causal attention of all steps of a prompt, with grouped queries."""
    t, T = tp.dim("t")
    q = tp.input("q", dtype[heads, group, width], over=t)[0:T]
    k, v = (tp.input(name, dtype[heads, width], over=t)[0:T] for name in "kv")
    seen = tp.arange(T).reshape(1, -1) <= tp.arange(T).reshape(-1, 1)
    scores = tp.where(seen, tp.einsum("mhgd,nhd->hgmn", q * width**-0.5, k), float("-inf"))
    tp.output("mixed", tp.einsum("hgmn,nhd->mhgd", tp.softmax(scores), v))


@tp.program
def recurrence(batch=64, width=64):
    """A recurrent network, forwards."""
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[batch, width], over=t)
    w = tp.parameter("w", tp.f32[width, width], init=nn.orthogonal())
    h = tp.tensor("h", tp.f32[batch, width], over=t)
    h[0] = tp.tanh(x)
    h[t] = tp.tanh(x + h[t - 1] @ w)
    tp.output("h", h)


@tp.program
def draws(width=64):
    """Random numbers, which are the same on every target."""
    t, _T = tp.dim("t")
    tp.output("uniform", tp.random.uniform(0.0, 1.0, tp.f32[width], over=t))
    tp.output("bits", tp.random.bits(tp.i64[width], over=t))


LLAMA_3B = {"layers": 28, "hidden": 3072, "heads": 24, "kv_heads": 8, "feed_forward": 8192, "vocabulary": 128_256}
"""The shape of Llama 3.2 3B."""


class Shapes:
    """What `llm.Weights` asks of a checkpoint, where only the shapes of its tensors matter."""

    def __init__(self, *, layers: int, hidden: int, heads: int, kv_heads: int, feed_forward: int, vocabulary: int):
        width = hidden // heads
        found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, hidden)}
        for number in range(layers):
            prefix = f"model.layers.{number}"
            for name, rows in {"q": heads * width, "k": kv_heads * width, "v": kv_heads * width}.items():
                found[f"{prefix}.self_attn.{name}_proj.weight"] = (rows, hidden)
            found[f"{prefix}.self_attn.o_proj.weight"] = (hidden, heads * width)
            for name in ("gate", "up"):
                found[f"{prefix}.mlp.{name}_proj.weight"] = (feed_forward, hidden)
            found[f"{prefix}.mlp.down_proj.weight"] = (hidden, feed_forward)
            found |= {f"{prefix}.{name}_layernorm.weight": (hidden,) for name in ("input", "post_attention")}
        self.files = found | {"model.norm.weight": (hidden,)}

    def shape(self, name: str) -> tuple[int, ...]:
        """That of a tensor."""
        return self.files[name]

    def initialiser(self, name: str) -> Any:
        """No values: they are drawn on the GPU."""
        return None


@tp.program
def decode(batch=1, dtype=tp.bf16, layers=28, hidden=3072, heads=24, kv_heads=8, feed_forward=8192, vocabulary=128_256):
    """Greedy decoding by a Llama, by default of the shape of 3B, its head tied to the embedding, all in 16 bits."""
    shape = {
        "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "feed_forward": feed_forward,
        "vocabulary": vocabulary,
    }  # fmt: skip
    width = shape["hidden"] // shape["heads"]
    config = llm.Config(
        layers=shape["layers"], hidden=shape["hidden"], heads=shape["heads"], kv_heads=shape["kv_heads"],
        head_width=width, feed_forward=shape["feed_forward"], vocabulary=shape["vocabulary"], eps=1e-5, tied=True,
        rope={"rope_theta": 500_000.0, "rope_type": "default"},
    )  # fmt: skip
    net = llm.Llama(llm.Weights(Shapes(**shape), config, dtype, dtype))
    t, T = tp.dim("t")
    p, P = tp.dim("p", at_most=T)
    prompt = tp.input("prompt", tp.i64[batch], over=p)
    token = tp.tensor("token", tp.i64[batch], over=t)
    x = net.embed(token)
    for layer in net.layers:
        normed = layer.norm_in(x)
        q = layer.q(normed).reshape(batch, layer.kv_heads, layer.group, layer.width)
        k, v = (each(normed).reshape(batch, layer.kv_heads, layer.width) for each in (layer.k, layer.v))
        q = llm.rope(q, t, layer.frequencies) * layer.width**-0.5
        k = llm.rope(k, t, layer.frequencies)
        weights = tp.softmax(tp.einsum("bhgd,nbhd->bhgn", q, k[0 : t + 1]))
        mixed = tp.einsum("bhgn,nbhd->bhgd", weights, v[0 : t + 1])
        x = x + layer.o(mixed.reshape(batch, -1))
        x = x + layer.mlp(layer.norm_post(x))
    token[t < P] = prompt[t]
    token[t + 1] = tp.argmax(net.head(net.norm(x)), axis=-1)
    tp.output("token", token)


def decoding(batch: int) -> Case:
    """A step of the 3B model with 64 to 192 keys."""
    bounds = {"T": 64, "P": 4}
    settings = {"batch": batch, **LLAMA_3B}
    return Case(lambda: decode(batch=batch), {}, bounds, 0.0, {"T": 192, "P": 4}, "decode", settings)


def rollout() -> Any:
    """The example: environments and the policy that acts in them."""
    example, _ = programs.load_python(Path("examples/rollout.py"), None, {"envs": 4096})
    return example.source


CASES = {
    "normed product f32": Case(normed_product, {"T": 3}, {"T": 512}, beside="normed_product"),
    "normed product bf16": Case(
        lambda: normed_product(dtype=tp.bf16, width=2048, columns=4096),
        {"T": 3},
        {"T": 16},
        3e-2,
        beside="normed_product",
    ),
    "normed product f16": Case(
        lambda: normed_product(dtype=tp.f16), {"T": 3}, {"T": 512}, 3e-3, beside="normed_product"
    ),
    "attention f32": Case(attention, {"T": 70}, {"T": 1024}, beside="attention"),
    "attention bf16": Case(lambda: attention(dtype=tp.bf16), {"T": 70}, {"T": 1024}, 3e-2, beside="attention"),
    "attention, window 64": Case(
        lambda: attention(window=64), {"T": 150}, {"T": 1024}, beside="attention", settings={"window": 64}
    ),
    **{
        f"decode attention bf16, {keys // 1024}k keys": Case(
            decode_attention, {"T": 150}, {"T": keys}, 3e-2, beside="decode_attention"
        )
        for keys in (4096, 32_768, 131_072)
    },
    "decode attention f32": Case(
        lambda: decode_attention(dtype=tp.f32, heads=2), {"T": 150}, {"T": 4096}, beside="decode_attention"
    ),
    "prompt's attention bf16, 4k steps": Case(
        prompt_attention, {"T": 70}, {"T": 4096}, 3e-2, beside="prompt_attention"
    ),
    "prompt's attention f16, group of 3": Case(
        lambda: prompt_attention(dtype=tp.f16, heads=2, group=3),
        {"T": 70},
        {"T": 4096},
        1e-2,
        beside="prompt_attention",
    ),
    "persistent RNN, 1024 rows": Case(lambda: recurrence(batch=1024), {"T": 9}, {"T": 512}, beside="recurrence"),
    "persistent RNN, 16 rows": Case(lambda: recurrence(batch=16), {"T": 9}, {"T": 512}, beside="recurrence"),
    "RL rollout, 4096 environments": Case(rollout, {"T": 6}, {"T": 500}, beside="rollout", settings={"envs": 4096}),
    "draws": Case(draws, {"T": 5}, {}, 0.0),
    **{f"a step of llama 3B bf16, batch {batch}": decoding(batch) for batch in (1, 4, 16)},
}
