"""Greedy decoding of a Llama model: prefill and generation are one recurrence over t.

    python examples/llama.py                                    decode 32 tokens after a prompt
    python examples/llama.py --window 8                         the same with sliding-window attention
    python examples/llama.py --window 8 --global-every 2        every second layer looks back all the way
    python examples/llama.py --until 994                        no further than to token 994
    python examples/llama.py --weights bf16 --cache bf16        weights and caches in half the bytes, computed in f32
    python examples/llama.py --weights i8                       weights in a quarter
    tempo-opt examples/llama.py --set window=64                 the program as sdg text

`model` is a checkpoint in Hugging Face layout (config.json, model.safetensors). Where it is missing, a small one of
random weights is written there, so that the example runs in a fresh clone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import tempo_ir as tp
from tempo_ir import llm


def attend(layer, x, t, window, cache=None):
    """Causal attention with grouped queries over the keys and values of the steps so far: (batch, hidden) at each t."""
    batch = x.shape[0]
    q = layer.q(x).reshape(batch, layer.kv_heads, layer.group, layer.width)
    k = layer.k(x).reshape(batch, layer.kv_heads, layer.width)
    v = layer.v(x).reshape(batch, layer.kv_heads, layer.width)
    q = llm.rope(q, t, layer.frequencies) * layer.width**-0.5
    k = llm.rope(k, t, layer.frequencies)
    if cache is not None:
        k, v = tp.cast(k, cache), tp.cast(v, cache)
    past = slice(0 if window is None else tp.maximum(0, t - window + 1), t + 1)  # the whole KV-cache policy
    score = tp.einsum("bhgd,nbhd->bhgn", q, k[past])
    mixed = tp.einsum("bhgn,nbhd->bhgd", tp.softmax(score), v[past])
    return layer.o(mixed.reshape(batch, -1))


@tp.program
def decode(
    model="build/tiny-llama", window=None, batch=1, layers=None, until=None, global_every=None, weights=None, cache=None
):
    weights, cache = (name and getattr(tp, name) for name in (weights, cache))
    net = llm.Llama.from_pretrained(checkpoint(model), layers=layers, weights=weights)
    t, T = tp.dim("t", until=None if until is None else lambda: tp.all(ended))  # T steps are then the most there may be
    p, P = tp.dim("p", at_most=T)  # `where P <= T`, checked at the call
    prompt = tp.input("prompt", tp.i64[batch], over=p)
    token = tp.tensor("token", tp.i64[batch], over=t)
    x = net.embed(token)
    for number, layer in enumerate(net.layers, 1):
        sees_all = global_every is not None and number % global_every == 0
        x = x + attend(layer, layer.norm_in(x), t, None if sees_all else window, cache)
        x = x + layer.mlp(layer.norm_post(x))
    logits = net.head(net.norm(x))  # needed, hence computed, only for P - 1 <= t < T - 1
    following = tp.argmax(logits, axis=-1)
    if until is not None:
        ended = tp.tensor("ended", tp.bool[batch], over=t)  # whether each row has said the token after its prompt
        ended[t < P] = False
        ended[t + 1] = ended | (following == until)
        following = tp.where(ended, until, following)
    token[t < P] = prompt[t]
    token[t + 1] = following
    tp.output("token", token)


def checkpoint(model: str) -> Path:
    """The directory of the model; a seeded random one is written where there is none."""
    path = Path(model)
    return path if (path / "config.json").exists() else llm.write_random_llama(path, seed=0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Greedy decoding of a Llama checkpoint.")
    parser.add_argument(
        "--model", default="build/tiny-llama", help="a directory with config.json and model.safetensors"
    )
    parser.add_argument("--window", type=int, default=None, help="how many steps attention looks back (default: all)")
    parser.add_argument(
        "--global-every",
        type=int,
        default=None,
        help="which layers look back all the way despite a window (default: none)",
    )
    parser.add_argument("--tokens", type=int, default=32, help="how many tokens to decode")
    parser.add_argument("--until", type=int, default=None, help="the token that ends the sequence (default: none)")
    types = ("f32", "bf16", "f16")
    parser.add_argument("--weights", choices=(*types, "i8"), help="how weights are stored (default: f32)")
    parser.add_argument("--cache", choices=types, help="how keys and values are stored (default: f32)")
    arguments = parser.parse_args()
    exe = tp.compile(
        decode(
            model=arguments.model,
            window=arguments.window,
            until=arguments.until,
            global_every=arguments.global_every,
            weights=arguments.weights,
            cache=arguments.cache,
        )
    )
    prompt = np.array([[1], [17], [29], [5]])
    out = exe(prompt=prompt, T=len(prompt) + arguments.tokens, state=exe.init())
    print("prompt:", *prompt[:, 0])
    print("tokens:", *out["token"][len(prompt) :, 0])


if __name__ == "__main__":
    main()
