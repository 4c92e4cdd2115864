# pyright: basic
"""The programs that are measured, in torch: each takes the arrays of a package and the settings of its case."""

import torch
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu


def normed_product(arrays, settings):
    x = arrays["x"]
    return rms_norm(x, (x.shape[-1],), arrays["scale"], 1e-6) @ arrays["w"].T


def attention(arrays, settings):
    """Step by step: each reads its own past."""
    window, (q, k, v) = settings.get("window"), (arrays[name] for name in "qkv")
    for t in range(q.shape[0]):
        low = 0 if window is None else max(0, t - window + 1)
        past_k, past_v = (x[low : t + 1].permute(1, 0, 2)[None] for x in (k, v))
        mixed = scaled_dot_product_attention(q[t][None], past_k, past_v)
    return mixed


def decode_attention(arrays, settings):
    q, k, v = (arrays[name] for name in "qkv")
    return scaled_dot_product_attention(q[None], k.permute(1, 0, 2)[None], v.permute(1, 0, 2)[None])[0]


def prompt_attention(arrays, settings):
    q, k, v = (arrays[name] for name in "qkv")
    steps, heads, group, width = q.shape
    q = q.reshape(steps, heads * group, width).permute(1, 0, 2)[None]
    k, v = (x.permute(1, 0, 2)[None] for x in (k, v))
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return mixed[0].permute(1, 0, 2).reshape(steps, heads, group, width)


def recurrence(arrays, settings):
    h = torch.tanh(arrays["x"][0])
    for x in arrays["x"][1:]:
        h = torch.tanh(x + h @ arrays["w"])
    return h


def turned(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def layer(x, weights, keys, values, position, cos, sin, seen):
    """One layer at a step; caches of a fixed length, (batch, heads, steps, width), of which `seen` counts."""
    norm_in, wq, wk, wv, wo, norm_post, gate, up, down = weights
    batch, heads, width = x.shape[0], keys.shape[1], keys.shape[3]
    normed = rms_norm(x, (x.shape[-1],), norm_in, 1e-5)
    q = turned(linear(normed, wq).view(batch, -1, 1, width), cos, sin)
    keys.index_copy_(2, position, turned(linear(normed, wk).view(batch, heads, 1, width), cos, sin))
    values.index_copy_(2, position, linear(normed, wv).view(batch, heads, 1, width))
    mixed = scaled_dot_product_attention(q, keys, values, attn_mask=seen, enable_gqa=True)
    x = x + linear(mixed.reshape(batch, -1), wo)
    normed = rms_norm(x, (x.shape[-1],), norm_post, 1e-5)
    return x + linear(silu(linear(normed, gate)) * linear(normed, up), down)


def decoder(arrays, settings, layer=layer):
    """Greedy decoding: a function of how many steps. With caches of a fixed length, as compiled code wants them."""
    table, norm = arrays["model.embed_tokens.weight"], arrays["model.norm.weight"]
    names = "input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj"
    names += " post_attention_layernorm mlp.gate_proj mlp.up_proj mlp.down_proj"
    layers = [
        [arrays[f"model.layers.{number}.{name}.weight"] for name in names.split()]
        for number in range(settings["layers"])
    ]
    width, device = settings["hidden"] // settings["heads"], table.device
    frequencies = 500_000.0 ** (-torch.arange(0, width, 2, device=device) / width)
    longest = 256

    def run(steps):
        shape = (settings["batch"], settings["kv_heads"], longest, width)
        caches = [[torch.zeros(shape, dtype=table.dtype, device=device) for _ in range(2)] for _ in layers]
        token = torch.zeros(settings["batch"], dtype=torch.int64, device=device)
        for t in range(steps):
            position = torch.tensor([t], device=device)
            angle = t * frequencies
            cos, sin = angle.cos().to(table.dtype), angle.sin().to(table.dtype)
            seen = torch.arange(longest, device=device)[None, None, None] <= t
            x = table[token]
            for weights, (keys, values) in zip(layers, caches, strict=True):
                x = layer(x, weights, keys, values, position, cos, sin, seen)
            token = linear(rms_norm(x, (x.shape[-1],), norm, 1e-5), table).argmax(-1)
        return token

    return run
