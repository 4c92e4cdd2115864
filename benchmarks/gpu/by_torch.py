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


def cell(x, h, w):
    """A step of the network, which may be compiled."""
    return torch.tanh(x + h @ w)


def recurrence(arrays, settings, cell=cell):
    h = torch.tanh(arrays["x"][0])
    for x in arrays["x"][1:]:
        h = cell(x, h, arrays["w"])
    return h


recurrence.step = cell


def act(obs, age, first, first_bias, second, second_bias):
    """A step of many CartPoles with the policy that acts in them."""
    logits = linear(torch.tanh(linear(obs, first, first_bias)), second, second_bias)
    action = (logits - torch.log(-torch.log(torch.rand_like(logits)))).argmax(-1)
    x, speed, angle, spin = obs.unbind(-1)
    force, cos, sin = torch.where(action == 1, 10.0, -10.0), angle.cos(), angle.sin()
    push = (force + 0.05 * spin * spin * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
    x, angle = x + 0.02 * speed, angle + 0.02 * spin
    moved = torch.stack([x, speed + 0.02 * (push - 0.05 * turn * cos / 1.1), angle, spin + 0.02 * turn], -1)
    ended = (x.abs() > 2.4) | (angle.abs() > 0.20943951) | (age + 1 >= 500)
    begin = torch.rand_like(obs) * 0.1 - 0.05
    return action, ended, torch.where(ended[:, None], begin, moved), torch.where(ended, 0, age + 1)


def rollout(arrays, settings, act=act):
    policy = [arrays[f"policy.{layer}.{name}"] for layer in (0, 1) for name in ("weight", "bias")]
    obs = torch.rand(settings["envs"], 4, device=policy[0].device) * 0.1 - 0.05
    age = torch.zeros(settings["envs"], dtype=torch.int64, device=obs.device)
    rows = []
    for _ in range(settings.get("steps", 500)):
        action, ended, following, age = act(obs, age, *policy)
        rows.append((obs, action, ended))
        obs = following
    return [torch.stack(each) for each in zip(*rows, strict=True)]


rollout.step = act


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
